"""Views of a memory of claims: review queue, and facts over valid time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from kgot_lab.errors import AlreadyDecided, BadInput, LabError, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.certificate import format_fact
from kgot_lab.memory.claims.claim import (
    Claim,
    QueuedClaim,
    ReviewDecision,
    format_period,
    format_time,
    triple_key,
)
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.review import ClaimReview, DecisionEvidence
from kgot_lab.text.cleaning import checked_text, format_count
from kgot_lab.types import Diff, Document, Edge, Json, Triple
from kgot_lab.viz.graph.svg import Picture, svg
from kgot_lab.viz.html import Page, view_page
from kgot_lab.viz.live import Live, LiveOutput, StaticOutput, describe_error, static_output
from kgot_lab.viz.static.markup import Markup, element, first_lines, shorten
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


# Review in a notebook, by keyboard: one waiting claim at a time, with its support and the effect of accepting
# it.

_CONTEXT_LENGTH = 160  # characters of the source before and after the quotation
_MAX_FACTS = 10  # facts per heading
_MAX_LOG_ROWS = 20
_MAX_STATIC_CLAIMS = 20  # claims shown where no live view can be drawn
_MAX_FACT_LENGTH = 300  # maximum characters of a fact or a quotation
_DECISION_TEXTS = {"accept": "Accepted", "reject": "Rejected", "override": "Overridden"}
_STANDING_TEXTS = {"taken": "put in its place", "queued": "back in the queue"}
_QUEUE_COLUMNS = (
    "claim", "source", "said there", "confidence", "accepted when as sure", "would begin to hold", "other objects that hold",
)  # fmt: skip


class Review(LiveOutput):
    """The result of `review`: the queue, one claim at a time.

    Every decision is stored at once, under the reviewer's name.
    """

    def __init__(self, claims: Claims, by: str, texts: Mapping[str, str]) -> None:
        self.reviewer = ClaimReview(claims, checked_text(by, "who decides (by)"))
        self.claims, self.by = claims, self.reviewer.by
        self._texts = texts
        self.reviewer.reload()
        data = {"view": "review", "shown": self._view_state("")}
        self.live = Live(static_output(self.table()), data, self._handle_message)

    def table(self, *, limit: int = _MAX_STATIC_CLAIMS) -> Table:
        """Return tables of the claims that wait, at most `limit` of them, and of the last decisions."""
        queue = self.reviewer.waiting
        rows = list(map(self._queue_row, queue[:limit]))
        waiting = sheet(_QUEUE_COLUMNS, rows, "Claims that wait for review", len(queue))
        sheets = [waiting if rows else sheet(("in words",), [(self.reviewer.nothing_waits,)])]
        if log := self._log_rows():
            sheets.append(sheet(("when (UTC)", "by", "did", "to"), log, "The last decisions"))
        return Table(tuple(sheets))

    def _refresh(self) -> None:
        self.reviewer.reload()
        self.live.picture = static_output(self.table())
        self.live.data = {**self.live.data, "shown": self._view_state("")}

    def __repr__(self) -> str:
        return f"<Review by {self.by}: {format_count(len(self.reviewer.waiting), 'claim')} to decide on, {len(self.reviewer.decided)} decided>"

    # --- messages from the browser ---

    def _handle_message(self, message: Mapping[str, Json]) -> Json:
        """Apply a message from the browser and send the new state, with any error in it.

        Everything is reloaded, since others may have decided in the meantime.
        """
        note, error_text = "", ""
        try:
            note = self._apply_message(message)
        except Exception as error:
            error_text = describe_error(error)
        try:
            self.reviewer.reload()
            in_view = self.reviewer.in_view
            is_same_claim = bool(error_text and in_view and in_view.claim.id == message.get("claim"))
            said = "" if is_same_claim else f"{note} {self._describe_next()}".strip()
            shown = self._view_state(said, error_text)
        except LabError as error:  # another process has locked the file: keep the old state
            shown = {**self.live.data["shown"], "said": "", "wrong": str(error)}
        self.live.data = {**self.live.data, "shown": shown}
        self.live.send({"shown": shown})
        return {}

    def _apply_message(self, message: Mapping[str, Json]) -> str:
        match message:
            case {"move": int(offset)}:
                self.reviewer.move(offset)
            case {"undo": True}:
                return self._undo()
            case {"decide": str(verdict), "claim": str(claim)}:
                changed = {name: message[name] for name in ("object", "confidence") if name in message}
                if changed.get("confidence", 0) is None:
                    raise BadInput("a confidence is a number from 0 to 1")
                return self._decide(claim, verdict, changed)
        return ""

    def _decide(self, claim: str, verdict: str, changed: dict[str, Any]) -> str:
        try:
            report = self.reviewer.decide(claim, verdict, **changed)
        except AlreadyDecided as error:
            named = "The claim" if error.fact is None else self._short_claim(claim)
            raise BadInput(f"Not done: {named} no longer waits. {error.became}") from None
        effect = f" ({report})" if report.facts or report.risen else ""
        return f"{_DECISION_TEXTS[verdict]}: {self._short_claim(claim)}{effect}."

    def _undo(self) -> str:
        claim = self.reviewer.undo_last()
        if claim is None:
            return "There is no decision of yours to take back."
        return f"Taken back: {self._short_claim(claim.id)} waits again."

    def _short_claim(self, claim: str) -> str:
        return shorten(format_fact(self.claims.claim(claim).fact), _MAX_FACT_LENGTH)

    # --- state for the browser ---

    def _view_state(self, said: str, wrong: str = "") -> dict[str, Json]:
        """Return the state for the browser: the claim in view, the queue's length, the log and messages."""
        queued = self.reviewer.in_view
        return {
            "claim": self._claim_data(queued) if queued else None,
            "place": self.reviewer.place + 1,
            "left": len(self.reviewer.waiting),
            "empty": self.reviewer.nothing_waits,
            "log": [list(row) for row in self._log_rows()],
            "undoable": bool(self.reviewer.decided),
            "said": said,
            "wrong": wrong,
        }

    def _describe_next(self) -> str:
        """Return a sentence that names the claim now in view, for screen readers."""
        queued = self.reviewer.in_view
        if queued is None:
            return "Nothing waits any more."
        return f"Next: {shorten(format_fact(queued.claim.fact), _MAX_FACT_LENGTH)}."

    def _claim_data(self, queued: QueuedClaim) -> dict[str, Json]:
        claim, weighed = queued.claim, self.reviewer.weighed(queued)
        return {
            "id": claim.id,
            "fact": format_fact(claim.fact),
            "object": claim.fact.object,
            "confidence": claim.confidence,
            "sure": weighed.sure,
            "quote": list(self._quotation(claim)),
            "origin": self._describe_origin(claim),
            "premises": _format_first(claim.premises),
            "starts": _format_first(queued.starts),
            "idle": f"If it is accepted, nothing new begins to hold: {weighed.idle}.",
            "against": weighed.single,
            "rivals_are": f"It contradicts, since {claim.fact.relation} has a single object at a time" if weighed.single
            else f"{claim.fact.subject} – {claim.fact.relation} also holds of",
            "rivals": _format_rivals(weighed),
        }  # fmt: skip

    def _quotation(self, claim: Claim) -> tuple[str, str, str] | tuple[()]:
        """Return the quoted span of a claim with the source text before and after it.

        Only the quotation is returned if the source is missing or no longer says it, and nothing if there is
        no span or no text.
        """
        span, text = claim.span, self._texts.get(claim.source, "")
        if span is None:
            return ()
        quoted = text[span.start : span.end]
        if not quoted or (span.text and span.text != quoted):
            return ("", shorten(span.text, _MAX_FACT_LENGTH), "") if span.text else ()
        start, end = max(0, span.start - _CONTEXT_LENGTH), span.end + _CONTEXT_LENGTH
        before, after = text[start : span.start], text[span.end : end]
        return ("…" if start > 0 else "") + before, quoted, after + ("…" if end < len(text) else "")

    def _describe_origin(self, claim: Claim) -> str:
        location, moved_note = "", ""
        if span := claim.span:
            location = f", characters {span.start:,} to {span.end:,}"
            quoted = self._texts.get(claim.source, "")[span.start : span.end]
            if span.text and claim.source in self._texts and quoted != span.text:
                moved_note = " The source says something else there by now."
        validity = format_period(claim.valid_from, claim.valid_until)
        speaker = (f"; said by {claim.said_by}" if claim.said_by else "") + (
            f"; true {validity}" if validity else ""
        )
        return f"Source: {claim.source}{location}{speaker}; {claim.kind}.{moved_note}"

    def _queue_row(self, queued: QueuedClaim) -> tuple[str, ...]:
        claim, weighed = queued.claim, self.reviewer.weighed(queued)
        verb = "contradicts: " if weighed.single and weighed.others else ""
        quote = "".join(self._quotation(claim)[1:2])
        claim_cells = format_fact(claim.fact), claim.source, quote, f"{claim.confidence:.2f}"
        calibrated = f"{weighed.calibrated:.2f}" if weighed.calibrated != claim.confidence else ""
        cells = (*claim_cells, calibrated, f"{len(queued.starts):,}")
        return (*cells, verb + "; ".join(_format_rivals(weighed)))

    def _log_rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                f"{decided.at:%Y-%m-%d %H:%M:%S}",
                decided.by or "nobody named",
                _describe_decision(decided),
                format_fact(self.claims.claim(decided.item).fact),
            )
            for decided in self.reviewer.decisions(_MAX_LOG_ROWS)
        ]


def review(claims: Claims, *, by: str, documents: Iterable[Document] = ()) -> Review:
    """Decide on the claims that wait for review, by keyboard.

    Keys: a accept, r reject, o override, u undo, j and k next and previous, ? help. `by` is the reviewer's
    name in the log. `documents` are the sources by id, to show the text around each claim's span. Where no
    live view can be drawn, the queue and the log are shown as tables. Raises BadInput if `claims` is not a
    Claims or `by` is blank.
    """
    require(claims, Claims, "what is reviewed is a memory of Claims")
    return Review(claims, by, {document.id: document.text for document in documents})


def _describe_decision(decided: ReviewDecision) -> str:
    has_confidence = decided.standing == "accepted" and decided.confidence is not None
    confidence_note = f", confidence {decided.confidence:.2f}" if has_confidence else ""
    return f"{decided.action}: {_STANDING_TEXTS.get(decided.standing, decided.standing)}{confidence_note}"


def _format_first(facts: Sequence[Triple]) -> list[str]:
    return first_lines([shorten(format_fact(fact), _MAX_FACT_LENGTH) for fact in facts], _MAX_FACTS)


def _format_rivals(weighed: DecisionEvidence) -> list[str]:
    """Return the facts that hold beside a claim: whole facts if they contradict it, else their objects."""
    objects = [shorten(other.object, _MAX_FACT_LENGTH) for other in weighed.others[:_MAX_FACTS]]
    return _format_first(weighed.others) if weighed.single else objects


__all__ = ["over_time", "review"]
