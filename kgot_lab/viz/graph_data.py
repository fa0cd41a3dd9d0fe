"""A view of a graph as the browser draws it: captions cut, colours chosen, a place for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from kgot_lab.draw.graph.bundles import EdgeBundle
from kgot_lab.draw.graph.collapse import Community, View, collapsed
from kgot_lab.draw.graph.places import places_of
from kgot_lab.draw.graph.scene import Highlight, Marked, marked, node_caption
from kgot_lab.draw.graph.shapes import DIFF, ROUND, NodeLook, Place, look_of
from kgot_lab.draw.markup import shortened
from kgot_lab.draw.table import cell
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Json, Node

DRAWN = 2000  # nodes of a live view
CAPTION = 24  # letters below a node
_LINE = 300  # letters of a line that one sees on pointing at something
ASPECT = 1.5  # width of the unit square over its height
_NAMED = 14  # communities that have a name when the whole is seen; the others when one comes closer
GROUP = NodeLook("#DDDDDD", 0)  # a community drawn as one


def graph_data(graph: PropertyGraph, highlight: Highlight, positions: Mapping[str, Place]) -> dict[str, Json]:
    """A graph as the browser draws it; the nodes in `positions` stay there."""
    told = marked(graph, highlight)
    return data_of(collapsed(told.graph, DRAWN, marked=told.edges), told, positions)


def data_of(view: View, told: Marked, positions: Mapping[str, Place]) -> dict[str, Json]:
    """A view as the browser draws it: `nodes`, `edges`, `legend`, and in words what is shown and what is not."""
    numbers = {label: number for number, label in enumerate(told.labels)}
    groups = {community.id: community for community in view.communities if community.hidden}
    places = places_of(view, positions=positions, aspect=ASPECT)
    more = _more(view)
    nodes = [
        _group(groups[node.id], view, places) if node.id in groups else _node(node, numbers, places) | {"more": more.get(node.id, 0)}
        for node in view.nodes
    ]
    for made in nodes:
        made["mark"] = told.nodes.get(made["id"], "")
        made["group"] = view.community_of(made["id"]) if view.communities and made["id"] not in groups else ""
    most = max((bundle.count for bundle in view.bundles), default=1)
    marks = {*told.nodes.values(), *told.edges.values()}
    return {
        "title": f"A graph with {len(told.graph):,} nodes and {len(told.graph.edges):,} edges",
        "nodes": nodes,
        "edges": [*(_edge(edge, told) for edge in view.edges), *(_bundle(bundle, most) for bundle in view.bundles)],
        "legend": _legend([node for node in view.nodes if node.id not in groups], numbers),
        "marks": ["path"] if "path" in marks else list(DIFF) if told.said else [],
        "note": " ".join(filter(None, (told.said, _inside(view, told), view.note))),
        "aspect": ASPECT,
        "total": len(told.graph) if view.communities else 0,
    }


def _node(node: Node, numbers: Mapping[str, int], places: Mapping[str, Place]) -> dict[str, Json]:
    look = look_of(numbers[node.labels[0]]) if node.labels else ROUND
    about = [f"id: {shortened(node.id, _LINE)}", f"types: {', '.join(node.labels) or 'none'}", *_lines(node.properties)]
    return _thing(node.id, node_caption(node), about, look, places) | {"kind": node.labels[0] if node.labels else ""}


def _group(community: Community, view: View, places: Mapping[str, Place]) -> dict[str, Json]:
    """A community drawn as one, named after its best connected node; its area grows with the number of nodes it hides."""
    sizes = sorted((other.hidden for other in view.communities), reverse=True)
    best = view.graph.nodes[int(view.whole.members[view.whole.number(community.id)][0])]
    about = [f"{community.hidden:,} of its {community.size:,} nodes are drawn as one", f"{community.edges:,} edges between these"]
    about += [f"{label}: {count:,}" for label, count in community.labels[:6]]
    made = _thing(community.id, community.title, about, GROUP, places)
    named = f"{shortened(node_caption(best), CAPTION)}\n{community.hidden:,} nodes"
    small = community.hidden < sizes[min(_NAMED, len(sizes)) - 1]
    size = 8 + 34 * sqrt(community.hidden / sizes[0])
    return made | {"kind": "(group)", "caption": named, "community": community.id, "size": size, "small": small}


def _thing(id: str, text: str, about: list[str], look: NodeLook, places: Mapping[str, Place]) -> dict[str, Json]:
    x, y = places.get(id, (0.5, 0.5))
    named = {"id": id, "text": shortened(text, _LINE), "caption": shortened(text, CAPTION), "hover": about}
    return named | {"colour": look.colour, "corners": look.corners, "x": round(x, 4), "y": round(y, 4)}


def _edge(edge: Edge, told: Marked) -> dict[str, Json]:
    about = [*([f"key: {edge.key}"] if edge.key else []), *_lines(edge.properties)]
    named = {"type": shortened(edge.type, _LINE), "caption": shortened(edge.type, CAPTION), "hover": about}
    return {"source": edge.source, "target": edge.target, "mark": told.edges.get(edge.identity, "")} | named


def _bundle(bundle: EdgeBundle, most: int) -> dict[str, Json]:
    """Many edges drawn as one line, the thicker the more; `most` are in the thickest."""
    about = [f"{bundle.forward:,} in this direction, {bundle.backward:,} back"]
    caption = f"{bundle.count:,}" if bundle.count > most / 2 else ""
    named = {"type": bundle.title, "caption": caption, "hover": about, "mark": "", "width": 0.6 + 4 * bundle.count / most}
    return {"source": bundle.source, "target": bundle.target, "bundle": True} | named


def _more(view: View) -> dict[str, int]:
    """For each node drawn by itself, how many of its edges lead to nodes that are not."""
    graph, singles = view.graph, len(view.shown)
    hidden = view.at >= singles
    ends = np.concatenate([graph.sources[hidden[graph.targets]], graph.targets[hidden[graph.sources]]])
    counts = np.bincount(ends, minlength=len(graph))
    return {graph.ids[row]: int(counts[row]) for row in view.shown.tolist() if counts[row]}


def _inside(view: View, told: Marked) -> str:
    """How many of the marked nodes are not drawn by themselves."""
    hidden = sum(view.drawn_as(id) != id for id in told.nodes if id in view.graph) if view.communities else 0
    return f"{hidden:,} of {len(told.nodes):,} marked nodes are inside groups." if hidden else ""


def _lines(values: Mapping[str, Json]) -> list[str]:
    """A line for each property, provenance included."""
    return [shortened(f"{name}: {cell(value)}", _LINE) for name, value in values.items()]


def _legend(nodes: Sequence[Node], numbers: Mapping[str, int]) -> list[dict[str, Json]]:
    counts = Counter(node.labels[0] if node.labels else "" for node in nodes)
    ordered = sorted(counts, key=lambda label: (label == "", numbers.get(label, 0)))
    looks = {label: look_of(numbers[label]) if label else ROUND for label in ordered}
    return [{"label": label, "count": counts[label], "colour": looks[label].colour, "corners": looks[label].corners} for label in ordered]
