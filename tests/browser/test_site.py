"""A course as live pages, from disk and from a server of files: nothing is blank or asks outside; one can
walk, search and answer.
"""

import pytest

from browser.alive import blank_pictures, served, views_on
from browser.audit import FINE, faults, follows_the_browser, keyboard_goes_through
from browser.lab import REPOSITORY, expect
from browser.window import SCREENSHOTS, Watch
from kgot_lab.viz.course import write_course
from kgot_lab.viz.exercises import sealed

CHOSEN = ("00_tour", "75_an_expert")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two notebooks, run and written as a course."""
    folder = tmp_path_factory.mktemp("site")
    return write_course([REPOSITORY / "notebooks" / f"{name}.ipynb" for name in CHOSEN], folder, live=True)


@pytest.mark.parametrize("place", ["disk", "server"])
def test_a_course_lives_without_python_wherever_its_files_are(window, site, place):
    folder = site[0].parent
    with served(folder) as address:
        watch = Watch(address)
        for file in folder.iterdir():
            watch.allow_file(file)
        context = window.browser.new_context(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
        context.route("**/*", watch.guard)
        context.on("console", watch.hear)
        context.on("weberror", lambda error: watch.complain(str(error.error)))
        page = context.new_page()
        page.goto(site[0].resolve().as_uri() if place == "disk" else f"{address}/index.html")
        page.screenshot(path=SCREENSHOTS / f"site-{place}.png")
        page.get_by_role("link", name="What is this workbench for?").click()
        kinds = []
        for number in range(len(CHOSEN)):
            views = views_on(page)
            kinds += [view.kind for view in views]
            assert not [view for view in views if view.is_blank] and blank_pictures(page) == 0
            assert place == "server" or follows_the_browser(page)
            if number == 0:
                walk_and_search(page)
            if number + 1 < len(CHOSEN):
                page.get_by_role("link", name="Next").first.click()
        assert {"graph", "stepper", "talk", "answer"} <= set(kinds)
        answer(page)
        page.get_by_role("link", name="All notebooks").first.click()
        expect(page.get_by_role("listitem").first).to_be_visible()
        context.close()
    assert watch.outside == [] and watch.complaints == []


def walk_and_search(page):
    """Step through a run to its end and back, and find a node of a graph."""
    stepper = page.locator("[data-view=stepper]").first
    expect(stepper).to_contain_text("Event 37 of 37")
    stepper.get_by_role("button", name="Back").click()
    expect(stepper).to_contain_text("Event 36 of 37")
    expect(stepper).to_contain_text("needs a running notebook")
    graph = page.locator("[data-view=graph]").first
    graph.get_by_label("Search").fill("Botswana")
    graph.get_by_role("button", name="Find").click()
    expect(graph.get_by_role("region", name="What is picked")).to_contain_text("Botswana")


def answer(page):
    """Answer an exercise, first wrongly."""
    place = page.locator("[data-view=answer]").first
    assert faults(place.locator(".kl")) == FINE and keyboard_goes_through(place.locator(".kl"))
    place.get_by_label("Your answer").fill("Cool water")
    place.get_by_role("button", name="Check").click()
    expect(place.get_by_role("status")).to_contain_text("not yet: it is no node of the graph")
    place.get_by_label("Your answer").fill("milk")
    place.get_by_label("Your answer").press("Enter")
    expect(place.get_by_role("status")).to_have_text("right")


SAME = {  # an answer in Python, and how a reader may type it
    "Botswana": "botswana", "two  Words": " Two words ", "it's so": "it's so", "yes_no": "'yes_no'", 42: "42", 0.0325: ".0325",
    1234: "1234", 2 / 3: "0.6667", 1.234e-05: "0.00001234", -5.5: "-5.5", 1_000_000: "1000000", 999.6: "999.6", True: "true", None: "none",
    2: "2e0", 150: "1.5e2", 0.25: "+2.5e-1", ("a", "b"): "b, a", frozenset({1, 2}): "2,1", ("it's", "b"): "b, it's",
}  # fmt: skip


def test_an_answer_that_python_takes_for_right_is_right_on_the_page(window, site):
    page = window.browser.new_page()
    page.goto((site[0].parent / "75_an_expert.html").as_uri())
    for right, typed in SAME.items():
        seals = page.evaluate("(typed) => Promise.all(plainForms(typed).map(sealOf))", typed)
        assert sealed(right) in seals and sealed("something else") not in seals, typed
    for right, typed in {2: "0x2", 3: "0b11", 8: "0o10", 0: " ", 1e300: "Infinity"}.items():
        assert sealed(right) not in page.evaluate(
            "(typed) => Promise.all(plainForms(typed).map(sealOf))", typed
        ), typed
    page.close()
