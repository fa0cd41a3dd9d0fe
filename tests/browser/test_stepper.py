"""The stepper as a reader uses it: by mouse and by keyboard, on a page from disk without Python, and in a
notebook with it.
"""

from __future__ import annotations

import pytest

from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS, SIZE, open_from_disk
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.trace import load_run
from kgot_lab.viz.live import page_script, placeholder, style
from kgot_lab.viz.static.markup import Markup, element
from kgot_lab.viz.stepping.stepper import stepper

STORM = load_run(bundled_path("traces/winter_storm.jsonl"))
VOLCANO = recorded_fork(STORM, load_run(bundled_path("traces/winter_storm_fork_volcano.jsonl")))
SHOW = """
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import load_run
from kgot_lab.viz.stepping.stepper import stepper

view = stepper(load_run(bundled_path("traces/winter_storm.jsonl")))
view
"""


@pytest.fixture
def at_the_answer(page, watch, tmp_path):
    """The stepper on a page of its own, which may run this one script and fetch nothing, as it opens."""
    return opened(page, watch, tmp_path, stepper(STORM, forks=[VOLCANO]))


@pytest.fixture
def on_disk(at_the_answer):
    """The same, at its first event."""
    return from_the_start(at_the_answer)


@pytest.fixture
def in_notebook(page, lab):
    """The stepper in a notebook, without a model."""
    open_notebook(page, lab.scratch([SHOW, "view.at", "view.forks", "view.forks[-1].graph.ids"]))
    view = run_cell(page, 0).locator(".kl-stepper")
    expect(view).to_be_visible()
    return from_the_start(view)


def from_the_start(view):
    view.get_by_role("button", name="First event").first.click()
    expect(view.locator(".kl-step-graph")).to_have_attribute("data-nodes", "0")
    view.page.evaluate("document.activeElement.blur()")
    return view


def opened(page, watch, folder, view):
    script, digest = page_script()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digest}"
    rules = element("meta", http_equiv="Content-Security-Policy", content=policy)
    head = element("head", element("meta", charset="utf-8"), rules)
    body = element(
        "body", element("style", Markup(style())), placeholder({**view.live.data, "stands_for": ""}), script
    )
    path = folder / "stepper.html"
    path.write_text(f"<!DOCTYPE html>{element('html', head, body)}", encoding="utf-8")
    open_from_disk(page, watch, path)
    shown = page.locator(".kl-stepper")
    expect(shown.locator(".kl-step-graph")).to_have_attribute("data-nodes", str(view.picture.nodes))
    return shown


def at(view):
    """The event that the recorded run is at."""
    return int(view.locator(".kl-step-pane").first.get_attribute("data-at"))


def title(view):
    return view.locator(".kl-step-panel h4").first


def pressed(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def kept(view, name):
    """Keep a picture of the view for those who look at it later."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    view.screenshot(path=SCREENSHOTS / f"stepper-{name}.png")


# --- as it opens ---


def test_it_opens_on_the_answer_with_all_on_one_screen_and_the_graph_beside_the_event(page, at_the_answer):
    expect(title(at_the_answer)).to_contain_text("Event 24 of 24")
    for width in (1100, 720):
        page.set_viewport_size({"width": width, "height": 680})
        assert page.evaluate("document.documentElement.scrollHeight") <= 680
        panel, graph = (
            at_the_answer.locator(name).bounding_box() for name in (".kl-step-panel", ".kl-step-graph-box")
        )
        assert panel["x"] + panel["width"] <= graph["x"] and graph["y"] <= panel["y"]
    marked = "(canvas) => canvas._cyreg.cy.elements('.evidence').map((one) => Number(one.style('opacity')))"
    assert set(at_the_answer.locator(".kl-canvas").evaluate(marked)) == {1}
    others = "(canvas) => Math.max(...canvas._cyreg.cy.elements().not('.evidence, .answer').edges().map((one) => Number(one.style('opacity'))))"
    assert at_the_answer.locator(".kl-canvas").evaluate(others) < 0.5
    kept(at_the_answer, "opened")


def test_what_is_still_to_come_stands_in_grey_and_never_while_the_reader_guesses(on_disk):
    to_come = on_disk.locator(".kl-step-later circle")
    expect(to_come).to_have_count(10)
    expect(on_disk).to_contain_text("The graph is empty so far; grey is still to come")
    on_disk.get_by_label("Event", exact=True).fill("11")
    expect(to_come).to_have_count(0)
    on_disk.get_by_role("button", name="Predict").click()
    on_disk.get_by_role("button", name="First").click()
    expect(on_disk.locator(".kl-step-graph")).to_have_attribute("data-nodes", "0")
    expect(to_come).to_have_count(0)
    expect(on_disk.locator(".kl-step-fold span").first).to_have_text("")


# --- stepping, on a page without Python ---


def test_buttons_step_through_the_run_and_stay_inside_it(on_disk):
    clicks = (
        ("Forward", 1),
        ("Forward", 2),
        ("Back", 1),
        ("Last", 24),
        ("Forward", 24),
        ("First", 0),
        ("Back", 0),
    )
    for name, number in clicks:
        on_disk.get_by_role("button", name=name).first.click()
        assert at(on_disk) == number
    expect(title(on_disk)).to_contain_text("Event 0 of 24 · start · question")


def test_the_keyboard_steps_when_the_stepper_has_the_focus_and_only_then(page, on_disk):
    pressed(page, "ArrowRight", "End")
    assert at(on_disk) == 0
    on_disk.focus()
    pressed(page, "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    assert at(on_disk) == 2
    pressed(page, "End")
    assert at(on_disk) == 24
    pressed(page, "Home")
    assert at(on_disk) == 0


def test_the_slider_and_the_list_jump(page, on_disk):
    on_disk.get_by_label("Event", exact=True).fill("11")
    assert at(on_disk) == 11
    on_disk.get_by_role("button", name="14 vote 1: RETRIEVE").click()
    expect(title(on_disk)).to_contain_text("vote 1: RETRIEVE")
    pressed(page, "ArrowDown")
    assert at(on_disk) == 15
    expect(on_disk.locator(".kl-step-list [aria-current=step]")).to_be_focused()


def test_votes_fall_one_by_one_until_the_vote_is_decided(on_disk):
    tally = on_disk.locator(".kl-step-tally")
    for event, said in (
        (12, "0 INSERT, 0 RETRIEVE, 0 neither; 3 still possible"),
        (14, "0 INSERT, 1 RETRIEVE, 0 neither; 2 still possible"),
        (16, "0 INSERT, 2 RETRIEVE, 0 neither; decided: RETRIEVE, 1 not needed"),
    ):
        on_disk.get_by_label("Event", exact=True).fill(str(event))
        expect(tally).to_contain_text(said)
    on_disk.get_by_label("Event", exact=True).fill("18")
    expect(tally).to_be_hidden()


def test_a_write_shows_its_change_in_the_graph_and_no_node_moves_afterwards(on_disk):
    graph = on_disk.locator(".kl-step-graph")
    places = "(canvas) => canvas._cyreg.cy.nodes().map((node) => [node.id(), node.renderedPosition()])"
    on_disk.get_by_label("Event", exact=True).fill("11")
    expect(graph).to_have_attribute("data-nodes", "10")
    assert on_disk.locator(".kl-canvas").evaluate("(canvas) => canvas._cyreg.cy.nodes('.added').length") == 10
    kept(on_disk, "write")
    before = on_disk.locator(".kl-canvas").evaluate(places)
    on_disk.get_by_role("button", name="Last").click()
    assert on_disk.locator(".kl-canvas").evaluate("(canvas) => canvas._cyreg.cy.nodes('.added').length") == 0
    assert on_disk.locator(".kl-canvas").evaluate(places) == before
    on_disk.get_by_role("button", name="First").click()
    expect(graph).to_have_attribute("data-nodes", "0")


@pytest.mark.parametrize("width", [720, 1100])
def test_the_height_is_the_same_at_every_event_and_nothing_is_wider_than_the_view(page, on_disk, width):
    page.set_viewport_size({**SIZE, "width": width})
    heights = set()
    for event in range(25):
        on_disk.get_by_label("Event", exact=True).fill(str(event))
        heights.add(on_disk.bounding_box()["height"])
        assert on_disk.evaluate("(view) => view.scrollWidth <= view.clientWidth")
    assert len(heights) == 1


# --- predict, then reveal ---


def test_the_reader_guesses_at_each_decision_before_it_is_shown_and_the_score_is_kept(page, on_disk):
    on_disk.get_by_role("button", name="Predict").click()
    on_disk.focus()
    pressed(page, "End")
    expect(on_disk).to_contain_text("Will this fact be kept?")
    pressed(page, "k", "End")
    expect(on_disk).to_contain_text("How will the vote go?")
    assert at(on_disk) == 11
    expect(on_disk.locator(".kl-step-score")).to_have_text("Score: 1 of 1")
    expect(on_disk.get_by_role("button", name="12 asked: vote")).to_be_hidden()
    pressed(page, "i", "End")
    expect(on_disk).to_contain_text("How many rows will this read find?")
    kept(on_disk, "predict")
    pressed(page, "f")
    expect(on_disk).to_contain_text("Your guess: 1 to 5 rows. Right.")
    expect(on_disk.locator(".kl-step-score")).to_have_text("Score: 2 of 2")
    expect(on_disk.get_by_role("button", name="14 vote 1")).to_be_hidden()
    on_disk.get_by_role("button", name="Last").click()
    expect(on_disk).to_contain_text("What will the answer be?")
    expect(on_disk.locator(".kl-step-score")).to_have_text("Score: 2 of 3")
    on_disk.get_by_role("button", name="17 vote: RETRIEVE").click()
    expect(on_disk).to_contain_text("Your guess: INSERT, all agree. Wrong: RETRIEVE, all agree.")


# --- two runs ---


def test_a_recorded_fork_stands_beside_the_run_with_what_differs(page, on_disk):
    on_disk.get_by_label("Compare with").select_option("1")
    expect(on_disk).to_contain_text(
        "Changed by hand: the text of event 3 (search returned). 0 model calls avoided, 7 asked."
    )
    expect(on_disk).to_contain_text("First difference: event 3")
    ends = on_disk.locator(".kl-step-end")
    expect(ends.nth(0)).to_contain_text("La Nina contributed")
    expect(ends.nth(1)).to_contain_text("The ash of a volcano blocked the sun")
    for last in on_disk.get_by_role("button", name="Last").all():
        last.click()
    marked = "(canvas, mark) => canvas._cyreg.cy.nodes(mark).length"
    canvases = on_disk.locator(".kl-canvas")
    expect(on_disk.locator(".kl-step-graph").nth(1)).to_have_attribute("data-nodes", "5")
    assert (canvases.nth(0).evaluate(marked, ".removed"), canvases.nth(1).evaluate(marked, ".added")) == (
        8,
        3,
    )
    kept(on_disk, "side-by-side")


# --- in a notebook ---


def test_a_step_in_the_notebook_reaches_python_and_no_key_reaches_the_notebook(page, in_notebook):
    in_notebook.get_by_role(
        "button", name="Forward"
    ).click()  # the button has the focus now, as after every click
    pressed(page, "ArrowRight", "r", "y", "x", "ArrowRight")
    assert at(in_notebook) == 3
    expect(in_notebook).to_be_visible()  # R would have made raw text of the cell, and X cut it
    expect(page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")).to_have_count(4)
    expect(run_cell(page, 1)).to_contain_text("3")


def test_a_free_edit_forks_through_python_and_the_fork_appears(page, in_notebook):
    in_notebook.get_by_label("Event", exact=True).fill("11")
    in_notebook.get_by_role("button", name="Edit and fork").click()
    expect(in_notebook).to_contain_text(
        "No model was given, so the fork runs up to the first reply that was not recorded."
    )
    text = in_notebook.get_by_label("The statement of event 11")
    expect(text).to_be_focused()
    text.fill('add("a volcano", "blocked", "the sun")')
    in_notebook.get_by_role("button", name="Fork", exact=True).click()
    expect(in_notebook.locator(".kl-step-pane")).to_have_count(2)
    expect(in_notebook.locator(".kl-step-end").nth(1)).to_contain_text(
        "stopped: the recorded run holds no reply"
    )
    expect(in_notebook).to_contain_text("6 model calls avoided, 0 asked")
    expect(in_notebook.locator(".kl-step-graph").nth(1)).to_have_attribute("data-nodes", "2")
    in_notebook.scroll_into_view_if_needed()
    kept(in_notebook, "free-edit")
    expect(run_cell(page, 2)).to_contain_text("<fork from event 11")
    expect(run_cell(page, 3)).to_contain_text("a volcano")


def test_an_edit_that_does_not_run_is_refused_in_words_and_nothing_typed_is_lost(page, in_notebook):
    in_notebook.get_by_label("Event", exact=True).fill("11")
    in_notebook.get_by_role("button", name="Edit and fork").click()
    text = in_notebook.get_by_label("The statement of event 11")
    text.fill("add(")
    in_notebook.get_by_role("button", name="Fork", exact=True).click()
    expect(in_notebook.get_by_role("alert")).to_contain_text("the edited statement was refused")
    expect(text).to_have_value("add(")
    kept(in_notebook, "refused")
    in_notebook.get_by_role("button", name="Forward").click()
    in_notebook.get_by_role("button", name="Back").click()
    in_notebook.get_by_role("button", name="Edit and fork").click()
    expect(text).to_have_value("add(")


def test_a_fact_of_the_answer_lights_up_in_the_graph_and_its_sentence_in_its_passage(page, at_the_answer):
    facts = at_the_answer.locator(".kl-step-fact")
    expect(facts).to_have_count(len(STORM.events[-1].evidence))
    facts.first.focus()
    pressed(page, "Enter")
    expect(facts.first).to_have_attribute("aria-expanded", "true")
    expect(facts.first).to_be_focused()
    expect(at_the_answer.locator("mark")).to_have_text(STORM.events[-1].supports[0][0].sentence)
    lit = "(canvas) => canvas._cyreg.cy.edges().filter((edge) => edge.numericStyle('width') === 6).map((edge) => edge.data('type'))"
    assert at_the_answer.locator(".kl-canvas").evaluate(lit) == [
        STORM.events[-1].evidence[0].split("--[")[1].split("]-->")[0]
    ]
    kept(at_the_answer, "lit")
    at_the_answer.locator(".kl-step-ground").get_by_role("button", name="event 11").click()
    expect(title(at_the_answer)).to_contain_text("Event 11 of 24")


def test_a_second_view_of_the_same_stepper_has_the_fork_too(page, lab):
    open_notebook(page, lab.scratch([SHOW, "_ = view.fork(3, 'Nothing was found.')", "view"]))
    first = run_cell(page, 0).locator(".kl-stepper")
    expect(first).to_be_visible()
    run_cell(page, 1)
    expect(first.locator(".kl-step-pane")).to_have_count(2)
    second = run_cell(page, 2).locator(".kl-stepper")
    # nothing, the recorded one, this one
    expect(second.get_by_label("Compare with").locator("option")).to_have_count(3)


def test_an_edge_that_is_clicked_says_since_when_it_is_there_and_from_where(page, at_the_answer):
    edge = STORM.events[-1].evidence[0].split("--[")[1].split("]-->")[0]
    middle = "(canvas, type) => canvas._cyreg.cy.edges().filter((edge) => edge.data('type') === type)[0].renderedMidpoint()"

    def click():
        at_the_answer.locator(".kl-drawing").click(
            position=at_the_answer.locator(".kl-canvas").evaluate(middle, edge)
        )

    click()
    expect(at_the_answer.locator(".kl-step-lit mark")).to_have_text(STORM.events[-1].supports[0][0].sentence)
    # it is told beside the graph, which stays free
    expect(at_the_answer.locator(".kl-facts h4")).to_have_count(0)
    at_the_answer.get_by_label("Event", exact=True).fill("12")
    click()
    facts = at_the_answer.locator(".kl-facts")
    expect(facts).to_contain_text("In the graph since event 11")
    expect(facts.locator("mark")).to_have_text(STORM.events[-1].supports[0][0].sentence)


def test_each_of_several_questions_at_one_event_is_shown_before_it_is_answered(page, watch, tmp_path):
    view = opened(
        page, watch, tmp_path, stepper(load_run(bundled_path("traces/hotpotqa_two_hops.jsonl")), forks=[])
    )
    view.get_by_role("button", name="Predict").click()
    card, asked = view.locator(".kl-step-question-card"), set()
    view.focus()
    for _ in range(6):
        pressed(page, "End")
        expect(card).to_be_visible()
        text = card.inner_text()
        assert text not in asked
        asked.add(text)
        card.get_by_role("button").first.click()
        view.focus()


def test_either_of_two_runs_can_be_stepped_by_mouse_and_by_keyboard(page, on_disk):
    on_disk.get_by_label("Compare with").select_option("1")
    run, fork = on_disk.locator(".kl-step-pane").nth(0), on_disk.locator(".kl-step-pane").nth(1)
    run.get_by_role("button", name="Forward").click()
    pressed(page, "ArrowRight")
    expect(run).to_have_attribute("data-at", "5")
    expect(fork).to_have_attribute("data-at", "3")
    fork.get_by_role("button", name="Last").click()
    expect(fork).to_have_attribute("data-at", "20")
    on_disk.locator(".kl-step-pairs").get_by_role("button", name="3 search returned").nth(1).click()
    expect(fork).to_have_attribute("data-at", "3")
    expect(fork).to_contain_text("the ash of a volcano")
    on_disk.get_by_label("Compare with").select_option("0")
    expect(on_disk.locator(".kl-step-pane")).to_have_count(1)


def test_events_are_folded_by_step_with_what_each_took(on_disk):
    step = on_disk.get_by_role("button", name="Step 1")
    expect(step).to_contain_text("11 calls · 3,072 tokens · 72.6 s")
    expect(step).to_have_attribute("aria-expanded", "false")
    expect(on_disk.get_by_role("button", name="11 wrote")).to_be_hidden()
    step.click()
    on_disk.get_by_role("button", name="11 wrote").click()
    assert at(on_disk) == 11
    expect(on_disk.get_by_role("button", name="Start")).to_have_attribute("aria-expanded", "false")


def test_guesses_are_kept_while_one_stops_guessing_or_compares_for_a_while(page, on_disk):
    on_disk.get_by_role("button", name="Predict").click()
    on_disk.focus()
    pressed(page, "End", "k", "End", "i")
    on_disk.get_by_role("button", name="Predict").click()
    expect(on_disk.locator(".kl-step-score")).to_be_empty()
    for choice in ("1", "0"):
        on_disk.get_by_label("Compare with").select_option(choice)
    on_disk.get_by_role("button", name="Predict").click()
    expect(on_disk.locator(".kl-step-score")).to_have_text("Score: 1 of 1")
    expect(on_disk.locator(".kl-step-pane")).to_have_attribute("data-at", "12")
    on_disk.focus()
    pressed(page, "End")
    expect(on_disk).to_contain_text("How many rows will this read find?")


def test_keys_of_guesses_do_nothing_where_nothing_is_asked(page, on_disk):
    on_disk.focus()
    pressed(page, "r", "i", "n")
    assert at(on_disk) == 0
    on_disk.get_by_role("button", name="Predict").click()
    expect(on_disk.locator(".kl-step-score")).to_have_text("Score: 0 of 0")
    on_disk.get_by_role("button", name="Predict").click()
    on_disk.get_by_role("button", name="Step 1").click()
    expect(on_disk.get_by_role("button", name="24 answer")).to_be_visible()


def test_the_event_that_a_recorded_fork_changed_offers_it(on_disk):
    offer = on_disk.get_by_role("button", name="Recorded fork")
    expect(offer).to_be_hidden()
    on_disk.get_by_label("Event", exact=True).fill("3")
    offer.click()
    expect(on_disk.locator(".kl-step-pane")).to_have_count(2)
    expect(offer.first).to_be_hidden()
    for pane in on_disk.locator(".kl-step-pane").all():  # both runs stand where they part
        expect(pane).to_have_attribute("data-at", "3")


def test_without_python_nothing_offers_to_change_the_run(on_disk):
    on_disk.get_by_label("Event", exact=True).fill("3")
    expect(on_disk.get_by_role("button", name="Edit and fork")).to_be_hidden()
