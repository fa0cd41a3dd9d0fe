"""Memory across questions: a run begins with the facts of a memory, and its writes become claims there."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import fsum, log1p
from pathlib import Path

from kgot_lab.errors import BadInput, ToolFailed, require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, latest_sentence, support_properties, supports_of
from kgot_lab.loop.events import Answered, Event, Started, ToolCall
from kgot_lab.loop.evidence import FoundSupports, sentences_stating
from kgot_lab.loop.modes.paths.mentions import is_place, place_under
from kgot_lab.loop.state import state_after
from kgot_lab.loop.trace import Trace, graph_after, up_to_parting
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Claim, Learnt, Span
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.protocol import Store
from kgot_lab.text.words import content_words, name_tokens
from kgot_lab.tools.tool import Result, Tool, checked_result, sought_by
from kgot_lab.types import Document, Edge, Json, Triple

# The initial graph of a question: the facts of a memory near it, with their sources.

MOST_REMEMBERED = 2000  # maximum facts of an initial graph; a prompt shows far fewer
_NAMED = 3.0  # score of a name in the question, in addition to its words
_FURTHER = 0.5  # share of its score that a fact passes on to facts that share a name with it
_CROWD = 20  # number of facts of a name above which each counts less


@dataclass(frozen=True)
class InitialGraph:
    """The initial graph of a question, the number of facts in it, and the number in the whole memory."""

    graph: PropertyGraph = field(repr=False)
    facts: int
    held: int

    def __str__(self) -> str:
        return (
            f"{self.facts:,} of {self.held:,} facts"
            if self.facts < self.held
            else f"{self.held:,} fact{'s' * (self.held != 1)}"
        )


def remembered_near(beliefs: Beliefs, question: str, *, most: int = MOST_REMEMBERED) -> InitialGraph:
    """Return the facts of a memory as an initial graph for a question.

    If there are more than `most`, the nearest are chosen: facts that share words with the question, names
    above all, and then facts that share a name with those. Raises BadInput if `beliefs` is no memory or
    `most` is below 1.
    """
    require(beliefs, Beliefs, "a memory is Claims, or what their as_of(…) gives")
    require_count(most, 1, "most", "a question begins with some facts")
    with beliefs.storage.reading():
        held = beliefs.facts()
        chosen = held if len(held) <= most else nearest_facts(held, question, most)
        claims = beliefs.claims_of(chosen)
    return InitialGraph(graph_of_claims(claims), len(chosen), len(held))


def nearest_facts(facts: Sequence[Triple], question: str, most: int) -> tuple[Triple, ...]:
    """Return at most `most` facts nearest to a question, the nearest first."""
    asked, named = set(content_words(question)), f" {' '.join(name_tokens(question))} "
    words = [asked & set(content_words(f"{fact.subject} {fact.relation} {fact.object}")) for fact in facts]
    ends: dict[str, list[int]] = defaultdict(list)
    holding: dict[str, int] = defaultdict(int)
    for number, fact in enumerate(facts):
        for end in {fact.subject, fact.object}:
            ends[end].append(number)
        for word in words[number]:
            holding[word] += 1
    in_question = {end for end in ends if (name := " ".join(name_tokens(end))) and f" {name} " in named}
    own = [
        fsum(log1p(len(facts) / holding[word]) for word in words[number])
        + _NAMED * len({fact.subject, fact.object} & in_question)
        for number, fact in enumerate(facts)
    ]
    waiting = [(-worth, number) for number, worth in enumerate(own) if worth]
    heapify(waiting)
    found: dict[int, None] = {}
    while waiting and len(found) < most:
        worth, number = heappop(waiting)
        if number in found:
            continue
        found[number] = None
        for end in {facts[number].subject, facts[number].object}:
            around = ends.pop(end, [])  # each name is expanded once, from the nearest of its facts
            share = _FURTHER * min(1.0, _CROWD / max(1, len(around)))
            for other in around:
                if other not in found:
                    heappush(waiting, (share * worth - own[other], other))
    return tuple(facts[number] for number in found)


def graph_of_claims(claims: Mapping[Triple, Iterable[Claim]]) -> PropertyGraph:
    """Build a graph from claims in the form that the loop writes.

    Each source becomes a support, and each sentence of a passage gets its own node.
    """
    edges: list[Edge] = []
    # by title: source, where it begins there, sentence
    said: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    mentions: list[tuple[Triple, Claim]] = []
    for fact, each in claims.items():
        plain: list[Support] = []
        for claim in each:
            if is_sentence(claim):
                said[fact.subject].append(
                    (claim.source, claim.span.start if claim.span else 0, claim.fact.object)
                )
            elif is_mention(claim):
                mentions.append((fact, claim))
            else:
                plain.append(Support(claim.source, claim.span.text if claim.span else ""))
        if plain:
            edges.append(Edge(fact.subject, fact.relation, fact.object, support_properties(plain)))
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, sentences in said.items():
        for number, (source, _, sentence) in enumerate(sorted(set(sentences)), start=1):
            place = place_under(title, number)
            places[source, sentence].append(place)
            edges.append(Edge(title, SAYS_SENTENCE, place, support_properties([Support(source, sentence)])))
    for fact, claim in mentions:
        support = support_properties([Support(claim.source, claim.fact.subject)])
        edges += [
            Edge(place, MENTIONS_NAME, fact.object, support)
            for place in places[claim.source, claim.fact.subject]
        ]
    return PropertyGraph.of((), {edge.identity: edge for edge in edges}.values(), dangling="add")


def is_sentence(claim: Claim) -> bool:
    """Return whether a claim states that a title says a sentence.

    The object of such a claim is the sentence itself, not its node.
    """
    return (
        claim.fact.relation == SAYS_SENTENCE
        and claim.span is not None
        and claim.span.text == claim.fact.object
    )


def is_mention(claim: Claim) -> bool:
    """Return whether a claim states that a sentence mentions a name.

    The subject of such a claim is the sentence itself.
    """
    return (
        claim.fact.relation == MENTIONS_NAME
        and claim.span is not None
        and claim.span.text == claim.fact.subject
    )


# Learning: the writes of a finished run as claims, in one transaction.

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
    """What a run left in a memory.

    The facts that its answer rests on are old (known before), new (learnt) or unheld (not stored).
    """

    learnt: Learnt
    old: tuple[KnownFact, ...] = ()
    new: tuple[Triple, ...] = ()
    held: int = 0  # facts in the memory now
    unheld: tuple[Triple, ...] = ()  # retracted meanwhile, waiting for review, or asked of an earlier time
    remarks: tuple[str, ...] = ()  # on documents that are not what the memory read under their ids

    def as_json(self) -> dict[str, Json]:
        """Convert the value to plain JSON values."""
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
    """Store what a finished run wrote in a memory, and record its answer with its evidence.

    A run is learnt only once. A run without an answer leaves nothing. Retracted facts stay retracted, even if
    the run read them again, and facts of the initial graph are not learnt from it. With `looking`, the
    beliefs at an earlier time, nothing is learnt and the report is of that time. Raises StoreUnavailable, in
    which case nothing is learnt.
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
        unheld = tuple(fact for fact in rests_on if beliefs.canonical_fact(fact) not in after)
        return LearntRun(learnt, old, new, len(beliefs.facts()), unheld)


def plain(text: str) -> str:
    """Replace NUL characters by spaces, since a memory does not accept them."""
    return text.replace("\0", " ")


def _known(claims: Claims, fact: Triple, claimed: Sequence[Claim]) -> KnownFact:
    since = min(claims.history(claim.id)[0].known_from for claim in claimed)
    return KnownFact(fact, since, tuple(dict.fromkeys(claim.source for claim in claimed)))


def _spelled(fact: Triple) -> dict[str, Json]:
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object}


def fact_to_keep(edge: Edge) -> Triple:
    """Convert an edge of a run's graph to the fact that a memory stores.

    The node of a sentence is replaced by the sentence itself.
    """
    sentence = latest_sentence(edge.properties)
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
        """Return the facts that lines of evidence stand for."""
        by_line = {fact_of(edge): fact_to_keep(edge) for edge in self._edges.values()}
        return tuple(
            dict.fromkeys(by_line[line] for line in evidence if isinstance(line, str) and line in by_line)
        )

    def claims(self) -> Iterator[Claim]:
        """Yield a claim for each support that a fact gained in this run.

        Each new fact without a support gets one claim too.
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
        """Return the origin of a fact without a document: the first tool call that led to it, or else the
        model.
        """
        return next((call for call in calls if call.strip()), self._model or "a model")

    def _tells(self, call: str, sentence: str) -> bool:
        return any(place_in(text.text, sentence) is not None for text in self._of_call.get(call, ()))

    def _span(self, source: str, sentence: str) -> Span | None:
        """Return the span of a sentence in its document, ignoring whitespace.

        If the sentence is not found there, the span is the whole document.
        """
        if not sentence.strip():
            return None
        text = self._texts[source].text if source in self._texts else sentence
        start, end = place_in(text, sentence) or (0, len(text))
        return Span(start, end, plain(sentence))


def place_in(text: str, sentence: str) -> tuple[int, int] | None:
    """Return the start and end of a sentence in a text, ignoring whitespace, or None if it is not there."""
    if (start := text.find(sentence)) >= 0:
        return start, start + len(sentence)
    found = re.search(r"\s+".join(map(re.escape, sentence.split())), text)
    return found.span() if found else None


# A wrapper of tools that changes their results.


@dataclass(frozen=True)
class ThroughTool:
    """A wrapper with the name and arguments of another tool. Subclasses change its results."""

    tool: Tool

    @property
    def name(self) -> str:
        """That of the tool."""
        return self.tool.name

    @property
    def description(self) -> str:
        """That of the tool."""
        return self.tool.description

    @property
    def arguments(self) -> Mapping[str, Json]:
        """Those of the tool."""
        return self.tool.arguments

    @property
    def finds(self) -> str:
        """The argument that the tool searches by."""
        return sought_by(self.tool)


# Tools without retracted sources, so that the next question does not read them again.


@dataclass(frozen=True)
class WithoutRetracted(ThroughTool):
    """A tool without the documents that were retracted.

    Raises ToolFailed if nothing is left.
    """

    retracted: Collection[str]

    def __call__(self, /, **arguments: Json) -> Result:
        result = checked_result(self.tool(**arguments))
        left = tuple(document for document in result.sources if document.id not in self.retracted)
        gone = len(result.sources) - len(left)
        if str(ToolCall(self.name, arguments)) in self.retracted or (gone and not left):
            raise ToolFailed(
                f"{self.name}: all that it found was retracted; try other words", usage=result.usage
            )
        if not gone:
            return result
        lines = (
            f"[{number}] {' '.join(f'{each.title} {each.text}'.split())}"
            for number, each in enumerate(left, start=1)
        )
        return replace(result, text="\n".join(lines), sources=left)


def without_retracted(tools: Collection[Tool], retracted: Collection[str]) -> list[Tool]:
    """Wrap tools so that they return nothing from retracted sources."""
    return [WithoutRetracted(tool, retracted) for tool in tools] if retracted else list(tools)


# Changed documents: a text under a known id that is not the text the memory read gets an id of its own.
#
# Ids are paths within a folder, so those of two folders may be the same, and a file may have been
# rewritten. If its facts were recorded under the earlier text, each would support the other's, and
# retracting one would retract both.

_LETTERS = 8  # characters of a text's digest, appended to its id


@dataclass
class SameSources:
    """The documents that a memory has read, identified by their text, and remarks on changed documents."""

    beliefs: Beliefs
    remarks: dict[str, str] = field(default_factory=dict)  # by id, each once

    def distinguish_sources(self, document: Document) -> Document:
        """Return a document under its id, or under a new id if it is another text than the memory read.

        It is another text if it contains no sentence that the memory read under that id.
        """
        read = self.beliefs.sentences_of(document.id)
        gone = [sentence for sentence in read if place_in(plain(document.text), sentence) is None]
        if not gone:
            return document
        if len(gone) < len(read):
            told = f"{document.id} has changed: {len(gone)} of {len(read)} sentences that the memory read there stand there no more"
            self.remarks.setdefault(
                document.id,
                f"{told}, and what they say is believed still; `retract --fact FACT` takes a fact back",
            )
            return document
        own = f"{document.id}@{hashlib.sha256(document.text.encode('utf-8', 'surrogatepass')).hexdigest()[:_LETTERS]}"
        told = f"{document.id} is another text than the one that the memory read under this name, so it is kept as {own}"
        self.remarks.setdefault(
            document.id, f"{told}; if the earlier one is out of date: `retract --source {document.id}`"
        )
        return replace(document, id=own)


@dataclass(frozen=True)
class SourceDistinguisher(ThroughTool):
    """A tool whose documents are distinguished from others of the same id that a memory has read."""

    sources: SameSources

    def __call__(self, /, **arguments: Json) -> Result:
        result = checked_result(self.tool(**arguments))
        return replace(result, sources=tuple(map(self.sources.distinguish_sources, result.sources)))


# The memory of a question: its initial graph, its filtered tools, and what the run leaves behind.


@dataclass(frozen=True)
class MemorySession:
    """A memory, what is believed at the requested time, and the initial graph of a question."""

    claims: Claims
    beliefs: Beliefs
    begun: InitialGraph
    looks_only: bool  # a question about an earlier time learns nothing
    sources: SameSources

    def fill(self, store: Store) -> None:
        """Load the initial graph of the question into an empty store. Raises BadInput if it holds a graph."""
        if store.schema().nodes:
            raise BadInput(
                "the store holds a graph, and a memory is what a question begins with: leave one of them out"
            )
        if self.begun.facts:
            store.apply(store.graph().diff(self.begun.graph))

    def tools(self, tools: Collection[Tool]) -> list[Tool]:
        """Wrap tools for use with this memory.

        They return nothing from retracted sources, and a changed text under a known id gets an id of its own.
        """
        return without_retracted(
            [SourceDistinguisher(tool, self.sources) for tool in tools], self.beliefs.retracted_sources()
        )

    def learn(self, run: Trace) -> LearntRun:
        """Store what a run wrote in the memory, as `learn_run` does."""
        learnt = learn_run(self.claims, run, self.beliefs if self.looks_only else None)
        return replace(learnt, remarks=tuple(self.sources.remarks.values()))


@contextmanager
def open_memory_session(
    where: str | Path | Beliefs, question: str, *, at: datetime | None = None, most: int = MOST_REMEMBERED
) -> Iterator[MemorySession]:
    """Open a memory for a question, from a file of claims or from Claims, which stay open.

    A file that does not exist is created. Beliefs, as `Claims.as_of` returns them, and a file with `at` give
    what was believed at that time about that time, and learn nothing. Raises what `open_claims` raises.
    """
    looked_at = where if isinstance(where, Beliefs) else open_claims(where, new=at is None)
    claims = looked_at if isinstance(looked_at, Claims) else Claims(looked_at.storage, now=looked_at.now)
    try:
        beliefs = (
            claims.as_of(at, at if at is not None else claims.now()) if looked_at is claims else looked_at
        )
        looks_only = at is not None or looked_at is not claims
        yield MemorySession(
            claims, beliefs, remembered_near(beliefs, question, most=most), looks_only, SameSources(beliefs)
        )
    finally:
        if looked_at is not where:
            claims.close()
