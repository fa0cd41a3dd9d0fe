import math
import random

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.retrieval.fusion import rrf, weighted
from kgot_lab.retrieval.selection import Trial, select_retrievers
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import ranked


def retriever(name: str) -> Stage:
    return Stage(name, lambda ranking: ranked(ranking.query, {name: 1.0}))


def equal(stages) -> Stage:
    return weighted(*((1.0, stage) for stage in stages))


def joined(stages) -> Stage:
    return Stage("+".join(stage.name for stage in stages), stages[0].step)


def told(**quality: float):
    """A quality looked up by the name of the pipeline, `_` for +."""
    return lambda stage: quality[stage.name.replace("+", "_")]


A, B, C = retriever("a"), retriever("b"), retriever("c")


def test_the_best_retriever_starts_and_a_helpful_one_joins():
    admission = select_retrievers([B, A], joined, told(a=0.7, b=0.5, a_b=0.8))
    assert (admission.selected, admission.rejected, admission.stage.name) == (("a", "b"), (), "a+b")
    assert admission.trials == (Trial("a", 0.7, 0.7, 0.7, "first"), Trial("b", 0.5, 0.7, 0.8, "admitted"))


def test_a_retriever_that_drags_the_fusion_down_is_refused_and_the_next_one_is_tried_without_it():
    admission = select_retrievers([A, B, C], joined, told(a=0.9, b=0.6, c=0.5, a_b=0.7, a_c=0.92))
    assert (admission.selected, admission.rejected, admission.stage.name) == (("a", "c"), ("b",), "a+c")
    assert [trial.without for trial in admission.trials] == [0.9, 0.9, 0.9]


def test_one_retriever_alone_is_legal():
    assert select_retrievers([A], joined, told(a=0.1)).stage is A
    alone = select_retrievers([A, B], joined, told(a=0.9, b=0.1, a_b=0.5))
    assert alone.stage is A and alone.selected == ("a",)


@pytest.mark.parametrize(
    ("together", "verdict"), [(0.721, "admitted"), (0.72, "admitted"), (0.719, "refused"), (0.7, "refused")]
)
def test_a_gain_of_the_margin_itself_is_enough(together, verdict):
    assert select_retrievers([A, B], joined, told(a=0.7, b=0.5, a_b=together)).trials[1].verdict == verdict


@every("level", [n / 100 for n in range(99)])
def test_binary_fractions_do_not_decide_at_the_margin(level):
    assert select_retrievers([A, B], joined, told(a=level, b=0.0, a_b=round(level + 0.02, 2))).rejected == ()


def test_equal_retrievers_are_offered_by_name_whatever_their_order():
    quality = told(a=0.5, b=0.5, c=0.5, a_b=0.6, a_b_c=0.7)
    assert select_retrievers([C, B, A], joined, quality) == select_retrievers([A, B, C], joined, quality)
    assert select_retrievers([C, B, A], joined, quality).selected == ("a", "b", "c")


def test_every_pipeline_is_measured_once():
    seen = []
    qualities = {"a": 0.9, "b": 0.8, "c": 0.7, "a+b": 0.1, "a+c": 0.95}
    select_retrievers([A, B, C], joined, lambda stage: seen.append(stage.name) or qualities[stage.name])
    assert sorted(seen) == sorted(qualities)


def test_an_admission_prints_its_protocol():
    assert repr(select_retrievers([A, B], joined, told(a=0.9, b=0.6, a_b=0.7))).splitlines() == [
        "<Selection: 1 of 2 retrievers selected, margin 0.02: a>",
        "  retriever  alone  without   with  verdict",
        "  a          0.900        -      -  first",
        "  b          0.600    0.900  0.700  refused",
    ]


@pytest.mark.parametrize("fuse", [equal, lambda stages: rrf(*stages)], ids=["weighted", "rrf"])
def test_a_real_fusion_refuses_noise_and_keeps_a_second_opinion(fuse):
    documents = [f"d{number}" for number in range(100)]
    wanted = {f"d{number}" for number in range(10)}
    questions = range(40)

    def noisy(name: str, signal: float) -> Stage:
        def step(ranking):
            chance = random.Random(name + ranking.query.text)
            return ranked(ranking.query, {id: signal * (id in wanted) + chance.random() for id in documents})

        return Stage(name, step)

    def recall(stage: Stage) -> float:
        return sum(len(wanted & set(stage.search(str(number)).ids[:10])) / 10 for number in questions) / len(
            questions
        )

    retrievers = [noisy("strong", 0.6), noisy("second", 0.55), noisy("noise", 0.0)]
    admission = select_retrievers(retrievers, fuse, recall)
    assert (admission.selected, admission.rejected) == (("strong", "second"), ("noise",))
    assert recall(admission.stage) == admission.trials[1].joined > recall(fuse(retrievers)) + admission.margin


def test_a_gate_without_retrievers_or_with_two_of_one_name_is_refused():
    with pytest.raises(BadInput, match="at least one retriever"):
        select_retrievers([], joined, told())
    with pytest.raises(BadInput, match="same name"):
        select_retrievers([A, A], joined, told(a=1))


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_quality_that_is_not_a_number_is_refused_by_the_name_of_the_pipeline(value):
    with pytest.raises(BadInput, match="quality of 'a'"):
        select_retrievers([A, B], joined, told(a=value, b=0.5))
    with pytest.raises(BadInput, match=r"quality of 'a\+b'"):
        select_retrievers([A, B], joined, told(a=0.6, b=0.5, a_b=value))


@pytest.mark.parametrize("margin", [-0.1, math.nan, math.inf, "0.02", None])
def test_a_margin_that_makes_no_sense_is_refused(margin):
    with pytest.raises(BadInput, match="margin"):
        select_retrievers([A, B], joined, told(a=0.6, b=0.5, a_b=0.6), margin=margin)
