"""Run one statement in Python and report the outcome in JSON.

This code shares a process with the model's, so the parent trusts none of it: a statement may have changed
anything.
"""

from __future__ import annotations

import ast
import builtins
import io
import random
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Set
from types import SimpleNamespace, TracebackType
from typing import Any

import networkx as nx

from kgot_lab.sandbox.python.helpers import fact_row, helpers
from kgot_lab.sandbox.python.tracking_graph import (
    Before,
    Journal,
    TrackedGraph,
    plant_edge,
    plant_node,
    track,
    untracked,
)
from kgot_lab.sandbox.worker.fork_server import serve
from kgot_lab.sandbox.worker.values import Account, RefusedValue, canonical, json_value, limited, node_id

# From a journal to the claims of a statement, in the one form that the store keeps.
#
# A node is [id, labels, properties], an edge [source, type, target, key, properties]. Without the last parts
# it means that the element was removed. In the graph, a label is the attribute `label` (several: also
# `labels`), and an edge's key is its type, which is repeated as `relation`. A property with one of these
# names gets an underscore at its end.

# where models put an edge's type, in order of trust
TYPE_NAMES = ("relation", "relationship", "label", "type")
DEFAULT_TYPE = "related_to"
_NODE_NAMES, _EDGE_NAMES = ("label", "labels"), ("relation",)
_LIKE_A_KEYED_ONE = re.compile("#.|%2[35]", re.DOTALL)


def edge_key(type: str, key: str) -> str:
    """Return the NetworkX key of an edge: its type, then # and its own key if parallel edges need one.

    A type that contains a # and could be mistaken for one with a key is percent-encoded.
    """
    if key:
        return f"{_encoded(type) if '#' in type or _LIKE_A_KEYED_ONE.search(type) else type}#{key}"
    return _encoded(type) if _LIKE_A_KEYED_ONE.search(type) else type


def _encoded(type: str) -> str:
    return type.replace("%", "%25").replace("#", "%23")


def put_account(journal: Journal, nodes: Iterable[Account], edges: Iterable[Account]) -> None:
    """Apply claims to the graph: removals first, edges before their nodes, then nodes before their edges."""
    graph, nodes, edges = journal.graph, list(nodes), list(edges)
    for claim in edges:
        if len(claim) == 4:
            source, type, target, key = claim
            # otherwise it was created and deleted since the last statement
            if graph.has_edge(source, target, edge_key(type, key)):
                graph.remove_edge(source, target, edge_key(type, key))
    graph.remove_nodes_from([claim[0] for claim in nodes if len(claim) == 1])
    for claim in nodes:
        if len(claim) == 3:
            id, labels, properties = claim
            plant_node(journal, id, {**_escaped(properties, _NODE_NAMES), **_label_attributes(labels)})
    for claim in edges:
        if len(claim) == 5:
            source, type, target, key, properties = claim
            plant_edge(
                journal,
                (source, target, edge_key(type, key)),
                {**_escaped(properties, _EDGE_NAMES), "relation": type},
            )


def _escaped(properties: Mapping[str, Any], taken: tuple[str, ...]) -> dict[str, Any]:
    return {f"{name}_" if name.rstrip("_") in taken else name: value for name, value in properties.items()}


def _label_attributes(labels: list[str]) -> dict[str, Any]:
    several = {"labels": list(labels)} if len(labels) > 1 else {}
    return {"label": labels[0], **several} if labels else {}


def accounts_of(journal: Journal) -> dict[str, list[Account]]:
    """Return what the statement changed, in journal order, after normalizing ids and types.

    Raises RefusedValue if a change is not valid.
    """
    _name_nodes(journal)
    _type_edges(journal)
    graph = journal.graph
    nodes = [
        claim
        for id, before in journal.nodes.items()
        if (claim := _node_claim(id, before, graph._node.get(id)))
    ]
    edges = [
        claim
        for ends, before in journal.edges.items()
        if (claim := _edge_claim(*ends, before, _edge(graph, *ends)))
    ]
    return {"nodes": nodes, "edges": edges}


def _edge(graph: TrackedGraph, source: Hashable, target: Hashable, key: Hashable) -> dict[str, Any] | None:
    found = graph._succ.get(source, {}).get(target, {}).get(key)
    return found if isinstance(found, dict) else None


def _name_nodes(journal: Journal) -> None:
    """Replace every touched node whose id is not text by one whose id is, edges included."""
    graph = journal.graph
    for raw in [raw for raw in journal.nodes if raw in graph._node and not isinstance(raw, str)]:
        name = node_id(raw)
        graph.add_node(name)
        graph._node[name].update(graph._node[raw])
        for source, target, key, attributes in [
            *graph.out_edges(raw, keys=True, data=True),
            *graph.in_edges(raw, keys=True, data=True),
        ]:
            ends = (name if source == raw else source, name if target == raw else target)
            new_key = graph.add_edge(*ends, key if isinstance(key, str) else None)
            graph._succ[ends[0]][ends[1]][new_key].update(attributes)
        graph.remove_node(raw)


def _type_edges(journal: Journal) -> None:
    """Set the type of every touched edge as its key and as `relation`.

    An edge that then equals an existing one is merged into it.
    """
    graph = journal.graph
    for source, target, key in list(journal.edges):
        attributes = _edge(graph, source, target, key)
        if attributes is None:
            continue
        type, own_key = _edge_type(
            key, attributes, journal.edges[source, target, key], f"{source} -> {target}"
        )
        wanted = edge_key(type, own_key)
        if wanted == key:
            if attributes.get("relation") != type:
                attributes["relation"] = type
            continue
        moved = untracked(attributes)
        graph.remove_edge(source, target, key)
        graph.add_edge(source, target, wanted)
        graph._succ[source][target][wanted].update({**moved, "relation": type})


def _edge_type(key: Hashable, attributes: dict[str, Any], before: Before, edge: str) -> tuple[str, str]:
    """Return an edge's type and own key.

    The attribute that named the type of a keyless edge is removed from its properties. Raises RefusedValue if
    the relation is no text.
    """
    relation = _relation(attributes.get("relation"), edge)
    if before is not None:
        type, own_key = _split(str(key), before)
        return relation or type, own_key
    if isinstance(key, str) and key.strip():
        if not relation or relation == key:
            return key, ""
        return relation, key.removeprefix(f"{relation}#")
    if relation:
        return relation, ""
    for name in TYPE_NAMES:
        if isinstance(attributes.get(name), str) and attributes[name].strip():
            return str(attributes.pop(name)), ""
    return DEFAULT_TYPE, ""


def _relation(value: Any, edge: str) -> str:
    """Return the attribute `relation` as text, or "" if it is not set.

    It is reserved for the type and would be lost as a property. Raises RefusedValue if it is neither text nor
    a number.
    """
    if getattr(value, "ndim", None) == 0:
        value = value.item()  # a NumPy scalar
    if value is None or isinstance(value, str):
        return value if value and value.strip() else ""
    if not isinstance(value, int | float):
        raise RefusedValue(
            f"the relation of {edge} must be text, not {type(value).__name__} (a property needs another name)"
        )
    return str(value)


def _split(key: str, attributes: Mapping[str, Any]) -> tuple[str, str]:
    relation = str(attributes.get("relation", key))
    before_key = edge_key(relation, "1")[:-1]
    if key == edge_key(relation, ""):
        return relation, ""
    return (
        (relation, key[len(before_key) :]) if key.startswith(before_key) and key != before_key else (key, "")
    )


def _node_claim(id: Hashable, before: Before, after: Any) -> Account | None:
    if after is None:
        return [id] if before is not None else None
    name, old = node_id(id), before or {}
    claim = [name, _labels(name, old, after), _properties(after, f"of {name!r}", _NODE_NAMES)]
    was = [name, _labels(name, {}, old), _properties(old, "before", _NODE_NAMES)]
    return None if before is not None and canonical(claim) == canonical(was) else claim


def _labels(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a node's labels: `label` first, then `labels`.

    If only one of the two was changed, it takes precedence over the other, which is stale.
    """
    first, several = _texts(after.get("label"), name), _texts(after.get("labels"), name)
    old_first, old_several = _texts(before.get("label"), name), _texts(before.get("labels"), name)
    if several and first == old_first and several != old_several:
        first = []
    elif first != old_first and several == old_several:
        several = [label for label in several if label not in old_first]
    return list(dict.fromkeys([*first, *several]))


def _texts(value: Any, name: str) -> list[str]:
    if value is None or value == "":
        return []
    items = value if isinstance(value, list | tuple | set | frozenset) else [value]
    texts = [str(item) for item in items if isinstance(item, str | int | float)]
    if len(texts) != len(items):
        raise RefusedValue(f"the label of {name!r} must be text")
    return sorted(texts) if isinstance(value, set | frozenset) else texts


def _edge_claim(
    source: Hashable, target: Hashable, key: Hashable, before: Before, after: Before
) -> Account | None:
    if after is None:
        return [source, *_between(str(key), before, target)] if before is not None else None
    ends, what = [node_id(source), *_between(str(key), after, node_id(target))], f"of {source} -> {target}"
    properties = _properties(after, what, _EDGE_NAMES)
    if before is not None and canonical(properties) == canonical(_properties(before, what, _EDGE_NAMES)):
        return None
    return [*ends, properties]


def _between(key: str, attributes: Mapping[str, Any], target: Any) -> list[Any]:
    type, own_key = _split(key, attributes)
    return [type, target, own_key]


def _properties(attributes: Mapping[Any, Any], of: str, reserved: tuple[str, ...]) -> dict[str, Any]:
    kept = {name: value for name, value in attributes.items() if name not in reserved}
    for name in kept:
        if not isinstance(name, str | int | float):
            raise RefusedValue(f"a property's name must be text, not {type(name).__name__} ({of})")
    named = {str(name): json_value(value, f"property {str(name)!r} {of}") for name, value in kept.items()}
    return {name[:-1] if name.rstrip("_") in reserved else name: value for name, value in named.items()}


FILE = "<statement>"  # the name of the model's code in a traceback
_MAX_MESSAGE = 600
MAX_PRINTED = 100_000
_MISSING = object()


class NetworkXGraph:
    """The graph for statements in Python, each of which runs in a fork of the process that holds it."""

    def __init__(self) -> None:
        self.journal = track(TrackedGraph())

    def clear(self) -> None:
        """Remove everything.

        The cycles of the old graph are cut, because the garbage collector is off.
        """
        graph = self.journal.graph
        for part in (graph._succ, graph._pred, graph._node):
            dict.clear(part)
        graph.__dict__.clear()
        self.journal.__dict__.clear()
        self.journal = track(TrackedGraph())

    def put(self, nodes: Iterable[Account], edges: Iterable[Account]) -> None:
        """Apply claims to the graph."""
        put_account(self.journal, nodes, edges)

    def answer(self, do: str, text: str) -> dict[str, Any]:
        """Run a write, a read or a computation."""
        return answer_request(do, text, self.journal)


def main() -> None:
    """Serve statements in Python."""
    serve(NetworkXGraph())


class Printed(io.StringIO):
    """The printed text, up to the limit that is returned."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > MAX_PRINTED:
            raise RefusedValue(f"printed more than {MAX_PRINTED:,} characters")
        return super().write(text)


def answer_request(do: str, text: str, journal: Journal) -> dict[str, Any]:
    """Run a write, a read or a computation and return nodes and edges, rows or text, or an error."""
    random.seed(0)  # a replay gets the same random numbers
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
    """Convert a result to rows: one per item of a collection.

    A dictionary is one row, or pairs if its keys are not text. A single value is one row. Raises RefusedValue
    if the result is None.
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
    """Format an error as its type, its message and the statement's line, without internal frames."""
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
