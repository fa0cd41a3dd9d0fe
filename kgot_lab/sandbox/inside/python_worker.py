"""Runs one statement in Python and says in JSON what came of it; this is the code that shares a process with
the model's.

Nothing here is trusted by the parent: a statement may have changed any of it.
Runs inside the sandbox: imports the standard library, NetworkX and its sisters only.
"""

from __future__ import annotations

import ast
import builtins
import io
import random
import sys
from collections.abc import Iterable, Mapping, Set
from types import SimpleNamespace, TracebackType
from typing import Any

import networkx as nx

from kgot_lab.sandbox.python.helpers import fact_row, helpers
from kgot_lab.sandbox.python.tracking_graph import Journal, TrackedGraph, track
from kgot_lab.sandbox.python.worker import accounts_of, put_account
from kgot_lab.sandbox.worker.fork_server import serve
from kgot_lab.sandbox.worker.values import Account, RefusedValue, json_value, limited

FILE = "<statement>"  # how a traceback names the model's own lines
_MAX_MESSAGE = 600
MAX_PRINTED = 100_000
_MISSING = object()


class NetworkXGraph:
    """The graph as statements in Python meet it; each runs in a fork of the process that holds it."""

    def __init__(self) -> None:
        self.journal = track(TrackedGraph())

    def clear(self) -> None:
        """Start anew; the old graph's cycles are cut, because the collector is off."""
        graph = self.journal.graph
        for part in (graph._succ, graph._pred, graph._node):
            dict.clear(part)
        graph.__dict__.clear()
        self.journal.__dict__.clear()
        self.journal = track(TrackedGraph())

    def put(self, nodes: Iterable[Account], edges: Iterable[Account]) -> None:
        """Make the graph agree with some claims."""
        put_account(self.journal, nodes, edges)

    def answer(self, do: str, text: str) -> dict[str, Any]:
        """Run a write, a read or a computation."""
        return answer_request(do, text, self.journal)


def main() -> None:
    """Serve statements in Python."""
    serve(NetworkXGraph())


class Printed(io.StringIO):
    """What was printed, as far as anyone will read it."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > MAX_PRINTED:
            raise RefusedValue(f"printed more than {MAX_PRINTED:,} characters")
        return super().write(text)


def answer_request(do: str, text: str, journal: Journal) -> dict[str, Any]:
    """Run a write, a read or a computation; returns nodes and edges, rows or text, or else an error."""
    random.seed(0)  # a replay meets the same chance
    sys.stdin, sys.stdout = io.StringIO(), Printed()
    sys.stderr = sys.stdout
    try:
        return {"write": _write, "read": _read, "compute": _compute}[do](text, journal)
    except RefusedValue as refusal:
        return {"error": str(refusal)[:_MAX_MESSAGE]}
    except MemoryError:
        return {"error": "MemoryError: the statement needs more memory than it may have"}
    except BaseException as error:
        return {"error": _explain(error, text)}


def _write(text: str, journal: Journal) -> dict[str, Any]:
    _run(text, journal, writing=True)
    return accounts_of(journal)


def _read(text: str, journal: Journal) -> dict[str, Any]:
    result = _run(text, journal, writing=False).get("result", _MISSING)
    if result is _MISSING:
        raise RefusedValue("the statement must put what it found into a variable called result")
    rows = _rows(result)
    changed = accounts_of(journal)
    if changed["nodes"] or changed["edges"]:
        raise RefusedValue("a read may not change the graph")
    return {"rows": rows}


def _compute(text: str, journal: Journal) -> dict[str, Any]:
    *body, last = ast.parse(text, FILE).body or [ast.Pass()]
    scope: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    value = None
    printed = sys.stdout
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(list(body), []), FILE, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), FILE, "eval"), scope)
    else:
        exec(compile(text, FILE, "exec"), scope)
    shown = printed.getvalue() if isinstance(printed, Printed) else ""
    return {"text": shown if value is None else f"{shown}{value}"[: 2 * MAX_PRINTED]}


def _run(text: str, journal: Journal, *, writing: bool) -> dict[str, Any]:
    graph = journal.graph
    myself = SimpleNamespace(G=graph)
    scope: dict[str, Any] = {
        "__name__": "__main__", "__builtins__": builtins, "G": graph, "nx": nx, "self": myself, **helpers(graph),
    }  # fmt: skip
    code = compile(text, FILE, "exec")
    journal.on = True
    exec(code, scope)
    if writing and (scope.get("G") is not graph or getattr(scope.get("self"), "G", graph) is not graph):
        raise RefusedValue(
            "G was bound to another graph, which is not kept; change G in place, for example with G.add_edge or copy=False"
        )
    return scope


def _rows(result: Any) -> list[Any]:
    """One row per item of a collection; a dictionary is one row, or pairs if its keys are not text; a single
    value is one row.
    """
    if result is None:
        raise RefusedValue("result is None; the statement must put what it found into result")
    if isinstance(result, nx.Graph):
        result = [fact_row(*edge) for edge in result.edges(data=True)]
    if isinstance(result, Mapping) and not isinstance(result, Set):  # the views of nodes and edges are both
        simple = all(key is None or isinstance(key, str | int | float) for key in result)
        result = [dict(result)] if simple else [[key, value] for key, value in result.items()]
    elif (
        isinstance(result, str | bytes)
        or not isinstance(result, Iterable)
        or getattr(result, "shape", None) == ()
    ):
        result = [result.item() if getattr(result, "shape", None) == () else result]
    elif isinstance(result, set | frozenset):
        return list(json_value(result, "result", reading=True))
    return [json_value(item, "a row of result", reading=True) for item in limited(result)]


def _explain(error: BaseException, text: str) -> str:
    """An error as its type, its message and the statement's line, and nothing of our own frames."""
    try:
        message = str(error.msg if isinstance(error, SyntaxError) else error)
        line = error.lineno if isinstance(error, SyntaxError) else _line(error.__traceback__)
        said = f"{type(error).__name__}: {message[:_MAX_MESSAGE]}" if message else type(error).__name__
        lines = text.splitlines()
        return (
            f"{said} (line {line}: {lines[line - 1].strip()[:200]})"
            if line and 0 < line <= len(lines)
            else said
        )
    except BaseException:
        return "the statement failed with an error that cannot be shown"


def _line(traceback: TracebackType | None) -> int | None:
    line = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line
