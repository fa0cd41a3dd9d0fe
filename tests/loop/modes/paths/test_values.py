"""What a short answer says: nothing, yes or no, a date, an age, an amount; and whether two say the same."""

import pytest
from support.every import every

from kgot_lab.loop.modes.paths.values import (
    Quantity,
    answer_keys,
    is_no_answer,
    parse_age,
    parse_date,
    parse_quantity,
    parse_yes_no,
    same_value,
    whole_date,
)


@every(
    "text",
    [
        "unknown",
        "It is unknown.",
        "no information",
        "not stated",
        "I cannot tell, sorry",
        "I don't know",
        "None",
        "n/a",
        "",
        "?",
    ],
)
def test_words_that_say_that_a_model_does_not_know_tell_nothing(text: str) -> None:
    assert is_no_answer(text) and parse_yes_no(text) is None


@pytest.mark.parametrize(
    "text", ["Unknown Pleasures", "No Country for Old Men", "Nothing Compares 2 U", "no", "1900"]
)
def test_names_that_hold_such_words_tell_something(text: str) -> None:
    assert not is_no_answer(text)


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("yes", True),
        ("No.", False),
        ("No, he was not", False),
        ("no man is an island", None),
        ("perhaps", None),
    ],
)
def test_yes_and_no_are_read_where_they_stand_for_themselves(text: str, truth: bool | None) -> None:
    assert parse_yes_no(text) is truth


@every(
    ("text", "date"),
    [
        ("509 BC", (-509,)),
        ("753 BCE", (-753,)),
        ("509–480 BC", (-509,)),
        ("15 March 44 BC", (-44, 3, 15)),
        ("AD 14", (14,)),
        ("500 v. Chr.", (-500,)),
        ("1900-07-04", (1900, 7, 4)),
        ("4. Juli 1900", (1900, 7, 4)),
        ("4.7.1900", (1900, 7, 4)),
        ("1 250 000", None),
        ("1.200", None),
    ],
)
def test_eras_and_figures_are_told_from_years(text: str, date: tuple[int, ...] | None) -> None:
    assert parse_date(text) == date


@pytest.mark.parametrize(
    ("question", "answer", "text", "whole"),
    [
        ("When was it launched?", "1858", "In 1858, on 8 September 1858, it was.", "8 September 1858"),
        ("On what day did it burn?", "1938", "It burned on November 3, 1938.", "November 3, 1938"),
        ("In which year was it launched?", "1858", "It was launched on 8 September 1858.", "1858"),
        ("When was it launched?", "1858", "On 8 May 1858 or on 9 May 1858.", "1858"),
        ("When was it launched?", "1858", "It was launched in 1858.", "1858"),
        ("When was it run?", "2024", "It was run as the Marathon 2024.", "2024"),
        ("When was it launched?", "in May", "It was launched on 8 May 1858.", "in May"),
    ],
)
def test_a_year_becomes_the_date_that_stands_with_it_if_the_question_asks_when(
    question: str, answer: str, text: str, whole: str
) -> None:
    assert whole_date(question, answer, text) == whole


@pytest.mark.parametrize(
    ("text", "years"),
    [("800 years old", 800), ("aged 45", 45), ("about 3 million years", 3e6), ("1872", None), ("2 km", None)],
)
def test_an_age_is_a_number_of_years(text: str, years: float | None) -> None:
    assert parse_age(text) == years


@every(
    ("text", "kind", "amount"),
    [
        ("2 km", "length", 2000),
        ("5 ft 11 in", "length", 1.8034),
        ("5'11", "length", 1.8034),
        ("90 miles", "length", 144840.96),
        ("8,848 metres (29,029 ft)", "length", 8848),
        ("3,5 kg", "weight", 3.5),
        ("2 hours and 5 minutes", "time", 7500),
        ("5 square miles", "area", 12949940.55168),
        ("1.25 million", "", 1250000),
        ("900,000", "", 900000),
        ("In 2010, 1.2 million", "", 1200000),
        ("12 t", "weight", 12000),
        ("1 250 000", "", 1250000),
        ("1.200.000", "", 1200000),
        ("\u22123", "", -3),
        ("$1.2 billion", "$", 1.2e9),
        ("$5m", "$", 5e6),
        ("800 million dollars", "$", 8e8),
        ("2.5M people", "people", 2.5e6),
    ],
)
def test_amounts_are_read_with_their_scales_and_units(text: str, kind: str, amount: float) -> None:
    found = parse_quantity(text)
    assert found is not None and (found.kind, found.amount) == (kind, pytest.approx(amount))


@every("text", ["1.200", "12-15 km", "from 3 to 5", "1:45", "5½ miles", "3/4", "many"])
def test_what_may_be_read_in_two_ways_is_no_amount(text: str) -> None:
    assert parse_quantity(text) is None


def test_a_bare_figure_compares_with_a_count_and_not_with_a_length() -> None:
    assert Quantity("", 3).compares_with(Quantity("people", 2))
    assert Quantity("", 3).compares_with(Quantity("~goal", 2))
    assert not Quantity("", 3).compares_with(Quantity("length", 2))
    assert not Quantity("~goal", 3).compares_with(Quantity("~seat", 2))


@every(
    ("one", "other", "same"),
    [
        ("Norwegian", "Norway", True),
        ("USA", "United States", True),
        ("U.S.", "American", True),
        ("1900-07-04", "4 July 1900", True),
        ("2 km", "2000 m", True),
        ("Isfahan, Iran", "Iran", True),
        ("American and Canadian", "Canadian", True),
        ("Iran", "Georgia", False),
        ("4 July 1900", "5 July 1900", False),
        ("French", "Germany", False),
        ("South Korea", "Korea", None),
        ("Paris, Texas", "Paris", None),
        ("Maltese", "Malta", None),
        ("1900", "4 July 1900", None),
        ("None", "None", None),
        ("unknown", "Norway", None),
    ],
)
def test_two_values_are_the_same_or_not_or_it_cannot_be_told(one: str, other: str, same: bool | None) -> None:
    assert same_value(one, other) is same and same_value(other, one) is same


def test_of_one_year_the_days_do_not_count_and_of_one_country_the_towns_do_not() -> None:
    assert same_value("4 July 1900", "12 May 1900", "Were they born in the same year?") is True
    assert same_value("Oslo, Norway", "Bergen, Norway", "Are they in the same country?") is True
    assert same_value("Oslo, Norway", "Bergen, Norway", "Are they in the same city?") is False


@every(
    ("answers", "one"),
    [
        (["212", "212 meters", "212 metres"], "aaa"),
        (["212 m", "0.212 km", "about 212"], "aaa"),
        (["212 feet", "212 metres", "212"], "abc"),  # of which unit, nobody can say
        (["212 km", "212 m"], "ab"),
        (["$5", "5 dollars", "5 USD", "€5"], "aaab"),
        (["5 million", "5,000,000", "5000000 people"], "aaa"),
        (["2 years", "24 months", "2"], "aaa"),
        (["5%", "5 percent", "5"], "aaa"),
        (["3 sons", "3 son", "3"], "aaa"),
        (["3 sons", "3 daughters", "3"], "abc"),
        (["1815", "1815 AD", "1816"], "aab"),
        (["-5", "5"], "ab"),
        (["0", "", "."], "abb"),
        (["21 Jump Street", "21 Jump Road", "21"], "abc"),
        (["12-15", "12", "15"], "abc"),
        (["1.200", "1200", "1.2"], "abc"),  # thousands, or thousandths
        (["the London", "london."], "aa"),
        (["The 1815.", "1815", "(1815)"], "aaa"),
        (["Apollo 13", "13"], "ab"),
        ([], ""),
    ],
)
def test_answers_to_a_question_are_one_where_they_say_the_same_amount(answers, one):
    keys = answer_keys(answers)
    assert "".join("abc"[list(dict.fromkeys(keys)).index(key)] for key in keys) == one
