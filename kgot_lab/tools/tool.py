"""The tool protocol: a name, a line for the prompt, and arguments, for the loop to call."""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import Path
from sysconfig import get_paths
from traceback import extract_tb
from typing import Any, Protocol, get_type_hints, runtime_checkable

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, to_json, to_jsonable_python

from kgot_lab.arguments import check_arguments, check_fields, is_plain_text
from kgot_lab.errors import (
    BadInput,
    LabError,
    LLMError,
    QueryFailed,
    ToolFailed,
    describe_value,
    error_message,
    mask_secrets,
    require_count,
    short_repr,
)
from kgot_lab.io.coroutines import run_awaitable
from kgot_lab.llm.adapters import as_model
from kgot_lab.llm.budget import WrappedLLM
from kgot_lab.llm.keys import mask_known_keys
from kgot_lab.llm.structured import RecordedCall, checked_reply, compact_schema, field_problem, usage_problem
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
    """Return a tool's result after checking it. A text becomes a Result, as do values that JSON holds.

    A coroutine is run to its end. Numbers, lists, dicts, data classes and models of pydantic become JSON text, and
    what JSON has no number for a text in it: "NaN", "Infinity".
    Raises BadInput for anything else.
    """
    result = run_awaitable(result)
    if isinstance(result, str):
        return Result(result)
    if result is not None and not isinstance(result, Result):
        with suppress(ValueError, RecursionError):
            plain = to_jsonable_python(result, fallback=_as_plain)
            return Result(to_json(plain, inf_nan_mode="strings").decode())
    if not isinstance(result, Result) or not isinstance(result.text, str):
        others = "a dict, a list, a number and a data class become JSON text"
        expected = "a tool returns a text, or a Result with a text"
        raise BadInput(f"{expected}, not {describe_value(result)}; {others}")
    for name, values, kind in (("sources", result.sources, Document), ("usage", result.usage, Usage)):
        parts = values if isinstance(values, tuple | list) else [values]
        if odd := [part for part in parts if not isinstance(part, kind)]:
            expected = f"the {name} of a Result are a tuple of {kind.__name__}"
            raise BadInput(f"{expected}, not {describe_value(odd[0])}")
    if wrong := next(filter(None, map(usage_problem, result.usage)), ""):
        raise BadInput(f"a Result whose {wrong}")
    return result


def _as_plain(value: Any) -> object:
    """Return an array of numpy, or a number of it, as plain Python. Raises ValueError for anything else."""
    if not hasattr(value, "tolist"):
        raise ValueError
    return value.tolist()


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


def object_schema(properties: Mapping[str, Json], required: Iterable[str] | None = None) -> dict[str, Json]:
    """Return the JSON schema of an object that has these properties, of which some are required, and no other."""
    closed = {"required": list(properties if required is None else required), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}


def source_digest(tool: Tool) -> str:
    """Return the digest of the documents or files that a tool reads, or "" if it tells none."""
    digest = getattr(tool, "digest", "")
    return digest if isinstance(digest, str) else ""


def digest_of(contents: Iterable[bytes]) -> str:
    """Return a short digest of some contents, in whatever order."""
    digests = sorted(hashlib.sha256(content).digest() for content in contents)
    return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


_TYPES: Mapping[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None),
}  # fmt: skip


def check_call(tool: Tool, arguments: Mapping[str, Json]) -> None:
    """Check that a tool takes some arguments, without calling it: by its `check_arguments`, or else by its schema.

    Raises ToolFailed, which says what it expects.
    """
    if callable(check := getattr(tool, "check_arguments", None)):
        check(arguments)
        return
    properties = tool.arguments.get("properties", {})
    wrong = [f"{name} is missing" for name in tool.arguments.get("required", ()) if name not in arguments]
    if tool.arguments.get("additionalProperties") is False:
        wrong += [f"{name!r} is unknown" for name in arguments if name not in properties]
    for name, value in arguments.items():
        schema = properties[name] if isinstance(properties.get(name), Mapping) else {}
        named, allowed = schema.get("type"), schema.get("enum", (value,))
        if not isinstance(value, _TYPES.get(str(named), object)) or value not in allowed:
            wrong.append(f"{name} must be {named or ' or '.join(map(str, allowed))}")
    if wrong:
        raise ToolFailed(f"{tool.name}: {', '.join(wrong)}; it expects: {', '.join(properties) or 'nothing'}")


@check_arguments
@dataclass(frozen=True)
class TextTool:
    """A tool with text arguments: a function that gets them by name, checked and stripped.

    Arguments in `takes` are required. Those in `may` are optional, and omitted if empty. `finds` is the
    search argument of a tool that finds documents, and `digest` that of what it reads, by which a run that is
    resumed knows it again. Raises BadInput for an invalid definition.
    """

    name: str
    description: str
    takes: Mapping[str, str] = field(hash=False)  # argument -> description
    function: Callable[..., Result] = field(repr=False, compare=False)
    finds: str = ""
    may: Mapping[str, str] = field(default_factory=dict, hash=False)
    digest: str = ""

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch(r"[\w.-]{1,128}", self.name):
            expected = "letters, digits, _, - and ., at most 128"
            raise BadInput(f"a model calls a tool by its name: {expected}, not {short_repr(self.name)}")
        if self.finds and list(self.takes) != [self.finds]:
            expected = f"{self.name} finds documents by {self.finds!r}, so that must be all it takes"
            raise BadInput(f"{expected}, not {', '.join(self.takes)}")

    @property
    def arguments(self) -> dict[str, Json]:
        """The JSON schema of the arguments."""
        meanings = self._all_arguments.items()
        properties = {name: {"type": "string", "description": meaning} for name, meaning in meanings}
        return object_schema(properties, self.takes)

    @property
    def _all_arguments(self) -> dict[str, str]:
        return {**self.takes, **self.may}

    def __call__(self, /, **arguments: Json) -> Result:  # a model may name an argument "self"
        return _own_result(self.name, self.function(**self.check_arguments(arguments)))

    def check_arguments(self, arguments: Mapping[str, Json]) -> dict[str, str]:
        """Return the texts that the function gets. Raises ToolFailed for arguments that it does not take."""
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
        if not is_plain_text(str(value)):
            return f"{name} holds a NUL or half a surrogate pair"
        return "" if str(value).strip() else f"{name} is empty"

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join([*self.takes, *(f'[{name}]' for name in self.may)])})>"


def _is_empty(value: Json) -> bool:
    return value is None or not str(value).strip()


# Functions as tools.


class FunctionTool:
    """A tool that is a function: its name, its signature and its docstring are what the prompt says of it.

    Arguments are checked and converted by their types, as pydantic does. A coroutine function is run to its end.
    Raises BadInput for a function without a name of its own, and for arguments that no JSON object can hold.
    """

    def __init__(self, function: Callable[..., object]):
        own = getattr(function, "func", function)  # of a functools.partial
        self.name = str(getattr(own, "__name__", type(own).__name__))
        self._function = function
        if not self.name.isidentifier():
            raise BadInput(f"a tool is called by its name, and {self.name} is none: write it as def NAME(…)")
        self.description = " ".join((inspect.getdoc(own) or self.name.replace("_", " ")).split())

        collect: Any = lambda **arguments: arguments  # noqa: E731  # it takes the place of the function
        try:
            call = own if inspect.isroutine(own) else type(own).__call__
            collect.__annotations__ = get_type_hints(call, include_extras=True)
            collect.__signature__ = inspect.signature(function)
            self._checks: TypeAdapter[Any] = TypeAdapter[Any](
                collect, config=ConfigDict(coerce_numbers_to_str=True)
            )
            self.arguments = compact_schema(self._checks)
        except (PydanticUserError, NameError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise BadInput(f"the arguments of the tool {self.name} cannot be described: {reason}") from error
        if self.arguments["type"] != "object" or self.arguments.get("additionalProperties"):
            problem = "a tool is called with names"
            raise BadInput(f"{problem}: {self.name} takes *, ** or arguments without a name")

    def check_arguments(self, arguments: Mapping[str, Json]) -> dict[str, Any]:
        """Return the values that the function gets. Raises ToolFailed for arguments that it does not take."""
        needed = self.arguments.get("required", ())
        given = {name: value for name, value in arguments.items() if value is not None or name in needed}
        try:
            checked: dict[str, Any] = self._checks.validate_python(ArgsKwargs((), given))
        except ValidationError as error:
            where, problem = field_problem(error)
            expected = ", ".join(self.arguments["properties"]) or "nothing"
            raise ToolFailed(f"{self.name}: {where}: {problem}; it expects: {expected}") from None
        return checked

    def __call__(self, /, **arguments: Json) -> Result:
        return _own_result(self.name, self._function(**self.check_arguments(arguments)))

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join(self.arguments['properties'])})>"


def _own_result(name: str, result: object) -> Result:
    try:
        return checked_result(result)
    except BadInput as error:
        raise broken_tool(name, error) from error


def as_tool(tool: object) -> Tool:
    """Return a tool as it is, and a plain function as a tool.

    Raises BadInput for anything else.
    """
    if not isinstance(tool, type) and callable(tool):
        if not hasattr(tool, "arguments"):
            return FunctionTool(tool)
        name, described = getattr(tool, "name", None), getattr(tool, "description", None)
        if (
            isinstance(name, str)
            and name
            and isinstance(described, str)
            and isinstance(tool.arguments, Mapping)
        ):
            return tool  # type: ignore[return-value]
    expected = "a tool is a function, or what search(documents) and the like give: a name, a description, arguments and a call"
    raise BadInput(f"{expected}, not {describe_value(tool)}")


def broken_tool(name: str, error: BaseException) -> ToolFailed:
    """Return the failure of a tool that has a bug, and warn of it, since a run goes on without the tool.

    The warning says where in the caller's code it was raised.
    """
    message = (
        error_message(error)
        if isinstance(error, LabError)
        else f"{type(error).__name__}: {error_message(error)}"
    )
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(_LIBRARIES)]
    where = f" (line {frames[-1].lineno} of {frames[-1].filename}: {frames[-1].line})" if frames else ""
    said = mask_known_keys(mask_secrets(f"the tool {name} is broken: {message}{where}"))
    logging.getLogger("kgot_lab").warning(said)
    return ToolFailed(f"{name} is broken: {message}")


_LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(get_paths()[kind] for kind in ("stdlib", "purelib", "platlib")),
)


# A wrapper that records the usage of a model, for tools.


class MeteredLLM(WrappedLLM):
    """Wraps a model and records the cost of each reply in `usage`.

    An LLMError that passes through carries all that was spent until then. `usage_before` is what the tool had spent
    already.
    """

    def __init__(self, llm: LLM, usage_before: tuple[Usage, ...] = ()):
        super().__init__(llm)
        self.usage = usage_before

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


@check_arguments
def ask_model(llm: LLM, *, name: str = "llm_query", max_tokens: int = 512) -> TextTool:
    """Create a tool that asks a model a plain question. The result carries the cost.

    The model's LLMError is passed on: an exhausted budget or a recording that does not match must end the run, not
    become a fact.
    """

    llm = as_model(llm, "ask_model()")
    require_count(max_tokens, 1, "max_tokens")

    def run(query: str) -> Result:
        reply = checked_reply(llm, Prompt((Message("user", query),), max_tokens=max_tokens))
        if not reply.text.strip():
            raise ToolFailed(f"{name}: the model said nothing; ask in another way")
        return Result(reply.text.strip(), usage=(reply.usage,))

    description = "Asks a language model what it knows, without looking anything up. It may be wrong."
    return TextTool(name, description, {"query": "a complete question"}, run)


# The tool that runs Python.


@check_arguments
def python(execute: PythonRunner, *, name: str = "python") -> TextTool:
    """Create a tool that runs Python code in a sandbox and returns what it prints.

    A broken sandbox raises its own SandboxError.
    """

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
