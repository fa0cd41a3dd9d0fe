"""Where answers were lost: each stage on a run of few events, the file that keeps the stages, and the table
made of it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from support.birthplaces import ASKED, SETS, TINY, reader

from benchmarks.graph_pays.losses import (
    LOSSES,
    collect_losses,
    find_loss,
    load_losses,
    losses_grid,
    save_losses,
)
from benchmarks.graph_pays.report import write_report
from benchmarks.questions.lost_answers import stage_of_loss
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, ComparisonSlice, system_folder
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.question_result import QuestionResult, append_result
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS
from kgot_lab.errors import BadInput
from kgot_lab.loop.events import Answered, Asked, Parsed, ToolCall, ToolReturned
from kgot_lab.loop.modes.paths.reading import answer_prompt
from kgot_lab.types import Document

LOVELACE = ASKED[0]
WHICH = replace(LOVELACE, text="Who was born first, Ada Lovelace or Marie Curie?", answer="Ada Lovelace")


def run(
    question=LOVELACE, found=LOVELACE.gold, shown="Ada Lovelace was born in London.", tried=(), answer="Paris"
):
    """A run in which some passages were found, a text was shown, and some answers were tried, each with why
    it was refused.
    """
    yield ToolReturned(call=ToolCall("search"), text="", sources=tuple(Document(id, "") for id in found))
    yield Asked(role="path", model="m", prompt=answer_prompt(question.text, shown), reply=answer)
    yield from (Parsed(text=text, problem=problem) for text, problem in tried)
    yield Answered(text=answer, forced=False)


def stage(question=LOVELACE, f1=0.0, em=0.0, error="", **happened):
    return find_loss(
        question, tuple(run(question, **happened)), QuestionResult(question.id, em=em, f1=f1, error=error)
    )


def test_each_wrong_answer_is_lost_at_one_stage_and_the_first_that_fits_counts():
    told = {
        "right": stage(em=1.0, f1=1.0),
        "nearly right": stage(f1=0.5),
        "an error": stage(error="the model is away"),
        "passages not all found": stage(found=()),
        "not shown": stage(shown="Ada Lovelace was a mathematician."),
        "refused": stage(tried=[("London", "it does not stand in the sentences")]),
        "not chosen": stage(tried=[("london", ""), ("Paris", "")]),
        "misread": stage(tried=[("Paris", "")]),
        "compared wrongly": stage(WHICH),
    }
    assert list(told) == list(LOSSES) and all(name == found for name, found in told.items()), told


def test_the_loop_and_the_systems_share_what_comes_before_reading():
    for happened in ({"em": 1.0, "f1": 1.0}, {"f1": 0.6}, {"found": ()}):
        scores = {name: happened.get(name, 0.0) for name in ("f1", "em")}
        events = tuple(run(found=happened.get("found", LOVELACE.gold)))
        assert stage_of_loss(LOVELACE, events, **scores) == stage(**happened)


# -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A comparison whose model says Paris to whatever it is asked, of two sets that the package is made to
    know.
    """
    for name, questions in SETS.items():
        monkeypatch.setitem(BUNDLED_SETS, name, lambda questions=questions: questions)
    chosen = ComparisonSlice(["closed-book", "rag", "gold"])
    assert list(ComparisonRun(TINY, tmp_path / "out", reader(lambda _: "Paris")).answer_missing(chosen))
    return tmp_path / "out"


def table(folder):
    findings = ComparisonResults.load(folder)
    return {
        row[0].text: [cell.text for cell in row[1:]]
        for row in losses_grid(findings, collect_losses(folder, findings)).rows
    }


def test_what_is_known_stays_known_when_the_traces_are_gone(folder):
    findings = ComparisonResults.load(folder)
    save_losses(folder, collect_losses(folder, findings))
    before = table(folder)
    shutil.rmtree(system_folder(folder, "first", "gold") / "traces")
    assert table(folder) == before
    for path in folder.rglob("traces"):
        shutil.rmtree(path)
    assert table(folder) == before
    (folder / "lost.json").unlink()
    assert table(folder) == {}


def test_an_answer_that_was_asked_for_again_is_not_told_by_its_old_stage(folder):
    save_losses(folder, collect_losses(folder, ComparisonResults.load(folder)))
    place = system_folder(folder, "second", "gold")
    shutil.rmtree(place / "traces")
    append_result(place / "results.jsonl", QuestionResult("newton", "Woolsthorpe", em=1.0, f1=1.0))
    assert table(folder)["gold on second"][-1] == "1 of 2"


@pytest.mark.parametrize(
    ("held", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "TypeError"),
        ('{"kind": "another"}', "its kind is 'another'"),
        ('{"kind": "where answers were lost"}', "KeyError"),
        ('{"kind": "where answers were lost", "stages": []}', "AttributeError"),
        (
            '{"kind": "where answers were lost", "stages": {"first": {"rag": {"q": "gone"}}}}',
            "there is no stage 'gone'",
        ),
        (
            '{"kind": "where answers were lost", "stages": {"third": {"rag": {}}}}',
            "rag on third is not in the plan",
        ),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays(folder, held, why):
    path = folder / "lost.json"
    path.write_text(held)
    with pytest.raises(BadInput, match=why) as refused:
        collect_losses(folder, ComparisonResults.load(folder))
    assert "restore a copy, or put it away" in str(refused.value) and path.read_text() == held


def test_a_damaged_trace_is_left_out_and_the_table_says_how_many_are_known(folder):
    path = system_folder(folder, "second", "gold") / "traces" / "newton.jsonl"
    path.write_text(path.read_text().replace("Newton", "Einstein"))
    assert table(folder)["gold on second"][-1] == "1 of 2"


def test_an_alias_counts_as_the_answer_and_yes_or_no_is_a_comparison_whatever_the_question_is_like():
    assert stage(replace(LOVELACE, answer="Greater London", aliases=("London",))) == "misread"
    assert stage(replace(LOVELACE, answer="no")) == "compared wrongly"


def test_every_system_has_its_row_for_each_set_and_for_all(folder):
    rows = table(folder)
    assert len(rows) == 9 and all(row[-1] in {"3 of 3", "2 of 2", "5 of 5"} for row in rows.values())
    places = dict(zip(LOSSES, rows["gold on all sets"], strict=False))
    assert {name: count for name, count in places.items() if count} == {"misread": "5"}
    assert rows["closed-book on first"][list(LOSSES).index("passages not all found")] == "3"


def test_the_words_of_the_question_and_of_the_examples_are_not_what_was_shown():
    named = replace(LOVELACE, text="Who wrote of Ada Lovelace in London?")
    assert stage(named, shown="She was a mathematician.") == "not shown"
    assert stage(replace(LOVELACE, answer="Tellmark")) == "not shown"  # a town of the examples


def test_the_file_is_the_same_whatever_the_order_of_the_answers(folder):
    findings = ComparisonResults.load(folder)
    stages = collect_losses(folder, findings)
    save_losses(folder, stages)
    assert load_losses(folder, findings.plan) == stages
    expected = ["curie", "lovelace", "newton"]
    assert list(json.loads((folder / "lost.json").read_text())["stages"]["first"]["rag"]) == expected


def test_the_report_tells_where_answers_were_lost_and_a_file_of_something_else_stays(folder):
    assert "| closed-book on first |" in write_report(folder)
    assert "Where answers were lost" in (folder / "results.md").read_text()
    (folder / "lost.json").write_text("[]")
    with pytest.raises(BadInput, match="does not say where answers of this comparison were lost"):
        write_report(folder)
    assert (folder / "lost.json").read_text() == "[]"
