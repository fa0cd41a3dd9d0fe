"""A graph to look into: it draws wherever a notebook is read, and lives where one runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Diff, Edge, Json, Node
from kgot_lab.viz.live import Live
from kgot_lab.viz.markup import shortened
from kgot_lab.viz.scene import Scene, scene_of
from kgot_lab.viz.shapes import ROUND, look_of
from kgot_lab.viz.svg import Picture, Place, svg
from kgot_lab.viz.table import Sheet, Table, cell, properties, table

IN_PICTURE = 150  # nodes of the static picture
DRAWN = 2000  # nodes of the live view
CAPTION = 24
LINE = 300  # letters of a line that one sees on pointing at something


class GraphView:
    """What `show_graph` shows: two outputs in a cell, and then what the reader picked in it."""

    def __init__(self, graph: PropertyGraph, highlight: Diff | None, picture: Picture, *, height: int) -> None:
        self.graph, self.highlight, self.picture = graph, highlight, picture
        self.picked = ""  # the id of the node that was clicked last
        self.live = Live(picture, {"view": "graph", **graph_data(graph, highlight, picture.positions), "height": height}, self._heard)

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
        about = Sheet(
            ("property", "value"),
            (
                ("id", node.id),
                ("labels", ", ".join(node.labels)),
                *((name, cell(value)) for name, value in node.properties.items()),
            ),
            2 + len(node.properties),
            node.text,
        )
        edges = self.graph.neighbours(self.picked, "both")
        rows = tuple((edge.source, edge.type, edge.target, properties(edge.properties)) for edge in edges)
        return Table((about, Sheet(("source", "type", "target", "properties"), rows, len(edges), "Its edges")))

    def _heard(self, message: Mapping[str, Json]) -> Json:
        match message:
            case {"picked": str(id)} if id in self.graph:
                self.picked = id
            case {"find": str(text)}:
                return {"said": f"No node holds “{text}”"}
        return {}


def show_graph(
    graph: PropertyGraph,
    *,
    highlight: Diff | None = None,
    positions: Mapping[str, Place] | None = None,
    height: int = 460,
    seed: int = 0,
) -> GraphView:
    """Show a graph: a static picture wherever the notebook is read, and in its place a live view where a kernel runs.

    `highlight` is the write that led to the graph; `positions` keeps nodes where an earlier view's `picture` had them;
    `height` is in pixels.
    """
    picture = svg(graph, highlight=highlight, limit=IN_PICTURE, positions=positions, seed=seed)
    return GraphView(graph, highlight, picture, height=height)


def graph_data(graph: PropertyGraph, highlight: Diff | None, positions: Mapping[str, Place]) -> dict[str, Json]:
    """A graph as the browser draws it: captions cut, colours chosen, a place for each node."""
    scene = scene_of(graph, highlight, DRAWN)
    numbers = {label: number for number, label in enumerate(scene.labels)}
    return {
        "title": f"A graph with {len(graph):,} nodes and {len(graph.edges):,} edges",
        "nodes": [_node(node, scene, numbers, positions) for node in scene.nodes],
        "edges": [_edge(edge, scene) for edge in scene.edges],
        "legend": _legend(scene.nodes, numbers),
        "marked": highlight is not None,
        "note": "",
        "aspect": 1.5,
    }


def _node(node: Node, scene: Scene, numbers: Mapping[str, int], positions: Mapping[str, Place]) -> dict[str, Json]:
    look = look_of(numbers[node.labels[0]]) if node.labels else ROUND
    x, y = positions.get(node.id, (0.5, 0.5))
    return {
        "id": node.id,
        "text": shortened(node.text, LINE),
        "caption": shortened(node.text, CAPTION),
        "kind": node.labels[0] if node.labels else "",
        "hover": [f"id: {shortened(node.id, LINE)}", f"types: {', '.join(node.labels) or 'none'}", *_lines(node.properties)],
        "colour": look.colour,
        "corners": look.corners,
        "mark": scene.node_marks.get(node.id, ""),
        "x": x,
        "y": y,
    }


def _edge(edge: Edge, scene: Scene) -> dict[str, Json]:
    return {
        "source": edge.source,
        "target": edge.target,
        "type": shortened(edge.type, LINE),
        "caption": shortened(edge.type, CAPTION),
        "hover": [*([f"key: {edge.key}"] if edge.key else []), *_lines(edge.properties)],
        "mark": scene.edge_marks.get(edge.identity, ""),
    }


def _lines(values: Mapping[str, Json]) -> list[str]:
    """A line for each property, provenance included."""
    return [shortened(f"{name}: {cell(value)}", LINE) for name, value in values.items()]


def _legend(nodes: Sequence[Node], numbers: Mapping[str, int]) -> list[dict[str, Json]]:
    counts = Counter(node.labels[0] if node.labels else "" for node in nodes)
    ordered = sorted(counts, key=lambda label: (label == "", numbers.get(label, 0)))
    looks = {label: look_of(numbers[label]) if label else ROUND for label in ordered}
    return [{"label": label, "count": counts[label], "colour": looks[label].colour, "corners": looks[label].corners} for label in ordered]
