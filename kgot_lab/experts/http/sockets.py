"""Where a server listens: on a port of its own, or on one that several processes of this computer share."""

from __future__ import annotations

import socket

from kgot_lab.errors import BadInput


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that listens; `shared` lets other processes that say so too listen there, and the system gives
    each some of what comes.

    Raises BadInput where the port is taken, or a system cannot share one.
    """
    if shared and not hasattr(socket, "SO_REUSEPORT"):
        raise BadInput("this system cannot share a port: let a proxy stand before several servers")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise BadInput(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose another --port"
        ) from None
    opened.set_inheritable(True)
    return opened
