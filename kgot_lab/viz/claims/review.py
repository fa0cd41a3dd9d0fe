"""Review in a notebook, by keyboard: the claims that wait, one at a time, with what speaks for each and what it would change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgot_lab.draw.markup import shortened
from kgot_lab.draw.table import Sheet, Table
from kgot_lab.errors import BadInput, LabError, require
from kgot_lab.memory.claims.claim import Claim, plain_text
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.ledger import ReviewLedger
from kgot_lab.memory.claims.reports import Decided, Fallen, Queued
from kgot_lab.text.counted import counted
from kgot_lab.types import Document, Json, Triple
from kgot_lab.viz.claims.written import WrittenDown, fact_said, span_said, written_down
from kgot_lab.viz.live import Live

_AROUND = 160  # letters of the source before and after what was said
_LISTED = 10  # facts under a heading
_LOGGED = 20
_STILL = 20  # claims where nothing is live
_FACT = 300  # letters of a fact, or of a quotation
_EMPTY = "Nothing waits. A claim does whose confidence is below accept_from when it is learnt."
_DID = {"accepted": "accepted", "rejected": "rejected", "taken": "put in its place", "queued": "back in the queue"}


class Review:
    """What `review` shows: the queue, one claim at a time; every decision is written to the ledger at once, under the reviewer's name."""

    def __init__(self, claims: Claims, by: str, texts: Mapping[str, str]) -> None:
        self.claims, self.by, self.ledger = claims, by, ReviewLedger(claims)
        self._texts = texts
        self._mine: list[tuple[int, str]] = []  # the changes that undo takes back, and the claim each decided on
        self._queue = self.ledger.queue()
        self._place = 0
        self.live = Live(self._still(), {"view": "review", "shown": self._shown("")}, self._heard)

    def table(self, *, limit: int = _STILL) -> Table:
        """The claims that wait, at most `limit` of them, and the last decisions."""
        rows = tuple(map(self._row, self._queue[:limit]))
        names = ("claim", "source", "said there", "confidence", "accepted when as sure", "would begin to hold", "other objects that hold")
        log = tuple(self._log())
        sheets = [Sheet(names, rows, len(self._queue), "Claims that wait for review")] if rows else [Sheet(("in words",), ((_EMPTY,),), 1)]
        return Table((*sheets, *([Sheet(("when (UTC)", "by", "did", "to"), log, len(log), "The last decisions")] if log else [])))

    def _still(self) -> WrittenDown:
        tables = self.table()
        return written_down(tables, tables.html)

    def _ipython_display_(self) -> None:
        self._look_again()
        self.live.picture = self._still()
        self.live.data = {**self.live.data, "shown": self._shown("")}
        self.live._ipython_display_()

    def __repr__(self) -> str:
        return f"<Review by {self.by}: {counted(len(self._queue), 'claim')} to decide on, {len(self._mine)} decided>"

    # --- what the browser asks ----------------------------------------------------------------------------------------

    def _heard(self, message: Mapping[str, Json]) -> Json:
        """What a reader did; what goes wrong is said there, and everything is read again, since others may have decided meanwhile."""
        said, wrong = "", ""
        try:
            said = self._done(message)
        except LabError as error:
            wrong = str(error)
        except Exception as error:  # nobody reads what a handler of messages raises
            wrong = f"{type(error).__name__}: {error}"
        try:
            self._look_again()
            stayed = bool(wrong and self._queue and self._queue[self._place].claim.id == message.get("claim"))
            shown = self._shown("" if stayed else f"{said} {self._next()}".strip(), wrong)
        except LabError as error:  # such as a file that another process keeps to itself: what stood there stays
            shown = {**self.live.data["shown"], "said": "", "wrong": str(error)}
        self.live.data = {**self.live.data, "shown": shown}
        self.live.send({"shown": shown})
        return {}

    def _done(self, message: Mapping[str, Json]) -> str:
        match message:
            case {"move": int(by)} if self._queue:
                self._place = (self._place + by) % len(self._queue)
                return ""
            case {"undo": True}:
                return self._undo()
            case {"decide": "accept", "claim": str(claim)}:
                return self._decide(claim, "Accepted", lambda: self.ledger.accept(claim, by=self.by))
            case {"decide": "reject", "claim": str(claim)}:
                return self._decide(claim, "Rejected", lambda: self.ledger.reject(claim, by=self.by))
            case {"decide": "override", "claim": str(claim)}:
                changed = {name: message[name] for name in ("object", "confidence") if name in message}
                if changed.get("confidence", 0) is None:
                    raise BadInput("a confidence is a number from 0 to 1")
                return self._decide(claim, "Overridden", lambda: self.ledger.override(claim, **changed, by=self.by))
        return ""

    def _decide(self, claim: str, did: str, decide: Callable[[], Fallen]) -> str:
        with self.claims.storage.changing():  # so that nobody decides between the look and the decision
            if not self.ledger.waits(claim):
                raise BadInput(f"Not done: {self._named(claim)} no longer waits. {self._what_became_of(claim)}")
            report = decide()
        if report.change is not None:
            self._mine.append((report.change, claim))
        effect = f" ({report})" if report.facts or report.risen else ""
        return f"{did}: {self._named(claim)}{effect}."

    def _undo(self) -> str:
        if not self._mine:
            return "There is no decision of yours to take back."
        change, claim = self._mine.pop()  # also where it cannot be: somebody else has changed what it did, and the error says who
        self.claims.undo(change, by=self.by)
        self._look_again()
        self._place = next((place for place, each in enumerate(self._queue) if each.claim.id == claim), self._place)
        return f"Taken back: {self._named(claim)} waits again."

    def _named(self, claim: str) -> str:
        return shortened(fact_said(self.claims.claim(claim).fact), _FACT)

    def _what_became_of(self, claim: str) -> str:
        last = self.claims.history(claim)[-1]
        who = f" by {last.by}" * bool(last.by)
        if last.known_until is not None:
            return f"It was taken back on {last.known_until:%Y-%m-%d at %H:%M} UTC."
        return f"It was {last.standing}{who} on {last.known_from:%Y-%m-%d at %H:%M} UTC."

    def _look_again(self) -> None:
        """Read the queue again, and stay at the claim that was looked at, or go on to the next one that still waits."""
        before, self._queue = self._queue[self._place :] + self._queue[: self._place], self.ledger.queue()
        places = {each.claim.id: place for place, each in enumerate(self._queue)}
        self._place = next((places[each.claim.id] for each in before if each.claim.id in places), 0)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def _shown(self, said: str, wrong: str = "") -> dict[str, Json]:
        """What the browser shows: the claim in view, how many wait, the log, and what is said of what was done."""
        queued = self._queue[self._place] if self._queue else None
        return {
            "claim": self._card(queued) if queued else None,
            "place": self._place + 1,
            "left": len(self._queue),
            "empty": _EMPTY,
            "log": [list(row) for row in self._log()],
            "undoable": bool(self._mine),
            "said": said,
            "wrong": wrong,
        }

    def _next(self) -> str:
        """Which claim is in view now, for those who do not see it."""
        return f"Next: {shortened(fact_said(self._queue[self._place].claim.fact), _FACT)}." if self._queue else "Nothing waits any more."

    def _card(self, queued: Queued) -> dict[str, Json]:
        claim = queued.claim
        against, rivals = self._rivals(claim)
        return {
            "id": claim.id,
            "fact": fact_said(claim.fact),
            "object": claim.fact.object,
            "confidence": claim.confidence,
            "sure": self._sure(claim),
            "quote": list(self._quote(claim)),
            "origin": self._origin(claim),
            "premises": _few(claim.premises),
            "starts": _few(queued.starts),
            "idle": "If it is accepted, nothing new begins to hold: a premise is missing." if claim.premises and not queued.starts
            else "If it is accepted, nothing new begins to hold: other claims say the same.",
            "against": against,
            "rivals_are": f"It contradicts, since {claim.fact.relation} has a single object at a time" if against
            else f"{claim.fact.subject} – {claim.fact.relation} also holds of",
            "rivals": rivals,
        }  # fmt: skip

    def _sure(self, claim: Claim) -> str:
        calibrated = self.ledger.calibrated(claim.confidence, claim.fact.relation)
        if calibrated == claim.confidence:
            return f"Confidence {claim.confidence:.2f}, not calibrated: too few decisions yet, or they agree with it."
        return f"Confidence {claim.confidence:.2f}; of claims as sure as this one, {calibrated:.0%} were accepted."

    def _quote(self, claim: Claim) -> tuple[str, str, str] | tuple[()]:
        """What was said, with what stands before and after it in its source, where the text of that is given and says it."""
        span, text = claim.span, self._texts.get(claim.source, "")
        if span is None:
            return ()
        there = text[span.start : span.end]
        if not there or (span.text and span.text != there):
            return ("", shortened(span.text, _FACT), "") if span.text else ()
        before, after = text[max(0, span.start - _AROUND) : span.start], text[span.end : span.end + _AROUND]
        return ("…" * (span.start > _AROUND) + before, there, after + "…" * (span.end + _AROUND < len(text)))

    def _origin(self, claim: Claim) -> str:
        where = f", letters {claim.span.start:,} to {claim.span.end:,}" if claim.span else ""
        span = claim.span
        moved = ""
        if span and span.text and claim.source in self._texts and self._texts[claim.source][span.start : span.end] != span.text:
            moved = " The source says something else there by now."
        valid = span_said(claim.valid_from, claim.valid_until)
        said = f"; said by {claim.said_by}" * bool(claim.said_by) + f"; true {valid}" * bool(valid)
        return f"Source: {claim.source}{where}{said}; {claim.kind}.{moved}"

    def _rivals(self, claim: Claim) -> tuple[bool, list[str]]:
        """Whether a claim contradicts what holds, and the other objects that hold, at the same time where only one may."""
        fact, claims = claim.fact, self.claims
        same = set(claims.facts(fact.subject, fact.relation, fact.object))
        others = [each for each in claims.facts(fact.subject, fact.relation) if each not in same]
        if claims.cardinality(fact.relation) == "single":
            return True, _few([each for each in others if any(_overlap(claim, other) for other in claims.supports_of(each))])
        return False, [shortened(each.object, _FACT) for each in others[:_LISTED]]

    def _row(self, queued: Queued) -> tuple[str, ...]:
        claim = queued.claim
        against, rivals = self._rivals(claim)
        calibrated = self.ledger.calibrated(claim.confidence, claim.fact.relation)
        told = ("contradicts: " if against and rivals else "") + "; ".join(rivals)
        quote = "".join(self._quote(claim)[1:2])
        said = fact_said(claim.fact), claim.source, quote, f"{claim.confidence:.2f}"
        return (*said, f"{calibrated:.2f}" if calibrated != claim.confidence else "", f"{len(queued.starts):,}", told)

    def _log(self) -> list[tuple[str, str, str, str]]:
        return [
            (f"{each.at:%Y-%m-%d %H:%M:%S}", each.by or "nobody named", _did(each), fact_said(each.fact))
            for each in self.ledger.decided(_LOGGED)
        ]


def review(claims: Claims, *, by: str, documents: Iterable[Document] = ()) -> Review:
    """Decide on the claims that wait, by keyboard: a accept, r reject, o override, u undo, j and k next and previous, ? help.

    `by` is who decides, in the log; `documents` are the sources, by their ids, for the words around what each claim was taken from. Where
    no live view can draw, the queue and the log stand there as tables. Raises BadInput.
    """
    require(claims, Claims, "what is reviewed is a memory of Claims")
    texts = {document.id: document.text for document in documents}
    return Review(claims, plain_text(by, "who decides (by)"), texts)


def _did(decided: Decided) -> str:
    sure = f", confidence {decided.confidence:.2f}" if decided.standing == "accepted" and decided.confidence is not None else ""
    return f"{decided.action}: {_DID.get(decided.standing, decided.standing)}{sure}"


def _few(facts: Sequence[Triple]) -> list[str]:
    more = [f"and {len(facts) - _LISTED:,} more"] if len(facts) > _LISTED else []
    return [*(shortened(fact_said(each), _FACT) for each in facts[:_LISTED]), *more]


def _overlap(one: Claim, other: Claim) -> bool:
    """Whether two claims say that something is true at one and the same time."""
    (since, until), (begin, end) = one.valid_micros, other.valid_micros
    return (until is None or begin is None or begin < until) and (end is None or since is None or since < end)
