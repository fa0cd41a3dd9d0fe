"""The parts of a run of questions: threads, results, results, plans and folders."""

from __future__ import annotations

import json
import math
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.loop_script import WRITE, call, scripted, votes

from kgot_lab.benchmark.questions.attempt import plain_rag
from kgot_lab.benchmark.questions.batch import Halted, lock_folder, run_in_parallel, trace_name
from kgot_lab.benchmark.questions.kit import IsolatedPython, all_working_tools
from kgot_lab.benchmark.questions.plan import (
    AnswerSettings,
    check_run,
    prepare_run,
    read_plan,
    write_question_plan,
)
from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.question_result import (
    QuestionResult,
    add_costs,
    add_grade,
    append_result,
    facts_read,
    read_results,
    score_answer,
    withhold_answer,
)
from kgot_lab.benchmark.questions.report import (
    earlier_spending,
    estimate_rest,
    graded_grid,
    note_untraced,
    results_grid,
    results_json,
    write_totals,
)
from kgot_lab.benchmark.questions.sets import Selection
from kgot_lab.errors import BadInput, LLMError, TraceError
from kgot_lab.evaluation.grading import Grade
from kgot_lab.llm.budget import Budget, Spending
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.events import Answered, Asked, Read, Started
from kgot_lab.loop.limits import REFERENCE
from kgot_lab.loop.modes.paths.reading import answer_prompt
from kgot_lab.tools.offered import ToolResources
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result, TextTool
from kgot_lab.types import Document, Usage

# --------------------------------------------------------------------------------------------------------------


def test_an_error_ends_the_work_after_what_is_under_way():
    halt, entered = threading.Event(), threading.Barrier(2)

    def work(n: int) -> int:
        if n < 2:
            entered.wait()
        if n == 0:
            raise LLMError("no")
        halt.wait()  # the others learn of it
        return n

    done = []
    with pytest.raises(LLMError, match="no"):
        for result in run_in_parallel(work, range(9), 2, halt):
            done.append(result)
    assert done == [1]


# -------------------------------------------------------------------------------------------------------------


def test_a_grade_decides_where_there_is_one_and_an_unclear_one_is_not_right():
    result = score_answer(Question("q", "Who?", "Ada"), "It was Ada.", "grader")
    assert not result.correct and add_grade(result, Grade("correct", "A"), "judge").correct
    unclear = add_grade(result, Grade("unclear", "hm"), "judge")
    assert unclear.correct is False and unclear.end == "unclear" and unclear.span == "hm"


def test_the_last_line_of_a_question_counts_and_one_that_was_cut_short_does_not(tmp_path):
    path = tmp_path / "results.jsonl"
    append_result(path, QuestionResult("a", error="busy"))
    append_result(path, QuestionResult("a", predicted="\ud800 x", correct=True, human_tools=("python",)))
    with path.open("a") as file:
        file.write('{"id": "b", "predi')
    append_result(path, QuestionResult("c"))
    read = read_results(path)
    assert list(read) == ["a", "c"] and read["a"].correct and read["a"].human_tools == ("python",)


def results_file(folder):
    (folder / "traces").mkdir()
    path = folder / "results.jsonl"
    for name, right in (("a", False), ("b", True), ("c", False)):
        append_result(path, QuestionResult(name, correct=right, f1=0.5))
    return path


CHANGES = [
    ('"correct": false', '"correct": true '),
    ('"f1": 0.5', '"f1": 8.0'),
    ('{"id": "a"', '{"id": "z"'),
    ('"gold": ""', '"gold" ""'),
]


@pytest.mark.parametrize(("was", "now"), CHANGES)
def test_a_result_that_was_changed_is_refused_by_the_number_of_its_line(tmp_path, was, now):
    path = results_file(tmp_path)
    path.write_text(path.read_text().replace(was, now, 1))
    with pytest.raises(
        TraceError,
        match=r"results\.jsonl, line 1, is not as it was written.*delete results\.jsonl.*seconds that each answer took are lost",
    ):
        read_results(path)


def test_results_of_before_are_read_and_gone_on_with_but_not_where_they_say_what_cannot_be(tmp_path):
    path = tmp_path / "results.jsonl"
    (tmp_path / "receipts.jsonl").write_text('{"id": "z", "correct": true}\n')  # their earlier name
    assert list(read_results(path)) == ["z"] and path.exists()
    path.write_text(
        '{"id": "a", "correct": true, "f1": 1.0}\n{"id": "b", "predi\n{"id": "c", "correct": false}\n'
    )
    append_result(path, QuestionResult("d"))
    assert list(read_results(path)) == ["a", "c", "d"]
    for value in ("8.0", "-1", '"much"', "NaN", "true"):
        path.write_text(f'{{"id": "a", "correct": true}}\n{{"id": "b", "f1": {value}}}\n')
        with pytest.raises(TraceError, match=r"line 2, holds an impossible value: .?f1"):
            read_results(path)
    path.write_text('{"id": "a"}\n{"id": "b", "f1" 1}\n{"id": "c"}\n')
    with pytest.raises(TraceError, match="line 2, is not JSON"):
        read_results(path)


@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ('"forced": true', "unsure"), ('"forced": false', "not checked"), ('"forced": null', ""), ('"steps": 1', ""),
        ('"outcome": "not in the sources"', "not in the sources"), ('"outcome": "right"', None),
    ],
)  # fmt: skip
def test_a_result_has_the_outcome_of_its_answer_and_one_of_before_that_of_a_guess(tmp_path, fields, outcome):
    path = tmp_path / "results.jsonl"
    path.write_text(f'{{"id": "a", {fields}}}\n')
    if outcome is None:
        with pytest.raises(TraceError, match="holds an impossible value: unknown outcome 'right'"):
            read_results(path)
    else:
        assert read_results(path)["a"].outcome == outcome


OSK = [
    Document("d1", "Odo Castrell designed a bridge near Osk. It opened in 1911.", "Osk Bridge"),
    Document("d2", "Osk lies in Tellmark.", "Osk"),
]
MAYOR, DESIGNER = "Who is the mayor of Osk?", "Who designed Osk Bridge?"


@pytest.mark.parametrize(
    ("question", "answer", "check", "outcome", "missing"),
    [
        (MAYOR, "Odo Castrell", "no", "not in the sources", f"no text that was read answers: {MAYOR}"),
        (MAYOR, "unknown", "", "not in the sources", "what was read does not say it"),
        (MAYOR, "unknown", "yes", "not in the sources", "what was read does not say it"),
        (MAYOR, "Anton Brug", "", "unsure", "it does not stand in the sentences"),
        (MAYOR, "Anton Brug", "yes", "unsure", "nothing that was read has Anton Brug"),
        (DESIGNER, "Odo Castrell", "", "not checked", ""),
        (DESIGNER, "Odo Castrell", "yes", "supported", ""),
        ("Did Odo Castrell design a bridge?", "yes", "yes", "supported", ""),
        ("Who is the mayor of Brask?", "Odo Castrell", "yes", "not in the sources", "no text that was read says this of Brask"),
    ],
)  # fmt: skip
def test_an_answer_of_rag_has_an_outcome_by_the_rule_of_the_loop(question, answer, check, outcome, missing):
    def reply(prompt):
        return check if prompt.messages[0].text.startswith("Does the text") else f'{{"answer": "{answer}"}}'

    *_, final = plain_rag(Question("q", question, ""), Scripted(reply), search(OSK, k=2), check=bool(check))
    assert (final.text, final.outcome, final.missing, final.forced) == (
        answer,
        outcome,
        missing,
        outcome not in ("supported", "not checked"),
    )


def test_results_made_again_from_traces_do_not_invent_how_long_the_answers_took(tmp_path):
    by, folder = AnswerSettings("zero-shot", guessing([]), REFERENCE), tmp_path / "run"

    def answered(grader=None):
        return list(prepare_run(ASKED, Selection(), replace(by, grader=grader), folder).run.answer_missing())

    timed = [result.seconds for result in answered()]
    graded = answered(Scripted(lambda _: "A", "judge"))
    assert [result.seconds for result in graded] == timed and all(result.grade for result in graded)
    (folder / "results.jsonl").unlink()
    again = answered()
    assert [result.seconds for result in again] == [None, None]
    assert list(read_results(folder / "results.jsonl").values()) == again
    assert results_json(again)["by level"]["all"]["questions of unknown seconds"] == 2
    assert "2 unknown" in str(results_grid(again))
    assert write_totals(folder)["questions of unknown seconds"] == 2


def test_along_paths_the_facts_are_what_the_model_was_shown_and_the_likelihood_that_of_the_answer():
    def read(facts, reply, logprob):
        prompt = replace(answer_prompt("Where was Ada Lovelace born?", facts), likelihood=True)
        return Asked(role="path", model="m", prompt=prompt, reply=reply, usage=Usage(50, 1), logprob=logprob)

    ada, noether = "[Ada Lovelace] She was born in London.", "[Emmy Noether] She was born in Erlangen."
    begun = Started(question="Where was Ada Lovelace born?", limits={"reading": "paths"}, dialect="Python")
    rows = Read(statement="paths()", rows=({"sentence_1": "much more"},))
    events = [
        begun,
        rows,
        read(ada, "London", -0.1),
        read(f"{ada}\n{noether}", "Erlangen", -2.0),
        Answered(text="London", forced=False),
    ]
    assert facts_read(events) == f"{ada}\n{noether}"
    result = add_costs(QuestionResult("q"), events, 1.0)
    assert result.rests and result.token_probability == pytest.approx(math.exp(-0.1))
    assert result.evidence_tokens == 20


def test_a_result_names_the_mean_of_a_token_and_a_trace_the_likelihood_of_the_whole_answer(tmp_path):
    """exp(logprob / tokens) and exp(logprob) are two things, so they have two names."""
    prompt = replace(answer_prompt("Where?", "[Ada Lovelace] She was born in Saint James."), likelihood=True)
    reply, usage = "Saint James", Usage(50, 4)
    asked = Asked(role="path", model="m", prompt=prompt, reply=reply, usage=usage, logprob=-0.4)
    final = Answered(text=reply, forced=False, likelihood=math.exp(asked.logprob))
    result = add_costs(QuestionResult("q"), [Started(question="Where?"), asked, final], 1.0)
    assert final.likelihood == pytest.approx(0.67, abs=0.01)
    assert result.token_probability == pytest.approx(0.905, abs=0.001)
    append_result(tmp_path / "results.jsonl", result)
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["token_probability"] == result.token_probability and "likelihood" not in line
    assert read_results(tmp_path / "results.jsonl") == {"q": result}


@pytest.mark.parametrize(("older", "read"), [(0.5, 0.5), (None, None), ("absent", None)])
def test_results_of_an_older_version_called_it_likelihood(tmp_path, older, read):
    row = {"id": "q", "em": 1.0} | ({} if older == "absent" else {"likelihood": older})
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    assert read_results(tmp_path / "results.jsonl")["q"].token_probability == read
    (tmp_path / "results.jsonl").write_text(json.dumps(row | {"likelihood": -0.4}) + "\n")
    with pytest.raises(TraceError, match=r"token_probability must be between 0 and 1, not -0\.4"):
        read_results(tmp_path / "results.jsonl")


def test_results_have_intervals_and_close_calls_of_their_own():
    results = [
        QuestionResult(
            str(n),
            correct=n < 6,
            close=n == 7,
            em=float(n < 6),
            level=f"level {n % 2}",
            outcome="supported" if n < 8 else "unsure",
        )
        for n in range(10)
    ]
    told = results_json(results)["by level"]["all"]
    assert told["correct"]["mean"] == 0.6 and told["correct"]["low"] < 0.6 < told["correct"]["high"]
    assert told["close calls"] == 1
    assert {name: share["mean"] for name, share in told["outcomes"].items()} == {
        "supported": 0.8, "unsure": 0.2, "not in the sources": 0, "not checked": 0, "right of supported": 0.75,
    }  # fmt: skip
    assert ".800 | .200 | .000 | .000 | .750" in results_grid(results).markdown
    assert [row[0].text for row in results_grid(results).rows] == ["level 0", "level 1", "all"]
    assert graded_grid(results) is None


# ----------------------------------------------------------------------------------------------------

PLAN = {
    "plan": 1, "set": "own", "selection": {"seed": 0}, "system": "loop", "limits": {"steps": 7}, "tools": ["search"],
    "web": False, "mirror": "", "engine": "", "vision": "", "made": {"date": "2026-01-01"},
}  # fmt: skip


def test_the_same_plan_goes_on_and_another_one_is_told_apart(tmp_path):
    folder = tmp_path / "run"
    assert [write_question_plan(PLAN, folder), write_question_plan(PLAN, folder)] == [False, True]
    # the day is no part of it
    assert write_question_plan({**PLAN, "made": {"date": "2027-01-01"}}, folder)
    with pytest.raises(BadInput, match=r"limits\.steps is 7 there and 5 now; tools is") as refused:
        write_question_plan({**PLAN, "limits": {"steps": 5}, "tools": []}, folder)
    assert "selection" not in str(refused.value) and read_plan(folder)["limits"] == {"steps": 7}


def test_only_one_run_at_a_time_works_in_a_folder(tmp_path):
    locked = pytest.raises(BadInput, match="another run is at work")
    with lock_folder(tmp_path), locked, lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path):
        pass


# ----------------------------------------------------------------------------------------------------------


def test_a_run_is_prepared_and_answered_from_python_with_a_tool_of_ones_own(tmp_path):
    asked = []

    def look(query: str) -> Result:
        asked.append(query)
        return Result(
            "Ada Lovelace was born in London.",
            (Document("w", "Ada Lovelace was born in London.", "Ada Lovelace"),),
        )

    web = TextTool("web", "Looks into the web.", {"query": "what to look for"}, look, finds="query")
    llm = scripted(
        vote=[*votes("I", "I", "I"), *votes("R")], merge={"reason": "more"}, tools=call(tool="web"), write=WRITE,
        **{"arithmetic?": {"needed": False}}, parse={"answer": "London"}, choose={"number": 1},
    )  # fmt: skip
    mine = QuestionSet([], [Question("q", "Where was Ada Lovelace born?", "London")])
    ready = prepare_run(
        mine,
        Selection(),
        AnswerSettings("loop", llm, REFERENCE, tools=lambda question, behind: [web]),
        tmp_path / "run",
    )
    [result] = ready.run.answer_missing()
    assert result.correct and result.tools == {"web": 1} and asked == ["Ada Lovelace"]
    assert read_plan(tmp_path / "run")["tools"] == ["web"]
    assert write_totals(tmp_path / "run")["tools"]["web"]["calls"] == 1
    assert ready.spending.calls == result.calls


ASKED = QuestionSet(
    [],
    [Question("q", "Where was Ada Lovelace born?", "London"), Question("r", "And Emmy Noether?", "Erlangen")],
)


def guessing(asked: list[str]) -> Scripted:
    """A model that says London, and notes what it was asked."""

    def reply(prompt):
        asked.append(prompt.messages[-1].text)
        return '{"answer": "London"}'

    return Scripted(reply, "guessing")


@pytest.mark.parametrize("killed_with_a_reply", [True, False])
def test_a_second_walk_that_a_kill_left_loses_no_reply_and_no_cost(tmp_path, killed_with_a_reply):
    asked = []
    folder, by = tmp_path / "run", AnswerSettings("zero-shot", guessing(asked), REFERENCE)
    list(prepare_run(ASKED, Selection(limit=1), by, folder).run.answer_missing())
    whole = (folder / "traces" / "q.jsonl").read_text().splitlines(keepends=True)
    (folder / "results.jsonl").unlink()
    (folder / "traces" / "q.jsonl").write_text("".join(whole[:2]))  # killed before the reply
    # and again, perhaps after it
    (folder / "traces" / "q.again").write_text("".join(whole[: 3 if killed_with_a_reply else 2]))
    assert earlier_spending(folder)[0] == killed_with_a_reply
    [result] = prepare_run(ASKED, Selection(limit=1), by, folder).run.answer_missing()
    assert result.correct and len(asked) == (1 if killed_with_a_reply else 2)
    assert not (folder / "traces" / "q.again").exists()


def test_what_no_trace_tells_is_kept_for_the_next_sitting(tmp_path):
    (tmp_path / "traces").mkdir()
    spending = Spending(Budget(dollars=5))
    spending.charge(Usage(100, 20, 3.0, 0.5), calls=2)
    spending.count_unanswered(0.25)
    note_untraced(tmp_path, spending)
    assert earlier_spending(tmp_path) == (2, Usage(100, 20, 0.0, 0.75))
    again = Spending(Budget(dollars=5))
    calls, spent = earlier_spending(tmp_path)
    again.charge(spent, calls=calls)
    note_untraced(tmp_path, again)
    assert earlier_spending(tmp_path) == (calls, spent)  # not counted twice


def test_the_tools_that_work_are_safe_for_several_questions_at_once(tmp_path):
    zipped = tmp_path / "a.zip"
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("note.txt", "Ada Lovelace was born in London.")
    (tmp_path / "unpacked").mkdir()
    computer = IsolatedPython(unsafe=False, seconds=REFERENCE.tools.python_seconds)
    resources = ToolResources(llm=guessing([]), computer=computer, unpack_into=tmp_path / "unpacked")

    def used(number: int) -> tuple[str, str]:
        question = Question(str(number), "?", "!", attachments=(zipped,))
        tools = {tool.name: tool for tool in all_working_tools(question, resources)}
        unpacked = tools["extract_zip"](file="a.zip").text
        return unpacked, tools["python"](code=f"print({number} + 1)").text.strip()

    with ThreadPoolExecutor(3) as threads:
        results = list(threads.map(used, range(3)))
    assert [number for _, number in results] == ["1", "2", "3"]
    assert all("a.zip/note.txt" in names for names, _ in results)


def test_a_result_that_was_taken_out_is_missed(tmp_path):
    path = results_file(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(lines[0] + lines[2])
    with pytest.raises(TraceError, match="line 2, is not as it was written, or a line before it is missing"):
        read_results(path)


def test_of_a_private_set_no_right_answer_is_written():
    right, wrong = (
        score_answer(Question("q", "Who?", "Ada Lovelace"), said, "gaia")
        for said in ("ada lovelace", "Babbage")
    )
    assert "ovelace" not in repr(withhold_answer(right)) and withhold_answer(right).correct
    assert withhold_answer(wrong).predicted == "Babbage" and "ovelace" not in repr(withhold_answer(wrong))


def test_each_id_has_a_file_of_its_own():
    ids = ["a", "A", "a/b", "a_b", "../a", "x" * 300, "x" * 301, "Ω", "con cat"]
    names = [trace_name(id) for id in ids]
    assert len({name.lower() for name in names}) == len(ids)
    assert all("/" not in name and len(name) < 100 for name in names)


def test_a_folder_that_holds_something_else_is_not_taken(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match=r"holds thesis\.tex"):
        write_question_plan(PLAN, tmp_path)


def test_a_grader_of_gaia_is_refused_without_a_model(tmp_path):
    with pytest.raises(BadInput, match="scored by its own rules"):
        check_run(
            replace(ASKED, scored_by="gaia"),
            Selection(),
            AnswerSettings("loop", None, REFERENCE),
            tmp_path,
            graded=True,
        )
    assert list(tmp_path.iterdir()) == []


def test_an_alias_is_as_right_as_the_answer():
    question = Question("q", "Who?", "G. Stanley Hall", aliases=("Stanley Hall",))
    assert score_answer(question, "Stanley Hall", "match").correct
    assert score_answer(question, "stanley hall", "match").em == 1
    assert not score_answer(question, "Hall", "match").correct


def test_everything_is_worked_on_once():
    found = sorted(run_in_parallel(lambda n: n * n, range(20), 4, threading.Event()))
    assert found == [n * n for n in range(20)]


def test_rag_finds_passages_in_documents_only(tmp_path):
    def looking_out(question, behind):
        raise AssertionError("it is not to look out")

    mine = QuestionSet(
        [Document("d", "Ada Lovelace was born in London.", "Ada Lovelace")], ASKED.questions[:1]
    )
    [result] = prepare_run(
        mine, Selection(), AnswerSettings("rag", guessing([]), REFERENCE, tools=looking_out), tmp_path / "run"
    ).run.answer_missing()
    assert result.correct and result.tools == {"search": 1}


@pytest.mark.parametrize("system", ["loop", "zero-shot"])
def test_the_rest_of_a_run_is_reckoned_for_what_is_missing(tmp_path, system):
    def estimates(grader=None):
        return estimate_rest(
            prepare_run(
                ASKED,
                Selection(),
                AnswerSettings(system, guessing([]), REFERENCE, grader=grader),
                tmp_path / "run",
            ).run
        )

    [(what, cost)] = estimates().items()
    assert what.startswith("2 questions") and cost.calls == (2 if system == "zero-shot" else cost.calls) > 0
    if system == "zero-shot":
        list(
            prepare_run(
                ASKED, Selection(), AnswerSettings(system, guessing([]), REFERENCE), tmp_path / "run"
            ).run.answer_missing()
        )
        assert estimates() == {} and list(estimates(guessing([]))) == ["2 grades"]


def test_the_rule_of_the_set_decides():
    question = Question("q", "How many?", "17")
    by_match, by_gaia = score_answer(question, "17%", "match"), score_answer(question, "$17", "gaia")
    assert by_match.correct and by_gaia.correct and by_gaia.rule == "number" and by_match.rule == ""
    assert not score_answer(Question("q", "How many?", "17.0"), "17", "match").correct
    assert score_answer(Question("q", "How many?", "17.0"), "17", "gaia").correct


def test_what_a_question_cannot_be_asked_with_ends_the_run_at_once(tmp_path):
    made = []

    def tools(question, behind):
        made.append(question.id)
        if len(made) > 2:  # the plan has named the tools of both
            raise BadInput("the folder of pages is gone")
        return []

    ready = prepare_run(
        ASKED, Selection(), AnswerSettings("loop", guessing([]), REFERENCE, tools=tools), tmp_path / "run"
    )
    with pytest.raises(BadInput, match="pages is gone"):
        list(ready.run.answer_missing())
    assert len(made) == 3 and ready.run.results == {}


def test_what_was_halted_is_no_error_of_its_own():
    def work(n: int) -> int:
        raise Halted

    assert list(run_in_parallel(work, range(3), 2, threading.Event())) == []
