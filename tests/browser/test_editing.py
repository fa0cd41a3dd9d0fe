"""Editing a graph in a notebook with a real kernel: a node is changed, the rules answer, and it is taken
back.
"""

from __future__ import annotations

import pytest

from browser.audit import FINE, faults
from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS

CELLS = (
    """
import kgot_lab as lab
from kgot_lab.kgos.editing import Editor
from kgot_lab.kgos.schemas.vocabularies import cookbook

editor = Editor(cookbook(), by="Grace")
lab.show(editor, node="goal:reduce_api_costs")
""",
    "[each.said for each in editor.history]",
)


@pytest.fixture
def view(page, lab):
    open_notebook(page, lab.scratch([cell.strip() for cell in CELLS]))
    found = run_cell(page, 0).locator(".kl-editing")
    expect(found).to_be_visible()
    return found


def test_a_node_is_changed_refused_and_taken_back(page, view):
    expect(view.get_by_role("heading", name="goal:reduce_api_costs")).to_be_visible()
    name = view.locator("textarea[data-name=name]")
    name.fill("")
    view.get_by_role("button", name="Save").click()
    expect(view.get_by_role("alert")).to_contain_text("give it one")
    name.fill("Pay less")
    view.get_by_role("button", name="Save").click()
    expect(view).to_have_attribute("data-changes", "1")
    expect(view).to_contain_text("by hand, Grace")
    view.get_by_label("Other node").fill("technique:prompt_caching")
    view.get_by_label("Of type").select_option("relates_to")
    view.get_by_role("button", name="Join").click()
    expect(view).to_have_attribute("data-changes", "2")
    view.get_by_label("New node, its id").fill("goal:<img src=x>")
    view.get_by_label("Its name").fill("A goal")
    view.get_by_role("button", name="Add").click()
    expect(view).to_contain_text("it has no edge")
    assert view.locator("img").count() == 0
    page.screenshot(path=SCREENSHOTS / "editing.png")
    view.get_by_role("button", name="Undo").click()
    expect(view).to_have_attribute("data-changes", "2")
    assert "added edge" in run_cell(page, 1).inner_text()


def test_everybody_can_use_it(view):
    assert faults(view) == FINE
