"""Talking with an expert in a notebook with a real kernel: asked, answered with chips, stepped through;
markup stays text.
"""

from __future__ import annotations

import pytest

from browser.audit import FINE, faults, keyboard_goes_through
from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS, screenshot

EVIL = '<img src=x onerror="document.title = 1">'
CELLS = (
    f"""
import kgot_lab as lab
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import Edge, Node

evil = {EVIL!r}
graph = lab.PropertyGraph.of(
    [Node("cache", ("technique",), {{"name": "Prompt caching", "description": "Keep the beginning of a prompt " + evil}}),
     Node("cost", ("goal",), {{"name": "Reduce costs"}}),
     Node("stale", ("limitation",), {{"name": "Stale answers " + evil, "description": "What changed is not seen."}})],
    [Edge("cache", "enables", "cost"), Edge("cache", "has_limitation", "stale")],
)
answers = ["Use it [Source: graph:Prompt caching], but see [Source: graph:stale] and [Source: graph:The moon]. " + evil, "Nothing more."]
talk = lab.expert(graph, model=Scripted(answers), persona={{"name": "Cook", "greeting": "Ask me."}})
lab.show(talk)
""",
    "[(turn.question, len(turn.cited), turn.false) for turn in talk.turns]",
    "lab.show(talk.turns[0])",
    "talk = lab.expert('cookbook', model=Scripted(['Keep the stable part first [Source: cookbook:Prompt caching].']))\n"
    "talk.ask('How do I reduce API costs with prompt caching?')\nlab.show(talk)",
)


@pytest.fixture
def view(page, lab):
    open_notebook(page, lab.scratch([cell.strip() for cell in CELLS]))
    found = run_cell(page, 0).locator(".kl-talk")
    expect(found).to_be_visible()
    return found


def asked(view, question):
    """The article of a question that is asked now, once it is answered."""
    count = int(view.get_attribute("data-turns"))
    view.get_by_label("Your question").fill(question)
    view.get_by_label("Your question").press("Enter")
    expect(view).to_have_attribute("data-turns", str(count + 1))
    return view.locator("article").nth(count)


def test_an_expert_is_asked_its_answer_stepped_through_and_a_citation_opened(page, view):
    turn = asked(view, "How can I reduce costs by prompt caching?")
    expect(turn.locator("s")).to_have_text("graph:The moon")
    expect(turn).to_contain_text(EVIL)
    turn.locator(".kl-talk-answer").get_by_role("button", name="Prompt caching").click()
    card = turn.get_by_role("region", name="The node Prompt caching")
    expect(card).to_contain_text("Stale answers")
    expect(card).to_contain_text("has_limitation")
    assert card.locator("svg text").count() > 3 and view.locator("img").count() == 0
    page.screenshot(path=SCREENSHOTS / "experts-chip.png")
    turn.get_by_role("button", name="How this answer came about").click()
    steps = turn.get_by_role("group", name="How the answer came about")
    expect(steps.get_by_role("status")).to_contain_text("1 of 7: Question and intent")
    steps.get_by_role("button", name="Next").click()
    expect(steps.get_by_role("status")).to_contain_text("2 of 7: Methods and retrievers")
    for number in range(3, 8):
        page.keyboard.press("ArrowRight")
        expect(steps).to_have_attribute("data-at", str(number - 1))
    expect(steps.get_by_role("status")).to_contain_text("7 of 7: Answer")
    steps.get_by_role("button", name="Stale answers").click()
    expect(turn.get_by_role("region", name="The node Stale answers")).to_contain_text(
        "What changed is not seen."
    )
    page.keyboard.press("ArrowLeft")
    expect(steps.get_by_role("status")).to_contain_text("6 of 7: What the model was given")
    assert view.locator("img").count() == 0 and page.title() != "1"
    asked(view, "And what else?")
    told = asked_in_python(page)
    assert "reduce costs by prompt caching?', 2, ('graph:The moon',))" in told
    assert "('And what else?', 0, ())" in told
    view.get_by_label("Your question").fill("A third?")
    view.get_by_role("button", name="Ask", exact=True).click()
    expect(view.locator("article").nth(2)).to_contain_text("no reply left")
    assert faults(view) == FINE


def asked_in_python(page):
    return run_cell(page, 1).inner_text()


def test_everybody_can_use_it(page, view):
    turn = asked(view, "How can I reduce costs by prompt caching?")
    turn.get_by_role("button", name="Stale answers").press("Enter")
    turn.get_by_role("button", name="How this answer came about").press("Enter")
    assert faults(view) == FINE
    assert keyboard_goes_through(view)
    alone = run_cell(page, 2).locator(".kl-talk")
    expect(alone.get_by_role("group", name="How the answer came about")).to_be_visible()
    curated = run_cell(page, 3).locator(".kl-talk")
    expect(curated).to_have_attribute("data-turns", "1")
    curated.get_by_role("button", name="How this answer came about").click()
    curated.get_by_role("button", name="Next").click()
    curated.get_by_role("button", name="Next").click()
    curated.get_by_role("button", name="Prompt caching").first.click()
    screenshot(page, "experts")
