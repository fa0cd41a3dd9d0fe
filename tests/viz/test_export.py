"""A graph exported as one HTML file: it stands alone, shows what a model wrote as text, and moves only when
the reader moves it.
"""

import base64
import functools
import hashlib
import json
import re
import sys

import pytest
from support.external_links import find_external_links

from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.errors import BadInput, LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.files import read_graph
from kgot_lab.types import Edge, Node
from kgot_lab.viz import show_graph, svg
from kgot_lab.viz.external_requests import find_external_requests, start_tags
from kgot_lab.viz.graph.svg import NO_NODES
from kgot_lab.viz.html import html
from kgot_lab.viz.page import MAX_EXPORTED_NODES, export_graph, export_page
from kgot_lab.viz.static.markup import picture_key

pytestmark = pytest.mark.extended

EVIL = (
    "</title></text></pre></style>--><script>alert(\"1\")</script>]]><a href='javascript:x()' onclick=x>"
    "&amp;\x00\u202e<img src=//e.example onerror=alert(2)>"
)
ADA = Node("Ada", ("Person",), {"name": "Ada Lovelace", "see": "href=https://e.example"})
BABBAGE = Node("Babbage", ("Person",))
SMALL = PropertyGraph.of(
    [ADA, BABBAGE, Node("London", ("City",)), Node("bare")],
    [
        Edge("Ada", "born in", "London"),
        Edge("Ada", "met", "Babbage", {"year": 1833}),
        Edge("Babbage", "admired", "Ada"),
    ],
)
EVIL_GRAPH = PropertyGraph.of(
    [Node(EVIL, (EVIL,), {EVIL: EVIL}), ADA], [Edge(EVIL, EVIL, "Ada", {EVIL: [EVIL]}, EVIL)]
)


def star(leaves: int) -> PropertyGraph:
    return PropertyGraph.of(
        (), (Edge("hub", "has", f"leaf {number}") for number in range(leaves)), dangling="add"
    )


@functools.cache
def page_of(graph: PropertyGraph, title: str = "") -> str:
    return export_page(graph, title=title)


def data_in(page: str) -> dict:
    """What the live view of a page draws."""
    (text,) = (
        tag.content
        for tag in start_tags(page, svg_is_markup=False)
        if dict(tag.attributes).get("type") == "application/json"
    )
    return json.loads(text)


def content_of(page: str, name: str) -> list[str]:
    return [tag.content for tag in start_tags(page, svg_is_markup=False) if tag.name == name]


# --- the file ---


def test_the_file_stands_alone(tmp_path):
    path = export_graph(read_graph(bundled_path("kgot-snapshots/data_0.json")), tmp_path / "graph.html")
    text = path.read_text(encoding="utf-8")
    assert find_external_requests(text, beside=True) == () == find_external_links(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>')
    assert list(tmp_path.iterdir()) == [path]


def test_only_the_script_of_the_page_may_run():
    page = page_of(SMALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#x27;", "'")
    data, script = content_of(page, "script")
    assert (
        f"script-src 'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    )
    assert "default-src 'none'" in policy and "script-src 'unsafe" not in policy
    assert json.loads(data)["view"] == "graph"


def test_the_page_draws_what_the_view_of_a_notebook_draws():
    view = show_graph(SMALL, height=600)
    assert view.picture.svg in page_of(SMALL)
    assert data_in(page_of(SMALL)) == json.loads(
        json.dumps({**view.live.data, "stands_for": picture_key(view.picture.svg)})
    )


def test_the_tables_say_the_same():
    page = page_of(SMALL)
    assert "A graph with 4 nodes and 3 edges" in page and "The same as tables" in page
    assert "Nodes: 4 rows" in page and "Edges: 3 rows" in page


def test_an_empty_graph_can_be_exported():
    page = export_page(PropertyGraph.of())
    assert NO_NODES in page and find_external_requests(page, beside=True) == ()


def test_texts_of_the_graph_stay_text():
    page = export_page(EVIL_GRAPH, title=EVIL)
    assert find_external_requests(page, beside=True) == () and len(content_of(page, "script")) == 2
    assert not [tag for tag in start_tags(page, svg_is_markup=True) if tag.name in ("img", "a")]


def test_nodes_stand_where_the_caller_put_them():
    wanted = {"Ada": (0.25, 0.5), "Babbage": (0.75, 0.5), "London": (0.5, 0.9), "bare": (0.1, 0.1)}
    place = {
        node["id"]: (node["x"], node["y"]) for node in data_in(export_page(SMALL, positions=wanted))["nodes"]
    }
    assert place["Ada"][1] == place["Babbage"][1] < place["London"][1]
    assert place["bare"][0] < place["Ada"][0] < place["Babbage"][0]
    again = export_page(SMALL, positions=svg(SMALL).positions)
    assert again != page_of(SMALL) and export_page(SMALL) == page_of(SMALL)


def test_more_than_two_thousand_nodes_are_drawn_as_groups_that_open_and_the_page_says_how_many():
    drawn = data_in(export_page(star(MAX_EXPORTED_NODES + 57)))
    assert drawn["title"] == "A graph with 2,058 nodes and 2,057 edges" and drawn["total"] == 2058
    assert set(drawn["opens"].values()) < set(drawn["kept"]) and drawn["alone"].startswith("On this page ")


def test_a_place_where_no_page_can_be_written_is_refused(tmp_path):
    for path in (tmp_path / "graph.txt", tmp_path / "graph"):
        with pytest.raises(BadInput, match=r"ends in \.html"):
            export_graph(SMALL, path)
    with pytest.raises(BadInput, match="limit"):
        export_graph(SMALL, tmp_path / "graph.html", limit=0)
    assert not list(tmp_path.iterdir())


def test_a_page_that_would_fetch_is_refused(monkeypatch):
    monkeypatch.setattr(
        sys.modules["kgot_lab.viz.page"],
        "read_asset",
        lambda name: "body { background: url(//e.example/a.png) }",
    )
    with pytest.raises(BadInput, match=r"would fetch //e\.example/a\.png"):
        export_page(SMALL)


# --- in a browser ---


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api").sync_playwright
    try:
        program = find_chromium()
    except LabError as error:
        pytest.skip(str(error))
    with sync() as playwright:
        running = playwright.chromium.launch(executable_path=program)
        yield running
        running.close()


@pytest.fixture
def opened(browser):
    """Open a graph's page from disk; at the end nothing may have been asked for and nothing complained about."""
    page, seen = browser.new_page(), []
    page.on("request", lambda request: seen.append(request.url))
    page.on("console", lambda message: seen.append(message.text))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))

    def opening(path):
        page.goto(path.as_uri())
        page.locator(
            "[data-drawn]"
        ).wait_for()  # not wait_for_function, whose polling the page's policy forbids
        return page

    yield opening
    assert [each for each in seen if not each.startswith(("file:", "data:"))] == []
    page.close()


def drawing(page, asked):
    """What Cytoscape says of the drawing."""
    return page.locator(".kl-canvas").evaluate(
        f"(canvas) => {{ const cy = canvas._cyreg.cy; return {asked}; }}"
    )


def test_every_node_and_edge_is_drawn_and_the_still_picture_gives_way(opened, tmp_path):
    page = opened(export_graph(SMALL, tmp_path / "graph.html"))
    assert drawing(page, "[cy.nodes().length, cy.edges().length]") == [4, 3]
    assert not page.locator(".still svg").is_visible() and page.locator("canvas").first.is_visible()
    page.emulate_media(media="print")
    assert page.locator(".still svg").is_visible() and not page.locator(".kl").is_visible()


def test_without_scripts_the_still_picture_is_there(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(export_graph(SMALL, tmp_path / "graph.html").as_uri())
    assert page.locator(".still svg").is_visible() and not page.locator(".kl").is_visible()
    context.close()


def on_screen(page, id):
    """Where a node is on the screen."""
    x, y = drawing(page, f"(({{ x, y }}) => [x, y])(cy.getElementById({json.dumps(id)}).renderedPosition())")
    box = page.locator(".kl-canvas").bounding_box()
    return box["x"] + x, box["y"] + y


def test_pointing_at_a_node_tells_its_facts_as_text(opened, tmp_path):
    page = opened(export_graph(EVIL_GRAPH, tmp_path / "graph.html"))
    nodes = data_in((tmp_path / "graph.html").read_text(encoding="utf-8"))["nodes"]
    (id,) = (node["id"] for node in nodes if node["id"] != "Ada")
    x, y = on_screen(page, id)
    page.mouse.move(x - 50, y - 50)
    page.mouse.move(x, y, steps=4)
    tip = page.locator(".kl-hover")
    tip.wait_for(state="visible")
    assert "<script>alert" in tip.inner_text() and tip.locator("*").count() == 0


def test_a_page_makes_its_folders_whichever_way_it_is_written(tmp_path):
    run = load_run(bundled_path("traces/winter_storm.jsonl"))
    written = (
        export_graph(SMALL, tmp_path / "a" / "b" / "graph.html"),
        html(run).save(tmp_path / "c" / "d" / "run.html"),
    )
    assert all(path.is_file() for path in written)
