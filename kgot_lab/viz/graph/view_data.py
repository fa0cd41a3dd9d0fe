"""Render a scene as JSON for the live view, with shortened captions, colours and positions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from kgot_lab.graph import PropertyGraph
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Json, Node
from kgot_lab.viz.graph.collapse import View, collapsed, entered
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community, EdgeBundle
from kgot_lab.viz.graph.marks import ROUND, Highlight, Marked, Place, look_of, marked
from kgot_lab.viz.graph.places import places_of
from kgot_lab.viz.graph.scene import (
    PLANNED,
    DrawingPlan,
    EdgePlan,
    NodePlan,
    Scene,
    drawing_plan,
    scene_of_view,
)
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import cell

DRAWN = 2000  # maximum nodes of a live view
NAMELESS = "\u2063"  # encodes an empty id in the browser, whose graphs do not allow one
CAPTION = 24  # maximum characters of a caption
_LINE = 300  # maximum characters of a line of a tooltip
ASPECT = 1.5  # width of the unit square over its height
_NAMED = 14  # communities with a name in the whole view; the others get theirs on zooming in
AREA = 780.0, 440.0  # planned pixels of a live view without static picture; a smaller one is scaled down
_LINES_PLANNED = 4 * PLANNED


def graph_data(graph: PropertyGraph, highlight: Highlight, positions: Mapping[str, Place]) -> dict[str, Json]:
    """Return the data with which the browser draws a graph.

    Nodes in `positions` stay there.
    """
    told = marked(graph, highlight)
    return data_of(collapsed(told.graph, DRAWN, marked=told.edges), told, positions)


def data_of(
    view: View, told: Marked, positions: Mapping[str, Place], plan: DrawingPlan | None = None
) -> dict[str, Json]:
    """Return the data with which the browser draws a view.

    It has `nodes`, `edges`, `legend`, and texts on what is shown and what is not. A small view has a plan:
    that of its still picture if given, else a new one in which nodes keep their `positions`.
    """
    scene = scene_of_view(view, told)
    if plan is None and len(scene.nodes) <= PLANNED and len(scene.lines) <= _LINES_PLANNED:
        plan = drawing_plan(scene, AREA, positions=positions)
    places = plan.fractions() if plan else places_of(view, positions=positions, aspect=ASPECT)
    return scene_data(replace(scene, plan=plan, places=places), view)


def scene_data(scene: Scene, view: View) -> dict[str, Json]:
    """Convert a scene with positions to JSON."""
    told, plan, more = scene.marked, scene.plan, _more(view)
    nodes = [
        _group(scene, node)
        if node.id in scene.groups
        else _node(scene, node) | {"more": more.get(node.id, 0)}
        for node in scene.nodes
    ]
    for made in nodes:
        made["mark"] = told.nodes.get(made["id"], "")
        alone = view.communities and made["id"] not in scene.groups
        made["group"] = view.community_of(made["id"]) if alone else ""
        if plan:
            made |= _node_plan(plan.nodes[made["id"]])
    edges = [*(_edge(edge, told) for edge in scene.edges), *(_bundle(scene, each) for each in scene.bundles)]
    for made, edge in zip(edges, scene.lines, strict=True):
        if plan and edge.identity in plan.edges:
            made |= _edge_plan(plan.edges[edge.identity], plan.area)
    for made in (*nodes, *edges):
        made |= {end: made[end] or NAMELESS for end in ("id", "source", "target") if end in made}
    notes = (told.said, _inside(view, told), view.note, *(plan.notes if plan else ()))
    return {
        "title": scene.title,
        "nodes": nodes,
        "edges": edges,
        "legend": _legend(scene),
        "marks": list(scene.kinds_of_marks),
        "note": " ".join(filter(None, notes)),
        "type_of_all": scene.type_of_all if plan else "",
        "aspect": ASPECT,
        "plan": _type_sizes(plan) if plan else None,
        "total": len(told.graph) if view.communities else 0,
        "inside": view.whole.outer is not None,
        # some tooltips are cut, so only Python can search the full text
        "cut": any(line.endswith("…") for thing in (*nodes, *edges) for line in thing["hover"]),
    }


def _type_sizes(plan: DrawingPlan) -> dict[str, Json]:
    width, height = plan.area
    return {"width": width, "height": height, "name": plan.name_size, "word": plan.word_size}


def _node(scene: Scene, node: Node) -> dict[str, Json]:
    about = [f"id: {shortened(node.id, _LINE)}", f"types: {', '.join(node.labels) or 'none'}"]
    return _thing(scene, node, scene.caption(node), [*about, *_lines(node.properties)]) | {
        "kind": node.labels[0] if node.labels else ""
    }


def _group(scene: Scene, node: Node) -> dict[str, Json]:
    """Return the data of a collapsed community, named after its best connected node."""
    community = scene.groups[node.id]
    sizes = sorted((other.hidden for other in scene.groups.values()), reverse=True)
    about = [
        f"{community.hidden:,} of its {community.size:,} nodes are drawn as one",
        f"{community.edges:,} edges between these",
        *(f"{label}: {count:,}" for label, count in community.labels[:6]),
    ]
    return _thing(scene, node, community.title, about) | {
        "kind": "(group)",
        "caption": community.name,
        "community": node.id,
        "size": scene.sizes[node.id],
        "small": community.hidden < sizes[min(_NAMED, len(sizes)) - 1],
    }


def _thing(scene: Scene, node: Node, text: str, about: list[str]) -> dict[str, Json]:
    (x, y), look = scene.places.get(node.id, (0.5, 0.5)), scene.look(node)
    named = {
        "id": node.id,
        "text": shortened(text, _LINE),
        "caption": shortened(text, CAPTION),
        "hover": about,
    }
    return named | {"colour": look.colour, "corners": look.corners, "x": round(x, 4), "y": round(y, 4)}


def _edge(edge: Edge, told: Marked) -> dict[str, Json]:
    about = [*([f"key: {edge.key}"] if edge.key else []), *_lines(edge.properties)]
    named = {"type": shortened(edge.type, _LINE), "caption": shortened(edge.type, CAPTION), "hover": about}
    return {"source": edge.source, "target": edge.target, "mark": told.edges.get(edge.identity, "")} | named


def _bundle(scene: Scene, bundle: EdgeBundle) -> dict[str, Json]:
    """Return the data of a bundle: many edges drawn as one line, with a width by their number."""
    return {
        "source": bundle.source,
        "target": bundle.target,
        "bundle": True,
        "type": bundle.title,
        "caption": scene.bundle_caption(bundle),
        "hover": [f"{bundle.forward:,} in this direction, {bundle.backward:,} back"],
        "mark": "",
        "width": 0.6 + 4 * bundle.count / scene.most,
    }


def _node_plan(planned: NodePlan) -> dict[str, Json]:
    """Return the size of a node, and the lines and position of its name.

    The position is the offset in pixels from the node's centre to the name's.
    """
    beside, size = [round(along, 1) for along in planned.beside], round(2 * planned.radius, 1)
    return {"size": size, "caption": "\n".join(planned.lines), "beside": beside, "named": planned.named}


def _edge_plan(planned: EdgePlan, area: Place) -> dict[str, Json]:
    """Return the control point of an edge and the position of its label, as fractions of the area."""
    places = (planned.control, planned.at)
    control, at = ([round(place[axis] / area[axis], 4) for axis in (0, 1)] for place in places)
    return {"caption": "\n".join(planned.lines), "control": control, "at": at, "worded": planned.worded}


def _more(view: View) -> dict[str, int]:
    """Return for each node drawn individually how many of its edges lead to hidden nodes."""
    graph, singles = view.graph, len(view.shown)
    hidden = view.at >= singles
    ends = np.concatenate([graph.sources[hidden[graph.targets]], graph.targets[hidden[graph.sources]]])
    counts = np.bincount(ends, minlength=len(graph))
    return {graph.ids[row]: int(counts[row]) for row in view.shown.tolist() if counts[row]}


def _inside(view: View, told: Marked) -> str:
    """Return a sentence with the number of marked nodes inside groups, or ""."""
    hidden = sum(view.drawn_as(id) != id for id in told.nodes if id in view.graph) if view.communities else 0
    return f"{hidden:,} of {len(told.nodes):,} marked nodes are inside groups." if hidden else ""


def _lines(values: Mapping[str, Json]) -> list[str]:
    """Return a line for each property, provenance included."""
    return [shortened(f"{name}: {cell(value)}", _LINE) for name, value in values.items()]


def _legend(scene: Scene) -> list[dict[str, Json]]:
    """Return the first labels of the drawn nodes, with their looks and node counts."""
    nodes = [node for node in scene.nodes if node.id not in scene.groups]
    counts = Counter(node.labels[0] if node.labels else "" for node in nodes)
    looks = {label: look_of(number) for number, label in enumerate(scene.labels)} | {"": ROUND}
    return [
        {"label": label, "count": counts[label], "colour": look.colour, "corners": look.corners}
        for label, look in looks.items()
        if counts[label]
    ]


# Groups that open on a page without Python: prepared views, as many as fit.

_MOST = 1_000_000  # characters of JSON, for all views together
_LEVELS = 2  # levels: groups of the whole graph, and the groups inside them
_MISSES = 3  # stop after so many views without room, since each takes about a second
NOTHING_OPENS = "On this page groups stay closed: opening one, and searching among the nodes inside, needs a running notebook."
_ALL_OPEN = (
    "On this page groups open; showing neighbours of a node that are not drawn needs a running notebook."
)


@dataclass(frozen=True, eq=False)
class _Kept:
    """A view, the one from which it was opened, and the keys of what its groups open into.

    The key "" leads out.
    """

    view: View
    outer: _Kept | None = None
    opens: dict[str, str] = field(default_factory=dict)

    def own(self) -> list[Community]:
        """Return the groups in it, except the neighbours of the opened group."""
        return [group for group in self.view.communities if group.hidden and not self._is_neighbour(group)]

    def lead_on(self) -> None:
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
    view: View, told: Marked, positions: Mapping[str, Place], *, most: int = _MOST
) -> dict[str, Json]:
    """Return the data that lets groups open on a page without Python, or an empty dict if there are none.

    `opens` maps the id of a group to the key of what it opens into. `kept` has the data for each key, each
    with its own `opens`. The groups of the view come first, then those inside them, the largest first, until
    the JSON exceeds `most` characters. `alone` describes what still needs Python.
    """
    if not view.communities:
        return {}
    top, missed = _Kept(view), 0
    level, every = [top], [top]
    kept: dict[str, Json] = {}
    for _ in range(_LEVELS):
        pairs = [(group, around) for around in level for group in around.own()]
        groups = sorted(pairs, key=lambda pair: -pair[0].hidden)
        level = []
        for group, around in groups:
            if missed == _MISSES:
                break
            inside = _Kept(entered(around.view, group.id), around)
            data = data_of(inside.view, told, positions)
            letters = len(json.dumps(data, default=str, separators=(",", ":")))
            if letters > most:
                missed += 1
                continue
            most -= letters
            key = around.opens[group.id] = str(len(kept))
            kept[key] = {**data, "opens": inside.opens}
            level.append(inside)
            every.append(inside)
    for each in every[1:]:
        each.lead_on()
    alone = _needing_python(len(kept), sum(len(each.own()) for each in every))
    return {"opens": top.opens, "kept": kept, "alone": alone}


def _needing_python(opening: int, groups: int) -> str:
    """Describe what a reader cannot do without Python, if this many of the groups open."""
    if not opening:
        return NOTHING_OPENS
    if opening == groups:
        return _ALL_OPEN
    others = "opening the others, searching among the nodes inside these, and showing neighbours that are not drawn"
    return f"On this page {opening:,} of {format_count(groups, 'group')} open; {others} needs a running notebook."
