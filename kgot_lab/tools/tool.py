"""What a tool is: something with a name, a line for the prompt and arguments, that the loop may call for
facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from kgot_lab.errors import BadInput, ToolFailed, described_value
from kgot_lab.llm.structured import wrong_in_usage
from kgot_lab.types import Document, Json, Usage


@dataclass(frozen=True)
class Result:
    """What a tool returned: a text for the model, the documents it is taken from, and what models behind the
    tool cost.

    It is `recorded` where a trace holds it already, in which nothing is masked any more: the environment may
    have other keys by now.
    """

    text: str
    sources: tuple[Document, ...] = ()
    usage: tuple[Usage, ...] = ()
    recorded: bool = False


def checked_result(result: object) -> Result:
    """What a tool returned, once it is sure that it is one; a text is a Result of that text. Raises BadInput."""
    if isinstance(result, str):
        return Result(result)
    if not isinstance(result, Result) or not isinstance(result.text, str):
        raise BadInput(f"a tool returns a text, or a Result with a text, not {described_value(result)}")
    for what, given, kind in (("sources", result.sources, Document), ("usage", result.usage, Usage)):
        odd = (
            [given]
            if not isinstance(given, tuple | list)
            else [each for each in given if not isinstance(each, kind)]
        )
        if odd:
            raise BadInput(
                f"the {what} of a Result are a tuple of {kind.__name__}, not {described_value(odd[0])}"
            )
    if wrong := next(filter(None, map(wrong_in_usage, result.usage)), ""):
        raise BadInput(f"a Result whose {wrong}")
    return result


class Tool(Protocol):
    """A way to fetch facts."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...  # one line, for the prompt
    @property
    def arguments(self) -> Mapping[str, Json]: ...  # JSON schema of an object
    def __call__(self, /, **arguments: Json) -> Result: ...  # raises ToolFailed


@runtime_checkable
class Finder(Tool, Protocol):
    """A tool that finds documents: the loop may call it with a name or the question itself, as well as let a
    model choose it.
    """

    @property
    def finds(self) -> str: ...  # the argument that says what to look for; "" where it finds none after all


def sought_by(tool: Tool) -> str:
    """The argument by which a tool looks for documents, "" for a tool that finds none."""
    return tool.finds if isinstance(tool, Finder) else ""


@dataclass(frozen=True)
class TextTool:
    """A tool whose arguments are texts: the function gets them by name, checked and stripped of outer spaces.

    Those in `takes` are required, those in `may` are not, and are left out where they are empty. `finds` is
    the argument that says what to look for, where the tool finds documents. Raises BadInput where that is not
    all it needs.
    """

    name: str
    description: str
    takes: Mapping[str, str] = field(hash=False)  # argument -> what to put there
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
        return {
            "type": "object",
            "properties": {
                name: {"type": "string", "description": meaning} for name, meaning in self._all.items()
            },
            "required": list(self.takes),
            "additionalProperties": False,
        }

    @property
    def _all(self) -> dict[str, str]:
        return {**self.takes, **self.may}

    def __call__(self, /, **arguments: Json) -> Result:  # a model may well name an argument self
        return self.function(**self._checked(arguments))

    def _checked(self, given: Mapping[str, Json]) -> dict[str, str]:
        wrong = [f"{name} is missing" for name in self.takes if name not in given]
        wrong += [problem for name, value in given.items() if (problem := self._problem(name, value))]
        if wrong:
            raise ToolFailed(
                f"{self.name}: {', '.join(wrong)}; it expects: {', '.join(self._all) or 'nothing'}"
            )
        return {
            name: str(value).strip()
            for name, value in given.items()
            if name in self.takes or not _empty(value)
        }

    def _problem(self, name: str, value: Json) -> str:
        if name not in self._all:
            return f"{name!r} is unknown"
        if name in self.may and _empty(value):
            return ""
        if not isinstance(value, str | int | float):
            return f"{name} must be a text"
        return "" if str(value).strip() else f"{name} is empty"

    def __repr__(self) -> str:
        return f"<tool {self.name}({', '.join([*self.takes, *(f'[{name}]' for name in self.may)])})>"


def _empty(value: Json) -> bool:
    return value is None or not str(value).strip()
