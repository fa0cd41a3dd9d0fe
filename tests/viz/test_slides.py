"""Slides from a notebook: what is on them, that nothing is fetched or run, and errors for what is no
notebook.
"""

import json
import re
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.viz.external_requests import find_external_requests
from kgot_lab.viz.notebook_page import _split_slides, build_slides, read_notebook, write_slides

pytest.importorskip("nbconvert")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="4"/></svg>'


def notebook(folder, *cells):
    """A notebook of texts and of (code, data of its output)."""
    made = [
        {"cell_type": "markdown", "metadata": {}, "source": cell}
        if isinstance(cell, str)
        else {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "source": cell[0],
            "outputs": [
                {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": cell[1]}
            ]
            if cell[1]
            else [],
        }
        for cell in cells
    ]
    path = folder / "a.ipynb"
    path.write_text(
        json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 4, "metadata": {}}), encoding="utf-8"
    )
    return path


def articles(page):
    return re.findall(r"<article.*?</article>", page, re.DOTALL)


def test_each_heading_with_something_below_it_is_a_slide(tmp_path):
    because = "# Why?\n\nOne. Two.\n\n## Because\n\n- **a** first\n- second `b`"
    page = build_slides(notebook(tmp_path, because, "### Nothing below", "## In the package\n\n- files"))
    first, second = articles(page)
    assert ">Why?" in first and "One. Two." in first
    assert "<strong>a</strong> first" in second and "<code>b</code>" in second


def test_pictures_tables_and_code_are_on_the_slide_of_their_heading_and_answers_on_none(tmp_path):
    table = "<table><tr><th>a</th></tr><tr><td>1 &lt; 2</td></tr></table>"
    cells = [
        "# T?", ("import os", {}), "## S\n\nLook.", ("show(1)", {"image/svg+xml": SVG}), "**1.** And a table.",
        ("show(2)", {"text/html": table}), ("answer = ...\nlab.exercise(answer, 3)", {"text/plain": "not yet"}),
    ]  # fmt: skip
    title, picture, exercise = articles(build_slides(notebook(tmp_path, *cells)))
    assert "import" in title and '<circle r="4"' in picture and "Look." in picture
    assert "<td>1 &lt; 2</td>" in exercise and "exercise(" not in title + picture + exercise


@every("path", NOTEBOOKS)
def test_each_exercise_of_a_notebook_begins_a_slide(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    asked = sum(len(re.findall(r"^\*\*\d+\.\*\*", text, re.MULTILINE)) for text in texts)
    slides = list(_split_slides(read_notebook(path).cells))
    assert sum(bool(re.match(r"\*\*\d+\.\*\*", slide[0].source)) for slide in slides) == asked
    assert 8 < len(slides) < 60


def test_slides_stand_in_one_file_beside_others(tmp_path):
    (written,) = write_slides(NOTEBOOKS[:1], tmp_path)
    page = written.read_text(encoding="utf-8")
    assert (
        written.name == f"{NOTEBOOKS[0].stem}.slides.html" and find_external_requests(page, beside=True) == ()
    )
    assert 8 < len(articles(page)) < 60


@every("text", ["", "{", "[]", "null", '{"cells": 7}', '{"cells": [{"source": ""}]}'])
def test_a_file_that_is_no_notebook_is_named(tmp_path, text):
    (path := tmp_path / "b.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"b\.ipynb"):
        build_slides(path)


def test_a_missing_notebook_and_one_without_anything_are_named(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        build_slides(tmp_path / "none.ipynb")
    with pytest.raises(BadInput, match="there are no slides to make"):
        build_slides(notebook(tmp_path))


def test_nothing_of_a_notebook_is_run_or_fetched(tmp_path):
    evil = "## S\n\n<script>alert(1)</script> [a](javascript:alert(1))"
    cells = ["# T", evil, ("show()", {"text/plain": "7"})]
    page = build_slides(notebook(tmp_path, *cells))
    assert (
        "default-src 'none'" in page
        and "script-src" not in page
        and find_external_requests(page, beside=True) == ()
    )
    with pytest.raises(BadInput, match="would fetch what is not in it"):
        build_slides(notebook(tmp_path, "# T\n\n![b](https://x.example/b.png)"))
