"""A run that is resumed with other documents or files than it began with says so, and goes on."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from support.command_line import run_here
from support.loop_script import ADA, FEW, call, of, scripted, votes
from support.openai_server import openai_server, says

import kgot_lab as lab
from kgot_lab.errors import OverBudget
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.loop.events import Answered, Started
from kgot_lab.loop.replay.replay import Resources, resume, verify
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.files import FileCollection, extract_zip, read_attachment
from kgot_lab.tools.media import inspect_file
from kgot_lab.types import Document

QUESTION = "Where was Ada born?"
ONCE = FEW.but(steps=1, votes=1, reading="whole graph")
SAID: dict[str, Any] = {
    "vote": votes("I"),
    "tools": call(),
    "write": {"statements": []},
    "guess": {"answer": "London"},
}
OTHER = [Document("d1", "Ada was born in Paris.", "Ada Lovelace")]
TOLD = "the run goes on with other documents or files; it was begun with others in"


def search(documents: list[Document]) -> Any:
    return lab.search(documents, bm25(documents), k=1)


def stopped(tools: list[Any], path: Any) -> None:
    """A run on file that was stopped before its first call."""
    walk = record(lab.think(QUESTION, scripted(**SAID), lab.open_store("in_memory"), tools, ONCE), path)
    next(walk)
    walk.close()  # type: ignore[attr-defined]


def resumed(tools: list[Any], path: Any) -> list[str]:
    """Go on with a run to its answer, and return what it warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        events = list(resume(path, lab.open_store("in_memory"), Resources(tools, scripted(**SAID))))
    assert of(Answered, events) and verify(events) is None
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("documents", "told"),
    [(ADA, []), (ADA[::-1], []), (OTHER, [f"{TOLD} search"]), (ADA[:2], [f"{TOLD} search"])],
    ids=["the same", "in another order", "others", "fewer"],
)
def test_other_documents_are_told(tmp_path: Any, documents: list[Document], told: list[str]) -> None:
    stopped([search(ADA)], tmp_path / "run.jsonl")
    assert resumed([search(documents)], tmp_path / "run.jsonl") == told


@pytest.mark.parametrize(
    "make", [lambda path: read_attachment([path]), lambda path: inspect_file(FileCollection([path]))]
)
def test_a_file_that_has_changed_is_told(tmp_path: Any, make: Any) -> None:
    (tmp_path / "notes.txt").write_text("Ada was born in London.")
    tools = [make(tmp_path / "notes.txt"), search(ADA)]
    stopped(tools, tmp_path / "run.jsonl")
    (tmp_path / "notes.txt").write_text("Ada was born in Paris.")
    changed = [make(tmp_path / "notes.txt"), search(ADA)]
    assert resumed(changed, tmp_path / "run.jsonl") == [f"{TOLD} {tools[0].name}"]


def test_a_tool_that_tells_no_digest_and_a_run_that_recorded_none_say_nothing(tmp_path: Any) -> None:
    def looks(query: str) -> str:
        return "x"

    looks.__name__ = "search"
    stopped([search(ADA)], tmp_path / "run.jsonl")
    assert resumed([looks], tmp_path / "run.jsonl") == []
    stopped([looks], tmp_path / "other.jsonl")
    start = load_run(tmp_path / "other.jsonl").events[0]
    assert isinstance(start, Started) and "digest" not in start.tools["search"]
    assert resumed([search(ADA)], tmp_path / "other.jsonl") == []


def test_a_file_that_cannot_be_read_is_told_when_it_is_asked_for(tmp_path: Any) -> None:
    (tmp_path / "a.zip").write_bytes(b"no zip")
    files = FileCollection([tmp_path / "a.zip"])
    assert extract_zip(files).digest and files.digest == FileCollection([tmp_path / "a.zip"]).digest
    (tmp_path / "a.zip").unlink()
    assert files.digest == ""


def test_a_memory_passes_on_what_a_tool_reads_and_takes(tmp_path: Any) -> None:
    memory = tmp_path / "memory.db"
    run = lab.ask(QUESTION, ADA, scripted(**SAID), preset=ONCE, memory=memory)
    start = run.events[0]
    assert isinstance(start, Started)
    assert start.tools["search"]["digest"] == lab.search(ADA, bm25(ADA)).digest


def test_lab_ask_and_the_command_line_tell_it(tmp_path: Any, monkeypatch: Any) -> None:
    options: dict[str, Any] = {"preset": ONCE, "trace": tmp_path / "run.jsonl"}
    with pytest.raises(OverBudget):
        lab.ask(QUESTION, ADA, Budgeted(scripted(**SAID), Budget(calls=1)), **options)
    with pytest.warns(UserWarning, match=f"{TOLD} search"):
        assert lab.ask(QUESTION, OTHER, scripted(**SAID), **options).answer == "London"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "ada.txt").write_text("Ada was born in London.")
    with openai_server(says("{}")) as server:
        asked = ["ask", QUESTION, "--documents", "papers", "--trace", "new.jsonl", "--max-calls", 1]
        assert run_here(*asked, "--model", f"{server.url}#m").code == 1
        (tmp_path / "papers" / "ada.txt").write_text("Ada was born in Paris.")
        assert f"note: {TOLD} search" in run_here("resume", "new.jsonl").err
