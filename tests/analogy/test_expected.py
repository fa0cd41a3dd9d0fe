"""How many edges to expect right: by Bayes, by what was measured, and told beside the bands."""

import pytest

from benchmarks.structure.alarm_tables import kept_alarms, measured_shares
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.delta_edges import compare_texts, delta_edges
from kgot_lab.analogy.expected_precision import MEASURED_SHARES, BandShares, expected_precision
from kgot_lab.analogy.linguistic import LinguisticSkeletons, analyse_texts
from kgot_lab.analogy.skeletons import Skeletons, make_skeletons
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.similarity.delta import DEFAULT_THRESHOLDS, TextPair, Thresholds
from kgot_lab.types import Node

ROWS = bundled_path("README.md").parents[1] / "benchmarks" / "results" / "transfer" / "short_texts.jsonl"
SENTENCES = (
    "The kettle boils on the stove.", "Parliament passed the budget on Tuesday.", "My sister plays the violin in an orchestra.",
    "The satellite lost contact with the station.", "The team won the match in extra time.", "A fox crossed the road behind the school.",
)  # fmt: skip


def graph_of(texts):
    return PropertyGraph.of(Node(str(number), properties={"text": text}) for number, text in enumerate(texts))


def test_the_measured_shares_are_those_of_the_result():
    assert measured_shares(kept_alarms(ROWS)) == MEASURED_SHARES


def test_without_shares_the_precision_is_the_most_that_bayes_allows():
    assert expected_precision({"high": 24}, 66, prevalence=0.01) == {"high": pytest.approx(0.01 * 66 / 24)}
    assert expected_precision({"high": 1}, 1_000, prevalence=0.5) == {"high": 1.0}


def test_of_many_pairs_the_share_that_passes_is_the_graphs_own_and_of_few_that_measured():
    shares = BandShares({"high": 0.5}, {"high": 0.1})
    (many,) = expected_precision({"high": 200_000}, 1_000_000, prevalence=0.01, shares=shares).values()
    (few,) = expected_precision({"high": 1}, 1, prevalence=0.01, shares=shares).values()
    assert many == pytest.approx(0.01 * 0.5 / 0.2, rel=0.01)
    assert few == pytest.approx(0.005 / (0.005 + 0.099), rel=0.02)


@pytest.mark.parametrize("prevalence", [0, 1, -0.1, float("nan")])
def test_a_prevalence_that_is_none_is_refused(prevalence):
    with pytest.raises(BadInput, match="between 0 and 1"):
        expected_precision({"high": 1}, 1, prevalence=prevalence)


def test_unrelated_short_sentences_get_no_edge_and_the_reason_is_counted():
    made, without = make_skeletons(SENTENCES, LinguisticSkeletons()), Thresholds(words=0)
    found = delta_edges(graph_of(SENTENCES), made, minilm())
    assert len(found) == 0
    assert found.counts.short == 6
    assert "6 whose skeleton is too short to compare" in str(found)
    loose = delta_edges(graph_of(SENTENCES), made, minilm(), thresholds=without)
    assert loose.counts_by_band["high"] == len(loose) > 0 and loose.counts.short == 0


def test_a_pair_that_is_too_short_says_so():
    pair = compare_texts(*SENTENCES[:2], make_skeletons(SENTENCES, LinguisticSkeletons()), minilm())
    assert pair.shorter_word_count == 2 and "only 2 words left of a skeleton" in str(pair)
    assert DEFAULT_THRESHOLDS.explain_short_skeletons(pair).startswith("too short to compare: 2 words left")
    assert not Thresholds(words=2).explain_short_skeletons(pair)
    # whose skeletons are not known
    assert not DEFAULT_THRESHOLDS.explain_short_skeletons(TextPair("a", "b", 0.1, 0.5))


def test_what_was_measured_counts_for_the_usual_verifier_alone():
    made = make_skeletons(SENTENCES, LinguisticSkeletons())
    verifiers = Aligner(minilm()), Aligner(minilm(), connectives=True)
    usual, other = (
        delta_edges(graph_of(SENTENCES), made, minilm(), verifier=verifier) for verifier in verifiers
    )
    assert usual.shares == MEASURED_SHARES[True] and other.shares is None


def test_connectives_are_read_where_that_is_wanted():
    said = "Then the river rose. Finally it broke the dam."
    read, dropped = (
        " ".join(sentence.masked for sentence in analyse_texts([said], connectives=each)[0].units)
        for each in (True, False)
    )
    assert "finally" in read.casefold() and "finally" not in dropped.casefold()


def test_the_expected_precision_stands_beside_the_bands_for_the_rule_it_was_measured_for_and_as_a_bound_for_others():
    texts = (
        "He runs because it is raining and then stops at the door.",
        "It grows because he is watering and then wilts at the edge.",
    )
    made = make_skeletons(texts, LinguisticSkeletons())
    own = delta_edges(graph_of(texts), made, minilm())
    other = delta_edges(graph_of(texts), made, minilm(), thresholds=Thresholds(-1, -2))
    assert own.shares == MEASURED_SHARES[False] and other.shares is None
    assert "expected to be right, if 1% of all pairs are analogous: low at most 1%" in str(other)


def test_a_made_up_skeleton_is_counted_as_well():
    made = Skeletons(dict.fromkeys(SENTENCES, "something happens"), "by hand")
    assert delta_edges(graph_of(SENTENCES), made, minilm()).counts.short == 6


def test_the_specified_thresholds_are_what_they_were():
    assert (DEFAULT_THRESHOLDS.skeleton, DEFAULT_THRESHOLDS.delta) == (0.45, 0.08)
    with pytest.raises(BadInput, match="words must be"):
        Thresholds(words=-1)
