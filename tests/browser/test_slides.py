"""Slides in a browser: each is as high as the window at least, and begins a page on paper."""

import re

from browser.lab import REPOSITORY
from browser.window import SCREENSHOTS, open_from_disk
from kgot_lab.viz.notebook_page import write_slides


def test_each_slide_fills_the_window_and_begins_a_page_on_paper(page, watch, tmp_path):
    (written,) = write_slides([REPOSITORY / "notebooks" / "00_tour.ipynb"], tmp_path)
    open_from_disk(page, watch, written)
    slides = page.locator("article")
    height = page.evaluate("innerHeight")
    assert all(slides.nth(number).bounding_box()["height"] >= height - 1 for number in range(slides.count()))
    page.screenshot(path=SCREENSHOTS / "slides.png")
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(prefer_css_page_size=True))) >= slides.count()
