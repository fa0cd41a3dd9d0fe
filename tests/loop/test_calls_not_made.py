"""Calls that are not made: those that no tool takes, which nobody is asked to approve, and those beyond the limit of a
step. The model and the trace are told.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from support.every import every
from support.loop_script import FEW, of, scripted, votes

import kgot_lab as lab
from kgot_lab.llm.presets import Price
from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.approval import Deny, Proposal
from kgot_lab.loop.events import Asked, Chose, Decided, Started, ToolReturned, from_json, to_json
from kgot_lab.loop.formatting import format_event, summary_line
from kgot_lab.loop.insert import choose_calls
from kgot_lab.loop.limits import preset
from kgot_lab.loop.replay.replay import Resources, replay, resume, verify
from kgot_lab.loop.run_context import RunContext
from kgot_lab.loop.state import State
from kgot_lab.loop.trace import load_run, record
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.tools.tool import Result, TextTool

QUESTION = "When is high tide in Oslo?"
TEXT = FEW.but(steps=1, votes=1, reading="whole graph")  # nothing is run in a sandbox
SAID: dict[str, Any] = {
    "vote": votes("I", "I", "R"),
    "write": {"statements": []},
    "guess": {"answer": "noon"},
}
SAID |= {"parse": {"answer": "noon"}, "choose": {"number": 1}}


def tide(port: str, hour: int = 0) -> str:
    """Tell when the tide is high."""
    return f"In {port} the tide is high at noon."


class Foreign:
    """A tool with a schema and no check of its own."""

    name, description = "foreign", "Knows ports."
    arguments = {  # noqa: RUF012
        "type": "object", "required": ["port"], "additionalProperties": False,
        "properties": {"port": {"type": "string"}, "deep": {"type": "boolean"}, "unit": {"enum": ["m", "ft"]}},
    }  # fmt: skip

    def __call__(self, /, **arguments: Any) -> Result:
        return Result("deep")


TOOLS = [
    tide,
    Foreign(),
    TextTool("ports", "Finds ports.", {"query": "a name"}, lambda query: Result("Oslo")),
]


def proposing(*calls: tuple[str, dict[str, Any]], **said: Any) -> Any:
    chosen = {"calls": [{"tool": tool, "arguments": arguments} for tool, arguments in calls]}
    return scripted(**{**SAID, "tools": chosen, **said})


def run(model: Any, limits: Any = TEXT, **options: Any) -> list[Any]:
    return list(lab.think(QUESTION, model, lab.open_store("in_memory"), TOOLS, limits, **options))


def yes(proposal: Proposal) -> bool:
    return True


# --- what was decided on


def test_a_decision_says_which_tool_write_or_model_it_is_about(tmp_path: Any) -> None:
    class Paid:
        name, price = "paid", Price(1.0, 2.0)

        def __init__(self) -> None:
            self.model = proposing(
                ("tide", {"port": "Oslo"}), write={"statements": ['add("Oslo", "a", "b")']}
            )

        def __call__(self, prompt: Any) -> Any:
            return self.model(prompt)

    def approve(proposal: Proposal) -> bool | Deny:
        return Deny("no") if proposal.what == "write" else True

    events = run(Paid(), approve=approve)
    about = {event.what: event.about for event in of(Decided, events)}
    assert about["tool call"] == "tide: Tell when the tide is high."
    assert about["write"] == "tide(port='Oslo')" and about["model call"].startswith("paid, at most ")
    assert "tool call (tide: Tell when" in " ".join(map(summary_line, of(Decided, events)))
    assert all(from_json(json.loads(json.dumps(to_json(e)))).about for e in of(Decided, events))  # type: ignore[attr-defined]
    assert verify(events) is None, "a paid call is approved in a replay as it was"
    older = [replace(event, about="") if isinstance(event, Decided) else event for event in events]
    assert "about" not in to_json(of(Decided, older)[0]) and verify(older) is None
    path = tmp_path / "run.jsonl"
    stop = next(number for number, event in enumerate(older) if isinstance(event, ToolReturned))
    list(record(older[:stop], path))
    asked: list[str] = []
    live = Resources(
        TOOLS, Paid(), approve=lambda proposal: bool(asked.append(proposal.what)) or approve(proposal)
    )
    assert list(resume(path, lab.open_store("in_memory"), live))[-1].text == "noon"
    assert "tool call" not in asked and "write" in asked and "model call" in asked


def test_the_decisions_on_two_tools_with_the_same_arguments_are_told_apart() -> None:
    def other(port: str) -> str:
        """Knows too."""
        return "At six."

    def approve(proposal: Proposal) -> bool:
        return proposal.about.startswith("other")

    same = {"port": "Oslo"}
    tools = [tide, other]
    model = proposing(("tide", same), ("other", same))
    store = lab.open_store("in_memory")
    events = list(lab.think(QUESTION, model, store, tools, TEXT, approve=approve))
    decided = [event for event in of(Decided, events) if event.what == "tool call"]
    assert [(e.about.partition(":")[0], e.decision) for e in decided] == [
        ("tide", "denied"),
        ("other", "approved"),
    ]
    assert verify(events) is None
    recording = [*events]
    first, second = (number for number, event in enumerate(events) if event in decided)
    recording[first], recording[second] = recording[second], recording[first]
    assert [e.decision for e in of(Decided, list(replay(recording)))] == ["denied", "approved"]


# --- calls that no tool takes


@every(
    ("tool", "arguments", "told"),
    [
        ("tides", {"port": "Oslo"}, "there is no tool 'tides'; there are: tide, foreign, ports"),
        ("tide", {}, "tide: port: it is missing"),
        ("tide", {"port": "Oslo", "hour": "noon"}, "hour: it has to be a whole number"),
        ("tide", {"port": "Oslo", "country": "Norway"}, "country: Unexpected keyword"),
        ("ports", {"query": ""}, "query is empty"),
        ("ports", {"name": "Oslo"}, "query is missing, 'name' is unknown"),
        ("foreign", {}, "port is missing; it expects: port, deep, unit"),
        ("foreign", {"port": 3}, "port must be string"),
        ("foreign", {"port": "Oslo", "deep": "yes"}, "deep must be boolean"),
        ("foreign", {"port": "Oslo", "unit": "km"}, "unit must be m or ft"),
        ("foreign", {"port": "Oslo", "at": 1}, "'at' is unknown"),
    ],
)
def test_a_call_that_cannot_be_made_is_refused_without_asking_anybody(
    tool: str, arguments: Any, told: str
) -> None:
    asked: list[str] = []
    model = proposing((tool, arguments), ("tide", {"port": "Oslo"}))
    events = run(model, approve=lambda proposal: not asked.append(f"{proposal.about}{proposal.text}"))
    refused, made = of(ToolReturned, events)
    assert refused.failed and told in refused.text and not made.failed
    assert len(of(Decided, events)) == len(asked) == 1 and '"port": "Oslo"' in asked[0]
    assert verify(events) is None and [*map(type, replay(events))] == [*map(type, events)]


@every(
    ("tool", "arguments"),
    [("tide", {"port": 7, "hour": "2"}), ("ports", {"query": 7}), ("foreign", {"port": "Oslo", "deep": True, "unit": "m"})],
)  # fmt: skip
def test_a_call_that_a_tool_takes_is_asked_about(tool: str, arguments: Any) -> None:
    events = run(proposing((tool, arguments)), approve=yes)
    assert len(of(Decided, events)) == 1 and not of(ToolReturned, events)[0].failed


def test_a_run_recorded_when_everything_was_asked_about_is_replayed_as_it_was() -> None:
    events = run(
        proposing(("tides", {"port": "Oslo"}), ("tide", {})), TEXT.but(tell_unmade=False), approve=yes
    )
    assert len(of(Decided, events)) == 2 and all(event.failed for event in of(ToolReturned, events))
    assert "tell_unmade" not in events[0].limits and verify(events) is None


def test_a_run_goes_on_after_a_refused_call_and_refuses_new_ones(tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    walk = record(iter(run(proposing(("tides", {}), ("tide", {"port": "Oslo"})), approve=yes)), path)
    for event in walk:
        if isinstance(event, Decided):
            break
    walk.close()  # type: ignore[attr-defined]
    live = Resources(TOOLS, proposing(("tide", {"port": "Rome"})), approve=yes)
    events = list(resume(path, lab.open_store("in_memory"), live))
    assert len(of(Decided, events)) == 1 and events[-1].text == "noon"


# --- calls beyond the limit of a step

MANY = [("tide", {"port": port}) for port in ("Oslo", "Rome", "Kiel", "Bergen")]
TWO = TEXT.but(steps=2, calls=2)


def shown(events: list[Any], role: str) -> list[str]:
    return [event.prompt.messages[-1].text for event in of(Asked, events) if event.role.purpose == role]


def test_calls_beyond_the_limit_are_in_the_trace_and_in_what_the_model_is_shown_next(tmp_path: Any) -> None:
    events = list(record(run(proposing(*MANY), TWO), tmp_path / "run.jsonl"))
    first, second = of(Chose, load_run(tmp_path / "run.jsonl").events)
    assert [call.arguments["port"] for call in (*first.calls, *first.surplus)] == [
        "Oslo",
        "Rome",
        "Kiel",
        "Bergen",
    ]
    told = "Not made, as too many at once:\n- tide(port='Kiel')\n- tide(port='Bergen')"
    assert told not in shown(events, "tools")[0] and told in shown(events, "tools")[1]
    assert [call.arguments["port"] for call in second.calls] == ["Kiel", "Bergen"] and not second.surplus
    assert told not in shown(events, "vote")[0] and told in shown(events, "vote")[1]
    assert "not tide(port='Kiel')" in summary_line(first) and "too many at once" in summary_line(first)
    assert any(part.content == first.surplus for part in format_event(first).parts)
    assert verify(events) is None


def test_a_run_recorded_when_they_were_dropped_is_replayed_as_it_was() -> None:
    events = run(proposing(*MANY), TWO.but(tell_unmade=False))
    assert not any(event.surplus or "surplus" in to_json(event) for event in of(Chose, events))
    assert not any("Not made" in text for text in shown(events, "tools")) and verify(events) is None
    older = replace(events[0], limits={n: v for n, v in events[0].limits.items() if n != "tell_unmade"})
    assert isinstance(older, Started) and verify([older, *events[1:]]) is None


def test_names_beyond_the_limit_are_in_the_trace_of_a_small_model() -> None:
    def reply(prompt: Any) -> str:
        text = prompt.messages[-1].text
        if "Not looked up yet:" in text:
            return json.dumps({"about": ["Bergen", "Kiel", "Rome"]})
        return json.dumps({"answer": "unknown", "choice": "INSERT", "about": [], "missing": "x"})

    documents = [lab.Document("1", "Bergen, Kiel and Rome are ports.", "Ports")]
    search = lab.search(documents, bm25(documents))
    with lab.open_store("in_memory") as store:
        store.apply(
            lab.Diff(
                added_nodes=tuple(map(lab.Node, ("Ports", "Bergen", "Kiel", "Rome"))),
                added_edges=tuple(lab.Edge("Ports", "are", port) for port in ("Bergen", "Kiel", "Rome")),
            )
        )
        limits = preset("local").but(open_with_question=False)
        context = RunContext(
            Scripted(reply), Scripted(reply), store, {"search": search}, limits, None, State()
        )
        started = context.record(
            Started, question="What ports?", start=store.graph(), limits=limits.as_json()
        )
        chose = of(Chose, list(choose_calls(context, "")))[0]
    assert (
        started.start
        and len(chose.calls) == 2
        and [str(call) for call in chose.surplus] == ["search(query='Rome')"]
    )


def test_what_is_asked_in_a_step_after_all_is_not_named_as_left_out() -> None:
    events = run(proposing(*MANY[:3]), TWO.but(steps=3))
    last = shown(events, "tools")[-1]
    assert "Not made" not in last and last.count("tide(port='Kiel')") >= 1


@every(
    ("chosen", "made"),
    [
        ("tide('Oslo', 3)", "tide(port='Oslo', hour=3)"),
        ("Ports(query='Oslo')", "ports(query='Oslo')"),
        ({"name": "functions.foreign", "args": ["Oslo"]}, "foreign(port='Oslo')"),
        ("Action: ports\nAction Input: Oslo", "ports(query='Oslo')"),
        ("sea(port='Oslo')", "sea(port='Oslo')"),
    ],
)
def test_a_call_in_another_notation_is_made_as_its_tool_has_it(chosen: Any, made: str) -> None:
    events = run(scripted(**{**SAID, "tools": chosen}))
    (chose,) = of(Chose, events)
    (returned,) = of(ToolReturned, events)
    assert str(chose.calls[0]) == made and returned.failed == made.startswith("sea")
