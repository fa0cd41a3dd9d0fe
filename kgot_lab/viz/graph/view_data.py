"""A view of a graph as the browser draws it: captions cut, colours chosen, a place for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.bundles import EdgeBundle
from kgot_lab.viz.graph.collapse import View, collapsed
from kgot_lab.viz.graph.communities import THE_REST, WITHOUT_EDGES
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community
from kgot_lab.viz.graph.places import places_of
from kgot_lab.viz.graph.plan import PLANNED, DrawingPlan, DrawingTask, EdgePlan, NodePlan, drawing_plan
from kgot_lab.viz.graph.scene import Highlight, Marked, kinds_of_marks, marked, node_caption
from kgot_lab.viz.graph.shapes import ROUND, NodeLook, Place, look_of
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import cell

DRAWN = 2000  # nodes of a live view
NAMELESS = "\u2063"  # what stands for an empty id in the browser, whose graphs have none
CAPTION = 24  # letters below a node
_LINE = 300  # letters of a line that one sees on pointing at something
ASPECT = 1.5  # width of the unit square over its height
_NAMED = 14  # communities that have a name when the whole is seen; the others when one comes closer
AREA = (
    780.0,
    440.0,
)  # pixels for which a live view is planned that has no still picture; a smaller one is drawn smaller
_LINES_PLANNED = 4 * PLANNED
_NO_COMMUNITY = (
    WITHOUT_EDGES,
    THE_REST,
    EVERYTHING_ELSE,
)  # what is drawn smaller, since its number says little
GROUP = NodeLook("#DDDDDD", 0)  # a community drawn as one


def graph_data(graph: PropertyGraph, highlight: Highlight, positions: Mapping[str, Place]) -> dict[str, Json]:
    """A graph as the browser draws it; the nodes in `positions` stay there."""
    told = marked(graph, highlight)
    return data_of(collapsed(told.graph, DRAWN, marked=told.edges), told, positions)


def data_of(
    view: View, told: Marked, positions: Mapping[str, Place], plan: DrawingPlan | None = None
) -> dict[str, Json]:
    """A view as the browser draws it: `nodes`, `edges`, `legend`, and in words what is shown and what is not.

    A small one has a plan: that of its still picture, if one is given, or else a new one, in which nodes keep
    their `positions`.
    """
    numbers = {label: number for number, label in enumerate(told.labels)}
    groups = {community.id: community for community in view.communities if community.hidden}
    if plan is None and len(view.nodes) <= PLANNED and len(view.edges) + len(view.bundles) <= _LINES_PLANNED:
        plan = drawing_plan(_drawn(view, told, groups), AREA, positions=positions)
    places = plan.fractions() if plan else places_of(view, positions=positions, aspect=ASPECT)
    more = _more(view)
    nodes = [
        _group(groups[node.id], view, places)
        if node.id in groups
        else _node(node, numbers, places) | {"more": more.get(node.id, 0)}
        for node in view.nodes
    ]
    for made in nodes:
        made["mark"] = told.nodes.get(made["id"], "")
        made["group"] = view.community_of(made["id"]) if view.communities and made["id"] not in groups else ""
        if plan:
            made |= _node_plan(plan.nodes[made["id"]])
    most = max((bundle.count for bundle in view.bundles), default=1)
    edges = [*(_edge(edge, told) for edge in view.edges), *(_bundle(bundle, most) for bundle in view.bundles)]
    for made, edge in zip(edges, _edges_of(view), strict=True):
        if plan and edge.identity in plan.edges:
            made |= _edge_plan(plan.edges[edge.identity], plan.area)
    for made in (*nodes, *edges):
        made |= {end: made[end] or NAMELESS for end in ("id", "source", "target") if end in made}
    return {
        "title": f"A graph with {len(told.graph):,} nodes and {len(told.graph.edges):,} edges",
        "nodes": nodes,
        "edges": edges,
        "legend": _legend([node for node in view.nodes if node.id not in groups], numbers),
        "marks": list(kinds_of_marks(told.said, {*told.nodes.values(), *told.edges.values()})),
        "note": " ".join(
            filter(None, (told.said, _inside(view, told), view.note, *(plan.notes if plan else ())))
        ),
        "type_of_all": plan.type_of_all if plan else "",
        "aspect": ASPECT,
        "plan": {
            "width": plan.area[0],
            "height": plan.area[1],
            "name": plan.name_size,
            "word": plan.word_size,
        }
        if plan
        else None,
        "total": len(told.graph) if view.communities else 0,
        "inside": view.whole.outer is not None,
        "cut": any(
            line.endswith("…") for thing in (*nodes, *edges) for line in thing["hover"]
        ),  # Python has more that can be searched
    }


def _node(node: Node, numbers: Mapping[str, int], places: Mapping[str, Place]) -> dict[str, Json]:
    look = look_of(numbers[node.labels[0]]) if node.labels else ROUND
    about = [
        f"id: {shortened(node.id, _LINE)}",
        f"types: {', '.join(node.labels) or 'none'}",
        *_lines(node.properties),
    ]
    return _thing(node.id, node_caption(node), about, look, places) | {
        "kind": node.labels[0] if node.labels else ""
    }


def _group(community: Community, view: View, places: Mapping[str, Place]) -> dict[str, Json]:
    """A community drawn as one, named after its best connected node; its area grows with the number of nodes
    it hides.
    """
    sizes = sorted((other.hidden for other in view.communities), reverse=True)
    about = [
        f"{community.hidden:,} of its {community.size:,} nodes are drawn as one",
        f"{community.edges:,} edges between these",
    ]
    about += [f"{label}: {count:,}" for label, count in community.labels[:6]]
    made = _thing(community.id, community.title, about, GROUP, places)
    small = community.hidden < sizes[min(_NAMED, len(sizes)) - 1]
    return made | {
        "kind": "(group)",
        "caption": community.name,
        "community": community.id,
        "size": _size(community, view),
        "small": small,
    }


def _size(community: Community, view: View) -> float:
    """The pixels from side to side of a community drawn as one: its area grows with the number of nodes it
    hides.
    """
    largest = max((each.hidden for each in view.communities if each.kind not in _NO_COMMUNITY), default=0)
    return 8 + 34 * sqrt(min(community.hidden / max(largest, 1), 1.0)) * (
        0.5 if community.kind in _NO_COMMUNITY else 1
    )


def _thing(
    id: str, text: str, about: list[str], look: NodeLook, places: Mapping[str, Place]
) -> dict[str, Json]:
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
    named = {
        "type": bundle.title,
        "caption": caption,
        "hover": about,
        "mark": "",
        "width": 0.6 + 4 * bundle.count / most,
    }
    return {"source": bundle.source, "target": bundle.target, "bundle": True} | named


# --- plans
# ----------------------------------------------------------------------------------------------------------------


def _drawn(view: View, told: Marked, groups: Mapping[str, Community]) -> DrawingTask:
    """What is to be planned of a view: a group has a node of its size and with its name, a bundle an edge."""
    nodes = [
        Node(node.id, (), {"name": groups[node.id].name}) if node.id in groups else node
        for node in view.nodes
    ]
    radii = {id: _size(group, view) / 2 for id, group in groups.items()}
    return DrawingTask(nodes, _edges_of(view), told.nodes, told.edges, radii)


def _edges_of(view: View) -> list[Edge]:
    """The edges of a view, and one for each bundle, called as the line is."""
    most = max((bundle.count for bundle in view.bundles), default=1)
    return [
        *view.edges,
        *(
            Edge(each.source, _bundle(each, most)["caption"], each.target, key=" bundle")
            for each in view.bundles
        ),
    ]


def _node_plan(planned: NodePlan) -> dict[str, Json]:
    """How large a node is, and where its name is in how many lines: pixels from its middle to the name's."""
    beside = [round(along, 1) for along in planned.beside]
    return {
        "size": round(2 * planned.radius, 1),
        "caption": "\n".join(planned.lines),
        "beside": beside,
        "named": planned.named,
    }


def _edge_plan(planned: EdgePlan, area: Place) -> dict[str, Json]:
    """The bend of an edge, and where its words are, as fractions of the area."""
    control, at = (
        [round(place[axis] / area[axis], 4) for axis in (0, 1)] for place in (planned.control, planned.at)
    )
    return {"caption": "\n".join(planned.lines), "control": control, "at": at, "worded": planned.worded}


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
    return [
        {
            "label": label,
            "count": counts[label],
            "colour": looks[label].colour,
            "corners": looks[label].corners,
        }
        for label in ordered
    ]
