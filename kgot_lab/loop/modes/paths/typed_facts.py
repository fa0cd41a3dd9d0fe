"""Typed facts of a graph that a run began with, which no sentence in it says: met near names, and read as
lines along chains.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kgot_lab.graph.provenance import supports_of
from kgot_lab.loop.modes.paths.mentions import SCALE, STANDING, PlacedSentence, worths
from kgot_lab.loop.modes.paths.routes import FactParts, PathWalk, Route, fact_line
from kgot_lab.loop.render import relevance
from kgot_lab.loop.run_context import Loop
from kgot_lab.sandbox.python.helpers import MENTIONS_NAME, SAYS_SENTENCE
from kgot_lab.text.tokens import tokens
from kgot_lab.types import Edge

_MOST_AT = 40  # facts at one name, the nearest to the question
_MOST_NAMES = 40  # names whose facts are known
_LONGEST = 3  # facts of a chain
_CHAINS = 200  # that are grown at a time
_VALUE = 200  # characters of a property that is a fact
_READ_AT = 200  # facts of a name that a statement reads
# properties of a node that say where it is from, or its name
_NO_FACTS = {"source_id", "source", "sentence", "id", "name", "label"}
_PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def facts_at(run: Loop, walk: PathWalk, name: str) -> tuple[FactParts, ...]:
    """The facts at a name in the graph that the run began with, and what its node says of itself; not what
    sentences there say.
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
    """Note the facts at a name and, fact by fact, those at the names they lead to; how well each name that is
    met so stands.
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
    """The facts along the best chains from some names that fit in a budget of tokens; None where no fact is
    known there.
    """
    known = list(dict.fromkeys(fact for facts in walk.facts.values() for fact in facts))
    asked = [PlacedSentence(str(number), fact[0], _spelled(fact), "", 0) for number, fact in enumerate(known)]
    own = dict(zip(known, worths(question, asked, walk.embedder).values(), strict=True))
    chains = sorted(_chains(walk, starts, own), key=lambda chain: -chain[0])
    kept: dict[FactParts, None] = {}
    used = 0
    for _, _, chain in chains:
        new = [fact for fact in chain if fact not in kept]
        size = sum(tokens(fact_line(fact)) for fact in new)
        if not kept or used + size <= budget:
            kept |= dict.fromkeys(new)
            used += size
    return Route(chains[0][1], "", "", chains[0][0], (), facts=tuple(kept)) if chains else None


def read_names(run: Loop, route: Route) -> list[str]:
    """The names whose facts a statement reads for a route, without those that have very many."""
    names = dict.fromkeys(fact[0] for fact in route.facts if fact[0] in run.state.start)
    return [name for name in names if len(run.state.start.neighbours(name, "both")) <= _READ_AT]


def _chains(
    walk: PathWalk, starts: Sequence[str], own: Mapping[FactParts, float]
) -> Iterable[tuple[float, str, tuple[FactParts, ...]]]:
    """Chains of facts from some names: what each is worth, where it begins, and its facts."""
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
    """Whether an edge is of those that are written by rule: a sentence under its title, a name in a sentence."""
    return edge.type in (SAYS_SENTENCE, MENTIONS_NAME) and "sentence" in edge.properties
