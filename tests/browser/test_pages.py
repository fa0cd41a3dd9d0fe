"""Pages from disk, in a browser that reaches nothing: a run to step through, a graph, every notebook, a
report.
"""

from __future__ import annotations

import random

import networkx as nx
import pytest

from browser.lab import REPOSITORY, expect
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.io.files import bundled
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.viz import html
from kgot_lab.viz.course import write_course
from kgot_lab.viz.external_requests import references
from kgot_lab.viz.page import export

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def storm():
    """A recorded run and its recorded fork."""
    run = load_run(bundled("traces/winter_storm.jsonl"))
    return run, recorded_fork(run, load_run(bundled("traces/winter_storm_fork_volcano.jsonl")))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every notebook as a page."""
    return {path.stem: path for path in write_course(NOTEBOOKS, tmp_path_factory.mktemp("pages"))[1:]}


def test_a_run_from_disk_can_be_stepped_moved_and_compared_with_its_fork(page, watch, storm, tmp_path):
    run, fork = storm
    made = html(run, forks=[fork]).save(tmp_path / "run.html")
    assert references(made.read_text(encoding="utf-8")) == ()
    open_from_disk(page, watch, made)
    headings = page.locator("h2").all_inner_texts()
    assert headings[:5] == ["Question", "Answer", "Graph", "Evidence", "Step through it"]
    expect(page.locator("[data-view=graph]")).to_contain_text("✓ evidence")
    stepper = page.locator("[data-view=stepper]")
    stepper.get_by_role("button", name="First").click()  # it opens on its answer
    stepper.get_by_role("button", name="Forward").click()
    expect(stepper).to_contain_text("Event 1 of 24")
    stepper.get_by_role("button", name="Last").click()
    canvas = stepper.locator(".kl-canvas").first
    nodes = "(canvas) => canvas._cyreg.cy.nodes().length"
    page.wait_for_function("(canvas) => canvas._cyreg?.cy.nodes().length > 0", arg=canvas.element_handle())
    assert canvas.evaluate(nodes) == len(graph_after(run.events))
    stepper.get_by_label("Compare with").select_option(index=1)
    expect(stepper).to_contain_text("First difference: event 3")
    page.screenshot(path=SCREENSHOTS / "run-from-disk.png", full_page=True)


def test_without_scripts_a_run_can_still_be_read(window, watch, storm, tmp_path):
    made = html(storm[0]).save(tmp_path / "run.html")
    context = window.browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(made.as_uri())
        expect(page.locator("body")).to_contain_text("La Nina contributed to the winter storm")
        expect(page.locator(".still svg")).to_be_visible()
    finally:
        context.close()


def towns():
    """Twelve towns of fifty people, each joined with the next by three edges."""
    chance = random.Random(1)
    for town in range(12):
        yield from (
            (f"P {town}-{n}", "knows", f"P {town}-{chance.randrange(max(0, n - 8), n)}") for n in range(1, 50)
        )
        yield from (
            (f"P {town}-{chance.randrange(50)}", "visits", f"P {(town + 1) % 12}-{chance.randrange(50)}")
            for _ in range(3)
        )


BEYOND = """(canvas) => {
  const cy = canvas._cyreg.cy, boxes = cy.elements().map((one) => one.renderedBoundingBox({ includeOverlays: false }));
  return boxes.filter((box) => box.x1 < 0 || box.y1 < 0 || box.x2 > cy.width() || box.y2 > cy.height()).length;
}"""


def test_loops_stay_on_the_canvas_an_undirected_graph_has_no_arrows_and_one_without_nodes_says_so(
    page, watch, tmp_path
):
    loops = nx.MultiGraph(
        [
            (one, other, {"relation": "is beside"})
            for one, other in ("ab", "bc", "cd", "da", "aa", "bb", "cc", "dd", "dd", "dd")
        ]
    )
    open_from_disk(page, watch, export(loops, tmp_path / "loops.html"))
    canvas = page.locator("[data-drawn] .kl-canvas")
    assert canvas.evaluate(BEYOND) == 0
    assert (
        canvas.evaluate(
            "(canvas) => canvas._cyreg.cy.edges().map((edge) => edge.style('target-arrow-shape'))"
        )
        == ["none"] * 10
    )
    page.screenshot(path=SCREENSHOTS / "loops.png")
    open_from_disk(page, watch, export(nx.DiGraph(loops), tmp_path / "directed.html"))
    assert set(
        canvas.evaluate(
            "(canvas) => canvas._cyreg.cy.edges().map((edge) => edge.style('target-arrow-shape'))"
        )
    ) == {"triangle"}
    assert canvas.evaluate(BEYOND) == 0
    expect(page.get_by_text("This graph has no nodes")).not_to_be_visible()
    open_from_disk(page, watch, export(nx.Graph(), tmp_path / "empty.html"))
    expect(page.locator("[data-drawn]").get_by_text("This graph has no nodes")).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "empty.png")


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS[::6]])
def test_the_page_of_a_notebook_shows_every_picture(page, watch, pages, name):
    open_from_disk(page, watch, pages[name])
    measured = "(all) => all.map((one) => one.tagName === 'IMG' ? one.complete && one.naturalWidth : one.getBoundingClientRect().width)"
    sizes = page.locator("img, svg:not(svg svg)").evaluate_all(measured)
    assert sizes and all(sizes)
    page.screenshot(path=SCREENSHOTS / f"page-{name}.png", full_page=True)
