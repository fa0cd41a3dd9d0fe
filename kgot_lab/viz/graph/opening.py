"""A look into one community, so that the names of what is in it can be read: what is elsewhere is drawn as
few things.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kgot_lab.errors import BadInput
from kgot_lab.graph.columns import Ints, frozen
from kgot_lab.text.counted import counted
from kgot_lab.viz.graph.collapse import View, drawn_view
from kgot_lab.viz.graph.communities import Communities, divided_further, links_between
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Whole

READ_AT_ONCE = 60  # nodes of a community that are drawn by themselves
_PARTS = 20  # communities that a larger one is divided into, at most
_NEAR = 5  # other communities that are drawn beside it; all else is one


def entered(view: View, community: str) -> View:
    """The view of one community: its nodes by themselves, or, of more than 60, the smaller communities that
    it falls into.

    One that does not fall apart shows its best connected nodes, and the next ones when it is opened again.
    Beside it are the communities it has most edges with, and everything else as one, which leads out again.
    Raises UnknownName for no such community, BadInput when nothing is collapsed.
    """
    number = view.whole.number(community)
    if view.whole.outer and view.whole.division.kinds[number] == EVERYTHING_ELSE:
        return view.whole.outer
    rows = view.whole.members[number]
    at_once = min(READ_AT_ONCE, max(view.whole.most - _NEAR - 2, 1))
    whole = _apart(view, number, rows)
    if len(rows) > at_once:
        finer = divided_further(
            whole.division, rows, links_between(whole.graph), whole.labels[0], most=min(_PARTS, at_once)
        )
        if finer is not whole.division:
            said = f"Inside “{_name(view, community)}”: {counted(len(finer) - len(whole.division), 'smaller group')}."
            return drawn_view(replace(whole, division=finer), np.arange(0), said)
    hidden = rows[view.at[rows] >= len(view.shown)]
    drawn = (hidden if len(hidden) else rows)[:at_once]
    more = f" {len(drawn)} of {counted(len(rows), 'node')} are drawn; open it again for the next ones." * (
        len(drawn) < len(rows)
    )
    return drawn_view(whole, drawn, f"Inside “{_name(view, community)}”.{more}")


def shut(view: View) -> View:
    """The view from which a community was opened; raises BadInput where none is."""
    if not view.whole.outer:
        raise BadInput("no community is open in this view")
    return view.whole.outer


def _apart(view: View, number: int, rows: Ints) -> Whole:
    """The graph with what is outside a community as the few communities that are near it, and one for
    everything else.
    """
    whole, division = view.whole, view.whole.division
    inside = np.zeros(len(division.of), dtype=bool)
    inside[rows] = True
    ends = links_between(whole.graph)
    crossing = ends[:, inside[ends[0]] != inside[ends[1]]]
    counts = np.bincount(division.of[crossing[~inside[crossing]]], minlength=len(division))
    near = [
        each
        for each in np.argsort(-counts, kind="stable")[:_NEAR].tolist()
        if counts[each] and division.kinds[each] != EVERYTHING_ELSE
    ]
    far = ~inside & ~np.isin(division.of, near)
    of, kinds = division.of.copy(), division.kinds
    if len(np.unique(of[far])) > 1:
        of[far], kinds = len(division), (*kinds, EVERYTHING_ELSE)
    outside = frozenset(np.unique(of[~inside]).tolist())
    return replace(whole, division=Communities(frozen(of), kinds, division.how), outer=view, outside=outside)


def _name(view: View, community: str) -> str:
    return next(each.name for each in view.communities if each.id == community)
