"""What is handed in: one small file that says what was tried, and marks from files that anybody could have
written.
"""

import json

import pytest

from kgot_lab.errors import BadInput
from kgot_lab.viz import exercises
from kgot_lab.viz.exercises import collect_marks, content_digest, exercise, hand_in, read_hand_in, sealed


@pytest.fixture(autouse=True)
def a_session_of_its_own(monkeypatch):
    monkeypatch.setattr(exercises, "_attempts", {})
    monkeypatch.setattr(exercises, "_exercise_keys", {})


def tried(*answers, name="10.1"):
    for answer in answers:
        exercise(answer, sealed("loom"), hint="count again", name=name)


def test_tries_are_counted_to_the_first_right_answer_and_dots_and_repetitions_are_none(tmp_path):
    tried(..., "card", "card", "wheel", ..., "loom", "card")
    tried("card", name="10.2")
    (first, second) = hand_in("Ada", folder=tmp_path).attempts
    assert (first.exercise, first.answer, first.right, first.tries) == ("10.1", "loom", True, 3)
    assert (second.right, second.tries) == (False, 1)


def test_none_is_no_try_unless_it_is_right(tmp_path):
    tried(None, "card", None, "loom")
    exercise(None, sealed(None), name="10.2")
    assert [(attempt.answer, attempt.tries) for attempt in hand_in("Ada", folder=tmp_path).attempts] == [
        ("loom", 2),
        ("None", 1),
    ]


def test_two_exercises_of_one_name_are_refused_even_with_dots_and_one_run_again_is_not():
    tried("card", ..., "loom")
    with pytest.raises(BadInput, match=r"two exercises are called '10\.1'"):
        exercise(..., sealed("wheel"), hint="count again", name="10.1")
    with pytest.raises(BadInput, match=r"two exercises are called '10\.1'"):
        exercise("wheel", lambda answer: True, hint="another", name="10.1")


def test_the_file_says_who_and_what_and_nothing_of_the_computer(tmp_path):
    tried("loom")
    handed = hand_in("Ada Lovelace", folder=tmp_path)
    told = json.loads(handed.path.read_text(encoding="utf-8"))
    assert handed.path.name == "ada-lovelace_10.json"
    assert set(told) == {"handed in", "name", "attempts", "note", "digest"}
    assert "no proof" in told["note"] and str(tmp_path) not in handed.path.read_text(encoding="utf-8")
    assert repr(handed).splitlines() == [
        "ada-lovelace_10.json: Ada Lovelace, 1 of 1 exercise right",
        "  10.1  right, 1 try",
    ]
    assert read_hand_in(handed.path).attempts == handed.attempts


def test_a_file_that_is_there_is_written_again_only_when_one_says_so(tmp_path):
    tried("card")
    hand_in("Ada", folder=tmp_path)
    tried("loom")
    with pytest.raises(BadInput, match="again=True"):
        hand_in("Ada", folder=tmp_path)
    assert hand_in("Ada", folder=tmp_path, again=True).attempts[0].right


@pytest.mark.parametrize("name", ["../../etc/passwd", "/root/x", "..\\..\\x", "a/../../b", "CON: \x1b[2J"])
def test_a_name_with_parts_of_a_path_leads_nowhere_else(tmp_path, name):
    tried("loom")
    (folder := tmp_path / "mine").mkdir()
    handed = hand_in(name, folder=folder)
    assert handed.path.parent == folder and [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "\x1b" not in repr(handed)


@pytest.mark.parametrize("name", ["", "  ", "..", "/", "x" * 81, "\u202e", 7])
def test_what_is_no_name_is_refused(tmp_path, name):
    tried("loom")
    with pytest.raises(BadInput, match="name"):
        hand_in(name, folder=tmp_path)


def test_nothing_tried_is_nothing_to_hand_in(tmp_path):
    tried(...)
    exercise("loom", "loom")  # one without a name counts for nobody
    with pytest.raises(BadInput, match="no exercise was tried"):
        hand_in("Ada", folder=tmp_path)


def test_whatever_is_answered_can_be_handed_in(tmp_path):
    endless = []
    endless.append(endless)
    for number, answer in enumerate(
        [endless, 10**5000, object(), "\x1b[31m" * 99, {"a", 1}, {"k": "/root/secret"}, list(range(999)), len]
    ):
        exercise(answer, 7, name=f"20.{number}")
    text = hand_in("Ada", folder=tmp_path).path.read_text(encoding="utf-8")
    assert len(text) < 4000 and " at 0x" not in text and "/root" not in text


def handed(folder, name, *names, file=None):
    exercises._attempts.clear()
    for each in names:
        tried("card", "loom", name=each)
    done = hand_in(name, folder=folder, again=True)
    return read_hand_in(done.path.rename(folder / file) if file else done.path)


def test_marks_are_a_line_for_each_reader_and_a_column_for_each_exercise(tmp_path):
    ada, ida = handed(tmp_path, "Ada", "10.1", "10.2"), handed(tmp_path, "Ida", "10.2")
    table = collect_marks([ida, ada]).table()
    assert table.columns == ("name", "right", "10.1", "10.2")
    assert table.rows == (("Ada", "2", "try 2", "try 2"), ("Ida", "1", "", "try 2"))


def test_files_of_one_name_are_put_together_only_where_they_are_about_other_exercises(tmp_path):
    tour, steps = handed(tmp_path, "Ada", "00.1"), handed(tmp_path, "Ada", "10.1")
    assert collect_marks([tour, steps]).rows() == [("Ada", "2", "try 2", "try 2")]
    twice = collect_marks(
        [handed(tmp_path, "Ada", "00.1", file="a.json"), handed(tmp_path, "Ada", "00.1", file="b.json")]
    )
    assert [row[0] for row in twice.rows()] == ["Ada (a.json)", "Ada (b.json)"]
    (elsewhere := tmp_path / "x").mkdir()
    assert len(collect_marks([handed(tmp_path, "Ada", "00.1"), handed(elsewhere, "Ada", "00.1")]).rows()) == 2


def test_a_spreadsheet_gets_no_formula(tmp_path):
    assert "'=HYPERLINK" in collect_marks([handed(tmp_path, '=HYPERLINK("x")', "00.1")]).csv()


def sealed_up(content):
    return json.dumps({**content, "digest": content_digest(content)})


ATTEMPT = {"exercise": "00.1", "answer": "x", "right": True, "tries": 1}
GOOD = {"handed in": 1, "name": "Ada", "attempts": [ATTEMPT]}
BAD = {
    "cut": sealed_up(GOOD)[:40],
    "changed": sealed_up(GOOD).replace("Ada", "Ida"),
    "another file": "[1, 2]",
    "not text": b"\xff\xfe\x00",
    "deep": "[" * 100_000,
    "a future version": sealed_up({**GOOD, "handed in": 2}),
    "no name": sealed_up({**GOOD, "name": None}),
    "no attempts": sealed_up({**GOOD, "attempts": 7}),
    "a strange attempt": sealed_up(
        {**GOOD, "attempts": [{"exercise": "00.1", "answer": "x", "right": "yes", "tries": 1}]}
    ),
    "minus one try": sealed_up(
        {**GOOD, "attempts": [{"exercise": "00.1", "answer": "x", "right": True, "tries": -1}]}
    ),
    "an exercise twice": sealed_up({**GOOD, "attempts": GOOD["attempts"] * 2}),
    "too large": " " * 1_000_001,
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_damaged_file_is_named_and_left_out(tmp_path, text):
    path = tmp_path / "ada.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=r"ada\.json is left out"):
        read_hand_in(path)


def test_a_name_in_a_file_cannot_command_a_terminal(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(sealed_up({**GOOD, "name": "A\x1b[2J\n" + "x" * 500}), encoding="utf-8")
    name = read_hand_in(path).name
    assert "\x1b" not in name and "\n" not in name and len(name) <= 120


def test_a_list_with_a_number_in_it_is_another_answer_than_the_number(tmp_path):
    for number, answer in enumerate(([5], (5, "a"), {"b", 5}, [[5]], 5)):
        exercise(answer, len, name=f"10.{number}")
    exercise([5], 5, name="10.9")
    exercise(5, 5, name="10.9")
    handed = hand_in("Ada", folder=tmp_path).attempts
    assert [each.answer for each in handed] == ["[5]", "(5, a)", "{5, b}", "[[5]]", "5", "5"]
    assert handed[-1].tries == 2


def test_names_of_any_script_are_names(tmp_path):
    tried("loom")
    assert [hand_in(name, folder=tmp_path).path.name for name in ("José Ñ", "王小明", "O'Brien")] == [
        "josé-ñ_10.json", "王小明_10.json", "o-brien_10.json",
    ]  # fmt: skip
