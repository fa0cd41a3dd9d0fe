"""A notebook as a page: everything a reader needs is in it, nothing is fetched, and links lead where they
should.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from kgot_lab.errors import BadInput, NotInstalled
from kgot_lab.viz.course import write_course
from kgot_lab.viz.external_requests import find_external_requests, start_tags
from kgot_lab.viz.notebook_page import PageFrame, build_page, page_name, read_notebook

pytest.importorskip("nbconvert")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
VIEW = "application/vnd.jupyter.widget-view+json"


def text(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(source="", *outputs):
    cell = {"cell_type": "code", "metadata": {}, "source": source}
    return cell | {"execution_count": 1, "outputs": list(outputs)}


def shown(**data):
    data = {kind.replace("_", "/", 1): value for kind, value in data.items()}
    return {"output_type": "display_data", "metadata": {}, "data": data}


def said(words, name="stdout"):
    return {"output_type": "stream", "name": name, "text": words}


def notebook(folder, *cells, name="some.ipynb", **metadata):
    path = folder / name
    whole = {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def notebook_page(path, *, beside=(), folder=None):
    linked = {Path(other).resolve(): page_name(other) for other in beside}
    return build_page(read_notebook(path), path, PageFrame(linked, folder or path.parent))


def names_in(page):
    return [tag.name for tag in start_tags(page, svg_is_markup=False)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of this project's notebooks."""
    return write_course(NOTEBOOKS, tmp_path_factory.mktemp("site") / "pages")[1:]


@pytest.mark.extended
def test_every_notebook_of_this_project_becomes_a_page_that_fetches_nothing_and_runs_nothing(pages):
    assert [path.stem for path in pages] == [path.stem for path in NOTEBOOKS]
    for notebook, path in zip(NOTEBOOKS, pages, strict=True):
        page = path.read_text(encoding="utf-8")
        has_pictures = "svg+xml" in notebook.read_text(encoding="utf-8")
        assert find_external_requests(page, beside=True) == () and "script" not in names_in(page)
        assert "default-src 'none'" in page and page.startswith('<!DOCTYPE html>\n\n<html lang="en">')
        assert ("<svg" in page or "data:image/svg+xml" in page) == has_pictures and "<table" in page
        assert 'class="highlight hl-python"' in page


@pytest.mark.extended
def test_links_between_notebooks_lead_from_page_to_page_and_links_to_files_are_kept(pages):
    for path in pages:
        tags = start_tags(path.read_text(encoding="utf-8"), svg_is_markup=False)
        found = [dict(tag.attributes)["href"] for tag in tags if tag.name == "a"]
        local = [link for link in found if not link.startswith(("#", "http"))]
        assert local and all((path.parent / link).exists() for link in local)
        assert not any(link.endswith(".ipynb") for link in found)


def test_a_link_to_a_notebook_without_a_page_leads_to_the_notebook(tmp_path):
    (tmp_path / "a").mkdir()
    links = "[two](two%20x.ipynb#Part-1) [three](none.ipynb) [out](https://e.example/two.ipynb) [here](#Part)"
    one = notebook(tmp_path / "a", text(links), name="one.ipynb")
    two = notebook(tmp_path / "a", text("# Part 1"), name="two x.ipynb")
    alone = notebook_page(one, folder=tmp_path / "b")
    assert 'href="../a/two%20x.ipynb#Part-1"' in alone and 'href="none.ipynb"' in alone
    together = notebook_page(one, beside=[two], folder=tmp_path / "b")
    assert 'href="two%20x.html#Part-1"' in together
    assert 'href="https://e.example/two.ipynb"' in together and 'href="#Part"' in together


def test_headings_have_anchors_and_the_first_one_is_the_title(tmp_path):
    page = notebook_page(
        notebook(tmp_path, text("words first"), text("# What is `x` & *y*?\n## The words we use"))
    )
    assert "<title>What is x &amp; y?</title>" in page
    assert re.search(
        '<h2 id="The-words-we-use">The words we use<a class="anchor-link" href="#The-words-we-use">', page
    )
    assert "<title>plain</title>" in notebook_page(notebook(tmp_path, text("no heading"), name="plain.ipynb"))


def test_texts_code_and_outputs_stand_in_order(tmp_path):
    outputs = (
        said("printed <b>\x1b[31mred\x1b[0m"),
        said("warned", "stderr"),
        shown(text_plain="plain", text_html="<table><tr><td>cell</td></tr></table>"),
    )
    cells = (text("first words"), code("x = '<a>'", *outputs), text("last words"))
    page = notebook_page(notebook(tmp_path, *cells, {**text("raw"), "cell_type": "raw"}))
    places = [
        page.index(word)
        for word in ("first words", "&lt;a&gt;", "printed &lt;b&gt;", "warned", "<td>cell</td>", "last words")
    ]
    assert places == sorted(places) and ">plain<" not in page and ">raw" not in page
    assert 'class="ansi-red-fg"' in page


def test_pictures_are_in_the_page(tmp_path):
    drawing = "<svg xmlns='http://www.w3.org/2000/svg'><circle r='4'/></svg>"
    page = notebook_page(
        notebook(tmp_path, code("", shown(**{"image_svg+xml": drawing}), shown(image_png=PIXEL)))
    )
    assert '<circle r="4"' in page and f'src="data:image/png;base64,{PIXEL}"' in page
    assert 'alt="A picture made by the code above"' in page


def test_widgets_are_left_out_and_the_picture_before_them_stays(tmp_path):
    picture = shown(**{"image_svg+xml": "<svg><title>still</title></svg>"})
    data = {VIEW: {"model_id": "1"}, "text/plain": "GraphView()"}
    live = {"output_type": "display_data", "metadata": {}, "data": data}
    state = {"application/vnd.jupyter.widget-state+json": {"state": {"1": {}}}}
    page = notebook_page(notebook(tmp_path, code("show()", picture, live), widgets=state))
    assert "still" in page and "GraphView()" not in page and "widget" not in page


def test_scripts_in_outputs_are_not_shown_and_could_not_run(tmp_path):
    outputs = (
        shown(application_javascript="alert(1)", text_plain="a script"),
        shown(application_json={"a": 1}),
    )
    page = notebook_page(notebook(tmp_path, code("", *outputs)))
    assert "alert(1)" not in page and "a script" in page
    assert "script-src" not in page and "default-src 'none'" in page


def test_a_picture_beside_the_notebook_goes_into_the_page(tmp_path):
    (tmp_path / "dot.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>", encoding="utf-8")
    page = notebook_page(notebook(tmp_path, text("![dot](dot.svg)")))
    assert 'src="data:image/svg+xml;base64,' in page and "dot.svg" not in page


@pytest.mark.parametrize(
    "cell",
    [
        text("![x](https://e.example/a.png)"),
        text("<img src=//e.example/a>"),
        code("", shown(text_html="<script src='https://e.example/a.js'></script>")),
        code("", shown(**{"image_svg+xml": "<svg><image href='https://e.example/a'/></svg>"})),
        code("", shown(text_html="<meta http-equiv=refresh content='0;url=//e.example'>")),
    ],
)
def test_a_notebook_whose_page_would_fetch_is_refused_and_the_place_is_named(tmp_path, cell):
    with pytest.raises(BadInput, match=r"cell 2.*e\.example"):
        notebook_page(notebook(tmp_path, text("# One"), cell))


@pytest.mark.parametrize(
    "words",
    [
        "",
        "{",
        "[]",
        '{"cells": 3, "nbformat": 4}',
        '{"nbformat": 4, "nbformat_minor": 4, "metadata": {}}',
        "\udcff",
    ],
)
def test_a_damaged_notebook_is_refused(tmp_path, words):
    path = tmp_path / "bad.ipynb"
    path.write_bytes(words.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=r"bad\.ipynb"):
        notebook_page(path)


def test_a_missing_notebook_and_a_missing_attachment_are_refused(tmp_path):
    with pytest.raises(BadInput, match="that is there"):
        notebook_page(tmp_path / "none.ipynb")
    with pytest.raises(BadInput, match="damaged"):
        notebook_page(notebook(tmp_path, text("![x](attachment:none.png)")))


def test_no_page_is_written_when_one_cannot_be_made(tmp_path):
    good, site = notebook(tmp_path, text("# Good"), name="good.ipynb"), tmp_path / "site"
    (tmp_path / "other").mkdir()
    for bad in (tmp_path / "none.ipynb", notebook(tmp_path / "other", text("# Also"), name="good.ipynb")):
        with pytest.raises(BadInput):
            write_course([good, bad], site)
    assert not site.exists() and page_name(good) == "good.html"


def test_the_description_of_a_picture_cannot_end_its_tag(tmp_path):
    picture = {**shown(image_png=PIXEL), "metadata": {"image/png": {"alt": '"><img src=//e.example>'}}}
    page = notebook_page(notebook(tmp_path, code("", picture)))
    assert names_in(page).count("img") == 1


def test_without_nbconvert_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "nbconvert", None)
    with pytest.raises(NotInstalled, match=r"nbconvert: pip install 'kgot_lab\[lab\]'"):
        notebook_page(notebook(tmp_path, text("# One")))


def test_a_file_elsewhere_does_not_go_into_the_page(tmp_path):
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "inside").mkdir()
    with pytest.raises(BadInput, match=r"secret\.txt"):
        notebook_page(notebook(tmp_path / "inside", text("![x](../secret.txt)")))


def test_a_formula_is_shown_as_text(tmp_path):
    page = notebook_page(notebook(tmp_path, text("A rank is $1 / (k + r) < 1$, and\n\n$$\\sum_i x_i$$")))
    assert "$1 / (k + r) &lt; 1$" in page and "$$\\sum_i x_i$$" in page and "script" not in names_in(page)
