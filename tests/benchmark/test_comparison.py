"""Does the graph pay? The design, its sittings and its results, with a scripted model on four questions, and
the sets that it asks.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest
from support.birthplaces import ASKED, SETS, TINY, WAYS_TO_ANSWER, reader, told_in_brief, without
from support.waiting import AMPLE, until

from benchmarks.graph_pays.ablations import ABLATION_PAIRS, ABLATIONS
from benchmarks.graph_pays.best_sentences import pair_comparisons
from benchmarks.graph_pays.report import calibration, judge_goals, report_grids, report_json
from kgot_lab.benchmark.comparison.comparison_run import (
    ComparisonRun,
    ComparisonSlice,
    missing_answers,
    questions_in_turn,
    system_folder,
)
from kgot_lab.benchmark.comparison.plan import (
    Design,
    dev_samples,
    drawn_samples,
    load_comparison_plan,
    write_comparison_plan,
)
from kgot_lab.benchmark.comparison.results import ComparisonResults, comparison_grids
from kgot_lab.benchmark.comparison.systems import (
    ANSWER_SYSTEMS,
    AnswerSystem,
    PassageSearches,
    prompt_digests,
)
from kgot_lab.benchmark.questions.attempt import JSON_CALL
from kgot_lab.benchmark.questions.question_result import QuestionResult, append_result
from kgot_lab.benchmark.questions.sets import BUNDLED_SETS, Selection, musique_dev
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import StoredVectors, text_key
from kgot_lab.errors import BadInput, LLMError, UnknownName
from kgot_lab.evaluation.significance import interval
from kgot_lab.io.files import bundled_path
from kgot_lab.loop.events import Answered, Asked, ToolReturned
from kgot_lab.loop.trace import load_run
from kgot_lab.types import Reply, Usage, full_text

# -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """The questions of the real comparison."""
    return drawn_samples()


def test_as_many_questions_are_drawn_as_the_design_says_none_of_them_used_before(drawn):
    expected = {"hotpotqa": 70, "2wiki": 150, "musique-498": 150}
    assert {name: len(sample.questions) for name, sample in drawn.items()} == expected
    assert all(int(question.id[1:]) > 100 for question in drawn["2wiki"].questions)
    hops = [question.level for question in drawn["musique-498"].questions]
    assert hops == ["2 hops", "3 hops", "4 hops"] * 50
    for name, sample in drawn.items():
        asked = [question.id for question in sample.questions]
        assert len(set(asked)) == len(asked) and asked != sorted(asked), name


@pytest.mark.extended
def test_no_drawn_question_or_passage_that_holds_its_answer_may_be_tuned_on(drawn):
    tuned = dev_samples()
    expected = {"hotpotqa": 30, "2wiki": 61, "musique": 60}
    assert {name: len(sample.questions) for name, sample in tuned.items()} == expected
    asked = {question.text for sample in drawn.values() for question in sample.questions}
    assert not asked & {question.text for sample in tuned.values() for question in sample.questions}
    assert not gold_texts(drawn) & gold_texts(tuned)


def gold_texts(samples) -> set[str]:
    """The passages that hold the answers to some questions."""
    found = set()
    for sample in samples.values():
        texts = {document.id: document.text for document in sample.documents}
        found |= {texts[id] for question in sample.questions for id in question.gold}
    return found


@pytest.mark.extended
@pytest.mark.parametrize(("name", "size", "passages"), [("2wiki", 989, 6119), ("musique-498", 498, 5966)])
def test_the_sets_are_whole_and_the_ids_of_passages_do_not_follow_the_questions(name, size, passages):
    data = BUNDLED_SETS[name]()
    place = {document.id: number for number, document in enumerate(data.documents)}
    assert (len(data.questions), len(data.documents)) == (size, passages) and list(place) == sorted(place)
    first = [place[question.gold[0]] for question in data.questions]
    inverted = sum(one > other for one, other in pairwise(first))
    assert 0.4 < inverted / len(first) < 0.6
    assert not {question.id for question in Selection().select(data).questions} & set(data.parts["held_out"])


# ------------------------------------------------------------------------------------------------------------


def test_wherever_it_stops_all_systems_have_answered_the_same_first_questions():
    done: dict[tuple[str, str], list[str]] = {}
    for due in questions_in_turn(TINY):
        done.setdefault((due.set, due.system), []).append(due.question.id)
        for name in SETS:
            counts = [len(done.get((name, system), ())) for system in WAYS_TO_ANSWER if system != "loop"]
            assert max(counts) - min(counts) <= 1
    assert all(ids == [q.id for q in SETS[name].questions][: len(ids)] for (name, _), ids in done.items())
    asked = Counter(due.system for due in questions_in_turn(TINY))
    assert asked == {"closed-book": 5, "rag": 5, "follow-few": 5, "gold": 5, "loop": 2}


# -------------------------------------------------------------------------------------------------------------


def test_every_system_answers_and_leaves_a_trace_of_what_it_read(tmp_path):
    results = {
        (due.set, due.system, due.question.id): result
        for due, result in ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing()
    }
    assert len(results) == len(list(questions_in_turn(TINY)))
    assert not any(result.error for result in results.values())
    assert all(result.correct for (_, system, _), result in results.items() if system != "closed-book")
    assert [results["first", "closed-book", id].em for id in ("lovelace", "curie")] == [1, 0]
    assert results["first", "rag", "curie"].rests and results["first", "rag", "curie"].evidence_tokens > 0
    assert results["first", "closed-book", "curie"].evidence_tokens == 0
    assert results["first", "loop", "lovelace"].rests
    expected = results["first", "follow-few", "curie"].evidence_tokens
    assert results["first", "gold", "curie"].evidence_tokens < expected
    events = load_run(system_folder(tmp_path / "out", "second", "gold") / "traces" / "newton.jsonl").events
    [found] = [event for event in events if isinstance(event, ToolReturned)]
    [asked] = [event for event in events if isinstance(event, Asked)]
    assert found.text == "[Isaac Newton] Isaac Newton was born in Woolsthorpe."
    assert found.text in asked.prompt.messages[-1].text
    assert [event.passages for event in events if isinstance(event, Answered)] == [("p2",)]


class Sure:
    """A scripted model that says how likely it held what it wrote, where that is asked: half for each word."""

    name = "sure"

    def __call__(self, prompt):
        text = told_in_brief(prompt)
        length = len(text.split())
        return Reply(text, Usage(10, length), logprob=length * math.log(0.5) if prompt.likelihood else None)


def test_what_was_answered_is_not_asked_again_in_the_next_sitting(tmp_path):
    first, second = reader(), reader()
    with closing(ComparisonRun(TINY, tmp_path / "out", first).answer_missing()) as answers:
        begun = [next(answers) for _ in range(6)]
    left = missing_answers(TINY, tmp_path / "out")
    rest = list(ComparisonRun(TINY, tmp_path / "out", second).answer_missing())
    assert [due for due, _ in (*begun, *rest)] == list(questions_in_turn(TINY))
    assert [due for due, _ in rest] == left
    assert not set(first.asked[:6]) & set(second.asked) and missing_answers(TINY, tmp_path / "out") == []
    assert list(ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing()) == []


KILLED = """
import sys, threading
from pathlib import Path
from support.birthplaces import TINY, reader, told_in_brief
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun
count = 0
def reply(prompt):
    global count
    count += 1
    if count == 4:
        Path(sys.argv[1], "held").touch()
        threading.Event().wait()
    return told_in_brief(prompt)
list(ComparisonRun(TINY, Path(sys.argv[1], "out"), reader(reply)).answer_missing())
"""


@pytest.mark.extended
def test_killed_in_the_middle_of_a_question_it_goes_on(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment)
    until(
        lambda: (tmp_path / "held").exists() or process.poll() is not None,
        "the fourth question of the model is held",
    )
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=AMPLE) == -signal.SIGKILL
    there = len(list(questions_in_turn(TINY))) - len(missing_answers(TINY, tmp_path / "out"))
    again = list(ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing())
    assert there >= 3 and len(again) + there == len(list(questions_in_turn(TINY)))
    assert not any(result.error for _, result in again)


def test_a_model_that_always_fails_stops_the_sitting_and_is_asked_again_later(tmp_path):
    def fails(prompt):
        raise LLMError("the server is away")

    with pytest.raises(LLMError, match=r"5 answers in a row ended in an error.*the server is away"):
        list(ComparisonRun(TINY, tmp_path / "out", reader(fails)).answer_missing())
    found = len(list(ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing()))
    assert found == len(list(questions_in_turn(TINY)))


def test_a_reply_on_file_to_the_very_same_prompt_is_not_asked_for_again_and_tells_the_time_it_took(tmp_path):
    first, second = Sure(), reader(lambda _: pytest.fail("asked again"))
    second.name = Sure.name
    chosen = ComparisonSlice(["rag", "follow-few"], ["first"])
    before = {
        (due.system, due.question.id): result
        for due, result in ComparisonRun(TINY, tmp_path / "one", first).answer_missing(chosen)
    }
    sitting = ComparisonRun(TINY, tmp_path / "two", second, reuse=[tmp_path / "one"])
    again = {(due.system, due.question.id): result for due, result in sitting.answer_missing(chosen)}
    assert again.keys() == before.keys() and len(again) == 6
    for asked, result in again.items():
        there = before[asked]
        expected = (there.predicted, there.token_probability, there.calls)
        assert (result.predicted, result.token_probability, result.calls) == expected
        assert result.seconds == there.model_seconds
    other = reader()
    list(
        ComparisonRun(TINY, tmp_path / "three", other, reuse=[tmp_path / "one"]).answer_missing(
            ComparisonSlice(["rag"], ["first"])
        )
    )
    assert len(other.asked) == 3  # replies of another model are not taken


def test_each_ablation_changes_one_mode_and_the_plan_says_in_what(tmp_path):
    plan = Design(SETS, ABLATIONS, ABLATION_PAIRS, ()).plan(reader())
    systems = plan["systems"]
    usual = {name: systems[name]["limits"] for name in ("paths", "local")}
    assert all(
        system["limits"] != usual[system["preset"]] for name, system in systems.items() if name not in usual
    )
    assert {name for pair in plan["pairs"] for name in pair} == set(systems)
    assert all(re.fullmatch(r"[\w-]+", name) for name in systems)
    assert usual["paths"] == Design(SETS).plan(reader())["systems"]["paths"]["limits"]


# -------------------------------------------------------------------------------------------------------------


def test_a_system_may_change_until_it_has_answered_and_the_plan_says_so(tmp_path):
    folder = tmp_path / "out"
    list(ComparisonRun(TINY, folder, reader()).answer_missing(ComparisonSlice(systems=("rag",), limit=1)))
    loop = replace(TINY.systems["loop"], passages=TINY.systems["loop"].passages + 1)
    other = replace(TINY, systems={**TINY.systems, "loop": loop})
    list(ComparisonRun(other, folder, reader()).answer_missing(ComparisonSlice(systems=("loop",), limit=1)))
    plan = load_comparison_plan(folder)
    assert plan["systems"]["loop"]["passages"] == loop.passages
    assert plan["amended"][0]["before their first answer"] == ["loop"]
    with pytest.raises(BadInput, match=r"another plan: systems\.loop\.passages"):
        ComparisonRun(TINY, folder, reader()).keep_plan()


def test_sixty_questions_asked_again_on_an_idle_computer_have_the_same_answers_likelihoods_and_tokens():
    first, again = (
        ComparisonResults.load(bundled_path(f"benchmarks/results/{name}")).answers["paths"]
        for name in ("graph_pays", "graph_pays_quiet")
    )
    what = ("predicted", "token_probability", "calls", "prompt_tokens", "evidence_tokens", "error")
    assert len(again) == 60 and again.keys() <= first.keys()
    assert [
        key for key in again for name in what if getattr(again[key], name) != getattr(first[key], name)
    ] == []


def test_the_plan_is_there_before_the_first_question_and_is_never_changed(tmp_path):
    list(ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing(ComparisonSlice(limit=1)))
    plan = load_comparison_plan(tmp_path / "out")
    assert plan["systems"]["loop"]["limits"]["steps"] == 7 and plan["model"]["name"] == "scripted reader"
    assert plan["systems"]["rag"]["prompts"] != plan["systems"]["loop"]["prompts"]
    assert plan["sets"]["first"]["questions"] == 3 and plan["aims"][0]["kind"] == "gain"
    message = r"another plan: .*systems\.rag\.passages is 2 there and 3 now.*not changed afterwards"
    with pytest.raises(BadInput, match=message):
        other = replace(TINY, systems={**WAYS_TO_ANSWER, "rag": AnswerSystem("json", "convex", 3)})
        list(ComparisonRun(other, tmp_path / "out", reader()).answer_missing())
    with pytest.raises(BadInput, match=r"model\.name is"):
        list(ComparisonRun(TINY, tmp_path / "out", replace_name(reader(), "another")).answer_missing())
    tested = {name: {**each, "tuned on": "hotpotqa develop"} for name, each in plan["sets"].items()}
    message = "out: this folder holds the comparison on the dev split; .* needs a folder of its own"
    with pytest.raises(BadInput, match=message):
        write_comparison_plan({**plan, "sets": tested}, tmp_path / "out")
    with pytest.raises(BadInput, match=r"sets\.first\.questions is 3 there and 2 now"):
        fewer = replace(TINY, samples={**SETS, "first": SETS["first"].only(["lovelace", "curie"])})
        list(ComparisonRun(fewer, tmp_path / "out", reader()).answer_missing())
    answers = ComparisonRun(TINY, tmp_path / "out", reader()).answer_missing(ComparisonSlice(limit=1))
    assert list(answers) == []


def replace_name(llm, name):
    llm.name = name
    return llm


def test_the_real_plan_names_all_that_an_answer_depends_on(drawn):
    plan = Design(drawn).plan(reader())
    assert list(plan["systems"]) == list(ANSWER_SYSTEMS)
    assert plan["sets"]["musique-498"]["tuned on"] == "musique develop"
    assert Design(SETS, dev=True).plan(reader())["sets"]["first"]["tuned on"] == "itself"
    asked = {system: told["questions"] for system, told in plan["systems"].items() if told["questions"]}
    assert asked == {"long-context": 20, "local": 20, "paths-fused": 20}
    assert {name for pair in plan["pairs"] for name in pair} <= set(plan["systems"])
    assert json.loads(json.dumps(plan)) == plan
    assert all(len(digest) == 64 for digest in prompt_digests().values())


# ------------------------------------------------------------------------------------------------


def written(folder, scores: dict[str, list[tuple[float, float | None]]], **more) -> ComparisonResults:
    """The results of results made by hand: for each system, exact match and likelihood of the questions in
    their order, set by set.
    """
    plan = TINY.plan(reader())
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    asked = [(name, question) for name, sample in SETS.items() for question in sample.questions]
    for system, rows in scores.items():
        for (name, question), (em, likelihood) in zip(asked, rows, strict=False):
            place = system_folder(folder, name, system)
            place.mkdir(parents=True, exist_ok=True)
            costs = {"prompt_tokens": 100, "calls": 1, "seconds": 2.0}
            costs |= {"evidence_tokens": 40, "rests": bool(em)}
            result = QuestionResult(
                question.id, em=em, f1=em, token_probability=likelihood, **{**costs, **more.get(system, {})}
            )
            append_result(place / "results.jsonl", result)
    return ComparisonResults.load(folder)


def row_of(findings, system, on="all sets"):
    return next(row for row in findings.system_scores if (row.system, row.on) == (system, on))


def test_all_measures_follow_from_the_results_alone(tmp_path):
    findings = written(
        tmp_path / "out",
        {
            "closed-book": [(1, None), (0, None), (1, None), (0, None), (0, None)],
            "rag": [(0, 0.95), (1, 0.85), (1, 0.85), (1, 0.55), (1, 0.05)],
        },
        rag={"seconds": None},
    )
    rag, alone = row_of(findings, "rag"), row_of(findings, "closed-book")
    expected = (5, 0.8, 100, 40, 1, None)
    assert (rag.n, rag.em.mean, rag.prompt_tokens, rag.evidence_tokens, rag.calls, rag.seconds) == expected
    assert rag.resting == 0.8 and rag.destroyed == (1, 2) and alone.destroyed == (0, 2)
    assert alone.seconds == 2.0
    error, area = calibration(findings, "rag", "all sets").values()
    assert error == pytest.approx((0.95 + 2 * 0.15 + 0.45 + 0.95) / 5)
    assert area == pytest.approx((1 + 2 * 1 / 3 + 1 / 4 + 1 / 5) / 5)
    assert calibration(findings, "closed-book", "all sets")["calibration_error"] is None
    assert row_of(findings, "rag", "first").n == 3
    [pair] = [pair for pair in findings.pairs if pair.on == "all sets"]
    assert pair.difference.mean == pytest.approx(0.4) and pair.difference.n == 5 and pair.p <= pair.p_holm
    told = next(each for each in report_json(findings)["calibration"] if each["on"] == "all sets")
    assert told["risk at coverage"][0] == [0.2, 1.0] and len(told["reliability"]) == 4
    tables = [grid.title for grid in comparison_grids(findings)]
    assert {"Systems on first", "Systems on all sets"} <= {*tables}
    grids = {grid.title: grid for grid in report_grids(findings)}
    assert [*grids][: len(tables)] == tables and "Aims" in grids
    assert [cell.text for cell in grids["Systems on all sets"].rows[1]][-2:] == [".530", ".423"]
    [risk] = grids["Share of wrong answers among the surest"].rows
    assert [cell.text for cell in risk] == ["rag", "1.000", ".333", ".333", ".250", ".200"]


def test_each_aim_is_reached_missed_or_open_and_says_by_what(tmp_path):
    findings = written(
        tmp_path / "out",
        {"closed-book": [(0, None)] * 5, "rag": [(1, None)] * 5, "follow-few": [(1, None)] * 4},
    )
    gain, not_below, least = judge_goals(findings)
    # p is not
    assert gain.verdict == "missed" and gain.figure.startswith("+1.000 (+1.000 to +1.000), p ")
    assert "5 questions" in gain.figure
    assert not_below.verdict == "reached" and "so far 4 of 5 questions" in not_below.figure
    assert (least.verdict, least.figure) == ("reached", "1.000 [1.000, 1.000]")
    nothing = written(tmp_path / "none", {"closed-book": [(0, None)]})
    assert [goal.verdict for goal in judge_goals(nothing)] == ["open"] * 3


def test_what_is_aimed_at_is_a_family_of_its_own_so_that_looking_at_more_costs_it_nothing(tmp_path):
    findings = written(
        tmp_path / "out",
        {"closed-book": [(0, None)] * 5, "rag": [(1, None)] * 5, "follow-few": [(1, None)] * 5},
    )
    [aimed] = [pair for pair in findings.pairs if pair.aimed]
    others = [pair for pair in findings.pairs if not pair.aimed]
    assert (aimed.system, aimed.other, aimed.on) == ("rag", "closed-book", "all sets")
    assert aimed.p_holm == aimed.p == 2 / 2**5
    assert len(others) == 5 and min(pair.p_holm for pair in others) > min(pair.p for pair in others)


# ---------------------------------------------------------------------------------------------------------


def test_a_comparison_goes_on_another_day_on_another_machine(tmp_path):
    list(ComparisonRun(TINY, tmp_path, reader()).answer_missing(ComparisonSlice(systems=("rag",), limit=1)))
    plan = load_comparison_plan(tmp_path) | {
        "made": {"date": "2001-02-03", "version": "0.0.1", "machine": "abacus"}
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert list(
        ComparisonRun(TINY, tmp_path, reader()).answer_missing(ComparisonSlice(systems=("rag",), limit=2))
    )
    assert load_comparison_plan(tmp_path) == plan


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match=r"has no plan.json but holds notes.txt"):
        list(ComparisonRun(TINY, tmp_path, reader()).answer_missing())
    with pytest.raises(BadInput, match="there is no plan of a comparison"):
        ComparisonResults.load(tmp_path)
    for other in ('{"plan": 1, "set": "hotpotqa"}', '{"kind": "does the graph pay"}', "[]"):
        (tmp_path / "plan.json").write_text(other)
        with pytest.raises(BadInput, match="is not the plan of a comparison"):
            ComparisonResults.load(tmp_path)


def test_a_question_without_known_sentences_has_no_ceiling():
    with pytest.raises(BadInput, match="does not say which sentences hold its answer"):
        PassageSearches(SETS["first"]).tools(ANSWER_SYSTEMS["gold"], replace(ASKED[0], facts=()))


def test_an_answer_that_does_not_stand_in_its_text_is_kept_and_marked(tmp_path):
    design = without("loop", "closed-book", "rag", "gold")
    [(due, result)] = ComparisonRun(design, tmp_path / "out", reader(lambda _: "Atlantis")).answer_missing(
        ComparisonSlice((), ["second"], 1)
    )
    answered = load_run(
        system_folder(tmp_path / "out", due.set, due.system) / "traces" / "newton.jsonl"
    ).events[-1]
    assert result.predicted == "Atlantis" and result.rests is False and answered.forced


def test_an_answer_that_failed_counts_as_wrong_and_is_counted_as_an_error(tmp_path):
    findings = written(tmp_path / "out", {"rag": [(0, None)] * 5}, rag={"error": "busy"})
    assert (row_of(findings, "rag").errors, row_of(findings, "rag").em.mean) == (5, 0)
    assert len(missing_answers(TINY, tmp_path / "out", ComparisonSlice(["rag"]))) == 5


def test_answers_of_two_folders_to_the_same_questions_are_paired_as_those_of_one(tmp_path):
    rag, alone = (
        [(0, None), (1, None), (1, None), (1, None), (1, None)],
        [(1, None), (0, None), (1, None), (0, None), (0, None)],
    )
    whole = written(tmp_path / "whole", {"rag": rag, "closed-book": alone})
    first = written(tmp_path / "first", {"rag": rag})
    second = written(tmp_path / "second", {"closed-book": alone})
    joined = pair_comparisons(first, second, [("rag", "closed-book")])
    one, other = (next(pair for pair in some.pairs if pair.on == "all sets") for some in (joined, whole))
    assert (one.difference, one.p) == (other.difference, other.p) and not one.aimed
    assert not joined.plan["aims"]
    with pytest.raises(BadInput, match="rag has answers in both"):
        pair_comparisons(whole, first, [("rag", "closed-book")])
    with pytest.raises(UnknownName, match="loop"):
        pair_comparisons(first, second, [("loop", "rag")])
    elsewhere = replace(second, plan={**second.plan, "sets": {}})
    with pytest.raises(BadInput, match="not of the same questions"):
        pair_comparisons(first, elsewhere, [("rag", "closed-book")])


def test_evidence_is_part_of_an_aim_where_it_has_a_share(tmp_path):
    taken = {"rag": {"evidence_tokens": 100}, "follow-few": {"evidence_tokens": 30}}
    findings = written(tmp_path / "out", {"rag": [(1, None)] * 5, "follow-few": [(1, None)] * 5}, **taken)
    plan = {**findings.plan, "aims": [{**findings.plan["aims"][1], "share": share} for share in (0.25, 0.5)]}
    tight, loose = judge_goals(ComparisonResults(plan, findings.answers))
    assert (tight.verdict, loose.verdict) == ("missed", "reached")
    assert tight.figure.endswith(".300 of its evidence tokens")


def test_how_likely_an_answer_was_is_asked_of_every_short_system_and_stands_in_its_result(tmp_path):
    given = list(
        ComparisonRun(without("loop"), tmp_path / "out", Sure()).answer_missing(
            ComparisonSlice((), ["first"], 1)
        )
    )
    assert len(given) == 4 and all(result.token_probability == pytest.approx(0.5) for _, result in given)
    assert not JSON_CALL.prompt(
        "Where?", None
    ).likelihood  # what was recorded before is still found by its prompt
    measured = calibration(ComparisonResults.load(tmp_path / "out"), "rag", "all sets")
    assert measured["calibration_error"] == pytest.approx(0.5)


def test_no_question_is_begun_once_the_minutes_are_over(tmp_path):
    times = iter([0.0, 0.0, 30.0, 59.0, 60.0])
    answered = list(
        ComparisonRun(TINY, tmp_path / "out", reader(), clock=lambda: next(times)).answer_missing(minutes=1)
    )
    assert [due for due, _ in answered] == list(questions_in_turn(TINY))[:3]


def test_questions_of_a_group_are_drawn_together(tmp_path):
    alone = written(tmp_path / "one", {"rag": [(1, None), (1, None), (0, None), (0, None), (0, None)]})
    linked = written(
        tmp_path / "two", {"rag": [(1, None), (1, None), (0, None), (0, None), (0, None)]}, rag={"group": "g"}
    )
    own, whole = row_of(alone, "rag").em, row_of(linked, "rag").em
    usual = interval([1, 1, 0, 0, 0], rounds=300, seed=TINY.seed)
    assert (own.mean, own.low, own.high) == pytest.approx((usual.mean, usual.low, usual.high))
    assert whole.mean == own.mean
    assert whole != own


def test_questions_of_musique_that_share_a_step_are_one_group():
    questions = musique_dev().questions
    assert len({question.group for question in questions}) == 196
    by_step: dict[str, set[str]] = {}
    for question in questions:
        for step in question.id.partition("__")[2].split("_"):
            by_step.setdefault(step, set()).add(question.group)
    assert all(len(groups) == 1 for groups in by_step.values())


def test_some_systems_sets_and_first_questions_may_be_asked_alone():
    chosen = list(questions_in_turn(TINY, ComparisonSlice(["rag"], ["second"], 1)))
    assert [(due.set, due.system, due.question.id) for due in chosen] == [("second", "rag", "newton")]
    for wrong in (ComparisonSlice(["ragg"]), ComparisonSlice((), ["third"])):
        with pytest.raises(UnknownName):
            list(questions_in_turn(TINY, wrong))


def test_the_facts_of_a_question_are_sentences_of_its_passages_that_mostly_hold_the_answer(drawn):
    for name, sample in drawn.items():
        texts = {document.id: " ".join(document.text.split()) for document in sample.documents}
        for question in sample.questions:
            assert question.facts and len(set(question.facts)) == len(question.facts)
            for fact in question.facts:
                assert any(" ".join(fact.split()) in texts[id] for id in question.gold), (name, question.id)


def test_the_passages_of_musique_498_have_their_vectors_on_file():
    documents, model = musique_dev().documents, MiniLM()
    kept, digest = StoredVectors.load(bundled_path("musique-498/vectors.npz")), model.digest
    kept.require_embedder(model)
    assert set(kept.keys) == {text_key(digest, full_text(document)) for document in documents}
