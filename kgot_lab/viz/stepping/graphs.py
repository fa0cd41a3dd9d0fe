"""The graphs of a run as the browser draws them: one for each event, where no node ever moves, and each node
and edge kept once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kgot_lab.graph import PropertyGraph
from kgot_lab.loop.events import Answered, Event, Wrote
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.types import Diff, Json
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.graph.view_data import graph_data

DRAWN_OF_RUN = 150  # nodes of one graph that are drawn; the graph of a run mostly has fewer


def places_in_run(*graphs: PropertyGraph, known: Mapping[str, Place] | None = None) -> dict[str, Place]:
    """One place for each node of some graphs, at most `DRAWN`: laid out for the last graph; nodes with a
    known place stay there.
    """
    positions = dict(svg(graphs[-1], limit=DRAWN_OF_RUN, positions=known).positions)
    edges = {edge.identity: edge for graph in graphs for edge in graph.edges}
    everything = PropertyGraph.of(
        {node.id: node for graph in graphs for node in graph.nodes}.values(), edges.values()
    )
    placed = [id for id in everything.ids if id in positions]
    missing = [id for id in everything.ids if id not in positions][: max(0, DRAWN_OF_RUN - len(placed))]
    return (
        dict(svg(everything.subgraph([*placed, *missing]), limit=DRAWN_OF_RUN, positions=positions).positions)
        if missing
        else positions
    )


class RunGraphs:
    """Graphs as the browser draws them; a node or an edge that several of them share is kept once."""

    def __init__(self, positions: Mapping[str, Place]) -> None:
        self.positions = positions
        self.graphs: list[Json] = []
        self._parts: dict[str, dict[str, int]] = {"nodes": {}, "edges": {}}

    def add(self, graph: PropertyGraph, highlight: Diff | Trace | None = None) -> int:
        """Take a graph in; its number."""
        drawn, shown = (
            self._drawn(graph),
            self._shown(highlight) if isinstance(highlight, Diff) else highlight,
        )
        data = graph_data(drawn, shown, self.positions)
        data["note"] = f"Shows {len(drawn):,} of {len(graph):,} nodes." if len(drawn) < len(graph) else ""
        for kind in ("nodes", "edges"):
            marks = {number: item.pop("mark") for number, item in enumerate(data[kind])}
            data[kind] = [self._number(kind, item) for item in data[kind]]
            data[f"{kind[:-1]}_marks"] = {number: mark for number, mark in marks.items() if mark}
        self.graphs.append(data)
        return len(self.graphs) - 1

    def data(self) -> dict[str, Json]:
        """All graphs, and the nodes and edges they are made of."""
        return {
            "graphs": self.graphs,
            **{kind: [json.loads(item) for item in items] for kind, items in self._parts.items()},
        }

    def _number(self, kind: str, item: Json) -> int:
        return self._parts[kind].setdefault(json.dumps(item, default=str), len(self._parts[kind]))

    def _drawn(self, graph: PropertyGraph) -> PropertyGraph:
        return (
            graph
            if all(id in self.positions for id in graph.ids)
            else graph.subgraph(id for id in graph.ids if id in self.positions)
        )

    def _shown(self, diff: Diff) -> Diff:
        """What of a diff can be drawn: what it took away is drawn too, if it has a place."""
        nodes = tuple(node for node in diff.removed_nodes if node.id in self.positions)
        edges = tuple(
            edge
            for edge in diff.removed_edges
            if edge.source in self.positions and edge.target in self.positions
        )
        return replace(diff, removed_nodes=nodes, removed_edges=edges)


def graph_at(events: Sequence[Event], graphs: RunGraphs) -> list[int]:
    """Which graph belongs to each event: at a write with the change marked, after it without, at the answer
    with that marked.
    """
    graph = graph_after(events[:1])  # what the run began with
    now = graphs.add(graph)
    found = []
    for number, event in enumerate(events):
        if isinstance(event, Wrote):
            graph = graph.apply(event.diff)
            found.append(graphs.add(graph, event.diff))
            now = graphs.add(graph)
        elif isinstance(event, Answered):
            found.append(graphs.add(graph, Trace("", "", tuple(events[: number + 1]))))
        else:
            found.append(now)
    return found
