"""A graph exported as one HTML file: it stands alone, shows what a model wrote as text, and moves only when the reader moves it."""

import base64
import functools
import hashlib
import json
import re
import sys

import numpy as np
import pytest

from kgot_lab.bundled import bundled
from kgot_lab.draw.graph.large_layout import large_layout
from kgot_lab.draw.outside import links, references
from kgot_lab.draw.tags import tags
from kgot_lab.errors import BadInput, LabError, NotInstalled
from kgot_lab.examine.pieces import find_chromium
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import read_snapshot
from kgot_lab.types import Edge, Node
from kgot_lab.viz import svg
from kgot_lab.viz.export import HEIGHT, MOST_EXPORTED, WIDTH, export, export_page

pytest.importorskip("pyvis")

EVIL = (
    "</title></text></pre></style>--><script>alert(\"1\")</script>]]><a href='javascript:x()' onclick=x>"
    "&amp;\x00\ud800\u202e<img src=//e.example onerror=alert(2)>"
)
ADA, BABBAGE = Node("Ada", ("Person",), {"name": "Ada Lovelace", "see": "href=https://e.example"}), Node("Babbage", ("Person",))
SMALL = PropertyGraph.of(
    [ADA, BABBAGE, Node("London", ("City",)), Node("bare")],
    [Edge("Ada", "born in", "London"), Edge("Ada", "met", "Babbage", {"year": 1833}), Edge("Babbage", "admired", "Ada")],
)
EVIL_GRAPH = PropertyGraph.of([Node(EVIL, (EVIL,), {EVIL: EVIL}), ADA], [Edge(EVIL, EVIL, "Ada", {EVIL: [EVIL]}, EVIL)])


def star(leaves: int) -> PropertyGraph:
    return PropertyGraph.of((), (Edge("hub", "has", f"leaf {number}") for number in range(leaves)), dangling="add")


@functools.cache
def page_of(graph: PropertyGraph, title: str = "") -> str:
    return export_page(graph, title=title)


def content_of(page: str, name: str) -> list[str]:
    return [tag.content for tag in tags(page, svg_is_markup=False) if tag.name == name]


# --- the file ---------------------------------------------------------------------------------------------------------


def test_the_file_stands_alone(tmp_path):
    path = export(read_snapshot(bundled("kgot-snapshots/data_0.json")), tmp_path / "graph.html")
    text = path.read_text(encoding="utf-8")
    assert references(text, beside=True) == () == links(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>')
    assert "bootstrap" not in re.sub(r"<(script|style)>.*?</\1>", "", text, flags=re.DOTALL) and list(tmp_path.iterdir()) == [path]


def test_the_page_has_one_head_one_title_and_one_heading():
    page = page_of(SMALL, "People")
    names = [tag.name for tag in tags(page, svg_is_markup=False)]
    assert all(names.count(name) == 1 for name in ("html", "head", "body", "h1", "main")) and page.count("</head>") == 1
    assert content_of(page, "title")[0] == "People" and "<h1>People</h1>" in page


def test_only_the_scripts_of_the_page_may_run():
    page = page_of(SMALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#x27;", "'")
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in content_of(page, "script")]
    assert f"script-src {' '.join(hashes)}" in policy and "default-src 'none'" in policy and "script-src 'unsafe" not in policy


def test_the_still_picture_the_legend_and_the_tables_say_the_same():
    page = page_of(SMALL)
    assert "A graph with 4 nodes and 3 edges" in page and svg(SMALL).svg.split("</desc>")[1] in page
    legend = re.search('<ul class="legend">(.*?)</ul>', page)[1]
    assert re.findall("</svg>(.*?)</li>", legend) == ["Person", "City", "<i>no label</i>"]
    assert "The same as tables" in page and "Nodes: 4 rows" in page and "Edges: 3 rows" in page


def test_an_empty_graph_can_be_exported():
    page = export_page(PropertyGraph.of())
    assert "empty graph" in page and references(page, beside=True) == ()


def test_texts_of_the_graph_stay_text():
    page = export_page(EVIL_GRAPH, title=EVIL)
    assert references(page, beside=True) == () and len(content_of(page, "script")) == len(content_of(page_of(SMALL), "script"))
    assert not [tag for tag in tags(page, svg_is_markup=True) if tag.name in ("img", "a")] and 'alert("1")' not in page


def test_a_title_that_holds_href_does_not_bring_the_unsafe_popup_of_the_library():
    drawn = [script for script in content_of(page_of(SMALL), "script") if "drawGraph" in script]
    assert len(drawn) == 1 and "popup" not in drawn[0] and "innerHTML" not in drawn[0]


def test_nodes_stand_where_the_caller_put_them():
    first = export_page(SMALL, positions={"Ada": (0.25, 0.5), "Babbage": (0.75, 0.5), "London": (0.5, 0.9), "bare": (0.1, 0.1)})
    again = export_page(SMALL, positions=svg(SMALL).positions)
    drawn = json.loads(re.search(r"nodes = new vis\.DataSet\((.*)\);", first)[1])
    assert [(node["x"], node["y"]) for node in drawn[:2]] == [(0.25 * WIDTH, 0.5 * HEIGHT), (0.75 * WIDTH, 0.5 * HEIGHT)]
    assert again == page_of(SMALL) != first


def test_more_than_two_thousand_nodes_are_cut_to_the_best_connected_and_the_page_says_so():
    page = export_page(star(MOST_EXPORTED + 57))
    assert "Shows 2,000 of 2,058 nodes, the best connected. Shows 1,999 of 2,057 edges." in page
    assert page.count('"facts": "leaf ') == 1999 and page.count('"facts": "hub\\n') == 1


def test_a_place_where_no_page_can_be_written_is_refused(tmp_path):
    for path in (tmp_path / "graph.txt", tmp_path / "none" / "graph.html"):
        with pytest.raises(BadInput, match=r"ends in \.html"):
            export(SMALL, path)
    with pytest.raises(BadInput, match="limit"):
        export(SMALL, tmp_path / "graph.html", limit=0)
    assert not list(tmp_path.iterdir())


def test_a_page_that_would_fetch_is_refused(monkeypatch, tmp_path):
    (tmp_path / "export.js").write_text("")
    (tmp_path / "export.css").write_text("body { background: url(//e.example/a.png) }")
    monkeypatch.setattr(sys.modules["kgot_lab.viz.export"], "FILES", tmp_path)
    with pytest.raises(BadInput, match=r"would fetch //e\.example/a\.png"):
        export_page(SMALL)


def test_without_pyvis_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyvis.network", None)
    with pytest.raises(NotInstalled, match=r"pyvis: pip install 'kgot_lab\[lab\]'"):
        export_page(SMALL)


# --- the layout of many nodes -----------------------------------------------------------------------------------------


def test_a_large_layout_fills_the_square_and_keeps_neighbours_near():
    count = 400
    pairs = np.stack([np.arange(1, count), np.arange(1, count) // 20 * 20], axis=1)  # twenty stars
    points = large_layout(np.full((count, 2), np.nan), pairs)
    assert points.min() == 0 and points.max() == 1 and not np.isnan(points).any()
    linked = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    assert np.median(linked) < 0.3 * np.median(np.linalg.norm(points[:200] - points[200:], axis=1))


def test_a_large_layout_is_the_same_each_time_and_leaves_given_points_alone():
    start = np.full((300, 2), np.nan)
    start[7] = 0.2, 0.9
    pairs = np.stack([np.arange(1, 300), np.zeros(299, dtype=int)], axis=1)
    points = large_layout(start, pairs)
    assert points[7].tolist() == [0.2, 0.9] and (points == large_layout(start, pairs)).all()


# --- in a browser -----------------------------------------------------------------------------------------------------


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
        page.locator("html.live").wait_for()  # not wait_for_function, whose polling the page's policy forbids
        return page

    yield opening
    assert [each for each in seen if not each.startswith(("file:", "data:"))] == []
    page.close()


def place_of(page, number):
    """Where a node is on the screen."""
    x, y = page.evaluate(
        f"(() => {{ const at = network.canvasToDOM(network.getPositions([{number}])[{number}]); return [at.x, at.y]; }})()"
    )
    box = page.locator("#mynetwork").bounding_box()
    return box["x"] + x + 1, box["y"] + y + 1


def test_every_node_and_edge_is_drawn_and_the_still_picture_gives_way(opened, tmp_path):
    page = opened(export(SMALL, tmp_path / "graph.html"))
    assert page.evaluate("[nodes.length, edges.length]") == [4, 3]
    assert not page.locator(".still").is_visible() and page.locator("canvas").is_visible()


def test_pointing_at_a_node_tells_its_facts_as_text(opened, tmp_path):
    page = opened(export(EVIL_GRAPH, tmp_path / "graph.html"))
    x, y = place_of(page, 0)
    page.mouse.move(x - 50, y - 50)
    page.mouse.move(x, y, steps=4)
    tip = page.locator("div.vis-tooltip")
    tip.wait_for(state="visible")
    assert "<script>alert" in tip.inner_text() and tip.locator("*:not(br)").count() == 0


def test_a_dragged_node_moves_alone_and_stays(opened, tmp_path):
    page = opened(export(SMALL, tmp_path / "graph.html"))
    before = page.evaluate("network.getPositions()")
    x, y = place_of(page, 0)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 40, y + 30, steps=4)
    page.mouse.up()
    after = page.evaluate("network.getPositions()")
    page.wait_for_timeout(300)
    assert [number for number in before if before[number] != after[number]] == ["0"] and page.evaluate("network.getPositions()") == after
    assert "Ada Lovelace" in page.locator("#facts").inner_text()


def test_a_node_can_be_found_by_keyboard(opened, tmp_path):
    page = opened(export(SMALL, tmp_path / "graph.html"))
    page.get_by_label("Find a node").fill("lon")
    page.keyboard.press("Enter")
    assert (
        page.locator("#facts").inner_text().startswith("1 of 1 found\nLondon") and page.evaluate("network.getSelectedNodes().length") == 1
    )
    page.get_by_label("Find a node").fill("labels")
    page.keyboard.press("Enter")
    assert page.locator("#facts").inner_text() == "No node holds “labels”."


def test_the_drawing_has_a_name_and_moves_by_keyboard(opened, tmp_path):
    page = opened(export(SMALL, tmp_path / "graph.html", title="People"))
    page.get_by_role("application", name="People").focus()
    for key, asked in (("ArrowLeft", "network.getViewPosition().x"), ("PageUp", "network.getScale()")):
        before = page.evaluate(asked)
        page.keyboard.down(key)
        page.wait_for_timeout(200)
        page.keyboard.up(key)
        assert page.evaluate(asked) != before


def test_without_scripts_the_still_picture_is_there(browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(export(SMALL, tmp_path / "graph.html").as_uri())
    assert page.locator(".still svg").is_visible() and not page.locator("#search").is_visible()
    context.close()
