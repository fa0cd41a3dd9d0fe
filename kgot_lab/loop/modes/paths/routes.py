"""Routes: the rows of a path read grouped by the names they join, the best first, with their sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.graph.changes import supports_of
from kgot_lab.loop.answer_check import CheckedAnswer
from kgot_lab.loop.modes.paths.mentions import (
    PASSAGE_WEIGHT,
    SENTENCE_WEIGHT,
    GraphSentence,
    passage_title,
    relevance_scores,
)
from kgot_lab.loop.modes.paths.values import answer_keys
from kgot_lab.loop.render import relevance
from kgot_lab.loop.run_context import RunContext
from kgot_lab.retrieval.entity_linking import NameIndex, normalise_name
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.cleaning import estimate_tokens
from kgot_lab.text.words import contains_words
from kgot_lab.types import Document, Edge, Json

FactParts = tuple[str, str, str]  # subject, relation, object
_TITLE_TOKENS = 6  # tokens of a title and its brackets


@dataclass(frozen=True)
class Route:
    """A path through the graph: its end names, the name or fact that joins them, and the sentences at both.

    `links` are the sentences that contain the joining name. A route of one name has no end.
    """

    start: str
    end: str
    joint: str
    worth: float
    sentences: tuple[GraphSentence, ...]
    links: frozenset[str] = frozenset()  # places
    facts: tuple[FactParts, ...] = ()

    def within_budget(self, budget: int, scores: Mapping[str, float]) -> Route:
        """Return the route with the sentences that fit in a token budget, in their order.

        The best link is taken first, then the best sentence of the other end, so that both ends are covered,
        then those with the highest scores.
        """
        order = sorted(self.sentences, key=lambda candidate: -scores.get(candidate.place, 0.0))
        if link := next((candidate for candidate in order if candidate.place in self.links), None):
            other = next((candidate for candidate in order if candidate.title != link.title), link)
            order = list(dict.fromkeys((link, other, *order)))
        selected: list[GraphSentence] = []
        used = 0
        for sentence in order:
            size = estimate_tokens(sentence.text) + _TITLE_TOKENS
            if not selected or used + size <= budget:
                selected.append(sentence)
                used += size
        nodes = {candidate.place for candidate in selected}
        return replace(self, sentences=tuple(s for s in self.sentences if s.place in nodes))

    def with_sentences_for(self, answer: str) -> Route:
        """Return the route with the sentences that contain an answer word for word, or all if none does."""
        stating = tuple(s for s in self.sentences if contains_words(answer, s.text))
        return replace(self, sentences=stating or self.sentences)

    def supporting_part(self, answer: str) -> Route:
        """Return the route with the sentences and facts that state an answer, and what joins them to the
        start.

        These are links and facts. The route is unchanged if nothing states the answer.
        """
        stating = {s.place for s in self.sentences if contains_words(answer, s.text)}
        stating_facts = [fact for fact in self.facts if contains_words(answer, fact_line(fact))]
        if not stating and not stating_facts:
            return self
        titles = {sentence.title for sentence in self.sentences if sentence.place in stating}
        if stating_facts and self.start:
            facts = _facts_to_answer(self.facts, self.start, stating_facts)
        else:
            facts = [f for f in self.facts if self.end or f in stating_facts or titles & {f[0], f[2]}]
        nodes = stating | (self.links if self.end else frozenset())
        sentences = tuple(sentence for sentence in self.sentences if sentence.place in nodes)
        return replace(self, sentences=sentences, facts=tuple(facts))

    @property
    def text(self) -> str:
        """The facts and sentences of the route, a line each."""
        return "\n".join([*map(fact_line, self.facts), *map(str, self.sentences)])

    def __str__(self) -> str:
        return f"{self.start} --({self.joint})-- {self.end}" if self.end else self.start


def _facts_to_answer(
    facts: Sequence[FactParts], start: str, stating_facts: Sequence[FactParts]
) -> list[FactParts]:
    """Return the facts that lead from a name to those that state an answer, and the latter, in order.

    Only the latter are returned if no facts lead there.
    """
    previous: dict[str, FactParts] = {}
    frontier, reached = {start}, {start}
    while frontier:
        following: set[str] = set()
        for fact in facts:
            for near, far in ((fact[0], fact[2]), (fact[2], fact[0])):
                if near in frontier and far not in reached | following:
                    previous[far] = fact
                    following.add(far)
        frontier, reached = following, reached | following
    selected = set(stating_facts)
    for fact in stating_facts:
        name = next((end for end in (fact[0], fact[2]) if end in reached), "")
        while name in previous:
            selected.add(previous[name])
            name = previous[name][2] if previous[name][0] == name else previous[name][0]
    return [fact for fact in facts if fact in selected]


def fact_line(fact: FactParts) -> str:
    """Format a fact as a prompt line, with a mark if it begins as the question line does."""
    line = " ".join(" ".join(fact).split())
    return f"[fact] {line}" if line.casefold().startswith("question") else line


def group_routes(rows: Iterable[Json]) -> list[Route]:
    """Build routes from the rows of a `paths` read, the best first.

    Rows between the same two names form one route.
    """
    groups: dict[frozenset[str], list[Mapping[str, Json]]] = {}
    for row in rows:
        if isinstance(row, Mapping) and row.get("start"):
            groups.setdefault(frozenset(filter(None, (row["start"], row.get("end")))), []).append(row)
    routes = [_build_route(group) for group in groups.values()]
    return sorted(routes, key=lambda route: -route.worth)  # stable: ties stay in the order of the rows


def _build_route(rows: list[Mapping[str, Json]]) -> Route:
    best = rows[0]
    start, end = best["start"], best.get("end") or ""
    sentences: dict[str, GraphSentence] = {}
    links: set[str] = set()
    facts: dict[tuple[str, str, str], None] = {}
    for row in rows:
        for number, title in (("1", row["start"]), ("2", row.get("end") or "")):
            if node := row.get(f"place_{number}"):
                text, source = row[f"sentence_{number}"], row.get(f"source_{number}") or ""
                sentences[node] = GraphSentence(node, title, text, source, _sentence_index(node))
        if row.get("place_1") and row.get("end"):
            links.add(row["place_1"])
        if row.get("relation"):
            facts[row["subject"], row["relation"], row["object"]] = None
    order = sorted(sentences.values(), key=lambda s: (s.title != start, s.title, s.number))
    joint, worth = best.get("name") or best.get("relation") or "", float(best["worth"])
    return Route(start, end, joint, worth, tuple(order), frozenset(links), tuple(facts))


def _sentence_index(node: str) -> int:
    digits = node.rpartition("§")[2]
    return int(digits) - 1 if digits.isdecimal() else 0


# The state of a question in this mode: sentences, the ranks of their passages, and the answers so far.

_MAX_STARTS = 12  # names that paths begin at


@dataclass(frozen=True)
class PathAnswer:
    """An answer, its routes, its probability (None if not reported), and why it is rejected."""

    text: str
    routes: tuple[Route, ...]
    likelihood: float | None
    problem: str = ""
    computed: bool = False  # computed from values that were read
    trust: float = 1.0  # weight of its probability
    evidence: tuple[GraphSentence, ...] = ()  # the sentences that carry it, in the order of the chain
    check: CheckedAnswer | None = None  # None: not checked

    @property
    def is_refuted(self) -> bool:
        """Whether the answer was checked, and its evidence does not say it."""
        return self.check is not None and self.check.outcome != "supported"

    @property
    def weighted_likelihood(self) -> float:
        """The probability of the answer times its weight, or 0 if it is not reported."""
        return self.trust * (self.likelihood or 0.0)

    @property
    def certainty(self) -> str:
        """How sure the answer is, for people."""
        if self.computed:
            return "was worked out from what was read"
        if self.check is not None and self.check.missing:
            return f"was read, but {self.check.missing}"
        text = "was read" if self.likelihood is None else f"is {self.likelihood:.0%} likely"
        if self.likelihood is not None and self.trust < 1:
            text += f" (of which {self.trust:.0%} count, for it was not read from the first path)"
        return f"{text}, but {self.problem}" if self.problem else f"{text} and stands in the evidence"


@dataclass
class PathWalk:
    """The state of a question in the mode `paths`, apart from the graph."""

    embedder: Embedder | None
    sentences: dict[str, GraphSentence] = field(default_factory=dict)  # by node
    standing: dict[str, float] = field(default_factory=dict)  # rank scores of titles, 0 to 1
    found: dict[str, float] = field(default_factory=dict)  # rank scores of passages, by id
    entities: set[str] = field(default_factory=set)  # names that were written
    passages: tuple[Document, ...] = ()  # found by the question itself, best first
    answered: list[PathAnswer] = field(default_factory=list)
    read: set[str] = field(default_factory=set)  # texts of the routes read so far
    # facts of the initial graph by name
    facts: dict[str, tuple[FactParts, ...]] = field(default_factory=dict)
    said: frozenset[str] | None = None  # the sentences of that graph, loaded on first use
    split: bool = False  # whether the question was split into hops

    def record_ranks(self, documents: Sequence[Document]) -> None:
        """Record the rank scores of passages: 1 / rank, halved unless the search was the question."""
        self.passages = self.passages or tuple(documents)
        weight = 1.0 if not self.standing else 0.5
        for rank, document in enumerate(documents, start=1):
            title = passage_title(document)
            self.standing[title] = max(self.standing.get(title, 0.0), weight / rank)
            self.found[document.id] = max(self.found.get(document.id, 0.0), weight / rank)

    def passage_score(self, sentence: GraphSentence) -> float:
        """Return how high the passage of a sentence was ranked, or its title if the passage was not found
        itself.
        """
        return self.found.get(sentence.source, self.standing.get(sentence.title, 0.0))

    def is_sure(self, min_likelihood: float) -> bool:
        """Return whether an answer was computed, or has at least the given probability.

        For a model that reports no probability, two paths must agree. An answer that was checked counts if
        its evidence says it.
        """
        accepted = [answer for answer in self.answered if not answer.problem and not answer.is_refuted]
        if any(answer.check for answer in accepted):
            return True
        unrated = answer_keys([answer.text for answer in accepted if answer.likelihood is None])
        agrees = len(set(unrated)) < len(unrated)
        return agrees or any(a.computed or a.weighted_likelihood >= min_likelihood for a in accepted)

    @property
    def best(self) -> PathAnswer | None:
        """The computed answer, or else the most probable one, of those that are not rejected if there are
        any.
        """
        candidates = (answer for answer in self.answered if answer.text)

        def rank(answer: PathAnswer) -> tuple[bool, bool, float, bool, float]:
            said = answer.check.score if answer.check else 0.0
            is_accepted = not answer.problem
            return is_accepted, not answer.is_refuted, said, answer.computed, answer.weighted_likelihood

        return max(candidates, key=rank, default=None)

    @property
    def starts(self) -> list[str]:
        """The titles with the highest rank score, where paths begin."""
        return sorted(self.standing, key=lambda title: -self.standing[title])[:_MAX_STARTS]

    def titles_in(self, text: str) -> list[str]:
        """Return the titles that a text mentions, in its order."""
        titles = self._titles()
        return list(dict.fromkeys(titles[name][0] for name in titles.find_names(text, cased=False)))

    def title_for(self, name: str) -> str | None:
        """Return the title in the graph that a name refers to, or None."""
        if name in self.standing:
            return name
        titles = self._titles()
        mentioned = titles.find_names(name, cased=False)
        candidates = titles[normalise_name(name)] or [id for key in mentioned for id in titles[key]]
        return max(candidates, key=lambda title: self.standing[title], default=None)

    def _titles(self) -> NameIndex:
        return NameIndex(Document(title, "", with_spaces(title)) for title in self.standing)


def with_spaces(name: str) -> str:
    """Replace the underscores in a name by spaces, as formats such as Turtle write them."""
    return name.replace("_", " ")


def lowest_likelihood(answers: Sequence[PathAnswer]) -> float | None:
    """Return the lowest probability among some answers, or None if one is not reported.

    What follows from the answers is no more certain than that.
    """
    reported = [answer.likelihood for answer in answers if answer.likelihood is not None]
    return min(reported, default=None) if len(reported) == len(answers) else None


# Typed facts of the initial graph that no sentence in it states, read as chains of lines.

_MAX_NAME_FACTS = 40  # maximum facts at one name, the most relevant ones
_MAX_FACT_NAMES = 40  # maximum names whose facts are loaded
_MAX_CHAIN_LENGTH = 3  # maximum facts of a chain
_BEAM_WIDTH = 200  # beam width of chains
_MAX_VALUE_LENGTH = 200  # maximum characters of a property that counts as a fact
_MAX_READ_FACTS = 200  # maximum facts of a name that a statement reads
# properties of a node that give its source or its name
_NAMING_PROPERTIES = {"source_id", "source", "sentence", "id", "name", "label"}
_WORD_BOUNDARY = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def name_facts(run: RunContext, walk: PathWalk, name: str) -> tuple[FactParts, ...]:
    """Return the facts and node properties at a name in the run's initial graph.

    Facts taken from sentences in that graph are left out.
    """
    start = run.state.start
    if name not in start:
        return ()
    if walk.said is None:
        walk.said = frozenset(
            s.sentence for edge in start.edges if _is_rule_edge(edge) for s in supports_of(edge.properties)
        )
    stated = walk.said
    edges = (edge for edge in start.neighbours(name, "both") if not _is_rule_edge(edge))
    facts = [
        (edge.source, edge.type, edge.target)
        for edge in edges
        if not any(support.sentence in stated for support in supports_of(edge.properties))
    ]
    facts += [
        (name, property, str(value))
        for property, value in start.node(name).properties.items()
        if property not in _NAMING_PROPERTIES
        and isinstance(value, str | int | float)
        and 0 < len(str(value)) <= _MAX_VALUE_LENGTH
    ]
    facts = list(dict.fromkeys(facts))
    scores = relevance(run.state.question, list(map(_spaced_fact, facts)))
    order = sorted(range(len(facts)), key=lambda i: -scores[i])
    return tuple(facts[i] for i in order[:_MAX_NAME_FACTS])


def load_facts(run: RunContext, walk: PathWalk, name: str, start_score: float) -> dict[str, float]:
    """Record the facts at a name and, fact by fact, those at the names they lead to.

    Returns the rank score of each name that was reached.
    """
    reached: dict[str, float] = {}
    frontier = {name: start_score}
    for _ in range(_MAX_CHAIN_LENGTH):
        following: dict[str, float] = {}
        for node, score in frontier.items():
            if (
                node not in walk.facts
                and len(walk.facts) < _MAX_FACT_NAMES
                and (facts := name_facts(run, walk, node))
            ):
                walk.facts[node] = facts
                following |= {
                    other: score / 2 for fact in facts if (other := _other_end(fact, node)) in run.state.start
                }
        frontier = {node: score for node, score in following.items() if node not in reached and node != name}
        reached |= frontier
    return reached


def fact_route(walk: PathWalk, question: str, starts: Sequence[str], budget: int) -> Route | None:
    """Return the facts along the best chains from some names within a token budget.

    Returns None if no fact is known there.
    """
    facts = list(dict.fromkeys(fact for facts in walk.facts.values() for fact in facts))
    fact_sentences = [GraphSentence(str(i), f[0], _spaced_fact(f), "", 0) for i, f in enumerate(facts)]
    scores = dict(zip(facts, relevance_scores(question, fact_sentences, walk.embedder).values(), strict=True))
    chains = sorted(_grow_chains(walk, starts, scores), key=lambda chain: -chain[0])
    selected: dict[FactParts, None] = {}
    used = 0
    for _, _, chain in chains:
        new = [fact for fact in chain if fact not in selected]
        size = sum(estimate_tokens(fact_line(fact)) for fact in new)
        if not selected or used + size <= budget:
            selected |= dict.fromkeys(new)
            used += size
    return Route(chains[0][1], "", "", chains[0][0], (), facts=tuple(selected)) if chains else None


def names_to_read(run: RunContext, route: Route) -> list[str]:
    """Return the names whose facts are read for a route, except names with very many facts."""
    names = dict.fromkeys(fact[0] for fact in route.facts if fact[0] in run.state.start)
    return [name for name in names if len(run.state.start.neighbours(name, "both")) <= _MAX_READ_FACTS]


def _grow_chains(
    walk: PathWalk, starts: Sequence[str], scores: Mapping[FactParts, float]
) -> Iterable[tuple[float, str, tuple[FactParts, ...]]]:
    """Yield chains of facts from some names, each as its score, its start and its facts."""
    beam: list[tuple[float, str, tuple[FactParts, ...], tuple[str, ...]]] = [
        (0.0, start, (), (start,)) for start in starts
    ]
    for _ in range(_MAX_CHAIN_LENGTH):
        extended = [
            (
                score + SENTENCE_WEIGHT * scores[fact] + PASSAGE_WEIGHT * walk.standing.get(names[0], 0.0) / 2 ** len(chain),
                start, (*chain, fact), (*names, _other_end(fact, names[-1])),
            )
            for score, start, chain, names in beam
            for fact in walk.facts.get(names[-1], ())
            if _other_end(fact, names[-1]) not in names
        ]  # fmt: skip
        beam = sorted(extended, key=lambda chain: -chain[0])[:_BEAM_WIDTH]
        yield from ((score, start, chain) for score, start, chain, _ in beam)


def _other_end(fact: FactParts, name: str) -> str:
    return fact[2] if fact[0] == name else fact[0]


def _spaced_fact(fact: FactParts) -> str:
    return _WORD_BOUNDARY.sub(" ", fact_line(fact))


def _is_rule_edge(edge: Edge) -> bool:
    """Return whether an edge was written by rule: a sentence under its title, or a name in a sentence."""
    return edge.type in (SAYS_SENTENCE, MENTIONS_NAME) and "sentence" in edge.properties
