"""The ten plots of a run of questions, drawn from results and traces; a set without levels, steps, tools or
grades says so.
"""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from support.every import every
from support.saved_run import save_run

from kgot_lab.benchmark.questions.question_result import QuestionResult, add_grade, append_result
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.grading import Grade
from kgot_lab.loop.events import Asked
from kgot_lab.loop.state import ledger
from kgot_lab.types import Message, Prompt, Usage
from kgot_lab.viz.plots.questions import (
    TEN_PLOTS,
    category_success,
    graded_outcomes,
    graded_success,
    outcomes_by_level,
    role_costs,
    save_ten_plots,
    steps_of_people,
    success_by_level,
    tool_category,
    tool_choice_flow,
    tool_coverage,
    tool_match,
    tool_usage,
)

WEB, CODE = ("A web browser", "a search engine"), ("Python",)
RUN = [
    QuestionResult("a", correct=True, level="level 1", human_steps=2, human_tools=WEB, tools={"search": 2}),
    QuestionResult(
        "b",
        correct=False,
        close=True,
        level="level 1",
        human_steps=4,
        human_tools=(*WEB, *CODE),
        tools={"search": 1},
    ),
    QuestionResult(
        "c",
        correct=False,
        out_of_steps=True,
        level="level 2",
        human_steps=4,
        human_tools=CODE,
        tools={"search": 1},
    ),
    QuestionResult(
        "d",
        correct=True,
        outcome="unsure",
        out_of_steps=False,
        level="level 2",
        human_steps=4,
        human_tools=CODE,
        tools={"python": 1, "search": 1},
    ),
    QuestionResult(
        "e",
        error="the model did not answer",
        level="level 2",
        human_steps=9,
        human_tools=("a camera for photos",),
    ),
]
BARE = [QuestionResult("a", correct=True), QuestionResult("b", correct=False)]
GRADED = [
    add_grade(QuestionResult(str(number), type="Art" if number % 2 else "Sports"), Grade(grade, "A"), "judge")
    for number, grade in enumerate(["correct"] * 6 + ["incorrect"] * 2 + ["not attempted"] * 2)
]


def asked(role: str, cost: float = 0.01) -> Asked:
    prompt = Prompt((Message("user", role),))
    return Asked(role=role, model="m", prompt=prompt, reply="x", usage=Usage(900, 100, 2.0, cost))


def test_a_close_call_is_shown_and_not_counted_as_success():
    drawn = success_by_level(RUN)
    assert [(row["group"], row["questions"], row["correct"], row["close calls"]) for row in drawn.numbers] == [
        ("level 1", 2, 0.5, 1), ("level 2", 3, 0.333333, 0), ("all", 5, 0.4, 1),
    ]  # fmt: skip
    assert all(row["low"] < row["correct"] < row["high"] for row in drawn.numbers) and "1 of 2" in drawn.svg


def test_steps_of_people_are_counted_for_all_and_for_correct_questions():
    assert [tuple(row.values()) for row in steps_of_people(RUN).numbers] == [(2, 1, 1), (4, 3, 1), (9, 1, 0)]


def test_grades_are_drawn_with_the_five_measures():
    assert (
        "correct .600, not attempted .200, incorrect .200, correct given attempted .750, F .667"
        in graded_outcomes(GRADED).alt
    )
    assert [row["group"] for row in graded_success(GRADED).numbers] == ["Art", "Sports", "all"]


@every(
    ("tool", "kind"),
    [
        ("search", "search and web"), ("ask_search_agent", "search and web"), ("wikipedia", "search and web"),
        ("A web browser", "search and web"), ("python", "code and numbers"), ("a calculator (or by hand)", "code and numbers"),
        ("inspect_file", "files"), ("extract_zip", "files"),
        ("read_attachment", "files"), ("Excel", "files"), ("image_question", "images"), ("Image recognition tools", "images"),
        ("YouTube", "sound and video"), ("llm_query", "language model"), ("patience", "other"),
    ],
)  # fmt: skip
def test_a_tool_of_ours_and_one_of_a_persons_belong_to_a_kind(tool, kind):
    assert tool_category(tool) == kind


def test_coverage_is_the_share_of_the_kinds_a_person_used():
    assert [tool_coverage(result) for result in RUN] == [1.0, 0.5, 0.0, 1.0, 0.0]
    assert tool_coverage(BARE[0]) is None


def test_tools_are_matched_followed_to_success_and_counted_once_a_question():
    assert tool_match(RUN).numbers[-1] == {
        "group": "all", "questions": 5, "all of them": 2, "three quarters": 0, "half": 1, "a quarter": 0, "less": 2,
    }  # fmt: skip
    flows = {(row["tools"], row["answer"]): row["questions"] for row in tool_choice_flow(RUN).numbers}
    assert flows == {("all of them", "correct"): 2, ("half", "not correct"): 1, ("less", "not correct"): 2}
    uses = {row["tool"]: row["questions"] for row in tool_usage(RUN).numbers}
    assert uses == {"search": 4, "python": 1}
    kinds = {
        row["kind of tool"]: (row["correct"], row["not correct"]) for row in category_success(RUN).numbers
    }
    assert kinds == {"code and numbers": (1, 2), "search and web": (1, 1), "images": (0, 1)}


def test_costs_are_by_role_with_their_rates():
    drawn = role_costs(ledger([asked("vote"), asked("vote"), asked("write", 0.05)]))
    rows = {row["role"]: row for row in drawn.numbers}
    assert rows["vote"]["calls"] == 2 and rows["vote"]["tokens a second"] == 500
    assert rows["write"]["US dollars a million tokens"] == 50
    assert "3 calls" in drawn.alt


@every(
    ("draw", "said"),
    [
        (success_by_level, "no levels"), (outcomes_by_level, "no levels"), (steps_of_people, "no steps"), (graded_success, "no grades"),
        (graded_outcomes, "no grades"), (tool_match, "no tools"), (tool_choice_flow, "no tools"), (category_success, "no tools"),
        (tool_usage, "no tool was used"),
    ],
)  # fmt: skip
def test_what_a_set_does_not_tell_is_said(draw, said):
    assert said in draw(BARE).alt


@pytest.mark.extended
def test_each_plot_is_a_picture_and_a_summary_in_the_folder_of_the_run(tmp_path):
    for result in (*RUN, *GRADED):
        append_result(tmp_path / "results.jsonl", result)
    save_run([asked("vote")], tmp_path / "traces" / "a.jsonl")
    drawn = [path for path, _ in save_ten_plots(tmp_path)]
    assert [path.stem for path in drawn] == list(TEN_PLOTS) and len(drawn) == 10
    for path in drawn:
        summary = json.loads(path.with_suffix(".json").read_text())
        assert path.read_text().startswith("<svg") and summary["plot"] == path.stem and summary["numbers"]
        assert summary["told"]


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_other_kinds_of_pictures_can_be_had(tmp_path, kind):
    append_result(tmp_path / "results.jsonl", RUN[0])
    assert all(
        path.suffix == f".{kind}" and path.stat().st_size > 1000 for path, _ in save_ten_plots(tmp_path, kind)
    )


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no question results"):
        list(save_ten_plots(tmp_path))


def test_every_question_ends_in_one_way():
    row = outcomes_by_level(RUN).numbers[-1]
    ends = {"correct": 1, "correct, forced": 1, "close call": 1, "wrong, forced": 1, "error": 1, "wrong": 0}
    assert {name: row[name] for name in ends} == ends and row["questions"] == 5


@pytest.mark.extended
def test_the_results_are_not_changed_by_being_drawn():
    before = [asdict(result) for result in RUN]
    for draw in TEN_PLOTS.values():
        draw(RUN, ledger([]))
    assert [asdict(result) for result in RUN] == before
