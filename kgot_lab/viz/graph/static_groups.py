"""What opens on a page without Python: views of groups that were made before, as many as fit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgot_lab.text.counted import counted
from kgot_lab.types import Json
from kgot_lab.viz.graph.collapse import View, entered
from kgot_lab.viz.graph.groups import EVERYTHING_ELSE, Community
from kgot_lab.viz.graph.marks import Marked, Place
from kgot_lab.viz.graph.view_data import data_of

_MOST = 1_000_000  # characters of JSON, for all views together
_LEVELS = 2  # groups of the whole graph, and those that these fall into
_MISSES = 3  # views that find no room, until no more are made: each takes about a second
NOTHING_OPENS = "On this page groups stay closed: opening one, and searching among the nodes inside, needs a running notebook."
_ALL_OPEN = (
    "On this page groups open; showing neighbours of a node that are not drawn needs a running notebook."
)


@dataclass(frozen=True, eq=False)
class _Kept:
    """A view, what it was opened from, and the keys of what opens in it, by the ids of groups; the key ""
    leads out.
    """

    view: View
    outer: _Kept | None = None
    opens: dict[str, str] = field(default_factory=dict)

    def own(self) -> list[Community]:
        """The groups in it that are not beside what was opened."""
        return [group for group in self.view.communities if group.hidden and not self._is_neighbour(group)]

    def lead_on(self) -> None:
        """Let a group beside what was opened open as it does in the view around this one, and everything else
        lead out.
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
    """What the data of a view gets on a page without Python; nothing, where there are no groups.

    `opens` has for the id of a group the key of what it opens into, and `kept` the data for each key, each
    with `opens` of its own. The groups of the view come first, then those inside these, the largest first, as
    long as all is at most `most` letters of JSON. `alone` says in words what still needs Python.
    """
    if not view.communities:
        return {}
    top, missed = _Kept(view), 0
    level, every = [top], [top]
    kept: dict[str, Json] = {}
    for _ in range(_LEVELS):
        groups = sorted(
            ((group, around) for around in level for group in around.own()), key=lambda pair: -pair[0].hidden
        )
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
    return {
        "opens": top.opens,
        "kept": kept,
        "alone": _needing_python(len(kept), sum(len(each.own()) for each in every)),
    }


def _needing_python(opening: int, groups: int) -> str:
    """What a reader of the page cannot do, where so many of the groups one comes to open."""
    if not opening:
        return NOTHING_OPENS
    if opening == groups:
        return _ALL_OPEN
    others = "opening the others, searching among the nodes inside these, and showing neighbours that are not drawn"
    return f"On this page {opening:,} of {counted(groups, 'group')} open; {others} needs a running notebook."
