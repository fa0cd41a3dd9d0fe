"""`kgot-lab bench questions` as a user types it: on a tiny design against a model server on this computer,
stopped and gone on with.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from support.answering_server import answering_server
from support.birthplaces import TINY, told_in_brief

from kgot_lab.benchmark.comparison import plan
from kgot_lab.benchmark.comparison.comparison_run import questions_in_turn
from kgot_lab.cli.app import main

pytestmark = pytest.mark.extended


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """A folder to work in, with the tiny design in place of the real one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(plan, "Design", lambda: TINY)
    return tmp_path


@pytest.fixture
def bench(kgot_lab):
    """`kgot-lab bench questions`, run in this process: exit code, standard output, standard error."""
    return partial(kgot_lab, "bench", "questions")


def results() -> list[dict[str, object]]:
    files = Path("out").rglob("results.jsonl")
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_it_goes_on_over_several_sittings_and_shows_one_table(bench):
    with answering_server(told_in_brief) as server:
        words = ["--model", f"{server.url}#m", "--folder", "out"]
        code, out, err = bench(*words, "--only", "rag", "--only", "closed-book", "--limit", 1)
        assert code == 0, err
        assert len(results()) == 4, err
        assert "Systems on all sets" in out, err
        assert "Pairs of systems on the same questions" in out, err
        assert "right is 'London'" in err and "What is left to answer" in err
        code, out, err = bench(*words, "--minutes", 60)
        assert code == 0
        assert len(results()) == len(list(questions_in_turn(TINY)))
        assert "still to be given" not in err
        # he is in both sets
        assert all("Isaac Newton" in body for body in server.repeated) and "follow-few − rag" in out
        asked = len(server.answered)
        assert bench(*words)[:2] == (0, out) and len(server.answered) == asked
    assert bench("--folder", "out", "--table")[:2] == (0, out)
    assert "| rag |" in Path("out/results.md").read_text()
    assert json.loads(Path("out/results.json").read_text())["pairs"]
    assert Path("out/.gitignore").read_text() == "traces/\n.lock*\n"


def test_a_stop_after_some_minutes_says_what_is_left(bench):
    with answering_server(told_in_brief) as server:
        code, _, err = bench(
            "--model",
            f"{server.url}#m",
            "--folder",
            "out",
            "--set",
            "second",
            "--minutes",
            1e-12,
            "--only",
            "gold",
        )
    assert code == 0
    assert "2 of 2 answers are still to be given. Everything so far is in out" in err
    assert Path("out/plan.json").exists()
    assert server.answered == []
    assert "error: no question is answered yet in out" in bench("--folder", "out", "--table")[2]


def test_the_questions_to_tune_on_have_a_folder_of_their_own(bench, monkeypatch):
    monkeypatch.setattr(plan, "Design", lambda samples, dev: replace(TINY, samples=samples, dev=dev))
    with answering_server(told_in_brief) as server:
        code, out, err = bench("--dev", "--estimate", "--only", "rag")
        assert code == 0
        assert "rag on musique" in out
        assert "musique-498" not in out
        assert "runs/graph-pays" not in err
        code, _, err = bench("--dev", "--only", "rag", "--minutes", 1e-12, "--model", f"{server.url}#m")
    assert code == 0, err
    assert Path("runs/graph-pays-dev/plan.json").exists(), err
    assert not Path("runs/graph-pays").exists(), err


def test_what_ended_in_an_error_is_said_and_asked_again(bench):
    refused = ["Curie"]

    def mostly(prompt):
        if any(name in prompt.messages[-1].text for name in refused):
            raise ValueError("not that one")
        return told_in_brief(prompt)

    words = ["--folder", "out", "--only", "gold", "--set", "first"]
    with answering_server(mostly) as server:
        code, out, err = bench(*words, "--model", f"{server.url}#m")
        assert code == 1
        assert "1 answer ended in an error; the same command asks for it again" in err
        assert "Systems on first" in out
        refused.clear()
        assert bench(*words, "--model", f"{server.url}#m")[0] == 0 and len(results()) == 4


def test_a_damaged_trace_is_not_asked_again_until_it_is_deleted_and_the_message_says_so(bench):
    failing = ["Curie"]

    def mostly(prompt):
        if any(name in prompt.messages[-1].text for name in failing):
            raise ValueError("not that one")
        return told_in_brief(prompt)

    with answering_server(mostly) as server:
        words = ["--model", f"{server.url}#m", "--folder", "out", "--only", "gold", "--set", "first"]
        assert bench(*words)[0] == 1
        failing.clear()
        [trace] = Path("out").rglob("curie.jsonl")
        trace.write_text(trace.read_text().replace("Marie", "Maria"))
        code, _, err = bench(*words)
        assert code == 1 and "restore a copy of curie.jsonl, or delete it and it is asked again" in err
        assert "1 answer ended in an error; a damaged trace has to be restored or deleted first" in err
        trace.unlink()
        code, _, err = bench(*words)
    assert code == 0 and len({row["id"] for row in results() if not row["error"]}) == 3, err


def test_reused_replies_are_counted_and_a_folder_that_is_not_there_is_an_error(bench):
    with answering_server(told_in_brief) as server:
        words = ["--model", f"{server.url}#m", "--only", "rag", "--set", "first"]
        assert bench(*words, "--folder", "out")[0] == 0
        asked = len(server.answered)
        code, _, err = bench(*words, "--folder", "two", "--reuse", "outt")
        assert code == 1
        assert err == "error: --reuse outt: there is no such folder, so there are no replies to take\n"
        code, _, err = bench(*words, "--folder", "two", "--reuse", "out")
        assert code == 0
        assert "3 replies on file in out" in err
        assert "3 replies taken from file instead of asking again" in err
        Path("empty").mkdir()
        code, _, err = bench(*words, "--folder", "three", "--reuse", "empty", "--limit", 1)
        assert "0 replies on file in empty" in err and "0 replies taken from file" in err
    assert len(server.answered) == asked + 1


def test_an_estimate_checks_the_plan(bench, monkeypatch):
    with answering_server(told_in_brief) as server:
        model = ["--model", f"{server.url}#m"]
        words = ["--only", "rag", "--set", "first", "--limit", 1, "--folder", "out"]
        assert bench(*words, *model)[0] == 0
        assert bench(*words, "--estimate")[0] == bench(*words, "--estimate", *model)[0] == 0
        code, _, err = bench(*words, "--estimate", "--model", f"{server.url}#another")
        assert code == 1 and "another plan: model.name is" in err
        many = {
            **TINY.systems,
            "rag": replace(TINY.systems["rag"], passages=3, reads="few", search="follow", questions=7),
        }
        with monkeypatch.context() as patched:
            patched.setattr(plan, "Design", lambda: replace(TINY, systems=many))
            code, _, err = bench(*words, "--estimate")
        assert code == 1 and "another plan: " in err and "and 2 more. A plan is not changed afterwards" in err


def test_an_estimate_asks_nothing_and_writes_nothing(bench):
    code, out, _ = bench("--estimate", "--folder", "out")
    assert code == 0
    assert out.startswith("What is left to answer")
    assert "rag on first" in out
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--only", "ragg"], "unknown system 'ragg'; did you mean 'rag'?"),
        (["--set", "third"], "unknown question set 'third'. Known: first, second"),
        (["--limit", "0"], "--limit must be 1 or more"),
        (["--minutes", "0"], "--minutes"),
        (["--estimate", "--table"], "leave out one of them"),
        (["--table", "--only", "rag"], "--table shows all that is on file: leave --only out"),
        (["--table"], "there is no plan of a comparison in out"),
        (["--model", "recorded:nosuch.jsonl"], "nosuch.jsonl"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(bench, words, why):
    code, out, err = bench(*words, "--folder", "out")
    lines = [line for line in err.splitlines() if line.strip()]
    assert code == 1 and not out and len(lines) == 1 and lines[0].startswith("error: ") and why in lines[0], (
        err
    )
    assert not Path("out/plan.json").exists()


def test_bench_without_a_name_is_the_recall_benchmark_as_before(monkeypatch, capsys):
    for words in (["--help"], ["musique", "--help"], ["recall", "--help"]):
        monkeypatch.setattr(sys, "argv", ["kgot-lab", "bench", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr().out
        assert not ended.value.code
        assert "Measure every retrieval system" in told
        assert "kgot-lab bench questions" in told
