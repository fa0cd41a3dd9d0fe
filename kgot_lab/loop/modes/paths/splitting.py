"""Splitting a question into the hops of a path: simple questions, each about the answer of an earlier one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgot_lab.loop.modes.paths.values import plain_line
from kgot_lab.types import Message, Prompt

MOST = 4  # hops
_LONGEST = 80  # tokens of the hops
_SYSTEM = (
    "Split the question into simple questions, one a line, each about one thing. Begin with the name that the question gives; "
    "#1, #2 stand for earlier answers."
)
_EXAMPLES = (
    (
        "In what country was the founder of Varnholt Press born?",
        ("Who founded Varnholt Press?", "In what country was #1 born?"),
    ),
    (
        "Who is Odile Brantsev's maternal grandfather?",
        ("Who is the mother of Odile Brantsev?", "Who is the father of #1?"),
    ),
    (
        "Who is the mayor of the city where the singer of Pale Lanterns went to school?",
        (
            "Who is the singer of Pale Lanterns?",
            "In what city did #1 go to school?",
            "Who is the mayor of #2?",
        ),
    ),
    (
        "The Glass Orchid was written by an author from which town?",
        ("Who wrote The Glass Orchid?", "From which town is #1?"),
    ),
)


def question_hops(question: str) -> Prompt:
    """Ask for the hops of a question."""
    turns = [
        message
        for asked, hops in _EXAMPLES
        for message in (
            Message("user", asked),
            Message("assistant", "\n".join(f"{number}. {hop}" for number, hop in enumerate(hops, 1))),
        )
    ]
    return Prompt(
        (Message("system", _SYSTEM), *turns, Message("user", question.strip())), None, 0.0, 0, _LONGEST
    )


def hops_in(reply: str) -> list[str]:
    """The hops in a reply: two or more, each after the first about an earlier answer; none where it is no
    chain.
    """
    hops = [line for line in map(plain_line, reply.splitlines()) if line.endswith("?")][:MOST]
    chained = all(
        any(f"#{earlier}" in hop for earlier in range(1, number + 1))
        for number, hop in enumerate(hops[1:], 1)
    )
    return hops if len(hops) > 1 and "#" not in hops[0] and chained else []


def filled(hop: str, answers: Sequence[str]) -> str:
    """A hop with the answers of earlier ones in it."""
    return re.sub(
        r"#(\d)",
        lambda found: answers[int(found[1]) - 1] if 0 < int(found[1]) <= len(answers) else found[0],
        hop,
    )


def subjects(hop: str, answers: Sequence[str]) -> list[str]:
    """The earlier answers that a hop is about."""
    return [
        answers[int(number) - 1] for number in re.findall(r"#(\d)", hop) if 0 < int(number) <= len(answers)
    ]
