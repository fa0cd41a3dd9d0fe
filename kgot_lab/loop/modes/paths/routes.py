"""Routes: the rows of a path read grouped by the names they join, the best first, with their sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.modes.paths.mentions import SCALE, STANDING, PlacedSentence, title_of, worths
from kgot_lab.loop.render import relevance
from kgot_lab.loop.run_context import Loop
from kgot_lab.retrieval.entity_linking import NameIndex, normalise_name
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.text.words import canonical_answer, name_units
from kgot_lab.types import Document, Edge, Json

FactParts = tuple[str, str, str]  # subject, relation, object
_MARKS = 6  # tokens of a title and its brackets


@dataclass(frozen=True)
class Route:
    """A path through the graph: its end names, the name or fact that joins them, and the sentences at both.

    `links` are the sentences that contain the joining name. A route of one name has no end.
    """

    start: str
    end: str
    joint: str
    worth: float
    sentences: tuple[PlacedSentence, ...]
    links: frozenset[str] = frozenset()  # places
    facts: tuple[FactParts, ...] = ()

    def within(self, budget: int, own: Mapping[str, float]) -> Route:
        """Return the route with the sentences that fit in a token budget, in their order.

        The best link is taken first, then the best sentence of the other end, so that both ends are covered,
        then those with the highest scores.
        """
        order = sorted(self.sentences, key=lambda each: -own.get(each.place, 0.0))
        if link := next((each for each in order if each.place in self.links), None):
            other = next((each for each in order if each.title != link.title), link)
            order = list(dict.fromkeys((link, other, *order)))
        kept: list[PlacedSentence] = []
        used = 0
        for sentence in order:
            size = estimate_tokens(sentence.text) + _MARKS
            if not kept or used + size <= budget:
                kept.append(sentence)
                used += size
        places = {each.place for each in kept}
        return replace(self, sentences=tuple(each for each in self.sentences if each.place in places))

    def with_sentences_for(self, answer: str) -> Route:
        """Return the route with the sentences that contain an answer word for word, or all if none does."""
        wanted = f" {' '.join(name_units(answer))} "
        said = tuple(each for each in self.sentences if wanted in f" {' '.join(name_units(each.text))} ")
        return replace(self, sentences=said or self.sentences)

    def resting(self, answer: str) -> Route:
        """Return the route with the sentences and facts that state an answer, and what joins them to the
        start.

        These are links and facts. The route is unchanged if nothing states the answer.
        """
        wanted = f" {' '.join(name_units(answer))} "
        says = {each.place for each in self.sentences if wanted in f" {' '.join(name_units(each.text))} "}
        telling = [fact for fact in self.facts if wanted in f" {' '.join(name_units(fact_line(fact)))} "]
        if not says and not telling:
            return self
        titles = {each.title for each in self.sentences if each.place in says}
        if telling and self.start:
            chained = _chain(self.facts, self.start, telling)
        else:
            chained = [
                fact for fact in self.facts if self.end or fact in telling or titles & {fact[0], fact[2]}
            ]
        places = says | (self.links if self.end else frozenset())
        return replace(
            self,
            sentences=tuple(each for each in self.sentences if each.place in places),
            facts=tuple(chained),
        )

    @property
    def text(self) -> str:
        """The facts and sentences of the route, a line each."""
        return "\n".join([*map(fact_line, self.facts), *map(str, self.sentences)])

    def __str__(self) -> str:
        return f"{self.start} --({self.joint})-- {self.end}" if self.end else self.start


def _chain(facts: Sequence[FactParts], start: str, telling: Sequence[FactParts]) -> list[FactParts]:
    """Return the facts that lead from a name to those that state an answer, and the latter, in order.

    Only the latter are returned if no facts lead there.
    """
    before: dict[str, FactParts] = {}
    frontier, reached = {start}, {start}
    while frontier:
        following: set[str] = set()
        for fact in facts:
            for near, far in ((fact[0], fact[2]), (fact[2], fact[0])):
                if near in frontier and far not in reached | following:
                    before[far] = fact
                    following.add(far)
        frontier, reached = following, reached | following
    wanted = set(telling)
    for fact in telling:
        name = next((end for end in (fact[0], fact[2]) if end in reached), "")
        while name in before:
            wanted.add(before[name])
            name = before[name][2] if before[name][0] == name else before[name][0]
    return [fact for fact in facts if fact in wanted]


def fact_line(fact: FactParts) -> str:
    """Format a fact as a prompt line, with a mark if it begins as the question line does."""
    line = " ".join(" ".join(fact).split())
    return f"[fact] {line}" if line.casefold().startswith("question") else line


def routes_of(rows: Iterable[Json]) -> list[Route]:
    """Build routes from the rows of a `paths` read, the best first.

    Rows between the same two names form one route.
    """
    groups: dict[frozenset[str], list[Mapping[str, Json]]] = {}
    for row in rows:
        if isinstance(row, Mapping) and row.get("start"):
            groups.setdefault(frozenset(filter(None, (row["start"], row.get("end")))), []).append(row)
    found = [_route(group) for group in groups.values()]
    return sorted(found, key=lambda route: -route.worth)  # stable: ties stay in the order of the rows


def _route(rows: list[Mapping[str, Json]]) -> Route:
    best = rows[0]
    start, end = best["start"], best.get("end") or ""
    said: dict[str, PlacedSentence] = {}
    links: set[str] = set()
    facts: dict[tuple[str, str, str], None] = {}
    for row in rows:
        for number, title in (("1", row["start"]), ("2", row.get("end") or "")):
            place = row.get(f"place_{number}") or ""
            if place:
                said[place] = PlacedSentence(
                    place, title, row[f"sentence_{number}"], row.get(f"source_{number}") or "", _number(place)
                )
        if row.get("place_1") and row.get("end"):
            links.add(row["place_1"])
        if row.get("relation"):
            facts[row["subject"], row["relation"], row["object"]] = None
    order = sorted(said.values(), key=lambda each: (each.title != start, each.title, each.number))
    return Route(
        start,
        end,
        best.get("name") or best.get("relation") or "",
        float(best["worth"]),
        tuple(order),
        frozenset(links),
        tuple(facts),
    )


def _number(place: str) -> int:
    digits = place.rpartition("§")[2]
    return int(digits) - 1 if digits.isdecimal() else 0


# The state of a question in this mode: sentences, the ranks of their passages, and the answers so far.

_STARTS = 12  # names that paths begin at


@dataclass(frozen=True)
class PathAnswer:
    """An answer, its routes, its probability (None if not reported), and why it is rejected."""

    text: str
    routes: tuple[Route, ...]
    likelihood: float | None
    problem: str = ""
    computed: bool = False  # computed from values that were read
    trust: float = 1.0  # weight of its probability

    @property
    def likely(self) -> float:
        """The probability of the answer times its weight, or 0 if it is not reported."""
        return self.trust * (self.likelihood or 0.0)

    @property
    def certainty(self) -> str:
        """How sure the answer is, for people."""
        if self.computed:
            return "was worked out from what was read"
        told = "was read" if self.likelihood is None else f"is {self.likelihood:.0%} likely"
        if self.likelihood is not None and self.trust < 1:
            told += f" (of which {self.trust:.0%} count, for it was not read from the first path)"
        return f"{told}, but {self.problem}" if self.problem else f"{told} and stands in the evidence"


@dataclass
class PathWalk:
    """The state of a question in the mode `paths`, apart from the graph."""

    embedder: Embedder | None
    sentences: dict[str, PlacedSentence] = field(default_factory=dict)  # by node
    standing: dict[str, float] = field(default_factory=dict)  # rank scores of titles, 0 to 1
    found: dict[str, float] = field(default_factory=dict)  # rank scores of passages, by id
    passages: tuple[Document, ...] = ()  # found by the question itself, best first
    answered: list[PathAnswer] = field(default_factory=list)
    read: set[str] = field(default_factory=set)  # texts of the routes read so far
    # facts of the initial graph by name
    facts: dict[str, tuple[FactParts, ...]] = field(default_factory=dict)
    said: frozenset[str] | None = None  # the sentences of that graph, loaded on first use
    split: bool = False  # whether the question was split into hops

    def stands(self, documents: Sequence[Document]) -> None:
        """Record the rank scores of passages: 1 / rank, halved unless the search was the question."""
        self.passages = self.passages or tuple(documents)
        whole = 1.0 if not self.standing else 0.5
        for rank, document in enumerate(documents, start=1):
            title = title_of(document)
            self.standing[title] = max(self.standing.get(title, 0.0), whole / rank)
            self.found[document.id] = max(self.found.get(document.id, 0.0), whole / rank)

    def stand_of(self, sentence: PlacedSentence) -> float:
        """Return how high the passage of a sentence was ranked, or its title if the passage was not found
        itself.
        """
        return self.found.get(sentence.source, self.standing.get(sentence.title, 0.0))

    def is_sure(self, least: float) -> bool:
        """Return whether an answer was computed, or has at least the given probability.

        For a model that reports no probability, two paths must agree.
        """
        fit = [each for each in self.answered if not each.problem]
        untold = Counter(canonical_answer(each.text) for each in fit if each.likelihood is None)
        return max(untold.values(), default=0) > 1 or any(
            each.computed or each.likely >= least for each in fit
        )

    @property
    def best(self) -> PathAnswer | None:
        """The computed answer, or else the most probable one, of those that are not rejected if there are
        any.
        """
        told = (each for each in self.answered if each.text)
        return max(told, key=lambda each: (not each.problem, each.computed, each.likely), default=None)

    @property
    def starts(self) -> list[str]:
        """The titles with the highest rank score, where paths begin."""
        return sorted(self.standing, key=lambda title: -self.standing[title])[:_STARTS]

    def named_in(self, text: str) -> list[str]:
        """Return the titles that a text mentions, in its order."""
        known = self._titles()
        return list(dict.fromkeys(known[name][0] for name in known.find_names(text, cased=False)))

    def title_for(self, name: str) -> str | None:
        """Return the title in the graph that a name refers to, or None."""
        if name in self.standing:
            return name
        known = self._titles()
        found = known[normalise_name(name)] or [
            id for told in known.find_names(name, cased=False) for id in known[told]
        ]
        return max(found, key=lambda title: self.standing[title], default=None)

    def _titles(self) -> NameIndex:
        return NameIndex(Document(title, "", spaced(title)) for title in self.standing)


def spaced(name: str) -> str:
    """Replace the underscores in a name by spaces, as formats such as Turtle write them."""
    return name.replace("_", " ")


def weakest(read: Iterable[PathAnswer]) -> float | None:
    """Return the lowest probability among some answers, or None if one is not reported.

    What follows from the answers is no more certain than that.
    """
    told = [each.likelihood for each in read]
    return None if None in told else min((each for each in told if each is not None), default=None)


# Typed facts of the initial graph that no sentence in it states, read as chains of lines.

_MOST_AT = 40  # maximum facts at one name, the most relevant ones
_MOST_NAMES = 40  # maximum names whose facts are loaded
_LONGEST = 3  # maximum facts of a chain
_CHAINS = 200  # beam width of chains
_VALUE = 200  # maximum characters of a property that counts as a fact
_READ_AT = 200  # maximum facts of a name that a statement reads
# properties of a node that give its source or its name
_NO_FACTS = {"source_id", "source", "sentence", "id", "name", "label"}
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def facts_at(run: Loop, walk: PathWalk, name: str) -> tuple[FactParts, ...]:
    """Return the facts and node properties at a name in the run's initial graph.

    Facts taken from sentences in that graph are left out.
    """
    start = run.state.start
    if name not in start:
        return ()
    if walk.said is None:
        walk.said = frozenset(
            each.sentence for edge in start.edges if _is_rule(edge) for each in supports_of(edge.properties)
        )
    said = walk.said
    edges = (edge for edge in start.neighbours(name, "both") if not _is_rule(edge))
    facts = [
        (edge.source, edge.type, edge.target)
        for edge in edges
        if not any(each.sentence in said for each in supports_of(edge.properties))
    ]
    facts += [
        (name, property, str(value))
        for property, value in start.node(name).properties.items()
        if property not in _NO_FACTS
        and isinstance(value, str | int | float)
        and 0 < len(str(value)) <= _VALUE
    ]
    facts = list(dict.fromkeys(facts))
    near = relevance(run.state.question, list(map(_spelled, facts)))
    return tuple(
        facts[number] for number in sorted(range(len(facts)), key=lambda number: -near[number])[:_MOST_AT]
    )


def meet_facts(run: Loop, walk: PathWalk, name: str, standing: float) -> dict[str, float]:
    """Record the facts at a name and, fact by fact, those at the names they lead to.

    Returns the rank score of each name that was reached.
    """
    met: dict[str, float] = {}
    frontier = {name: standing}
    for _ in range(_LONGEST):
        following: dict[str, float] = {}
        for each, stands in frontier.items():
            if (
                each not in walk.facts
                and len(walk.facts) < _MOST_NAMES
                and (facts := facts_at(run, walk, each))
            ):
                walk.facts[each] = facts
                following |= {
                    other: stands / 2 for fact in facts if (other := _other(fact, each)) in run.state.start
                }
        frontier = {each: stands for each, stands in following.items() if each not in met and each != name}
        met |= frontier
    return met


def fact_route(walk: PathWalk, question: str, starts: Sequence[str], budget: int) -> Route | None:
    """Return the facts along the best chains from some names within a token budget.

    Returns None if no fact is known there.
    """
    known = list(dict.fromkeys(fact for facts in walk.facts.values() for fact in facts))
    asked = [PlacedSentence(str(number), fact[0], _spelled(fact), "", 0) for number, fact in enumerate(known)]
    own = dict(zip(known, worths(question, asked, walk.embedder).values(), strict=True))
    chains = sorted(_chains(walk, starts, own), key=lambda chain: -chain[0])
    kept: dict[FactParts, None] = {}
    used = 0
    for _, _, chain in chains:
        new = [fact for fact in chain if fact not in kept]
        size = sum(estimate_tokens(fact_line(fact)) for fact in new)
        if not kept or used + size <= budget:
            kept |= dict.fromkeys(new)
            used += size
    return Route(chains[0][1], "", "", chains[0][0], (), facts=tuple(kept)) if chains else None


def read_names(run: Loop, route: Route) -> list[str]:
    """Return the names whose facts are read for a route, except names with very many facts."""
    names = dict.fromkeys(fact[0] for fact in route.facts if fact[0] in run.state.start)
    return [name for name in names if len(run.state.start.neighbours(name, "both")) <= _READ_AT]


def _chains(
    walk: PathWalk, starts: Sequence[str], own: Mapping[FactParts, float]
) -> Iterable[tuple[float, str, tuple[FactParts, ...]]]:
    """Yield chains of facts from some names, each as its score, its start and its facts."""
    growing: list[tuple[float, str, tuple[FactParts, ...], tuple[str, ...]]] = [
        (0.0, start, (), (start,)) for start in starts
    ]
    for _ in range(_LONGEST):
        grown = [
            (
                worth + SCALE * own[fact] + STANDING * walk.standing.get(names[0], 0.0) / 2 ** len(chain),
                start, (*chain, fact), (*names, _other(fact, names[-1])),
            )
            for worth, start, chain, names in growing
            for fact in walk.facts.get(names[-1], ())
            if _other(fact, names[-1]) not in names
        ]  # fmt: skip
        growing = sorted(grown, key=lambda chain: -chain[0])[:_CHAINS]
        yield from ((worth, start, chain) for worth, start, chain, _ in growing)


def _other(fact: FactParts, name: str) -> str:
    return fact[2] if fact[0] == name else fact[0]


def _spelled(fact: FactParts) -> str:
    return _PARTS.sub(" ", fact_line(fact))


def _is_rule(edge: Edge) -> bool:
    """Return whether an edge was written by rule: a sentence under its title, or a name in a sentence."""
    return edge.type in (SAYS_SENTENCE, MENTIONS_NAME) and "sentence" in edge.properties
