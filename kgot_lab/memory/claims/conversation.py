"""A memory of a conversation that learns claims.

What a turn states can be traced to it, changes with time, and can be retracted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import require_count
from kgot_lab.memory.agent import CopyHolder, CurrentAnswer, LearningMemory, TurnOutcome, UserTurn
from kgot_lab.memory.claims.beliefs import period_at
from kgot_lab.memory.claims.claim import ChangeEffect, Claim, ErasureCounts, Span, check_triple
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.lookup import BeliefTriples
from kgot_lab.memory.extraction import SPEAKER, Extraction, ExtractionMode, Extractor, StatedTimes
from kgot_lab.memory.knowledge import format_context
from kgot_lab.text.cleaning import checked_text
from kgot_lab.text.words import content_words, sentences
from kgot_lab.types import LLM, Triple


class ClaimMemory(LearningMemory):
    """The claims of the turns of a conversation, for AgentConfig(knowledge_graph=…).

    A turn is the source "session/turn". It needs at most one call of the model (`extraction="schema"`). Each
    statement is a Claim, valid from the time that the text states, or else from the time of the turn. In a
    relation declared "single" only the fact that began last is part of a context. Nothing that a model says
    retracts a fact. A second turn of the same name, session and words changes nothing. Raises BadInput.
    """

    _reads_times = True

    @check_arguments
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
        require_count(max_context_triples, 0, "max_context_triples")
        self.claims, self.session = claims, checked_text(session, "the name of a session")
        self.max_context_triples = max_context_triples
        self._extractor = Extractor(provider, extraction_model, extraction, aliases)
        self._keepers: list[CopyHolder] = []

    def __repr__(self) -> str:
        return f"<ClaimMemory of {self.session!r} in {self.claims.storage!r}>"

    def store_statements(self, turn: UserTurn, extraction: Extraction) -> TurnOutcome:
        """Learn what was extracted from a message as claims of its turn.

        Claims of low confidence wait for review.
        """
        source = f"{self.session}/{turn.turn}"
        with self.claims.storage.changing():
            before = {fact for fact in extraction.triples if self.claims.holds(fact)}
            earlier = {(c.fact, c.span, c.said_by): c for c in self.claims.from_source(source)}
            claims = []
            for triple in extraction.triples:
                for times in extraction.times.get(triple, ((None, None),)):
                    claim = _claim_from_triple(triple, source, turn, times)
                    # without a stated time, the claim that the turn made before with the same words
                    known = None if any(times) else earlier.get((claim.fact, claim.span, claim.said_by))
                    claims.append(known or claim)
            if claims:
                self.claims.learn(claims, by=turn.said_by)
            held = tuple(fact for fact in extraction.triples if self.claims.holds(fact))
        new = tuple(fact for fact in held if fact not in before)
        return TurnOutcome(held, new, tuple(fact for fact in extraction.triples if fact not in held))

    def turn_context(
        self, turn: UserTurn, keywords: Sequence[str], *, without: AbstractSet[Triple] = frozenset()
    ) -> str:
        """Return the context for a model that answers a message.

        See `build_context`.
        """
        return self.build_context(keywords, without=without, at=turn.at)

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
            answers = _Answers(self.claims, self.claims.query_time(at))
            triples = BeliefTriples(self.claims.as_of(valid=at))

            def is_current(triple: Triple) -> bool:
                return triple not in without and triple in answers.instead_of(triple)

            return format_context(triples, keywords, self.max_context_triples, is_current, answers.remark)

    def current_answers(
        self, noted: Iterable[Triple], turn: UserTurn
    ) -> dict[Triple, tuple[CurrentAnswer, ...]]:
        """Return what answers in place of each fact when a message is answered.

        An answer that replaced another has the time since when it holds. A fact that does not hold then has
        nothing in its place, except in a relation declared "single", where it is what answers then.
        """
        with self.claims.storage.reading():
            answers, names = _Answers(self.claims, turn.at), self.claims.names()
            facts = {each: names.canonical_fact(each) for each in noted}
            held = set(self.claims.as_of(valid=turn.at).triples(facts.values()))
            current = {each: answers.instead_of(read, holds=read in held) for each, read in facts.items()}
            return {
                each: tuple(CurrentAnswer(fact, answers.remark(fact)) for fact in found)
                for each, found in current.items()
            }

    def count(self) -> int:
        """Return the number of facts that hold."""
        return self.claims.count()

    # --- forgetting ---

    def register_copies(self, keeper: CopyHolder) -> None:
        """Register an object that keeps copies, to be notified of what is forgotten and erased.

        An Agent registers itself.
        """
        self._keepers.append(keeper)

    def forget(self, source: str, *, by: str = "") -> ChangeEffect:
        """Retract what a source claims, and delete an agent's copies of that turn.

        An undo restores the claims, not the copies.
        """
        turn = checked_text(source, "a source").removeprefix(f"{self.session}/")
        with self._notify_copies("" if turn == source else turn):
            known = source in self.claims.sources()  # a turn may have stated nothing
            return self.claims.retract_source(source, by=by) if known else ChangeEffect(None)

    def erase(self, target: str | Triple, *, by: str = "") -> ErasureCounts:
        """Erase a source or a fact from every file, with everything an agent keeps that may repeat it."""
        if isinstance(target, Triple):
            fact = check_triple(target, "a fact")
            with self._notify_copies(None):
                return self.claims.erase_fact(fact, by=by)
        source = checked_text(target, "what is erased, a source or a Triple,")
        with self._notify_copies(None):
            return self.claims.erase_source(source, by=by)

    @contextmanager
    def _notify_copies(self, turn: str | None) -> Iterator[None]:
        try:
            yield
        finally:  # also if another process still reads the file: its bytes are removed later, the copies now
            for keeper in self._keepers:
                keeper.let_go(turn, self.claims.holds)


class _Answers:
    """What answers at a time, and since when, with one lookup for each subject and relation."""

    def __init__(self, claims: Claims, at: datetime) -> None:
        declared = claims.declared().items()
        self._single = {relation for relation, cardinality in declared if cardinality == "single"}
        self._find = cache(partial(_find_answer, claims, at))

    def instead_of(self, triple: Triple, *, holds: bool = True) -> tuple[Triple, ...]:
        """Return what answers in place of a recorded fact, which holds or does not: itself, others, or none."""
        if triple.relation in self._single:
            return self._find(triple.subject, triple.relation)[0]
        return (triple,) if holds else ()

    def remark(self, triple: Triple) -> str:
        """Describe when the answer changed, or that another one contests it."""
        return self._find(triple.subject, triple.relation)[1] if triple.relation in self._single else ""


def _find_answer(claims: Claims, at: datetime, subject: str, relation: str) -> tuple[tuple[Triple, ...], str]:
    """Return what answers for a subject and a relation at a time, and a remark on it."""
    changes = claims.changes_of(subject, relation)
    current = period_at(at, changes)
    if current.contested:
        return current.facts, "contested"
    has_changed = current.since and any(period.until == current.since for period in changes)
    return current.facts, f"changed on {current.since:%Y-%m-%d}" if has_changed else ""


def _claim_from_triple(triple: Triple, source: str, turn: UserTurn, times: StatedTimes) -> Claim:
    since, until = times
    fact = Triple(*triple.identity)
    span, began = _find_span(fact, turn.text), turn.at if since is None and until is None else since
    confidence = triple.confidence
    return Claim(fact, source, span, turn.said_by, confidence=confidence, valid_from=began, valid_until=until)


def _find_span(fact: Triple, text: str) -> Span:
    """Return the first sentence of a text that contains a word of both ends of a fact.

    If there is none, returns the span of the whole text, without a copy of it.
    """
    ends = [set(content_words(end)) for end in (fact.subject, fact.object) if end.casefold() != SPEAKER]
    for sentence in sentences(text):
        sentence_words, start = set(content_words(sentence)), text.find(sentence)
        if start >= 0 and all(not end or end & sentence_words for end in ends):
            return Span(start, start + len(sentence), sentence)
    return Span(0, len(text))
