"""The calls of tools that a model chooses: how tools are listed in its prompt, and the schema of its reply."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, model_validator

from kgot_lab.llm.reply_forms import as_call, as_calls
from kgot_lab.tools.tool import Tool, object_schema
from kgot_lab.types import Json


class ChosenCall(BaseModel):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]

    _spelt = model_validator(mode="before")(as_call)


class ChosenCalls(BaseModel):
    """The tool calls of a step."""

    calls: list[ChosenCall]

    _listed = model_validator(mode="before")(as_calls)


def calls_schema(tools: Sequence[Tool], limit: int) -> dict[str, Json]:
    """Return the JSON schema of `ChosenCalls` restricted to the given tools, each with its own arguments."""
    variants = [object_schema({"tool": {"const": t.name}, "arguments": dict(t.arguments)}) for t in tools]
    items = variants[0] if len(variants) == 1 else {"anyOf": variants}
    return object_schema({"calls": {"type": "array", "minItems": 1, "maxItems": limit, "items": items}})


def format_tools(tools: Iterable[Tool]) -> str:
    """List tools with their arguments and descriptions, one in a line."""
    return "\n".join(f"- {t.name}({', '.join(_format_arguments(t))}): {t.description}" for t in tools)


def _format_arguments(tool: Tool) -> list[str]:
    properties = tool.arguments.get("properties", {})
    return [f"{name}: {part.get('description', part.get('type', ''))}" for name, part in properties.items()]
