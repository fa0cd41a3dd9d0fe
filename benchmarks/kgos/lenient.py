"""Strict and lenient recall, and what leniency alone would give: classes of the same size that were drawn by
lot.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from benchmarks.kgos.queries import CookbookQuery
from kgot_lab.evaluation.measures import Scores
from kgot_lab.evaluation.runs import Run
from kgot_lab.graph import PropertyGraph

STRICT_5, LENIENT_5, ANY_5, TYPE_5 = "strict", "lenient", "lenient at random", "lenient at random, same types"
LOTS, CUT = 200, 5


def leniency(run: Run, queries: Sequence[CookbookQuery], graph: PropertyGraph, *, seed: int = 0) -> Scores:
    """Recall@5 of a run four ways: strict, lenient, and lenient with random nodes in place of those that a
    judge would accept too.

    Lenient: as many of the strict nodes count as found as there are accepted nodes among the first five, each
    of which stands for one of them: min(found, strict) / strict. At random, each node that is accepted but not
    strict is replaced by any other node, or by one of its type; means over 200 draws.
    """
    lots = {query.id: lots_of(query, graph, seed=seed) for query in queries if query.strict}
    values: dict[str, dict[str, float]] = {name: {} for name in (STRICT_5, LENIENT_5, ANY_5, TYPE_5)}
    for query in queries:
        if not query.strict:
            continue
        first = set(run.ids(query.id)[:CUT])
        values[STRICT_5][query.id] = len(first & query.strict) / len(query.strict)
        values[LENIENT_5][query.id] = stood_for(first, query.strict, query.lenient)
        for name, draws in lots[query.id].items():
            values[name][query.id] = sum(
                stood_for(first, query.strict, query.strict | draw) for draw in draws
            ) / len(draws)
    return Scores(run.system, run.dataset, values)


def stood_for(first: set[str], strict: frozenset[str], accepted: frozenset[str]) -> float:
    """The share of the strict nodes for which an accepted node was found, each once."""
    return min(len(first & accepted), len(strict)) / len(strict)


def lots_of(
    query: CookbookQuery, graph: PropertyGraph, *, seed: int = 0, draws: int = LOTS
) -> Mapping[str, list[frozenset[str]]]:
    """Random nodes in place of those that are accepted but not strict: any others, and others of the same
    types; the same in every run.
    """
    chance = random.Random(f"{seed} {query.id}")
    more = sorted(query.lenient - query.strict)
    others = [id for id in sorted(graph.ids) if id not in query.strict]
    kinds: dict[str, list[str]] = {}
    for id in others:
        kinds.setdefault(graph.node(id).labels[0], []).append(id)
    wanted: dict[str, int] = {}
    for id in more:
        wanted[graph.node(id).labels[0]] = wanted.get(graph.node(id).labels[0], 0) + 1
    return {
        ANY_5: [frozenset(chance.sample(others, len(more))) for _ in range(draws)],
        TYPE_5: [
            frozenset(id for kind, count in wanted.items() for id in chance.sample(kinds[kind], count))
            for _ in range(draws)
        ],
    }
