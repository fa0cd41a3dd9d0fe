"""A memory of a conversation that learns claims.

What a turn states can be traced to it, changes with time, and can be retracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime

from kgot_lab.errors import require_count, require_parts
from kgot_lab.memory.agent import AnswersNow, KeepsCopies, TurnOutcome, UserTurn
from kgot_lab.memory.claims.beliefs import answer_at
from kgot_lab.memory.claims.claim import Claim, Erased, Fallen, Span, plain_text, plain_triple
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.lookup import BelievedTriples
from kgot_lab.memory.extraction import SPEAKER, Extraction, ExtractionMode, Extractor, StatedTimes
from kgot_lab.memory.knowledge import context_of
from kgot_lab.text.words import content_words, sentences
from kgot_lab.types import LLM, Triple


class ClaimMemory:
    """The claims of the turns of a conversation, for AgentConfig(knowledge_graph=…).

    A turn is the source "session/turn". It needs at most one call of the model (`extraction="schema"`). Each
    statement is a Claim, valid from the time that the text states, or else from the time of the turn. In a
    relation declared "single" only the fact that began last is part of a context. Nothing that a model says
    retracts a fact. A second turn of the same name, session and words changes nothing. Raises BadInput.
    """

    def __init__(
        self,
        claims: Claims,
        provider: LLM | None = None,
        *,
        session: str,
        extraction_model: str | LLM | None = None,
        extraction: ExtractionMode = "schema",
        aliases: Mapping[str, str] | None = None,
        max_context_triples: int = 30,
    ):
        require_parts(
            claims, ("learn", "retract_source", "erase_source"), "claims are Claims(SQLiteClaims(path))"
        )
        require_count(max_context_triples, 0, "max_context_triples")
        self.claims, self.session = claims, plain_text(session, "the name of a session")
        self.max_context_triples = max_context_triples
        self._extractor = Extractor(provider, extraction_model, extraction, aliases)
        self._keepers: list[KeepsCopies] = []

    def __repr__(self) -> str:
        return f"<ClaimMemory of {self.session!r} in {self.claims.storage!r}>"

    def source_of(self, turn: str) -> str:
        """Return the source of the claims of a turn."""
        return f"{self.session}/{turn}"

    def extracted(self, text: str, *, repairs: int = 1) -> Extraction:
        """Extract triples from a text with the model, with the times that it states.

        An invalid reply is repaired by a second call if `repairs` is 1.
        """
        return self._extractor.extracted(text, repairs=repairs, times=True)

    def keep(self, told: UserTurn, found: Extraction) -> TurnOutcome:
        """Learn what was extracted from a message as claims of its turn.

        Claims of low confidence wait for review.
        """
        source = self.source_of(told.turn)
        with self.claims.storage.changing():
            before = {fact for fact in found.triples if self.claims.holds(fact)}
            earlier = {
                (claim.fact, claim.span, claim.said_by): claim for claim in self.claims.from_source(source)
            }
            claims = [
                _unchanged_claim(claim, earlier, stated=bool(times[0] or times[1]))
                for triple in found.triples
                for times in found.times.get(triple, ((None, None),))
                for claim in [_claim(triple, source, told, times)]
            ]
            if claims:
                self.claims.learn(claims, by=told.said_by)
            held = tuple(fact for fact in found.triples if self.claims.holds(fact))
        return TurnOutcome(
            held,
            tuple(fact for fact in held if fact not in before),
            tuple(fact for fact in found.triples if fact not in held),
        )

    def context_for(
        self, told: UserTurn, keywords: Sequence[str], *, without: AbstractSet[Triple] = frozenset()
    ) -> str:
        """Return the context for a model that answers a message.

        See `build_context`.
        """
        return self.build_context(keywords, without=without, at=told.at)

    def build_context(
        self,
        keywords: Sequence[str] | None = None,
        *,
        without: AbstractSet[Triple] = frozenset(),
        at: datetime | None = None,
    ) -> str:
        """Format what holds at a time, one line each, with when it changed or what contests it.

        `at` defaults to now. With keywords, these are the facts that contain them, then what is known of the
        objects of those. Without, the facts that were learnt last. Returns "" if there are none.
        """
        at = self.claims.now() if at is None else at
        with self.claims.storage.reading():
            remarks = _Remarks(self.claims, self.claims.query_time(at))
            believed = BelievedTriples(self.claims.as_of(valid=at))
            return context_of(
                believed,
                keywords,
                self.max_context_triples,
                lambda triple: triple not in without and remarks.answers(triple),
                remarks.of,
            )

    def holding_now(self, noted: Iterable[Triple], told: UserTurn) -> dict[Triple, tuple[AnswersNow, ...]]:
        """Return what answers in place of each fact when a message is answered.

        An answer that replaced another has the time since when it holds. A fact that does not hold then has
        nothing in its place, except in a relation declared "single", where it is what answers then.
        """
        with self.claims.storage.reading():
            remarks = _Remarks(self.claims, told.at)
            names = self.claims.names()
            facts = {each: names.read(each) for each in noted}
            held = set(self.claims.as_of(valid=told.at).triples(facts.values()))
            return {
                each: tuple(
                    AnswersNow(fact, remarks.of(fact).removeprefix("; "))
                    for fact in remarks.in_place_of(read, held)
                )
                for each, read in facts.items()
            }

    def count(self) -> int:
        """Return the number of facts that hold."""
        return len(self.claims.facts())

    # --- forgetting ---

    def copied_by(self, keeper: KeepsCopies) -> None:
        """Register an object that keeps copies, to be notified of what is forgotten and erased.

        An Agent registers itself.
        """
        self._keepers.append(keeper)

    def forget(self, source: str, *, by: str = "") -> Fallen:
        """Retract what a source claims, and delete an agent's copies of that turn.

        An undo restores the claims, not the copies.
        """
        turn = plain_text(source, "a source").removeprefix(f"{self.session}/")
        with self._notify_copies("" if turn == source else turn):
            return self.claims.retract_source(source, by=by)

    def erase(self, what: str | Triple, *, by: str = "") -> Erased:
        """Erase a source or a fact from every file, with everything an agent keeps that may repeat it."""
        if isinstance(what, Triple):
            fact = plain_triple(what, "a fact")
            with self._notify_copies(None):
                return self.claims.erase_fact(fact, by=by)
        source = plain_text(what, "what is erased, a source or a Triple,")
        with self._notify_copies(None):
            return self.claims.erase_source(source, by=by)

    @contextmanager
    def _notify_copies(self, turn: str | None) -> Iterator[None]:
        try:
            yield
        finally:  # also if another process still reads the file: its bytes are removed later, the copies now
            for keeper in self._keepers:
                keeper.let_go(turn, self.claims.holds)


class _Remarks:
    """What answers at a time, and since when, with one lookup for each subject and relation."""

    def __init__(self, claims: Claims, at: datetime) -> None:
        self._claims, self._at = claims, at
        self._single = {
            relation for relation, cardinality in claims.declared().items() if cardinality == "single"
        }
        self._known: dict[tuple[str, str], tuple[tuple[Triple, ...], str]] = {}

    def answers(self, triple: Triple) -> bool:
        """Return whether no other fact answers in place of this one."""
        return triple.relation not in self._single or triple in self._about(triple)[0]

    def in_place_of(self, triple: Triple, held: AbstractSet[Triple]) -> tuple[Triple, ...]:
        """Return what answers in place of a recorded fact.

        `held` are the recorded facts that hold.
        """
        return self._about(triple)[0] if triple.relation in self._single else (triple,) * (triple in held)

    def of(self, triple: Triple) -> str:
        """Describe when the answer changed, or that another one contests it."""
        return self._about(triple)[1] if triple.relation in self._single else ""

    def _about(self, triple: Triple) -> tuple[tuple[Triple, ...], str]:
        asked = triple.subject, triple.relation
        if asked not in self._known:
            changes = self._claims.changes_of(*asked)
            now = answer_at(self._at, changes)
            began_later = [each for each in changes if each.until is not None and each.until == now.since]
            remark = (
                "; contested"
                if now.contested
                else f"; changed on {now.since:%Y-%m-%d}"
                if began_later and now.since
                else ""
            )
            self._known[asked] = now.facts, remark
        return self._known[asked]


def _claim(triple: Triple, source: str, told: UserTurn, times: StatedTimes) -> Claim:
    since, until = times
    fact = Triple(*triple.identity)
    return Claim(
        fact,
        source,
        _span(fact, told.text),
        told.said_by,
        confidence=triple.confidence,
        valid_from=told.at if since is None and until is None else since,
        valid_until=until,
    )


def _unchanged_claim(
    claim: Claim, earlier: Mapping[tuple[Triple, Span | None, str], Claim], *, stated: bool
) -> Claim:
    """Return the claim that the turn made before with the same words.

    Returns `claim` itself if there is none, or if its time is stated rather than that of the turn.
    """
    return claim if stated else earlier.get((claim.fact, claim.span, claim.said_by), claim)


def _span(fact: Triple, text: str) -> Span:
    """Return the first sentence of a text that contains a word of both ends of a fact.

    If there is none, returns the span of the whole text, without a copy of it.
    """
    ends = [set(content_words(end)) for end in (fact.subject, fact.object) if end.casefold() != SPEAKER]
    for sentence in sentences(text):
        words, start = set(content_words(sentence)), text.find(sentence)
        if start >= 0 and all(not end or end & words for end in ends):
            return Span(start, start + len(sentence), sentence)
    return Span(0, len(text))
