"""A program that opens a store, forks, tries all of it in the child, and goes on in the parent; it says what
came of it in JSON.

Run as: python forking_script.py KIND OPTIONS FACT ANOTHER QUESTION, options in JSON, the others in the
store's language.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from kgot_lab.errors import LabError
from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import PythonRunner, Store
from kgot_lab.types import Diff, Edge, Node


def said(act: Callable[[], Any]) -> str:
    """What an act raised of ours, or that it was done."""
    try:
        act()
    except LabError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def write(store: Store, fact: str) -> Diff:
    """Run a statement, or add the edge SUBJECT | RELATION | OBJECT to a store that takes no statement."""
    if fact.count(" | ") != 2:
        return store.write(fact)
    source, type, target = fact.split(" | ")
    ends = tuple(Node(end) for end in (source, target) if end not in store.graph().ids)
    diff = Diff(added_nodes=ends, added_edges=(Edge(source, type, target),))
    store.apply(diff)
    return diff


def main() -> None:
    kind, options, fact, another, question = sys.argv[1:]
    where = json.loads(options)
    store = open_store(kind, **where)
    write(store, fact)
    child_says, parent_reads = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        acts: dict[str, Callable[[], Any]] = {
            "apply": lambda: store.apply(Diff(added_nodes=(Node("of the child"),))),
            "write": lambda: write(store, another),
            "read": lambda: store.read(question),
            "graph": store.graph,
            "schema": store.schema,
            "search": lambda: store.search("Ada"),
            "repr": lambda: repr(store),
            "close": store.close,
        }
        if isinstance(store, PythonRunner):
            acts["compute"] = lambda: store.compute("1 + 1")
        told = {name: said(act) for name, act in acts.items()}
        os.write(child_says[1], json.dumps(told).encode() + b"\n")
        # the child is there until the parent has closed and opened the store again
        os.read(parent_reads[0], 1)
        sys.exit()  # in order, with all that happens at the end of a program
    told = json.loads(os.fdopen(child_says[0]).readline())
    written = str(write(store, another))
    rows = len(store.read(question))
    store.close()
    store = open_store(kind, **where)
    os.write(parent_reads[1], b"x")
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    store.apply(Diff(added_nodes=(Node("of the parent"),)))
    rows_after = len(store.read(question))
    ids = sorted(node.id for node in store.graph().nodes)
    store.close()
    parent = {"written": written, "rows": [rows, rows_after], "ids": ids}
    print(json.dumps({"child": told, "ended": ended} | parent))


if __name__ == "__main__":
    main()
