"""Notebooks as a course: a front page that says what is in them, and pages that live without Python and let
nothing else run.
"""

import json
import re
from pathlib import Path

import pytest
from support.installed import needs

from kgot_lab.errors import BadInput
from kgot_lab.viz.course import SHARED_SCRIPT, SHARED_STYLE, front_page, read_chapter, write_course
from kgot_lab.viz.exercises import sealed
from kgot_lab.viz.external_requests import find_external_requests, start_tags
from kgot_lab.viz.notebook_page import read_notebook

needs("nbconvert")
pytestmark = pytest.mark.extended

OPENING = """# Does *it* `help`?

People say <b>so</b>. Is it [true](x.md)?

More.

**You will see**

- one
  thing;
- another.

**Time:** 7 minutes."""
GRAPH = (
    "import kgot_lab as lab\nlab.show(lab.PropertyGraph.from_triples([('</script><b>Ada', 'knows', 'Bob')]))"
)
GROUPS = "lab.show([(f'a {n // 30}', 'has', f'b {n}') for n in range(180)], most=20)"
CHECKED = f"import kgot_lab as lab\nanswer = ...\nlab.exercise(answer, {sealed('two words')!r}, hint='look <again>')"
WORKED_OUT = "answer = ...\nlab.exercise(answer, 1 + 1)"


def notebook(folder, name, *sources):
    """A notebook whose first cell is text and whose others are code, never run."""
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": sources[0]}]
    for number, source in enumerate(sources[1:]):
        cell = {"cell_type": "code", "id": f"c{number}", "metadata": {}, "source": source}
        cells.append(cell | {"execution_count": None, "outputs": []})
    path = folder / name
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}), encoding="utf-8"
    )
    return path


def found(page, name):
    return [dict(tag.attributes) for tag in start_tags(page, svg_is_markup=False) if tag.name == name]


def data_in(page):
    """The data of the live views of a page."""
    tags = start_tags(page, svg_is_markup=False)
    return [json.loads(tag.content) for tag in tags if dict(tag.attributes).get("type") == "application/json"]


def policy_of(page):
    return next(meta["content"] for meta in found(page, "meta") if meta.get("http-equiv"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A course of two notebooks, run and alive."""
    folder = tmp_path_factory.mktemp("course")
    opening = OPENING + "\n[two](2.ipynb) [file](../data.txt)"
    one = notebook(folder, "1 one.ipynb", opening, GRAPH, CHECKED, WORKED_OUT, GROUPS)
    two = notebook(folder, "2.ipynb", "Without a heading.", "1 + 1")
    said = []
    pages = write_course([one, two], folder / "site", live=True, title="A <course>", tell=said.append)
    assert [line.split("/")[-1] for line in said] == ["1 one.ipynb", "2.ipynb"]
    return {path.name: path.read_text(encoding="utf-8") for path in pages} | {"folder": folder / "site"}


def test_a_notebook_says_what_it_is_about(tmp_path):
    path = notebook(tmp_path, "x.ipynb", OPENING)
    chapter = read_chapter(read_notebook(path), path)
    assert (chapter.title, chapter.minutes, chapter.sights) == ("Does it help?", 7, ("one thing", "another"))
    assert chapter.about == "People say <b>so</b>. Is it true?"
    bare = notebook(tmp_path, "y.ipynb", "")
    assert read_chapter(read_notebook(bare), bare).title == "y"


def test_the_front_page_leads_to_every_page_in_order_and_says_what_one_will_see(site):
    page = site["index.html"]
    assert [link["href"] for link in found(page, "a")] == ["1%20one.html", "2.html"]
    assert "Does it help?" in page and "People say &lt;b&gt;so&lt;/b&gt;. Is it true?" in page
    assert "7 min" in page
    assert "<li>one thing</li><li>another</li>" in page and "<title>A &lt;course&gt;</title>" in page
    assert "2 notebooks, about 7 minutes in all." in page and find_external_requests(page) == ()


def test_the_front_page_shows_the_largest_stored_picture_of_a_notebook_and_no_address():
    path, (inside, away) = (
        Path("one.ipynb"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "https://example.org/a.svg"),
    )
    html = [
        f'<img src="{address}" alt="">' for address in (inside[:-4], inside, away, "data:image/svg+xml,<svg>")
    ]
    v4 = pytest.importorskip("nbformat").v4
    outputs = [v4.new_output("display_data", {"text/html": each}) for each in html]
    chapter = read_chapter(v4.new_notebook(cells=[v4.new_code_cell(outputs=outputs)]), path)
    assert chapter.picture == inside and f'<img src="{inside}"' in front_page("A", "b", {"one.html": chapter})


def test_a_page_runs_the_shared_script_and_no_other_and_fetches_nothing_else(site):
    page = site["1 one.html"]
    policy = ["default-src 'none'", "style-src 'self' file: 'unsafe-inline'", "script-src 'self' file:"]
    assert policy_of(page).split("; ")[:3] == policy
    assert find_external_requests(page, beside=True) == (SHARED_STYLE, SHARED_SCRIPT)
    told = [script.get("src", script.get("type")) for script in found(page, "script")]
    assert told == ["application/json", "application/json", "application/json", SHARED_SCRIPT]
    names = {path.name for path in site["folder"].iterdir()}
    assert names == {"index.html", "1 one.html", "2.html", SHARED_STYLE, SHARED_SCRIPT}


def test_a_page_without_a_live_view_runs_no_script(site):
    assert "script-src" not in policy_of(site["2.html"]) and found(site["2.html"], "script") == []


def test_a_live_view_stands_after_the_picture_it_replaces_and_its_data_stay_data(site):
    page = site["1 one.html"]
    key = re.search(r'data-picture="([^"]+)"', page)[1]
    data = data_in(page)
    assert data[0]["stands_for"] == key and data[0]["view"] == "graph"
    assert {node["id"] for node in data[0]["nodes"]} == {"</script><b>Ada", "Bob"}
    assert page.index(f'data-picture="{key}"') < page.index('data-view="graph"')


def test_a_sealed_answer_is_checked_on_the_page_and_any_other_says_that_it_needs_python(site):
    page = site["1 one.html"]
    data = data_in(page)
    box = {"view": "answer", "seal": sealed("two words"), "hint": "look <again>"}
    assert box.items() <= data[1].items() and f'<pre data-picture="{data[1]["stands_for"]}">not yet' in page
    assert page.count("open the notebook in Jupyter to check yours") == 1


def test_groups_open_on_a_page(site):
    page = site["1 one.html"]
    data = data_in(page)
    groups = [node["id"] for node in data[2]["nodes"] if node.get("community")]
    assert len(groups) == 6 and set(data[2]["opens"]) == set(groups)
    inside = data[2]["kept"][data[2]["opens"][groups[0]]]
    assert inside["inside"] and len([node for node in inside["nodes"] if not node.get("community")]) > 10
    assert data[2]["alone"].startswith("On this page ") and data[0]["alone"] == ""


def test_links_lead_to_pages_beside_and_to_no_file_that_stays_behind(site):
    links = [link for link in found(site["1 one.html"], "a") if "anchor-link" not in link.get("class", "")]
    addresses = ["index.html", "2.html", None, "2.html", None, "index.html", "2.html"]
    assert [link.get("href") for link in links] == addresses
    assert "a file beside the notebook: ../data.txt" in [link.get("title") for link in links]


def test_a_notebook_that_fails_is_named_and_nothing_is_written(tmp_path):
    bad = notebook(tmp_path, "bad.ipynb", "# Bad", "raise ValueError('no such thing')")
    with pytest.raises(
        BadInput,
        match=r"bad\.ipynb does not run from its beginning: cell \d \(.*\): ValueError: no such thing",
    ):
        write_course([bad], tmp_path / "site", live=True)
    assert not (tmp_path / "site").exists()


def test_a_course_needs_notebooks_and_none_takes_the_name_of_the_front_page(tmp_path):
    with pytest.raises(BadInput, match="no notebook"):
        write_course([], tmp_path / "site")
    with pytest.raises(BadInput, match=r"two pages would become index\.html"):
        write_course([notebook(tmp_path, "index.ipynb", "# One")], tmp_path / "site")


@pytest.mark.parametrize(
    ("last", "into", "said"),
    [("none.ipynb", "site", "No such file"), ("one.ipynb", "one.ipynb", "which is a file")],
)
def test_a_missing_notebook_or_a_file_in_the_place_of_the_folder_is_told_before_anything_runs(
    tmp_path, last, into, said
):
    ran = []
    one = notebook(tmp_path, "one.ipynb", OPENING, "1 + 1")
    with pytest.raises(BadInput, match=said):
        write_course(dict.fromkeys([one, tmp_path / last]), tmp_path / into, live=True, tell=ran.append)
    assert ran == [] and not (tmp_path / "site").exists()
