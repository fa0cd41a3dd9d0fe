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
from traceback import walk_tb
from types import SimpleNamespace, TracebackType
from typing import Any

import networkx as nx

from kgot_lab.sandbox.python.helpers import fact_row, helpers
from kgot_lab.sandbox.python.tracking_graph import (
    Before,
    Journal,
    TrackedGraph,
    insert_edge,
    insert_node,
    track,
    untracked,
)
from kgot_lab.sandbox.worker.fork_server import serve
from kgot_lab.sandbox.worker.values import (
    ElementChange,
    RefusedValue,
    canonical_json,
    is_storable_number,
    json_value,
    limit_items,
    node_id,
    python_number,
    text_keys,
)

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
_AMBIGUOUS_TYPE = re.compile("#.|%2[35]", re.DOTALL)


def edge_key(type: str, key: str) -> str:
    """Return the NetworkX key of an edge: its type, then # and its own key if parallel edges need one.

    A type that contains a # and could be mistaken for one with a key is percent-encoded.
    """
    if key:
        return f"{_encode_type(type) if '#' in type or _AMBIGUOUS_TYPE.search(type) else type}#{key}"
    return _encode_type(type) if _AMBIGUOUS_TYPE.search(type) else type


def _encode_type(type: str) -> str:
    return type.replace("%", "%25").replace("#", "%23")


def apply_changes(journal: Journal, nodes: Iterable[ElementChange], edges: Iterable[ElementChange]) -> None:
    """Apply claims to the graph: removals first, edges before their nodes, then nodes before their edges."""
    graph, nodes, edges = journal.graph, list(nodes), list(edges)
    for change in edges:
        if len(change) == 4:
            source, type, target, key = change
            # otherwise it was created and deleted since the last statement
            if graph.has_edge(source, target, edge_key(type, key)):
                graph.remove_edge(source, target, edge_key(type, key))
    graph.remove_nodes_from([change[0] for change in nodes if len(change) == 1])
    for change in nodes:
        if len(change) == 3:
            id, labels, properties = change
            attributes = {**_escape_reserved(properties, _NODE_NAMES), **_label_attributes(labels)}
            insert_node(journal, id, attributes)
    for change in edges:
        if len(change) == 5:
            source, type, target, key, properties = change
            attributes = {**_escape_reserved(properties, _EDGE_NAMES), "relation": type}
            insert_edge(journal, (source, target, edge_key(type, key)), attributes)


def _escape_reserved(properties: Mapping[str, Any], reserved: tuple[str, ...]) -> dict[str, Any]:
    return {f"{name}_" if name.rstrip("_") in reserved else name: value for name, value in properties.items()}


def _label_attributes(labels: list[str]) -> dict[str, Any]:
    several = {"labels": list(labels)} if len(labels) > 1 else {}
    return {"label": labels[0], **several} if labels else {}


def collect_changes(journal: Journal) -> dict[str, list[ElementChange]]:
    """Return what the statement changed, in journal order, after normalizing ids and types.

    Raises RefusedValue if a change is not valid.
    """
    _normalize_node_ids(journal)
    _normalize_edge_types(journal)
    graph = journal.graph
    changes = (_node_change(id, before, graph._node.get(id)) for id, before in journal.nodes.items())
    nodes = [change for change in changes if change]
    edge_changes = (
        _edge_change(*ends, b, _edge_attributes(graph, *ends)) for ends, b in journal.edges.items()
    )
    return {"nodes": nodes, "edges": [change for change in edge_changes if change]}


def _edge_attributes(
    graph: TrackedGraph, source: Hashable, target: Hashable, key: Hashable
) -> dict[str, Any] | None:
    attributes = graph._succ.get(source, {}).get(target, {}).get(key)
    return attributes if isinstance(attributes, dict) else None


def _normalize_node_ids(journal: Journal) -> None:
    """Replace every touched node whose id is not text by one whose id is, edges included."""
    graph = journal.graph
    for raw_id in [i for i in journal.nodes if i in graph._node and not isinstance(i, str)]:
        name = node_id(raw_id)
        if name in graph._node and journal.nodes.get(name, {}) is None:  # both are new
            raise RefusedValue(f"the ids {raw_id!r} and {name!r} have the same text; rename one")
        graph.add_node(name)
        graph._node[name].update(graph._node[raw_id])
        views = (graph.out_edges, graph.in_edges)
        both_ways = [edge for edges in views for edge in edges(raw_id, keys=True, data=True)]
        for source, target, key, attributes in both_ways:
            ends = (name if source == raw_id else source, name if target == raw_id else target)
            new_key = graph.add_edge(*ends, key if isinstance(key, str) else None)
            graph._succ[ends[0]][ends[1]][new_key].update(attributes)
        graph.remove_node(raw_id)


def _normalize_edge_types(journal: Journal) -> None:
    """Set the type of every touched edge as its key and as `relation`.

    An edge that then equals an existing one is merged into it.
    """
    graph = journal.graph
    for source, target, key in list(journal.edges):
        attributes = _edge_attributes(graph, source, target, key)
        if attributes is None:
            continue
        before = journal.edges[source, target, key]
        type, own_key = _edge_type(key, attributes, before, f"{source} -> {target}")
        normalized_key = edge_key(type, own_key)
        if normalized_key == key:
            if attributes.get("relation") != type:
                attributes["relation"] = type
            continue
        attributes_copied = untracked(attributes)
        graph.remove_edge(source, target, key)
        graph.add_edge(source, target, normalized_key)
        graph._succ[source][target][normalized_key].update({**attributes_copied, "relation": type})


def _edge_type(key: Hashable, attributes: dict[str, Any], before: Before, edge: str) -> tuple[str, str]:
    """Return an edge's type and own key.

    The attribute that named the type of a keyless edge is removed from its properties. Raises RefusedValue if
    the relation is no text.
    """
    relation = _relation_text(attributes.get("relation"), edge)
    if before is not None:
        type, own_key = _split_edge_key(str(key), before)
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


def _relation_text(value: Any, edge: str) -> str:
    """Return the attribute `relation` as text, or "" if it is not set.

    It is reserved for the type and would be lost as a property. Raises RefusedValue if it is neither text nor
    a number.
    """
    value = python_number(value)
    if value is None or isinstance(value, str):
        return value if value and value.strip() else ""
    if not isinstance(value, int | float) or not is_storable_number(value):
        given = f"{type(value).__name__} (a property needs another name)"
        raise RefusedValue(f"the relation of {edge} must be text, not {given}")
    return str(value)


def _split_edge_key(key: str, attributes: Mapping[str, Any]) -> tuple[str, str]:
    relation = str(attributes.get("relation", key))
    prefix = edge_key(relation, "1")[:-1]
    if key == edge_key(relation, ""):
        return relation, ""
    return (relation, key[len(prefix) :]) if key.startswith(prefix) and key != prefix else (key, "")


def _node_change(id: Hashable, before: Before, after: Any) -> ElementChange | None:
    if after is None:
        return [id] if before is not None else None
    name, old = node_id(id), before or {}
    change = [name, _merged_labels(name, old, after), _own_properties(after, f"of {name!r}", _NODE_NAMES)]
    unchanged = [name, _merged_labels(name, {}, old), _own_properties(old, "before", _NODE_NAMES)]
    return None if before is not None and canonical_json(change) == canonical_json(unchanged) else change


def _merged_labels(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a node's labels: `label` first, then `labels`.

    If only one of the two was changed, it takes precedence over the other, which is stale.
    """
    first, labels = _label_texts(after.get("label"), name), _label_texts(after.get("labels"), name)
    old_first, old_labels = _label_texts(before.get("label"), name), _label_texts(before.get("labels"), name)
    if labels and first == old_first and labels != old_labels:
        first = []
    elif first != old_first and labels == old_labels:
        labels = [label for label in labels if label not in old_first]
    return list(dict.fromkeys([*first, *labels]))


def _label_texts(value: Any, name: str) -> list[str]:
    if value is None or value == "":
        return []
    items = value if isinstance(value, list | tuple | set | frozenset) else [value]
    texts = [
        str(i) for i in items if isinstance(i, str) or (isinstance(i, int | float) and is_storable_number(i))
    ]
    if len(texts) != len(items):
        raise RefusedValue(f"the label of {name!r} must be text")
    return sorted(texts) if isinstance(value, set | frozenset) else texts


def _edge_change(
    source: Hashable, target: Hashable, key: Hashable, before: Before, after: Before
) -> ElementChange | None:
    if after is None:
        return [source, *_edge_identity(str(key), before, target)] if before is not None else None
    ends = [node_id(source), *_edge_identity(str(key), after, node_id(target))]
    description = f"of {source} -> {target}"
    properties = _own_properties(after, description, _EDGE_NAMES)
    if before is not None and canonical_json(properties) == canonical_json(
        _own_properties(before, description, _EDGE_NAMES)
    ):
        return None
    return [*ends, properties]


def _edge_identity(key: str, attributes: Mapping[str, Any], target: Any) -> list[Any]:
    type, own_key = _split_edge_key(key, attributes)
    return [type, target, own_key]


def _own_properties(attributes: Mapping[Any, Any], of: str, reserved: tuple[str, ...]) -> dict[str, Any]:
    own = {name: value for name, value in attributes.items() if name not in reserved}
    for name in own:
        if not isinstance(name, str | int | float):
            raise RefusedValue(f"a property's name must be text, not {type(name).__name__} ({of})")
    items = text_keys(own, f"the properties {of}").items()
    converted = {name: json_value(value, f"property {name!r} {of}") for name, value in items}
    return {name[:-1] if name.rstrip("_") in reserved else name: value for name, value in converted.items()}


STATEMENT_FILE = "<statement>"  # the name of the model's code in a traceback
_MAX_MESSAGE = 600
MAX_PRINTED = 100_000
# what a statement that changes the graph without its methods has in it: the whole graph is then compared
_DIRECT = re.compile(
    r"\b_(?!_name__\b)\w|\bjournal\b|\b(dict|list)\b(?!\s*[(\[])"
    r"|\b(heapq|ctypes|gc|sys|inspect|builtins|importlib|operator|pickle|eval|exec|compile|setattr|delattr|getattr|vars|globals|locals|super|object|type)\b"
)
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

    def put(self, nodes: Iterable[ElementChange], edges: Iterable[ElementChange]) -> None:
        """Apply claims to the graph."""
        apply_changes(self.journal, nodes, edges)

    def answer(self, do: str, text: str) -> dict[str, Any]:
        """Run a write, a read or a computation."""
        return run_request(do, text, self.journal)


def main() -> None:
    """Serve statements in Python."""
    serve(NetworkXGraph())


class LimitedOutput(io.StringIO):
    """The printed text, up to the limit that is returned."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > MAX_PRINTED:
            raise RefusedValue(f"printed more than {MAX_PRINTED:,} characters")
        return super().write(text)


def run_request(do: str, text: str, journal: Journal) -> dict[str, Any]:
    """Run a write, a read or a computation and return nodes and edges, rows or text, or an error."""
    random.seed(0)  # a replay gets the same random numbers
    sys.stdin, sys.stdout = io.StringIO(), LimitedOutput()
    sys.stderr = sys.stdout
    try:
        return {"write": _write, "read": _read, "compute": _compute}[do](text, journal)
    except RefusedValue as refusal:
        return {"error": str(refusal)[:_MAX_MESSAGE]}
    except MemoryError:
        return {"error": "MemoryError: the statement needs more memory than it may have"}
    except BaseException as error:
        return {"error": _explain_error(error, text)}


def _write(text: str, journal: Journal) -> dict[str, Any]:
    _run(text, journal, writing=True)
    return collect_changes(journal)


def _read(text: str, journal: Journal) -> dict[str, Any]:
    result = _run(text, journal, writing=False).get("result", _MISSING)
    if result is _MISSING:
        raise RefusedValue("the statement must put what it found into a variable called result")
    rows = _result_rows(result)
    changed = collect_changes(journal)
    if changed["nodes"] or changed["edges"]:
        raise RefusedValue("a read may not change the graph")
    return {"rows": rows}


def _compute(text: str, journal: Journal) -> dict[str, Any]:
    *body, last = ast.parse(text, STATEMENT_FILE).body or [ast.Pass()]
    scope: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
    value = None
    printed = sys.stdout
    if isinstance(last, ast.Expr):
        exec(compile(ast.Module(list(body), []), STATEMENT_FILE, "exec"), scope)
        value = eval(compile(ast.Expression(last.value), STATEMENT_FILE, "eval"), scope)
    else:
        exec(compile(text, STATEMENT_FILE, "exec"), scope)
    output = printed.getvalue() if isinstance(printed, LimitedOutput) else ""
    text = output if value is None else f"{output}{value}"
    if len(text) > 2 * MAX_PRINTED:
        raise RefusedValue(f"the result has {len(text):,} characters; {2 * MAX_PRINTED:,} can be returned")
    return {"text": text}


def _run(text: str, journal: Journal, *, writing: bool) -> dict[str, Any]:
    graph = journal.graph
    namespace = SimpleNamespace(G=graph)
    scope: dict[str, Any] = {
        "__name__": "__main__", "__builtins__": builtins, "G": graph, "nx": nx, "self": namespace, **helpers(graph),
    }  # fmt: skip
    code = compile(text, STATEMENT_FILE, "exec")
    journal.on = True
    is_direct = writing and _DIRECT.search(text) is not None
    if is_direct:
        journal.save_all()
    exec(code, scope)
    if is_direct and not journal.find_all():
        problem = "the statement wrote to parts inside G, which no longer fit together"
        raise RefusedValue(f"{problem}: use add, node and the methods of G")
    if writing and graph.graph:
        raise RefusedValue("G.graph is not kept: put what it says into a node")
    if writing and (scope.get("G") is not graph or getattr(scope.get("self"), "G", graph) is not graph):
        problem = "G was bound to another graph, which is not kept"
        raise RefusedValue(f"{problem}; change G in place, as with copy=False")
    return scope


def _result_rows(result: Any) -> list[Any]:
    """Convert a result to rows: one per item of a collection.

    A dictionary is one row, or pairs if its keys are not text. A single value is one row. Raises RefusedValue
    if the result is None.
    """
    if result is None:
        raise RefusedValue("result is None; the statement must put what it found into result")
    if isinstance(result, nx.Graph):
        result = [fact_row(*edge) for edge in result.edges(data=True)]
    if isinstance(result, Mapping) and not isinstance(result, Set):  # the views of nodes and edges are both
        has_plain_keys = all(key is None or isinstance(key, str | int | float) for key in result)
        result = [dict(result)] if has_plain_keys else [[key, value] for key, value in result.items()]
    elif (
        isinstance(result, str | bytes)
        or not isinstance(result, Iterable)
        or getattr(result, "shape", None) == ()
        or hasattr(result, "iterrows")
    ):
        result = [result.item() if getattr(result, "shape", None) == () else result]
    elif isinstance(result, set | frozenset):
        return list(json_value(result, "result", reading=True))
    return [json_value(item, "a row of result", reading=True) for item in limit_items(result)]


def _explain_error(error: BaseException, text: str) -> str:
    """Format an error as its type, its message and the statement's line, without internal frames."""
    try:
        message = str(error.msg if isinstance(error, SyntaxError) else error)
        line = error.lineno if isinstance(error, SyntaxError) else _statement_line(error.__traceback__)
        name = type(error).__name__
        message_line = f"{name}: {message[:_MAX_MESSAGE]}" if message else name
        lines = text.splitlines()
        return (
            f"{message_line} (line {line}: {lines[line - 1].strip()[:200]})"
            if line and 0 < line <= len(lines)
            else message_line
        )
    except BaseException:
        return "the statement failed with an error that cannot be shown"


def _statement_line(traceback: TracebackType | None) -> int | None:
    lines = [line for frame, line in walk_tb(traceback) if frame.f_code.co_filename == STATEMENT_FILE]
    return lines[-1] if lines else None
