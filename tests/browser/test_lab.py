"""The tools of the browser tests: scratch notebooks, widgets that draw, and a browser that reaches nothing
outside.
"""

from __future__ import annotations

import pytest

from browser.lab import CellFailed, expect, open_notebook, run_all, run_cell
from browser.window import open_from_disk


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
    # whether the second still runs is JupyterLab's
    with pytest.raises(CellFailed, match="cell 0: ZeroDivisionError: division by zero"):
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


PICTURE = "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'><circle cx='30' cy='30' r='20' fill='#0072B2'/></svg>"


COUNTER = f'''
import anywidget, traitlets
from IPython.display import SVG, display

class Counter(anywidget.AnyWidget):
    _esm = """
    export default {{
      render({{ model, el }}) {{
        const button = document.createElement("button");
        const show = () => {{ button.textContent = `${{model.get("count")}} clicks`; }};
        button.addEventListener("click", () => {{ model.set("count", model.get("count") + 1); model.save_changes(); }});
        model.on("change:count", show);
        show();
        el.append(button);
      }},
    }};
    """
    count = traitlets.Int(3).tag(sync=True)

counter = Counter()
display(SVG("{PICTURE}"))
display(counter)
'''


def test_a_page_from_disk_may_be_opened_and_reaches_nothing_beside_it(page, watch, tmp_path):
    (tmp_path / "beside.js").write_text("document.title = 'ran'")
    (tmp_path / "page.html").write_text(
        "<title>from disk</title><script src='beside.js'></script><p>hello</p>"
    )
    open_from_disk(page, watch, tmp_path / "page.html")
    assert page.title() == "from disk"
    assert watch.outside == [(tmp_path / "beside.js").as_uri()]
    watch.clear()


def test_a_picture_and_then_a_widget_in_one_cell_are_both_drawn_and_a_click_reaches_python(page, lab):
    open_notebook(page, lab.scratch([COUNTER, "counter.count"]))
    outputs = run_cell(page, 0).locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(2)
    assert outputs.nth(0).locator("img").evaluate("(image) => [image.naturalWidth, image.naturalHeight]") == [
        120,
        60,
    ]
    button = outputs.nth(1).get_by_role("button")
    expect(button).to_have_text("3 clicks")
    button.click()
    expect(button).to_have_text("4 clicks")
    expect(run_cell(page, 1)).to_contain_text("4")
