"""Where sentences end in scripts other than plain English, and that plain English is cut as before."""

import pytest

from kgot_lab.loop.limits import PATHS, Limits
from kgot_lab.text.words import sentences


@pytest.mark.parametrize(
    "parts",
    [
        ("Il vit ici.", "Émile est né à Ulm."),
        ("Он здесь.", "Мария родилась в Риге.", "А. С. Пушкин писал."),
        ("He left.", "“She stayed.”", "«Non.»"),
        ("See Fig. 3 for approx. 5 mills.", "They stand."),
        ("It closed in Jan. 2020.", "Then it rained."),
        ("Er kommt z. B. mit dem Rad.", "Das Fest ist am 1. Mai.", "Es waren 40 da."),
        ("Встреча будет в г. Туле.", "Он ушёл."),
        ("She was organist at St Ilda's.", "It is Ada’s.", "The carpenter plays chess."),
    ],
)
def test_a_sentence_ends_before_any_letter_that_may_begin_one(parts: tuple[str, ...]) -> None:
    assert sentences(" ".join(parts), "any script") == list(parts)


def test_a_chinese_full_stop_ends_a_sentence_without_a_space() -> None:
    assert sentences("鲁迅生于绍兴。他住在上海！真的吗？", "any script") == [
        "鲁迅生于绍兴。",
        "他住在上海！",
        "真的吗？",
    ]


def test_plain_english_is_cut_as_by_the_rules_of_before() -> None:
    text = 'Dr. A. B. Low (b. 1960) left. "Why?" He said no. 3 to me! It is St. Ives, c. 1900. - one\n- two\n\nThree [a] b.'
    assert sentences(text, "any script") == sentences(text, "careful")


def test_a_recorded_run_keeps_the_rules_of_its_time() -> None:
    assert PATHS.sentences == "any script"
    assert Limits.of_json({**PATHS.as_json(), "sentences": "careful"}).sentences == "careful"
    assert Limits.of_json({}).sentences == "plain" and not Limits.of_json({}).finds_parts
