"""Comparing two things that a question names: what is asked of each, and the answer worked out from what was
read of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgot_lab.loop.modes.paths.comparison import (
    ComparedBy,
    comparison_of,
    first_of_two,
    speaks_of_age,
    yes_or_no,
)
from kgot_lab.loop.modes.paths.question_form import MARK, form_of, with_names_masked
from kgot_lab.loop.modes.paths.values import alike, is_no_answer, plain_line, truth_in
from kgot_lab.types import Message, Prompt

_SYSTEM = (
    "Two things are compared. Write what must be asked of each of them, one question a line, with X for the thing and #1 for the answer to "
    "the first question."
)
_EXAMPLES = (
    (
        "Which film has the director who was born earlier, The Glass Orchid or Tin Meadow?",
        "Who directed X?\nWhen was #1 born?",
    ),
    ("Which club is older, Quillmoor Rovers or Brask Athletic?", "When was X founded?"),
    ("Who lived longer, Pell Hadrowe or Sunniva Askelund?", "When was X born?\nWhen did X die?"),
    ("Are Lake Ombrel and Lake Tirsova located in the same country?", "In what country is X?"),
    (
        "Do both films, The Glass Orchid and Tin Meadow, have directors from the same country?",
        "Who directed X?\nWhat is the nationality of #1?",
    ),
    ("Are Pell Hadrowe and Sunniva Askelund both painters?", "Is X a painter?"),
)
_LONGEST = 48  # tokens of the questions


def question_for_each(question: str) -> Prompt:
    """Ask what must be known of each of two things that a question compares."""
    turns = [
        Message(role, text)
        for example in _EXAMPLES
        for role, text in zip(("user", "assistant"), example, strict=True)
    ]
    return Prompt(
        (Message("system", _SYSTEM), *turns, Message("user", question.strip())), None, 0.0, 0, _LONGEST
    )


def questions_of_each(reply: str, things: Sequence[str]) -> list[list[str]]:
    """The questions for each thing, `#1` still open in the second; none where the reply asks nothing of X."""
    lines = [line for line in map(plain_line, reply.splitlines()) if line.endswith("?")][:2]
    if not lines or not re.search(r"\bX\b", lines[0]):
        return []
    lines = [line for line in lines if re.search(r"\bX\b|#1", line)]
    return [[_about(line, thing) for line in lines] for thing in things]


def worked_out(question: str, things: Sequence[str], values: Sequence[Sequence[str]]) -> str:
    """The answer to a question that the values read of two things give, of the kind that it asks for; ""
    where they do not tell.

    `values` has the answers read of each thing, in the order of its questions.
    """
    if (
        len(things) != 2
        or len(values) != 2
        or not all(values)
        or any(is_no_answer(value) for each in values for value in each)
    ):
        return ""
    form, masked = form_of(question), with_names_masked(question, things)
    if form == "yes or no":
        return yes_or_no(masked, values)
    # "is A older or younger than B" has no name for an answer
    if form == "open" or re.search(rf"{MARK}\d.*\bthan\b", masked):
        return ""
    answer = compared(comparison_of(masked), things, values, ages=speaks_of_age(masked))
    return answer if answer in things else ""


def compared(
    kind: ComparedBy, things: Sequence[str], values: Sequence[Sequence[str]], *, ages: bool = False
) -> str:
    """The answer that the values read of each thing give, compared in one way; "" where they do not compare.

    With `ages`, more years are an earlier date.
    """
    last = [each[-1] if each else "" for each in values]
    if len(things) != 2 or any(is_no_answer(value) for value in last):
        return ""
    if kind == "same":
        same = None if any(truth_in(value) is not None for value in last) else alike(*last)
        return "" if same is None else "yes" if same else "no"
    if kind == "each":
        said = [truth_in(value) for value in last]
        return "" if None in said else "yes" if all(said) else "no"
    first = first_of_two(kind, values, ages=ages)
    return "" if first is None else things[0 if first else 1]


def _about(line: str, thing: str) -> str:
    """A question of X as a question of the thing, whose name may hold any sign."""
    return re.sub(r"\bX\b", lambda _: thing, line)
