"""The graph view as a reader uses it, in a notebook: it takes the place of its picture, and what is clicked
reaches Python.
"""

from __future__ import annotations

import json

import pytest

from browser.lab import expect, open_notebook, output_of, run_all, run_cell
from browser.window import SCREENSHOTS

SHOW = """
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Wrote
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.viz import show_graph

trace = load_run(bundled_path("traces/hotpotqa_demo.jsonl"))
last = [event for event in trace.events if isinstance(event, Wrote)][-1]
view = show_graph(graph_after(trace.events), highlight=last.diff)
view
"""
TYPED = """
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node
from kgot_lab.viz import show_graph

evil = "<img src=x onerror=alert(1)>"
people = [Node("ada", ("Person",), {"name": "Ada"}), Node("charles", ("Person",), {"name": "Charles", "said": evil})]
places = [Node("london", ("City",), {"name": "London"}), Node("turin", ("City",), {"name": "Turin"})]
links = [Edge("ada", "born in", "london", {"passage": "p 1"}), Edge("charles", "spoke in", "turin"), Edge("ada", "knew", "charles")]
view = show_graph(PropertyGraph.of([*people, *places], links))
view
"""


@pytest.fixture
def typed(page, lab):
    """A notebook with a small graph of two types, drawn."""
    open_notebook(page, lab.scratch([TYPED, "view.facts()", "view.picked"]))
    return drawn(page, run_cell(page, 0))


def drawn(page, area):
    """The live view of an output area, once it has taken its picture's place."""
    view = area.locator(".kl")
    expect(view).to_be_visible()
    page.wait_for_function("(view) => view.dataset.nodes", arg=view.element_handle())
    return view


def place_of(view, id):
    """Where a node is drawn, in pixels of the canvas."""
    find = f"(canvas) => canvas._cyreg.cy.getElementById({json.dumps(id)}).renderedPosition()"
    return view.locator(".kl-canvas").evaluate(find)


def shown(view):
    """The ids of the nodes that one sees."""
    visible = "(canvas) => canvas._cyreg.cy.nodes(':visible').map((node) => node.id())"
    return set(view.locator(".kl-canvas").evaluate(visible))


def test_the_view_takes_the_place_of_its_picture_and_draws_every_node(page, lab):
    open_notebook(page, lab.scratch([SHOW, "len(view.graph), len(view.graph.edges), view.live.is_live"]))
    area = run_cell(page, 0)
    view = drawn(page, area)
    expect(area.locator(".kl-replaced")).to_have_count(1)
    expect(area.locator("img")).not_to_be_visible()
    expect(run_cell(page, 1)).to_contain_text(
        f"({view.get_attribute('data-nodes')}, {view.get_attribute('data-edges')}, True)"
    )
    box = view.locator(".kl-canvas").bounding_box()
    inside = view.locator(".kl-canvas").evaluate(
        "(canvas) => canvas._cyreg.cy.nodes().map((node) => node.renderedPosition())"
    )
    assert all(0 < place["x"] < box["width"] and 0 < place["y"] < box["height"] for place in inside)
    view.scroll_into_view_if_needed()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    view.screenshot(path=SCREENSHOTS / "graph-view.png")


def test_a_click_on_a_node_reaches_python(page, typed):
    typed.locator(".kl-canvas").click(position=place_of(typed, "ada"))
    expect(typed.locator(".kl-facts")).to_contain_text("born in → London")
    facts = run_cell(page, 1)
    expect(facts).to_contain_text("Person")
    expect(facts).to_contain_text("passage = p 1")


def test_a_search_finds_a_relation_and_a_property_and_brings_them_into_view(page, typed):
    search, canvas = typed.get_by_label("Search"), typed.locator(".kl-canvas")
    said, facts = typed.locator(".kl-said"), typed.locator(".kl-facts")
    canvas.evaluate("(canvas) => canvas._cyreg.cy.viewport({ zoom: 3, pan: { x: -5000, y: 0 } })")
    typed.get_by_role("button", name="City (2)").click()
    search.fill("BORN")
    search.press("Enter")
    expect(said).to_have_text("1 of 1 that hold “BORN”: Ada — born in → London")
    expect(facts.get_by_role("heading")).to_have_text("Ada — born in → London")
    expect(facts).to_contain_text("passage: p 1")
    assert shown(typed) == {"ada", "charles", "london", "turin"}
    box = canvas.bounding_box()
    for end in ("ada", "london"):
        place = place_of(typed, end)
        assert 0 < place["x"] < box["width"] and 0 < place["y"] < box["height"]
    assert canvas.evaluate(
        "(canvas) => canvas._cyreg.cy.edges('.picked').map((edge) => edge.data('type'))"
    ) == ["born in"]
    search.fill("in")
    for told in ("1 of 3 that hold “in” (1 node, 2 relations): Turin", "2 of 3", "3 of 3", "1 of 3"):
        search.press("Enter")
        expect(said).to_contain_text(told)
    search.fill("onerror")
    search.press("Enter")
    expect(said).to_have_text("1 of 1 that hold “onerror”: Charles (said: <img src=x onerror=alert(1)>)")
    canvas.evaluate("(canvas) => { canvas._cyreg.cy.edges()[1].emit('tap'); }")
    expect(facts.get_by_role("heading")).to_have_text("Charles — spoke in → Turin")


def test_a_type_can_be_hidden_and_shown_again(typed):
    city = typed.get_by_role("button", name="City (2)")
    city.click()
    assert shown(typed) == {"ada", "charles"}
    expect(city).to_have_attribute("aria-pressed", "false")
    city.click()
    assert shown(typed) == {"ada", "charles", "london", "turin"}


def test_the_keyboard_goes_from_node_to_node(page, typed):
    typed.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    expect(typed.locator(".kl-facts h4")).to_have_text("Ada")
    page.keyboard.press("ArrowRight")
    expect(typed.locator(".kl-facts h4")).to_have_text("Charles")
    expect(run_cell(page, 2)).to_contain_text("charles")


def test_a_path_between_two_nodes_is_said_and_marked(typed):
    typed.locator(".kl-canvas").click(position=place_of(typed, "london"))
    typed.get_by_role("button", name="Path from here").click()
    typed.locator(".kl-canvas").click(position=place_of(typed, "turin"))
    expect(typed.locator(".kl-said")).to_have_text(
        "Path: London ← born in — Ada — knew → Charles — spoke in → Turin"
    )
    heads = "(canvas) => canvas._cyreg.cy.edges('.way').map((edge) => edge.style('target-arrow-shape'))"
    assert typed.locator(".kl-canvas").evaluate(heads) == ["triangle"] * 3


LARGE = """
import sys
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.retrieval.entity_linking import phrase_graph
from kgot_lab.viz import show_graph

data = load_dataset("musique").dev
view = show_graph(phrase_graph(data.documents, data.triples))
view
"""


def test_a_large_graph_is_drawn_as_groups_that_open_and_hidden_nodes_are_found(page, lab):
    open_notebook(page, lab.scratch([LARGE, "len(view.graph), len(view.view.nodes), view.picked"]))
    view = drawn(page, run_cell(page, 0))
    groups = int(view.get_attribute("data-nodes"))
    assert groups < 100
    expect(view.locator(".kl-note").last).to_contain_text("nodes are more than 150: drawn as")
    view.screenshot(path=SCREENSHOTS / "graph-groups.png")
    view.get_by_label("Search").fill("antarctica")
    view.get_by_label("Search").press("Enter")
    view.get_by_label("Search").fill("botswana")
    view.get_by_label("Search").press("Enter")
    expect(view.locator(".kl-said")).to_contain_text("1 of 2 that hold “botswana”")
    page.wait_for_function(
        "([view, groups]) => Number(view.dataset.nodes) > groups", arg=[view.element_handle(), groups]
    )
    picked = run_cell(page, 1)
    expect(picked).to_contain_text("18136")
    group = view.locator(".kl-canvas").evaluate(
        "(canvas) => canvas._cyreg.cy.nodes('.community').min((node) => Number(node.data('size'))).ele.id()"
    )
    view.get_by_role("button", name="Whole graph").click()
    view.locator(".kl-canvas").click(position=place_of(view, group))
    view.get_by_role("button", name="Open this group").click()
    expect(view.locator(".kl-note").last).to_contain_text("Inside “")
    view.screenshot(path=SCREENSHOTS / "graph-group-open.png")
    view.get_by_role("button", name="Close the group").click()
    expect(view.locator(".kl-note").last).to_contain_text("nodes are more than 150: drawn as")


ODD = """
from kgot_lab.graph import PropertyGraph
from kgot_lab.types import Edge, Node
from kgot_lab.viz import show_graph

nodes = [Node("edge 0"), Node("edge 1"), Node("loop", (), {"name": "\\u202eabc"})]
edges = [Edge("edge 0", "a", "edge 1"), Edge("edge 0", "a", "edge 1", {}, "2"), Edge("edge 1", "b", "edge 0"), Edge("loop", "c", "loop")]
show_graph(PropertyGraph.of(nodes, edges))
"""


def test_odd_names_loops_and_parallel_edges_are_all_drawn(page, lab):
    open_notebook(page, lab.scratch([ODD]))
    view = drawn(page, run_cell(page, 0))
    assert (view.get_attribute("data-nodes"), view.get_attribute("data-edges")) == ("3", "4")
    texts = view.locator(".kl-canvas").evaluate(
        "(canvas) => canvas._cyreg.cy.nodes().map((node) => node.data('caption'))"
    )
    assert "\ufffdabc" in texts


def test_a_search_picks_the_nodes_that_hold_the_words_one_after_the_other(page, typed):
    typed.get_by_label("Search").fill("n")
    typed.get_by_label("Search").press("Enter")
    expect(typed.locator(".kl-said")).to_contain_text("1 of ")
    typed.get_by_label("Search").fill("nobody")
    typed.get_by_role("button", name="Find").click()
    expect(typed.locator(".kl-said")).to_have_text(
        "Nothing holds “nobody”: no name, no relation, no property"
    )


def test_a_table_of_what_is_drawn_is_there_on_request_and_text_stays_text(typed):
    typed.get_by_role("button", name="Table").click()
    expect(typed.locator("table")).to_have_count(2)
    expect(typed.locator("table").first).to_contain_text("<img src=x onerror=alert(1)>")
    assert typed.locator(".kl-scroll img").count() == 0


def test_pointing_at_a_node_shows_its_properties(typed):
    typed.locator(".kl-canvas").hover(position=place_of(typed, "charles"))
    expect(typed.locator(".kl-hover")).to_contain_text("said: <img src=x")


def test_python_says_what_to_do_before_anything_is_picked(page, typed):
    with pytest.raises(AssertionError, match="no node is picked yet"):
        run_cell(page, 1)


def test_the_same_notebook_run_again_draws_again(page, lab):
    open_notebook(page, lab.scratch([TYPED]))
    for _ in range(2):
        run_all(page)
        view = drawn(page, output_of(page, 0))
        assert shown(view) == {"ada", "charles", "london", "turin"}
        expect(output_of(page, 0).locator(".kl")).to_have_count(1)
        expect(output_of(page, 0).locator("img")).not_to_be_visible()
