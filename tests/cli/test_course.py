"""The commands of somebody who teaches: marks from files handed in."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kgot_lab.cli.app import app
from kgot_lab.errors import BadInput
from kgot_lab.viz.exercises import content_digest


def handed(folder, name, **right):
    tried = [{"exercise": each, "answer": "x", "right": yes, "tries": 1} for each, yes in right.items()]
    content = {"handed in": 1, "name": name, "attempts": tried}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**content, "digest": content_digest(content)}), encoding="utf-8")
    return str(path)


def test_marks_say_who_solved_what_and_that_they_are_no_proof(tmp_path):
    out = tmp_path / "marks.csv"
    told = CliRunner().invoke(
        app,
        [
            "marks",
            handed(tmp_path, "Ada", a=True, b=False),
            handed(tmp_path, "Ida", b=True),
            "--csv",
            str(out),
        ],
    )
    assert told.exit_code == 0
    assert "Ada" in told.stdout
    assert "not yet" in told.stdout
    assert "not proof against cheating" in told.stderr
    assert out.read_text(encoding="utf-8").splitlines() == [
        "name,right,a,b",
        "Ada,1,try 1,not yet",
        "Ida,1,,try 1",
    ]


def test_a_damaged_file_is_named_and_the_others_are_shown(tmp_path):
    (broken := tmp_path / "broken.json").write_text("{", encoding="utf-8")
    told = CliRunner().invoke(app, ["marks", str(broken), handed(tmp_path, "Ada", a=True)])
    assert "Ada" in told.stdout and "broken.json is left out" in told.stderr
    assert told.exit_code == 1 and "1 file of 2" in str(told.exception)


def test_a_file_given_twice_counts_once_and_says_so(tmp_path):
    ada = Path(handed(tmp_path, "Ada", a=True))
    told = CliRunner().invoke(
        app, ["marks", str(ada), str(ada), str(ada.parent / "." / ".." / ada.parent.name / ada.name)]
    )
    assert told.exit_code == 0
    assert "2 files given again, and counted once" in told.stderr
    assert told.stdout.count("Ada") == 1


NOT_THERE = {
    "none.json": "there is no such file",
    "*.txt": "no file fits it",
    "": "it is a folder; name the files in it",
}


@pytest.mark.parametrize(("name", "said"), NOT_THERE.items())
def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path, name, said):
    alone = CliRunner().invoke(app, ["marks", str(tmp_path / name)])
    assert alone.exit_code == 1 and isinstance(alone.exception, BadInput)
    assert str(alone.exception).endswith(said)
    with_ada = CliRunner().invoke(app, ["marks", str(tmp_path / name), handed(tmp_path, "Ada", a=True)])
    assert said in with_ada.stderr and "Ada" in with_ada.stdout and "1 file of 2" in str(with_ada.exception)


def test_slides_are_written_beside_each_other(tmp_path):
    tour = Path(__file__).parents[2] / "notebooks" / "00_tour.ipynb"
    told = CliRunner().invoke(app, ["slides", str(tour), "--folder", str(tmp_path)])
    assert told.exit_code == 0
    assert "00_tour.slides.html" in told.stdout
    assert (tmp_path / "00_tour.slides.html").exists()
