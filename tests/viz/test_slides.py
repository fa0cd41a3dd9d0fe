"""Slides from a notebook: what is on them, that nothing is fetched or run, and what is said of a notebook
that is none.
"""

import json
import re
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import BadInput
from kgot_lab.viz.external_requests import references
from kgot_lab.viz.slides import slides_of, write_slides
from kgot_lab.viz.slides.reading import inline, unmarked
from kgot_lab.viz.static.markup import element

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle r="4"/></svg>'


def notebook(folder, *cells):
    """A notebook of texts and of (code, data of its output)."""
    made = [
        {"cell_type": "markdown", "source": each}
        if isinstance(each, str)
        else {
            "cell_type": "code",
            "source": each[0],
            "outputs": [{"output_type": "execute_result", "data": each[1]}] if each[1] else [],
        }
        for each in cells
    ]
    path = folder / "a.ipynb"
    path.write_text(
        json.dumps({"cells": made, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}), encoding="utf-8"
    )
    return path


def sections(page):
    return re.findall(r"<section.*?</section>", page, re.DOTALL)


def test_a_heading_is_a_slide_with_its_first_sentences_and_all_of_it_in_the_notes(tmp_path):
    page = slides_of(
        notebook(
            tmp_path,
            "# Why?\n\nOne. Two. Three.",
            "## Because\n\n- **a** first\n- second `b`",
            "### Nothing below",
        )
    )
    first, second = sections(page)
    shown = re.sub(r"<aside.*?</aside>", "", first)
    assert "<h1>Why?</h1><p>One. Two.</p>" in shown and "Three" not in shown and "One. Two. Three." in first
    assert "<li><b>a</b> first</li><li>second <code>b</code></li>" in second and "2 / 2" in second


def test_each_picture_or_table_has_a_slide_and_checks_imports_and_answers_have_none(tmp_path):
    table = "<table><tr><th>a</th></tr><tr><td>1 &lt; 2</td></tr></table>"
    cells = [
        "# T?", ("import os", {}), "## S\n\nLook.", ("show(1)", {"image/svg+xml": SVG, "text/unmarked": "a circle"}), "And next a table.",
        ("show(2)", {"text/html": table}), ("assert 1 == 1", {}), ("answer = ...\nlab.exercise(answer, 3)", {"text/unmarked": "not yet"}),
        ("x = 7\nx", {"text/unmarked": "7"}), "## In the package\n\n- files",
    ]  # fmt: skip
    title, picture, rows, value = sections(slides_of(notebook(tmp_path, *cells)))
    assert (
        'alt="a circle"' in picture and "data:image/svg+xml;base64," in picture and "show(1)" not in picture
    )
    assert "<p>And next a table.</p>" in rows and "<td>1 &lt; 2</td>" in rows and "assert" not in rows
    assert '<pre class="gave">7</pre>' in value and "lab.exercise" not in title + picture + rows + value


def exercises(text):
    return re.findall(r"^\*\*\d+\.\*\*", text, re.MULTILINE)


@every("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_exercise_of_a_notebook_has_a_slide_with_its_text_above_its_own_code(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    asked = [
        number
        for number, cell in enumerate(cells)
        for _ in exercises("".join(cell["source"]))
        if cell["cell_type"] == "markdown"
    ]
    shown = [re.sub("<aside.*?</aside>", "", each, flags=re.DOTALL) for each in sections(slides_of(path))]
    slides = [each for each in shown if "<h2>Exercises</h2>" in each]
    assert len(slides) == len(asked) and all(slide.count("<p><b>") == 1 for slide in slides)
    for number, (slide, at) in enumerate(zip(slides, asked, strict=True), start=1):
        assert f"<p><b>{number}.</b>" in slide
        before = [cell for cell in cells[asked[0] : at] if cell["cell_type"] == "code"]
        assert not any(str(element("code", "".join(cell["source"]))) in slide for cell in before)


def test_nothing_of_a_notebook_is_run_or_fetched(tmp_path):
    evil = '<script>alert(1)</script><img src="https://x.example/a.png" onerror="alert(1)">'
    outputs = {"text/html": f"<table><tr><td>{evil}</td></tr></table>{evil}"}
    cells = [
        f"# {evil}?",
        f"## S {evil}\n\n{evil} [a](javascript:alert(1)) ![b](https://x.example/b.png)",
        ("show()", outputs),
    ]
    cells += [
        ("more()", {"text/html": '<img alt="x" src="data:image/svg+xml;base64,AAAA" onload="alert(1)">'})
    ]
    page = slides_of(notebook(tmp_path, *cells))
    assert (
        page.count("<script>") == 1
        and references(page, beside=True) == ()
        and "javascript:" not in page
        and "onload" not in page
    )
    assert re.search(r"default-src &#x27;none&#x27;; img-src data:;.*script-src &#x27;sha256-", page)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"cells": 7}', '{"cells": [{"source": ""}]}', "[" * 99_999]
)
def test_a_file_that_is_no_notebook_is_named(tmp_path, text):
    (path := tmp_path / "b.ipynb").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"b\.ipynb"):
        slides_of(path)


def test_a_missing_notebook_and_one_without_anything_are_named(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        slides_of(tmp_path / "none.ipynb")
    with pytest.raises(BadInput, match="nothing to make slides of"):
        slides_of(notebook(tmp_path))


def test_marks_of_a_line_are_taken_off_or_become_markup():
    line = "**bold** and *thin* `a < b` in [a page](x.md), 2 * 3 * 4"
    assert unmarked(line) == "bold and thin a < b in a page, 2 * 3 * 4"
    assert inline(line) == "<b>bold</b> and <i>thin</i> <code>a &lt; b</code> in a page, 2 * 3 * 4"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_becomes_slides_that_fetch_nothing(path, tmp_path):
    (written,) = write_slides([path], tmp_path)
    page = written.read_text(encoding="utf-8")
    assert written.name == f"{path.stem}.slides.html" and references(page, beside=True) == ()
    assert 8 < len(sections(page)) < 60 and "**" not in re.sub(
        r"<(pre|code).*?</\1>|<script.*", "", page, flags=re.DOTALL
    )
