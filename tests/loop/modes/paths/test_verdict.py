"""What is worked out of two things is of the kind that the question asks for, or nothing."""

from support.every import every

from kgot_lab.loop.modes.paths.comparison import computed_answer

TWO = ["Müller Brauerei", "Weber Brauerei"]


def of(question: str, *values: str | list[str]) -> str:
    named = question.replace("§0", TWO[0]).replace("§1", TWO[1])
    return computed_answer(named, TWO, [[value] if isinstance(value, str) else value for value in values])


@every(
    ("question", "one", "other", "answer"),
    [
        ("Was §0 founded earlier than §1?", "1872", "1869", "no"),
        ("Was §0 founded earlier than §1?", "1869", "1872", "yes"),
        ("Was §1 founded earlier than §0?", "1872", "1869", "yes"),
        ("Is the §0 higher than the §1?", "2 km", "500 m", "yes"),
        ("Did §0 die before §1?", "1900", "1899", "no"),
        ("Was §0 built after §1 was built?", "1900", "1899", "yes"),
        ("Is the director of §0 older than the director of §1?", "1900", "1910", "yes"),
        ("Is §0 older than §1?", "800 years old", "300 years old", "yes"),
        ("Does §0 have more workers than §1?", "1.25 million", "900,000", "yes"),
    ],
)
def test_whether_one_is_more_than_the_other_is_answered_with_yes_or_no(
    question: str, one: str, other: str, answer: str
) -> None:
    assert of(question, one, other) == answer


@every(
    ("question", "one", "other", "answer"),
    [
        ("Were §0 and §1 both founded before 1900?", "1872", "1869", "yes"),
        ("Were §0 and §1 both founded before 1870?", "1872", "1869", "no"),
        ("Were §0 and §1 both founded before 1872?", "1872", "1869", "no"),
        ("Were §0 and §1 both founded before May 1872?", "1872", "1869", ""),  # it may have been in June
        ("Are §0 and §1 both at least 100 m high?", "120 m", "0.1 km", "yes"),
        ("Are §0 and §1 both more than 100 m high?", "120 m", "100 m", "no"),
        ("Are §0 and §1 both at least 100 m high?", "80", "500 m", ""),
        ("Are §0 and §1 both at least 100 m high?", "yes", "yes", "yes"),
    ],
)
def test_whether_both_keep_to_a_bound_is_answered_with_yes_or_no(
    question: str, one: str, other: str, answer: str
) -> None:
    assert of(question, one, other) == answer


@every(
    ("question", "one", "other"),
    [
        ("Was §0 founded ten years before §1?", "1900", "1910"),
        ("Is §0 twice as high as §1?", "120 m", "50 m"),
        ("Is the director of §0 older than §1?", "1900", "1910"),
        ("Did §0 die before §1 was born?", "1900", "1899"),
        ("Was §0 founded no later than §1?", "1900", "1910"),
        ("Was §0 founded earlier than §1?", "yes", "no"),
        ("Was §0 founded earlier than §1?", "1900", "1900"),
        ("Is neither §0 nor §1 a brewery?", "yes", "no"),
        ("Are §0 and §1 in the same country?", "unknown", "unknown"),
        ("Are §0 and §1 both breweries?", "no information", "yes"),
        ("Which is larger, §0 or §1?", "120", "90 km"),
        ("Which is larger, §0 or §1?", "1.200", "900"),
        ("Which is older, §0 or §1?", "800 years old", "1300"),
        ("Who finished first, §0 or §1?", "2 years", "3 years"),
        ("Who made §0 and §1?", "yes", "yes"),
        ("Is §0 older or younger than §1?", "1900", "1910"),
    ],
)
def test_nothing_is_answered_beyond_what_the_values_tell(question: str, one: str, other: str) -> None:
    assert of(question, one, other) == ""


@every(
    ("question", "one", "other", "answer"),
    [
        ("Which is longer, §0 or §1?", "2 km", "500 m", TWO[0]),
        ("Which is older than the other, §0 or §1?", "1872", "1869", TWO[1]),
        ("Which is taller, §0 or §1?", "1.82 m", "5 ft 11 in", TWO[0]),
        ("Which is larger, §0 or §1?", "1.25 million", "900,000", TWO[0]),
        ("Which is older, §0 or §1?", "509 BC", "753 BC", TWO[1]),
        ("Which is older, §0 or §1?", "800 years old", "300 years old", TWO[0]),
        ("Which is younger, §0 or §1?", "800 years old", "300 years old", TWO[1]),
        ("Which earned more, §0 or §1?", "$1.2 billion", "$800 million", TWO[0]),
        ("Which is longer, §0 or §1?", "120 km", "90 miles", TWO[1]),
        ("Which is lower, §0 or §1?", "\u22125", "3", TWO[0]),
    ],
)
def test_units_scales_eras_and_ages_count(question: str, one: str, other: str, answer: str) -> None:
    assert of(question, one, other) == answer


def test_a_figure_is_no_span_of_life() -> None:
    question = "Who lived longer, §0 or §1?"
    assert (
        of(question, ["not stated", "1929"], ["1900", "1960"])
        == of(question, ["1929"], ["1900", "1960"])
        == ""
    )
    assert of(question, ["1900", "1929"], ["1900", "1960"]) == TWO[1]
    assert of(question, "80 years", "aged 79") == TWO[0]


def test_words_of_a_name_do_not_say_how_things_are_compared() -> None:
    things = ["The Last Airbender", "Teyzem"]
    assert (
        computed_answer(
            "Which has the director who is older, The Last Airbender or Teyzem?", things, [["1970"], ["1934"]]
        )
        == "Teyzem"
    )
