"""Looking at claims on a page: the slider over valid time."""

from __future__ import annotations

import pytest
from support.saying import said, year

from browser.audit import FINE, faults, spoken
from browser.lab import expect
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.viz.claims import over_time


@pytest.fixture
def on_disk(page, watch, tmp_path):
    with Claims(SQLiteClaims()) as memory:
        memory.declare("lives_in", "single")
        homes = {"London": 1990, "Paris": 2000}
        memory.learn([said(f"Ada lives_in {home}", valid_from=year(since)) for home, since in homes.items()])
        knew = said("Ada knows Bob", valid_from=year(1995), valid_until=year(2005))
        memory.learn([knew, said("Eve is human"), said("Ada is human")])
        path = over_time(memory).page().save(tmp_path / "times.html")
    open_from_disk(page, watch, path)
    view = page.locator(".kl").first
    expect(view).to_be_visible()
    return view


def test_the_arrow_keys_go_from_change_to_change(page, on_disk):
    view, slider = on_disk, on_disk.get_by_role("slider")
    expect(view.locator("h4")).to_have_text("before the first change")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(view.locator("h4")).to_have_text("from 1990-01-01")
    assert "Began: Ada – lives_in – London" in spoken(view)
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert "Began: Ada – lives_in – Paris. Ended: Ada – lives_in – London." in spoken(view)
    view.screenshot(path=SCREENSHOTS / "times.png")
    page.keyboard.press("End")
    expect(view.locator("h4")).to_have_text("from 2005-01-01")
    expect(view.get_by_role("button", name="Later")).to_be_disabled()
    view.get_by_role("button", name="Earlier").click()
    expect(view.locator("h4")).to_have_text("from 2000-01-01")
    # signs on coloured ground, read as on white
    view.locator(".kl-times-picture").evaluate("(picture) => { picture.hidden = true; }")
    assert faults(view) == FINE
    expect(page.get_by_role("table")).to_contain_text("before the first change")
