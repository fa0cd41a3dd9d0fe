"""One question to the reader of a run: what is asked before which event, among which choices, and where the
truth is seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from kgot_lab.evaluation.grading import f1
from kgot_lab.text.words import plain_answer
from kgot_lab.types import Json

ASKED_ABOUT = ("tool", "fact", "vote", "statement", "answer")
OTHERS = 3  # wrong choices beside the right one, where the choices are texts
_ALIKE = 0.5  # the F1 from which two texts say the same
_LONGEST = 160  # characters of a choice


@dataclass(frozen=True)
class Prediction:
    """A question to the reader: asked before event `before`, answered when event `reveal` is reached.

    `choices` are (value, words); `truth` is the value of the right one. `quoted` is a text of the run that
    the question is about.
    """

    kind: str
    before: int
    reveal: int
    asks: str
    told: str
    choices: tuple[tuple[str, str], ...]
    truth: str
    quoted: str = ""

    def as_json(self) -> dict[str, Json]:
        """The question for a page, with a key for each choice: the first letter of its value, or its number."""
        choices = [{"value": value, "words": words, "key": value[0].upper()} for value, words in self.choices]
        told = {
            "kind": self.kind,
            "before": self.before,
            "reveal": self.reveal,
            "asks": self.asks,
            "told": self.told,
        }
        return {**told, "quoted": self.quoted, "choices": choices, "truth": self.truth}


def among(
    kind: str, places: tuple[int, int], asks: str, told: str, truth: str, others: Iterable[str]
) -> Prediction:
    """A question whose choices are texts: the right one and a few others that say something else, in an order
    that a hash draws.
    """
    texts = [truth]
    for other in sorted(set(others), key=chance):
        if len(texts) <= OTHERS and plain_answer(other) and all(f1(other, text) < _ALIKE for text in texts):
            texts.append(other)
    order = sorted(texts, key=lambda text: chance((places, text, truth)))
    shown = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in order]
    choices = tuple((str(number), text) for number, text in enumerate(shown, start=1))
    return Prediction(kind, *places, asks, told, choices, str(order.index(truth) + 1))


def chance(what: object) -> str:
    """A draw that is the same each time."""
    return hashlib.sha256(str(what).encode("utf-8", "backslashreplace")).hexdigest()
