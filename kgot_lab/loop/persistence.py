"""Memory across questions: a run begins with the facts of a memory, and its writes become claims there."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from heapq import heapify, heappop, heappush
from math import fsum, log1p
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, ToolFailed, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.changes import Support, latest_sentence, support_properties, supports_of
from kgot_lab.loop.events import Answered, Event, Started, ToolCall
from kgot_lab.loop.evidence import SupportFinder, sentences_stating
from kgot_lab.loop.modes.paths.mentions import RECALLED, is_sentence_node, sentence_node
from kgot_lab.loop.state import state_after
from kgot_lab.loop.trace import Trace, consistent_events, graph_after
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Claim, Learnt, Span
from kgot_lab.memory.claims.claims import Claims, open_claims
from kgot_lab.memory.user_memory import Memory, Recalled, open_memory
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.stores.protocol import Store
from kgot_lab.text.cleaning import format_count, plain_text
from kgot_lab.text.words import content_words, name_tokens
from kgot_lab.tools.tool import Result, Tool, check_call, checked_result, search_argument, source_digest
from kgot_lab.types import Document, Edge, Json, Node, Triple

# The initial graph of a question: the facts of a memory near it, with their sources.

MAX_INITIAL_FACTS = 2000  # maximum facts of an initial graph; a prompt shows far fewer
_NAME_SCORE = 3.0  # score of a name in the question, in addition to its words
_DECAY = 0.5  # share of its score that a fact passes on to facts that share a name with it
_CROWDED_NAME = 20  # number of facts of a name above which each counts less


@dataclass(frozen=True)
class InitialGraph:
    """The initial graph of a question, the number of facts in it, and the number in the whole memory.

    From the memory of a user they are sentences.
    """

    graph: PropertyGraph = field(repr=False)
    facts: int
    held: int
    noun: str = "fact"

    def __str__(self) -> str:
        part = f"{self.facts:,} of " if self.facts < self.held else ""
        return f"{part}{format_count(self.held, self.noun)}"


@check_arguments
def initial_graph(beliefs: Beliefs, question: str, *, max_facts: int = MAX_INITIAL_FACTS) -> InitialGraph:
    """Return the facts of a memory as an initial graph for a question.

    If there are more than `most`, the nearest are chosen: facts that share words with the question, names
    above all, and then facts that share a name with those. Raises BadInput if `beliefs` is no memory or
    `most` is below 1.
    """
    require_count(max_facts, 1, "most", "a question begins with some facts")
    with beliefs.storage.reading():
        facts = beliefs.facts()
        chosen = facts if len(facts) <= max_facts else nearest_facts(facts, question, max_facts)
        claims = beliefs.claims_of(chosen)
    return InitialGraph(graph_from_claims(claims), len(chosen), len(facts))


def nearest_facts(facts: Sequence[Triple], question: str, limit: int) -> tuple[Triple, ...]:
    """Return at most `most` facts nearest to a question, the nearest first."""
    question_words, question_text = set(content_words(question)), f" {' '.join(name_tokens(question))} "
    texts = (f"{fact.subject} {fact.relation} {fact.object}" for fact in facts)
    shared_words = [question_words & set(content_words(text)) for text in texts]
    facts_of_name: dict[str, list[int]] = defaultdict(list)
    document_frequency: dict[str, int] = defaultdict(int)
    for number, fact in enumerate(facts):
        for endpoint in {fact.subject, fact.object}:
            facts_of_name[endpoint].append(number)
        for word in shared_words[number]:
            document_frequency[word] += 1
    named_in_question = {
        endpoint
        for endpoint in facts_of_name
        if (name := " ".join(name_tokens(endpoint))) and f" {name} " in question_text
    }
    scores = [
        fsum(log1p(len(facts) / document_frequency[word]) for word in shared_words[number])
        + _NAME_SCORE * len({fact.subject, fact.object} & named_in_question)
        for number, fact in enumerate(facts)
    ]
    queue = [(-score, number) for number, score in enumerate(scores) if score]
    heapify(queue)
    chosen: dict[int, None] = {}
    while queue and len(chosen) < limit:
        score, number = heappop(queue)
        if number in chosen:
            continue
        chosen[number] = None
        for endpoint in {facts[number].subject, facts[number].object}:
            # each name is expanded once, from the nearest of its facts
            neighbours = facts_of_name.pop(endpoint, [])
            weight = _DECAY * min(1.0, _CROWDED_NAME / max(1, len(neighbours)))
            for neighbour in neighbours:
                if neighbour not in chosen:
                    heappush(queue, (weight * score - scores[neighbour], neighbour))
    return tuple(facts[number] for number in chosen)


def graph_from_claims(claims: Mapping[Triple, Iterable[Claim]]) -> PropertyGraph:
    """Build a graph from claims in the form that the loop writes.

    Each source becomes a support, and each sentence of a passage gets its own node.
    """
    edges: list[Edge] = []
    # by title: source, where it begins there, sentence
    said_by_title: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    mentions: list[tuple[Triple, Claim]] = []
    for fact, fact_claims in claims.items():
        plain: list[Support] = []
        for claim in fact_claims:
            if _is_quoted(claim, SAYS_SENTENCE, claim.fact.object):  # the sentence itself, not its node
                start = claim.span.start if claim.span else 0
                said_by_title[fact.subject].append((claim.source, start, claim.fact.object))
            elif _is_quoted(claim, MENTIONS_NAME, claim.fact.subject):
                mentions.append((fact, claim))
            else:
                plain.append(Support(claim.source, claim.span.text if claim.span else ""))
        if plain:
            edges.append(Edge(fact.subject, fact.relation, fact.object, support_properties(plain)))
    nodes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, sentences in said_by_title.items():
        for number, (source, _, sentence) in enumerate(sorted(set(sentences)), start=1):
            node = sentence_node(title, number)
            nodes[source, sentence].append(node)
            edges.append(Edge(title, SAYS_SENTENCE, node, support_properties([Support(source, sentence)])))
    for fact, claim in mentions:
        support = support_properties([Support(claim.source, claim.fact.subject)])
        saying = nodes[claim.source, claim.fact.subject]
        edges += (Edge(node, MENTIONS_NAME, fact.object, support) for node in saying)
    return PropertyGraph.of((), {edge.identity: edge for edge in edges}.values(), dangling="add")


def graph_from_recalled(user: str, recalled: Iterable[Recalled]) -> PropertyGraph:
    """Build a graph of what a memory recalls: dated sentences under one name, and the facts that they state."""
    title = f"what the user {user} said"
    edges: dict[tuple[str, ...], Edge] = {}
    for each in recalled:
        line = each.line.removeprefix("- ")
        support = support_properties([Support(each.source, line)])
        names = ((line, MENTIONS_NAME, fact.object) for fact in each.facts)
        parts = ((title, SAYS_SENTENCE, line), *(fact.identity for fact in each.facts), *names)
        edges = {part: Edge(*part, support) for part in parts} | edges
    return PropertyGraph.of([Node(title, (RECALLED,))] if edges else (), edges.values(), dangling="add")


def _is_quoted(claim: Claim, relation: str, sentence: str) -> bool:
    """Return whether a claim has a relation of a sentence, and quotes that sentence."""
    return claim.fact.relation == relation and (claim.span and claim.span.text) == sentence


# Learning: the writes of a finished run as claims, in one transaction.

MODEL_CONFIDENCE = 0.8  # the confidence of a fact that a model read in a sentence; nothing measures it, review may (`ClaimReview.calibrated`)
UNSTATED_CONFIDENCE = 0.5  # of a fact that no sentence was found for: less than what counts without review


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
            {**_fact_to_json(each.fact), "since": each.since.isoformat(), "sources": list(each.sources)}
            for each in self.old
        ]
        new, unheld = ([_fact_to_json(fact) for fact in facts] for facts in (self.new, self.unheld))
        facts = {"old": old, "new": new, "unheld": unheld, "facts": self.held}
        return {"learnt": asdict(self.learnt), **facts, "remarks": [*self.remarks]}


@check_arguments
def learn_run(claims: Claims, run: Trace, beliefs_at: Beliefs | None = None) -> LearntRun:
    """Store what a finished run wrote in a memory, and record its answer with its evidence.

    A run is learnt only once. A run without an answer leaves nothing. Retracted facts stay retracted, even if
    the run read them again, and facts of the initial graph are not learnt from it. With `beliefs_at`, the
    beliefs at an earlier time, nothing is learnt and the report is of that time. Raises StoreUnavailable, in
    which case nothing is learnt.
    """
    answered = next((event for event in reversed(run.events) if isinstance(event, Answered)), None)
    written = _WrittenFacts(run.events)
    new_claims = list(written.claims())  # before another process has to wait
    rests_on = written.evidence_facts(answered.evidence if answered is not None else ())
    by = f"run {run.run}"
    with claims.storage.changing() if beliefs_at is None else claims.storage.reading():
        if answered is None or any(change.by == by for change in claims.log()):
            return LearntRun(Learnt(None), held=len(claims.facts()))
        known_before = (beliefs_at or claims).claims_of(rests_on)
        learnt = claims.learn(new_claims, by=by, back=False) if beliefs_at is None else Learnt(None)
        if rests_on and beliefs_at is None:
            claims.note_answer(plain_text(run.question), plain_text(answered.text), rests_on)
        old_facts = tuple(_known_fact(claims, fact, claimed) for fact, claimed in known_before.items())
        beliefs = beliefs_at or claims
        known_now = beliefs.claims_of(rests_on)
        new_facts = tuple(fact for fact in known_now if fact not in known_before)
        not_held = tuple(fact for fact in rests_on if beliefs.canonical_fact(fact) not in known_now)
        return LearntRun(learnt, old_facts, new_facts, len(beliefs.facts()), not_held)


def _known_fact(claims: Claims, fact: Triple, claimed: Sequence[Claim]) -> KnownFact:
    since = min(claims.history(claim.id)[0].known_from for claim in claimed)
    return KnownFact(fact, since, tuple(dict.fromkeys(claim.source for claim in claimed)))


def _fact_to_json(fact: Triple) -> dict[str, Json]:
    return {"subject": fact.subject, "relation": fact.relation, "object": fact.object}


def stored_fact(edge: Edge) -> Triple:
    """Convert an edge of a run's graph to the fact that a memory stores.

    The node of a sentence is replaced by the sentence itself.
    """
    sentence = latest_sentence(edge.properties)
    if edge.type == SAYS_SENTENCE and sentence and is_sentence_node(edge.target):
        return Triple(plain_text(edge.source), edge.type, plain_text(sentence))
    if edge.type == MENTIONS_NAME and sentence and is_sentence_node(edge.source):
        return Triple(plain_text(sentence), edge.type, plain_text(edge.target))
    return Triple(plain_text(edge.source), plain_text(edge.type), plain_text(edge.target))


class _WrittenFacts:
    """The facts that a run wrote as claims, and those that its answer rests on."""

    def __init__(self, events: Iterable[Event]) -> None:
        consistent = consistent_events(events)
        self._state = state_after(consistent)
        self._found = SupportFinder(self._state)
        self._edges = {
            edge.identity: edge
            for edge in graph_after(consistent).edges
            if all(plain_text(part).strip() for part in edge.identity[:3])  # a NUL becomes a space
        }
        self._model = next((event.planning for event in consistent if isinstance(event, Started)), "")
        # by what a claim names as its source: a document, or a call whose text has none
        self._texts: dict[str, Document] = {}
        self._of_call: dict[str, list[Document]] = {}
        for returned in self._state.returns:
            sources = returned.sources or (Document(str(returned.call), returned.text),)
            self._of_call.setdefault(str(returned.call), []).extend(sources)
            self._texts.update((document.id, document) for document in sources)

    def evidence_facts(self, evidence: Iterable[Json]) -> tuple[Triple, ...]:
        """Return the facts that lines of evidence stand for."""
        by_line = {fact_of(edge): stored_fact(edge) for edge in self._edges.values()}
        lines = (line for line in evidence if isinstance(line, str) and line in by_line)
        return tuple(dict.fromkeys(by_line[line] for line in lines))

    def claims(self) -> Iterator[Claim]:
        """Yield a claim for each support that a fact gained in this run.

        Each new fact without a support gets one claim too.
        """
        start = {edge.identity: frozenset(supports_of(edge.properties)) for edge in self._state.start.edges}
        changed = {edge.identity for diff in self._state.diffs for edge in diff.written_edges}
        for identity, edge in self._edges.items():
            fact = stored_fact(edge)
            if identity in changed or self._state.spelled:
                yield from self._claims_for(fact, edge, start.get(identity))

    def _claims_for(self, fact: Triple, edge: Edge, start: frozenset[Support] | None) -> Iterator[Claim]:
        # a sentence or a name in it, which no model wrote
        by_rule = fact.identity != (edge.source, edge.type, edge.target)
        said_by = "" if by_rule else plain_text(self._model)
        calls = self._found.source_calls(edge)
        supports = [support for support in self._found.find(edge) if support not in (start or ())]
        if not supports and start is None:
            texts = (text for call in calls for text in self._of_call.get(call, ()))
            supports = list(sentences_stating(edge, texts))
        confidence = 1.0 if by_rule else MODEL_CONFIDENCE
        for support in supports:
            stating = (call for call in calls if self._contains(call, support.sentence))
            source = support.source or next(stating, self._default_source(calls))
            span = self._span(source, support.sentence)
            yield Claim(fact, plain_text(source), span, said_by, confidence=confidence)
        if not supports and start is None:
            source = plain_text(self._default_source(calls))
            yield Claim(fact, source, None, said_by, confidence=UNSTATED_CONFIDENCE)

    def _default_source(self, calls: Sequence[str]) -> str:
        """Return the origin of a fact without a document: the first tool call that led to it, or else the
        model.
        """
        return next((call for call in calls if call.strip()), self._model or "a model")

    def _contains(self, call: str, sentence: str) -> bool:
        return any(sentence_span(text.text, sentence) is not None for text in self._of_call.get(call, ()))

    def _span(self, source: str, sentence: str) -> Span | None:
        """Return the span of a sentence in its document, ignoring whitespace.

        If the sentence is not found there, the span is the whole document.
        """
        if not sentence.strip():
            return None
        text = self._texts[source].text if source in self._texts else sentence
        start, end = sentence_span(text, sentence) or (0, len(text))
        return Span(start, end, plain_text(sentence))


def sentence_span(text: str, sentence: str) -> tuple[int, int] | None:
    """Return the start and end of a sentence in a text, ignoring whitespace, or None if it is not there."""
    if (start := text.find(sentence)) >= 0:
        return start, start + len(sentence)
    match = re.search(r"\s+".join(map(re.escape, sentence.split())), text)
    return match.span() if match else None


# A wrapper of tools that changes their results.


@dataclass(frozen=True)
class ToolWrapper:
    """A wrapper that is described as another tool is. Subclasses change its results."""

    tool: Tool
    name: str = field(init=False)
    description: str = field(init=False)
    arguments: Mapping[str, Json] = field(init=False, hash=False)
    finds: str = field(init=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        tool = self.tool
        same = {"name": tool.name, "description": tool.description, "arguments": tool.arguments}
        vars(self).update(same, finds=search_argument(tool), digest=source_digest(tool))

    def check_arguments(self, arguments: Mapping[str, Json]) -> None:
        """Raise ToolFailed for arguments that the tool does not take."""
        check_call(self.tool, arguments)


# Tools without retracted sources, so that the next question does not read them again.


@dataclass(frozen=True)
class RetractionFilter(ToolWrapper):
    """A tool without the documents that were retracted.

    Raises ToolFailed if nothing is left.
    """

    retracted: Collection[str]

    def __call__(self, /, **arguments: Json) -> Result:
        result = checked_result(self.tool(**arguments))
        remaining = tuple(document for document in result.sources if document.id not in self.retracted)
        removed = len(result.sources) - len(remaining)
        if str(ToolCall(self.name, arguments)) in self.retracted or (removed and not remaining):
            message = f"{self.name}: all that it found was retracted; try other words"
            raise ToolFailed(message, usage=result.usage)
        if not removed:
            return result
        texts = (" ".join(f"{document.title} {document.text}".split()) for document in remaining)
        lines = (f"[{number}] {text}" for number, text in enumerate(texts, start=1))
        return replace(result, text="\n".join(lines), sources=remaining)


def without_retracted(tools: Collection[Tool], retracted: Collection[str]) -> list[Tool]:
    """Wrap tools so that they return nothing from retracted sources."""
    return [RetractionFilter(tool, retracted) for tool in tools] if retracted else list(tools)


# Changed documents: a text under a known id that is not the text the memory read gets an id of its own.
#
# Ids are paths within a folder, so those of two folders may be the same, and a file may have been
# rewritten. If its facts were recorded under the earlier text, each would support the other's, and
# retracting one would retract both.

_DIGEST_LENGTH = 8  # characters of a text's digest, appended to its id


@dataclass
class KnownSources:
    """The documents that a memory has read, identified by their text, and remarks on changed documents."""

    beliefs: Beliefs
    remarks: dict[str, str] = field(default_factory=dict)  # by id, each once

    def distinguish_sources(self, document: Document) -> Document:
        """Return a document under its id, or under a new id if it is another text than the memory read.

        It is another text if it contains no sentence that the memory read under that id.
        """
        known_sentences = self.beliefs.sentences_of(document.id)
        text = plain_text(document.text)
        missing = [sentence for sentence in known_sentences if sentence_span(text, sentence) is None]
        if not missing:
            return document
        if len(missing) < len(known_sentences):
            remark = f"{document.id} has changed: {len(missing)} of {len(known_sentences)} sentences that the memory read there are gone"
            hint = "and what they say is believed still; `retract --fact FACT` takes a fact back"
            self.remarks.setdefault(document.id, f"{remark}, {hint}")
            return document
        new_id = f"{document.id}@{hashlib.sha256(document.text.encode('utf-8', 'surrogatepass')).hexdigest()[:_DIGEST_LENGTH]}"
        remark = f"{document.id} is another text than the one that the memory read under this name, so it is kept as {new_id}"
        hint = f"if the earlier one is out of date: `retract --source {document.id}`"
        self.remarks.setdefault(document.id, f"{remark}; {hint}")
        return replace(document, id=new_id)


@dataclass(frozen=True)
class SourceDistinguisher(ToolWrapper):
    """A tool whose documents are distinguished from others of the same id that a memory has read."""

    sources: KnownSources

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
    sources: KnownSources

    def fill(self, store: Store) -> None:
        """Load the initial graph of the question into an empty store. Raises BadInput if it holds a graph."""
        if store.schema().nodes:
            problem = "the store holds a graph, and a question begins with a memory"
            raise BadInput(f"{problem}: leave one of them out")
        if self.begun.facts:
            store.apply(store.graph().diff(self.begun.graph))

    def tools(self, tools: Collection[Tool]) -> list[Tool]:
        """Wrap tools for use with this memory.

        They return nothing from retracted sources, and a changed text under a known id gets an id of its own.
        """
        distinguished = [SourceDistinguisher(tool, self.sources) for tool in tools]
        return without_retracted(distinguished, self.beliefs.retracted_sources())

    def learn(self, run: Trace) -> LearntRun | None:
        """Store what a run wrote in the memory, as `learn_run` does."""
        learnt = learn_run(self.claims, run, self.beliefs if self.looks_only else None)
        return replace(learnt, remarks=tuple(self.sources.remarks.values()))


class RecallSession(MemorySession):
    """The sentences of a user that a question begins with. The memory learns nothing of the run."""

    def learn(self, run: Trace) -> None:
        """Store nothing, since only the user adds to the memory."""


MemoryLocation = str | Path | Beliefs | Memory


@contextmanager
def open_memory_session(
    location: MemoryLocation, question: str, *, at: datetime | None = None, user: str | None = None
) -> Iterator[MemorySession]:
    """Open a memory for a question, from a file of claims, or from Claims or a Memory, which stay open.

    A file that does not exist is created. Beliefs, as `Claims.as_of` returns them, and a file with `at` give
    what was believed at that time about that time, and learn nothing. The memory of a user, or of `user` in an
    existing file, gives what it recalls for the question, and learns nothing. Raises what `open_claims` raises.
    """
    with ExitStack() as stack:
        if user is not None and isinstance(location, str | Path):
            location = stack.enter_context(open_memory(location, user=user, new=False))
            if not location.claims.sources():
                raise BadInput(
                    f"{user!r} has said nothing in this memory: see `kgot-lab memory FILE history`"
                )
        if isinstance(location, Memory):
            found, claims = location.recall(question, at=at), location.claims
            graph = graph_from_recalled(location.user, found)
            begun = InitialGraph(graph, len(found), len(found), "sentence")
            yield RecallSession(claims, claims, begun, True, KnownSources(claims))
            return
        if not isinstance(location, Beliefs):
            location = stack.enter_context(open_claims(location, new=at is None))
        claims = location if isinstance(location, Claims) else Claims(location.storage, now=location.now)
        beliefs = claims.as_of(at, at or claims.now()) if location is claims else location
        looks_only = at is not None or location is not claims
        begun = initial_graph(beliefs, question)
        yield MemorySession(claims, beliefs, begun, looks_only, KnownSources(beliefs))
