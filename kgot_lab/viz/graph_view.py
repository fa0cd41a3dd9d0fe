"""A graph to look into: it draws wherever a notebook is read, and lives where one runs."""

from __future__ import annotations

from collections.abc import Mapping

from kgot_lab.draw.collapse import View, closed, collapsed, opened, revealed
from kgot_lab.draw.places import Place
from kgot_lab.draw.scene import Highlight, Marked, marked
from kgot_lab.draw.svg import Picture, svg
from kgot_lab.draw.table import Sheet, Table, cell, properties, table
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Json
from kgot_lab.viz.graph_data import DRAWN, data_of
from kgot_lab.viz.live import Live

IN_PICTURE = 150  # nodes of the static picture
AROUND = 40  # neighbours drawn at once
FOUND = 20  # hidden nodes drawn at once because they hold what was searched


class GraphView:
    """What `show_graph` shows: two outputs in a cell, and then what the reader picked in it."""

    def __init__(self, told: Marked, picture: Picture, positions: Mapping[str, Place], *, height: int, most: int) -> None:
        self.picture, self.picked = picture, ""  # `picked` is the id of the node that was clicked last
        self.view: View = collapsed(told.graph, most, marked=told.edges)
        if self.view.communities:
            self.view = revealed(self.view, [id for id in told.touched if id in told.graph][: most // 2])
        self._told, self._positions = told, positions
        self.live = Live(picture, {"view": "graph", **self._data(), "height": height}, self._heard)

    @property
    def graph(self) -> PropertyGraph:
        """The graph, with what the highlighted write took away."""
        return self._told.graph

    def _ipython_display_(self) -> None:
        self.live._ipython_display_()

    def __repr__(self) -> str:
        return f"<GraphView of {self.graph!r}" + (f", picked {self.picked!r}>" if self.picked else ">")

    def table(self, limit: int = 50) -> Table:
        """The same graph as tables."""
        return table(self.graph, limit=limit)

    def facts(self) -> Table:
        """The picked node with its properties, and its edges; raises BadInput before one was picked."""
        if not self.picked:
            raise BadInput("no node is picked yet: click one in the view of the cell above, or set `picked` to an id")
        node = self.graph.node(self.picked)
        labels = ("labels", ", ".join(node.labels))
        rows = (("id", node.id), labels, *((name, cell(value)) for name, value in node.properties.items()))
        edges = self.graph.neighbours(self.picked, "both")
        lines = tuple((edge.source, edge.type, edge.target, properties(edge.properties)) for edge in edges)
        about = Sheet(("property", "value"), rows, len(rows), node.text)
        return Table((about, Sheet(("source", "type", "target", "properties"), lines, len(edges), "Its edges")))

    def _data(self) -> dict[str, Json]:
        return data_of(self.view, self._told, self._positions)

    def _heard(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"picked": str(id)} if id in self.graph:
                self.picked = id
            case {"expand": str(id)} if id in self.graph:
                return self._revealed(self._hidden_around(id), f"neighbours of {self.graph.node(id).text}")
            case {"open": str(community)} if community in self.view.whole.ids:
                self.view = opened(self.view, community)
                return {"graph": self._data(), "said": "Opened: its nodes are drawn by themselves."}
            case {"close": str(id)} if id in self.graph and self.view.communities:
                self.view = closed(self.view, self.view.community_of(id))
                return {"graph": self._data(), "said": "Closed: drawn as one again."}
            case {"find": str(text)}:
                found = self._hidden_with(text)
                return self._revealed(found, f"nodes that hold “{text}”") if found else {"said": f"No node holds “{text}”"}
        return {}

    def _revealed(self, ids: list[str], what: str) -> dict[str, Json]:
        self.view = revealed(self.view, ids)
        return {"graph": self._data(), "pick": ids[0], "said": f"{len(ids)} {what} now drawn"} if ids else {}

    def _hidden_around(self, id: str) -> list[str]:
        """The neighbours of a node that are not drawn by themselves, best connected first."""
        edges = self.graph.neighbours(id, "both")
        near = dict.fromkeys(edge.target if edge.source == id else edge.source for edge in edges)
        hidden = [other for other in near if self.view.drawn_as(other) != other]
        return sorted(hidden, key=lambda other: -int(self.view.whole.degree[self.graph.row(other)]))[:AROUND]

    def _hidden_with(self, text: str) -> list[str]:
        wanted = text.casefold()
        holding = (node for node in self.graph.nodes if wanted in node.text.casefold() or wanted in node.id.casefold())
        hidden = (node.id for node in holding if self.view.drawn_as(node.id) != node.id)
        return [id for id, _ in zip(hidden, range(FOUND), strict=False)]


def show_graph(
    graph: PropertyGraph,
    *,
    highlight: Highlight = None,
    positions: Mapping[str, Place] | None = None,
    height: int = 460,
    most: int = DRAWN,
) -> GraphView:
    """Show a graph: a static picture wherever the notebook is read, and in its place a live view where a kernel runs.

    `highlight` is the write that led to the graph, or a path as the ids of its nodes; `positions` keeps nodes where an earlier view's
    `picture` had them; `height` is in pixels; a graph of more than `most` nodes is drawn as communities, which open. Raises BadInput and
    UnknownName for a path that is not in the graph.
    """
    told = marked(graph, highlight)
    picture = svg(graph, highlight=highlight, limit=IN_PICTURE, positions=positions)
    same_places = len(told.graph) <= IN_PICTURE
    return GraphView(told, picture, picture.positions if same_places else positions or {}, height=height, most=most)
