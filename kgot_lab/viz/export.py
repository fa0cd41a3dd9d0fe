"""A graph as one HTML file to move and search: the view of the notebooks, which works from disk and asks
nothing of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.conversion import as_graph, is_undirected
from kgot_lab.io.files import write_whole
from kgot_lab.text.counted import counted
from kgot_lab.viz.external_requests import references
from kgot_lab.viz.graph.marks import Place
from kgot_lab.viz.graph.view import show_graph
from kgot_lab.viz.graph.view_data import DRAWN
from kgot_lab.viz.live import page_script, page_style, place
from kgot_lab.viz.page import html_document
from kgot_lab.viz.static.markup import element, key_of
from kgot_lab.viz.static.table import table

MOST_EXPORTED = DRAWN  # nodes drawn by themselves; with more the drawing is a cloud
_HEIGHT = 600  # pixels of the drawing

EXPORT_STYLE = """
body { font: 15px/1.45 Helvetica, Arial, sans-serif; color: #111; background: #fff; max-width: 80rem; margin: 1rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: .5rem 0; overflow-wrap: anywhere; }
.still svg { max-width: 100%; height: auto; border: 1px solid #ddd; background: #fff; }
details { margin: 1rem 0; }
summary { cursor: pointer; }
:focus-visible { outline: 3px solid #0072b2; outline-offset: 1px; }
.wide { overflow-x: auto; }
.wide table { border-collapse: collapse; font-size: .85rem; margin: .6rem 0 1.2rem; }
.wide caption { text-align: left; color: inherit; }
.wide th, .wide td { border-bottom: 1px solid #999; padding: .2rem 1rem .2rem 0; text-align: left; vertical-align: top; }
.wide td { overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { body { color: #f0f0f0; background: #1b1b1b; color-scheme: dark; } }
@media print { body { max-width: none; margin: 0; color: #111; background: #fff; } details { display: none; } }
"""


def export(
    graph: object,
    path: Path | str,
    *,
    title: str = "",
    positions: Mapping[str, Place] | None = None,
    limit: int = MOST_EXPORTED,
) -> Path:
    """Write a graph, ours or whatever `as_graph` makes one of, as a stand-alone HTML file and return its
    path.

    Nodes stand where `positions` (fractions of the drawing area, as in `Picture.positions`) or the plan of
    `show_graph` put them, and nothing moves them but the reader. A graph of more than `limit` nodes is drawn
    as communities. As many of them open as there is room for in about 1 MB, the largest first, and the page
    says how many. The folder is made if need be. Raises BadInput when the file cannot be written there or the
    page would fetch anything.
    """
    arrows = not is_undirected(graph)
    graph = as_graph(graph)
    path = Path(path)
    if path.suffix != ".html":
        raise BadInput(f"{path} is no name for the page: name a file that ends in .html")
    if limit < 1:
        raise BadInput(f"a page of {limit} nodes shows nothing: give a limit of 1 or more")
    text = export_page(graph, title=title, positions=positions, limit=limit, arrows=arrows)
    return write_whole(path, text, "the page")


def export_page(
    graph: PropertyGraph,
    *,
    title: str = "",
    positions: Mapping[str, Place] | None = None,
    limit: int = MOST_EXPORTED,
    arrows: bool = True,
) -> str:
    """The text of the file that `export` writes; without `arrows` lines point nowhere. Raises as it does."""
    view = show_graph(graph, positions=positions, height=_HEIGHT, most=limit, arrows=arrows)
    title = title or f"A graph with {counted(len(graph), 'node')} and {counted(len(graph.edges), 'edge')}"
    body = element(
        "main",
        element("h1", title),
        element("div", view.picture.svg, class_="still"),
        place({**view.alone(), "stands_for": key_of(view.picture.svg)}),
        element(
            "details",
            element("summary", "The same as tables"),
            element("div", table(graph, limit=200).html, class_="wide"),
        ),
    )
    page = html_document(title, page_style() + EXPORT_STYLE, body, script=page_script())
    if left := references(page, beside=True):
        raise BadInput(
            f"the page would fetch {', '.join(left[:5])}: this copy of kgot_lab was changed; install it anew"
        )
    return page
