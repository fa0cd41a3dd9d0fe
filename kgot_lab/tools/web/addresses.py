"""Which addresses may be asked for: the public web by http and https, and private ones only where they were
named.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgot_lab.errors import NotInstalled, ToolFailed, shortly

if TYPE_CHECKING:
    import httpx

_PORTS = {"http": 80, "https": 443}
# IPv6 addresses that hold an IPv4 address in their last 32 bits
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True)
class Destination:
    """An address that may be asked for, and the number of the computer to connect to: looked up once, so that
    it cannot change after.
    """

    url: httpx.URL
    ip: str


def destination(address: str, private_hosts: Collection[str] = ()) -> Destination:
    """Where an address leads; `private_hosts` are the "host:port" that may be reached although they are
    private.

    Raises ToolFailed for what is not http or https, holds a password, has no such host, or leads to a
    private, loopback or link-local computer; NotInstalled without httpx.
    """
    try:
        import httpx
    except ImportError:
        raise NotInstalled("web", "httpx") from None
    try:
        url = httpx.URL(address.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailed(f"{shortly(address)} is not an address: {error}") from None
    if url.scheme not in _PORTS or not url.host:
        raise ToolFailed(f"only http and https addresses can be visited, not {shortly(address)}")
    if url.userinfo:
        raise ToolFailed("an address with a user name or password in it is not visited")
    port = url.port or _PORTS[url.scheme]
    found = _numbers(url.host, port)
    if f"{url.host}:{port}" not in private_hosts and not all(map(is_public, found)):
        raise ToolFailed(
            f"{url.host}:{port} is a private address, which is not visited; only the public web is"
        )
    return Destination(url, found[0])


def is_public(number: str) -> bool:
    """Whether an IP address belongs to the public internet, an IPv4 address inside an IPv6 address included."""
    try:
        ip = ipaddress.ip_address(number.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inside = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
        inside += [ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)] if ip in _NAT64 else []
        if not all(each.is_global for each in inside if each is not None):
            return False
    return ip.is_global and not ip.is_multicast


def _numbers(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        passing = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
        raise ToolFailed(
            f"there is no computer called {shortly(host)}, or its name cannot be looked up now", again=passing
        ) from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
