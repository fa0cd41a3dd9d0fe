"""A graph as one HTML file to move and search, drawn by vis-network through pyvis; it works from disk and asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from kgot_lab.draw.graph.large_layout import large_layout
from kgot_lab.draw.graph.layout import Points
from kgot_lab.draw.graph.scene import Scene, scene_of
from kgot_lab.draw.graph.shapes import ROUND, Box, NodeLook, Place, look_of, shape
from kgot_lab.draw.graph.svg import svg
from kgot_lab.draw.markup import Markup, element, shortened, text_width
from kgot_lab.draw.outside import references
from kgot_lab.draw.table import table
from kgot_lab.draw.tags import Tag, tags
from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.given import as_graph
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.page import page_head
from kgot_lab.writing import write_whole

MOST_EXPORTED = 2000  # nodes; with more the drawing is a cloud
_STILL = 150  # nodes of the picture that stands there until, or unless, a script can run
WIDTH, HEIGHT = 950.0, 600.0  # pixels of the drawing; both keep the shape of that picture
SHAPES = {0: "dot", 3: "triangle", 4: "square", 5: "star", 6: "hexagon"}  # the library has no pentagon
FILES = Path(__file__).parent / "browser"
_INK = "#333333"
_FONT = 14  # pixels, before the drawing is fitted to the window
_HUBS = 30  # nodes that have a name when a large graph is seen as a whole


def export(
    graph: object, path: Path | str, *, title: str = "", positions: Mapping[str, Place] | None = None, limit: int = MOST_EXPORTED
) -> Path:
    """Write a graph, ours or whatever `as_graph` makes one of, as a stand-alone HTML file and return its path.

    Nodes stand where `positions` (fractions of the drawing area, as in `Picture.positions`) or a layout computed here put them, and
    nothing moves them but the reader. Of more than `limit` nodes the best connected are drawn, and the page says so. Raises BadInput
    when the file cannot be written there or the page would fetch anything, NotInstalled without pyvis.
    """
    graph = as_graph(graph)
    path = Path(path)
    if path.suffix != ".html" or not path.parent.is_dir():
        raise BadInput(f"{path} is no place for the page: name a file that ends in .html, in a folder that is there")
    if limit < 1:
        raise BadInput(f"a page of {limit} nodes shows nothing: give a limit of 1 or more")
    text = export_page(graph, title=title, positions=positions, limit=limit)
    return write_whole(path, text, "the page")


def export_page(graph: PropertyGraph, *, title: str = "", positions: Mapping[str, Place] | None = None, limit: int = MOST_EXPORTED) -> str:
    """The text of the file that `export` writes; raises as it does."""
    scene = scene_of(graph, None, limit)
    stand = _standing(graph, scene, positions or {})
    title = title or f"A graph with {counted(len(graph), 'node')} and {counted(len(graph.edges), 'edge')}"
    body = element(
        "main",
        element("h1", title),
        element("p", scene.left_out(", the best connected"), class_="small"),
        _moving(scene),
        element("div", svg(graph, limit=min(limit, _STILL), positions=stand).svg, class_="still"),
        element("details", element("summary", "The same as tables"), element("div", table(graph, limit=200).html, class_="wide")),
    )
    drawn = list(tags(_drawn(scene, stand), svg_is_markup=False))
    scripts = [tag.content for tag in drawn if _is_script(tag)] + [(FILES / "export.js").read_text(encoding="utf-8")]
    styles = [tag.content for tag in drawn if tag.name == "style"] + [(FILES / "export.css").read_text(encoding="utf-8")]
    head = page_head(title, "\n".join(styles), script=" ".join(map(_hash, scripts)))
    page = f"<!DOCTYPE html>\n{element('html', head, element('body', body, *map(_script, scripts)), lang='en')}\n"
    return _checked(page)


def _checked(page: str) -> str:
    """The page, if nothing in it would be fetched."""
    if left := references(page, beside=True):
        raise BadInput(f"the page would fetch {', '.join(left[:5])}; this version of pyvis is not known to work: pip install pyvis==0.3.2")
    return page


# --- the page ---------------------------------------------------------------------------------------------------------


def _hash(script: str) -> str:
    """The name of a script in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _script(text: str) -> Markup:
    return element("script", Markup(text))


def _is_script(tag: Tag) -> bool:
    """Whether a tag is a script written out in the page; those that name an address stay out."""
    return tag.name == "script" and "src" not in dict(tag.attributes)


def _moving(scene: Scene) -> Markup:
    """The drawing, and what can be done with it."""
    search = element(
        "form",
        element("label", "Find a node", for_="wanted"),
        element("input", type="search", id="wanted", autocomplete="off"),
        element("button", "Find", type="submit"),
        element("button", "Show all", type="button", id="all"),
        id="search",
    )
    hint = (
        "Drag a node to move it, the paper to move all; turn the wheel to zoom; point or click for facts. Keys: arrows, Page Up, Page Down."
    )
    return element(
        "div",
        element("div", _legend(scene), search, class_="moving"),
        element("div", id="mynetwork"),
        element("div", element("p", hint, class_="small hint"), element("div", id="facts", aria_live="polite"), class_="moving"),
    )


def _legend(scene: Scene) -> Markup:
    """The labels drawn, each with its shape and colour."""
    drawn = [label for label in scene.labels if any(node.labels[:1] == (label,) for node in scene.nodes)]
    rows: list[tuple[NodeLook, object]] = [(look_of(scene.labels.index(label)), shortened(harmless(label), 60)) for label in drawn]
    if drawn and any(not node.labels for node in scene.nodes):
        rows.append((ROUND, element("i", "no label")))
    return element("ul", *(element("li", _sample(look), text) for look, text in rows), class_="legend") if rows else Markup()


def _sample(look: NodeLook) -> Markup:
    inside = _star(look) if look.corners == 5 else shape(look, (0, 0), 7)
    return element("svg", inside, viewBox="-9 -9 18 18", aria_hidden="true")


def _star(look: NodeLook) -> Markup:
    angles = [-math.pi / 2 + math.pi / 5 * corner for corner in range(10)]
    ends = [(r * math.cos(angle), r * math.sin(angle)) for r, angle in zip((8.5, 3.8) * 5, angles, strict=True)]
    return element("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in ends), fill=look.colour, stroke=_INK, stroke_width=1)


# --- the drawing ------------------------------------------------------------------------------------------------------


def _drawn(scene: Scene, stand: Mapping[str, Place]) -> str:
    """What pyvis makes of a scene: a page, of which only the styles and scripts are of use."""
    try:
        from pyvis.network import Network
    except ImportError as error:
        raise NotInstalled("lab", "pyvis") from error
    network = Network(directed=True, cdn_resources="in_line")
    network.options = _options(len(scene.nodes), len(scene.edges))  # as it is: its own setter would drop every blank
    row = {node.id: number for number, node in enumerate(scene.nodes)}
    looks = {label: look_of(number) for number, label in enumerate(scene.labels)}
    zoom = max(1.0, math.sqrt(len(scene.nodes) / _STILL))
    hubs = _hubs(scene, stand, zoom)
    for node in sorted(scene.nodes, key=lambda node: node.id in hubs):  # hubs last, and so on top
        place = {"x": round(stand[node.id][0] * WIDTH * zoom, 1), "y": round(stand[node.id][1] * HEIGHT * zoom, 1)}
        look = looks[node.labels[0]] if node.labels else ROUND
        network.add_node(row[node.id], **place, **_node_options(node, look, zoom if node.id in hubs else 1.0))
    for edge, curve in _curves(scene.edges):
        network.add_edge(row[edge.source], row[edge.target], label=_caption(edge.type), facts=_edge_facts(edge), **curve)
    return str(network.generate_html())


def _standing(graph: PropertyGraph, scene: Scene, positions: Mapping[str, Place]) -> Mapping[str, Place]:
    """Where each node of the drawing stands, in fractions of its area: few nodes as in the still picture."""
    if len(scene.nodes) <= _STILL:
        return svg(graph, limit=len(scene.nodes), positions=positions).positions
    row = {node.id: number for number, node in enumerate(scene.nodes)}
    start: Points = np.array([positions.get(id, (np.nan, np.nan)) for id in row], dtype=float)
    pairs = np.array([(row[edge.source], row[edge.target]) for edge in scene.edges], dtype=np.intp).reshape(-1, 2)
    return dict(zip(row, ((float(x), float(y)) for x, y in large_layout(start, pairs)), strict=True))


def _hubs(scene: Scene, stand: Mapping[str, Place], zoom: float) -> frozenset[str]:
    """The best connected nodes whose names do not lie on each other when the whole drawing is seen."""
    degree = Counter(end for edge in scene.edges for end in (edge.source, edge.target))
    caption = {node.id: _caption(node.text) for node in scene.nodes}
    named: dict[str, Box] = {}
    for id, _ in degree.most_common(3 * _HUBS):
        place = stand[id][0] * WIDTH, stand[id][1] * HEIGHT
        box = Box.around(place, text_width(caption[id], _FONT + 4), 3.5 * _FONT)
        if len(named) < _HUBS and not any(box.touches(other) for other in named.values()):
            named[id] = box
    return frozenset(named) if zoom > 1 else frozenset()


def _options(nodes: int, edges: int) -> dict[str, Json]:
    """How the library draws and behaves; captions appear when they are large enough to be read."""
    font = {"face": "Helvetica, Arial, sans-serif", "size": _FONT, "color": "#111111", "strokeWidth": 3, "strokeColor": "#ffffff"}
    readable = 5 if nodes <= _STILL else 11  # pixels; of many nodes the hubs alone have a name until a reader comes closer
    between = 6 if edges <= 120 else _FONT
    return {
        "physics": {"enabled": False},
        "layout": {"improvedLayout": False},
        "interaction": {
            "hover": True,
            "hoverConnectedEdges": edges <= 500,
            "tooltipDelay": 100,
            "keyboard": {"enabled": True, "bindToWindow": False},
            "hideEdgesOnDrag": edges > 2000,
            "hideEdgesOnZoom": edges > 2000,
        },
        "nodes": {
            "font": font,
            "borderWidth": 1,
            "borderWidthSelected": 3,
            "scaling": {"label": {"enabled": False, "drawThreshold": readable}},
        },
        "edges": {
            "font": {**font, "size": _FONT - 1, "color": "#444444", "align": "horizontal"},
            "color": {"color": "#888888", "highlight": "#0072B2", "hover": "#0072B2"},
            "arrows": {"to": {"scaleFactor": 0.6}},
            "scaling": {"label": {"enabled": False, "drawThreshold": between}},
        },
    }


def _node_options(node: Node, look: NodeLook, zoom: float) -> dict[str, Json]:
    """A node as the library takes it; hubs of a large graph are drawn larger."""
    marked = {"background": look.colour, "border": "#0072B2"}
    return {
        "label": _caption(node.text),
        "facts": _node_facts(node),
        "shape": SHAPES[look.corners],
        "size": 10 if zoom == 1 else 8 * zoom,
        "font": {"size": round((_FONT if zoom == 1 else _FONT + 3) * zoom)},
        "color": {"background": look.colour, "border": _INK, "highlight": marked, "hover": marked},
    }


def _curves(edges: Sequence[Edge]) -> Iterator[tuple[Edge, dict[str, Json]]]:
    """Each edge with a curve of its own: one alone is straight, parallel ones lie side by side, loops grow."""
    beside: dict[tuple[str, str], list[Edge]] = defaultdict(list)
    for edge in edges:
        beside[min(edge.source, edge.target), max(edge.source, edge.target)].append(edge)
    for (first, second), siblings in beside.items():
        for number, edge in enumerate(siblings):
            offset = (number - (len(siblings) - 1) / 2) * min(0.3, 1.6 / len(siblings))
            turned = offset if edge.source == first else -offset
            if first == second:
                yield edge, {"selfReference": {"size": 16 + 9 * number, "angle": math.pi / 4}}
            elif offset:
                yield edge, {"smooth": {"enabled": True, "type": "curvedCW" if turned > 0 else "curvedCCW", "roundness": abs(offset)}}
            else:
                yield edge, {"smooth": {"enabled": False}}


def _caption(text: str) -> str:
    return shortened(harmless(text), 24) or " "  # pyvis would show its own number for an empty text


def _node_facts(node: Node) -> str:
    return _lines([node.text, f"id: {node.id}", f"labels: {', '.join(node.labels) or 'none'}"], node.properties)


def _edge_facts(edge: Edge) -> str:
    return _lines([f"{edge.source} --[{edge.type}]--> {edge.target}", *([f"key: {edge.key}"] if edge.key else [])], edge.properties)


def _lines(lines: list[str], properties: Mapping[str, Json]) -> str:
    values = [f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in properties.items()]
    return "\n".join(shortened(harmless(line), 300) for line in (*lines, *values))
