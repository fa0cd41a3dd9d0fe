"""Pictures of query results: scores by retriever, an impact as rings, two nodes by their dimensions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

import numpy as np

from kgot_lab.errors import require_count
from kgot_lab.evaluation.tables import format_decimal
from kgot_lab.experts.chat.chat_events import ThoughtNode
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.encoding import label_encoding
from kgot_lab.kgos.methods.dimensions import DimensionProfile
from kgot_lab.kgos.methods.impact_analysis import Impact, Impacted
from kgot_lab.kgos.methods.search.results import ScoredNode, SearchResult
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Edge, Node
from kgot_lab.viz.explorer.hits import RETRIEVER_PENS
from kgot_lab.viz.graph.svg import svg
from kgot_lab.viz.plots.figure import (
    GRID,
    MUTED,
    Plot,
    annotate,
    bar_plot,
    empty_plot,
    new_figure,
    plot,
    short_label,
)
from kgot_lab.viz.static.drawing import Drawing
from kgot_lab.viz.static.table import sheet

# Scored nodes as stacked bars, of a search and of an answer of an expert.


def search_picture(found: SearchResult, *, limit: int = 8) -> Plot:
    """Plot the scores of the first nodes of a search, under its intent, weights, and what is not drawn.

    `table` of the plot has every node with its parts.
    """
    require_count(limit, 1, "limit", "it is how many nodes are drawn")
    best, shown = found.intents.best, found.nodes[:limit]
    intent = f"{best.name}, {best.score:g}" if best else "none found"
    weights = (f"{name} {format_decimal(getattr(found.weights, name))}" for name in RETRIEVER_PENS)
    used = {found.followed[node.id].seed for node in shown if node.id in found.followed}
    lines = (
        f"Answers to {found.query!r}",
        f"Intent: {intent}. Purpose: {found.intents.purpose}. Weights: {', '.join(weights)}.",
        f"Drawn: {len(shown)} of {format_count(len(found.nodes), 'node')}, the table has all."
        f" Seeds: {len(found.seeds)}, of which {len(used)} led to a node that is drawn.",
    )
    return score_plot(found.nodes, {name: name for name in RETRIEVER_PENS}, lines, limit)


def score_plot(
    nodes: Sequence[ScoredNode | ThoughtNode], retrievers: Mapping[str, str], lines: Sequence[str], limit: int
) -> Plot:
    """Plot the scores of the first nodes as stacked bars, a part for each retriever, and the paths to them.

    `retrievers` has the field of a node by the name of a retriever. `lines` are above the bars.
    """
    rows: list[dict[str, Any]] = []
    bars, described = [], []
    for rank, node in enumerate(nodes, start=1):
        parts = {name: round(getattr(node, field), 4) for name, field in retrievers.items()}
        told = {"told": "yes" if node.told else "no"} if isinstance(node, ThoughtNode) else {}
        about = {"rank": rank, "node": node.name, "type": node.type, "score": round(node.score, 4)}
        rows.append({**about, **parts, "came by": node.path, **told})
        score = format_decimal(node.score)
        given = ", ".join(f"{name} {format_decimal(x)}" for name, x in parts.items() if x) or "nothing"
        note = "not in the prompt" if told.get("told") == "no" else ""
        kind = ", ".join(filter(None, (short_label(node.type, 24), note, node.path.removesuffix(node.name))))
        bars.append((f"{rank}. {short_label(node.name, 60)}\n{short_label(kind, 80)}", f"{score}: {given}"))
        described.append(f"{rank}. {short_label(node.name, 80)}, {score} of which {given}")
    if not rows:
        return empty_plot(f"{short_label(lines[0], 60)}: nothing was found. {' '.join(lines[1:2])}")
    lengths = {name: [row[name] for row in rows[:limit]] for name in retrievers}
    pens, size = (
        dict(zip(retrievers, RETRIEVER_PENS.values(), strict=True)),
        (10.5, 1.0 + 0.16 * len(lines), 0.46),
    )
    text, labels = f"{short_label(lines[0], 200)}: {'; '.join(described[:limit])}.", ("score", *lines)
    return bar_plot(size, lengths, pens, bars=bars[:limit], labels=labels, description=text, rows=rows)


# An impact as rings: the node in the middle, the nodes that its change reaches around it by depth, and the
# riskiest chain marked.


def impact_picture(impact: Impact, *, per_ring: int = 28) -> Drawing:
    """Draw an impact as rings by depth.

    A larger node has a higher risk, and the riskiest chain is marked as a path. Of each ring the `per_ring`
    riskiest nodes are drawn, and the nodes that lead to them. The picture says how many are left out. `table`
    of the drawing lists all.
    """
    require_count(per_ring, 1, "per_ring", "it is how many nodes of a ring are drawn")
    drawn, total = _nodes_to_draw(impact, per_ring), format_count(impact.total_impacted, "node")
    names = {impact.node: impact.name, **{node.id: node.name for node in impact.nodes}}
    depths = {impact.node: 0, **{id: node.depth for id, node in drawn.items()}}
    kinds = {id: f"{format_count(n, 'edge')} away" if n else "what changes" for id, n in depths.items()}
    nodes = [Node(id, (kind,), {"name": names[id]}) for id, kind in kinds.items()]
    edges = [Edge(node.parent, node.via, id) for id, node in drawn.items()]
    max_risk = max((node.risk for node in drawn.values()), default=0.0) or 1.0
    sizes = {impact.node: 1.0, **{id: node.risk / max_risk for id, node in drawn.items()}}
    notes = {
        "path": f"riskiest chain: product {impact.critical_risk:.2g}",
        "size": f"size: risk, up to {max_risk:.2g}",
        "drawn": f"direction: {impact.direction}, {len(drawn)} of {total} drawn",
    }
    nothing = {"drawn": f"direction: {impact.direction}, nothing is reached"}
    encoding = replace(label_encoding(kinds.values()), sizes=sizes, scales=notes if drawn else nothing)
    picture = svg(
        PropertyGraph.of(nodes, edges), highlight=impact.critical_path, limit=len(nodes), arrows=False,
        positions=_ring_positions(impact.node, drawn), encoding=encoding,
        width=1000, height=260 + 9 * len(drawn),
    )  # fmt: skip
    rings = impact.risk_by_depth.items()
    told = [f" Depth {depth}: {', '.join(node.name for node in ring[:8])}." for depth, ring in rings]
    chain = f"Riskiest chain: {' → '.join(names[id] for id in impact.critical_path) or 'none'}"
    alt = f"A change of {impact.name} ({impact.direction}) reaches {total}.{''.join(told)} {chain}."
    rows = [[f"{x:.3g}" if isinstance(x, float) else str(x) for x in node] for node in impact.nodes]
    return Drawing(picture.svg, alt, [sheet(Impact.COLUMNS, rows, f"Impact of {impact.node}")])


def _nodes_to_draw(impact: Impact, per_ring: int) -> dict[str, Impacted]:
    """Return the `per_ring` riskiest nodes of each ring, by id, in order of depth.

    The nodes on the way to them and on the critical path are included.
    """
    wanted = {node.id for nodes in impact.risk_by_depth.values() for node in nodes[:per_ring]}
    wanted.update(impact.critical_path)
    for node in reversed(impact.nodes):  # by depth, so that a node comes before its parent
        if node.id in wanted:
            wanted.add(node.parent)
    return {node.id: node for node in impact.nodes if node.id in wanted}


def _ring_positions(root: str, drawn: dict[str, Impacted]) -> dict[str, tuple[float, float]]:
    """Return the positions of nodes on rings by depth, as fractions of the area.

    Every subtree has a sector proportional to its number of leaves, so no lines cross.
    """
    paths: dict[str, tuple[int, ...]] = {root: ()}
    children: dict[str, list[str]] = defaultdict(list)
    for number, (id, node) in enumerate(drawn.items()):
        paths[id] = (*paths[node.parent], number)
        children[node.parent].append(id)
    leaves = [id for id in sorted(drawn, key=paths.__getitem__) if id not in children]
    angles = {id: math.tau * number / len(leaves) for number, id in enumerate(leaves)}
    for id in reversed(drawn):  # by depth, so that children have theirs before their parents
        if id in children:
            angles[id] = fmean(angles[child] for child in children[id])
    polar = ((node.depth, angles[id]) for id, node in drawn.items())
    points = np.array([(0.0, 0.0), *((far * math.cos(turn), far * math.sin(turn)) for far, turn in polar)])
    low, extent = points.min(axis=0), np.ptp(points, axis=0)
    fractions = np.where(extent > 1e-9, (points - low) / np.maximum(extent, 1e-9), 0.5)
    return dict(zip((root, *drawn), (0.08 + 0.84 * fractions).tolist(), strict=True))


# Comparison of two nodes by their dimensions: a dot for one node and a square for the other.


def profile_picture(profile: DimensionProfile) -> Plot:
    """Plot the values of two nodes on each dimension, by category, with the meaning of 0 and 1.

    `table` of the plot has the numbers.
    """
    first, second = (f"{number}. {name}" for number, name in enumerate(profile.names, start=1))
    rows, described = [], []
    for row in profile.dimensions:
        values = {first: row.first, second: row.second, "second less first": row.gap}
        rows.append({"dimension": row.dimension, "at 0": row.low, "at 1": row.high, **values})
        told = ("no value" if value is None else f"{value:g}" for value in (row.first, row.second))
        described.append(f"{row.dimension.replace('_', ' ')} {' and '.join(told)}")
    beside = " beside ".join(profile.names)
    if not rows:
        return empty_plot(f"neither has a value on any dimension: {beside}")
    headed = [line for row in profile.dimensions for line in (row.category.upper(), row.dimension)]
    lines = list(dict.fromkeys(headed))
    ys = [lines.index(row.dimension) for row in profile.dimensions]
    firsts, seconds = np.array([(row.first, row.second) for row in profile.dimensions], float).T
    with new_figure(10.5, 1.0 + 0.27 * len(lines)) as (figure, [axes]):
        axes.hlines(ys, 0, 1, color=GRID)
        axes.hlines(ys, firsts, seconds, color=MUTED, linewidth=2.5)
        for row, y in zip(profile.dimensions, ys, strict=True):
            annotate(axes, short_label(row.low, 40), (0, y), (-10, 0), ha="right", va="center", color=MUTED)
            annotate(axes, short_label(row.high, 40), (1, y), (10, 0), va="center", color=MUTED)
        dot = {"color": "#0072B2", "markersize": 8}
        square = {"color": "#D55E00", "markersize": 12, "fillstyle": "none", "markeredgewidth": 1.8}
        axes.plot(firsts, ys, "o", label=short_label(first, 90), **dot)
        axes.plot(seconds, ys, "s", label=short_label(second, 90), **square)
        axes.set(frame_on=False, xlim=(-1, 2), xticks=[0, 0.5, 1], ylim=(len(lines) - 0.4, -0.6))
        axes.set_yticks(range(len(lines)), [line.replace("_", " ") for line in lines])
        axes.grid(visible=False)
        axes.tick_params(length=0)
        figure.legend(loc="outside upper left", frameon=False)
        return plot(figure, f"{beside}: {'; '.join(described)}.", rows)
