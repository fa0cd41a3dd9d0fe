"""How long the retrieval explorer takes from a moved slider to the changed list, in a notebook in a real
browser.

JupyterLab and Chromium run on this computer. Single moves are key presses, each known to Python before the
next; then a slider is dragged. The browser's own clock counts, from the input event: "updated" until the page
holds the new list, "painted" until it was drawn as well. The browser ranks by itself, at most once a frame,
and Python hears where a slider came to rest; what Python takes is printed apart.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.requirements import require_browser, require_embeddings
from kgot_lab.diagnostics.components import find_chromium
from kgot_lab.viz.explorer.explorer import explore_dataset

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

REPORT = Path(__file__).parents[1] / "results" / "explorer.json"
DATASET, MOVES, SHOWN = "hotpotqa", 60, (10, 50)  # data set, moves of each kind, hits shown
GOAL = 16  # milliseconds: a frame

Times = dict[str, float]


def main() -> None:
    """Measure, print, keep."""
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    require_browser()
    require_embeddings()
    # JupyterLab and the browser, as the tests start them
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    from browser.lab import jupyterlab, open_notebook, run_cell
    from browser.window import Watch, chromium
    from playwright.sync_api import sync_playwright

    rows: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory() as room,
        jupyterlab(Path(room)) as lab,
        sync_playwright() as playwright,
    ):
        watch = Watch(lab.address)
        with chromium(playwright, find_chromium(), watch) as window:
            window.request.get(f"{lab.address}/lab?token={lab.token}")
            page = window.new_page()
            # as most readers have it: hits glide to their places
            page.emulate_media(reduced_motion="no-preference")
            for k in SHOWN:
                show = (
                    "from kgot_lab.viz.explorer.explorer import explore_dataset\n"
                    f"explorer = explore_dataset({DATASET!r}).but(k={k})\nexplorer"
                )
                open_notebook(page, lab.scratch([show]))
                view = run_cell(page, 0).locator(".kl-x")
                view.wait_for()
                rows += measured(page, view, k)
            browser = window.browser.version if window.browser else ""
            lab.end_kernels()
    assert not watch.outside, f"asked for outside this computer: {watch.outside}"
    report = {
        "about": {
            "dataset": DATASET,
            "goal_ms": GOAL,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "chromium": browser,
        },
        "rows": rows,
        "python_only_ms": {str(k): in_python(k) for k in SHOWN},
    }
    REPORT.write_text(json.dumps(report, indent=1) + "\n")
    told(rows, report["python_only_ms"])


def measured(page: Page, view: Locator, k: int) -> list[dict[str, Any]]:
    """The times of single moves and of drags, for one number of hits."""
    # the first answers warm the kernel and the browser; the sliders come back to where they were
    moves(page, view, 30)
    return [
        {"k": k, "moves": MOVES, "kind": "single", **taken(page, view, moves)},
        {"k": k, "moves": MOVES, "kind": "drag", **taken(page, view, drag)},
    ]


def taken(page: Page, view: Locator, act: Any) -> dict[str, Any]:
    """What the browser's clock noted while something was done."""
    page.evaluate("() => performance.clearMeasures()")
    act(page, view, MOVES)
    page.wait_for_timeout(300)
    noted = page.evaluate(
        "() => performance.getEntriesByType('measure').map((entry) => [entry.name, entry.duration])"
    )
    times = {
        name: [duration for each, duration in noted if each == f"explorer {name}"]
        for name in ("updated", "painted")
    }
    return {"lists": len(times["updated"]), **{f"{name}_ms": summary(some) for name, some in times.items()}}


def moves(page: Page, view: Locator, count: int) -> None:
    """Move sliders by key, one step at a time, and wait for each list."""
    for number in range(count):
        slider = view.get_by_role("slider", name="αβγ"[number // 5 % 3])
        slider.focus()
        page.keyboard.press("ArrowRight" if number // 15 % 2 == 0 else "ArrowLeft")
        settled(view)


def drag(page: Page, view: Locator, count: int) -> None:
    """Drag a slider to and fro, a movement every 16 ms, which is what a mouse does."""
    slider = view.get_by_role("slider", name="γ")
    box = slider.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 10, middle)
    page.mouse.down()
    for number in range(count):
        share = abs((number % 40) / 20 - 1)
        page.mouse.move(box["x"] + 10 + (box["width"] - 20) * (1 - share), middle)
        time.sleep(0.016)
    page.mouse.up()
    settled(view)


def settled(view: Locator) -> None:
    """Wait until the newest list is on screen."""
    view.page.wait_for_function("(view) => view.dataset.waiting === 'false'", arg=view.element_handle())


def in_python(k: int) -> Times:
    """The same single moves without a browser: what Python alone takes for an answer."""
    explorer = explore_dataset(DATASET).but(k=k)
    wish = {"question": explorer.question.text, **explorer.mix.to_json}
    times = []
    for number in range(MOVES):
        before = {**wish, "weights": dict(wish["weights"])}
        wish["weights"]["embedding"] = number % 20 / 20
        began = time.perf_counter()
        explorer.handle_message({"n": number, "wish": {**wish, "before": before}})
        times.append(1000 * (time.perf_counter() - began))
    return summary(times)


def summary(times: list[float]) -> Times:
    """Median, 95th percentile and largest of some times, in milliseconds."""
    ordered = sorted(times)
    return {
        "median": round(statistics.median(ordered), 1),
        "p95": round(ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))], 1),
        "most": round(ordered[-1], 1),
    }


def told(rows: list[dict[str, Any]], python: dict[str, Times]) -> None:
    """Print the table."""
    print(
        f"{'k':>3} {'moves':>16} {'lists':>6} {'updated: median':>16} {'p95':>7} {'painted: median':>16} {'p95':>7}   (ms)"
    )
    for row in rows:
        updated, painted = row["updated_ms"], row["painted_ms"]
        kind = f"{row['moves']} {row['kind']}"
        values = [updated["median"], updated["p95"], painted["median"], painted["p95"]]
        print(
            f"{row['k']:3} {kind:>16} {row['lists']:6} {values[0]:16.1f} {values[1]:7.1f} {values[2]:16.1f} {values[3]:7.1f}"
        )
    for k, times in python.items():
        print(f"{k:>3} {'Python alone':>16} {'':6} {times['median']:16.1f} {times['p95']:7.1f}")


if __name__ == "__main__":
    main()
