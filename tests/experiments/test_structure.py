"""Systems and controls on small texts that can be checked by hand; what they answered, and how it is kept and
judged.
"""

import gzip
import json

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.structure.analogies import Choice, Choices
from benchmarks.structure.analogy_pairs import AnalogyPairs
from benchmarks.structure.analogy_pools import Retrieval
from benchmarks.structure.answered import (
    Answers,
    by_group,
    content_digest,
    graded,
    load_answers,
    load_choices,
    save_answers,
    save_choices,
)
from benchmarks.structure.controls import MinusSurface
from benchmarks.structure.edges import Drawn, drawn, quality
from benchmarks.structure.fitted import Fitted, OnTheSurface
from benchmarks.structure.logit import cross_validated, fit_logit, fold_of, softmax
from benchmarks.structure.systems import Surface, Words, answered, searching
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.runs import run
from kgot_lab.evaluation.significance import compare
from kgot_lab.types import Document, Query

NOUNS = frozenset("dog cat boat river king crown lamp".split())
SOURCE = "the dog chases the cat"
CHOICES = ("the dog chases a bone", "the king chases a crown", "a boat leaves", "lamp oil burns slowly")


class Counts:
    """An embedder that counts words: the cosine of two texts is how many they share."""

    name, digest, dimension = "counts", "c", 300

    def __init__(self):
        self.place = {}

    def embed(self, texts):
        matrix = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                matrix[row, self.place.setdefault(word, len(self.place))] += 1
        return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-9)


def nouns(text):
    return NOUNS & set(text.split())


def questions(count=40, seed=0, test_ids=()):
    """Questions of random words in which the answer is the longest choice three times in four."""
    draw, words = np.random.default_rng(seed), [f"w{number}" for number in range(60)]

    def text(length):
        return " ".join(draw.choice(words, length))

    found = []
    for number in range(count):
        texts = [text(length) for length in (6, 7, 8, 12)]
        answer = int(draw.choice(3)) if draw.random() < 0.25 else 3
        kinds = tuple("target" if place == answer else "other" for place in range(4))
        found.append(Choice(f"q{number:02}", text(8), tuple(texts), answer, kinds, group=f"g{number // 2}"))
    return Choices("made", tuple(found), frozenset(test_ids))


# ----------------------------------------------------------------------------------------------------------


def table(seed=0, count=50):
    draw = np.random.default_rng(seed)
    features = draw.normal(size=(count, 4, 3)) * (1, 5, 0.2)
    answers = np.array([draw.choice(4, p=chances) for chances in softmax(features @ (1.0, 0.2, 4.0))])
    return features, answers.tolist()


@pytest.mark.parametrize("l2", [0.1, 1.0, 20.0])
def test_the_fitted_weights_are_those_that_a_general_optimiser_finds(l2):
    features, answers = table()
    spread = features.reshape(-1, 3).std(axis=0)

    def loss(weights):
        chances = softmax(features / spread @ weights)
        return -np.log(chances[np.arange(50), answers]).sum() + l2 / 2 * weights @ weights

    theirs = minimize(loss, np.zeros(3), tol=1e-12).x
    assert fit_logit(features, answers, l2) * spread == pytest.approx(theirs, abs=1e-4)


def test_a_question_is_answered_by_weights_that_its_fold_did_not_teach():
    features, answers = table()
    groups = [f"g{number // 2}" for number in range(50)]
    weights, fold = cross_validated(features, answers, groups), fold_of(groups)
    for number in (0, 17, 49):
        others = [other for other in range(50) if fold[groups[other]] != fold[groups[number]]]
        found = weights[number]
        assert found == pytest.approx(fit_logit(features[others], [answers[other] for other in others]))
    assert set(fold.values()) == set(range(10))
    assert cross_validated(features[:4], answers[:4], ["a", "a", "b", "b"]).shape == (4, 3)


def test_nothing_is_learnt_from_test_questions_or_from_a_source_in_two_groups():
    made, features = questions(10, test_ids=["q03"]), OnTheSurface(Surface(Counts()), Words(), nouns)
    with pytest.raises(BadInput, match="test questions"):
        Fitted("fitted", features, made)
    Fitted("fitted", features, made.dev)
    twice = Choices(
        "twice", (Choice("a", "x", ("y", "z"), 0, group="1"), Choice("b", "x", ("y", "w"), 0, group="2"))
    )
    with pytest.raises(BadInput, match="as many choices"):
        Fitted("fitted", features, Choices("none", ()))
    with pytest.raises(BadInput, match="two groups"):
        Fitted("fitted", features, twice).prepare([])


# ----------------------------------------------------------------------------------------------------------


def said(*scores, system="s"):
    return Answers(
        system, "control", "three", {f"q{number}": tuple(row) for number, row in enumerate(scores)}
    )


THREE = Choices(
    "three",
    (
        Choice("q0", "s0", ("a", "b", "c"), 0, ("target", "noun", "random"), "g0", False, "similar"),
        Choice("q1", "s1", ("a", "b", "c"), 1, ("noun", "target", "random"), "g0", True, "similar"),
        Choice("q2", "s2", ("a", "b", "c"), 2, ("random", "random", "target"), "g1", True, "dissimilar"),
    ),
)


def test_a_tie_among_the_best_counts_in_equal_parts():
    scores = graded(said((1, 0, 0), (2, 2, 1), (1, 1, 1)), THREE)
    assert scores.per_query("accuracy") == {"q0": 1, "q1": 0.5, "q2": pytest.approx(1 / 3)}
    assert scores.per_query("taken noun") == {"q0": 0, "q1": 0.5, "q2": 0}
    assert scores.per_query("taken random")["q2"] == pytest.approx(2 / 3)
    for id in ("q0", "q1", "q2"):
        assert sum(scores.per_query(measure)[id] for measure in scores.values) == pytest.approx(1)


def test_a_result_gives_back_the_same_verdicts_and_the_same_bytes(tmp_path):
    made = questions(12)
    answers = [answered(system, made) for system in (Surface(Counts()), Words())]
    save_answers(answers, made, tmp_path / "a.jsonl.gz")
    save_answers(answers, made, tmp_path / "deep" / "b.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "deep" / "b.jsonl.gz").read_bytes()
    back = load_answers(tmp_path / "a.jsonl.gz", made)
    assert back == {answer.system: answer for answer in answers}
    assert graded(back["bm25"], made) == graded(answers[1], made)


# -----------------------------------------------------------------------------------------------


def test_a_search_ranks_the_pool_of_a_query_and_nothing_else():
    documents = tuple(
        Document(f"d{number}", text) for number, text in enumerate((*CHOICES, "the dog chases the cat too"))
    )
    dataset = Dataset("tiny", documents, (Query(SOURCE, "q"),), {"q": {"d1": 1}})
    retrieval = Retrieval(dataset, {"q": ("d0", "d1", "d2", "d3")})
    stage = searching(Surface(Counts()), retrieval)
    found = run(stage, dataset.queries, name="surface")
    assert found.ids("q") == ["d0", "d1", "d2", "d3"]
    assert score(found, dataset.qrels, ["map", "recall@1"]).mean("map") == 0.5
    with pytest.raises(BadInput, match="what it has to choose from"):
        stage.search(Query(SOURCE, "another"))


def graph(texts, analogous, **more):
    documents = tuple(Document(f"d{number}", text) for number, text in enumerate(texts))
    given = {"left_out": frozenset(), "ends": frozenset(document.id for document in documents), **more}
    return AnalogyPairs("tiny", documents, frozenset(analogous), **given)


TEXTS = ("dog chases cat", "dog chases boat", "king takes crown", "king takes lamp", "river runs")


def test_edges_are_the_best_pairs_that_the_part_judges():
    whole = graph(TEXTS, {("d0", "d2")})
    found = drawn(Surface(Counts()), whole, keep=3)
    assert [(edge.first, edge.second) for edge in found] == [("d0", "d1"), ("d2", "d3"), ("d0", "d2")]
    # the rest tie at 0, and the first ids are taken
    assert found[0].score == pytest.approx(2 / 3) and found[2].score == 0
    less = graph(TEXTS, {("d0", "d2")}, left_out=frozenset({("d0", "d1")}), ends=frozenset({"d0", "d4"}))
    assert [edge[:2] for edge in drawn(Surface(Counts()), less, keep=9)] == [
        ("d0", "d2"), ("d0", "d3"), ("d0", "d4"), ("d1", "d4"), ("d2", "d4"), ("d3", "d4"),
    ]  # fmt: skip
    assert less.judged == 6 and less.prevalence == pytest.approx(1 / 6)


def test_precision_recall_and_lift_worked_out_by_hand():
    whole = graph(TEXTS, {("d0", "d2"), ("d1", "d3")}, left_out=frozenset({("d0", "d4"), ("d1", "d4")}))
    edges = [
        Drawn("d0", "d2", 0.9),
        Drawn("d0", "d1", 0.8),
        Drawn("d2", "d3", 0.5),
        Drawn("d1", "d3", 0.4),
        Drawn("d0", "d4", 1.0),
    ]
    found = quality(edges, whole)
    expected = (4, 2, 0.5, 1.0, 0.25)
    assert (found.edges, found.right, found.precision.mean, found.recall, found.prevalence) == expected
    assert found.lift == 2 and found.f1 == pytest.approx(2 / 3)
    assert found.precision.low < 0.5 < found.precision.high


def test_a_result_of_other_questions_or_one_that_is_broken_is_refused(tmp_path):
    path, answers = tmp_path / "a.jsonl.gz", said((1, 0, 0), (1, 0, 0), (0, 0, 1))
    save_answers([answers], THREE, path)
    with pytest.raises(BadInput, match="other questions"):
        load_answers(path, questions(3))
    lines = gzip.decompress(path.read_bytes()).splitlines()
    for broken, said_of_it in (
        (lines[:-1], "2 of the 3"),
        ([*lines[:-1], b'{"question": "q2"}'], "line 4"),
        (lines[1:], "does not begin"),
    ):
        path.write_bytes(gzip.compress(b"\n".join(broken)))
        with pytest.raises(BadInput, match=said_of_it):
            load_answers(path, THREE)
    path.write_bytes(b"no gzip")
    with pytest.raises(BadInput, match="cannot be read"):
        load_answers(path, THREE)
    with pytest.raises(BadInput, match="same name"):
        save_answers([answers, answers], THREE, path)
    with pytest.raises(BadInput, match="exactly the questions"):
        save_answers([said((1, 0, 0))], THREE, path)


def test_a_system_that_gives_no_number_is_refused():
    class Broken(Surface):
        def scores(self, source, candidates):
            return np.full(len(candidates), np.nan)

    with pytest.raises(BadInput, match="finite numbers for 'q00'"):
        answered(Broken(Counts()), questions(3))


def test_answers_to_other_questions_are_refused():
    with pytest.raises(BadInput, match="question 'q2'"):
        graded(said((1, 0, 0), (1, 0, 0)), THREE)
    with pytest.raises(BadInput, match="no questions"):
        answered(Words(), Choices("none", ()))


def test_drawn_questions_come_back_as_they_were(tmp_path):
    path = tmp_path / "cells.jsonl.gz"
    save_choices(THREE, path)
    assert load_choices(path) == THREE and content_digest(load_choices(path)) == content_digest(THREE)
    rows = gzip.decompress(path.read_bytes()).splitlines()
    path.write_bytes(gzip.compress(b"\n".join(rows[:-1])))
    with pytest.raises(BadInput, match="all its questions"):
        load_choices(path)
    assert json.loads(rows[0])["count"] == 3


def test_no_edges_are_no_precision_and_an_edge_drawn_twice_is_refused():
    whole = graph(TEXTS, {("d0", "d2")})
    nothing = quality([], whole)
    expected = (0, 0, 0, 0)
    assert (nothing.edges, nothing.precision.mean, nothing.recall, nothing.f1) == expected
    with pytest.raises(BadInput, match="twice"):
        quality([Drawn("d0", "d1", 1.0), Drawn("d1", "d0", 1.0)], whole)
    with pytest.raises(BadInput, match="'d9', which is no document"):
        quality([Drawn("d0", "d9", 1.0)], whole)
    with pytest.raises(BadInput, match="1 or more"):
        drawn(Words(), whole, keep=0)


def test_what_cannot_be_fitted_is_refused():
    features, answers = table()
    bad = ((features[0], answers), (features, answers[1:]), (features * np.nan, answers))
    for wrong in (*bad, (features, [4] * 50)):
        with pytest.raises(BadInput):
            fit_logit(*wrong)
    with pytest.raises(BadInput, match="above 0"):
        fit_logit(features, answers, 0.0)
    with pytest.raises(BadInput, match="two"):
        cross_validated(features, answers, ["one"] * 50)


def test_a_fitted_control_answers_by_the_other_folds_what_it_learnt_from_and_by_all_what_is_new():
    made, new = questions(30), questions(5, seed=9)
    features = OnTheSurface(Surface(Counts()), Words(), nouns)
    control = Fitted("fitted", features, made)
    control.prepare(new.texts)
    rows = np.array([features.of(question.source, question.choices) for question in made.questions])
    weights = cross_validated(
        rows,
        [question.answer for question in made.questions],
        [question.group for question in made.questions],
    )
    known, other = made.questions[3], new.questions[0]
    assert control.scores(known.source, known.choices) == pytest.approx(rows[3] @ weights[3])
    everything = np.array(list(control.weights.values()))
    found = control.scores(other.source, other.choices)
    assert found == pytest.approx(features.of(other.source, other.choices) @ everything)


def test_cells_and_groups_have_their_own_means():
    scores = graded(said((1, 0, 0), (1, 0, 0), (0, 0, 1)), THREE)
    assert THREE.cells == {"far-dissimilar": ("q2",), "far-similar": ("q1",), "near-similar": ("q0",)}
    assert scores.only(THREE.cells["far-similar"]).mean("accuracy") == 0
    assert by_group(scores, THREE).per_query("accuracy") == {"g0": 0.5, "g1": 1}


def test_graded_answers_are_compared_as_every_other_system_is():
    made = questions(40)
    scores = {
        system.name: graded(answered(system, made), made)
        for system in (Surface(Counts()), MinusSurface(Surface(Counts())))
    }
    row = compare(scores, "surface", "accuracy", rounds=500)["minus surface"]
    means = [scores[name].mean("accuracy") for name in ("minus surface", "surface")]
    assert row.difference.mean == pytest.approx(means[0] - means[1])
    assert row.wins + row.ties + row.losses == 40
