"""A question split into hops."""

import pytest

from kgot_lab.loop.modes.paths.question_form import fill_hop, hop_subjects, hops_prompt, parse_hops


def test_hops_are_read_from_numbered_lines_or_plain_ones() -> None:
    assert parse_hops("1. Who founded X?\n2. Where was #1 born?") == ["Who founded X?", "Where was #1 born?"]
    assert parse_hops("Who founded X?\nWhere was #1 born?") == ["Who founded X?", "Where was #1 born?"]


def test_bullets_and_bold_are_no_part_of_a_hop() -> None:
    assert parse_hops("- Who founded X?\n* Where was #1 born?") == ["Who founded X?", "Where was #1 born?"]
    assert parse_hops("**1.** Who founded X?\n**2. Where was #1 born?**") == [
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
    assert parse_hops(reply) == []


def test_a_hop_is_filled_with_earlier_answers_and_an_unknown_number_stays() -> None:
    assert fill_hop("Was #2 in #1 or #3?", ["Rome", "Ada"]) == "Was Ada in Rome or #3?"
    assert hop_subjects("Was #2 in #1 or #3?", ["Rome", "Ada"]) == ["Ada", "Rome"]


def test_the_question_stands_last_in_the_prompt() -> None:
    assert hops_prompt("Who?").messages[-1].text == "Who?"
