"""A graph as a static picture that needs nothing else: positions are computed here, no script and no address
is inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.atomic_write import write_whole
from kgot_lab.text.counted import counted
from kgot_lab.viz.graph.paper import WHICH_FIRST, Paper
from kgot_lab.viz.graph.plan import DrawingPlan
from kgot_lab.viz.graph.scene import Highlight, Scene, marked, scene_of
from kgot_lab.viz.graph.shapes import Place
from kgot_lab.viz.static.markup import Markup, element, image, keyed, shortened
from kgot_lab.viz.static.table import Sheet, Table, table


@dataclass(frozen=True)
class Picture:
    """An SVG, and where each node is in it, as fractions of the drawing area: hand them to the next picture
    to keep nodes in place.
    """

    svg: Markup = field(repr=False)
    positions: Mapping[str, Place] = field(repr=False, hash=False)
    nodes: int
    edges: int
    all_nodes: int
    all_edges: int
    alt: str  # what it shows, in words
    plan: DrawingPlan = field(
        repr=False, compare=False
    )  # where everything is in it; a live view begins with the same
    source: tuple[PropertyGraph, Highlight] = field(
        repr=False, compare=False
    )  # what was to be drawn, also what found no room

    def table(self, *, limit: int = 50) -> Table:
        """The same graph as tables, at most `limit` rows of each: what is marked, if anything is, and all
        nodes and edges.
        """
        told = marked(*self.source)
        text = {node.id: node.text for node in told.graph.nodes}
        rows = [(mark, "node", text[id]) for id, mark in told.nodes.items()]
        rows += [
            (mark, "edge", f"{text[one]} – {type} – {text[other]}")
            for (one, type, other, _), mark in told.edges.items()
        ]
        marks = (
            (Sheet(("mark", "of a", "which"), tuple(rows[:limit]), len(rows), told.said.rstrip(".")),)
            if rows
            else ()
        )
        return Table((*marks, *table(told.graph, limit=limit).sheets))

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return image(self.svg, self.alt)

    def __repr__(self) -> str:
        return f"<Picture: {self.nodes:,} of {self.all_nodes:,} nodes, {self.edges:,} of {self.all_edges:,} edges>"

    def save(self, path: Path | str) -> Path:
        """Write the SVG to a file; raises BadInput for another kind of file."""
        if Path(path).suffix != ".svg":
            raise BadInput(f"a picture is saved as .svg, not as {Path(path).name}")
        return write_whole(path, self.svg, "the picture")


def svg(
    graph: PropertyGraph,
    *,
    highlight: Highlight = None,
    limit: int = 150,
    width: int = 800,
    height: int = 540,
    seed: int = 0,
    positions: Mapping[str, Place] | None = None,
    labels: Sequence[str] = (),
    arrows: bool = True,
) -> Picture:
    """Draw a graph; `highlight` is the write that led to it, what that write took away being drawn too, a
    path, as the ids of its nodes in order, or a run, for its answer.

    At most `limit` nodes are drawn and the picture says so; `positions` keeps nodes where an earlier picture
    had them, and `labels`, in the order in which that picture has them, keep their colours and shapes.
    Without `arrows` lines point nowhere.
    """
    scene = scene_of(graph, highlight, limit)
    scene = replace(scene, labels=tuple(dict.fromkeys((*labels, *scene.labels))))
    paper = Paper(scene, width, height, arrows=arrows)
    plan = paper.planned(positions or {}, seed)
    parts = [paper.background(), paper.legend(), *paper.drawing(plan), paper.note(plan)]
    drawing = element(
        "svg", element("title", _title(scene)), element("desc", _description(scene)), *parts,
        xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", width=width, height=height, role="img",
        aria_label=_title(scene), font_family="Helvetica, Arial, sans-serif", style="max-width:100%;height:auto",
    )  # fmt: skip
    said = f"{_title(scene)}. {_description(scene)}"
    counts = len(scene.nodes), len(scene.edges), scene.all_nodes, scene.all_edges
    return Picture(
        keyed(drawing), {**plan.fractions(), **(positions or {})}, *counts, said, plan, (graph, highlight)
    )


def _title(scene: Scene) -> str:
    if not scene.all_nodes:
        return "An empty graph"
    return f"A graph with {counted(scene.all_nodes, 'node')} and {counted(scene.all_edges, 'edge')}"


def _description(scene: Scene) -> str:
    """What the picture shows, in words, for those who do not see it."""
    facts = (
        f"{shortened(e.source, 40)} {shortened(e.type, 40)} {shortened(e.target, 40)}"
        for e in scene.edges[:20]
    )
    change = f"{scene.said} " * bool(scene.said)
    more = f"; and {len(scene.edges) - 20} more" if len(scene.edges) > 20 else ""
    return f"{change}{scene.left_out(WHICH_FIRST)} Edges: {'; '.join(facts) or 'none'}{more}."
