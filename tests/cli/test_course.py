"""The commands of somebody who teaches: marks from files handed in."""

import json
from pathlib import Path

from typer.testing import CliRunner

from kgot_lab.cli.app import app
from kgot_lab.draw.attempts import digest_of


def handed(folder, name, **right):
    tried = [{"exercise": each, "answer": "x", "right": yes, "tries": 1} for each, yes in right.items()]
    content = {"handed in": 1, "name": name, "attempts": tried}
    path = folder / f"{name}.json"
    path.write_text(json.dumps({**content, "digest": digest_of(content)}), encoding="utf-8")
    return str(path)


def test_marks_say_who_solved_what_and_that_they_are_no_proof(tmp_path):
    out = tmp_path / "marks.csv"
    told = CliRunner().invoke(app, ["marks", handed(tmp_path, "Ada", a=True, b=False), handed(tmp_path, "Ida", b=True), "--csv", str(out)])
    assert told.exit_code == 0 and "Ada" in told.stdout and "not yet" in told.stdout and "not proof against cheating" in told.stderr
    assert out.read_text(encoding="utf-8").splitlines() == ["name,right,a,b", "Ada,1,try 1,not yet", "Ida,1,,try 1"]


def test_a_damaged_file_is_named_and_the_others_are_shown(tmp_path):
    (broken := tmp_path / "broken.json").write_text("{", encoding="utf-8")
    told = CliRunner().invoke(app, ["marks", str(broken), handed(tmp_path, "Ada", a=True)])
    assert "Ada" in told.stdout and "broken.json is left out" in told.stderr
    assert told.exit_code == 1 and "1 file of 2" in str(told.exception)


def test_slides_are_written_beside_each_other(tmp_path):
    tour = Path(__file__).parents[2] / "notebooks" / "00_tour.ipynb"
    told = CliRunner().invoke(app, ["slides", str(tour), "--folder", str(tmp_path)])
    assert told.exit_code == 0 and "00_tour.slides.html" in told.stdout and (tmp_path / "00_tour.slides.html").exists()
