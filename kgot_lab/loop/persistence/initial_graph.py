"""The graph that a question begins with: the facts of a memory that are near it, each with its sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from math import fsum, log1p

from kgot_lab.errors import require, require_count
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.provenance import Support, note
from kgot_lab.loop.modes.paths.mentions import place_under
from kgot_lab.memory.claims.beliefs import Beliefs
from kgot_lab.memory.claims.claim import Claim
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.words import content_words, named_words
from kgot_lab.types import Edge, Triple

MOST_REMEMBERED = 2000  # facts that a question begins with; a prompt is cut to far fewer
_NAMED = 3.0  # what a name in the question counts beside its words
_FURTHER = 0.5  # what a fact counts of the worth of one that it shares a name with
_CROWD = 20  # facts of one name from which on each counts less for it


@dataclass(frozen=True)
class InitialGraph:
    """What a question begins with: a graph, how many facts of the memory are in it, and how many hold in all."""

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
    """What a memory holds, as a graph to begin with; of more facts than `most` those near the question.
    Raises BadInput.

    Near are facts that share words with the question, most of all names, and then those that share a name
    with such facts.
    """
    require(beliefs, Beliefs, "a memory is Claims, or what their as_of(…) gives")
    require_count(most, 1, "most", "a question begins with some facts")
    with beliefs.storage.reading():
        held = beliefs.facts()
        chosen = held if len(held) <= most else nearest_facts(held, question, most)
        claims = beliefs.claims_of(chosen)
    return InitialGraph(graph_of_claims(claims), len(chosen), len(held))


def nearest_facts(facts: Sequence[Triple], question: str, most: int) -> tuple[Triple, ...]:
    """The facts nearest to a question, the nearest first."""
    asked, named = set(content_words(question)), f" {' '.join(named_words(question))} "
    words = [asked & set(content_words(f"{fact.subject} {fact.relation} {fact.object}")) for fact in facts]
    ends: dict[str, list[int]] = defaultdict(list)
    holding: dict[str, int] = defaultdict(int)
    for number, fact in enumerate(facts):
        for end in {fact.subject, fact.object}:
            ends[end].append(number)
        for word in words[number]:
            holding[word] += 1
    in_question = {end for end in ends if (name := " ".join(named_words(end))) and f" {name} " in named}
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
            around = ends.pop(end, [])  # a name is gone out from once, from the nearest of its facts
            share = _FURTHER * min(1.0, _CROWD / max(1, len(around)))
            for other in around:
                if other not in found:
                    heappush(waiting, (share * worth - own[other], other))
    return tuple(facts[number] for number in found)


def graph_of_claims(claims: Mapping[Triple, Iterable[Claim]]) -> PropertyGraph:
    """The graph of some facts as the loop writes them: a source is a support, and a sentence of a passage has
    a node of its own.
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
            edges.append(Edge(fact.subject, fact.relation, fact.object, note(plain)))
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for title, sentences in said.items():
        for number, (source, _, sentence) in enumerate(sorted(set(sentences)), start=1):
            place = place_under(title, number)
            places[source, sentence].append(place)
            edges.append(Edge(title, SAYS_SENTENCE, place, note([Support(source, sentence)])))
    for fact, claim in mentions:
        support = note([Support(claim.source, claim.fact.subject)])
        edges += [
            Edge(place, MENTIONS_NAME, fact.object, support)
            for place in places[claim.source, claim.fact.subject]
        ]
    return PropertyGraph.of((), {edge.identity: edge for edge in edges}.values(), dangling="add")


def is_sentence(claim: Claim) -> bool:
    """Whether a claim is that a title says a sentence: the sentence itself is then its object, not a node for
    it.
    """
    return (
        claim.fact.relation == SAYS_SENTENCE
        and claim.span is not None
        and claim.span.text == claim.fact.object
    )


def is_mention(claim: Claim) -> bool:
    """Whether a claim is that a sentence mentions a name: the sentence itself is then its subject."""
    return (
        claim.fact.relation == MENTIONS_NAME
        and claim.span is not None
        and claim.span.text == claim.fact.subject
    )
