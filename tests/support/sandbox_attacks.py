"""Attacks on the sandbox, the way a hostile statement would: a host worth attacking, and what each attack got
there.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import Sandbox
from kgot_lab.stores import InMemory
from support.hostile import SECRET
from support.hostile_code import HostileCode

ATTACKED_BY_CODE = (
    "add('Ada', 'born in', 'London', subject_label='Person'); add('London', 'part of', 'England')"
)


@contextmanager
def host_of_code(project: Path) -> Iterator[tuple[dict[str, str], list[object]]]:
    """A host worth attacking: a secret file, a secret in the environment and a listening server; yields the
    places and who connected.
    """
    connected: list[object] = []
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        tempfile.NamedTemporaryFile("w", suffix=".txt") as file,
    ):
        file.write(SECRET)
        file.flush()
        thread = threading.Thread(target=_listen, args=(server, connected), daemon=True)
        thread.start()
        os.environ["KGOT_LAB_TEST_SECRET"] = SECRET
        home = Path.home()
        python = {*Path(sys.base_prefix).parts, *Path(sys.executable).parts}
        try:
            yield {
                "SECRET_FILE": file.name, "HOME": str(home), "PROJECT": str(project),
                "PORT": str(server.getsockname()[1]), "PYTHON": repr(sorted(python)),
            }, connected  # fmt: skip
        finally:
            del os.environ["KGOT_LAB_TEST_SECRET"]
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _listen(server: socket.socket, connected: list[object]) -> None:
    while True:
        try:
            connection, address = server.accept()
        except OSError:
            return
        connected.append(address)
        connection.close()


def what_code_got(store: InMemory, sandbox: Sandbox, attack: HostileCode, places: dict[str, str]) -> str:
    """What an attack got: what was returned, or why it was refused."""
    code = re.sub("|".join(places), lambda found: places[found[0]], attack.code)
    sandbox.seconds = 0.3 if "took longer" in attack.gets else 120.0
    try:
        match attack.do:
            case "write":
                return f"wrote {sandbox.write(code)}"
            case "compute":
                return f"returned {sandbox.compute(code)!r}"
            case _:
                return f"returned {store.read(code)!r}"
    except QueryFailed as error:
        return f"refused: {error}"
