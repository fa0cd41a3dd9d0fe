"""Interactive graph view: a static picture wherever a notebook is read, and a live view where it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from kgot_lab.errors import BadInput, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.exchange import as_graph, is_undirected
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.collapse import View, closed, collapsed, entered, revealed, shut
from kgot_lab.viz.graph.marks import Highlight, Marked, Place, links_of, marked, shortest_path
from kgot_lab.viz.graph.scene import PLANNED
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.graph.view_data import NAMELESS, data_of, group_views
from kgot_lab.viz.live import Live, LiveOutput, is_for_pages
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import Table, cell, properties, sheet

# Text search in a graph view: names first, then relations, then labels and properties of nodes and edges.

NAME_IN_SENTENCE = 60  # characters of a name in a sentence
_QUOTED = 60  # characters of a property around a match


@dataclass(frozen=True, eq=False)
class TextHolding:
    """The rows of nodes and edges that contain a text.

    Nodes with a matching name come first, then edges with a matching type, then nodes and edges with other
    matches.
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
        """Return the match with this number.

        Raises IndexError if there is none.
        """
        nodes, edges = self.graph.nodes, self.graph.edges
        for rows, things in (
            (self.named, nodes),
            (self.typed, edges),
            (self.nodes, nodes),
            (self.edges, edges),
        ):
            if number < len(rows):
                found: Node | Edge = things[rows[number]]
                return found
            number -= len(rows)
        raise IndexError(number)

    def describe(self, number: int) -> str:
        """Describe a match: its number out of all matches, its name, and an excerpt of the property."""
        one = self[number]
        nodes, edges = len(self.named) + len(self.nodes), len(self.typed) + len(self.edges)
        kinds = f" ({format_count(nodes, 'node')}, {format_count(edges, 'relation')})" * bool(nodes and edges)
        ends = () if isinstance(one, Node) else (one.source, one.target)
        name = name_of_node(one) if isinstance(one, Node) else walked_names(self.graph, ends, [one])
        quotation = f" ({self._quotation(one)})" if number >= len(self.named) + len(self.typed) else ""
        return f"{number + 1:,} of {len(self):,} that hold “{self.wanted}”{kinds}: {name}{quotation}"

    def _quotation(self, one: Node | Edge) -> str:
        lines = _known(one.labels if isinstance(one, Node) else (), one.properties)
        held = ((name, text) for name, text in lines if self.wanted.casefold() in text.casefold())
        return quoted_property(*next(held), self.wanted)


def holding_text(graph: PropertyGraph, text: str) -> TextHolding:
    """Find the nodes and edges that contain a text, ignoring case."""
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
    """Rank a name by how well it matches: 0 for equal, 1 for a prefix, 2 for a substring."""
    return 0 if wanted in names else 1 if any(name.startswith(wanted) for name in names) else 2


def name_of_node(node: Node) -> str:
    """Return the name of a node, shortened for a sentence."""
    return shortened(node.text, NAME_IN_SENTENCE)


def walked_names(graph: PropertyGraph, way: Sequence[str], edges: Iterable[Edge]) -> str:
    """Format a path with node names and edge directions: A — knows → B ← knows — C."""
    steps = (
        f"{_step(edge, start)}{name_of_node(graph.node(end))}"
        for edge, start, end in zip(edges, way, way[1:], strict=False)
    )
    return "".join([name_of_node(graph.node(way[0])), *steps])


def _step(edge: Edge, start: str) -> str:
    """Format the edge between two names.

    `start` is the id of the first node.
    """
    type = shortened(edge.type, NAME_IN_SENTENCE)
    return f" — {type} → " if edge.source == start else f" ← {type} — "


def quoted_property(name: str, text: str, wanted: str) -> str:
    """Format a property with an excerpt around the first match of a text."""
    at = max(text.casefold().find(wanted.casefold()), 0)
    start = max(0, at - _QUOTED // 2)
    end = max(start + _QUOTED, at + len(wanted))
    return f"{name}: {'…' * bool(start)}{text[start:end]}{'…' * (end < len(text))}"


def _known_to_hold(
    wanted: str, known: Iterable[tuple[Sequence[str], Mapping[str, Json]]], but: Collection[int]
) -> list[int]:
    """Return the rows with a label or property that contains a text, except those in `but`."""
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


IN_PICTURE = 150  # nodes of the static picture
# pixels of the legend and the margins of the static picture, which a live view has outside its drawing
AROUND_DRAWING = 40
LEAST_HEIGHT, MOST_HEIGHT = 260, 640
_NO_NODE = "A path joins two nodes, and this is a group of them: open it and pick one of its nodes."
AROUND = 40  # neighbours drawn at once


class GraphView(LiveOutput):
    """The result of `show_graph`: an interactive view, and afterwards what the reader picked in it."""

    def __init__(
        self,
        told: Marked,
        picture: Picture,
        positions: Mapping[str, Place],
        *,
        height: int,
        most: int,
        arrows: bool = True,
    ) -> None:
        self._told, self._positions, self._arrows = told, positions, arrows
        self.picture, self.picked = picture, ""  # `picked` is the id of the node that was clicked last
        self.view: View = collapsed(told.graph, most, marked=told.edges)
        if self.view.communities:
            changed = sorted(told.touched, key=lambda id: (id not in told.nodes, *self._connected(id)))
            self.view = revealed(self.view, changed[: most // 2])
        self._placed: Mapping[str, Place] = {}  # positions of what a view with groups draws
        self.live = Live(picture, {"view": "graph", **self._data(), "height": height}, self._heard)

    @property
    def graph(self) -> PropertyGraph:
        """The graph, including what the highlighted write removed."""
        return self._told.graph

    def _refresh(self) -> None:
        if is_for_pages():
            self.live.data = self.alone()

    def __repr__(self) -> str:
        return f"<GraphView of {self.graph}" + (f", picked {self.picked!r}>" if self.picked else ">")

    def alone(self) -> dict[str, Json]:
        """Return the data of the live view for a page without Python.

        What its groups open into is included, up to about 1 MB.
        """
        return {**self.live.data, **group_views(self.view, self._told, self._positions)}

    def table(self, limit: int = 50) -> Table:
        """Return the graph as tables, with what is marked first."""
        return self.picture.table(limit=limit)

    def facts(self) -> Table:
        """Return the picked node with its properties and edges as tables.

        Raises BadInput if no node has been picked.
        """
        if not self.picked:
            raise BadInput(
                "no node is picked yet: click one in the view of the cell above, or set `picked` to an id"
            )
        node = self.graph.node(self.picked)
        labels = ("labels", ", ".join(node.labels))
        rows = (("id", node.id), labels, *((name, cell(value)) for name, value in node.properties.items()))
        edges = self.graph.neighbours(self.picked, "both")
        lines = tuple((edge.source, edge.type, edge.target, properties(edge.properties)) for edge in edges)
        about = sheet(("property", "value"), rows, node.text)
        return Table((about, sheet(("source", "type", "target", "properties"), lines, "Its edges")))

    def _data(self) -> dict[str, Json]:
        return {**self._drawn(), "arrows": self._arrows}

    def _drawn(self) -> dict[str, Json]:
        if self.view.communities and len(self.view.nodes) <= PLANNED:
            data = data_of(self.view, self._told, {**self._placed, **self._positions})
            self._placed = {node["id"]: (node["x"], node["y"]) for node in data["nodes"]}
            return data
        is_as_pictured = not self.view.communities and len(self.view.nodes) == self.picture.nodes
        plan = self.picture.scene.plan if is_as_pictured else None
        return data_of(self.view, self._told, self._positions, plan)

    def _heard(self, message: Mapping[str, Json]) -> Json:
        """Return the reply to a browser message.

        Empty ids are encoded as NAMELESS.
        """
        answer = self._answered({key: _exchanged(value, NAMELESS, "") for key, value in message.items()})
        return {
            key: _exchanged(value, "", NAMELESS) if key in ("pick", "way") else value
            for key, value in answer.items()
        }

    def _answered(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"picked": str(id)} if id in self.graph:
                self.picked = id
            case {"expand": str(id)} if id in self.graph:
                near = self._hidden_around(id)
                said = f"{len(near)} neighbours of {self._name(id)} now drawn"
                return self._shown(revealed(self.view, near), said)
            case {"open": str(community)} if community in self.view.whole.ids:
                self._placed = {}  # the opened community and its surroundings get a new layout
                return self._shown(entered(self.view, community), "Opened, and laid out anew.")
            case {"close": str()} if self.view.whole.outer:
                self._placed = {}
                return self._shown(shut(self.view), "Closed: drawn as one again.")
            case {"close": str(id)} if self.view.communities and id in self.graph:
                self._placed = {}
                view = closed(self.view, self.view.community_of(id))
                return self._shown(view, "Closed: drawn as one again.")
            case {"path": [str(start), str(end)]}:
                return self._path(start, end)
            case {"find": str(text)}:
                turn = message.get("turn", 0)
                return self._found(text, turn if isinstance(turn, int) and turn >= 0 else 0)
        return {}

    def _shown(self, view: View, said: str) -> dict[str, Json]:
        """Set the current view, and return its data with a message for the browser."""
        self.view = view
        data = self._data()
        self.live.data = {**self.live.data, **data}
        return {"graph": data, "said": said}

    def _found(self, text: str, turn: int) -> Json:
        """Show the next node or edge that contains a text, and return it as picked."""
        found = holding_text(self.graph, text)
        if not found:
            return {"said": f"Nothing holds “{text}”: no name, no relation, no property"}
        one, said = found[turn % len(found)], found.describe(turn % len(found))
        if isinstance(one, Node):
            self.picked = one.id
            return self._shown(revealed(self.view, [one.id]), said) | {"pick": one.id}
        shown = self._shown(revealed(self._drawing_first([one]), [one.source, one.target]), said)
        drawn = [edge.identity for edge in self.view.edges]
        if one.identity in drawn:
            return shown | {"edge": drawn.index(one.identity)}
        said += "; no line is drawn for it among so many, so its source is marked"
        return shown | {"pick": one.source, "said": said}

    def _path(self, start: str, end: str) -> Json:
        """Show a shortest path in the whole graph, ignoring the direction of edges."""
        if start not in self.graph or end not in self.graph:
            return {"said": _NO_NODE}
        way = shortest_path(self.graph, start, end)
        if not way:
            names = f"{self._name(start)} to {self._name(end)}"
            return {
                "said": f"No path leads from {names}: they are in parts of the graph that are not joined."
            }
        self.picked = end
        links = links_of(self.graph, way)
        said = f"Path: {walked_names(self.graph, way, links)}"
        return self._shown(revealed(self._drawing_first(links), way), said) | {"pick": end, "way": way}

    def _drawing_first(self, edges: Iterable[Edge]) -> View:
        """Return the view in which some edges are drawn before others, besides those that are marked."""
        wanted = {*self._told.edges, *(edge.identity for edge in edges)}
        return replace(self.view, whole=replace(self.view.whole, marked=wanted))

    def _hidden_around(self, id: str) -> list[str]:
        """Return the neighbours of a node that are not drawn individually, best connected first."""
        edges = self.graph.neighbours(id, "both")
        near = dict.fromkeys(edge.target if edge.source == id else edge.source for edge in edges)
        hidden = [other for other in near if self.view.drawn_as(other) != other]
        return sorted(hidden, key=self._connected)[:AROUND]

    def _name(self, id: str) -> str:
        return name_of_node(self.graph.node(id))

    def _connected(self, id: str) -> tuple[int, int]:
        row = self.graph.row(id)
        return -int(self.view.whole.degree[row]), row


def _exchanged(value: Json, one: str, other: str) -> Json:
    """Replace `one` by `other` if the value, or an item of a list, equals it."""
    if isinstance(value, list | tuple):
        return [_exchanged(each, one, other) for each in value]
    return other if value == one else value


def show_graph(
    graph: object,
    *,
    highlight: Highlight = None,
    positions: Mapping[str, Place] | None = None,
    height: int = 460,
    most: int = PLANNED,
    arrows: bool | None = None,
) -> GraphView:
    """Show a graph as a static picture, and as a live view where a kernel runs.

    `graph` is a PropertyGraph, or anything that `graph.given.as_graph` converts: a NetworkX graph, triples, a
    pandas table of edges. `highlight` is the write that led to the graph, a path as the ids of its nodes, or
    a run, whose answer and supporting facts are marked. `positions` keeps nodes where an earlier view's
    `picture` had them. `height` is in pixels.

    A graph of more than `most` nodes is drawn as communities, which can be opened. Up to 150 items, nearly
    all names fit. With a higher `most`, more nodes are drawn individually, and their names appear on zooming
    in. The edges of an undirected NetworkX graph have no arrows unless `arrows` is true; no edges have arrows
    if it is false.

    Raises BadInput or UnknownName if a path is not in the graph, or if a run has no answer.
    """
    arrows = not is_undirected(graph) if arrows is None else arrows
    graph = as_graph(graph)
    require_count(height, 1, "height", "it is in pixels")
    require_count(most, 1, "most", "it is how many nodes are drawn by themselves")
    told = marked(graph, highlight)
    tall = min(max(height + AROUND_DRAWING, LEAST_HEIGHT), MOST_HEIGHT)
    picture = svg(
        graph, limit=IN_PICTURE, height=tall, highlight=highlight, positions=positions, arrows=arrows
    )
    places = picture.positions if len(told.graph) <= IN_PICTURE else positions or {}
    return GraphView(told, picture, places, height=height, most=most, arrows=arrows)
