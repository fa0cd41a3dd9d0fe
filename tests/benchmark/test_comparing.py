"""`python -m benchmarks.graph_pays.run` as a user types it: on a tiny design against a model server on this
computer, stopped and gone on with.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.answering_server import answering_server
from support.birthplaces import TINY, told_in_brief

from benchmarks.graph_pays.run import main
from kgot_lab.benchmark.comparison import plan
from kgot_lab.benchmark.comparison.comparison_run import questions_in_turn
from kgot_lab.errors import BadInput, TraceError, UnknownName

pytestmark = pytest.mark.extended


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    """A folder to work in, with the tiny design in place of the real one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "Design", lambda: TINY)
    return tmp_path


@pytest.fixture
def bench(capsys):
    """The command, run in this process: what it prints."""

    def run(*words: object) -> str:
        main([*map(str, words)])
        return capsys.readouterr().out

    return run


def results() -> list[dict[str, object]]:
    files = Path("out").rglob("results.jsonl")
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def test_it_goes_on_over_several_sittings_and_shows_one_table(bench):
    with answering_server(told_in_brief) as server:
        words = ["--model", f"{server.url}#m", "--folder", "out"]
        out = bench(*words, "--only", "rag", "--only", "closed-book", "--limit", 1)
        assert len(results()) == 4, out
        assert "Systems on all sets" in out and "Pairs of systems on the same questions" in out
        assert "right is 'London'" in out and "    0 left  " in out
        out = bench(*words, "--minutes", 60)
        assert len(results()) == len(list(questions_in_turn(TINY)))
        # he is in both sets
        assert all("Isaac Newton" in body for body in server.repeated) and "follow-few − rag" in out
        asked, table = len(server.answered), bench("--folder", "out", "--table")
        assert bench(*words) == table and len(server.answered) == asked
    assert "| rag |" in Path("out/results.md").read_text()
    assert json.loads(Path("out/results.json").read_text())["pairs"]
    assert Path("out/.gitignore").read_text() == "traces/\n.lock*\n"


def test_a_stop_after_some_minutes_leaves_a_plan_and_asks_nothing_more(bench):
    with answering_server(told_in_brief) as server:
        words = ["--model", f"{server.url}#m", "--folder", "out", "--set", "second", "--only", "gold"]
        bench(*words, "--minutes", 1e-12)
    assert Path("out/plan.json").exists()
    assert server.answered == []


def test_the_questions_to_tune_on_have_a_folder_of_their_own(bench, monkeypatch):
    monkeypatch.setattr(plan, "Design", lambda samples, dev: replace(TINY, samples=samples, dev=dev))
    with answering_server(told_in_brief) as server:
        bench("--dev", "--only", "rag", "--minutes", 1e-12, "--model", f"{server.url}#m")
    assert Path("runs/graph-pays-dev/plan.json").exists()
    assert not Path("runs/graph-pays").exists()


def test_what_ended_in_an_error_is_said_and_asked_again(bench):
    refused = ["Curie"]

    def mostly(prompt):
        if any(name in prompt.messages[-1].text for name in refused):
            raise ValueError("not that one")
        return told_in_brief(prompt)

    with answering_server(mostly) as server:
        words = ["--folder", "out", "--only", "gold", "--set", "first", "--model", f"{server.url}#m"]
        out = bench(*words)
        assert "not that one" in out and "Systems on first" in out
        refused.clear()
        bench(*words)
        assert len(results()) == 4


def test_a_damaged_trace_is_not_asked_again_until_it_is_deleted_and_the_message_says_so(bench):
    failing = ["Curie"]

    def mostly(prompt):
        if any(name in prompt.messages[-1].text for name in failing):
            raise ValueError("not that one")
        return told_in_brief(prompt)

    with answering_server(mostly) as server:
        words = ["--model", f"{server.url}#m", "--folder", "out", "--only", "gold", "--set", "first"]
        bench(*words)
        failing.clear()
        [trace] = Path("out").rglob("curie.jsonl")
        trace.write_text(trace.read_text().replace("Marie", "Maria"))
        assert "restore a copy of curie.jsonl, or delete it and it is asked again" in bench(*words)
        trace.unlink()
        bench(*words)
    assert len({row["id"] for row in results() if not row["error"]}) == 3


def test_replies_to_the_same_prompts_are_taken_from_another_folder_and_counted(bench):
    with answering_server(told_in_brief) as server:
        words = ["--model", f"{server.url}#m", "--only", "rag", "--set", "first"]
        bench(*words, "--folder", "out")
        asked = len(server.answered)
        out = bench(*words, "--folder", "two", "--reuse", "out")
        assert "3 replies taken from file instead of asking again" in out
    assert len(server.answered) == asked


@pytest.mark.parametrize(
    ("words", "why", "error"),
    [
        (["--only", "ragg"], "unknown system 'ragg'; did you mean 'rag'?", UnknownName),
        (["--set", "third"], "unknown question set 'third'. Known: first, second", UnknownName),
        (["--table"], "there is no plan of a comparison in out", BadInput),
        (["--model", "recorded:nosuch.jsonl"], "nosuch.jsonl", TraceError),
    ],
)
def test_what_cannot_be_done_says_why(bench, words, why, error):
    with pytest.raises(error) as caught:
        bench(*words, "--folder", "out")
    assert why in str(caught.value)
    assert not Path("out/plan.json").exists()
