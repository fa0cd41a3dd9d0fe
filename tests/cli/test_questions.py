"""`kgot-lab questions`: whole runs against a model server on this computer, killed and gone on with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.answering_server import (
    BORN,
    AnsweringServer,
    answering_server,
    birthplace_questions,
    told_birthplaces,
)
from support.command_line import FIRST, REST, Ran, replies, run_here
from support.openai_server import openai_server, says
from support.waiting import AMPLE, until

from kgot_lab.errors import TraceError
from kgot_lab.llm.model_file import MODEL_VARIABLE
from kgot_lab.loop.events import Asked
from kgot_lab.loop.trace import load_run
from kgot_lab.retrieval.lexical import bm25

pytestmark = pytest.mark.extended

RUN = Path("run")
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """A folder to work in, with a question set and no model, key or cache."""
    work_in(tmp_path, monkeypatch)
    return tmp_path


def work_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    patch.setenv("COLUMNS", "200")
    patch.setenv(MODEL_VARIABLE, str(folder / "no-model.gguf"))
    for name in ("OPENAI_API_KEY", "HF_TOKEN"):
        patch.delenv(name, raising=False)
    write_set(birthplace_questions())


def write_set(rows: list[dict[str, object]], name: str = "born.jsonl") -> None:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def server():
    """A model server that answers the questions properly."""
    with answering_server(told_birthplaces) as serving:
        yield serving


@dataclass(frozen=True)
class Finished:
    """A run over all questions: how it ended, the server that answered it, which is still there, and the
    calls it took.
    """

    ran: Ran
    server: AnsweringServer
    calls: int


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """A finished run and its folder, made once for the tests that begin with one."""
    folder = tmp_path_factory.mktemp("finished")
    with answering_server(told_birthplaces) as serving:
        with pytest.MonkeyPatch.context() as patch:
            work_in(folder, patch)
            ran = run_here(*asking(serving, "--parallel", 2))
        yield Finished(ran, serving, len(serving.answered)), folder / RUN


@pytest.fixture
def finished(made_once, here):
    """A finished run, a copy of whose folder lies here."""
    told, folder = made_once
    shutil.copytree(folder, RUN)
    return told


def asking(server, *more: object) -> list[object]:
    return ["questions", "born.jsonl", "--model", f"{server.url}#m", "--folder", RUN, *more]


def results() -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in map(json.loads, (RUN / "results.jsonl").read_text().splitlines())}


def recorded_calls() -> int:
    """How many replies the traces hold."""
    count = 0
    for path in (RUN / "traces").glob("*.jsonl"):
        try:
            count += sum(isinstance(event, Asked) for event in load_run(path).events)
        except TraceError:  # it has just been begun
            continue
    return count


# --- a run ---


def test_every_question_is_answered_scored_and_kept(finished):
    ran = finished.ran
    assert ran.code == 0, ran.err
    assert "lovelace: correct, 'London', not checked; right is 'London'" in ran.err
    lines = results()
    assert {id: row["predicted"] for id, row in lines.items()} == {
        name.split()[-1].lower(): place for name, place in BORN.items()
    }
    assert all(
        row["correct"]
        and row["em"] == row["f1"] == 1
        and row["outcome"] == "not checked"
        and not row["error"]
        for row in lines.values()
    )
    assert all(
        row["steps"] == 1 and row["tools"] == {"search": 1} and row["seconds"] > 0 for row in lines.values()
    )
    assert sum(row["calls"] for row in lines.values()) == finished.calls == recorded_calls()
    assert sum(row["prompt_tokens"] for row in lines.values()) == 1000 * finished.calls
    assert "born, loop" in ran.out and "level 1" in ran.out
    assert all((RUN / "traces" / f"{id}.jsonl").is_file() for id in lines)
    assert (
        RUN / ".gitignore"
    ).read_text() == "*\n"  # what holds questions of others does not belong in a repository


def test_the_totals_and_the_ledger_are_of_all_questions_by_role_model_and_tool(finished):
    totals, calls = json.loads((RUN / "totals.json").read_text()), finished.calls
    assert totals["questions"] == 4 and totals["errors"] == 0 and totals["all"]["calls"] == calls
    assert sum(role["calls"] for role in totals["by role"].values()) == calls
    assert totals["by role"]["write"]["calls"] == 4
    assert totals["all"]["prompt tokens"] == 1000 * calls
    assert totals["all"]["completion tokens"] == 500 * calls
    assert totals["tools"]["search"]["calls"] == 4 and totals["tools"]["search"]["seconds"] > 0
    ledger = [json.loads(line) for line in (RUN / "ledger.jsonl").read_text().splitlines()]
    assert len(ledger) == calls
    assert {entry["run"] for entry in ledger} == {f"traces/{id}" for id in results()}


def test_the_trace_of_a_question_is_a_run_like_any_other(kgot_lab, finished):
    ran = kgot_lab("verify", RUN / "traces" / "lovelace.jsonl")
    assert ran.code == 0 and "all identical" in ran.out


def test_the_plots_of_a_run_are_drawn_from_its_folder(kgot_lab, finished):
    ran = kgot_lab("questions", "--plots", RUN)
    assert ran.code == 0
    assert ran.out.count("\n") == 10
    assert "Share of correct answers by level: level 1 1.000 (2 of 2)" in ran.out
    assert len(list((RUN / "plots").glob("*.svg"))) == len(list((RUN / "plots").glob("*.json"))) == 10
    assert kgot_lab("questions", "--plots", "elsewhere").code == 1


def test_the_plots_of_the_run_in_folder_are_drawn_where_plots_says(kgot_lab, finished, tmp_path):
    """As one adds `--plots` to the command that ran."""
    drawn = tmp_path / "drawn"
    ran = kgot_lab("questions", "born.jsonl", "--folder", RUN, "--plots", drawn, "--plots-as", "svg")
    assert ran.code == 0
    assert len(list(drawn.glob("*.svg"))) == len(list(drawn.glob("*.json"))) == 10
    assert kgot_lab("questions", "--folder", RUN, "--plots", RUN).code == 0
    missing = kgot_lab("questions", "--folder", "elsewhere", "--plots", drawn)
    assert missing.code == 1 and "no question results in elsewhere" in missing.err


def test_results_are_one_object_where_that_is_asked_for(kgot_lab, server):
    ran = kgot_lab(*asking(server, "--system", "zero-shot", "--json", "--sample", ".5", "--seed", 3))
    told = json.loads(ran.out)
    assert told["by level"]["all"]["questions"] == 2
    assert told["by level"]["all"]["correct"]["mean"] == 1
    assert told["folder"] == "run"


# --- stopped and gone on with ---


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
@pytest.mark.parametrize("system", ["loop", "rag"])
def test_a_run_that_is_killed_again_and_again_repeats_no_call_that_was_answered(kgot_lab, server, system):
    words = [sys.executable, "-m", "kgot_lab", *map(str, asking(server, "--parallel", 3, "--system", system))]
    for most in {"loop": (5, 23), "rag": (1, 3)}[system]:
        server.hold_after(most)
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until(
            lambda most=most: server.held and recorded_calls() == most,
            "every answered call is on file and the next one waits",
        )
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(timeout=AMPLE) == -signal.SIGKILL
        server.release()
    ran = kgot_lab(*asking(server, "--parallel", 3, "--system", system))
    assert ran.code == 0, ran.err
    assert server.repeated == [] and recorded_calls() == len(server.answered)
    assert len(results()) == 4 and all(row["correct"] for row in results().values())


def test_a_finished_run_asks_nothing_more(kgot_lab, finished):
    again = kgot_lab(*asking(finished.server))
    assert (again.code, len(finished.server.answered)) == (0, finished.calls)
    assert "4 of 4 questions are answered already" in again.err
    assert again.out == finished.ran.out


@pytest.mark.skipif(os.name == "nt", reason="process groups")
def test_ctrl_c_waits_for_the_calls_under_way_and_says_how_to_go_on(kgot_lab, server):
    server.hold_after(6)
    words = [sys.executable, "-m", "kgot_lab", *map(str, asking(server, "--parallel", 2))]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    until(lambda: server.held == 2, "both questions wait for an answer")
    os.killpg(process.pid, signal.SIGINT)
    server.release()
    _, err = process.communicate(timeout=AMPLE)
    assert process.returncode == 130 and "Traceback" not in err
    assert "the same command goes on from there" in err
    assert kgot_lab(*asking(server)).code == 0 and server.repeated == []


# --- one budget ---


def test_the_budget_is_of_all_questions_and_all_sittings(kgot_lab, server):
    stopped = kgot_lab(*asking(server, "--parallel", 3, "--max-calls", 20))
    assert stopped.code == 1
    assert "of 20 calls are spent" in stopped.err
    assert "the same command with a larger --max-calls goes on" in stopped.err
    assert len(server.answered) == 20 == recorded_calls()
    still = kgot_lab(*asking(server, "--parallel", 3, "--max-calls", 20))
    assert still.code == 1 and len(server.answered) == 20  # what earlier sittings spent counts
    assert kgot_lab(*asking(server, "--max-calls", 1000)).code == 0 and server.repeated == []
    assert all(row["correct"] and not row["error"] for row in results().values())


def test_calls_that_failed_and_are_in_no_trace_count_in_the_next_sitting(kgot_lab, here):
    def reply(prompt):
        raise ValueError("out of order")

    with answering_server(reply) as failing:
        first = kgot_lab(*asking(failing, "--limit", 2, "--max-calls", 2))
        assert first.code == 1 and all("out of order" in row["error"] for row in results().values())
        asked = len(failing.answered)
        again = kgot_lab(*asking(failing, "--limit", 2, "--max-calls", 2))
        assert again.code == 1 and "2 of 2 calls are spent" in again.err and len(failing.answered) == asked


def test_tokens_are_limited_likewise(kgot_lab, server):
    stopped = kgot_lab(*asking(server, "--parallel", 3, "--max-tokens", 12_000))
    assert stopped.code == 1 and "tokens are spent" in stopped.err and len(server.answered) * 1500 <= 12_000


# --- another plan, errors, bad input ---


def test_a_folder_with_another_plan_is_refused_saying_what_differs(kgot_lab, server):
    assert kgot_lab(*asking(server, "--limit", 1)).code == 0
    for more, said in (
        (["--limit", 2], "selection.limit is 1 there and 2 now"),
        (["--limit", 1, "--preset", "local"], "limits.steps is 7 there and 3 now"),
        (["--limit", 1, "--system", "rag"], 'system is "loop" there and "rag" now'),
    ):
        ran = kgot_lab(*asking(server, *more))
        assert ran.code == 1 and said in ran.err and "another plan" in ran.err
    other = kgot_lab(
        "questions", "born.jsonl", "--limit", 1, "--model", f"{server.url}#other", "--folder", RUN
    )
    assert other.code == 1 and "model is" in other.err
    write_set([{**row, "answer": "Paris"} for row in birthplace_questions()])
    changed = kgot_lab(*asking(server, "--limit", 1))
    assert changed.code == 1 and "set_sha256" in changed.err


def test_an_error_in_one_question_is_a_line_and_not_the_end_and_it_is_tried_again_the_next_time(
    kgot_lab, here
):
    refusing = [True]

    def reply(prompt):
        if refusing[0] and "Where was Marie Curie born?" in prompt.messages[-1].text:
            raise ValueError("this prompt is not to my taste")
        return told_birthplaces(prompt)

    with answering_server(reply) as server:
        ran = kgot_lab(*asking(server))
        assert ran.code == 1
        assert "1 question ended in an error; the same command asks for it again" in ran.err
        assert "curie: " in ran.err
        assert "not to my taste" in results()["curie"]["error"]
        others = {id: row["error"] for id, row in results().items() if id != "curie"}
        assert len(others) == 3 and set(others.values()) == {""}
        refusing[0] = False
        [trace] = (RUN / "traces").glob("curie.jsonl")
        whole = trace.read_text()
        trace.write_text(whole.replace("Marie", "Maria"))
        ran = kgot_lab(*asking(server))
        assert ran.code == 1
        assert (
            "1 question ended in an error; a damaged trace (1) has to be restored or deleted first" in ran.err
        )
        trace.write_text(whole)
        assert kgot_lab(*asking(server)).code == 0
        assert results()["curie"]["correct"]
        assert not results()["curie"]["error"]


def test_along_paths_a_question_with_a_file_or_without_documents_is_an_error_of_its_own_and_the_others_are_answered(
    kgot_lab, here
):
    Path("table.csv").write_text("name,town\nAda Lovelace,London\n")
    told = [{"title": "Ada Lovelace", "text": "Ada Lovelace was born in London."}]
    ask = {"question": "In which town was Ada Lovelace born?", "answer": "London"}
    filed = {"id": "filed", **ask, "documents": told, "attachments": ["table.csv"]}
    write_set([filed, {"id": "bare", **ask}, {"id": "told", **ask, "documents": told}])
    with answering_server(lambda _: "London") as serving:
        ran = kgot_lab(*asking(serving, "--preset", "paths"))
        assert ran.code == 1 and "2 questions ended in an error" in ran.err and "3/3" in ran.err
        assert results()["told"]["correct"] and "not attached files" in results()["filed"]["error"]
        assert "a tool that finds documents" in results()["bare"]["error"]


def test_a_server_that_fails_on_everything_ends_the_run(kgot_lab, here):
    write_set(
        [
            {"question": f"Question {number}?", "answer": "x", "documents": [{"text": "Some text."}]}
            for number in range(12)
        ]
    )

    def reply(prompt):
        raise ValueError("out of order")

    with answering_server(reply) as server:
        ran = kgot_lab(*asking(server))
        assert ran.code == 1 and "failed on 5 questions in a row" in ran.err and "out of order" in ran.err
        assert len(results()) == 5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["questions"], "name a question set"),
        (["questions", "hotpot"], "did you mean 'hotpotqa'"),
        (["questions", "gaia"], "HF_TOKEN"),
        (["questions", "born.jsonl", "--system", "lop"], "did you mean 'loop'"),
        (["questions", "born.jsonl", "--parallel", "0"], "--parallel must be 1 or more"),
        (["questions", "born.jsonl", "--sample", "10"], "sample must be a number, more than 0 and at most 1"),
        (["questions", "born.jsonl", "--level", "9"], "unknown level '9'"),
        (["questions", "born.jsonl", "--part", "test"], "unknown part 'test'"),
        (["questions", "born.jsonl", "--limit", "0"], "limit must be a number, 1 or more"),
        (
            ["questions", "simpleqa", "--system", "rag", "--model", "http://127.0.0.1:9/v1#m"],
            "--documents DIR",
        ),
    ],
)
def test_bad_input_is_one_sentence(kgot_lab, words, said):
    ran = kgot_lab(*words)
    assert ran.code == 1 and said in ran.err and ran.err.count("error: ") == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--store", "neo4jj"], "unknown store 'neo4jj'"),
        (["--store", "sqlite"], "unknown store for a run 'sqlite'"),
        (["--web", "--system", "rag"], "--web means nothing for rag"),
        (["--mirror", "pages", "--system", "zero-shot"], "--mirror means nothing for zero-shot"),
        (["--execution-model", "local", "--system", "rag"], "--execution-model means nothing for rag"),
        (["--store", "fused", "--system", "zero-shot"], "--store means nothing for zero-shot"),
        (["--mirror", "nowhere"], "nowhere is not a folder"),
        (
            ["--max-dollars", "5", "--grader", "judge", "--models", "models.yaml"],
            "the price of openai:model-x is not known",
        ),
    ],
)
def test_what_is_refused_leaves_no_plan_behind_and_asks_nothing(kgot_lab, server, monkeypatch, more, said):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    Path("models.yaml").write_text("judge:\n  model: openai:model-x\n")
    ran = kgot_lab(*asking(server, *more))
    assert ran.code == 1 and said in ran.err and not (RUN / "plan.json").exists() and server.answered == []
    # the cheapest plan that is another than the one refused
    assert kgot_lab(*asking(server, "--system", "zero-shot")).code == 0


def test_another_plan_is_refused_before_a_model_is_connected(kgot_lab, server):
    assert kgot_lab(*asking(server, "--limit", 1)).code == 0
    # there is none
    ran = kgot_lab("questions", "born.jsonl", "--limit", 2, "--model", "local", "--folder", RUN)
    assert ran.code == 1 and "selection.limit is 1 there and 2 now" in ran.err


def test_a_plan_of_an_earlier_version_goes_on(kgot_lab, finished):
    plan = json.loads((RUN / "plan.json").read_text())
    (RUN / "plan.json").write_text(
        json.dumps({name: value for name, value in plan.items() if name not in {"web", "mirror"}})
    )
    assert kgot_lab(*asking(finished.server)).code == 0 and len(finished.server.answered) == finished.calls


# --- models by name, limits, tools ---


def test_models_are_named_as_in_a_file_and_single_limits_are_set(kgot_lab, server):
    Path("models.yaml").write_text(
        f"mine:\n  model: {server.url}#m\n  price: {{prompt: 1.0, completion: 2.0}}\n"
    )
    words = [
        *"questions born.jsonl --model mine --models models.yaml --folder".split(),
        RUN,
        "--set",
        "steps=2",
    ]
    ran = kgot_lab(*words)
    assert ran.code == 0, ran.err
    plan = json.loads((RUN / "plan.json").read_text())
    assert plan["model"].endswith(":m")
    assert plan["limits"]["steps"] == 2
    assert plan["limits"]["preset"] == "reference*"
    assert all(row["correct"] and row["dollars"] > 0 for row in results().values())
    assert "estimate, for 4 questions of 2 turns: about" in ran.err and "$" in ran.err
    assert "estimate" not in kgot_lab(*words).err  # nothing is left to ask
    assert "limits.steps is 2 there and 3 now" in kgot_lab(*words[:-1], "steps=3").err


def test_a_small_model_gets_few_tools_and_another_all_that_work(kgot_lab, server):
    Path("note.txt").write_text("Ada Lovelace was born in London.")
    write_set([{**row, "attachments": ["note.txt"]} for row in birthplace_questions()])
    for preset, tools in (
        ("local", ["read_attachment", "search"]),
        ("reference", ["inspect_file", "llm_query", "python", "search"]),
    ):
        folder = Path(f"of-{preset}")
        kgot_lab(
            *f"questions born.jsonl --model {server.url}#m --folder".split(),
            folder,
            "--preset",
            preset,
            "--limit",
            1,
        )
        assert json.loads((folder / "plan.json").read_text())["tools"] == tools


def test_questions_answered_at_once_look_into_a_folder_that_stands_in_for_the_web(kgot_lab, here):
    pages = here / "pages"
    pages.mkdir()
    for name, place in BORN.items():
        (pages / f"{name.split()[-1]}.html").write_text(
            f"<title>{name}</title><p>{name} was born in {place}.</p>"
        )
    write_set(
        [
            {name: value for name, value in row.items() if name != "documents"}
            for row in birthplace_questions()
        ]
    )

    def reply(prompt):
        name = next(name for name in BORN if name in str(prompt.messages[1].text))
        if "Moves:" in prompt.messages[1].text:
            searched = len(prompt.messages) > 2
            move = {"move": "answer", "arguments": {"text": f"{name} was born in {BORN[name]}."}}
            return json.dumps(
                {
                    "thought": "so",
                    **(move if searched else {"move": "web_search", "arguments": {"query": name}}),
                }
            )
        told = told_birthplaces(prompt)
        calls = {"calls": [{"tool": "ask_search_agent", "arguments": {"query": f"Where was {name} born?"}}]}
        return json.dumps(calls) if '"calls"' in told else told

    with answering_server(reply) as server:
        ran = kgot_lab(*asking(server, "--mirror", "pages", "--parallel", 4))
        assert ran.code == 0, ran.err
        plan = json.loads((RUN / "plan.json").read_text())
        assert plan["mirror"] == str(pages.resolve()) and plan["web"] is False
        assert plan["tools"] == ["ask_search_agent", "llm_query", "python"]
        assert all(row["correct"] and row["tools"] == {"ask_search_agent": 1} for row in results().values())
        # those of the agent are counted
        assert sum(row["calls"] for row in results().values()) == len(server.answered)
        moved = kgot_lab(*asking(server))
        assert moved.code == 1 and "mirror is" in moved.err


def test_an_id_that_looks_like_markup_or_commands_the_terminal_is_only_an_id(kgot_lab, server):
    ids = ["q[/b]", "[red]", "a\x1b[2J"]
    write_set([{**row, "id": id} for row, id in zip(birthplace_questions(), ids, strict=False)])
    ran = kgot_lab(*asking(server, "--system", "zero-shot"))
    assert ran.code == 0
    assert set(results()) == set(ids)
    assert "q[/b]: correct" in ran.err
    assert "\x1b[2J" not in ran.err


# --- which system, which questions, who grades ---


@pytest.mark.parametrize(
    ("system", "calls", "outcome"),
    [("rag", 1, "not checked"), ("rag-unknown", 1, "not checked"), ("zero-shot", 1, "unsure")],
)
def test_the_baselines_answer_the_same_questions_in_one_call_each(kgot_lab, server, system, calls, outcome):
    ran = kgot_lab(*asking(server, "--system", system))
    assert ran.code == 0, ran.err
    assert len(server.answered) == 4 * calls
    assert all(row["correct"] and row["outcome"] == outcome for row in results().values())
    assert all(row["tools"] == ({} if system == "zero-shot" else {"search": 1}) for row in results().values())


def test_bundled_questions_are_asked_with_their_passages(kgot_lab, here, monkeypatch):
    # the default retriever would compute the vectors of 4,000 sentences for half a minute
    monkeypatch.setattr("kgot_lab.tools.search.default_retriever", lambda passages, *_, **__: bm25(passages))

    def reply(prompt):
        return json.dumps({"answer": "yes"})

    with answering_server(reply) as server:
        words = [
            *"questions hotpotqa --system rag --limit".split(),
            3,
            *f"--model {server.url}#m --folder".split(),
            RUN,
        ]
        assert kgot_lab(*words).code == 0
    assert len(results()) == 3 and all(row["tools"] == {"search": 1} for row in results().values())
    assert all("Passages:\n[1]" in json.loads(body)["messages"][1]["content"] for body in server.answered)


def test_grades_can_be_added_later_and_no_answer_is_asked_for_again(kgot_lab, server):
    assert kgot_lab(*asking(server, "--system", "zero-shot")).code == 0
    with answering_server(lambda p: "C" if "Curie" in p.messages[-1].text else "The grade is A.") as grader:
        graded = kgot_lab(*asking(server, "--system", "zero-shot", "--grader", f"{grader.url}#judge"))
        assert graded.code == 0 and "correct given attempted" in graded.out
        assert len(server.answered) == 4 and len(grader.answered) == 4
        assert {row["grade"] for row in results().values()} == {"correct", "not attempted"}
        assert results()["curie"]["span"] == "C"
        assert "curie: not attempted (the grader said 'C'), 'Warsaw', unsure; right is 'Warsaw'" in graded.err
        kgot_lab(*asking(server, "--system", "zero-shot", "--grader", f"{grader.url}#judge"))
        assert len(grader.answered) == 4
    assert json.loads((RUN / "totals.json").read_text())["by role"]["grade"]["calls"] == 4


def test_a_picture_of_a_question_is_seen_by_a_vision_model_of_the_same_budget(kgot_lab, here):
    look = {
        "calls": [{"tool": "image_question", "arguments": {"image": "lamp.png", "question": "Where is it?"}}]
    }
    Path("lamp.png").write_bytes(PNG)
    write_set(
        [{"question": "What is in the picture?", "answer": "London", "attachments": ["lamp.png"]}],
        "seen.jsonl",
    )
    with openai_server(*replies(*FIRST[:3], look, "Ada Lovelace in London", *REST)) as server:
        words = [
            *f"questions seen.jsonl --model {server.url}#m --vision-model {server.url}#eye".split(),
            "--folder",
            RUN,
        ]
        ran = kgot_lab(*words, "--max-calls", 30, "--engine", "ddgs")
    (seen,) = [body for body in server.bodies if body["model"] == "eye"]
    assert "data:image/png" in json.dumps(seen), ran.err
    totals = json.loads((RUN / "totals.json").read_text())
    assert totals["by role"]["inside image_question"]["calls"] == 1
    assert totals["all"]["calls"] == len(server.bodies)
    plan = json.loads((RUN / "plan.json").read_text())
    assert "image_question" in plan["tools"] and plan["vision"].endswith("eye") and plan["engine"] == "ddgs"
    other = kgot_lab(
        *[word if "#eye" not in str(word) else f"{server.url}#other" for word in words], "--engine", "ddgs"
    )
    assert other.code == 1 and "vision is" in other.err


def test_a_page_of_yaml_and_single_limits_are_taken_and_printed_back(kgot_lab, server):
    Path("lab.yaml").write_text(
        "preset: reference\nlimits: {steps: 2}\nstore: {at: somewhere}\ntools: {engine: tavily}\n"
    )
    ran = kgot_lab(*asking(server, "--config", "lab.yaml", "--set", "votes=3", "--limit", 1))
    assert ran.code == 0, ran.err
    assert "does not use store.at of the configuration" in ran.err, ran.err
    assert "engine: tavily" in ran.err, ran.err
    limits = json.loads((RUN / "plan.json").read_text())["limits"]
    assert (limits["steps"], limits["votes"], limits["answer_format"]) == (2, 3, "gaia")
    assert (
        "unknown search engine 'gogle'"
        in kgot_lab(*asking(server, "--engine", "gogle", "--folder", "other")).err
    )


def test_dollars_that_a_server_does_not_tell_are_no_zeros_in_the_table(kgot_lab, here):
    write_set([{"id": "a", "question": "Where?", "answer": "London"}])
    with openai_server(says("London", usage=None)) as model:
        ran = kgot_lab(*asking(model, "--system", "zero-shot"))
    assert ran.code == 0 and "not reported" in ran.out and "0.0000" not in ran.out, ran.err


@pytest.mark.parametrize(
    ("rows", "name", "more", "says"),
    [
        ([{"question": "Where?", "answer": ["London", "Paris"]}], "born.jsonl", [], 'what else is right stands under "aliases"'),
        ([{"question": "Where?", "answer": " "}], "born.jsonl", [], "the right answer is a text or a number"),
        ([], "nosuch.jsonl", [], "there is no file nosuch.jsonl"),
        ([], "hotpotqq", [], "did you mean 'hotpotqa'?"),
        (
            [{"question": "Where?", "answer": "x", "documents": [{"text": "London"}]}, {"id": "two", "question": "When?", "answer": "y"}],
            "born.jsonl", ["--system", "rag"], "question 'two' of born has none: name a folder",
        ),
        ([{"question": "Where?", "answer": "x", "documents": "pages"}], "born.jsonl", [], "documents are a list of objects with title"),
        ([{"question": "Where?", "answer": "x", "documents": ["pages"]}], "born.jsonl", [], "there is no 'pages' in /"),
        ([{"question": "Where?", "answer": "x"}], "born.jsonl", ["--preset", "paths"], "no question has any: name a folder"),
        (
            [{"question": "Where?", "answer": "x", "documents": [{"text": "London"}], "attachments": ["born.jsonl"]}],
            "born.jsonl", ["--preset", "paths"], "not attached files, and every question has one",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_set_is_said_in_its_words(kgot_lab, server, rows, name, more, says):
    write_set(rows)
    ran = kgot_lab("questions", name, "--model", f"{server.url}#m", "--folder", RUN, *more)
    assert ran.code == 1 and says in ran.err and not server.answered, ran.err
