"""Every notebook is built alike: a question, the same sections, few imports, small cells, exercises that do
no harm, and the way on.
"""

import ast
import json
import re
import runpy
from pathlib import Path
from statistics import median

import pytest
from support.exercise_cells import Exercises, exercise_cells

import kgot_lab as lab
from benchmarks.notebooks.lesson_bars import BARS, PACKAGES, lesson_figures, packages
from kgot_lab.errors import BadInput
from kgot_lab.io.files import bundled_path

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECTIONS = (
    "## The words we use", "## The smallest case", "## One step at a time", "## At real size",
    "## What it shows, and what it does not", "## Try it", "### Exercises", "## In the package", "**Next:**",
)  # fmt: skip
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path, kind):
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [("".join(cell["source"]), cell.get("outputs", [])) for cell in found if cell["cell_type"] == kind]


def words(path):
    return "\n\n".join(source for source, _ in cells(path, "markdown"))


def size(source):
    return sum(bool(line.strip()) for line in source.splitlines())


def test_each_notebook_has_a_number_of_its_own():
    numbers = [path.name[:2] for path in NOTEBOOKS]
    assert len(set(numbers)) == len(numbers) > 8 and all(number.isdecimal() for number in numbers)


@each_notebook
def test_the_title_asks_and_the_sections_stand_in_their_order(path):
    said = words(path)
    assert said.startswith("# ") and said.splitlines()[0].endswith("?")
    assert "**You will see**" in said and "**Time:**" in said and "**Needs:**" in said
    places = [said.find(section) for section in SECTIONS]
    assert -1 not in places and places == sorted(places), dict(zip(SECTIONS, places, strict=True))


@each_notebook
def test_a_notebook_imports_the_package_and_its_neighbours_and_no_benchmark(path):
    tree = ast.parse("\n".join(source for source, _ in cells(path, "code")))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = {name for name in names if name.split(".")[0] == "kgot_lab"}
    assert "kgot_lab" in ours and len(ours) <= 8, ours
    assert "benchmarks" not in {name.split(".")[0] for name in names}


def test_what_stands_beside_the_notebooks_imports_no_benchmark():
    assert [path for path in FOLDER.rglob("*.py") if "benchmarks." in path.read_text(encoding="utf-8")] == []


@each_notebook
def test_cells_and_functions_are_short_and_words_outweigh_code(path):
    code = [source for source, _ in cells(path, "code")]
    assert median(map(size, code)) <= 3 and max(map(size, code)) <= 15
    functions = [
        node for source in code for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    ]
    assert all(node.end_lineno - node.lineno < 10 for node in functions)
    assert len(words(path).split()) >= 8 * sum(map(size, code))
    assert not [
        source for source in code if re.search(r"^\s*(%|!)|\bsys\.path|\bprint\(", source, re.MULTILINE)
    ]


@each_notebook
def test_no_cell_finds_a_file_by_the_folder_it_is_run_in(path):
    code = "\n".join(source for source, _ in cells(path, "code"))
    assert "../" not in code and not re.search(r"""\b(Path|open)\(["']""", code)


def test_the_results_that_notebooks_read_are_found_from_any_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    named = re.findall(
        r'bundled_file\("(benchmarks/[^"]+)"\)',
        "\n".join(source for path in NOTEBOOKS for source, _ in cells(path, "code")),
    )
    assert len(named) > 5 and all(bundled_path(name).exists() for name in named)
    # as where the package is installed without its checkout
    monkeypatch.setattr("kgot_lab.io.files._CHECKOUT", tmp_path)
    with pytest.raises(
        BadInput, match="comes with a checkout of the project and not with the installed package: clone it"
    ):
        bundled_path(named[0])


@each_notebook
def test_exercises_left_open_say_not_yet_and_nothing_of_the_answer(path):
    asked = [(source, outputs) for source, outputs in cells(path, "code") if "lab.exercise(" in source]
    assert 2 <= len(asked) <= 3
    for source, outputs in asked:
        assert source.startswith("answer = ...")
        assert ["".join(output["data"]["text/plain"]).split(":")[0] for output in outputs] == ["not yet"]


@each_notebook
def test_every_link_leads_to_a_file(path):
    links = re.findall(r"\]\(([^)#]+)\)", words(path))
    assert links and [link for link in links if "://" not in link and not (FOLDER / link).exists()] == []


def test_the_way_on_goes_through_all_notebooks_in_their_order():
    following = [
        re.search(r"\*\*Next:\*\*.*?\(([^)]+)\)", words(path), re.DOTALL).group(1) for path in NOTEBOOKS
    ]
    assert following == [*(path.name for path in NOTEBOOKS[1:]), "../README.md"]


@each_notebook
def test_outputs_hold_no_folder_of_a_computer_and_no_place_in_memory(path):
    shown = json.dumps([outputs for _, outputs in cells(path, "code")])
    assert not re.search(r"\bat 0x[0-9a-f]{6}|/home/|/root/|/Users/|/tmp/", shown)


# --------------------------------------------------------------------------


MINUTES = runpy.run_path(str(FOLDER.parent / "benchmarks" / "notebooks" / "lesson_minutes.py"))
SOLUTIONS = (FOLDER.parent / "docs" / "solutions.md").read_text(encoding="utf-8")
SOLVED = dict(re.findall(r"^- \*\*(\d\d\.\d)\*\* ``?([^\n]+?)``?: ", SOLUTIONS, re.MULTILINE))
WRONG = (
    -987654.321,
    "no such answer",
    ["no such answer"],
    {"no such": "answer"},
    lab.Diff(),
    None,
    object(),
    lambda *_: "no such answer",
    len,
)


@each_notebook
def test_the_minutes_that_a_notebook_states_are_those_of_its_words_cells_and_exercises(path):
    told = MINUTES["lesson"](path)
    assert told.reading <= told.stated <= 1.5 * told.reading + 5, (
        f"set them with python -m benchmarks.notebooks.lesson_minutes --set: {told}"
    )


@each_notebook
def test_a_lesson_is_no_longer_than_its_bars_and_imports_no_module_of_the_package(path):
    exceeded = {name for name, value in lesson_figures(path).items() if value > BARS[name]}
    assert not exceeded, exceeded


def test_each_package_of_the_card_is_used_in_a_lesson():
    assert {*PACKAGES} == {name for path in NOTEBOOKS for name in packages(path)}


@each_notebook
def test_each_exercise_has_a_name_in_order_a_hint_and_one_solution(path):
    asked = list(exercise_cells(path))
    assert [each.name for each in asked] == [f"{path.name[:2]}.{i}" for i in range(1, len(asked) + 1)]
    assert all(each.hint for each in asked) and {each.name for each in asked} <= set(SOLVED)
    assert not [each.name for each in asked if SOLVED[each.name].strip("\"'") in each.hint.split()]


def test_there_is_a_solution_to_each_exercise_and_none_more():
    assert set(SOLVED) == {cell.name for path in NOTEBOOKS for cell in exercise_cells(path)}


@pytest.mark.extended
@each_notebook
def test_wrong_answers_of_any_kind_are_not_yet_with_the_hint_and_the_solutions_are_right(path):
    exercises = Exercises(path)
    for cell in exercises.cells:
        said = {repr(wrong)[:20]: exercises.say(cell, wrong) for wrong in WRONG}
        assert [
            kind
            for kind, told in said.items()
            if not told.startswith("not yet: ") or not told.endswith(cell.hint)
        ] == []
        assert "right" not in {exercises.say(cell, True), exercises.say(cell, False)} or SOLVED[
            cell.name
        ] in ("True", "False")
        assert exercises.say(cell, ...).startswith("not yet: replace the three dots"), "three dots start over"
        assert exercises.say(cell, exercises.value(SOLVED[cell.name])) == "right", cell.name


@each_notebook
def test_a_stored_notebook_carries_no_widget(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert "widgets" not in notebook["metadata"] and "application/vnd.jupyter.widget-view" not in json.dumps(
        [outputs for _, outputs in cells(path, "code")]
    )
