"""Review in a notebook, by keyboard: the claims that wait, one at a time, with what speaks for each and what
it would change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgot_lab.errors import AlreadyDecided, BadInput, LabError, require
from kgot_lab.memory.claims.claim import Claim, Decided, Queued, format_span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.ledger import Reviewer, Weighed
from kgot_lab.text.counted import counted
from kgot_lab.types import Document, Json, Triple
from kgot_lab.viz.claims import WrittenDown, format_claim, written_down
from kgot_lab.viz.live import Live, LiveOutput, describe_error
from kgot_lab.viz.static.markup import shortened
from kgot_lab.viz.static.table import Sheet, Table

_AROUND = 160  # characters of the source before and after what was said
_LISTED = 10  # facts under a heading
_LOGGED = 20
_STILL = 20  # claims where nothing is live
_FACT = 300  # characters of a fact, or of a quotation
_DONE = {"accept": "Accepted", "reject": "Rejected", "override": "Overridden"}
_DID = {
    "accepted": "accepted",
    "rejected": "rejected",
    "taken": "put in its place",
    "queued": "back in the queue",
}


class Review(LiveOutput):
    """What `review` shows: the queue, one claim at a time; every decision is written to the ledger at once,
    under the reviewer's name.
    """

    def __init__(self, claims: Claims, by: str, texts: Mapping[str, str]) -> None:
        self.reviewer = Reviewer(claims, by)
        self.claims, self.by, self.ledger = claims, self.reviewer.by, self.reviewer.ledger
        self._texts = texts
        self.reviewer.reload()
        self.live = Live(self._still(), {"view": "review", "shown": self._shown("")}, self._heard)

    def table(self, *, limit: int = _STILL) -> Table:
        """The claims that wait, at most `limit` of them, and the last decisions."""
        queue = self.reviewer.queue
        rows = tuple(map(self._row, queue[:limit]))
        names = (
            "claim",
            "source",
            "said there",
            "confidence",
            "accepted when as sure",
            "would begin to hold",
            "other objects that hold",
        )
        log = tuple(self._log())
        waiting = Sheet(names, rows, len(queue), "Claims that wait for review")
        sheets = [waiting if rows else Sheet(("in words",), ((self.reviewer.nothing_waits,),), 1)]
        return Table(
            (
                *sheets,
                *(
                    [Sheet(("when (UTC)", "by", "did", "to"), log, len(log), "The last decisions")]
                    if log
                    else []
                ),
            )
        )

    def _still(self) -> WrittenDown:
        tables = self.table()
        return written_down(tables, tables.html)

    def _refresh(self) -> None:
        self.reviewer.reload()
        self.live.picture = self._still()
        self.live.data = {**self.live.data, "shown": self._shown("")}

    def __repr__(self) -> str:
        return f"<Review by {self.by}: {counted(len(self.reviewer.queue), 'claim')} to decide on, {len(self.reviewer.decided)} decided>"

    # --- what the browser asks
    # ----------------------------------------------------------------------------------------

    def _heard(self, message: Mapping[str, Json]) -> Json:
        """What a reader did; what goes wrong is said there, and everything is read again, since others may
        have decided meanwhile.
        """
        said, wrong = "", ""
        try:
            said = self._done(message)
        except Exception as error:
            wrong = describe_error(error)
        try:
            self.reviewer.reload()
            stayed = bool(wrong and (seen := self.reviewer.in_view) and seen.claim.id == message.get("claim"))
            shown = self._shown("" if stayed else f"{said} {self._next()}".strip(), wrong)
        except (
            LabError
        ) as error:  # such as a file that another process keeps to itself: what stood there stays
            shown = {**self.live.data["shown"], "said": "", "wrong": str(error)}
        self.live.data = {**self.live.data, "shown": shown}
        self.live.send({"shown": shown})
        return {}

    def _done(self, message: Mapping[str, Json]) -> str:
        match message:
            case {"move": int(by)}:
                self.reviewer.move(by)
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
            named = "The claim" if error.fact is None else self._named(claim)
            raise BadInput(f"Not done: {named} no longer waits. {error.became}") from None
        effect = f" ({report})" if report.facts or report.risen else ""
        return f"{_DONE[verdict]}: {self._named(claim)}{effect}."

    def _undo(self) -> str:
        claim = self.reviewer.undo()
        return (
            f"Taken back: {self._named(claim.id)} waits again."
            if claim
            else "There is no decision of yours to take back."
        )

    def _named(self, claim: str) -> str:
        return shortened(format_claim(self.claims.claim(claim).fact), _FACT)

    # --- what is shown
    # ------------------------------------------------------------------------------------------------

    def _shown(self, said: str, wrong: str = "") -> dict[str, Json]:
        """What the browser shows: the claim in view, how many wait, the log, and what is said of what was
        done.
        """
        queued = self.reviewer.in_view
        return {
            "claim": self._card(queued) if queued else None,
            "place": self.reviewer.place + 1,
            "left": len(self.reviewer.queue),
            "empty": self.reviewer.nothing_waits,
            "log": [list(row) for row in self._log()],
            "undoable": bool(self.reviewer.decided),
            "said": said,
            "wrong": wrong,
        }

    def _next(self) -> str:
        """Which claim is in view now, for those who do not see it."""
        queued = self.reviewer.in_view
        return (
            f"Next: {shortened(format_claim(queued.claim.fact), _FACT)}."
            if queued
            else "Nothing waits any more."
        )

    def _card(self, queued: Queued) -> dict[str, Json]:
        claim, weighed = queued.claim, self.reviewer.weighed(queued)
        return {
            "id": claim.id,
            "fact": format_claim(claim.fact),
            "object": claim.fact.object,
            "confidence": claim.confidence,
            "sure": weighed.sure,
            "quote": list(self._quote(claim)),
            "origin": self._origin(claim),
            "premises": _few(claim.premises),
            "starts": _few(queued.starts),
            "idle": f"If it is accepted, nothing new begins to hold: {weighed.idle}.",
            "against": weighed.single,
            "rivals_are": f"It contradicts, since {claim.fact.relation} has a single object at a time" if weighed.single
            else f"{claim.fact.subject} – {claim.fact.relation} also holds of",
            "rivals": _rivals(weighed),
        }  # fmt: skip

    def _quote(self, claim: Claim) -> tuple[str, str, str] | tuple[()]:
        """What was said, with what stands before and after it in its source, where the text of that is given
        and says it.
        """
        span, text = claim.span, self._texts.get(claim.source, "")
        if span is None:
            return ()
        there = text[span.start : span.end]
        if not there or (span.text and span.text != there):
            return ("", shortened(span.text, _FACT), "") if span.text else ()
        before, after = text[max(0, span.start - _AROUND) : span.start], text[span.end : span.end + _AROUND]
        return ("…" * (span.start > _AROUND) + before, there, after + "…" * (span.end + _AROUND < len(text)))

    def _origin(self, claim: Claim) -> str:
        where = f", characters {claim.span.start:,} to {claim.span.end:,}" if claim.span else ""
        span = claim.span
        moved = ""
        if (
            span
            and span.text
            and claim.source in self._texts
            and self._texts[claim.source][span.start : span.end] != span.text
        ):
            moved = " The source says something else there by now."
        valid = format_span(claim.valid_from, claim.valid_until)
        said = f"; said by {claim.said_by}" * bool(claim.said_by) + f"; true {valid}" * bool(valid)
        return f"Source: {claim.source}{where}{said}; {claim.kind}.{moved}"

    def _row(self, queued: Queued) -> tuple[str, ...]:
        claim, weighed = queued.claim, self.reviewer.weighed(queued)
        told = ("contradicts: " if weighed.single and weighed.others else "") + "; ".join(_rivals(weighed))
        quote = "".join(self._quote(claim)[1:2])
        said = format_claim(claim.fact), claim.source, quote, f"{claim.confidence:.2f}"
        calibrated = f"{weighed.calibrated:.2f}" if weighed.calibrated != claim.confidence else ""
        return (*said, calibrated, f"{len(queued.starts):,}", told)

    def _log(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"{each.at:%Y-%m-%d %H:%M:%S}", each.by or "nobody named", _did(each), format_claim(each.fact))
            for each in self.ledger.decided(_LOGGED)
        ]


def review(claims: Claims, *, by: str, documents: Iterable[Document] = ()) -> Review:
    """Decide on the claims that wait, by keyboard: a accept, r reject, o override, u undo, j and k next and
    previous, ? help.

    `by` is who decides, in the log; `documents` are the sources, by their ids, for the words around what each
    claim was taken from. Where no live view can draw, the queue and the log stand there as tables. Raises
    BadInput.
    """
    require(claims, Claims, "what is reviewed is a memory of Claims")
    texts = {document.id: document.text for document in documents}
    return Review(claims, by, texts)


def _did(decided: Decided) -> str:
    sure = (
        f", confidence {decided.confidence:.2f}"
        if decided.standing == "accepted" and decided.confidence is not None
        else ""
    )
    return f"{decided.action}: {_DID.get(decided.standing, decided.standing)}{sure}"


def _few(facts: Sequence[Triple]) -> list[str]:
    more = [f"and {len(facts) - _LISTED:,} more"] if len(facts) > _LISTED else []
    return [*(shortened(format_claim(each), _FACT) for each in facts[:_LISTED]), *more]


def _rivals(weighed: Weighed) -> list[str]:
    """What holds beside a claim: whole facts where they contradict it, and otherwise their objects."""
    return (
        _few(weighed.others)
        if weighed.single
        else [shortened(each.object, _FACT) for each in weighed.others[:_LISTED]]
    )
