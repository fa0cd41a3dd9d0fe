"""What is stopped, and what is done twice: forks, extractions, graphs and namespaces of the command line lose nothing and say what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import REST, WRITE, asking, replies
from support.openai_server import openai_server, refuses

from kgot_lab.loop.events import ToolReturned
from kgot_lab.loop.trace import load_run

pytestmark = pytest.mark.usefixtures("here")

PARIS = [{"statements": ['add("Ada Lovelace", "born in", "Paris")']}, *REST[1:5], {"answer": "Paris"}, {"answer": "Paris"}]


def returned_in(path):
    return next(number for number, event in enumerate(load_run(path).events) if isinstance(event, ToolReturned))


def interrupted(*_):
    """What a model server does while Ctrl-C is typed."""
    raise KeyboardInterrupt


# --- forks ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def forked_from(kgot_lab, server):
    """The words of a fork of a run on file."""
    assert kgot_lab(*asking(server, "--tool", "search", "--trace", "run.jsonl")).code == 0
    return ["fork", "run.jsonl", returned_in("run.jsonl"), "--change", "Ada Lovelace was born in Paris.", "--documents", "my papers"]


def test_a_fork_that_ctrl_c_stops_keeps_every_reply_and_says_how_to_go_on(kgot_lab, forked_from, monkeypatch):
    from kgot_lab.llm.budget import Budgeted

    with openai_server(*replies(*PARIS)) as model:
        call, calls = Budgeted.__call__, []

        def stopped_later(self, prompt):
            calls.append(prompt)
            return interrupted() if len(calls) == 3 else call(self, prompt)

        with monkeypatch.context() as patched:
            patched.setattr(Budgeted, "__call__", stopped_later)
            ran = kgot_lab(*forked_from, "--model", f"{model.url}#m", "--max-calls", "9", "--out", "fork.jsonl")
        assert ran.code == 130 and "Everything so far is in fork.jsonl" in ran.err and len(model.bodies) == 2, ran.err
        assert "wrote " in ran.out  # shown while it runs
        resumed = kgot_lab(*ran.again[1:])
        assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err
        assert len(model.bodies) == len(PARIS)
    assert kgot_lab("verify", "fork.jsonl").code == 0


def test_a_fork_whose_model_fails_ends_with_the_command_that_goes_on(kgot_lab, forked_from):
    with openai_server(*replies(*PARIS[:2]), refuses(400, "no"), *replies(*PARIS[2:])) as model:
        ran = kgot_lab(*forked_from, "--model", f"{model.url}#m", "--out", "fork.jsonl")
        assert ran.code == 1 and ran.again[:3] == ["kgot-lab", "resume", "fork.jsonl"], ran.err
        resumed = kgot_lab(*ran.again[1:])
    assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err


def test_a_fork_without_a_model_says_the_command_that_goes_on_with_one(kgot_lab, forked_from):
    ran = kgot_lab(*forked_from)
    assert ran.code == 0 and "no live model was given" in ran.out
    assert "--model MODEL" in ran.err and "give --model to go on" not in ran.err
    with openai_server(*replies(*PARIS)) as model:
        resumed = kgot_lab(*[f"{model.url}#m" if word == "MODEL" else word for word in ran.again[1:]])
    assert resumed.code == 0 and "Answer: Paris" in resumed.out, resumed.err


# --- extractions ----------------------------------------------------------------------------------------------------------


def test_a_finished_extraction_has_nothing_left_to_do_and_asks_nothing(kgot_lab, here):
    with openai_server(*replies(WRITE, WRITE)) as model:
        words = ["extract", "my papers", "--model", f"{model.url}#m", "--trace", "x.jsonl"]
        assert kgot_lab(*words).code == 0
        graph, before = Path("graph.jsonl").read_bytes(), Path("x.jsonl").read_bytes()
        Path("graph.jsonl").unlink()
        for _ in range(2):
            ran = kgot_lab(*words, "--resume")
            assert ran.code == 0 and "nothing is left to do" in ran.err and "estimate" not in ran.err, ran.err
        assert len(model.bodies) == 2 and Path("x.jsonl").read_bytes() == before and Path("graph.jsonl").read_bytes() == graph


def test_a_document_in_the_middle_is_gone_on_with_and_only_what_is_left_is_estimated(kgot_lab, here):
    (here / "my papers" / "ada.md").write_text("# Ada\n\nAda was born in London. Ada knew Babbage. Ada wrote notes.\n")
    facts = ["Ada | born in | London", "Ada | knew | Babbage", "Ada | wrote | notes", "Charles Babbage | designed | Analytical Engine"]
    with openai_server(*replies(*facts)) as model:
        words = ["extract", "my papers", "--model", f"{model.url}#m", "--preset", "local"]
        ran = kgot_lab(*words, "--max-calls", "2", "--trace", "x.jsonl")
        assert ran.code == 1
        resumed = kgot_lab(*words, "--trace", "x.jsonl", "--resume")
        assert resumed.code == 0 and len(model.bodies) == 4, resumed.err
    assert "estimate, for what is left of the documents" in resumed.err
    assert len([event for event in load_run("x.jsonl").events if isinstance(event, ToolReturned)]) == 2
