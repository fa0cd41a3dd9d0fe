"""The tool protocol: a name, a line for the prompt, and arguments, for the loop to call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isclose
from typing import Protocol, runtime_checkable

from kgot_lab.errors import (
    BadInput,
    LLMError,
    QueryFailed,
    ToolFailed,
    describe_value,
    require_count,
    require_parts,
)
from kgot_lab.llm.structured import RecordedCall, checked_reply, usage_problem
from kgot_lab.stores.protocol import PythonRunner
from kgot_lab.types import LLM, Document, Json, Message, Prompt, Reply, Usage


@dataclass(frozen=True)
class Result:
    """The result of a tool: a text for the model, its source documents, and the cost of models.

    It is `recorded` if it comes from a trace. Such a result is not masked again, since the environment may
    hold other keys by now.
    """

    text: str
    sources: tuple[Document, ...] = ()
    usage: tuple[Usage, ...] = ()
    recorded: bool = False


def checked_result(result: object) -> Result:
    """Return a tool's result after checking it. A text becomes a Result.

    Raises BadInput for anything else.
    """
    if isinstance(result, str):
        return Result(result)
    if not isinstance(result, Result) or not isinstance(result.text, str):
        raise BadInput(f"a tool returns a text, or a Result with a text, not {describe_value(result)}")
    for name, values, kind in (("sources", result.sources, Document), ("usage", result.usage, Usage)):
        parts = values if isinstance(values, tuple | list) else [values]
        if odd := [part for part in parts if not isinstance(part, kind)]:
            expected = f"the {name} of a Result are a tuple of {kind.__name__}"
            raise BadInput(f"{expected}, not {describe_value(odd[0])}")
    if wrong := next(filter(None, map(usage_problem, result.usage)), ""):
        raise BadInput(f"a Result whose {wrong}")
    return result


class Tool(Protocol):
    """A source of facts that the loop may call."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...  # one line, for the prompt
    @property
    def arguments(self) -> Mapping[str, Json]: ...  # JSON schema of an object
    def __call__(self, /, **arguments: Json) -> Result: ...  # raises ToolFailed


@runtime_checkable
class Finder(Tool, Protocol):
    """A tool that finds documents.

    The loop may also call it itself with a name or the question, without the model's choice.
    """

    @property
    def finds(self) -> str: ...  # the search argument; "" if it finds no documents


def search_argument(tool: Tool) -> str:
    """Return the argument by which a tool searches documents, or "" if it does not."""
    return tool.finds if isinstance(tool, Finder) else ""


@dataclass(frozen=True)
class TextTool:
    """A tool with text arguments: a function that gets them by name, checked and stripped.

    Arguments in `takes` are required. Those in `may` are optional, and omitted if empty. `finds` is the
    search argument of a tool that finds documents. Raises BadInput for an invalid definition.
    """

    name: str
    description: str
    takes: Mapping[str, str] = field(hash=False)  # argument -> description
    function: Callable[..., Result] = field(repr=False, compare=False)
    finds: str = ""
    may: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.finds and list(self.takes) != [self.finds]:
            raise BadInput(
                f"{self.name} finds documents by {self.finds!r}, so that must be all it takes, not {', '.join(self.takes)}"
            )

    @property
    def arguments(self) -> dict[str, Json]:
        """The JSON schema of the arguments."""
        meanings = self._all_arguments.items()
        properties = {name: {"type": "string", "description": meaning} for name, meaning in meanings}
        closed = {"required": list(self.takes), "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}

    @property
    def _all_arguments(self) -> dict[str, str]:
        return {**self.takes, **self.may}

    def __call__(self, /, **arguments: Json) -> Result:  # a model may name an argument "self"
        return self.function(**self._check_arguments(arguments))

    def _check_arguments(self, arguments: Mapping[str, Json]) -> dict[str, str]:
        wrong = [f"{name} is missing" for name in self.takes if name not in arguments]
        wrong += [problem for name, value in arguments.items() if (problem := self._problem(name, value))]
        if wrong:
            expected = ", ".join(self._all_arguments) or "nothing"
            raise ToolFailed(f"{self.name}: {', '.join(wrong)}; it expects: {expected}")
        given = {
            name: value for name, value in arguments.items() if name in self.takes or not _is_empty(value)
        }
        return {name: str(value).strip() for name, value in given.items()}

    def _problem(self, name: str, value: Json) -> str:
        if name not in self._all_arguments:
            return f"{name!r} is unknown"
        if name in self.may and _is_empty(value):
            return ""
        if not isinstance(value, str | int | float):
            return f"{name} must be a text"
        return "" if str(value).strip() else f"{name} is empty"

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join([*self.takes, *(f'[{name}]' for name in self.may)])})>"


def _is_empty(value: Json) -> bool:
    return value is None or not str(value).strip()


# A wrapper that records the usage of a model, for tools.


class MeteredLLM:
    """Wraps a model and records the cost of each reply in `usage`.

    An LLMError that passes through carries all that was spent until then. `usage_before` is what the tool had spent
    already.
    """

    def __init__(self, llm: LLM, usage_before: tuple[Usage, ...] = ()):
        self._llm = llm
        self.usage = usage_before

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self._llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        try:
            reply = checked_reply(self._llm, prompt)
        except LLMError as error:
            error.spent = Usage.total([*self.usage, error.spent or Usage()])
            raise
        self.usage = (*self.usage, reply.usage)
        return reply


def combine_costs(reported: Iterable[Usage], recorded: Sequence[RecordedCall]) -> tuple[RecordedCall, ...]:
    """Combine the recorded model calls of a tool with the usage it reports.

    Reported usage is dropped if it equals a recorded call or the sum of the recorded ones.
    """
    unmatched, reported_only = list(recorded), []
    for usage in reported:
        same = next((call for call in unmatched if call.usage == usage), None)
        if same is None:
            reported_only.append(usage)
        else:
            unmatched.remove(same)
    total = Usage.total(reported_only)
    if any(_is_same_usage(total, Usage.total(c.usage for c in calls)) for calls in (recorded, unmatched)):
        reported_only = []
    return (*recorded, *map(RecordedCall, reported_only))


def _is_same_usage(reported: Usage, recorded: Usage) -> bool:
    """Return whether two sums are of the same calls. Dollars may be summed in another order."""
    same_cost = isclose(reported.cost, recorded.cost, abs_tol=1e-9)
    return same_cost and replace(reported, cost=0) == replace(recorded, cost=0)


# The tool that asks a language model.


def ask_model(llm: LLM, *, name: str = "llm_query", max_tokens: int = 512) -> TextTool:
    """Create a tool that asks a model a plain question. The result carries the cost.

    The model's LLMError is passed on: an exhausted budget or a tape that does not match must end the run, not
    become a fact.
    """

    require_parts(llm, ("name", "__call__"), "ask_model() takes a model, as connect(…) gives one")
    require_count(max_tokens, 1, "max_tokens")

    def run(query: str) -> Result:
        reply = checked_reply(llm, Prompt((Message("user", query),), max_tokens=max_tokens))
        if not reply.text.strip():
            raise ToolFailed(f"{name}: the model said nothing; ask in another way")
        return Result(reply.text.strip(), usage=(reply.usage,))

    description = "Asks a language model what it knows, without looking anything up. It may be wrong."
    return TextTool(name, description, {"query": "a complete question"}, run)


# The tool that runs Python.


def python(execute: PythonRunner, *, name: str = "python") -> TextTool:
    """Create a tool that runs Python code in a sandbox and returns what it prints.

    A broken sandbox raises its own SandboxError.
    """

    requirement = (
        "python() runs code where something computes, as in open_sandbox(): an object with compute(code)"
    )
    require_parts(execute, ("compute",), requirement)

    def run(code: str) -> Result:
        try:
            output = execute.compute(_strip_fence(code))
        except QueryFailed as error:
            raise ToolFailed(f"{name}: {error}") from error
        if not output.strip():
            raise ToolFailed(f"{name}: the code printed nothing; print the result")
        return Result(output)

    description = (
        "Runs Python code, for arithmetic, dates and counting, without files or network. Print the result."
    )
    return TextTool(name, description, {"code": "Python code that prints the result"}, run)


def _strip_fence(code: str) -> str:
    """Remove the Markdown fence around code, which models like to add."""
    match = re.fullmatch(r"\s*```[\w+-]*[ \t]*\n(.*?)\n?```\s*", code, flags=re.DOTALL)
    return match[1] if match else code
