"""A store that a forked child inherits is not the child's: nothing that it does there reaches the parent's
file, server or sandbox.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import forking_script

from kgot_lab.errors import StoreUnavailable
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import open_store
from kgot_lab.types import Diff, Node

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system forks nothing")
pytestmark = [pytest.mark.extended, forks]

PLACES = {"in_memory": "graph.log", "cypher_embedded": "graph.log", "sparql_embedded": "graph.log"}
PLACES["sqlite"] = "graph.db"
FACTS = ["Ada | born in | London", "Ada | knows | Charles"]


def place(name: str, folder: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """Where a store of some kind is, as options in JSON."""
    if name in PLACES:
        return {"path": str(folder / PLACES[name])}
    if name == "cypher_server":
        bolt = request.getfixturevalue("bolt_server")
        database = bolt.database("forks")
        return {"uri": bolt.uri, "user": bolt.user, "password": bolt.password, "database": database}
    if name == "sparql_server":
        oxigraph = request.getfixturevalue("oxigraph_server")
        return {"query_url": oxigraph.query_url, "update_url": oxigraph.update_url, "namespace": "forks"}
    if name == "postgres":
        return {"url": request.getfixturevalue("postgres_url"), "namespace": "forks"}
    pytest.skip("a server elsewhere")


def run(*arguments: str) -> dict:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(forking_script.__file__), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_forked_child_is_refused_and_the_parent_notices_nothing(kind, tmp_path, request):
    spoken = kind.statements
    where = json.dumps(place(kind.name, tmp_path, request))
    facts = [spoken.add, spoken.know] if isinstance(spoken.add, str) else FACTS
    told = run(kind.name, where, *facts, spoken.where)
    child = told["child"]
    assert child.pop("repr") == child.pop("close") == "done"
    for act, said in child.items():
        assert said.startswith("StoreUnavailable: "), act
        assert "was opened in another process, of which this one is a fork" in said, act
    assert told["ended"] == 0 and told["rows"] == [1, 1]
    assert told["ids"] == ["Ada", "Charles", "London", "of the parent"]


def told_by_a_child(act) -> str:
    """What a forked child says of an act."""
    says, heard = os.pipe()[::-1]
    if (child := os.fork()) == 0:
        try:
            told = str(act())
        except BaseException as error:
            told = f"{type(error).__name__}: {error}"
        os.write(says, told.encode())
        os._exit(0)
    os.close(says)
    os.waitpid(child, 0)
    with os.fdopen(heard) as file:
        return file.read()


@pytest.mark.parametrize("name", ["graph.db", "graph.log"])
def test_a_file_that_was_open_at_the_fork_is_not_opened_in_the_child(name, tmp_path):
    with open_store(tmp_path / name) as store:
        store.apply(Diff(added_nodes=(Node("Ada"),)))
        said = told_by_a_child(lambda: open_store(tmp_path / name))
        assert said.startswith("StoreUnavailable: ") and "spawn" in said
        assert "was open when this process was forked" in said
        assert told_by_a_child(lambda: len(open_store(tmp_path / "another.db").graph())) == "0"
    assert told_by_a_child(lambda: len(open_store(tmp_path / name).graph())) == "1"


def test_a_graph_in_memory_alone_is_a_copy_of_the_childs_own():
    with open_store("in_memory") as store:
        store.write('add("Ada", "born in", "London")')
        written = told_by_a_child(
            lambda: (store.write('add("Ada", "knows", "Charles")'), len(store.graph()))[1]
        )
        assert written == "3"
        assert len(store.graph()) == 2 and store.read("result = names()")


def test_a_child_has_a_sandbox_of_its_own():
    with open_sandbox() as sandbox:
        assert sandbox.compute("1 + 1").strip() == "2"
        worker = sandbox._worker.process.pid
        assert told_by_a_child(lambda: (sandbox.compute("2 + 2").strip(), sandbox.close())[0]) == "4"
        assert sandbox.compute("3 + 3").strip() == "6" and sandbox._worker.process.pid == worker


def test_a_closed_store_says_so_in_a_child_too(tmp_path):
    store = open_store(tmp_path / "graph.db")
    store.close()
    assert "was closed" in told_by_a_child(store.graph)
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.graph()
