"""The tools of the browser tests: scratch notebooks, widgets that draw, and a browser that reaches nothing
outside.
"""

from __future__ import annotations

import pytest

from browser.lab import CellFailed, expect, open_notebook, run_all, run_cell


def soon(page, is_so) -> bool:
    """Whether something comes true before long, while the page lives on."""
    for _ in range(2400):
        if is_so():
            return True
        page.wait_for_timeout(50)
    return False


def test_a_scratch_notebook_runs_cell_by_cell(page, lab):
    open_notebook(page, lab.scratch(["x = 20", "x + 1"]))
    run_cell(page, 0)
    expect(run_cell(page, 1)).to_contain_text("21")


def test_run_all_says_which_cell_raised(page, lab):
    open_notebook(page, lab.scratch(["1 / 0", "2"]))
    with pytest.raises(
        CellFailed, match="cell 0: ZeroDivisionError: division by zero"
    ):  # whether the second still runs is JupyterLab's
        run_all(page)


def test_what_a_notebook_would_fetch_from_outside_is_refused_and_written_down(page, lab, watch):
    open_notebook(
        page,
        lab.scratch(
            ["from IPython.display import HTML; HTML('<img src=\"http://outside.invalid/dot.png\">')"]
        ),
    )
    run_cell(page, 0)
    page.evaluate("() => { new WebSocket('ws://outside.invalid/talk').onerror = () => {}; }")
    assert soon(
        page, lambda: set(watch.outside) == {"http://outside.invalid/dot.png", "ws://outside.invalid/talk"}
    ), watch.outside
    assert soon(page, lambda: any("ERR_FAILED" in complaint for complaint in watch.complaints))
    watch.clear()


def test_an_error_of_a_script_is_heard(page, lab, watch):
    open_notebook(page, lab.scratch(["1"]))
    page.evaluate(
        "() => { setTimeout(() => { throw new Error('on purpose'); }, 0); console.error('said aloud'); }"
    )
    assert soon(
        page,
        lambda: all(
            any(words in heard for heard in watch.complaints) for words in ("on purpose", "said aloud")
        ),
    )
    watch.clear()
