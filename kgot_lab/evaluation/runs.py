"""Runs: the hits of one system for every query, and their times."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise, takewhile
from typing import NamedTuple, Protocol

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, describe_value, require, short_repr
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Hit, Query, Ranking

Progress = Callable[[int, int], None]  # queries done, queries in all
BY_ID, AS_RANKED = "by document id", "as the system ranks them"
TIES = (BY_ID, AS_RANKED)  # how hits of equal score are ordered


class Retriever(Protocol):
    """Anything that ranks documents for a query. Its repr describes it and is stored with the results."""

    @property
    def name(self) -> str: ...
    def search(self, query: Query) -> Ranking: ...


class Latency(NamedTuple):
    """The median and the 95th percentile of seconds a query."""

    median: float
    p95: float

    def __str__(self) -> str:
        return f"{1000 * self.median:.1f} ms each (95 %: {1000 * self.p95:.1f})"


@dataclass(frozen=True, repr=False)
class Run:
    """The best hits of one system for each query id, best first, at most `kept` of them.

    `description` is the repr of the pipeline. `seconds` of each query are known after a run but not in stored
    results, where `latency` summarises them. Neither counts in comparisons of runs. `about` says when, where
    and on which data the run was made.
    """

    system: str
    description: str
    dataset: str
    kept: int
    hits: Mapping[str, tuple[Hit, ...]]
    latency: Latency = field(default=Latency(math.nan, math.nan), compare=False)
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    about: Mapping[str, str] = field(default_factory=dict, compare=False)

    def ids(self, query: str) -> list[str]:
        """Return the ids found for a query, best first.

        Empty for a query that was not run.
        """
        return [hit.id for hit in self.hits.get(query, ())]

    def __repr__(self) -> str:
        pace = "" if math.isnan(self.latency.median) else f", {self.latency}"
        return f"<{self.system} on {self.dataset or 'some queries'}: {format_count(len(self.hits), 'query', 'queries')}, {self.kept} deep{pace}>"


def run(
    system: Retriever,
    queries: Iterable[Query],
    *,
    name: str = "",
    dataset: str = "",
    keep: int = 100,
    progress: Progress | None = None,
) -> Run:
    """Rank every query and keep the best `keep` hits of each.

    `progress` is called with the number of finished queries after each. Raises BadInput without a query, for
    empty or duplicate query ids, and if a system's ranking is invalid.
    """
    queries = checked_queries(queries)
    if keep < 1:
        raise BadInput(f"a run keeps 1 hit or more, not {keep}")
    hits: dict[str, tuple[Hit, ...]] = {}
    seconds: dict[str, float] = {}
    for query in queries:
        hits[query.id], seconds[query.id] = timed_search(system, query, keep)
        if progress:
            progress(len(hits), len(queries))
    times = latency(list(seconds.values()))
    return Run(name or system.name, repr(system), dataset, keep, hits, times, seconds)


@check_arguments
def timed_search(
    system: Retriever, query: Query, keep: int, ties: str = BY_ID
) -> tuple[tuple[Hit, ...], float]:
    """Run one query and return the best hits, with ties broken by a rule of TIES, and the seconds it took.

    Raises BadInput if the result is not a ranking, or if the scores are not in descending order: these would
    distort the measures silently. Exceptions of the system are raised with a note that names the query.
    """
    began = time.perf_counter()
    try:
        ranking = system.search(query)
    except Exception as error:
        error.add_note(f"raised by {system.name!r} for query {query.id!r}: {short_repr(query.text)}")
        raise
    took = time.perf_counter() - began
    if not isinstance(ranking, Ranking):
        problem = f"{system.name} gave no Ranking of hits for query {query.id!r}"
        raise BadInput(f"{problem}; make one with ranked(query, scores by id)")
    if ranking.query != query:
        answered = f"answered {short_repr(ranking.query.text)} in place of {short_repr(query.text)}"
        problem = f"{system.name} {answered}: a ranking is that of its query"
        raise BadInput(f"{problem}, as in ranked(ranking.query, scores)")
    hits = _top_hits(ranking.hits, keep, ties)
    if any(next.score > one.score for one, next in pairwise(hits)):
        better = "the highest score is the best: give the negative of a distance, and ranked(query, scores by id) puts hits in order"
        problem = f"{system.name} gave its hits for query {query.id!r} in another order than their scores"
        raise BadInput(f"{problem}; {better}")
    return hits, took


def _top_hits(hits: Sequence[Hit], keep: int, ties: str) -> tuple[Hit, ...]:
    """Return the first hits, with ties ordered by id if the rule says so."""
    first = list(hits[:keep])
    if ties == BY_ID and first:
        # include the whole tie at the end
        first += takewhile(lambda hit: hit.score == first[keep - 1].score, islice(hits, keep, None))
        ties_of_hits = (list(tied) for _, tied in groupby(first, key=lambda hit: hit.score))
        first = [hit for tied in ties_of_hits for hit in sorted(tied, key=lambda hit: hit.id)]
    return tuple(first[:keep])


def checked_queries(queries: Iterable[Query]) -> tuple[Query, ...]:
    """Return the queries as a tuple, after checking that there are some and their ids are unique.

    Raises BadInput otherwise.
    """
    if not isinstance(queries, Iterable) or isinstance(queries, str):
        raise BadInput(f"queries are a list of Query(text, id), not {describe_value(queries)}")
    queries = tuple(queries)
    if not queries:
        raise BadInput("there are no queries to run; give at least one")
    seen: set[str] = set()
    for query in queries:
        require(query, Query, "each query is a Query(text, id)")
        if not query.id or query.id in seen:
            problem = f"query {query.text[:60]!r} has {'the id of another one' if query.id else 'no id'}"
            raise BadInput(f"{problem}; give each an id of its own")
        seen.add(query.id)
    return queries


def latency(seconds: Sequence[float]) -> Latency:
    """Compute the median and 95th percentile (nearest rank) of times. Raises BadInput for none."""
    if not seconds:
        raise BadInput("there are no times to take the median of")
    return Latency(statistics.median(seconds), sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1])
