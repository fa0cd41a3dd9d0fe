"""GAIA's rules on cases invented here and decided by hand: right (+), wrong (-), or wrong and close (~)."""

from __future__ import annotations

from support.every import every

from kgot_lab.evaluation.grading import gaia_verdict

NUMBERS = [
    ("17", "17", "+"),
    ("17", "17.0", "+"),
    ("17", " 17 ", "+"),
    ("17", "17%", "+"),
    ("17", "$17", "+"),
    ("17", "$ 17.", "+"),
    ("1234.5", "$1,234.50", "+"),
    ("1000000", "1,000,000", "+"),
    ("17", "18", "-"),
    ("17", "17 thousand", "-"),
    ("17", "seventeen", "-"),
    ("17", "17 apples", "-"),
    ("17", "€17", "-"),  # of the signs of money only $ is taken away
    ("17", "", "-"),
    ("17", None, "-"),
    ("17", 17, "+"),
    ("17", 17.0, "+"),
    ("-4", "−4", "+"),  # a minus sign and a hyphen
    ("-4", "4", "-"),
    ("+4", "4", "+"),
    (".5", "0.5", "+"),
    ("0.5", "50%", "-"),  # a percent sign is taken away, nothing is divided
    ("0.1", "0.10000001", "-"),
    ("3e2", "300", "+"),
    ("300", "3E2", "+"),
    ("17", "inf", "-"),
    ("17", "nan", "-"),
    ("0", "-0", "+"),
    ("12", "1_2", "-"),  # that a programming language reads it so is no reason
    ("2024", "In 2024", "-"),
    ("2024", "2,024", "+"),
    ("100", "100 ", "+"),
]
LISTS = [
    ("oak, ash, elm", "oak,ash,elm", "+"),
    ("oak, ash, elm", "Oak, ASH ,elm", "+"),
    ("oak, ash, elm", "oak; ash; elm", "+"),
    ("oak, ash, elm", "ash, oak, elm", "-"),  # the order counts
    ("oak, ash, elm", "oak, ash", "-"),
    ("oak, ash, elm", "oak ash elm", "~"),
    ("oak, ash, elm", "oak, ash, elm, yew", "~"),
    ("red oak, ash", "redoak,ash", "+"),
    ("St. Ives, York", "St. Ives, York", "+"),
    ("St. Ives, York", "St Ives, York", "~"),  # punctuation of an element stays
    ("1, 2, 3", "1,2,3", "+"),
    ("1, 2, 3", "1.0, 2.0, 3.0", "+"),
    ("1, 2, 3", "3, 2, 1", "-"),
    ("5; oak", "$5; oak", "+"),
    ("5; oak", "five; oak", "-"),
    ("1,000", "1,000", "+"),
    ("1,000", "1000", "+"),  # a thousands comma, read as one
    ("1,000", "$1,000.00", "+"),
    ("1,000", "1; 0", "+"),  # and as a list of 1 and 0, which the comma also says
    ("1,000", "1001", "-"),
    ("12,345,678", "12345678", "+"),
    ("10, 20", "1020", "~"),
    ("oak, ash", None, "-"),
    ("oak, ash", 7, "-"),
    ("oak,", "oak", "~"),  # an empty last element is an element
    ("oak,", "oak, ", "+"),
]
TEXTS = [
    ("Lisbon", "Lisbon", "+"),
    ("Lisbon", "lisbon.", "+"),
    ("Lisbon", " LISBON ", "+"),
    ("sea gull", "seagull", "+"),
    ("sea-gull", "Sea Gull!", "+"),
    ("Lisbon", "Porto", "-"),
    ("Lisbon", "Lisbon (city)", "~"),
    ("Lisbon", "The answer is Lisbon", "-"),  # more than twice as long
    ("Lisbon", "Lisb", "-"),  # characters are missing
    ("Lisbon", "", "-"),
    ("Lisbon", None, "-"),
    ("the tide", "tide", "-"),  # an article is a word here
    ("rook", "broken rook", "-"),
    ("rook", "rooks", "~"),
    ("aab", "ab", "-"),  # one letter cannot stand for two
    ("aab", "aabb", "~"),
    ("inf", "inf", "+"),
    ("inf", "hello", "-"),  # not a number, so that nothing unreadable equals it
    ("NaN", "nan", "+"),
    ("l'eau", "l’eau", "+"),  # either apostrophe
    ("café", "cafe\u0301", "+"),  # the same letter, written in two signs
    ("café", "cafe", "-"),
    ("Straße", "STRASSE", "+"),
    ("?", "?", "+"),
    ("?", "!", "-"),  # where nothing but punctuation is left, it counts
    ("?", "", "-"),
    ("3 apples", "3apples", "+"),
    ("B7", "b-7", "+"),
]
CASES = [
    *(("number", *case) for case in NUMBERS),
    *(("list", *case) for case in LISTS),
    *(("text", *case) for case in TEXTS),
]


@every(("rule", "gold", "answer", "truth"), CASES)
def test_an_answer_is_judged_as_by_hand(rule, gold, answer, truth):
    verdict = gaia_verdict(answer, gold)
    assert (
        verdict.rule,
        {(True, False): "+", (False, False): "-", (False, True): "~"}[verdict.correct, verdict.close],
    ) == (rule, truth)


def test_there_are_sixty_cases_or_more_each_once():
    assert len(CASES) >= 60 and len({(gold, repr(answer)) for _, gold, answer, _ in CASES}) == len(CASES)


def test_a_close_call_never_counts_as_right_and_a_number_has_none():
    verdicts = [gaia_verdict(answer, gold) for _, gold, answer, _ in CASES]
    assert not any(verdict.correct and verdict.close for verdict in verdicts)
    assert not any(verdict.close for verdict in verdicts if verdict.rule == "number")
