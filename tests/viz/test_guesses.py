"""Guess first: the questions on paper where nothing is live, and what Python hears of a guess."""

import kgot_lab as lab
from kgot_lab.evaluation.contest import Contest, ContestRound
from kgot_lab.viz.guesses import GuessFirst, guess_first

ROUNDS = (
    ContestRound("hotpotqa", ("rag",), 0.2, 7, "rag is first."),
    ContestRound("<b>2wiki</b>", (), None, 0, "open."),
)
CONTEST = Contest({"alone": "from memory", "rag": "over passages"}, ROUNDS)


def test_a_contest_is_shown_as_a_guess_whose_picture_asks_and_tells_nothing_of_the_answer():
    shown = lab.show(CONTEST)
    assert isinstance(shown, GuessFirst) and "nothing guessed yet" in repr(shown)
    picture = shown.live.picture
    assert "rag: over passages" in picture.alt and "hotpotqa" in picture.alt and picture.svg.count("<circle") == 4
    assert "is first" not in picture.svg and "<b>" not in picture.svg and "by how much?" in picture.svg


def test_what_the_browser_says_is_heard_and_nonsense_is_passed_over():
    shown = guess_first(CONTEST)
    widget = shown.live.widget()
    assert widget.data["rounds"][0]["first"] == ["rag"] and widget.data["view"] == "guesses"
    good = {"on": "hotpotqa", "system": "alone", "by": 0.1}
    bad = [{"on": "third", "system": "rag", "by": 0}, {"on": "hotpotqa", "system": "who", "by": 0}, {"on": "<b>2wiki</b>"}, 7]
    widget._handle_custom_msg({"guesses": [*bad, good, {"on": "<b>2wiki</b>", "system": "rag", "by": None}]}, [])
    assert shown.guessed == {"hotpotqa": ("alone", 0.1), "<b>2wiki</b>": ("rag", None)}
    assert "hotpotqa: alone" in repr(shown) and "rag is first." in repr(shown.table())


def test_a_contest_prints_what_came_out():
    assert repr(CONTEST).splitlines()[0] == "hotpotqa: rag is first."
