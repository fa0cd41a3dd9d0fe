"""The prompts of the loop, whose texts are in prompts.toml. The query language is a parameter, a Dialect."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Literal

from pydantic import BaseModel, Field

from kgot_lab.errors import BadInput, require, require_known
from kgot_lab.loop.events import ToolCall, ToolReturned
from kgot_lab.loop.render import join_lines
from kgot_lab.stores.protocol import Dialect
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.tools.tool import object_schema
from kgot_lab.types import Json, Message

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SYSTEM, ANSWER = _TEXTS["systems"]["loop"], _TEXTS["systems"]["facts"]
FORMATS: Mapping[str, str] = _TEXTS["formats"]
TEMPLATES: Mapping[str, str] = _TEXTS["templates"]  # by what they ask for
_FROM_FACTS = frozenset(("arithmetic?", "arithmetic", "arithmetic again", "parse", "choose"))


class Prompts:
    """The prompts of a run: the texts of the package, and in their place some of one's own.

    `own` has texts by the names of TEMPLATES, with each field of the text there as $field, and $$ for a
    dollar sign. Raises UnknownName for an unknown name, and BadInput for a field that is missing or unknown.
    """

    def __init__(self, own: Mapping[str, str] = {}) -> None:
        require(own, Mapping, "prompts map the names of some of TEMPLATES to texts")
        self.own = {
            name: replace_surrogates(text) if isinstance(text, str) else text for name, text in own.items()
        }
        self._templates = {name: Template(text) for name, text in {**TEMPLATES, **self.own}.items()}
        require_known("prompt", TEMPLATES, *self.own)
        for name, text in self.own.items():
            require(text, str, f"the prompt {name!r} is a text with fields such as $situation")
            wanted, given = (set(Template(some).get_identifiers()) for some in (TEMPLATES[name], text))
            if wanted != given or not self._templates[name].is_valid():
                fields = ", ".join(f"${field}" for field in sorted(wanted))
                lacks, besides = (", ".join(sorted(some)) for some in (wanted - given, given - wanted))
                problems = [f"lacks {lacks}"] * bool(lacks) + [f"has besides {besides}"] * bool(besides)
                problems = problems or ["has a $ that names no field: write $$ for a dollar sign"]
                problem = f"the prompt {name!r} must hold the fields {fields}"
                raise BadInput(f"{problem}; it {' and '.join(problems)}")

    def __call__(self, name: str, dialect: Dialect | None = None, **fields: str) -> tuple[Message, ...]:
        """Return the messages of a prompt. The fields of a query language are taken from its dialect."""
        if dialect is not None:
            parts = "how_to_read", "read_example", "how_to_write", "write_example"
            fields |= {"language": dialect.name, **{part: getattr(dialect, part) for part in parts}}
        system = ANSWER if name in _FROM_FACTS else SYSTEM
        return Message("system", system), Message("user", self._templates[name].substitute(fields))


def format_situation(question: str, attachments: Sequence[str], graph: str) -> str:
    """Return the text that every prompt of a turn begins with."""
    files = f"\n\nFiles attached to the question:\n{join_lines(attachments)}" if attachments else ""
    return f"Question: {question}{files}\n\nKnowledge graph so far:\n{graph or 'empty'}"


def format_calls(
    calls: Sequence[ToolCall], returns: Iterable[ToolReturned] = (), surplus: Sequence[ToolCall] = ()
) -> str:
    """List the tool calls made so far, with the reasons of those that failed, and those beyond the limit."""
    failed = {str(each.call): " ".join(each.text.split())[:300] if each.failed else "" for each in returns}
    shown = [f"{call} failed: {failed[str(call)]}" if failed.get(str(call)) else str(call) for call in calls]
    left_out = f"\nNot made, as too many at once:\n{format_list(surplus)}" if surplus else ""
    return f"Tool calls made so far:\n{format_list(shown, '- none')}{left_out}"


def format_list(items: Iterable[object], empty: str = "") -> str:
    """Return items as a list, one in a line."""
    return join_lines(f"- {item}" for item in items) or empty


def retrieve_request(dialect: Dialect | None) -> str:
    """Return what a ballot for RETRIEVE must give: a statement, or without a dialect the answer itself."""
    if dialect is None:
        return str(_TEXTS["retrieve"]["answer"])
    return Template(_TEXTS["retrieve"]["statement"]).substitute(
        language=dialect.name, how_to_read=dialect.how_to_read, read_example=dialect.read_example
    )


# Schemas of structured replies.


class Vote(BaseModel):
    """A ballot: what next, and the reason (INSERT) or the read statement or answer (RETRIEVE)."""

    choice: Literal["INSERT", "RETRIEVE"]
    text: str


class OperationsVote(BaseModel):
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


class Statements(BaseModel):
    """Write statements."""

    statements: list[str]


class Statement(BaseModel):
    """One statement."""

    statement: str


class ComputationNeeded(BaseModel):
    """Whether a computation is needed."""

    needed: bool


class Code(BaseModel):
    """Python that prints a result."""

    code: str


class Answer(BaseModel):
    """An answer in the format asked for."""

    answer: str


class CandidateChoice(BaseModel):
    """The number of the best candidate, from 1."""

    number: int


def names_schema(names: Sequence[str], limit: int) -> Mapping[str, Json]:
    """Return the JSON schema of `Names` restricted to at most `limit` of the given names."""
    array = {"type": "array", "minItems": 1, "maxItems": limit, "items": {"enum": list(names)}}
    return object_schema({"about": array})
