"""Every notebook in a real browser: opened where it was never run it shows its pictures and tables, and Run
All is clean.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from browser.lab import REPOSITORY, expect, open_notebook, output_of, outputs, run_all
from browser.window import screenshot

NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.timeout(1200)  # the longest takes half a minute on a quiet computer
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
WIDGET = "application/vnd.jupyter.widget-view+json"
LOOK = """async (image) => {
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    pen.drawImage(image, 0, 0);
    const colours = new Set();
    for (const pixel of new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer)) {
        if (colours.add(pixel).size > 2) break;  // no more are asked for, and a picture has millions of pixels
    }
    return { wide: image.naturalWidth, high: image.naturalHeight, colours: colours.size };
}"""


class Shown(NamedTuple):
    """How many pictures and tables the outputs of a cell hold."""

    cell: int
    pictures: int
    tables: int


def stored(path) -> list[Shown]:
    """What the outputs stored in a notebook promise a reader, cell by cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [seen for n, cell in enumerate(cells) if any((seen := promised(n, cell.get("outputs", [])))[1:])]


def promised(n, of_cell) -> Shown:
    bundles = [output["data"] for output in of_cell if "data" in output]
    pages = ["".join(bundle.get("text/html", "")) for bundle in bundles]
    images = [any(kind.startswith("image/") for kind in bundle) for bundle in bundles]
    drawn = [page.count("<img") or int(image) for page, image in zip(pages, images, strict=True)]
    return Shown(n, sum(drawn), sum(page.count("<table") for page in pages))


def scroll_to(place, attempts=24):
    """Scroll until a place stays in view: cells that are drawn late move what is below them away again."""
    for attempt in range(attempts):
        place.scroll_into_view_if_needed()
        try:
            return expect(place).to_be_in_viewport(timeout=5_000)
        except AssertionError:
            if attempt == attempts - 1:
                raise


def look_at(page, seen):
    """Scroll to every picture and table of a cell: each is there, has a size and more than one colour."""
    shown = output_of(page, seen.cell).locator(".jp-OutputArea-output")
    shown.locator("details").evaluate_all("sections => sections.forEach((each) => { each.open = true; })")
    pictures, tables = shown.locator("img:visible"), shown.locator("table:visible")
    expect(pictures, f"pictures of cell {seen.cell}").to_have_count(seen.pictures)
    expect(tables, f"tables of cell {seen.cell}").to_have_count(seen.tables)
    for place in (*pictures.all(), *tables.all()):
        scroll_to(place)
    for picture in pictures.all():
        drawn = picture.evaluate(LOOK)
        assert drawn["wide"] > 50 and drawn["high"] > 20 and drawn["colours"] > 2, (seen.cell, drawn)


@each_notebook
def test_a_notebook_shows_its_pictures_where_it_was_never_run_and_run_all_is_clean_and_leaves_nothing_blank(
    path, page, lab
):
    open_notebook(page, path.name)
    promises = stored(path)
    screenshot(page, f"{path.stem}-before")
    for seen in promises:
        look_at(page, seen)
    run_all(page)
    live = [seen.cell for seen in promises if holds_widget(outputs(page, seen.cell))]
    for n in live:
        expect(output_of(page, n).locator(".kl, .jupyter-widgets").first).to_be_visible()
    screenshot(page, f"{path.stem}-after")
    for seen in promises:
        if seen.cell not in live:  # there the live view has taken the place of the picture
            look_at(page, seen)


def holds_widget(of_cell) -> bool:
    return any(WIDGET in output.get("data", {}) for output in of_cell)
