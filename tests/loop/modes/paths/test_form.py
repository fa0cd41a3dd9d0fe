"""What a question asks for is told by its form alone."""

from support.every import every

from kgot_lab.loop.modes.paths.question_form import classify_question, mismatch_reason


@every(
    "question",
    [
        "Are Christopher Nolan and Sathish Kalathil both film directors?",
        "Were both Pietro Salini and Domenico Ravenna, born in the same place?",
        "Do both films Interview With A Hitman and The Last Coupon have the directors from the same country?",
        "Local H and For Against are both from the United States?",
        "Was the engineer who founded Varnholt Works from Tellmark?",
        "Do both films, Afrika and Man From The Deep River, have the directors who are from the same country?",
        "Is Mira Tolland the engineer who founded Brask?",
        "Was Mira Tolland born in the town in which Odile Brantsev died?",
        "Are the founders of Varnholt Works and Brask both older than Odile Brantsev?",
        "May people work at home on a Monday?",
        "Must guests pay?",
        "Did Mira Tolland die in Brask?",
        "Was the man from Die?",
        "Do we play when it rains?",
    ],
)
def test_questions_that_ask_for_yes_or_no(question: str) -> None:
    assert classify_question(question) == "yes or no"


@every(
    "question",
    [
        "Which band was formed first The Exies or Circus Diablo ?",
        "Was Sammy Hagar or Renaud Garcia-Fons born first?",
        "Who lived longer, Ludwig Elsbett or Pamela Ann Rymer?",
        "Who was born first out of Aivar Kuusmaa and Andy Summers?",
        "Which of Local H and For Against is older?",
        "Which singer is American, Mark King or Nick Hexum?",
    ],
)
def test_questions_that_ask_for_one_of_two(question: str) -> None:
    assert classify_question(question) == "choice"


@every(
    "question",
    [
        "What language were books being translated into during the era of Haymo of Faversham?",
        "If Gallu is a demon Lilu is what?",
        "How to Eat, released in which year, is a book of English cuisine by the celebrity cook Nigella Lawson",
        "In which year was the company formed that both brothers worked for?",
        "Who was the founder of Quillmoor and the Brask?",
        "Who was the first leader of Quillmoor and Brask?",
        "What river is between Quillmoor and Brask?",
        "Do you know who founded Varnholt Works?",
        "Did Mira Tolland win in which year?",
        "Was kostet ein Kasten Kohlenkeller?",
        "Was hat der Umbau gekostet?",
        "Was wird am Dienstag geliefert?",
    ],
)
def test_questions_that_ask_for_anything_else(question: str) -> None:
    assert classify_question(question) == "open"


def test_a_month_and_a_day_of_the_week_fit_where_they_are_asked_for() -> None:
    assert (
        mismatch_reason("In which month was it founded?", "March")
        == mismatch_reason("What day of the week was it?", "Monday")
        == ""
    )
    assert mismatch_reason("In which month was it founded?", "Leeds")
    assert mismatch_reason("In which year was it founded?", "March")
