"""What an answer rests on: of the facts that a run read, the few that speak of its question, and the
sentences they were taken from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.provenance import supports_of
from kgot_lab.loop.events import Answered, Event, Started, ToolReturned
from kgot_lab.loop.trace import Trace, graph_after
from kgot_lab.stores.embedded_store import fact_of
from kgot_lab.text.sentences import sentences
from kgot_lab.text.words import content_words, plain_answer
from kgot_lab.types import Document, Edge

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Quoted:
    """A sentence that facts were taken from, and the title of its document."""

    sentence: str
    title: str


@dataclass(frozen=True)
class Grounds:
    """An answer and what it rests on: `telling` facts hold what the read facts say of the question, `beside`
    are the others.

    The `hub` is the node that is the answer, or else the one that most facts touch; "" without facts.
    """

    question: str
    answer: str
    guess: bool
    telling: tuple[Edge, ...]
    beside: tuple[Edge, ...]
    quoted: tuple[Quoted, ...]
    hub: str
    graph: PropertyGraph
    model: str

    @property
    def hub_is_answer(self) -> bool:
        """Whether the hub is called by the words of the answer, alone or among others."""
        return bool(self.hub) and _likeness(self.name(self.hub), self.answer) > 1

    def name(self, node: str) -> str:
        """What a reader would call a node."""
        return self.graph.node(node).text

    def content_words(self) -> frozenset[str]:
        """The telling words of the telling facts, by which a word of the question is known to be spoken of."""
        return frozenset(word for edge in self.telling for word in _words(edge, self.graph))

    def pieces(self) -> Iterator[tuple[str, bool]]:
        """The question in pieces, and of each whether a telling fact speaks of it."""
        told, start = self.content_words(), 0
        for match in _WORD.finditer(self.question):
            yield self.question[start : match.start()], False
            yield match[0], bool(told & set(content_words(match[0])))
            start = match.end()
        yield self.question[start:], False


def grounds(run: Trace | Iterable[Event]) -> Grounds:
    """What the answer of a run rests on; raises BadInput for a run that has no answer yet."""
    events = run.events if isinstance(run, Trace) else tuple(run)
    started = next((event for event in events if isinstance(event, Started)), None)
    answered = next((event for event in reversed(events) if isinstance(event, Answered)), None)
    if started is None or answered is None:
        raise BadInput(
            "a picture of an answer needs a run that has one: give a finished run, as load_run returns it"
        )
    graph = graph_after(events)
    by_fact = {fact_of(edge): edge for edge in graph.edges}
    read = [by_fact[fact] for fact in answered.evidence if isinstance(fact, str) and fact in by_fact]
    joined = _joined_to(answered.text, read, graph)
    wanted = set(content_words(f"{started.question} {answered.text}"))
    hub = _hub(joined, answered.text, graph)
    telling = _with_ways(_fewest(joined, wanted, graph), joined, hub)
    passages = [document for document in _documents(events) if document.id in answered.passages]
    return Grounds(
        started.question,
        answered.text,
        answered.forced,
        telling,
        tuple(edge for edge in joined if edge not in telling),
        tuple(_quoted(telling, passages, graph)),
        hub,
        graph,
        started.planning,
    )


def _joined_to(answer: str, facts: Sequence[Edge], graph: PropertyGraph) -> list[Edge]:
    """The facts that a path of facts joins to a node that is the answer; all of them where no node is."""
    nearest = max(
        (_likeness(graph.node(end).text, answer) for edge in facts for end in (edge.source, edge.target)),
        default=0,
    )
    reached = {
        end
        for edge in facts
        for end in (edge.source, edge.target)
        if nearest == _likeness(graph.node(end).text, answer)
    }
    while (
        more := {
            end
            for edge in facts
            if {edge.source, edge.target} & reached
            for end in (edge.source, edge.target)
        }
        - reached
    ):
        reached |= more
    return [edge for edge in facts if edge.source in reached]


def _hub(facts: Sequence[Edge], answer: str, graph: PropertyGraph) -> str:
    ends = [end for edge in facts for end in (edge.source, edge.target)]
    return max(
        dict.fromkeys(ends),
        key=lambda end: (_likeness(graph.node(end).text, answer), ends.count(end)),
        default="",
    )


def _with_ways(chosen: Sequence[Edge], facts: Sequence[Edge], hub: str) -> tuple[Edge, ...]:
    """Chosen facts, and those on the shortest way from the hub to each that can be reached."""
    back: dict[str, Edge] = {}
    queue, depth = [hub], {hub: 0}
    for node in queue:
        for edge in facts:
            other = edge.target if edge.source == node else edge.source if edge.target == node else node
            if other not in depth:
                back[other], depth[other] = edge, depth[node] + 1
                queue.append(other)
    wanted = list(chosen)
    for edge in chosen:
        end = min((edge.source, edge.target), key=lambda end: depth.get(end, 0))
        while end in back:
            wanted.append(back[end])
            end = back[end].target if back[end].source == end else back[end].source
    return tuple(edge for edge in facts if edge in wanted)


def _fewest(facts: Sequence[Edge], wanted: set[str], graph: PropertyGraph) -> tuple[Edge, ...]:
    """The fewest facts, chosen greedily, that hold all wanted words that the facts hold; in their order."""
    chosen: list[Edge] = []
    left = set(wanted)
    while facts and (found := {edge.identity: left & _words(edge, graph) for edge in facts}):
        # of equals the first: the loop puts the nearest first
        best = max(facts, key=lambda edge: len(found[edge.identity]))
        if not found[best.identity]:
            break
        chosen.append(best)
        left -= found[best.identity]
    return tuple(edge for edge in facts if edge in chosen) or tuple(facts[:1])


def _words(edge: Edge, graph: PropertyGraph) -> set[str]:
    return set(content_words(f"{graph.node(edge.source).text} {edge.type} {graph.node(edge.target).text}"))


def _likeness(text: str, answer: str) -> int:
    one, other = f" {plain_answer(text)} ", f" {plain_answer(answer)} "
    return (
        0
        if not one.strip() or not other.strip()
        else 3
        if one == other
        else 2
        if other in one
        else int(one in other)
    )


def _documents(events: Iterable[Event]) -> list[Document]:
    return [document for event in events if isinstance(event, ToolReturned) for document in event.sources]


def _quoted(facts: Iterable[Edge], passages: Sequence[Document], graph: PropertyGraph) -> Iterator[Quoted]:
    """The sentences that facts were taken from, each once: as the facts say themselves, or else the first
    that names both ends.
    """
    titles: Mapping[str, str] = {document.id: document.title for document in passages}
    seen: set[str] = set()
    for edge in facts:
        supports = [support for support in supports_of(edge.properties) if support.sentence]
        said, title = (supports[-1].sentence, titles.get(supports[-1].source, "")) if supports else ("", "")
        ends = [graph.node(end).text.lower() for end in (edge.source, edge.target)]
        named = (
            (part, each.title)
            for each in passages
            for part in sentences(each.text)
            if all(end in part.lower() for end in ends)
        )
        said, title = (said, title) if said else next(named, ("", ""))
        if said and said not in seen:
            seen.add(said)
            yield Quoted(said, title)
