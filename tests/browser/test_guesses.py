"""Guess first, in a notebook: the picture gives way to choices, and what was measured is shown after a guess
and not before.
"""

from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS

CELL = """
from kgot_lab.evaluation.reports import Contest, ContestRound
import kgot_lab as lab
told = ContestRound("hotpotqa", ("rag",), 0.2, 7, "rag is first with .500.")
still = ContestRound("2wiki", (), None, 0, "open, since none has answered.")
lab.show(Contest({"alone": "from memory", "rag": "over passages"}, (told, still)))
"""


def test_what_was_measured_is_shown_once_a_guess_is_made(page, lab):
    open_notebook(page, lab.scratch([CELL.strip()]))
    area = run_cell(page, 0)
    expect(area.locator(".kl table")).to_be_visible()
    expect(area.locator("table:visible")).to_have_count(1)
    reveal = area.get_by_role("button", name="Show what was measured")
    expect(reveal).to_be_disabled()
    expect(area).not_to_contain_text("rag is first")
    area.get_by_label("rag is best on hotpotqa").check()
    area.get_by_label("by how much on hotpotqa").fill("0.5")
    area.get_by_label("by how much on hotpotqa").press("Tab")
    reveal.click()
    expect(area.locator("tbody tr:visible").first).to_contain_text(
        "Right, and 0.30 off. rag is first with .500."
    )
    expect(area.locator("tbody tr:visible").last).to_contain_text("open, since none has answered.")
    expect(area.get_by_role("status")).to_contain_text("1 of 1 guesses are right.")
    area.screenshot(path=SCREENSHOTS / "guesses.png")
    area.get_by_role("button", name="Guess again").click()
    expect(area).not_to_contain_text("rag is first")
    expect(reveal).to_be_disabled()


QUESTIONS = """
from kgot_lab.evaluation.reports import Contest, ContestRound
import kgot_lab as lab
first = ContestRound("Who built it?", ("graph",), None, 1, "RAG: Ada. Graph: Ida. Right: Ida.")
second = ContestRound("When?", ("both",), None, 1, "RAG: 1899. Graph: 1899. Right: 1899.")
guess = lab.show(Contest({"graph": "only the graph", "both": "both"}, (first, second), asks="Who gave the right answer?"))
guess
"""


def test_questions_are_shown_once_all_are_guessed_and_python_keeps_the_score(page, lab):
    open_notebook(page, lab.scratch([QUESTIONS.strip(), "guess.score()"]))
    area = run_cell(page, 0)
    expect(area.locator(".kl table")).to_be_visible()
    expect(area).to_contain_text("Who gave the right answer?")
    expect(area).not_to_contain_text("by how much")
    reveal = area.get_by_role("button", name="Show what was measured")
    area.get_by_label("graph: Who built it?").check()
    expect(reveal).to_be_disabled()
    area.get_by_label("graph: When?").check()
    reveal.click()
    expect(area.locator("tbody tr:visible").first).to_contain_text("Right. RAG: Ada.")
    expect(area.locator("tbody tr:visible").last).to_contain_text("Not so. RAG: 1899.")
    expect(area.get_by_role("status")).to_contain_text(
        "1 of 2 guesses are right. The same answer everywhere gets at most 1."
    )
    area.screenshot(path=SCREENSHOTS / "guesses_of_questions.png")
    expect(run_cell(page, 1)).to_contain_text(
        "1 of 2 guesses are right; the same answer everywhere gets at most 1"
    )
