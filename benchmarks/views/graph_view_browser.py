"""How long it takes to open a large graph in a notebook in a real browser: from "run cell" to the view that
has drawn it.

JupyterLab and Chromium run on this computer; the graphs are those of graph_view.py, a new one each round. The
first cell of a kernel also imports packages, so it is reported apart. The result goes under "browser" of
results/graph_view.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.requirements import require_browser, require_packages
from benchmarks.views.graph_view import GRAPHS, keep, machine
from kgot_lab.diagnostics.components import find_chromium

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
ROUNDS, GOAL = 5, 5.0  # seconds
MADE = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom benchmarks.views.graph_view import GRAPHS\nfrom kgot_lab.viz import show_graph"
CHOSEN = [name for name in GRAPHS if name != "100,000 nodes"]


def main() -> None:
    """Measure, print, keep."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    require_browser()
    require_packages("lab", "sknetwork")
    # JupyterLab and the browser, as the tests start them
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    from browser.lab import jupyterlab, open_notebook, run_cell
    from browser.window import Watch, chromium
    from playwright.sync_api import sync_playwright

    about, rows = machine(), []
    with (
        tempfile.TemporaryDirectory() as room,
        jupyterlab(Path(room)) as lab,
        sync_playwright() as playwright,
    ):
        watch = Watch(lab.address)
        with chromium(playwright, find_chromium(), watch) as window:
            window.request.get(f"{lab.address}/lab?token={lab.token}")
            page = window.new_page()
            for name in CHOSEN:
                cells = [
                    MADE,
                    f"graph = GRAPHS[{name!r}](); len(graph), len(graph.edges)",
                    "show_graph(graph, most=2000)",
                ]
                open_notebook(page, lab.scratch(cells))
                run_cell(page, 0)
                rows.append(measured(page, name))
                lab.end_kernels()
    assert not watch.outside, f"asked for outside this computer: {watch.outside}"
    for row in rows:
        print(
            f"{row['graph']:>24}: median {row['median_s']:.2f} s, slowest {max(row['seconds']):.2f}, first cell {row['first_s']:.2f}"
        )
        print(
            f"{'':>24}  {row['drawn']} nodes and {row['lines']} lines drawn; the goal for the planted one is {GOAL:g} s"
        )
    keep("browser", {"machine": about, "rounds": ROUNDS, "goal_s": GOAL, "rows": rows})


def measured(page: Page, name: str) -> dict[str, Any]:
    """Seconds of the first cell and of the next rounds, each with a graph made again, and what was drawn."""
    from browser.lab import run_cell

    seconds = []
    for _ in range(ROUNDS + 1):
        run_cell(page, 1)
        began = time.perf_counter()
        view = run_cell(page, 2).locator(".kl")
        view.wait_for()
        page.wait_for_function("(view) => view.dataset.nodes", arg=view.element_handle())
        # until it is painted
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        seconds.append(round(time.perf_counter() - began, 3))
    drawn = {
        "drawn": int(view.get_attribute("data-nodes") or 0),
        "lines": int(view.get_attribute("data-edges") or 0),
    }
    return {
        "graph": name,
        "first_s": seconds[0],
        "median_s": statistics.median(seconds[1:]),
        "seconds": seconds[1:],
        **drawn,
    }


if __name__ == "__main__":
    main()
