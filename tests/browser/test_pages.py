"""Pages from disk, in a browser that reaches nothing: a run to step through, a graph, every notebook, a
report.
"""

from __future__ import annotations

import random

import networkx as nx
import pytest

from browser.lab import REPOSITORY, expect
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.evaluation.reports import derive_reports
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.replay.forks import recorded_fork
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.viz import html
from kgot_lab.viz.course import write_course
from kgot_lab.viz.external_requests import find_external_requests
from kgot_lab.viz.page import export_graph

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def storm():
    """A recorded run and its recorded fork."""
    run = load_run(bundled_path("traces/winter_storm.jsonl"))
    return run, recorded_fork(run, load_run(bundled_path("traces/winter_storm_fork_volcano.jsonl")))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Every notebook as a page."""
    return {path.stem: path for path in write_course(NOTEBOOKS, tmp_path_factory.mktemp("pages"))[1:]}


def test_a_run_from_disk_can_be_stepped_moved_and_compared_with_its_fork(page, watch, storm, tmp_path):
    run, fork = storm
    made = html(run, forks=[fork]).save(tmp_path / "run.html")
    assert find_external_requests(made.read_text(encoding="utf-8")) == ()
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
    pairs = ("ab", "bc", "cd", "da", "aa", "bb", "cc", "dd", "dd", "dd")
    loops = nx.MultiGraph([(one, other, {"relation": "is beside"}) for one, other in pairs])
    open_from_disk(page, watch, export_graph(loops, tmp_path / "loops.html"))
    canvas = page.locator("[data-drawn] .kl-canvas")
    assert canvas.evaluate(BEYOND) == 0
    heads = "(canvas) => canvas._cyreg.cy.edges().map((edge) => edge.style('target-arrow-shape'))"
    assert canvas.evaluate(heads) == ["none"] * 10
    page.screenshot(path=SCREENSHOTS / "loops.png")
    open_from_disk(page, watch, export_graph(nx.DiGraph(loops), tmp_path / "directed.html"))
    assert set(
        canvas.evaluate(
            "(canvas) => canvas._cyreg.cy.edges().map((edge) => edge.style('target-arrow-shape'))"
        )
    ) == {"triangle"}
    assert canvas.evaluate(BEYOND) == 0
    expect(page.get_by_text("This graph has no nodes")).not_to_be_visible()
    open_from_disk(page, watch, export_graph(nx.Graph(), tmp_path / "empty.html"))
    expect(page.locator("[data-drawn]").get_by_text("This graph has no nodes")).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "empty.png")


@pytest.mark.parametrize("name", [path.stem for path in NOTEBOOKS[::6]])
def test_the_page_of_a_notebook_shows_every_picture(page, watch, pages, name):
    open_from_disk(page, watch, pages[name])
    measured = "(all) => all.map((one) => one.tagName === 'IMG' ? one.complete && one.naturalWidth : one.getBoundingClientRect().width)"
    sizes = page.locator("img, svg:not(svg svg)").evaluate_all(measured)
    stored = next(path for path in NOTEBOOKS if path.stem == name).read_text(encoding="utf-8")
    assert bool(sizes) == ("svg+xml" in stored or "image/png" in stored) and all(sizes)
    page.screenshot(path=SCREENSHOTS / f"page-{name}.png", full_page=True)


CAPTIONS = "(canvas) => canvas._cyreg.cy.nodes('.community').map((node) => node.data('caption')).join(' ').replaceAll('\\n', ' ')"


def test_a_group_on_a_page_opens_and_closes_by_mouse_and_by_keyboard_and_a_search_opens_it(
    page, watch, tmp_path
):
    open_from_disk(page, watch, export_graph(towns(), tmp_path / "towns.html", limit=150))
    view = page.locator("[data-drawn] .kl")
    canvas, said = view.locator(".kl-canvas"), view.get_by_role("status")
    ids = "(canvas) => canvas._cyreg.cy.nodes().map((node) => node.id()).sort()"
    groups = canvas.evaluate(ids)
    expect(page.locator(".live-note")).to_contain_text("On this page groups open")
    place = canvas.evaluate("(canvas) => canvas._cyreg.cy.nodes('.community')[0].renderedPosition()")
    canvas.click(position=place)
    view.get_by_role("button", name="Open this group").click()
    expect(said).to_have_text("Opened, and laid out again.")
    members = canvas.evaluate(ids)
    assert sum(id.startswith("P ") for id in members) > 20 and "everything else" in canvas.evaluate(CAPTIONS)
    page.screenshot(path=SCREENSHOTS / "group-from-disk.png")
    view.get_by_role("button", name="Close the group").click()
    expect(said).to_have_text("Closed: drawn as one node again.")
    assert canvas.evaluate(ids) == groups
    expect(view.get_by_role("button", name="Close the group")).not_to_be_visible()
    view.get_by_role("application").focus()
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    expect(said).to_have_text("Opened, and laid out again.")
    page.keyboard.press("ArrowLeft")  # the last one is everything else, which leads out
    page.keyboard.press("Enter")
    expect(said).to_have_text("Opened, and laid out again.")
    assert canvas.evaluate(ids) == groups
    view.get_by_label("Search").fill("p 7-31")
    view.get_by_label("Search").press("Enter")
    expect(said).to_have_text("Opened the group with the first that holds “p 7-31”: P 7-31")
    expect(view.get_by_role("region", name="What is picked").get_by_role("heading")).to_have_text("P 7-31")
    view.get_by_role("button", name="Close the group").click()
    assert canvas.evaluate(ids) == groups


def test_a_report_opens_from_disk_with_its_plots(page, watch, tmp_path):
    reports = [
        report
        for report in derive_reports(REPOSITORY / "benchmarks" / "results" / "recall", load_dataset)
        if report.dataset.name == "hotpotqa"
    ]
    made = html(reports).save(tmp_path / "report.html")
    assert find_external_requests(made.read_text(encoding="utf-8")) == ()
    open_from_disk(page, watch, made)
    assert page.locator("figure svg").count() == 3 * len(reports)
    page.screenshot(path=SCREENSHOTS / "report-from-disk.png")


def test_a_run_on_paper_is_all_there_without_what_is_live(page, watch, storm, tmp_path):
    open_from_disk(page, watch, html(storm[0]).save(tmp_path / "run.html"))
    page.emulate_media(media="print")
    for number in range(2):
        expect(page.locator(".kl").nth(number)).not_to_be_visible()
    expect(page.locator(".still svg")).to_be_visible()
    assert page.pdf()[:5] == b"%PDF-"


def test_an_exported_graph_opens_from_disk_and_draws(page, watch, storm, tmp_path):
    open_from_disk(page, watch, export_graph(graph_after(storm[0].events), tmp_path / "graph.html"))
    expect(page.locator("[data-drawn] canvas").first).to_be_visible()
    expect(page.locator(".still svg")).not_to_be_visible()
    page.screenshot(path=SCREENSHOTS / "export-from-disk.png")


def test_a_network_of_pyvis_draws_without_asking_for_anything(page, watch, tmp_path):
    network = PropertyGraph.from_networkx(nx.karate_club_graph()).to_pyvis(color="club", size="degree")
    network.save_graph(str(tmp_path / "club.html"))
    open_from_disk(page, watch, tmp_path / "club.html")
    page.wait_for_function("() => network.body.nodeIndices.length === 34")
    page.wait_for_function(
        "() => { const canvas = document.querySelector('canvas');"
        " return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean) }"
    )
    page.screenshot(path=SCREENSHOTS / "pyvis.png")
