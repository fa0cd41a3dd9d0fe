"""What a tool of somebody's own may do wrong: the run goes on and says so; what is this computer's fault
stops it with a sentence.
"""

import pytest
from support.loop_script import FEW, WRITE, call, of, scripted, votes

from kgot_lab.errors import OutOfMemory
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, ToolReturned
from kgot_lab.loop.replay.replay import Resources, resume
from kgot_lab.loop.trace import load_run, record
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.tools.tool import Result, TextTool

ONCE = FEW.but(steps=1, votes=1, tool_wait=0, tool_attempts=1, forced_reads=1, rereads=0)
SCRIPT = {
    "vote": votes("I"),
    "tools": call(tool="own"),
    "write": WRITE,
    "forced": {"statement": "result = facts()"},
}
SCRIPT |= {"choose": {"answer": "London"}, "parse": {"answer": "London"}, "guess": {"answer": "London"}}


class Unspeakable(ValueError):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise KeyError("no message")


class UnspeakableWait(Unspeakable, TimeoutError):
    """One that comes too late as well."""


def raising(error: BaseException) -> TextTool:
    def run(query: str) -> Result:
        raise error

    return TextTool("own", "Knows it.", {"query": "what to look for"}, run)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Unspeakable(), "own is broken: Unspeakable: (its message cannot be shown: KeyError)"),
        (UnspeakableWait(), "own took too long: (its message cannot be shown: KeyError)"),
        (SystemExit(3), "own is broken: it ended itself (SystemExit: 3)"),
    ],
)
def test_a_tool_whose_error_cannot_be_told_or_that_ends_itself_is_broken_and_the_run_goes_on(error, told):
    events = list(think("Where?", scripted(**SCRIPT), InMemory(), [raising(error)], ONCE))
    assert of(ToolReturned, events)[0].text == told and of(Answered, events)


def of_onnxruntime(told: str) -> Exception:
    class RuntimeException(Exception):
        pass

    RuntimeException.__module__ = "onnxruntime.capi.onnxruntime_pybind11_state"
    return RuntimeException(told)


SHORT = [
    MemoryError(),
    of_onnxruntime("[ONNXRuntimeError] : 6 : Exception during initialization: std::bad_alloc"),
    OSError(12, "No memory"),
]


@pytest.mark.parametrize("error", SHORT, ids=lambda error: type(error).__name__)
def test_want_of_memory_in_a_tool_is_no_fact_and_stops_a_run_that_goes_on_later(tmp_path, error):
    path = tmp_path / "run.jsonl"
    with pytest.raises(
        OutOfMemory,
        match=r"too little memory for the tool own: close other programs or raise the limit \(ulimit -v\)",
    ):
        list(record(think("Where?", scripted(**SCRIPT), InMemory(), [raising(error)], ONCE), path))
    assert not of(ToolReturned, list(load_run(path).events))
    works = TextTool(
        "own",
        "Knows it.",
        {"query": "what to look for"},
        lambda query: Result("Ada Lovelace was born in London."),
    )
    llm = scripted(**{name: reply for name, reply in SCRIPT.items() if name not in {"vote", "tools"}})
    assert of(Answered, list(resume(path, InMemory(), Resources([works], llm))))
