"""The live views without a mouse, without colour, at double size and read aloud: measured in the browser,
against WCAG 2.2 AA.
"""

from __future__ import annotations

import re

import pytest

from browser.audit import FINE, asked, faults, focused, follows_the_browser, keyboard_goes_through, spoken
from browser.lab import REPOSITORY, expect, open_notebook, run_cell
from browser.window import open_from_disk
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Document
from kgot_lab.viz import show_graph, stepper
from kgot_lab.viz.course import write_course
from kgot_lab.viz.explorer.explorer import Retrievers, explore
from kgot_lab.viz.html import html
from kgot_lab.viz.live import page_script, placeholder, style
from kgot_lab.viz.static.markup import Markup, element

RUN = load_run(bundled_path("traces/winter_storm.jsonl"))
FORK = recorded_fork(RUN, load_run(bundled_path("traces/winter_storm_fork_volcano.jsonl")))
DOCUMENTS = [Document(name, f"{name} runs on a machine", name.title()) for name in ("ada", "bob", "charles")]
NARROW = {"width": 500, "height": 1000}  # a window of 1,000 pixels at 200 %
SETUP = """
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Document
from kgot_lab.viz import explore, show_graph, stepper
from kgot_lab.viz.explorer.explorer import Retrievers

storm = load_run(bundled_path("traces/winter_storm.jsonl"))
documents = [Document(name, f"{name} runs on a machine", name.title()) for name in ("ada", "bob", "charles")]
"""
VIEWS = (
    "show_graph(graph_after(storm.events))",
    "stepper(storm)",
    "explore(Retrievers(text=bm25(documents)), documents, queries=['ada', 'a machine'], systems={'bm25': bm25(documents)})",
)


def on_disk(page, watch, folder, shown):
    """A view on a page of its own, between two buttons."""
    script, digest = page_script()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {digest}"
    both = element("meta", name="color-scheme", content="light dark")
    rules = element("meta", http_equiv="Content-Security-Policy", content=policy)
    head = element("head", element("meta", charset="utf-8"), both, rules)
    inside = placeholder({**shown.live.data, "stands_for": ""})
    before, after = element("button", "before"), element("button", "after")
    body = element("body", element("style", Markup(style())), before, inside, after, script)
    (folder / "page.html").write_text(
        f"<!DOCTYPE html>{element('html', head, body, lang='en')}", encoding="utf-8"
    )
    open_from_disk(page, watch, folder / "page.html")
    view = page.locator(".kl").first
    expect(view).to_be_visible()
    frames(page)
    return view


def frames(page):
    """Wait until what is drawn some frames later is drawn."""
    page.evaluate(
        "() => new Promise((done) => { let left = 6; const next = () => (left-- ? requestAnimationFrame(next) : done()); next(); })"
    )


# --- pages from disk, in each state ---


def as_graph(page, watch, folder):
    return on_disk(page, watch, folder, show_graph(graph_after(RUN.events)))


def as_table(page, watch, folder):
    view = as_graph(page, watch, folder)
    view.get_by_role("button", name="Table").press("Enter")
    return view


def as_stepper(page, watch, folder, event=0):
    view = on_disk(page, watch, folder, stepper(RUN))
    view.get_by_label("Event", exact=True).fill(str(event))
    return view


def as_answer(page, watch, folder):
    view = as_stepper(page, watch, folder, len(RUN.events) - 1)
    view.locator(".kl-step-fact").first.press("Enter")
    expect(view.locator("mark")).to_be_visible()
    return view


def as_vote(page, watch, folder):
    view = as_stepper(page, watch, folder, 14)
    view.get_by_role("button", name="Find, table").press("Enter")
    return view


def as_question(page, watch, folder):
    view = as_stepper(page, watch, folder)
    view.get_by_role("button", name="Predict, then reveal").press("Enter")
    view.get_by_label("Event", exact=True).fill("20")
    expect(view).to_contain_text("Will this fact be kept?")
    return view


def as_pair(page, watch, folder):
    view = on_disk(page, watch, folder, stepper(RUN, forks=[FORK]))
    view.get_by_label("Compare with").select_option(index=1)
    return view


def as_explorer(page, watch, folder):
    return on_disk(page, watch, folder, explore(Retrievers(text=bm25(DOCUMENTS)), DOCUMENTS, queries=["ada"]))


STATES = [as_graph, as_table, as_stepper, as_answer, as_vote, as_question, as_pair, as_explorer]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_a_view_has_names_contrast_large_targets_and_a_way_for_the_keyboard(page, watch, tmp_path, state):
    view = state(page, watch, tmp_path)
    assert faults(view) == FINE
    assert keyboard_goes_through(view)
    page.emulate_media(color_scheme="dark")
    expect(view).to_have_class(re.compile("kl-dark"))
    assert faults(view) == FINE
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(NARROW)
    frames(page)
    assert asked(view, "tooWide") == []


def test_what_is_wrong_is_found(page, watch, tmp_path):
    view = as_graph(page, watch, tmp_path)
    view.evaluate(
        """(view) => {
            view.querySelector("button").setAttribute("aria-label", "Look");
            const text = document.createElement("div"), button = document.createElement("button");
            text.textContent = "pale";
            text.style.cssText = "color: #999; width: 3000px";
            button.style.cssText = "height: 10px; outline: none; border-color: #ddd";
            button.tabIndex = 3;
            view.append(text, button);
        }"""
    )
    found = faults(view)
    assert [len(found[kind]) for kind in ("no name", "too pale", "too faint", "too small")] == [2, 1, 1, 1]
    assert found["out of order"] == 1
    assert asked(view, "tooWide") == ["the page"]
    view.evaluate("(view) => { view.lastElementChild.tabIndex = 0; }")
    with pytest.raises(AssertionError, match="cannot be seen"):
        keyboard_goes_through(view)
    view.evaluate(
        "(view) => { view.lastElementChild.remove(); view.addEventListener('keydown', (event) => event.preventDefault()); }"
    )
    with pytest.raises(AssertionError, match="does not leave"):
        keyboard_goes_through(view)


# --- in a notebook ---


@pytest.fixture
def cells(page, lab):
    """The output areas of a graph view, a stepper and an explorer, live."""
    open_notebook(page, lab.scratch([SETUP, *VIEWS, "'the end'"]))
    run_cell(page, 0)
    areas = [run_cell(page, number) for number in (1, 2, 3)]
    for area in areas:
        expect(area.locator(".kl-replaced")).to_have_count(1)
    return areas


def test_in_a_notebook_the_tab_key_leaves_each_view_pictures_have_words_and_changes_are_spoken(cells):
    for area in cells:
        view = area.locator(".kl").first
        view.scroll_into_view_if_needed()
        assert faults(view) == FINE
        assert keyboard_goes_through(view)
        assert all(len(image.get_attribute("alt")) > 40 for image in area.locator("img").all())
    graph, walk, explorer = (area.locator(".kl").first for area in cells)
    graph.get_by_role("application").press("ArrowRight")
    expect(graph.get_by_role("status")).to_have_text("The winter storm of late January 2026 picked")
    walk.press("ArrowLeft")
    expect(walk.locator(".kl-step-panel").get_by_role("status")).to_contain_text("Event 23 of 24")
    explorer.get_by_label("or one of 2").select_option(index=2)
    expect(explorer.locator(".kl-said")).to_contain_text("First: ")
    before = spoken(explorer)
    explorer.get_by_role("slider", name="k,").press("Home")
    expect(explorer.locator(".kl-said")).not_to_have_text(before)


def test_editing_and_comparing_need_no_mouse(page, cells):
    _, walk, explorer = (area.locator(".kl").first for area in cells)
    walk.get_by_label("Event", exact=True).fill("3")
    walk.get_by_role("button", name="Edit and fork").press("Enter")
    assert focused(walk).startswith("TEXTAREA The ")
    assert faults(walk) == FINE and keyboard_goes_through(walk)
    walk.get_by_role("button", name="Cancel").press("Enter")
    assert focused(walk) == "BUTTON Edit and fork"
    page.keyboard.press("Enter")
    page.keyboard.type("La Nina was strong. ")
    walk.get_by_role("button", name="Fork", exact=True).press("Enter")
    expect(walk).to_have_attribute("data-runs", "2")
    assert focused(walk).startswith("DIV Stepper: ")
    for name in ("Keep as A", "Stop comparing"):
        explorer.get_by_role("button", name=name).press("Enter")
        expect(explorer).to_have_attribute("data-waiting", "false")
    assert focused(explorer) == "BUTTON Keep as A"


def test_a_graph_in_a_window_that_becomes_narrow_is_still_all_there(page, watch, tmp_path):
    view = as_graph(page, watch, tmp_path)
    page.set_viewport_size(NARROW)
    frames(page)
    places = view.locator(".kl-canvas").evaluate(
        "(canvas) => canvas._cyreg.cy.nodes().map((node) => node.renderedPosition().x)"
    )
    assert min(places) > 0 and max(places) < view.locator(".kl-canvas").bounding_box()["width"]


def test_the_events_of_two_runs_are_one_stop_each_and_arrow_keys_go_through_them(page, watch, tmp_path):
    view = as_pair(page, watch, tmp_path)
    assert view.locator(".kl-step-pairs [tabindex='0']").count() == 2
    view.locator(".kl-step-pairs [tabindex='0']").first.focus()
    for key in ("End", "ArrowUp", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    assert focused(view) == "BUTTON 23candidate: La Nina contribut"
    expect(view.locator(".kl-step-pane").first).to_have_attribute("data-at", "23")
    expect(view.locator(".kl-step-pane").last).to_have_attribute("data-at", "3")


def test_the_focus_stays_in_the_view_when_what_had_it_goes_away(page, watch, tmp_path):
    view = as_question(page, watch, tmp_path)
    view.get_by_role("button", name="Kept (key K)").press("Enter")
    assert "What happened" in focused(view)
    view = as_graph(page, watch, tmp_path)
    kind = view.locator(".kl-kind").first
    name = kind.inner_text().split("(")[0].strip()
    kind.press("Enter")
    assert name[:20] in focused(view) and "hidden" in spoken(view)


def test_the_pages_of_a_run_and_of_notebooks_are_dark_in_a_dark_browser_and_their_pictures_stay_on_white(
    page, watch, tmp_path
):
    notebooks = [
        REPOSITORY / "notebooks" / f"{name}.ipynb" for name in ("00_tour", "10_one_question_step_by_step")
    ]
    for path in (html(RUN, forks=[FORK]).save(tmp_path / "run.html"), *write_course(notebooks, tmp_path)):
        open_from_disk(page, watch, path)
        page.locator("details").evaluate_all("(all) => all.forEach((each) => { each.open = true; })")
        assert follows_the_browser(page), path.name
