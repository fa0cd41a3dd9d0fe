"""Slides in a browser: keys go on and back, n shows the notes, and paper gets a page for each."""

import re

from browser.lab import REPOSITORY, expect
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.viz.slides import write_slides


def test_keys_turn_the_slides_and_paper_has_a_page_for_each(page, watch, tmp_path):
    (written,) = write_slides([REPOSITORY / "notebooks" / "00_tour.ipynb"], tmp_path)
    open_from_disk(page, watch, written)
    slides = page.locator("section")
    expect(page.locator("section:visible")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(page.locator("#slide-2")).to_be_visible()
    expect(page.locator("#slide-1")).not_to_be_visible()
    page.keyboard.press("n")
    expect(page.locator("#slide-2 .notes")).to_be_visible()
    page.screenshot(path=SCREENSHOTS / "slides.png")
    page.keyboard.press("End")
    expect(slides.last).to_be_visible()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ ")
    expect(slides.nth(slides.count() - 2)).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("section:visible")).to_have_count(slides.count())
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(prefer_css_page_size=True))) == slides.count()
