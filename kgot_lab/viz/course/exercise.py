"""Exercises of a notebook: a cell in which the reader writes an answer, and a line that says "right" or "not
yet".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kgot_lab.errors import BadInput
from kgot_lab.viz.exercises import note_attempt, note_name

_SEAL = "sealed:"
_DIGITS = 3  # of a number under a seal: .6667 and 2/3 are one answer
_NOTHING = (
    "this answer is None, which is what a call gives that only shows something; it does not count as a try"
)
_BLANK = "not yet: put your answer in the place of the three dots, and run the cell again"


@dataclass(frozen=True)
class Assessed:
    """What is said of an answer; true when the answer is right."""

    right: bool
    said: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.said


def exercise(answer: Any, right: Any, *, hint: str = "", within: float = 0.005, name: str = "") -> Assessed:
    """Says "right" or "not yet" of an answer, and never what the right one is; three dots, the answer not
    given, are "not yet".

    `right` is the answer itself, worked out in the cell; a function that says whether an answer is right; or
    an answer under a seal, as `sealed` makes it. Texts are compared without case and outer spaces,
    collections without order, numbers within `within`. An answer of a kind that cannot be compared is "not
    yet", with what went wrong and the hint. What is tried at an exercise with a `name` is noted for
    `hand_in`; with three dots again nothing is, nor for a None that is not right. Raises BadInput when a seal
    is not one of `sealed`, and for the name of another exercise, which has another seal or hint.
    """
    is_sealed = isinstance(right, str) and right.startswith(_SEAL)
    if is_sealed and len(right) != len(sealed("")):
        raise BadInput("this seal is not whole: make it again with sealed(the right answer)")
    if name:
        note_name(name, (right if is_sealed else "", hint))
    if answer is ...:
        return Assessed(False, _BLANK)
    try:
        is_right, trouble = _is_right(answer, right, within), ""
    except Exception as error:  # whatever a reader writes, a run of all cells goes on
        is_right, trouble = False, f"this answer cannot be compared ({type(error).__name__}: {error})"
    if answer is None and not is_right:
        trouble = _NOTHING
    elif name:
        note_attempt(name, answer, right=is_right)
    said = "; ".join(filter(None, (trouble, hint)))
    return Assessed(True, "right") if is_right else Assessed(False, f"not yet: {said}" if said else "not yet")


def sealed(answer: Any) -> str:
    """A right answer that a reader of the cell cannot read: "sealed:" and a digest of it, numbers taken to
    three significant digits.
    """
    return _SEAL + hashlib.sha256(_plain(answer).encode()).hexdigest()[:16]


def _is_right(answer: Any, right: Any, within: float) -> bool:
    if isinstance(right, str) and right.startswith(_SEAL):
        return sealed(answer) == right
    if callable(right):
        judge: Callable[[Any], Any] = right
        return bool(judge(answer))
    if _is_number(answer) and _is_number(right):
        return math.isclose(float(answer), float(right), rel_tol=1e-9, abs_tol=within)
    return _plain(answer) == _plain(right)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | str | Collection) and hasattr(value, "__float__")


def _plain(value: Any) -> str:
    """A value as text, so that equal answers are equal texts: without case, outer spaces, order and the last
    digits.
    """
    if isinstance(value, str):
        return repr(" ".join(value.split()).casefold())
    if _is_number(value):
        return f"{float(value):.{_DIGITS}g}"
    if isinstance(value, Mapping):
        return repr(sorted((_plain(key), _plain(item)) for key, item in value.items()))
    if isinstance(value, Collection):
        return repr(sorted(map(_plain, value)))
    return repr(value)
