"""A question split into hops."""

import pytest

from kgot_lab.loop.modes.paths.question_form import filled, hops_in, question_hops, subjects


def test_hops_are_read_from_numbered_lines_or_plain_ones() -> None:
    assert hops_in("1. Who founded X?\n2. Where was #1 born?") == ["Who founded X?", "Where was #1 born?"]
    assert hops_in("Who founded X?\nWhere was #1 born?") == ["Who founded X?", "Where was #1 born?"]


def test_bullets_and_bold_are_no_part_of_a_hop() -> None:
    assert hops_in("- Who founded X?\n* Where was #1 born?") == ["Who founded X?", "Where was #1 born?"]
    assert hops_in("**1.** Who founded X?\n**2. Where was #1 born?**") == [
        "Who founded X?",
        "Where was #1 born?",
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no idea",
        "1. Who founded X?",
        "1. Who founded X?\n2. Where is Y?",
        "1. Who is #1?\n2. Where is #1?",
    ],
)
def test_a_reply_that_is_no_chain_has_no_hops(reply: str) -> None:
    assert hops_in(reply) == []


def test_a_hop_is_filled_with_earlier_answers_and_an_unknown_number_stays() -> None:
    assert filled("Was #2 in #1 or #3?", ["Rome", "Ada"]) == "Was Ada in Rome or #3?"
    assert subjects("Was #2 in #1 or #3?", ["Rome", "Ada"]) == ["Ada", "Rome"]


def test_the_question_stands_last_in_the_prompt() -> None:
    assert question_hops("Who?").messages[-1].text == "Who?"
