"""Render a scene as JSON for the live view, with shortened captions, colours and positions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import UNLABELLED_LOOK, encoded_size, encoded_width
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.collapse import View, collapse_graph, open_community
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community, EdgeBundle
from kgot_lab.viz.graph.marks import Highlight, MarkedGraph, Point, mark_graph
from kgot_lab.viz.graph.places import view_positions
from kgot_lab.viz.graph.scene import (
    MAX_PLANNED_NODES,
    DrawingPlan,
    EdgePlan,
    NodePlan,
    Scene,
    drawing_plan,
    view_scene,
)
from kgot_lab.viz.static.markup import shorten
from kgot_lab.viz.static.table import format_cell

MAX_NODES_DRAWN = 2000  # maximum nodes of a live view
EMPTY_ID = "\u2063"  # encodes an empty id in the browser, whose graphs do not allow one
MAX_CAPTION_LENGTH = 24  # maximum characters of a caption
_MAX_LINE_LENGTH = 300  # maximum characters of a line of a tooltip
ASPECT = 1.5  # width of the unit square over its height
_MAX_NAMED_GROUPS = 14  # communities with a name in the whole view; the others get theirs on zooming in
PLAN_AREA = 780.0, 440.0  # planned pixels of a live view without static picture; a smaller one is scaled down
_MAX_PLANNED_LINES = 4 * MAX_PLANNED_NODES


def graph_data(graph: PropertyGraph, highlight: Highlight, positions: Mapping[str, Point]) -> dict[str, Json]:
    """Return the data with which the browser draws a graph.

    Nodes in `positions` stay there.
    """
    marks = mark_graph(graph, highlight)
    return view_data(collapse_graph(marks.graph, MAX_NODES_DRAWN, marked=marks.edges), marks, positions)


def view_data(
    view: View, marks: MarkedGraph, positions: Mapping[str, Point], plan: DrawingPlan | None = None
) -> dict[str, Json]:
    """Return the data with which the browser draws a view.

    It has `nodes`, `edges`, `legend`, and texts on what is shown and what is not. A small view has a plan:
    that of its still picture if given, else a new one in which nodes keep their `positions`.
    """
    scene, hidden_edges = view_scene(view, marks), _hidden_edge_counts(view)
    if plan is None and len(scene.nodes) <= MAX_PLANNED_NODES and len(scene.lines) <= _MAX_PLANNED_LINES:
        plan = drawing_plan(scene, PLAN_AREA, positions=positions)
    places = plan.fractions() if plan else view_positions(view, positions=positions, aspect=ASPECT)
    scene = replace(scene, plan=plan, places=places)
    nodes = [
        _group_data(scene, node)
        if node.id in scene.groups
        else _node_data(scene, node) | {"more": hidden_edges.get(node.id, 0)}
        for node in scene.nodes
    ]
    for item in nodes:
        item["mark"] = marks.nodes.get(item["id"], "")
        is_single = view.communities and item["id"] not in scene.groups
        item["group"] = view.community_of(item["id"]) if is_single else ""
        if plan:
            item |= _node_plan_data(plan.nodes[item["id"]])
    bundles = (_bundle_data(scene, bundle) for bundle in scene.bundles)
    edges = [*(_edge_data(edge, marks) for edge in scene.edges), *bundles]
    for item, edge in zip(edges, scene.lines, strict=True):
        if plan and edge.identity in plan.edges:
            item |= _edge_plan_data(plan.edges[edge.identity], plan.area)
    for item in (*nodes, *edges):
        item |= {end: item[end] or EMPTY_ID for end in ("id", "source", "target") if end in item}
    notes = (marks.said, _hidden_marks_note(view, marks), view.note, *(plan.notes if plan else ()))
    return {
        "title": scene.title,
        "nodes": nodes,
        "edges": edges,
        "legend": _legend_data(scene),
        "scales": scene.encoding.legend,
        "marks": list(scene.kinds_of_marks),
        "note": " ".join(filter(None, notes)),
        "type_of_all": scene.type_of_all if plan else "",
        "aspect": ASPECT,
        "plan": _type_sizes(plan) if plan else None,
        "total": len(marks.graph) if view.communities else 0,
        "inside": view.whole.outer is not None,
        # some tooltips are cut, so only Python can search the full text
        "cut": any(line.endswith("…") for thing in (*nodes, *edges) for line in thing["hover"]),
    }


def _type_sizes(plan: DrawingPlan) -> dict[str, Json]:
    width, height = plan.area
    return {"width": width, "height": height, "name": plan.name_size, "word": plan.word_size}


def _node_data(scene: Scene, node: Node) -> dict[str, Json]:
    hover = [shorten(line, _MAX_LINE_LENGTH) for line in scene.encoding.describe(node)]
    data = _item_data(scene, node, scene.caption(node), [*hover, *_property_lines(node.properties)])
    encoding = scene.encoding
    size = {"size": 2 * encoded_size(encoding.sizes.get(node.id, 0.0), 5, 18)} if encoding.sizes else {}
    return data | {"kind": encoding.kind(node)} | size


def _group_data(scene: Scene, node: Node) -> dict[str, Json]:
    """Return the data of a collapsed community, named after its best connected node."""
    community = scene.groups[node.id]
    sizes = sorted((other.hidden for other in scene.groups.values()), reverse=True)
    hover = [
        f"{community.hidden:,} of its {format_count(community.size, 'node')} are drawn as one",
        f"{format_count(community.edges, 'edge')} between these",
        *(f"{label}: {count:,}" for label, count in community.labels[:6]),
    ]
    return _item_data(scene, node, community.title, hover) | {
        "kind": scene.group_kind(node) or "(group)",
        "caption": community.name,
        "community": node.id,
        "size": scene.sizes[node.id],
        "small": community.hidden < sizes[min(_MAX_NAMED_GROUPS, len(sizes)) - 1],
    }


def _item_data(scene: Scene, node: Node, text: str, hover: list[str]) -> dict[str, Json]:
    (x, y), look = scene.places.get(node.id, (0.5, 0.5)), scene.look(node)
    short, caption = shorten(text, _MAX_LINE_LENGTH), shorten(text, MAX_CAPTION_LENGTH)
    texts = {"id": node.id, "text": short, "caption": caption, "hover": hover}
    return texts | {"colour": look.colour, "corners": look.corners, "x": round(x, 4), "y": round(y, 4)}


def _edge_data(edge: Edge, marks: MarkedGraph) -> dict[str, Json]:
    hover = [*([f"key: {edge.key}"] if edge.key else []), *_property_lines(edge.properties)]
    type, caption = shorten(edge.type, _MAX_LINE_LENGTH), shorten(edge.type, MAX_CAPTION_LENGTH)
    texts = {"type": type, "caption": caption, "hover": hover}
    widths, mark = marks.encoding.widths, marks.edges.get(edge.identity, "")
    width = {"width": encoded_width(widths.get(edge.identity, 0.0))} if widths else {}
    look = marks.encoding.edge_look(edge.source, edge.target)
    colour = {"colour": look.colour} if look else {}
    return {"source": edge.source, "target": edge.target, "mark": mark} | texts | width | colour


def _bundle_data(scene: Scene, bundle: EdgeBundle) -> dict[str, Json]:
    """Return the data of a bundle: many edges drawn as one line, with a width by their number."""
    return {
        "source": bundle.source,
        "target": bundle.target,
        "type": bundle.title,
        "bundle": True,
        "mark": "",
        "caption": scene.bundle_caption(bundle),
        "hover": [f"{bundle.forward:,} in this direction, {bundle.backward:,} back"],
        "width": 0.6 + 4 * bundle.count / scene.most,
    }


def _node_plan_data(planned: NodePlan) -> dict[str, Json]:
    """Return the size of a node, and the lines and position of its name.

    The position is the offset in pixels from the node's centre to the name's.
    """
    offset, size = [round(along, 1) for along in planned.beside], round(2 * planned.radius, 1)
    return {"size": size, "caption": "\n".join(planned.lines), "beside": offset, "named": planned.named}


def _edge_plan_data(planned: EdgePlan, area: Point) -> dict[str, Json]:
    """Return the control point of an edge and the position of its label, as fractions of the area."""
    places = (planned.control, planned.at)
    control, at = ([round(place[axis] / area[axis], 4) for axis in (0, 1)] for place in places)
    return {"caption": "\n".join(planned.lines), "control": control, "at": at, "worded": planned.worded}


def _hidden_edge_counts(view: View) -> dict[str, int]:
    """Return for each node drawn individually how many of its edges lead to hidden nodes."""
    graph, singles = view.graph, len(view.shown)
    hidden = view.at >= singles
    ends = np.concatenate([graph.sources[hidden[graph.targets]], graph.targets[hidden[graph.sources]]])
    counts = np.bincount(ends, minlength=len(graph))
    return {graph.ids[row]: int(counts[row]) for row in view.shown.tolist() if counts[row]}


def _hidden_marks_note(view: View, marks: MarkedGraph) -> str:
    """Return a sentence with the number of marked nodes inside groups, or ""."""
    hidden = sum(view.drawn_as(id) != id for id in marks.nodes if id in view.graph) if view.communities else 0
    return f"{hidden:,} of {len(marks.nodes):,} marked nodes are inside groups." if hidden else ""


def _property_lines(values: Mapping[str, Json]) -> list[str]:
    """Return a line for each property, provenance included."""
    return [shorten(f"{name}: {format_cell(value)}", _MAX_LINE_LENGTH) for name, value in values.items()]


def _legend_data(scene: Scene) -> list[dict[str, Json]]:
    """Return the kinds of the drawn nodes, with their names, looks and node counts."""
    encoding = scene.encoding
    counts = Counter(encoding.kind(node) for node in scene.nodes if node.id not in scene.groups)
    if scene.view and scene.groups and encoding.kinds is not None:  # groups are coloured by it, too
        counts = Counter(encoding.kinds.get(id, "") for id in scene.view.graph.ids)
    looks = {**encoding.looks, "": UNLABELLED_LOOK}
    return [
        {
            "label": kind,
            "name": shorten(kind, 40) or encoding.no_kind,
            "count": counts[kind],
            "colour": look.colour,
            "corners": look.corners,
        }
        for kind, look in looks.items()
        if counts[kind] and set(counts) != {""}
    ]


# Groups that open on a page without Python: prepared views, as many as fit.

_MAX_JSON_LENGTH = 1_000_000  # characters of JSON, for all views together
_MAX_LEVELS = 2  # levels: groups of the whole graph, and the groups inside them
_MAX_MISSES = 3  # stop after so many views without room, since each takes about a second
NO_GROUP_OPENS = "On this page groups stay closed: opening one, and searching among the nodes inside, needs a running notebook."
_ALL_OPEN = "On this page groups open; drawing more neighbours of a node needs a running notebook."


@dataclass(frozen=True, eq=False)
class _OpenableView:
    """A view, the one from which it was opened, and the keys of what its groups open into.

    The key "" leads out.
    """

    view: View
    outer: _OpenableView | None = None
    opens: dict[str, str] = field(default_factory=dict)

    def own_groups(self) -> list[Community]:
        """Return the groups in it, except the neighbours of the opened group."""
        return [group for group in self.view.communities if group.hidden and not self._is_neighbour(group)]

    def link_neighbours(self) -> None:
        """Set what the groups beside the opened one open into.

        They open as in the outer view. The group of everything else leads out.
        """
        for group in filter(self._is_neighbour, self.view.communities):
            if self.outer and group.kind == EVERYTHING_ELSE:
                self.opens[group.id] = ""
            elif self.outer and group.id in self.outer.opens:
                self.opens[group.id] = self.outer.opens[group.id]

    def _is_neighbour(self, group: Community) -> bool:
        return self.view.whole.number(group.id) in self.view.whole.outside


def group_views(
    view: View, marks: MarkedGraph, positions: Mapping[str, Point], *, budget: int = _MAX_JSON_LENGTH
) -> dict[str, Json]:
    """Return the data that lets groups open on a page without Python, or an empty dict if there are none.

    `opens` maps the id of a group to the key of what it opens into. `kept` has the data for each key, each
    with its own `opens`. The groups of the view come first, then those inside them, the largest first, until
    the JSON exceeds `budget` characters. `alone` describes what still needs Python.
    """
    if not view.communities:
        return {}
    top, misses = _OpenableView(view), 0
    level, all_views = [top], [top]
    views: dict[str, Json] = {}
    for _ in range(_MAX_LEVELS):
        pairs = [(group, outer) for outer in level for group in outer.own_groups()]
        groups = sorted(pairs, key=lambda pair: -pair[0].hidden)
        level = []
        for group, outer in groups:
            if misses == _MAX_MISSES:
                break
            inner = _OpenableView(open_community(outer.view, group.id), outer)
            data = view_data(inner.view, marks, positions)
            length = len(json.dumps(data, default=str, separators=(",", ":")))
            if length > budget:
                misses += 1
                continue
            budget -= length
            key = outer.opens[group.id] = str(len(views))
            views[key] = {**data, "opens": inner.opens}
            level.append(inner)
            all_views.append(inner)
    for group_view in all_views[1:]:
        group_view.link_neighbours()
    note = _python_note(len(views), sum(len(group_view.own_groups()) for group_view in all_views))
    return {"opens": top.opens, "kept": views, "alone": note}


def _python_note(open_count: int, group_count: int) -> str:
    """Describe what a reader cannot do without Python, if this many of the groups open."""
    if not open_count:
        return NO_GROUP_OPENS
    if open_count == group_count:
        return _ALL_OPEN
    closed_actions = "opening the others, searching among the nodes inside these, and showing neighbours that are not drawn"
    return f"On this page {open_count:,} of {format_count(group_count, 'group')} open; {closed_actions} needs a running notebook."
