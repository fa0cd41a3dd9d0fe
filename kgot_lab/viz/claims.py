"""View of a memory of claims: its facts over valid time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kgot_lab.errors import BadInput, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.certificate import format_fact
from kgot_lab.memory.claims.claim import (
    format_time,
    triple_key,
)
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Diff, Edge, Triple
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.html import Page, view_page
from kgot_lab.viz.live import Live, LiveOutput, StaticOutput, static_output
from kgot_lab.viz.static.markup import Markup, element, first_lines
from kgot_lab.viz.static.table import ALIGN_LEFT, Table, sheet


def _fact_edges(facts: Sequence[Triple]) -> tuple[Edge, ...]:
    return tuple(Edge(*fact.identity) for fact in facts)


# The graph over valid time: a slider over the times at which facts begin or cease to be valid. It also works
# on a page without Python.

_SIZE, _SMALL = (720, 420), (360, 320)
_MAX_CAPTION_FACTS = 8  # facts per caption
_MAX_STATIC_PICTURES = 3  # pictures where no live view can be drawn


@dataclass(frozen=True)
class Moment:
    """The facts valid from a time on (None: before the first), and what changed since the previous moment."""

    since: datetime | None
    facts: tuple[Triple, ...]
    began: tuple[Triple, ...]
    ended: tuple[Triple, ...]
    picture: Picture = field(repr=False)
    small: Picture = field(repr=False)  # for several side by side

    @property
    def name(self) -> str:
        """From when on the facts are valid."""
        return f"from {format_time(self.since)}" if self.since else "before the first change"

    @property
    def caption(self) -> str:
        """The number of valid facts and what began and ended, in a sentence."""
        parts = (("Began", self.began), ("Ended", self.ended))
        changes = ". ".join(f"{did}: {_format_first_facts(facts)}" for did, facts in parts if facts)
        return f"{format_count(len(self.facts), 'fact')} valid. {changes or 'Nothing changed'}."


class OverTime(LiveOutput):
    """The result of `over_time`: a slider over moments, each with its graph and a caption.

    `page` makes a file of it.
    """

    def __init__(self, moments: Sequence[Moment], all_times: int) -> None:
        self.moments = tuple(moments)
        # index of the moment in view
        self.at = next((number for number, moment in enumerate(moments) if moment.facts), 0)
        drawn = len(moments) - 1
        self.note = f"{drawn} of {all_times} times at which something changes" if drawn < all_times else ""
        states = [{"name": m.name, "caption": m.caption, "svg": m.picture.svg} for m in moments]
        data = {"view": "times", "states": states, "start": self.at, "note": self.note}
        self.live = Live(self._static_view(), data, self._handle_message)

    def table(self) -> Table:
        """Return a table of the moments: when, how many facts are valid, what began and what ended."""
        rows = (
            (moment.name, f"{len(moment.facts):,}", *map(_format_first_facts, (moment.began, moment.ended)))
            for moment in self.moments
        )
        return Table((sheet(("valid", "facts", "began", "ended"), rows, "Over valid time"),))

    def page(self, title: str = "What is true when") -> Page:
        """Return the slider as a page that works from disk, with a table for readers without JavaScript."""
        tables = element("section", element("h2", "The same as a table"), self.table().html)
        return view_page(title, self.live.data, tables)

    def _static_view(self) -> StaticOutput:
        """Return an early, a middle and the last moment as pictures, and all moments as a table.

        It is shown where no live view can be drawn.
        """
        non_empty = [moment for moment in self.moments if moment.picture.nodes]
        chosen = [non_empty[number] for number in _spread_indices(len(non_empty), _MAX_STATIC_PICTURES)]
        heads = (element("th", moment.name, scope="col", style=ALIGN_LEFT) for moment in chosen)
        pictures = (element("td", Markup(moment.small._repr_html_()), style=ALIGN_LEFT) for moment in chosen)
        head, body = element("thead", element("tr", *heads)), element("tbody", element("tr", *pictures))
        drawn = element("table", head, body, style="table-layout:fixed;width:100%")
        return static_output(self.table(), drawn, self.table().html)

    def __repr__(self) -> str:
        return f"<OverTime: {format_count(len(self.moments), 'moment')}>\n{self.table()!r}"

    def _handle_message(self, message: object) -> dict[str, str]:
        match message:
            case {"at": int(at)} if 0 <= at < len(self.moments):
                self.at = at
        return {}


def over_time(beliefs: Beliefs, *, about: Iterable[str] = (), most: int = 24, limit: int = 40) -> OverTime:
    """Show the graph of the valid facts at each time at which a fact begins or ceases to be valid.

    `about` is one or several names. If there are any, only the facts that name one of them are drawn. If
    there are more than `most` times, an evenly spread selection is shown, and the changes of the others are
    reported at the next one. At most `limit` nodes are drawn. In a relation declared "single", only the fact
    with the latest beginning is drawn. Raises BadInput if nothing begins or ends.
    """
    require(beliefs, Beliefs, "what is shown over time is a memory of Claims, or its as_of(known)")
    names = _name_set(about)
    for name, number in (("most", most), ("limit", limit)):
        require_count(number, 1, name)
    times = beliefs.turning_points(_facts_about(beliefs, names) if names else None)
    if not times:
        raise BadInput("no claim in force says when it is true: valid_from and valid_until of a Claim do")
    shown: list[datetime | None] = [None, *(times[number] for number in _spread_indices(len(times), most))]
    facts = [_valid_facts(beliefs, time or times[0] - timedelta(microseconds=1), names) for time in shown]
    all_facts: set[Triple] = {fact for fact_set in facts for fact in fact_set}
    ordered = sorted(all_facts, key=triple_key)
    whole_graph = PropertyGraph.from_triples(ordered)
    positions = svg(whole_graph, width=_SIZE[0], height=_SIZE[1], limit=10 * limit).positions
    moments: list[Moment] = []
    for time, now in zip(shown, facts, strict=True):
        before = moments[-1].facts if moments else now
        if moments and now == before:
            continue
        began = tuple(fact_set for fact_set in now if fact_set not in set(before))
        ended = tuple(fact_set for fact_set in before if fact_set not in set(now))
        diff = Diff(added_edges=_fact_edges(began), removed_edges=_fact_edges(ended))
        graph, changed = PropertyGraph.from_triples(now), diff if diff else None
        picture, small = (
            svg(graph, positions=positions, width=width, height=height, highlight=changed, limit=limit)
            for width, height in (_SIZE, _SMALL)
        )
        moments.append(Moment(time, now, began, ended, picture, small))
    return OverTime(moments, len(times))


def _valid_facts(beliefs: Beliefs, at: datetime, names: frozenset[str]) -> tuple[Triple, ...]:
    """Return the facts valid at a time, only the current one for relations declared "single"."""
    facts = _facts_about(beliefs.as_of(valid=at), names)
    alternatives: dict[tuple[str, str], list[Triple]] = defaultdict(list)
    declared = beliefs.declared()
    for fact in facts:
        if declared.get(fact.relation) == "single":
            alternatives[fact.subject, fact.relation].append(fact)
    retired = set[Triple]()
    for (subject, relation), several in alternatives.items():
        if len(several) > 1:
            retired |= set(several) - set(beliefs.current(subject, relation, at).facts)
    return tuple(fact for fact in facts if fact not in retired)


def _facts_about(beliefs: Beliefs, names: frozenset[str]) -> tuple[Triple, ...]:
    """Return the facts that hold, or only those that name one of `names` if there are any."""
    if not names:
        return beliefs.facts()
    found = {fact for name in names for fact in (*beliefs.facts(subject=name), *beliefs.facts(object=name))}
    return tuple(sorted(found, key=triple_key))


def _name_set(about: Iterable[str]) -> frozenset[str]:
    names = [about] if isinstance(about, str) else about
    require(names, Iterable, "about is a name or several")
    return frozenset(names)


def _spread_indices(length: int, limit: int) -> list[int]:
    """Return at most `limit` of the indices below `length`, evenly spread and including the last."""
    if length <= limit:
        return list(range(length))
    step = (length - 1) / max(limit - 1, 1)
    return [length - 1] if limit == 1 else [round(number * step) for number in range(limit)]


def _format_first_facts(facts: Sequence[Triple]) -> str:
    return "; ".join(first_lines(list(map(format_fact, facts)), _MAX_CAPTION_FACTS))


__all__ = ["over_time"]
