"""A plain function is a tool: its name, its signature and its docstring describe it, and what it returns is text."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel
from support.every import every
from support.loop_script import FEW, of, scripted, votes

import kgot_lab as lab
from kgot_lab.errors import BadInput, ToolFailed
from kgot_lab.loop.events import ToolReturned
from kgot_lab.loop.trace import load_run
from kgot_lab.stores.embedded_store import InMemory
from kgot_lab.tools.tool import Result, TextTool, as_tool


def weather(city: str, days: int = 1, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
    """Tell the weather of a city.

    city: its name; days: how many.
    """
    return {"city": city, "days": days, "unit": unit}


@dataclass
class Tide:
    port: str
    hour: int


class Port(BaseModel):
    name: str


class Depth(BaseModel):
    m: float


async def tides(port: str) -> list[Tide]:
    await asyncio.sleep(0)
    return [Tide(port, 12)]


def test_a_function_describes_itself() -> None:
    tool = as_tool(weather)
    assert tool.name == "weather"
    assert tool.description == "Tell the weather of a city. city: its name; days: how many."
    assert tool.arguments["properties"] == {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "unit": {"enum": ["C", "F"], "type": "string"},
    }
    assert tool.arguments["required"] == ["city"] and tool.arguments["additionalProperties"] is False
    assert repr(tool) == "<tool weather(city, days, unit)>" and as_tool(tool) is tool


def test_lab_ask_takes_functions_as_tools_and_a_function_as_the_model() -> None:
    def speak(text: str) -> str:
        replies = {"Choose the calls": {"calls": [{"tool": "tides", "arguments": {"port": "Oslo"}}]}}
        replies |= {'"choice"': {"choice": "INSERT", "text": "tide"}, '"statements"': {"statements": []}}
        replies |= {'"statement"': {"statement": "result = 1"}, "": {"answer": "12"}}
        return json.dumps(next(reply for words, reply in replies.items() if words in text))

    run = lab.ask("When is high tide in Oslo?", model=speak, tools=[tides, weather], preset=FEW)
    assert of(ToolReturned, run.events)[0].text == '[{"port":"Oslo","hour":12}]'
    assert run.answer == "12" and {event.model for event in run.events if hasattr(event, "prompt")} == {
        "speak"
    }


@every(
    ("arguments", "text"),
    [
        ({"city": "Oslo"}, '{"city":"Oslo","days":1,"unit":"C"}'),
        ({"city": 7, "days": "2", "unit": "F"}, '{"city":"7","days":2,"unit":"F"}'),
        ({"city": "Oslo", "days": None}, '{"city":"Oslo","days":1,"unit":"C"}'),
    ],
)
def test_arguments_are_converted_to_the_types_of_the_signature(arguments: dict[str, Any], text: str) -> None:
    assert as_tool(weather)(**arguments).text == text


@every(
    ("arguments", "problem"),
    [
        ({}, "weather: city: it is missing; it expects: city, days, unit"),
        ({"city": "Oslo", "days": "many"}, "days: it has to be a whole number"),
        ({"city": "Oslo", "unit": "K"}, "unit: it has to be C or F"),
        ({"city": "Oslo", "country": "Norway"}, "country: Unexpected keyword argument"),
        ({"city": None}, "city: it has to be a text"),
    ],
)
def test_arguments_that_do_not_fit_are_told_to_the_model(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ToolFailed, match=problem):
        as_tool(weather)(**arguments)


class Adder:
    """Adds two numbers."""

    def __call__(self, a: int, b: int) -> int:
        return a + b

    async def double(self, n: float) -> float:
        return 2 * n


@every(
    ("function", "arguments", "name", "text"),
    [
        (tides, {"port": "Oslo"}, "tides", '[{"port":"Oslo","hour":12}]'),
        (Adder(), {"a": 1, "b": "2"}, "Adder", "3"),
        (Adder().double, {"n": 2}, "double", "4.0"),
        (partial(weather, days=3), {"city": "Oslo"}, "weather", '{"city":"Oslo","days":3,"unit":"C"}'),
    ],
)
def test_methods_partials_callable_objects_and_coroutine_functions_are_functions_too(
    function: Any, arguments: dict[str, Any], name: str, text: str
) -> None:
    tool = as_tool(function)
    assert (tool.name, tool(**arguments).text) == (name, text)


def test_a_coroutine_function_is_a_tool_where_an_event_loop_already_runs() -> None:
    async def notebook() -> Result:
        return as_tool(tides)(port="Oslo")

    assert asyncio.run(notebook()).text == '[{"port":"Oslo","hour":12}]'


@every(
    ("value", "text"),
    [
        ("a text", "a text"), (Result("a result"), "a result"), (3, "3"), (2.5, "2.5"), (True, "true"), ([], "[]"),
        ({"å": (1, 2)}, '{"å":[1,2]}'), (Tide("Oslo", 12), '{"port":"Oslo","hour":12}'), (Port(name="Oslo"), '{"name":"Oslo"}'),
        (np.float64(2.5), "2.5"), (np.arange(3), "[0,1,2]"), ({1}, "[1]"),
        ({"high": [float("nan"), {"low": -float("inf")}]}, '{"high":["NaN",{"low":"-Infinity"}]}'), (float("inf"), '"Infinity"'),
        (Depth(m=float("nan")), '{"m":"NaN"}'), ([Depth(m=float("inf"))], '[{"m":"Infinity"}]'), (np.array([np.nan, 1]), '["NaN",1.0]'),
        ((np.float32("nan"), Decimal("NaN")), '["NaN","NaN"]'), ({float("nan"): 1}, '{"nan":1}'),
    ],
)  # fmt: skip
def test_what_json_holds_becomes_text(value: object, text: str) -> None:
    def give() -> object:
        return value

    returned = as_tool(give)().text
    assert returned == text and (
        isinstance(value, str | Result) or json.loads(returned, parse_constant=pytest.fail) != ""
    )


@every("value", [None, object(), Result(3), b"\xff", print])  # type: ignore[arg-type]
def test_what_is_no_text_says_what_a_tool_returns(value: object) -> None:
    def give() -> object:
        return value

    with pytest.raises(
        ToolFailed, match="give is broken: a tool returns a text, or a Result with a text, not"
    ):
        as_tool(give)()


@every(
    ("given", "problem"),
    [
        (3, "a tool is a function, or what search.* not 3"),
        ("search", "not a str"),
        (Tide, "not a type"),
        (lambda query: query, "called by its name, and <lambda> is none"),
        (len, "takes \\*, \\*\\* or arguments without a name"),
        (partial(lambda *words: words), "called by its name"),
    ],
)
def test_what_is_no_tool_is_refused_with_what_is_taken(given: object, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        as_tool(given)


def test_an_argument_that_json_cannot_hold_is_named() -> None:
    def look(query: logging.Logger) -> str:
        return "x"

    with pytest.raises(BadInput, match=r"the arguments of the tool look cannot be described: .*Logger"):
        as_tool(look)


def looks_up(port: str) -> str:
    return {"Oslo": "noon"}[port]


@pytest.mark.parametrize("tool", [looks_up, TextTool("looks_up", "Looks up.", {"port": "a port"}, looks_up)])
def test_a_bug_in_a_tool_is_in_the_trace_and_warned_of_with_its_place(
    tool: Any, caplog: pytest.LogCaptureFixture
) -> None:
    read, answer = {"statement": "result = facts()"}, {"answer": "x"}
    replies = {"forced": read, "reread": read, "guess": answer, "parse": answer, "choose": answer}
    call = {"calls": [{"tool": "looks_up", "arguments": {"port": "Rome"}}]}
    script = scripted(vote=votes("I"), tools=call, write={"statements": []}, **replies)
    limits = FEW.but(steps=1, votes=1, forced_reads=1, rereads=0)
    events = list(lab.think("When is high tide in Rome?", script, InMemory(), [tool], limits))
    assert of(ToolReturned, events)[0].text == "looks_up is broken: KeyError: 'Rome'"
    assert "the tool looks_up is broken: KeyError: 'Rome' (line " in caplog.text
    assert 'test_function_tools.py: return {"Oslo": "noon"}[port])' in caplog.text


def test_a_failure_that_a_tool_tells_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    def looks(port: str) -> str:
        raise ToolFailed(f"no tide is known of {port}")

    with pytest.raises(ToolFailed, match="no tide is known of Rome"):
        as_tool(looks)(port="Rome")
    assert caplog.text == ""


def test_a_run_with_functions_goes_on_after_an_interruption(tmp_path: Any) -> None:
    asked: list[str] = []

    def speak(text: str) -> str:
        asked.append(text)
        if len(asked) == 4:
            raise KeyboardInterrupt
        replies = {"Choose the calls": {"calls": [{"tool": "weather", "arguments": {"city": "Oslo"}}]}}
        replies |= {'"choice"': {"choice": "INSERT", "text": "tide"}, '"statements"': {"statements": []}}
        replies |= {'"statement"': {"statement": "result = 1"}, "": {"answer": "12"}}
        return json.dumps(next(reply for words, reply in replies.items() if words in text))

    file = tmp_path / "run.jsonl"
    question, options = "How is the weather in Oslo?", {"model": speak, "tools": [weather], "preset": FEW}
    with pytest.raises(KeyboardInterrupt):
        lab.ask(question, trace=file, **options)
    before = len(load_run(file).events)
    run = lab.ask(question, trace=file, **options)
    assert run.answer == "12" and len(run.events) > before > 0
