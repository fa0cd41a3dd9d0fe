"""The graph over valid time: step through the times at which facts begin or cease to be true, also on a page
without Python.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import format_time, triple_key
from kgot_lab.text.counted import counted
from kgot_lab.types import Diff, Edge, Triple
from kgot_lab.viz.claims import WrittenDown, format_claim, written_down
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.html import Page
from kgot_lab.viz.live import Live, LiveOutput, page_script, place, style
from kgot_lab.viz.page import NEEDS_SCRIPT, STYLE, html_document
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.static.table import LEFT, Sheet, Table

_SIZE, _SMALL = (720, 420), (360, 320)
_LISTED = 8  # facts in a caption
_STILL = 3  # pictures where nothing is live


@dataclass(frozen=True)
class Moment:
    """The facts valid from a time on (None: before the first), and what began and ended since the moment
    before.
    """

    since: datetime | None
    facts: tuple[Triple, ...]
    began: tuple[Triple, ...]
    ended: tuple[Triple, ...]
    picture: Picture = field(repr=False)
    small: Picture = field(repr=False)  # for where several stand beside each other

    @property
    def name(self) -> str:
        """From when on."""
        return f"from {format_time(self.since)}" if self.since else "before the first change"

    @property
    def caption(self) -> str:
        """How many facts are valid, and what began and ended, in a sentence."""
        changes = [
            f"{did}: {_few(facts)}" for did, facts in (("Began", self.began), ("Ended", self.ended)) if facts
        ]
        return f"{counted(len(self.facts), 'fact')} valid. " + (". ".join(changes) or "Nothing changed") + "."


class OverTime(LiveOutput):
    """What `over_time` shows: a slider over its moments, each with its graph and a caption; `page` makes a
    file of it.
    """

    def __init__(self, moments: Sequence[Moment], all_times: int) -> None:
        self.moments = tuple(moments)
        # the moment that the reader looks at
        self.at = next((number for number, each in enumerate(moments) if each.facts), 0)
        self.note = (
            f"{len(moments) - 1} of {all_times} times at which something changes"
            if len(moments) - 1 < all_times
            else ""
        )
        shown = [{"name": each.name, "caption": each.caption, "svg": each.picture.svg} for each in moments]
        self.live = Live(
            self._still(),
            {"view": "times", "states": shown, "start": self.at, "note": self.note},
            self._heard,
        )

    def table(self) -> Table:
        """The moments with what began and ended, a row each."""
        rows = tuple(
            (each.name, f"{len(each.facts):,}", _few(each.began), _few(each.ended)) for each in self.moments
        )
        return Table((Sheet(("valid", "facts", "began", "ended"), rows, len(rows), "Over valid time"),))

    def page(self, title: str = "What is true when") -> Page:
        """The slider as a page that works from disk, with the table for readers without a script."""
        tables = element("section", element("h2", "The same as a table"), self.table().html)
        body = element("main", element("h1", title), NEEDS_SCRIPT, place(self.live.data), tables)
        return Page(title, html_document(title, STYLE + style(), body, script=page_script()))

    def _still(self) -> WrittenDown:
        """An early, a middle and the last moment as pictures, and all of them as a table: what stands where
        no live view draws.
        """
        some = [each for each in self.moments if each.picture.nodes]
        chosen = [some[number] for number in _spread(len(some), _STILL)]
        heads = element("tr", *(element("th", each.name, scope="col", style=LEFT) for each in chosen))
        pictures = element(
            "tr", *(element("td", Markup(each.small._repr_html_()), style=LEFT) for each in chosen)
        )
        drawn = element(
            "table",
            element("thead", heads),
            element("tbody", pictures),
            style="table-layout:fixed;width:100%",
        )
        return written_down(self.table(), drawn, self.table().html)

    def __repr__(self) -> str:
        return f"<OverTime: {counted(len(self.moments), 'moment')}>\n{self.table()!r}"

    def _heard(self, message: object) -> dict[str, str]:
        match message:
            case {"at": int(at)} if 0 <= at < len(self.moments):
                self.at = at
        return {}


def over_time(beliefs: Beliefs, *, about: Iterable[str] = (), most: int = 24, limit: int = 40) -> OverTime:
    """The graph of the facts that are valid at each time at which one begins or ceases to be, to step
    through.

    `about` are names: without any, all facts are drawn, else those that name one of them. Of more than `most`
    times some are left out, evenly, and their changes are told at the next one; at most `limit` nodes are
    drawn. In a relation declared "single" the fact with the latest beginning is drawn alone. Raises BadInput
    where nothing begins or ends.
    """
    require(beliefs, Beliefs, "what is shown over time is a memory of Claims, or its as_of(known)")
    names = _names(about)
    for name, number in (("most", most), ("limit", limit)):
        require_count(number, 1, name)
    times = beliefs.turning_points(_about(beliefs, names) if names else None)
    if not times:
        raise BadInput(
            "no claim in force says since when or until when it is true: valid_from and valid_until of a Claim do"
        )
    shown: list[datetime | None] = [None, *(times[number] for number in _spread(len(times), most))]
    facts = [_valid(beliefs, time or times[0] - timedelta(microseconds=1), names) for time in shown]
    ever: set[Triple] = {fact for each in facts for fact in each}
    ordered = sorted(ever, key=triple_key)
    everything = PropertyGraph.from_triples(ordered)
    positions = svg(everything, width=_SIZE[0], height=_SIZE[1], limit=10 * limit).positions
    moments: list[Moment] = []
    for time, now in zip(shown, facts, strict=True):
        before = moments[-1].facts if moments else now
        if moments and now == before:
            continue
        began, ended = (
            tuple(each for each in one if each not in set(other))
            for one, other in ((now, before), (before, now))
        )
        diff = Diff(added_edges=tuple(map(_edge, began)), removed_edges=tuple(map(_edge, ended)))
        graph, mark = PropertyGraph.from_triples(now), diff if diff else None
        drawn, small = (
            svg(graph, highlight=mark, positions=positions, width=width, height=height, limit=limit)
            for width, height in (_SIZE, _SMALL)
        )
        moments.append(Moment(time, now, began, ended, drawn, small))
    return OverTime(moments, len(times))


def _valid(beliefs: Beliefs, at: datetime, names: frozenset[str]) -> tuple[Triple, ...]:
    """The facts valid at a time; where only one may answer, the one that does."""
    facts = _about(beliefs.as_of(valid=at), names)
    rivals: dict[tuple[str, str], list[Triple]] = defaultdict(list)
    declared = beliefs.declared()
    for fact in facts:
        if declared.get(fact.relation) == "single":
            rivals[fact.subject, fact.relation].append(fact)
    retired = set[Triple]()
    for (subject, relation), several in rivals.items():
        if len(several) > 1:
            retired |= set(several) - set(beliefs.current(subject, relation, at).facts)
    return tuple(fact for fact in facts if fact not in retired)


def _about(beliefs: Beliefs, names: frozenset[str]) -> tuple[Triple, ...]:
    """The facts that hold, those that name one of some names where there are any."""
    if not names:
        return beliefs.facts()
    found = {fact for name in names for fact in (*beliefs.facts(subject=name), *beliefs.facts(object=name))}
    return tuple(sorted(found, key=triple_key))


def _names(about: Iterable[str]) -> frozenset[str]:
    given = [about] if isinstance(about, str) else about
    require(given, Iterable, "about is a name or several")
    return frozenset(given)


def _edge(fact: Triple) -> Edge:
    return Edge(*fact.identity)


def _spread(length: int, most: int) -> list[int]:
    """At most so many of the numbers below a length, evenly spread, the last always among them."""
    if length <= most:
        return list(range(length))
    return (
        [length - 1] if most == 1 else [round(number * (length - 1) / (most - 1)) for number in range(most)]
    )


def _few(facts: Sequence[Triple]) -> str:
    more = f"; and {len(facts) - _LISTED} more" if len(facts) > _LISTED else ""
    return "; ".join(map(format_claim, facts[:_LISTED])) + more
