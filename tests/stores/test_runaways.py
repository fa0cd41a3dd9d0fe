"""A statement that was given up ends on the server, too, as far as the engine allows: the server rests again.

Neo4j heeds the time limit of each transaction, which the store sends, and ends what a lost connection asked
for. ArcadeDB heeds neither, but a limit of its own (arcadedb.command.timeout). Oxigraph 0.5 goes on whatever
happens, its --timeout-s too, while it joins.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.bolt_server import BoltServer
from support.loopback import started
from support.waiting import until

from kgot_lab.errors import QueryFailed
from kgot_lab.stores import open_store

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at the threads of a process in /proc")
pytestmark = [pytest.mark.extended, linux]
RUNAWAY = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 "
_QUIET = 50  # looks in a row at which no thread computes


def rests(pid: int) -> bool:
    """Whether no thread of a process computes, at many looks."""
    threads = [path / "stat" for _ in range(_QUIET) for path in Path(f"/proc/{pid}/task").iterdir()]
    states = (thread.read_text().rpartition(")")[2].split()[0] for thread in threads if thread.exists())
    return "R" not in states


@pytest.fixture
def server(tmp_path):
    server = started("a Bolt server", lambda: BoltServer(tmp_path, longest=3.0))
    yield server
    server.kill()


def test_a_server_with_a_limit_of_its_own_rests_after_a_runaway_and_goes_on(server):
    login = {"user": server.user, "password": server.password, "database": server.database("runaways")}
    with closing(open_store("cypher_server", at=server.uri, seconds=1.0, **login)) as store:
        runaways = {store.read: "RETURN count(*) AS n", store.write: "CREATE ({id: 'late'})"}
        for act, end in runaways.items():
            with pytest.raises(QueryFailed, match=r"took longer|timeout|exceed"):
                act(RUNAWAY + end)
        until(lambda: rests(server.process.pid), "the server rests")
        assert store.graph().ids == ()
