"""What of a graph holds a text, for the search of a graph view: names first, then relations, then what is
known of nodes and of edges.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.text.cleaning import counted
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import cell

NAME_IN_SENTENCE = 60  # characters of a name in a sentence
_QUOTED = 60  # characters of a property around what was searched


@dataclass(frozen=True, eq=False)
class TextHolding:
    """The rows of nodes and edges that hold a text: nodes by name, edges by type, and then both by what else
    is known of them.
    """

    graph: PropertyGraph = field(repr=False)
    wanted: str
    named: Sequence[int]
    typed: Sequence[int]
    nodes: Sequence[int]
    edges: Sequence[int]

    def __len__(self) -> int:
        return len(self.named) + len(self.typed) + len(self.nodes) + len(self.edges)

    def __getitem__(self, number: int) -> Node | Edge:
        """One of them, in this order; raises IndexError."""
        for rows, things in (
            (self.named, True),
            (self.typed, False),
            (self.nodes, True),
            (self.edges, False),
        ):
            if number < len(rows):
                return self.graph.nodes[rows[number]] if things else self.graph.edges[rows[number]]
            number -= len(rows)
        raise IndexError(number)

    def describe(self, number: int) -> str:
        """Which of how many this one is, what it is called, and the place where a property holds the text."""
        one = self[number]
        nodes, edges = len(self.named) + len(self.nodes), len(self.typed) + len(self.edges)
        kinds = f" ({counted(nodes, 'node')}, {counted(edges, 'relation')})" * bool(nodes and edges)
        name = (
            name_of_node(one)
            if isinstance(one, Node)
            else walked_names(self.graph, (one.source, one.target), [one])
        )
        quotation = f" ({self._quotation(one)})" if number >= len(self.named) + len(self.typed) else ""
        return f"{number + 1:,} of {len(self):,} that hold “{self.wanted}”{kinds}: {name}{quotation}"

    def _quotation(self, one: Node | Edge) -> str:
        lines = _known(one.labels, one.properties) if isinstance(one, Node) else _known((), one.properties)
        return next(
            quoted_property(name, text, self.wanted)
            for name, text in lines
            if self.wanted.casefold() in text.casefold()
        )


def holding_text(graph: PropertyGraph, text: str) -> TextHolding:
    """The nodes and edges of a graph that hold a text, in capitals or small letters."""
    wanted = text.casefold()
    names = [(node.text.casefold(), node.id.casefold()) for node in graph.nodes]
    holding = (row for row, each in enumerate(names) if any(wanted in name for name in each))
    named = sorted(holding, key=lambda row: _nearness(wanted, names[row]))
    codes = [code for code, name in enumerate(graph.type_names) if wanted in name.casefold()]
    typed = np.flatnonzero(np.isin(graph.type_codes, codes)).tolist()
    nodes = _known_to_hold(wanted, zip(graph.node_labels, graph.node_properties, strict=True), set(named))
    edges = _known_to_hold(wanted, (((), properties) for properties in graph.edge_properties), set(typed))
    return TextHolding(graph, text, named, typed, nodes, edges)


def _nearness(wanted: str, names: Sequence[str]) -> int:
    """How near a name is to what is searched: 0 where it is it, 1 where it begins with it, 2 where it holds
    it.
    """
    return 0 if wanted in names else 1 if any(name.startswith(wanted) for name in names) else 2


def name_of_node(node: Node) -> str:
    """A node in a sentence."""
    return shortened(node.text, NAME_IN_SENTENCE)


def walked_names(graph: PropertyGraph, way: Sequence[str], edges: Iterable[Edge]) -> str:
    """Nodes by their names, and between each two an edge with its arrow as it is: A — knows → B ← knows — C."""
    steps = (
        f"{_step(edge, start)}{name_of_node(graph.node(end))}"
        for edge, start, end in zip(edges, way, way[1:], strict=False)
    )
    return "".join([name_of_node(graph.node(way[0])), *steps])


def _step(edge: Edge, start: str) -> str:
    """What stands between two names, of which `start` is the first."""
    type = shortened(edge.type, NAME_IN_SENTENCE)
    return f" — {type} → " if edge.source == start else f" ← {type} — "


def quoted_property(name: str, text: str, wanted: str) -> str:
    """A property with the letters around the first place where it holds a text."""
    at = max(text.casefold().find(wanted.casefold()), 0)
    start = max(0, at - _QUOTED // 2)
    end = max(start + _QUOTED, at + len(wanted))
    return f"{name}: {'…' * bool(start)}{text[start:end]}{'…' * (end < len(text))}"


def _known_to_hold(
    wanted: str, known: Iterable[tuple[Sequence[str], Mapping[str, Json]]], but: Collection[int]
) -> list[int]:
    """The rows of which something known holds a text, but for some."""
    rows = enumerate(known)
    return [
        row
        for row, about in rows
        if row not in but and any(wanted in text.casefold() for _, text in _known(*about))
    ]


def _known(labels: Sequence[str], properties: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    if labels:
        yield "types", ", ".join(labels)
    for name, value in properties.items():
        yield name, cell(value)
