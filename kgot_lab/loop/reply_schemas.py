"""The shapes of structured replies: what the loop expects back from each question it asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from kgot_lab.tools.tool import Tool
from kgot_lab.types import Json


class Vote(BaseModel):
    """A ballot: what next, and the reason (INSERT) or the read statement or answer (RETRIEVE)."""

    choice: Literal["INSERT", "RETRIEVE"]
    text: str


class Look(BaseModel):
    """A ballot in operations mode: an answer tried on the facts, the names in the graph it rests on, and what is missing."""

    answer: str
    choice: Literal["INSERT", "RETRIEVE"]
    about: list[str] = Field(max_length=4)
    missing: str


class Names(BaseModel):
    """The names in the graph to look at."""

    about: list[str] = Field(max_length=4)


class Reason(BaseModel):
    """Several reasons as one."""

    reason: str


class Call(BaseModel):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]


class Calls(BaseModel):
    """The tool calls of a step."""

    calls: list[Call]


class Statements(BaseModel):
    """Write statements."""

    statements: list[str]


class Statement(BaseModel):
    """One statement."""

    statement: str


class Needed(BaseModel):
    """Whether a computation is needed."""

    needed: bool


class Code(BaseModel):
    """Python that prints a result."""

    code: str


class Answer(BaseModel):
    """An answer in the format asked for."""

    answer: str


class Number(BaseModel):
    """The number of the best candidate, from 1."""

    number: int


def names_schema(names: Sequence[str], most: int) -> Mapping[str, Json]:
    """The JSON schema of `Names` that allows only these, at most so many."""
    about = {"type": "array", "minItems": 1, "maxItems": most, "items": {"enum": list(names)}}
    return {
        "type": "object",
        "properties": {"about": about},
        "required": ["about"],
        "additionalProperties": False,
    }


def calls_schema(tools: Sequence[Tool], most: int) -> Mapping[str, Json]:
    """The JSON schema of `Calls` that allows only these tools, each with its own arguments."""
    each = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": dict(tool.arguments)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    items = each[0] if len(each) == 1 else {"anyOf": each}
    return {
        "type": "object",
        "properties": {"calls": {"type": "array", "minItems": 1, "maxItems": most, "items": items}},
        "required": ["calls"],
        "additionalProperties": False,
    }
