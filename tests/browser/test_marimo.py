"""The live views in marimo, the other notebook that runs anywidgets: drawn, heard by Python, and nothing is
fetched from outside.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec

import pytest
from support.loopback import free_port

from browser.conftest import lacking
from browser.lab import REPOSITORY, end, expect
from browser.window import SCREENSHOTS, Watch, watched

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import kgot_lab as lab
    from kgot_lab.io.files import bundled_path
    from kgot_lab.loop.trace import graph_after, load_run
    from kgot_lab.retrieval.lexical import bm25
    from kgot_lab.types import Document
    from kgot_lab.viz import explore

    storm = load_run(bundled_path("traces/winter_storm.jsonl"))
    documents = [Document(name, f"{name} runs on a machine", name.title()) for name in ("ada", "bob", "charles")]
    return bm25, documents, explore, graph_after, lab, storm


@app.cell
def _(graph_after, lab, storm):
    graph = lab.show(graph_after(storm.events))
    graph
    return (graph,)


@app.cell
def _(lab, storm):
    lab.show(storm)
    return


@app.cell
def _(bm25, documents, explore):
    explore(bm25(documents), documents, queries=["ada", "a machine"])
    return


if __name__ == "__main__":
    app.run()
"""


@contextlib.contextmanager
def marimo(room):
    """A marimo on 127.0.0.1 that shows the app, with a home of its own; it is ended, whatever happens. Gives
    its address.
    """
    (room / "app.py").write_text(APP, encoding="utf-8")
    address = f"http://127.0.0.1:{(port := free_port())}"
    options = ("--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port))
    command = ["-m", "marimo", "--quiet", "--yes", "run", "app.py", *options]
    homes = {name: str(room) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
    homes["PYTHONPATH"] = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    with (room / "log").open("wb") as out:
        program = [sys.executable, *command]
        server = subprocess.Popen(
            program, cwd=room, env={**os.environ, **homes}, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        until = time.monotonic() + 300
        while time.monotonic() < until and server.poll() is None:
            with contextlib.suppress(OSError):  # not listening yet
                urllib.request.urlopen(f"{address}/health", timeout=60).close()
                break
            time.sleep(0.1)
        else:
            raise RuntimeError(
                f"marimo did not start:\n{(room / 'log').read_text(encoding='utf-8', errors='replace')[-2000:]}"
            )
        yield address
    finally:
        end(server)


@pytest.fixture
def app(window, tmp_path):
    """The app in marimo, open in a browser that reaches nothing else; at the end nothing was asked outside,
    and nothing complained.
    """
    if not find_spec("marimo"):
        lacking("no marimo to show views in: pip install 'kgot_lab[test]'")
    with marimo(tmp_path) as address:
        watch = Watch(address)
        opened = watched(window.browser, watch, service_workers="allow")  # marimo has one of its own
        try:
            page = opened.new_page()
            page.goto(address)
            yield page
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SCREENSHOTS / "marimo.png", full_page=True)
        finally:
            opened.close()
    assert watch.outside == [], "asked for outside this computer, and refused"
    assert watch.complaints == [], "errors on the console"


def test_in_marimo_the_views_take_the_place_of_their_pictures_and_python_hears_them(app):
    graph, walk, explorer = (app.locator(".kl").nth(number) for number in range(3))
    expect(app.locator(".kl")).to_have_count(3)
    expect(app.locator("img:visible")).to_have_count(0)
    assert app.locator("img").count() == 4  # the explorer has two, of its pipeline and of the scores

    expect(graph).to_have_attribute("data-nodes", "10")
    graph.get_by_role("application").press("ArrowRight")
    expect(graph.get_by_role("status")).to_have_text("The winter storm of late January 2026 picked")
    graph.get_by_role("button", name="Path from here").click()
    graph.get_by_label("Search").fill("many households")
    graph.get_by_label("Search").press("Enter")  # the path is found by Python
    expect(graph.get_by_role("status")).to_have_text(
        "Path: The winter storm of late January 2026 — caused power failure for → many households"
    )

    walk.get_by_label("Event", exact=True).fill("23")
    expect(walk.locator(".kl-step-panel").get_by_role("status")).to_contain_text("Event 23 of 24")
    walk.press("ArrowRight")
    expect(walk.locator(".kl-step-panel").get_by_role("status")).to_contain_text("Event 24 of 24")

    explorer.get_by_label("or one of 2").select_option(index=2)
    expect(explorer.locator(".kl-x-hits > li")).to_have_count(3)
    expect(explorer.locator(".kl-said")).to_contain_text("First: ")

    inked = """(canvas) => [...canvas.querySelectorAll("canvas")].reduce((sum, one) => {
        const pixels = one.getContext("2d").getImageData(0, 0, one.width, one.height).data;
        return sum + pixels.reduce((count, value, at) => count + (at % 4 === 3 && value > 0), 0);
    }, 0)"""
    assert graph.locator(".kl-canvas").evaluate(inked) > 2000
    expect(graph).to_have_class("kl")  # light, as marimo is here, whose colours are written color(srgb 1 1 1)
    app.evaluate("""() => {
        for (const part of document.querySelectorAll("body *")) part.style.backgroundColor = "transparent";
        document.body.style.background = "#111";
    }""")  # what lies behind a shadow root counts too
    expect(graph).to_have_class("kl kl-dark")
