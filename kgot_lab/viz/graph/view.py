"""Interactive graph view: a static picture wherever a notebook is read, and a live view where it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, require_count, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import encode, node_caption
from kgot_lab.graph.exchange import as_graph
from kgot_lab.kgos.extraction.entity_graph import SCAFFOLD
from kgot_lab.kgos.methods.traversal import trace_path
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import folded_name
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.collapse import View, close_community, collapse_graph, open_community, reveal_nodes
from kgot_lab.viz.graph.marks import Highlight, MarkedGraph, Point, mark_graph, path_edges
from kgot_lab.viz.graph.scene import MAX_PLANNED_NODES, drawing_plan, view_scene
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.graph.view_data import EMPTY_ID, group_views, view_data
from kgot_lab.viz.live import Live, LiveOutput, is_for_pages
from kgot_lab.viz.static.markup import shorten
from kgot_lab.viz.static.table import Table, format_cell, format_properties, sheet

# Text search in a graph view: names first, then relations, then labels and properties of nodes and edges.

NAME_IN_SENTENCE = 60  # characters of a name in a sentence
_EXCERPT_LENGTH = 60  # characters of a property around a match
_TYPE_RANK = 3  # the rank of an edge whose type matches


@dataclass(frozen=True, eq=False)
class TextMatches:
    """The nodes and edges that contain a text, each with its rank.

    Nodes with a matching name come first, then edges with a matching type, then other matches.
    """

    graph: PropertyGraph = field(repr=False)
    wanted: str
    found: Sequence[tuple[int, Node | Edge]]

    def __len__(self) -> int:
        return len(self.found)

    def __getitem__(self, number: int) -> Node | Edge:
        return self.found[number][1]

    def describe(self, number: int) -> str:
        """Describe a match: its number out of all matches, its name, and an excerpt of the property."""
        rank, match = self.found[number]
        nodes = sum(isinstance(each, Node) for _, each in self.found)
        edges = len(self) - nodes
        kinds = (
            f" ({format_count(nodes, 'node')}, {format_count(edges, 'relation')})" if nodes and edges else ""
        )
        ends = () if isinstance(match, Node) else (match.source, match.target)
        name = short_name(match) if isinstance(match, Node) else format_path(self.graph, ends, [match])
        quotation = f" ({self._quotation(match)})" if rank > _TYPE_RANK else ""
        return f"{number + 1:,} of {len(self):,} that hold “{self.wanted}”{kinds}: {name}{quotation}"

    def _quotation(self, match: Node | Edge) -> str:
        lines = _searchable_texts(match.labels if isinstance(match, Node) else (), match.properties)
        matching = ((name, text) for name, text in lines if self.wanted.casefold() in text.casefold())
        return format_property_match(*next(matching), self.wanted)


def find_text(graph: PropertyGraph, text: str) -> TextMatches:
    """Find the nodes and edges that contain a text, ignoring case, and in names accents and forms of signs too."""
    query, folded = text.casefold(), folded_name(text)
    types = [query in name.casefold() for name in graph.type_names]
    nodes = zip(graph.nodes, graph.node_labels, graph.node_properties, strict=True)
    edges = enumerate(zip(graph.type_codes.tolist(), graph.edge_properties, strict=True))
    found: list[tuple[int, Node | Edge]] = []
    for node, labels, properties in nodes:
        names = folded_name(node_caption(node)), folded_name(node.id)
        if any(folded in name for name in names):  # equal, at the beginning, or inside
            rank = 0 if folded in names else 1 if any(name.startswith(folded) for name in names) else 2
            found.append((rank, node))
        elif _is_within(query, labels, properties):
            found.append((_TYPE_RANK + 1, node))
    for row, (code, properties) in edges:
        if types[code] or _is_within(query, (), properties):
            found.append((_TYPE_RANK if types[code] else _TYPE_RANK + 2, graph.edges[row]))
    return TextMatches(graph, text, sorted(found, key=itemgetter(0)))


def short_name(node: Node) -> str:
    """Return the name of a node, shortened for a sentence."""
    return shorten(node_caption(node), NAME_IN_SENTENCE)


def format_path(graph: PropertyGraph, way: Sequence[str], edges: Iterable[Edge]) -> str:
    """Format a path with node names and edge directions: A — knows → B ← knows — C."""
    hops = zip(edges, way, way[1:], strict=False)
    steps = (f"{_format_step(edge, start)}{short_name(graph.node(end))}" for edge, start, end in hops)
    return "".join([short_name(graph.node(way[0])), *steps])


def _format_step(edge: Edge, start: str) -> str:
    """Format the edge between two names.

    `start` is the id of the first node.
    """
    type = shorten(edge.type, NAME_IN_SENTENCE)
    return f" — {type} → " if edge.source == start else f" ← {type} — "


def format_property_match(name: str, text: str, query: str) -> str:
    """Format a property with an excerpt around the first match of a text."""
    match_start = max(text.casefold().find(query.casefold()), 0)
    start = max(0, match_start - _EXCERPT_LENGTH // 2)
    end = max(start + _EXCERPT_LENGTH, match_start + len(query))
    return f"{name}: {'…' * bool(start)}{text[start:end]}{'…' * (end < len(text))}"


def _is_within(query: str, labels: Sequence[str], properties: Mapping[str, Json]) -> bool:
    return any(query in text.casefold() for _, text in _searchable_texts(labels, properties))


def _searchable_texts(labels: Sequence[str], properties: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    if labels:
        yield "types", ", ".join(labels)
    for name, value in properties.items():
        yield name, format_cell(value)


MAX_PICTURE_NODES = 150  # nodes of the static picture
# pixels of the legend and the margins of the static picture, which a live view has outside its drawing
DRAWING_MARGIN = 40
MIN_HEIGHT, MAX_HEIGHT = 200, 640
_GROUP_IN_PATH = "A path joins two nodes, and this is a group of them: open it and pick one of its nodes."
MAX_EXPANDED = 40  # neighbours drawn at once


@check_arguments
class GraphView(LiveOutput):
    """The result of `show_graph`: an interactive view, and afterwards what the reader picked in it."""

    def __init__(
        self,
        marks: MarkedGraph,
        picture: Picture,
        positions: Mapping[str, Point],
        *,
        height: int,
        most: int,
        arrows: bool = True,
        hidden: Collection[str] = (),
    ) -> None:
        self._marks, self._positions, self._arrows, self._hidden = marks, positions, arrows, hidden
        self.picture, self.picked = picture, ""  # `picked` is the id of the node that was clicked last
        self.view: View = collapse_graph(marks.graph, most, marked=marks.edges)
        if self.view.communities:
            changed = sorted(marks.touched, key=lambda id: (id not in marks.nodes, *self._degree_order(id)))
            self.view = reveal_nodes(self.view, changed[: most // 2])
        self._placed: Mapping[str, Point] = {}  # positions of what a view with groups draws
        data = {"view": "graph", **self._data(), "height": height, "hidden": list(hidden)}
        self.live = Live(picture, data, self._handle_message)

    @property
    def graph(self) -> PropertyGraph:
        """The graph, including what the highlighted write removed."""
        return self._marks.graph

    def _refresh(self) -> None:
        if is_for_pages():
            self.live.data = self.standalone_data()

    def __repr__(self) -> str:
        return f"<GraphView of {self.graph}" + (f", picked {self.picked!r}>" if self.picked else ">")

    def standalone_data(self) -> dict[str, Json]:
        """Return the data of the live view for a page without Python.

        What its groups open into is included, up to about 1 MB.
        """
        return {**self.live.data, **group_views(self.view, self._marks, self._positions)}

    def table(self, limit: int = 50) -> Table:
        """Return the graph as tables, with what is marked first."""
        return self.picture.table(limit=limit)

    def facts(self) -> Table:
        """Return the picked node with its properties and edges as tables.

        Raises BadInput if no node has been picked.
        """
        if not self.picked:
            raise BadInput("no node is picked yet: click one in the view above, or set `picked` to an id")
        node = self.graph.node(self.picked)
        labels = ("labels", ", ".join(node.labels))
        properties = ((name, format_cell(value)) for name, value in node.properties.items())
        rows = (("id", node.id), labels, *properties)
        edges = self.graph.neighbours(self.picked, "both")
        lines = tuple((e.source, e.type, e.target, format_properties(e.properties)) for e in edges)
        about = sheet(("property", "value"), rows, node_caption(node))
        return Table((about, sheet(("source", "type", "target", "properties"), lines, "Its edges")))

    def _data(self) -> dict[str, Json]:
        return {**self._drawing_data(), "arrows": self._arrows}

    def _drawing_data(self) -> dict[str, Json]:
        if self.view.communities and len(self.view.nodes) <= MAX_PLANNED_NODES:
            data = view_data(self.view, self._marks, {**self._placed, **self._positions})
            self._placed = {node["id"]: (node["x"], node["y"]) for node in data["nodes"]}
            return data
        is_as_pictured = not self.view.communities and len(self.view.nodes) == self.picture.nodes
        plan = self.picture.scene.plan if is_as_pictured or self._hidden else None
        if plan and self._hidden:  # what is not hidden stays as in the picture
            scene = view_scene(self.view, self._marks)
            whole = drawing_plan(scene, plan.area, positions=self._positions)
            nodes, edges = {**whole.nodes, **plan.nodes}, {**whole.edges, **plan.edges}
            plan = replace(whole, nodes=nodes, edges=edges, notes=plan.notes)
        return view_data(self.view, self._marks, self._positions, plan)

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        """Return the reply to a browser message.

        Empty ids are encoded as NAMELESS.
        """
        answer = self._reply({key: _replace_value(value, EMPTY_ID, "") for key, value in message.items()})
        return {
            key: _replace_value(value, "", EMPTY_ID) if key in ("pick", "way") else value
            for key, value in answer.items()
        }

    def _reply(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"picked": str(id)} if id in self.graph:
                self.picked = id
            case {"expand": str(id)} if id in self.graph:
                near = self._hidden_neighbours(id)
                message_text = f"{format_count(len(near), 'neighbour')} of {self._short_name(id)} now drawn"
                return self._show_view(reveal_nodes(self.view, near), message_text)
            case {"open": str(community)} if community in self.view.whole.ids:
                self._placed = {}  # the opened community and its surroundings get a new layout
                return self._show_view(open_community(self.view, community), "Opened, and laid out again.")
            case {"close": str()} if outer := self.view.whole.outer:
                self._placed = {}
                return self._show_view(outer, "Closed: drawn as one node again.")
            case {"close": str(id)} if self.view.communities and id in self.graph:
                self._placed = {}
                view = close_community(self.view, self.view.community_of(id))
                return self._show_view(view, "Closed: drawn as one node again.")
            case {"path": [str(start), str(end)]}:
                return self._show_path(start, end)
            case {"find": str(text)}:
                turn = message.get("turn", 0)
                return self._show_match(text, turn if isinstance(turn, int) and turn >= 0 else 0)
        return {}

    def _show_view(self, view: View, note: str) -> dict[str, Json]:
        """Set the current view, and return its data with a message for the browser."""
        self.view = view
        data = self._data()
        self.live.data = {**self.live.data, **data}
        return {"graph": data, "said": note}

    def _show_match(self, text: str, turn: int) -> Json:
        """Show the next node or edge that contains a text, and return it as picked."""
        matches = find_text(self.graph, text)
        if not matches:
            return {"said": f"Nothing holds “{text}”: no name, no relation, no property"}
        match, note = matches[turn % len(matches)], matches.describe(turn % len(matches))
        if isinstance(match, Node):
            self.picked = match.id
            return self._show_view(reveal_nodes(self.view, [match.id]), note) | {"pick": match.id}
        view = reveal_nodes(self._view_with_priority([match]), [match.source, match.target])
        shown = self._show_view(view, note)
        drawn = [edge.identity for edge in self.view.edges]
        if match.identity in drawn:
            return shown | {"edge": drawn.index(match.identity)}
        note += "; no line is drawn for it among so many, so its source is marked"
        return shown | {"pick": match.source, "said": note}

    def _show_path(self, start: str, end: str) -> Json:
        """Show a shortest path in the whole graph, ignoring the direction of edges."""
        if start not in self.graph or end not in self.graph:
            return {"said": _GROUP_IN_PATH}
        path = trace_path(self.graph, start, end, max_depth=len(self.graph)).ids
        if not path:
            names = f"{self._short_name(start)} to {self._short_name(end)}"
            note = f"No path leads from {names}: they are in parts of the graph that are not connected."
            return {"said": note}
        self.picked = end
        links = path_edges(self.graph, path)
        note = f"Path: {format_path(self.graph, path, links)}"
        view = reveal_nodes(self._view_with_priority(links), path)
        return self._show_view(view, note) | {"pick": end, "way": path}

    def _view_with_priority(self, edges: Iterable[Edge]) -> View:
        """Return the view in which some edges are drawn before others, besides those that are marked."""
        wanted = {*self._marks.edges, *(edge.identity for edge in edges)}
        return replace(self.view, whole=replace(self.view.whole, marked=wanted))

    def _hidden_neighbours(self, id: str) -> list[str]:
        """Return the neighbours of a node that are not drawn individually, best connected first."""
        edges = self.graph.neighbours(id, "both")
        neighbours = dict.fromkeys(edge.target if edge.source == id else edge.source for edge in edges)
        hidden = [other for other in neighbours if self.view.drawn_as(other) != other]
        return sorted(hidden, key=self._degree_order)[:MAX_EXPANDED]

    def _short_name(self, id: str) -> str:
        return short_name(self.graph.node(id))

    def _degree_order(self, id: str) -> tuple[int, int]:
        row = self.graph.row(id)
        return -int(self.view.whole.degree[row]), row


def _replace_value(value: Json, old: str, new: str) -> Json:
    """Replace `old` by `new` if the value, or an item of a list, equals it."""
    if isinstance(value, list | tuple):
        return [_replace_value(item, old, new) for item in value]
    return new if value == old else value


@check_arguments
def show_graph(
    graph: object,
    *,
    highlight: Highlight = None,
    positions: Mapping[str, Point] | None = None,
    height: int | None = None,
    most: int = MAX_PLANNED_NODES,
    arrows: bool | None = None,
    hidden: Collection[str] = (),
    by: Mapping[str, str] | None = None,
) -> GraphView:
    """Show a graph as a static picture, and as a live view where a kernel runs.

    `graph` is a PropertyGraph, or anything that `graph.exchange.as_graph` converts: a NetworkX graph, triples, a
    pandas table of edges. `highlight` is the write that led to the graph, a path as the ids of its nodes, or
    a run, whose answer and supporting facts are marked. `positions` keeps nodes where an earlier view's
    `picture` had them. `height` is in pixels, by default 460, and less for fewer than six nodes.

    A graph of more than `most` nodes is drawn as communities, which can be opened. Up to 150 items, nearly
    all names fit. With a higher `most`, more nodes are drawn individually, and their names appear on zooming
    in. Nodes whose first label is `hidden` are not in the picture. A button of the live view shows them, if
    there are no more than `most` nodes with them.

    The edges of an undirected graph, from NetworkX or a file, have no arrows unless `arrows` is true; no edges have arrows
    if it is false. `by` has the properties for `color`, `size` and `width`, as `graph.encoding.encode` takes
    them.

    Raises BadInput or UnknownName if there is no such property, if a path is not in the graph, or if a run has no answer.
    """
    graph = as_graph(graph)
    arrows = not graph.undirected if arrows is None else arrows
    height = min(150 + 55 * len(graph), 460) if height is None else height
    require_count(height, 1, "height", "it is in pixels", maximum=10_000)
    require_count(most, 1, "most", "it is how many nodes are drawn by themselves")
    require_known("label", {*graph.labels(), *SCAFFOLD}, *hidden)
    if positions and not any(id in graph for id in positions):
        graph.row(next(iter(positions)))  # raises UnknownName: they are those of another graph
    drawn = graph
    if hidden:
        drawn = graph.subgraph(node.id for node in graph.nodes if not {*node.labels[:1]} & {*hidden})
        graph = graph if len(graph) <= most and not by else drawn
    marks = mark_graph(graph, highlight)
    if by or highlight is None:  # marks say more than communities do
        marks = replace(marks, given=encode(marks.graph, **by or {}))
    picture_height = min(max(height + DRAWING_MARGIN, MIN_HEIGHT), MAX_HEIGHT)
    picture = svg(
        drawn,
        limit=MAX_PICTURE_NODES,
        height=picture_height,
        highlight=highlight,
        positions=positions,
        encoding=marks.encoding,
        arrows=arrows,
    )
    places = picture.positions if len(marks.graph) <= MAX_PICTURE_NODES else positions or {}
    return GraphView(marks, picture, places, height=height, most=most, arrows=arrows, hidden=hidden)
