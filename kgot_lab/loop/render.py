"""A graph as text for a prompt: its schema first, then its facts, within a token budget and without reading all of a large graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from kgot_lab.loop.cut import fit, joined, shorten, tokens
from kgot_lab.loop.events import Cut
from kgot_lab.stores.protocol import Schema, Store
from kgot_lab.types import Edge, Json, Node

HIDDEN = {"source", "sentence"}  # provenance: for the reader and the evidence, not for the prompt
WHOLE = 400  # nodes and edges up to which all facts are looked at; a larger graph is searched


def rendered(store: Store, question: str, budget: int, *, step: int = 0) -> tuple[str, Cut | None]:
    """The graph as lines of text, the most relevant facts when not all fit, and the Cut event when something was left out."""
    schema = store.schema()
    if not schema.nodes:
        return "", None
    if schema.nodes + schema.edges <= WHOLE:
        graph = store.graph()
        lines, unseen = list(_lines(graph.nodes, graph.edges)), 0
    else:
        lines, unseen = _found(store, question, schema)
    head = _schema_line(schema)
    kept, left_out = fit(question, lines, budget - tokens(head))
    left_out += unseen
    cut = Cut(step=step, what="graph", kept=tokens(joined(lines[number] for number in kept)), left_out=left_out) if left_out else None
    return joined([head, *(lines[number] for number in kept), "(more facts not shown)" if cut else ""]), cut


def _found(store: Store, question: str, schema: Schema) -> tuple[list[str], int]:
    nodes = {node.id: node for node in store.search(question, limit=30)}
    edges = {edge.identity: edge for id in nodes for edge in store.neighbours(id)[:40]}
    lines = list(_lines(nodes.values(), edges.values()))
    unseen = schema.nodes + schema.edges - len(nodes) - len(edges)
    return lines, unseen * 8  # a fact has about eight tokens; nobody counted these


def _lines(nodes: Iterable[Node], edges: Iterable[Edge]) -> Iterable[str]:
    edges = list(edges)
    degree = Counter(id for edge in edges for id in (edge.source, edge.target))
    for node in nodes:
        shown = _shown(node.properties)
        if shown or node.labels or not degree[node.id]:
            yield shorten(f"{node.id}" + (f" ({', '.join(node.labels)})" if node.labels else "") + shown, 100)
    for edge in edges:
        yield shorten(fact(edge) + _shown(edge.properties), 100)


def fact(edge: Edge) -> str:
    """An edge as one line."""
    return f"{edge.source} --[{edge.type}]--> {edge.target}"


def _shown(properties: Mapping[str, Json]) -> str:
    shown = {name: value for name, value in properties.items() if name not in HIDDEN}
    return " {" + ", ".join(f"{name}: {value}" for name, value in shown.items()) + "}" if shown else ""


def _schema_line(schema: Schema) -> str:
    kinds, relations = _counts(schema.labels), _counts(schema.relations)
    nodes = f"{schema.nodes} nodes" + (f" ({kinds})" if kinds else "")
    return shorten(f"{nodes}, {schema.edges} edges" + (f" ({relations})" if relations else ""), 60)


def _counts(counts: Mapping[str, int], most: int = 8) -> str:
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return ", ".join(f"{name} {counts[name]}" for name in order[:most]) + (", …" if len(order) > most else "")
