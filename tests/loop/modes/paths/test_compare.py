"""Two things that are compared: what is asked of each, and what follows from the values."""

from support.every import every

from kgot_lab.loop.modes.paths.comparison import (
    compare_values,
    comparison_kind,
    comparison_prompt,
    parse_comparison_questions,
)
from kgot_lab.loop.modes.paths.values import parse_date

TWO = ["Aas Ka Panchhi", "Phoolwari"]


@every(
    ("question", "kind"),
    [
        ("Which film was released first, A or B?", "earliest"),
        ("Which film has the director who is older, A or B?", "earliest"),
        ("Which film has the director born later, A or B?", "latest"),
        ("Who is younger, A or B?", "latest"),
        ("Who lived longer, A or B?", "longest"),
        ("Who has the longer lifespan, A or B?", "longest"),
        ("Which city has more inhabitants, A or B?", "most"),
        ("Which lake is smaller, A or B?", "least"),
        ("Are A and B in the same country?", "same"),
        ("Are A and B both painters?", "each"),
    ],
)
def test_how_things_are_compared_is_told_by_the_words_of_the_question(question: str, kind: str) -> None:
    assert comparison_kind(question) == kind


@every(
    ("text", "date"),
    [
        ("12 June 1967", (1967, 6, 12)),
        ("June 12, 1967", (1967, 6, 12)),
        ("released in October 1900", (1900, 10)),
        ("1946", (1946,)),
        ("the 3rd May 988", (988, 5, 3)),
        ("no date", None),
    ],
)
def test_dates_are_read_as_far_as_they_are_told(text: str, date: tuple[int, ...] | None) -> None:
    assert parse_date(text) == date


@every(
    ("kind", "values", "answer"),
    [
        ("earliest", [["1961"], ["1946"]], "Phoolwari"),
        ("latest", [["1961"], ["1946"]], "Aas Ka Panchhi"),
        ("earliest", [["12 June 1967"], ["1968"]], "Aas Ka Panchhi"),
        ("earliest", [["12 June 1967"], ["1967"]], ""),  # the years are the same, and one says no more
        ("earliest", [["unknown"], ["1946"]], ""),
        ("most", [["1,200 people"], ["950"]], "Aas Ka Panchhi"),
        ("least", [["3.5 km"], ["35 km"]], "Aas Ka Panchhi"),
        ("longest", [["1 May 1900", "2 May 1980"], ["1900", "1990"]], "Phoolwari"),
        ("same", [["Iran"], ["Georgia"]], "no"),
        ("same", [["Isfahan, Iran"], ["Iran"]], "yes"),
        ("same", [["yes"], ["yes"]], ""),  # the reply asked each whether it is of any, which does not tell
        ("each", [["yes"], ["no"]], "no"),
        ("each", [["yes"], ["yes"]], "yes"),
        ("each", [["yes"], ["perhaps"]], ""),
        ("earliest", [["1961"], []], ""),
    ],
)
def test_the_answer_follows_from_the_values_or_is_empty_where_they_do_not_compare(
    kind: str, values: list[list[str]], answer: str
) -> None:
    assert compare_values(kind, TWO, values) == answer  # type: ignore[arg-type]


def test_the_questions_of_a_reply_are_asked_of_each_thing_whatever_signs_its_name_holds() -> None:
    odd = [r"A\1 (film)", "Malcolm X"]
    asked = parse_comparison_questions("Who directed X?\nWhen was #1 born?\n", odd)
    assert asked == [
        [r"Who directed A\1 (film)?", "When was #1 born?"],
        ["Who directed Malcolm X?", "When was #1 born?"],
    ]


def test_bullets_numbers_and_bold_are_no_part_of_a_question() -> None:
    assert parse_comparison_questions("- Who directed X?\n**2.** When was #1 born?", ["A"]) == [
        ["Who directed A?", "When was #1 born?"]
    ]


def test_a_reply_that_asks_nothing_of_either_thing_gives_no_questions() -> None:
    assert parse_comparison_questions("I do not know.", TWO) == []
    assert parse_comparison_questions("Is it old?", TWO) == []


def test_the_question_stands_last_in_the_prompt() -> None:
    assert comparison_prompt(" Who is older, A or B? ").messages[-1].text == "Who is older, A or B?"
