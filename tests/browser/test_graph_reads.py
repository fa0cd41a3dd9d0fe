"""The bundled graphs read, live and still; and no theme, no hidden tab and no late size leaves a blank
canvas.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from browser.lab import expect
from browser.reading import GRAPHS, WINDOW, phrases, put, read_live, read_opened, read_still
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.viz.graph.view import show_graph

PAINTED = """() => [...document.querySelectorAll(".kl-canvas canvas")].reduce((sum, canvas) => {
    if (!canvas.width || !canvas.height) return sum;
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return sum + pixels.reduce((count, value, at) => count + (at % 4 === 3 && value > 0 ? 1 : 0), 0);
}, 0)"""
WIPED = """() => document.querySelectorAll(".kl-canvas canvas").forEach((canvas) => canvas.getContext("2d").clearRect(0, 0, 1e5, 1e5))"""
HIDDEN = """(hidden) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (hidden ? "hidden" : "visible") });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


@pytest.fixture
def wide(page):
    """A page of 1280 x 800 pixels."""
    page.set_viewport_size(WINDOW)
    yield page
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_bundled_graph_reads_live_and_still(wide, name):
    view = GRAPHS[name]()
    live, still = read_live(wide, view), read_still(wide, view)
    for read in (live, still):
        room = 0.84 if read.nodes > 6 else 0.25  # a few nodes are near each other
        assert read.through == () and read.cut == () and read.overlap < 0.05 and read.used > room
        assert read.names >= 0.93 * read.nodes and read.wordless <= 0.06 * read.edges
    assert live.mute == 0


def painted(page) -> int:
    """How many pixels of the drawing are not see-through, two frames from now."""
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
    )
    return int(page.evaluate(PAINTED))


def colour(page) -> str:
    """The colour of the names."""
    return str(
        page.evaluate("() => document.querySelector('.kl-canvas')._cyreg.cy.nodes()[0].style('color')")
    )


def test_a_change_of_theme_changes_the_colours_and_leaves_the_drawing(wide):
    put(wide, GRAPHS["town: Ilse"]())
    was, seen = colour(wide), painted(wide)
    wide.emulate_media(color_scheme="dark")
    expect(wide.locator(".kl")).to_have_class("kl kl-dark")
    assert painted(wide) > seen / 2 and colour(wide) != was
    wide.emulate_media(color_scheme="light")
    expect(wide.locator(".kl")).to_have_class("kl")
    assert painted(wide) > seen / 2 and colour(wide) == was


def test_a_drawing_that_was_lost_in_a_hidden_tab_is_there_when_the_tab_is_seen_again(wide):
    put(wide, GRAPHS["town: Ilse"]())
    seen = painted(wide)
    wide.evaluate(HIDDEN, True)
    wide.emulate_media(color_scheme="dark")
    wide.evaluate(WIPED)
    wide.evaluate(HIDDEN, False)
    assert painted(wide) > seen / 2


@pytest.mark.parametrize("looked", [False, True], ids=["as it was", "after the reader looked elsewhere"])
def test_a_view_that_was_put_away_is_drawn_when_it_comes_back(wide, looked):
    put(wide, GRAPHS["town: Ilse"]())
    seen = painted(wide)
    if looked:
        wide.locator(".kl-drawing").press("+")
    wide.evaluate("() => { document.querySelector('.live').style.display = 'none'; }")
    wide.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    wide.emulate_media(color_scheme="dark")
    wide.evaluate("() => { document.querySelector('.live').style.display = ''; }")
    assert painted(wide) > seen / 4
    expect(wide.locator(".kl")).to_have_class("kl kl-dark")


@pytest.mark.parametrize("graph", [cookbook, phrases], ids=["cookbook", "phrases"])
def test_a_community_that_is_opened_reads_at_every_level(wide, graph):
    view = show_graph(graph())
    while not len(view.view.shown):
        outside = {view.view.whole.ids[number] for number in view.view.whole.outside}
        largest = max(
            (
                community
                for community in view.view.communities
                if community.id not in outside and not community.kind
            ),
            key=lambda community: community.hidden,
        )
        read = read_opened(wide, view, largest.id)
        assert read.overlapping == () and read.cut == () and read.used > 0.85
        assert read.names >= 0.8 * read.nodes and len(read.through) <= 0.05 * read.edges


def test_a_view_in_a_place_without_size_is_drawn_once_it_has_one(wide):
    put(wide, GRAPHS["town: Ilse"](), before="width: 0; height: 0; overflow: hidden", drawn=False)
    wide.evaluate("() => new Promise((done) => setTimeout(done, 100))")
    wide.evaluate("() => { document.querySelector('.live').parentElement.style = ''; }")
    wide.wait_for_function("() => document.querySelector('.kl')?.dataset.nodes")
    assert painted(wide) > 1000
    inside = wide.evaluate(
        "() => document.querySelector('.kl-canvas')._cyreg.cy.nodes().every((node) => node.renderedPosition().x < innerWidth - 20)"
    )
    assert inside


def test_the_live_view_has_its_nodes_where_the_still_picture_has_them(wide):
    view = GRAPHS["hotpotqa_demo"]()
    put(wide, view)
    ids = list(view.picture.scene.plan.nodes)
    drawn = wide.evaluate(
        "(ids) => ids.map((id) => document.querySelector('.kl-canvas')._cyreg.cy.getElementById(id).position())",
        ids,
    )
    for axis, along in ((0, "x"), (1, "y")):
        still = [view.picture.scene.plan.nodes[id].place[axis] for id in ids]
        live = [place[along] for place in drawn]
        order = sorted(range(len(ids)), key=lambda row: still[row])
        assert all(live[one] <= live[other] + 0.5 for one, other in pairwise(order))
