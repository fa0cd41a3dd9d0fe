"""`doctor()` in a notebook: what is installed, and a live view that says so when it lives."""

from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS


def test_the_doctor_cell_says_what_works_and_that_live_views_draw(page, lab):
    open_notebook(
        page, lab.scratch(["from kgot_lab import doctor\ndoctor('widgets', 'exports', 'bundled data')"])
    )
    area = run_cell(page, 0)
    expect(area.locator("table")).to_contain_text("widgets")
    expect(area.locator(".kl")).to_contain_text(
        "Live views work here: the browser draws them, and Python answered in"
    )
    expect(area.locator("img")).not_to_be_visible()
    area.screenshot(path=SCREENSHOTS / "doctor-cell.png")


def test_where_a_live_view_cannot_draw_the_lines_that_say_what_to_do_stay(page, lab):
    without = "import sys; sys.modules['anywidget'] = None  # as if it were not installed\n"
    open_notebook(page, lab.scratch([without + "from kgot_lab import doctor\ndoctor('exports')"]))
    area = run_cell(page, 0)
    expect(area.locator("img")).to_be_visible()
    expect(area).to_contain_text("pip install 'kgot_lab[lab]'")
    assert "live views cannot draw here" in area.locator("img").get_attribute("alt")
