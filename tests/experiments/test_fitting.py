"""What a trail's scorer learns, and from which questions."""

import numpy as np
import pytest
from support.searching import Letters

from benchmarks.recall.published import published_thousand
from benchmarks.standard_sets.fitting import FIRST_WEIGHTS, TrailChoice, fit_scorer, trail_choices
from benchmarks.standard_sets.learning import dev_parts
from kgot_lab.benchmark.recall.datasets import BUNDLED, load_dataset
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.retrieval.multihop.features import FEATURES
from kgot_lab.types import Document, Query

CHANCE = np.random.default_rng(0)


def made_choices(right):
    """Sixty choices among ten candidates, of which the one is gold that `right` puts first."""
    tables = [CHANCE.random((10, len(FEATURES))).astype(np.float32) for _ in range(60)]
    return [TrailChoice(table, np.arange(10) == np.argmax(right(table))) for table in tables]


def share_right(scorer, some):
    return np.mean([choice.gold[np.argmax(scorer(choice.table))] for choice in some])


# by chance .1; a network of few choices is held back
@pytest.mark.parametrize(("units", "least"), [(0, 0.7), (8, 0.3)])
def test_what_one_clue_decides_is_learnt(units, least):
    known = made_choices(lambda table: table[:, 3])
    new = made_choices(lambda table: table[:, 3])
    assert share_right(fit_scorer(known, units=units, seeds=1), new) > least


def test_nothing_is_learnt_on_a_question_that_is_held_out_anywhere():
    asked = {(p.name.removesuffix("-untitled"), query.id) for p in dev_parts() for query in p.queries}
    test_ids = {(name, id) for name in BUNDLED for id in load_dataset(name).test_ids}
    test_ids |= {("2wiki-1000", id) for id in load_dataset("2wiki").test_ids}
    assert len(asked) > 900 and not asked & test_ids


def test_no_test_question_shares_a_step_or_a_gold_passage_with_a_dev_question():
    for name in ("2wiki-1000", "musique-498"):
        data = load_dataset(name)
        groups = {
            part: {data.groups[query.id] for query in some.queries}
            for part, some in (("d", data.dev), ("l", data.held_out))
        }
        assert not groups["d"] & groups["l"]
    steps = load_dataset("musique-498-steps")
    assert steps.test_ids and not {steps.groups[id] for id in steps.test_ids} & {
        steps.groups[query.id] for query in steps.dev.queries
    }


def test_the_sets_are_those_of_others_without_titles_or_among_all_passages():
    data, bare, among = (load_dataset(f"musique-498{ending}") for ending in ("", "-untitled", "-mixed"))
    assert {document.id for document in bare.documents} == {document.id for document in data.documents}
    assert not any(document.title for document in bare.documents) and bare.qrels == data.qrels
    assert len(among.documents) > 14_000
    assert len({document.id for document in among.documents}) == len(among.documents)
    thousand = load_dataset("2wiki-1000")
    run = published_thousand()
    assert set(run) == {query.id for query in thousand.queries}
    assert all(len(hits) == 5 for hits in run.values())
    found = np.mean(
        [
            np.mean([id in {hit.id for hit in run[query]} for id in gold])
            for query, gold in thousand.qrels.items()
        ]
    )
    assert round(float(found), 3) == 0.963  # as the repository's rankings give


def test_a_clue_that_is_not_to_be_looked_at_changes_nothing():
    some = made_choices(lambda table: table[:, 3])
    scorer = fit_scorer(some, units=4, seeds=1, without=[FEATURES[3]])
    other = some[0].table.copy()
    other[:, 3] = 7
    assert np.array_equal(scorer(other), scorer(some[0].table))


def test_choices_end_where_all_gold_is_found_and_hold_what_is_left_of_it():
    documents = (
        Document("a", "Ada met Bob.", "Ada"),
        Document("b", "Bob was born in Rome.", "Bob"),
        Document("c", "Cats.", "Cat"),
    )
    data = Dataset(
        "tiny", documents, (Query("Where was the friend of Ada born?", "q"),), {"q": {"a": 1, "b": 1}}
    )
    found = list(trail_choices(data, Letters(), FIRST_WEIGHTS))
    assert 2 <= len(found) <= 3 and found[0].gold.sum() == 2 and found[-1].gold.sum() == 1
    assert all(choice.table.shape == (len(choice.gold), len(FEATURES)) for choice in found)
