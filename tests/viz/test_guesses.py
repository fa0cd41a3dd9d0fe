"""Guess first: the questions on paper where nothing is live, and what Python hears of a guess."""

import kgot_lab as lab
from kgot_lab.evaluation.reports import Contest, ContestRound
from kgot_lab.viz.guesses import GuessFirst, guess_first

ROUNDS = (
    ContestRound("hotpotqa", ("rag",), 0.2, 7, "rag is first."),
    ContestRound("<b>2wiki</b>", (), None, 0, "open."),
)
CONTEST = Contest({"alone": "from memory", "rag": "over passages"}, ROUNDS)


def test_a_contest_is_shown_as_a_guess_that_asks_and_tells_nothing_of_the_answer():
    shown = lab.show(CONTEST)
    assert isinstance(shown, GuessFirst) and "nothing guessed yet" in repr(shown)
    picture = shown.live.picture
    assert "rag: over passages" in picture.html and "hotpotqa" in repr(picture)
    assert picture.html.count("○") == 4 and "by how much?" in picture.html
    assert "is first" not in picture.html and "<b>2wiki" not in picture.html


def test_what_the_browser_says_is_heard_and_nonsense_is_passed_over():
    shown = guess_first(CONTEST)
    widget = shown.live.widget()
    assert widget.data["rounds"][0]["first"] == ["rag"] and widget.data["view"] == "guesses"
    good = {"on": "hotpotqa", "system": "alone", "by": 0.1}
    bad = [{"on": "third", "system": "rag", "by": 0}, {"on": "hotpotqa", "system": "who", "by": 0}]
    bad += [{"on": "<b>2wiki</b>"}, 7]
    widget._handle_custom_msg(
        {"guesses": [*bad, good, {"on": "<b>2wiki</b>", "system": "rag", "by": None}]}, []
    )
    assert shown.guessed == {"hotpotqa": ("alone", 0.1), "<b>2wiki</b>": ("rag", None)}
    assert "hotpotqa: alone" in repr(shown) and "rag is first." in repr(shown.table())


def test_a_contest_prints_what_came_out():
    assert repr(CONTEST).splitlines()[0] == "hotpotqa: rag is first."


def test_a_contest_with_a_question_of_its_own_asks_it_and_keeps_a_score():
    long = "Under what name did the founder and lead guitarist of a band release an album of which nobody remembers the name?"
    rounds = (
        ContestRound(long, ("graph",), None, 1, "RAG: x. Graph: y."),
        ContestRound("When?", ("both",), None, 1, "1899."),
    )
    shown = guess_first(
        Contest({"graph": "only the graph", "both": "both"}, rounds, asks="Who gave the right answer?")
    )
    picture = shown.live.picture
    assert "who gave the right answer?" in picture.html and "by how much" not in picture.html
    assert picture.html.count("○") == 4 and "RAG: x" not in picture.html and f">{long}<" in picture.html
    assert shown.score() == "nothing guessed yet"
    shown.live.widget()._handle_custom_msg(
        {"guesses": [{"on": each.on, "system": "both", "by": None} for each in rounds]}, []
    )
    assert shown.score() == "1 of 2 guesses are right; the same answer everywhere gets at most 1"
