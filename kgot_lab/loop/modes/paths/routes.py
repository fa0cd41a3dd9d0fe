"""Paths as they are read from the graph: rows of a store become routes from name to name, the best first,
each with its sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgot_lab.loop.modes.paths.mentions import PlacedSentence
from kgot_lab.text.cleaning import tokens
from kgot_lab.text.words import content_stems
from kgot_lab.types import Json

FactParts = tuple[str, str, str]  # subject, relation, object
_MARKS = 6  # tokens that a title and its brackets take, beside the sentence


@dataclass(frozen=True)
class Route:
    """A way through the graph: the names at its ends, the name or fact that joins them, and the sentences
    under both that may be read.

    `links` are those of the sentences that hold the joining name; a route of one name has no end.
    """

    start: str
    end: str
    joint: str
    worth: float
    sentences: tuple[PlacedSentence, ...]
    links: frozenset[str] = frozenset()  # places
    facts: tuple[FactParts, ...] = ()

    def within(self, budget: int, own: Mapping[str, float]) -> Route:
        """The route with the sentences that fit in a budget of tokens, in their order.

        The best link comes first, then the best sentence of the other end, so that both ends are told of;
        then what is worth most.
        """
        order = sorted(self.sentences, key=lambda each: -own.get(each.place, 0.0))
        if link := next((each for each in order if each.place in self.links), None):
            other = next((each for each in order if each.title != link.title), link)
            order = list(dict.fromkeys((link, other, *order)))
        kept: list[PlacedSentence] = []
        used = 0
        for sentence in order:
            size = tokens(sentence.text) + _MARKS
            if not kept or used + size <= budget:
                kept.append(sentence)
                used += size
        places = {each.place for each in kept}
        return replace(self, sentences=tuple(each for each in self.sentences if each.place in places))

    def with_sentences_for(self, answer: str) -> Route:
        """The route with the sentences that hold an answer, word for word; with all where none does."""
        wanted = f" {' '.join(content_stems(answer))} "
        said = tuple(each for each in self.sentences if wanted in f" {' '.join(content_stems(each.text))} ")
        return replace(self, sentences=said or self.sentences)

    def resting(self, answer: str) -> Route:
        """The route with what says an answer, and the links and facts that join it to the start; with all
        where nothing says it.
        """
        wanted = f" {' '.join(content_stems(answer))} "
        says = {each.place for each in self.sentences if wanted in f" {' '.join(content_stems(each.text))} "}
        telling = [fact for fact in self.facts if wanted in f" {' '.join(content_stems(fact_line(fact)))} "]
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
    """The facts that lead from a name to those that tell an answer, and these, in their order; those alone
    where none leads there.
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
    """A fact as a line of a prompt; one that would begin as the question does is marked as a fact."""
    line = " ".join(" ".join(fact).split())
    return f"[fact] {line}" if line.casefold().startswith("question") else line


def routes_of(rows: Iterable[Json]) -> list[Route]:
    """The routes that rows of a `paths` read tell of, best first: rows between the same two names are one
    route.
    """
    groups: dict[frozenset[str], list[Mapping[str, Json]]] = {}
    for row in rows:
        if isinstance(row, Mapping) and row.get("start"):
            groups.setdefault(frozenset(filter(None, (row["start"], row.get("end")))), []).append(row)
    found = [_route(group) for group in groups.values()]
    return sorted(found, key=lambda route: -route.worth)  # equal ones stay in the order of the rows


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
