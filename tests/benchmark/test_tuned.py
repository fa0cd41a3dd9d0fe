"""Tuning in two halves: what is chosen on some queries answers the others, and test queries are never seen."""

import pytest
from support.tiny_collection import tiny

from benchmarks.recall.growth import SyntheticVectors
from kgot_lab.benchmark.recall.datasets import Dataset
from kgot_lab.benchmark.recall.systems import (
    MIN_DEV_QUERIES,
    best_weight,
    cross_fit,
    halves,
    mean_score,
    select_for_fusion,
    systems,
)
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.results import MARGIN
from kgot_lab.retrieval.fusion import rrf, weighted
from kgot_lab.retrieval.lexical import bm25, fts5, like
from kgot_lab.retrieval.selection import select_retrievers
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Query, ranked

TEST = frozenset({"q1", "q6"})


def scoring(name: str, scores: dict[str, float]) -> Stage:
    """A lane that gives every query the same scores."""
    return Stage(name, lambda ranking: ranked(ranking.query, scores))


class Spy:
    """A fit that remembers what it was given; its stage finds the ids of the queries it was fitted on."""

    def __init__(self) -> None:
        self.parts: list[Dataset] = []

    def __call__(self, part: Dataset) -> Stage:
        self.parts.append(part)
        return Stage(f"fit {len(self.parts)}", lambda r: ranked(r.query, {q.id: 1.0 for q in part.queries}))


def test_each_half_is_answered_by_what_was_fitted_on_the_other():
    data = tiny(test_ids=TEST)
    stage = cross_fit(data, Spy(), "tuned")
    first, second = halves(data)
    for part, other in ((first, second), (second, first)):
        for query in part.queries:
            assert set(stage.search(query).ids) == {query.id for query in other.queries}


def test_test_and_unknown_queries_are_answered_by_what_was_fitted_on_all_dev_queries():
    data = tiny(test_ids=TEST)
    stage = cross_fit(data, Spy(), "tuned")
    dev = {query.id for query in data.dev.queries}
    for query in (*data.held_out.queries, Query("another one", "new"), Query("without an id")):
        assert set(stage.search(query).ids) == dev


def test_no_fit_ever_sees_a_test_query():
    spy = Spy()
    cross_fit(tiny(test_ids=TEST), spy, "tuned")
    assert len(spy.parts) == 3
    for part in spy.parts:
        assert not TEST & {query.id for query in part.queries} and not TEST & set(part.qrels)


def test_the_tuned_systems_never_put_a_test_query_while_they_are_built(monkeypatch):
    data, asked = tiny(test_ids=TEST), set()
    searched = Stage.search
    monkeypatch.setattr(
        Stage,
        "search",
        lambda stage, query: (asked.add(getattr(query, "id", query)), searched(stage, query))[1],
    )
    made = systems(data, SyntheticVectors(64))
    for name in ("convex, tuned", "gate", "gate, rrf"):
        made[name]()
    assert asked == {query.id for query in data.dev.queries}


def test_halves_are_disjoint_complete_nearly_equal_and_do_not_depend_on_the_order():
    for count in range(MIN_DEV_QUERIES, 9):
        data = tiny().only([f"q{number}" for number in range(count)])
        first, second = ({query.id for query in part.queries} for part in halves(data))
        assert not first & second and first | second == set(data.qrels) and abs(len(first) - len(second)) <= 1
        turned = Dataset("turned", data.documents, data.queries[::-1], data.qrels)
        assert [set(part.qrels) for part in halves(turned)] == [first, second]


# --------------------------------------------------------------------------------------------------


def test_the_best_weight_is_that_of_a_plain_search_over_the_grid():
    data = tiny()
    first, second = bm25(data.documents), scoring("fixed", {"d03": 3.0, "d04": 2.0, "d07": 1.0})
    reached = {
        share / 10: mean_score(data, "recall@5")(weighted((share / 10, first), (1 - share / 10, second)))
        for share in range(11)
    }
    best = max(reached.values())
    nearest = min((share for share, value in reached.items() if value == best), key=lambda s: abs(s - 0.5))
    found = best_weight(first, second, data).name
    assert found == weighted((nearest, first), (round(1 - nearest, 1), second)).name


# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fuse", [lambda some: rrf(*some), lambda some: weighted(*((1 / len(some), lane) for lane in some))]
)
def test_admitted_decides_as_the_gate_does(fuse):
    data = tiny()
    lanes = {
        "bm25": bm25(data.documents),
        "fts5": fts5(data.documents),
        "like": like(data.documents),
        "bad": scoring("bad", {"d11": 1.0}),
    }
    ours, theirs = (
        select_for_fusion(lanes, fuse, data),
        select_retrievers(lanes, fuse, mean_score(data, "recall@5"), margin=MARGIN),
    )
    assert ours == theirs and ours.selected == theirs.selected and ours.stage.name == theirs.stage.name
    for query in data.queries:
        assert ours.stage.search(query) == theirs.stage.search(query)


def test_too_few_dev_queries_are_refused_even_where_test_ones_would_make_enough():
    with pytest.raises(BadInput, match="3 dev queries; tuning in two halves takes at least 4"):
        cross_fit(tiny(test_ids=frozenset({"q0", "q1", "q2", "q3", "q4"})), Spy(), "tuned")
