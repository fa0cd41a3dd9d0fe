"""kill -9 of the server while two processes write to one world: what they were told is kept is there, and no
change is there by half.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loopback import started
from support.npc_places import at_postgres
from support.waiting import until

from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import StoreUnavailable
from kgot_lab.stores.postgres.server import Server

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL"),
]
ENOUGH = 20  # changes of each writer before the server is killed
WRITER = """
import sys
from support.npc_places import at_postgres
from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.errors import StoreUnavailable

conninfo, name = sys.argv[1:]
with at_postgres(conninfo, "killed") as world:
    for number in range(1_000_000):
        one, other = Entity("npc", f"{name} {number}"), Entity("location", f"{name} {number}")
        try:
            world.add([one, other], [Relationship(one.id, other.id, "LOCATED_AT")])
        except StoreUnavailable as error:
            print("lost:", error, flush=True)
            break
        print(number, flush=True)
"""


@pytest.fixture
def server() -> Iterator[Server]:
    """One that may be killed: no other test uses it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kgot_postgres_") as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        started("PostgreSQL", server.start)
        yield server
        server.stop()


def writer(conninfo: str, name: str, said: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    with said.open("wb") as file:
        return subprocess.Popen([sys.executable, "-c", WRITER, conninfo, name], stdout=file, env=environment)


def found_again(conninfo: str) -> NpcWorld | None:
    try:
        return at_postgres(conninfo, "killed")
    except StoreUnavailable:
        return None


def test_two_writers_and_a_killed_server_lose_nothing(server, tmp_path):
    with at_postgres(server.conninfo(), "killed"):
        pass
    files = {name: tmp_path / name for name in ("ann", "ben")}
    writers = [writer(server.conninfo(), name, said) for name, said in files.items()]
    until(lambda: all(said.read_text().count("\n") >= ENOUGH for said in files.values()), "both write")
    os.kill(int((server.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    for each in writers:
        assert each.wait(60) == 0
    server.start()
    world = until(lambda: found_again(server.conninfo()), "the server is back")
    names = {(entity.type, entity.name) for entity in world.find_entities()}
    for name, said in files.items():
        *kept, lost = said.read_text().splitlines()
        assert lost.startswith(("lost: PostgreSQL went away", "lost: PostgreSQL cannot be reached"))
        assert [int(number) for number in kept] == list(range(len(kept)))
        there = {int(each.split()[1]) for type, each in names if type == "npc" and each.startswith(name)}
        assert set(range(len(kept))) <= there <= set(range(len(kept) + 1)), (
            "at most the change that was under way is there beside"
        )
    assert all((other, name) in names for _, name in names for other in ("npc", "location"))
    for each in world.find_entities():
        assert len(world.get_relationships(each.id)) == (each.type == "npc")
    world.close()
