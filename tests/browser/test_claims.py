"""Looking at claims in a notebook and on a page: review by keyboard alone with a real kernel, and the slider
over valid time.
"""

from __future__ import annotations

import pytest
from support.saying import said, year

from browser.audit import FINE, faults, keyboard_goes_through, spoken
from browser.lab import expect, open_notebook, run_cell
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.viz.claims import over_time

CELLS = (
    """
from datetime import datetime, timezone
import kgot_lab as lab
from kgot_lab.memory.claims import Claim, Claims, ClaimReview, Span, SQLiteClaims
from kgot_lab.viz import claims as look

text = "A letter of 1840 says that Ada lives in London, near the park."
memory = Claims(SQLiteClaims("review.db"))
memory.declare("lives_in", "single")
memory.learn([
    Claim(lab.Triple("Ada", "lives_in", "London"), "letter", Span(27, 46), confidence=0.5),
    Claim(lab.Triple("Ada", "lives_in", "Paris"), "novel"),
    Claim(lab.Triple("Ada", "lives_in", "England"), "novel", kind="inferred", premises=(lab.Triple("Ada", "lives_in", "London"),)),
    Claim(lab.Triple("Ada", "knows", '<img src=x onerror="alert(1)">'), "novel", confidence=0.4),
    Claim(lab.Triple("Ada", "likes", "tea"), "novel", confidence=0.3),
])
view = look.review(memory, by="Grace", documents=[lab.Document("letter", text)])
view
""",
    "[(each.by, each.action, memory.claim(each.item).fact.object, each.standing, each.confidence) for each in view.reviewer.decisions()]",
    "ClaimReview(Claims(SQLiteClaims('review.db')), 'Mary').reject(view.reviewer.queue()[0])",
    "view",
)


@pytest.fixture
def in_notebook(page, lab):
    for part in ("", "-wal", "-shm"):  # a kernel of another test may have it open
        (lab.folder / f"review.db{part}").unlink(missing_ok=True)
    open_notebook(page, lab.scratch([cell.strip() for cell in CELLS]))
    view = run_cell(page, 0).locator(".kl-review")
    expect(view).to_be_visible()
    return view


def pressed(page, view, key, text):
    """Press a key and wait until a text stands in the view."""
    page.keyboard.press(key)
    expect(view).to_contain_text(text)


def test_claims_are_decided_on_by_keyboard_alone(page, in_notebook):
    view = in_notebook
    expect(view).to_contain_text("1 of 3 that wait")
    expect(view.locator("mark")).to_have_text("Ada lives in London")
    expect(view.locator(".kl-review-against")).to_contain_text(
        "It contradicts, since lives_in has a single object at a time"
    )
    assert view.locator("img").count() == 0
    view.screenshot(path=SCREENSHOTS / "review.png")
    view.get_by_role("region", name="The claim that waits").focus()
    pressed(page, view, "?", "take back your last decision")
    page.keyboard.press("?")
    pressed(page, view, "j", "2 of 3 that wait")
    expect(view.locator("h4")).to_have_text('Ada – knows – <img src=x onerror="alert(1)">')
    pressed(page, view, "k", "1 of 3 that wait")
    pressed(page, view, "a", "accept: accepted, confidence 0.50")
    assert "Accepted: Ada – lives_in – London (2 facts began to hold)." in spoken(view)
    pressed(page, view, "r", "reject: rejected")
    pressed(page, view, "u", "undo: back in the queue")
    pressed(page, view, "r", "1 of 1 that wait")
    page.keyboard.press("o")
    expect(view.get_by_label("Object")).to_be_focused()
    page.keyboard.press("Escape")
    expect(view.get_by_role("region", name="The claim that waits")).to_be_focused()
    page.keyboard.press("o")
    page.keyboard.type("coffee, or rather")
    page.keyboard.press("Tab")
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    expect(view.get_by_role("alert")).to_contain_text("another confidence or another object")
    expect(view.get_by_label("Object")).to_have_value("coffee, or rather")
    view.screenshot(path=SCREENSHOTS / "review-refused.png")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("tea")
    page.keyboard.press("Tab")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("0.9")
    page.keyboard.press("Enter")
    expect(view).to_contain_text("Nothing waits for review.")
    expect(view).to_contain_text("override: accepted, confidence 0.90")
    expect(view.get_by_role("button", name="Accept", exact=True)).to_be_disabled()
    assert view.evaluate("(view) => view.contains(document.activeElement)")
    view.screenshot(path=SCREENSHOTS / "review-empty.png")
    expect(run_cell(page, 1)).to_contain_text("('Grace', 'override', 'tea', 'accepted', 0.9)")


def test_what_another_process_decided_is_shown_and_nothing_is_lost(page, in_notebook):
    run_cell(page, 2)
    view = in_notebook
    view.get_by_role("button", name="Accept").click()
    expect(view.get_by_role("alert")).to_contain_text(
        "Not done: Ada – lives_in – London no longer waits. It was rejected by Mary"
    )
    expect(view).to_contain_text("1 of 2 that wait")
    view.screenshot(path=SCREENSHOTS / "review-conflict.png")
    view.get_by_role("button", name="Accept").click()
    expect(view).to_contain_text("1 of 1 that wait")
    expect(view.get_by_role("alert")).to_be_empty()
    again = run_cell(page, 3)
    expect(again.locator(".kl-review")).to_contain_text("1 of 1 that wait")
    expect(again.locator("[data-picture]")).not_to_be_visible()


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


def test_the_review_has_a_name_for_everything_and_the_keyboard_goes_through_it(page, in_notebook):
    assert faults(in_notebook) == FINE
    assert keyboard_goes_through(in_notebook)
