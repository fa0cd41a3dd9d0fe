"""No tab, panel or theme of JupyterLab leaves a live view blank, moved or in the colours of another theme:
all views in one notebook.
"""

from __future__ import annotations

import pytest

from browser.lab import expect, open_notebook, output_of, run_cell, wait_for_kernel

SHOWN = """
from IPython.display import display

from kgot_lab.io.files import bundled_path
from kgot_lab.loop.trace import graph_after, load_run
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.types import Document
from kgot_lab.viz import explore, show_graph, stepper
from kgot_lab.viz.explorer.explorer import Retrievers

storm = load_run(bundled_path("traces/winter_storm.jsonl"))
documents = [Document(name, f"{name} runs on a machine", name.title()) for name in ("ada", "bob", "charles")]
display(show_graph(graph_after(storm.events)), stepper(storm), explore(Retrievers(text=bm25(documents)), documents, queries=["ada"]))
"""
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"
SEEN = """(views) => views.map((view) => {
    const canvas = view.querySelector(".kl-canvas"), cy = canvas?._cyreg?.cy;
    const inked = [...view.querySelectorAll(".kl-canvas canvas")].reduce((sum, one) => {
        if (!one.width || !one.height) return sum;
        const pixels = one.getContext("2d").getImageData(0, 0, one.width, one.height).data;
        for (let at = 3; at < pixels.length; at += 4) sum += pixels[at] > 0;
        return sum;
    }, 0);
    const inside = (node) => {
        const { x, y } = node.renderedPosition();
        return x > 0 && y > 0 && x < canvas.clientWidth && y < canvas.clientHeight;
    };
    return {
        dark: view.classList.contains("kl-dark"), words: view.innerText.length > 100, inked: cy ? inked > 2000 : null,
        inside: cy ? cy.nodes().length > 0 && cy.nodes().every(inside) : null,
        colour: cy ? cy.nodes()[0].style("color") === (view.classList.contains("kl-dark") ? "rgb(240,240,240)" : "rgb(17,17,17)") : null,
    };
})"""

WIPED = "() => document.querySelectorAll('.kl-canvas canvas').forEach((one) => one.getContext('2d').clearRect(0, 0, 1e5, 1e5))"
MEASURED_BETWEEN_FRAMES = """() => {
    const sheet = document.createElement("style");
    sheet.textContent = ".kl-canvas { display: none !important }";
    document.head.append(sheet);
    for (const canvas of document.querySelectorAll(".kl-canvas")) { canvas._cyreg?.cy.resize(); canvas._cyreg?.cy.width(); }
    sheet.remove();
}"""


@pytest.fixture
def notebook(page, lab):
    """A notebook with all views, not yet run, and another one to go to; the theme is light again afterwards."""
    names = lab.scratch([SHOWN]), lab.scratch(["1"])
    open_notebook(page, names[0])
    wait_for_kernel(page)
    yield names
    page.set_viewport_size({"width": 1400, "height": 1000})
    theme(page, LIGHT)


def front(page, name):
    page.evaluate(
        "async (path) => { await jupyterapp.commands.execute('docmanager:open', { path }); }",
        f"notebooks/{name}",
    )


def theme(page, name):
    page.evaluate(
        "async (theme) => { await jupyterapp.commands.execute('apputils:change-theme', { theme }); }", name
    )
    page.wait_for_function(
        "(light) => document.body.dataset.jpThemeLight === light", arg=str(name == LIGHT).lower()
    )


def collapsed(page, is_hidden):
    page.evaluate(
        "(hidden) => { jupyterapp.shell.currentWidget.content.widgets[0].outputHidden = hidden; }", is_hidden
    )


def places(view):
    """Where nodes, bends and words of a drawing are."""
    return view.locator(".kl-canvas").evaluate(
        """(canvas) => canvas._cyreg.cy.elements().map((one) => (one.isNode() ? one.position()
            : [one.numericStyle("text-margin-x"), one.numericStyle("text-margin-y"), one.controlPoints()?.[0]?.x ?? 0]))"""
    )


def all_there(area, *, dark):
    """Wait until every view is drawn in the colours of the theme, with nothing beyond its canvas."""
    drawing = {"dark": dark, "words": True, "inked": True, "inside": True, "colour": True}
    expected = [drawing, drawing, {**drawing, "inked": None, "inside": None, "colour": None}]
    views = area.locator(".kl")
    expect(views).to_have_count(3)
    for pause in (50,) * 100 + (
        500,
    ) * 900:  # to look is to read all pixels: less often, so that a busy machine comes to draw
        seen = views.evaluate_all(SEEN)
        if seen == expected:
            return
        area.page.wait_for_timeout(pause)
    assert seen == expected


def test_views_are_drawn_whatever_was_hidden_while_they_were_made_or_the_theme_changed(page, notebook):
    first, second = notebook
    page.evaluate("() => { window.ran = jupyterapp.commands.execute('notebook:run-all-cells'); }")
    front(page, second)  # all three views are made in a tab that is not in front
    page.evaluate("() => window.ran")
    front(page, first)
    area = output_of(page, 0)
    graph, walk = area.locator(".kl").nth(0), area.locator(".kl").nth(1)
    walk.get_by_label("Event", exact=True).fill("23")
    all_there(area, dark=False)
    was = places(graph), places(walk)

    theme(page, DARK)  # seen by the reader
    all_there(area, dark=True)
    # as while the style sheets of a theme give way to those of another
    page.evaluate(MEASURED_BETWEEN_FRAMES)
    all_there(area, dark=True)
    front(page, second)
    theme(page, LIGHT)  # in a tab that is put away
    front(page, first)
    all_there(area, dark=False)
    collapsed(page, True)
    theme(page, DARK)  # in outputs that are not on the page
    collapsed(page, False)
    all_there(area, dark=True)
    assert (places(graph), places(walk)) == was

    front(page, second)  # another size, and a canvas that lost what it showed
    page.set_viewport_size({"width": 1000, "height": 800})
    page.evaluate(WIPED)
    front(page, first)
    all_there(area, dark=True)
    collapsed(page, True)
    run_cell(page, 0)  # made while the output is collapsed
    collapsed(page, False)
    area.locator(".kl").nth(1).get_by_label("Event", exact=True).fill("23")
    all_there(area, dark=True)
