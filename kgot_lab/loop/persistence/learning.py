"""What a run wrote as claims of a memory: learnt when the run has its answer, all in one change or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from kgot_lab.errors import require
from kgot_lab.graph.provenance import Support, sentence_of, supports_of
from kgot_lab.loop.events import Answered, Event, Started
from kgot_lab.loop.evidence import FoundSupports, sentences_stating
from kgot_lab.loop.modes.paths.mentions import is_place
from kgot_lab.loop.state import state_after
from kgot_lab.loop.trace import Trace, graph_after, up_to_parting
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Claim, Learnt, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.types import Document, Edge, Json, Triple

READ_BY_MODEL = 0.8  # the confidence of a fact that a model read in a sentence; nothing measures it, review may (`ReviewLedger.calibrated`)
UNSAID = 0.5  # of a fact that no sentence was found for: less than what counts without review


@dataclass(frozen=True)
class KnownFact:
    """A fact that a memory held before a question: since when, and from which sources."""

    fact: Triple
    since: datetime
    sources: tuple[str, ...]


@dataclass(frozen=True)
class LearntRun:
    """What a run left in a memory; of the facts its answer rests on those known before (old), learnt (new)
    and not taken (unheld).
    """

    learnt: Learnt
    old: tuple[KnownFact, ...] = ()
    new: tuple[Triple, ...] = ()
    held: int = 0  # facts in the memory now
    unheld: tuple[Triple, ...] = ()  # retracted meanwhile, waiting for review, or asked of an earlier time
    remarks: tuple[str, ...] = ()  # on documents that are not what the memory read under their ids

    def as_json(self) -> dict[str, Json]:
        """The same as plain JSON values."""
        old = [
            {**_spelled(each.fact), "since": each.since.isoformat(), "sources": list(each.sources)}
            for each in self.old
        ]
        new, unheld = ([_spelled(each) for each in facts] for facts in (self.new, self.unheld))
        return {
            "learnt": asdict(self.learnt),
            "old": old,
            "new": new,
            "unheld": unheld,
            "facts": self.held,
            "remarks": [*self.remarks],
        }


def learn_run(claims: Claims, run: Trace, looking: Beliefs | None = None) -> LearntRun:
    """Learn what a whole run wrote, and note its answer with the facts it rests on; a run that was learnt
    before is not learnt again.

    A run without an answer leaves nothing. What was retracted stays retracted, also where the run read it
    once more, and what stood in the graph it began with is not learnt from it. With `looking`, what was
    believed at an earlier time, nothing is learnt, and the report is of that time. Raises StoreUnavailable,
    with which nothing is learnt.
    """
    require(run, Trace, "what is learnt is a run, as load_run(path) gives it")
    answered = next((event for event in reversed(run.events) if isinstance(event, Answered)), None)
    written = _WrittenFacts(run.events)
    new_claims = list(written.claims())  # before another process has to wait
    rests_on = written.rested_on(answered.evidence if answered is not None else ())
    by = f"run {run.run}"
    with claims.storage.changing() if looking is None else claims.storage.reading():
        if answered is None or any(change.by == by for change in claims.log()):
            return LearntRun(Learnt(None), held=len(claims.facts()))
        before = (looking or claims).claims_of(rests_on)
        learnt = claims.learn(new_claims, by=by, back=False) if looking is None else Learnt(None)
        if rests_on and looking is None:
            claims.note_answer(plain(run.question), plain(answered.text), rests_on)
        old = tuple(_known(claims, fact, claimed) for fact, claimed in before.items())
        beliefs = looking or claims
        after = beliefs.claims_of(rests_on)
        new = tuple(fact for fact in after if fact not in before)
        unheld = tuple(fact for fact in rests_on if beliefs.read(fact) not in after)
        return LearntRun(learnt, old, new, len(beliefs.facts()), unheld)


def plain(text: str) -> str:
    """A text as a memory takes it, which no NUL is part of."""
    return text.replace("\0", " ")


def _known(claims: Claims, fact: Triple, claimed: Sequence[Claim]) -> KnownFact:
    since = min(claims.history(claim.id)[0].known_from for claim in claimed)
    return KnownFact(fact, since, tuple(dict.fromkeys(claim.source for claim in claimed)))


def _spelled(fact: Triple) -> dict[str, Json]:
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object}


def fact_to_keep(edge: Edge) -> Triple:
    """The fact that an edge of a run's graph is in a memory, where a sentence stands for itself and not for a
    node of this graph.
    """
    sentence = sentence_of(edge.properties)
    if edge.type == SAYS_SENTENCE and sentence and is_place(edge.target):
        return Triple(plain(edge.source), edge.type, plain(sentence))
    if edge.type == MENTIONS_NAME and sentence and is_place(edge.source):
        return Triple(plain(sentence), edge.type, plain(edge.target))
    return Triple(plain(edge.source), plain(edge.type), plain(edge.target))


class _WrittenFacts:
    """The facts that a run wrote as claims, and those that its answer rests on."""

    def __init__(self, events: Iterable[Event]) -> None:
        told = up_to_parting(events)
        self._state = state_after(told)
        self._found = FoundSupports(self._state)
        self._edges = {edge.identity: edge for edge in graph_after(told).edges}
        self._model = next((event.planning for event in told if isinstance(event, Started)), "")
        self._texts: dict[
            str, Document
        ] = {}  # by what a claim names as its source: a document, or a call whose text has none
        self._of_call: dict[str, list[Document]] = {}
        for returned in self._state.returns:
            sources = returned.sources or (Document(str(returned.call), returned.text),)
            self._of_call.setdefault(str(returned.call), []).extend(sources)
            self._texts.update((document.id, document) for document in sources)

    def rested_on(self, evidence: Iterable[Json]) -> tuple[Triple, ...]:
        """The facts that lines of evidence stand for."""
        by_line = {fact_of(edge): fact_to_keep(edge) for edge in self._edges.values()}
        return tuple(
            dict.fromkeys(by_line[line] for line in evidence if isinstance(line, str) and line in by_line)
        )

    def claims(self) -> Iterator[Claim]:
        """A claim for each support that a fact gained by this run, and one for each new fact that nothing was
        found to say.
        """
        start = {edge.identity: frozenset(supports_of(edge.properties)) for edge in self._state.start.edges}
        changed = {
            each.identity
            for diff in self._state.diffs
            for each in (*diff.added_edges, *(now for _, now in diff.changed_edges))
        }
        for identity, edge in self._edges.items():
            fact = fact_to_keep(edge)
            if (identity in changed or self._state.spelled) and all(part.strip() for part in fact.identity):
                yield from self._claims_for(fact, edge, start.get(identity))

    def _claims_for(self, fact: Triple, edge: Edge, before: frozenset[Support] | None) -> Iterator[Claim]:
        # a sentence or a name in it, which no model wrote
        by_rule = fact.identity != (edge.source, edge.type, edge.target)
        said_by = "" if by_rule else plain(self._model)
        calls = self._found.calls(edge)
        supports = [support for support in self._found.of(edge) if support not in (before or ())]
        if not supports and before is None:
            supports = list(
                sentences_stating(edge, (text for call in calls for text in self._of_call.get(call, ())))
            )
        for support in supports:
            source = support.source or next(
                (call for call in calls if self._tells(call, support.sentence)), self._somewhere(calls)
            )
            yield Claim(
                fact,
                plain(source),
                self._span(source, support.sentence),
                said_by,
                confidence=1.0 if by_rule else READ_BY_MODEL,
            )
        if not supports and before is None:
            yield Claim(fact, plain(self._somewhere(calls)), None, said_by, confidence=UNSAID)

    def _somewhere(self, calls: Sequence[str]) -> str:
        """What a fact without a document was taken from: the first tool call that led to it, or else the
        model.
        """
        return next((call for call in calls if call.strip()), self._model or "a model")

    def _tells(self, call: str, sentence: str) -> bool:
        return any(place_in(text.text, sentence) is not None for text in self._of_call.get(call, ()))

    def _span(self, source: str, sentence: str) -> Span | None:
        """Where a sentence stands in its document, spaces aside; the whole of it where it does not stand
        there as it is.
        """
        if not sentence.strip():
            return None
        text = self._texts[source].text if source in self._texts else sentence
        start, end = place_in(text, sentence) or (0, len(text))
        return Span(start, end, plain(sentence))


def place_in(text: str, sentence: str) -> tuple[int, int] | None:
    """Where a sentence stands in a text, spaces aside; None where it does not."""
    if (start := text.find(sentence)) >= 0:
        return start, start + len(sentence)
    found = re.search(r"\s+".join(map(re.escape, sentence.split())), text)
    return found.span() if found else None
