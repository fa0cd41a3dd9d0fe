"""An exercise says "right" or "not yet", never stops a run of all cells, and never tells the answer."""

import numpy as np
import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.viz.exercises import exercise, sealed


class Odd:
    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no")


def test_an_answer_not_given_is_not_yet_and_says_what_to_do():
    said = exercise(..., sealed("loom"))
    assert not said and repr(said).startswith("not yet") and "three dots" in repr(said)


@every(
    ("answer", "right"),
    [
        (0.25, 2 / 8),
        (0.6667, 2 / 3),
        (np.float32(0.25), 0.25),
        (7, 7.0),
        (" Loom ", "loom"),
        (["b", "a"], ("a", "b")),
        ({"a", "b"}, ["b", "a"]),
        ({"x": 1}, {"x": 1.0}),
        (True, True),
        ("any", lambda text: len(text) == 3),
    ],
)
def test_a_right_answer_is_right_plain_and_under_a_seal(answer, right):
    assert repr(exercise(answer, right)) == "right"
    assert callable(right) or exercise(answer, sealed(right))


@every(
    ("answer", "right"),
    [
        (0.3, 0.25),
        ("looms", "loom"),
        (["a"], ["a", "b"]),
        (["a", "a"], ["a"]),
        (True, 1),
        ("1", 1),
        ("", "loom"),
        (1, len),
    ],
)
def test_a_wrong_answer_is_not_yet_with_the_hint_plain_and_under_a_seal(answer, right):
    assert repr(exercise(answer, right, hint="count again")).startswith("not yet: ")
    assert (
        callable(right) or repr(exercise(answer, sealed(right), hint="count again")) == "not yet: count again"
    )


def test_an_answer_that_is_none_is_said_to_be_one_with_the_hint_unless_it_is_right():
    said = repr(exercise(None, sealed("loom"), hint="count again"))
    assert said.startswith("not yet: this answer is None") and said.endswith("count again")
    assert exercise(None, sealed(None)) and exercise(None, None)


@every("answer", [Odd(), float("nan"), [[[]]], np.array([1, 2]), print, {"a": Odd()}])
@every("right", [0.25, "loom", sealed("loom"), lambda answer: answer["loom"] > 1])
def test_no_answer_of_a_reader_raises(answer, right):
    assert repr(exercise(answer, right)).startswith("not yet")


def test_the_seal_does_not_hold_the_answer_and_a_broken_one_is_refused():
    assert "loom" not in sealed("loom") and sealed("loom") == sealed("LOOM ") != sealed("looms")
    with pytest.raises(BadInput, match="seal"):
        exercise("loom", sealed("loom")[:-1])


def test_what_is_said_of_a_wrong_answer_does_not_hold_the_right_one():
    assert "0.25" not in repr(exercise(0.3, 0.25)) and "loom" not in repr(exercise("x", "loom"))
