"""The prompts of the loop. The query language of the graph is a parameter, a Dialect.

Prompts of one turn share a prefix (system line, question, graph), so that a local engine can reuse its cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from kgot_lab.errors import BadInput, require, require_known
from kgot_lab.llm.reply_forms import as_call, as_calls
from kgot_lab.loop.events import ToolCall, ToolReturned
from kgot_lab.loop.render import join_lines
from kgot_lab.stores.protocol import Dialect
from kgot_lab.text.cleaning import replace_surrogates
from kgot_lab.tools.tool import Tool, object_schema
from kgot_lab.types import Json, Message

SYSTEM = "You answer a question by growing a knowledge graph from what tools return and then reading the answer from it. Be exact. Never invent facts."
ANSWER = "You answer questions from given facts, as briefly as possible."

FORMATS = {
    "default": "Answer in one short paragraph, or in the format that the question asks for.",
    "gaia": (
        "Give the shortest exact answer, mostly one to five words, never a sentence: the words of the facts where possible, digits for numbers, commas in a list; "
        "no units unless asked for, no articles, no full stop."
    ),
}


_READ = "$how_to_read\nExample of reading:\n$read_example"
_ONLY_KNOWN = "Use only ids, labels and relations that the graph has.\nExample of reading:\n$read_example"
_STATEMENT = '\nReply as JSON: {"statement": "..."}'
_ABOUT = '\nReply as JSON: {"about": ["..."]}'
_FACTS = "Facts:\n$facts\n\nQuestion: $question\n"

# The texts of the prompts, by what they ask for. A run may have others with the same fields.
TEMPLATES: Mapping[str, str] = {
    # the next step, and with RETRIEVE the statement that reads the answer, or the answer itself
    "vote": "$situation\n\n$calls\n\n"
    "What next? RETRIEVE if the graph holds everything that answers the question; INSERT if any fact is missing.\n"
    "- INSERT: in text, say which facts are missing and why, in one or two sentences.\n"
    "- RETRIEVE: $retrieve\n"
    'Reply as JSON: {"choice": "INSERT" or "RETRIEVE", "text": "..."}',
    # an answer from the facts alone, the names it rests on, and what is missing; the vote follows from it
    "vote by names": "$situation\n\nUse only the facts above.\n"
    "answer: the answer to the question in a few words, or unknown if the facts do not give it.\n"
    "choice: RETRIEVE if the facts give the answer, INSERT if it is unknown.\n"
    "about: the names in the facts that the answer rests on.\n"
    "missing: what must still be looked up.\n"
    'Reply as JSON: {"answer": "...", "choice": "INSERT" or "RETRIEVE", "about": ["..."], "missing": "..."}',
    "merge": "Fuse these notes on missing facts into one short paragraph, nothing twice:\n$reasons\n\n"
    'Reply as JSON: {"reason": "..."}',
    "tools": "$situation\n\n$calls\n\nMissing: $missing\n\nTools:\n$tools\n\n"
    "Choose the calls that fetch the missing facts. Give every argument in full; use names that the graph already revealed; "
    "never repeat a call made before; do not ask for what the graph already holds.\n"
    'Reply as JSON: {"calls": [{"tool": "...", "arguments": {...}}]}',
    "next names": "$situation\n\nNot looked up yet: $names\n\n"
    "Which of these must be looked up next to answer the question? The most important first, no more than needed." + _ABOUT,
    "write": "$situation\n\nNew information:\n$text\n$fences\n\n"
    "Write $language statements that add this to the graph. $how_to_write\n"
    "Add only what the new information says and the graph lacks, and only what may help with the question. "
    "Reuse the ids of the graph. Store raw numbers and dates; compute nothing.\n"
    "Example of writing:\n$write_example\n"
    'Reply as JSON: {"statements": ["..."]}',
    # with the engine's own message
    "mend": "Knowledge graph so far:\n$graph\n\nThis $language failed:\n$statement\n\nError: $error\n\n"
    "$instructions\nWrite it again, corrected." + _STATEMENT,
    # which nodes to look at; the model must choose some
    "names": "$situation\n\nWhich names of the graph should be looked up to answer the question? "
    "Choose from the names above; guess if you must." + _ABOUT,
    "read again": "$situation\n\nThis $language found nothing:\n$wrong\n\n"
    f"Write another that reads what answers the question. $how_to_read {_ONLY_KNOWN}{_STATEMENT}",
    # in one more language, for a graph that is thought to be complete
    "read": f"$situation\n\nWrite $language that reads what answers the question from this graph. $how_to_read {_ONLY_KNOWN}{_STATEMENT}",
    "forced read": "$situation\n\nNo more facts can be fetched. Write $language that reads whatever comes nearest to an answer; "
    f"guess if you must. {_READ}{_STATEMENT}",
    "arithmetic?": f"{_FACTS}\nMust numbers or dates in these facts still be computed with (added, counted, subtracted, compared, averaged) "
    'to answer the question? Say false if the answer stands in the facts.\nReply as JSON: {"needed": true or false}',
    "arithmetic": f"{_FACTS}\nWrite short Python that computes what the question asks from these facts and prints it. "
    'Copy the numbers into the code; nothing else is available.\nReply as JSON: {"code": "..."}',
    "arithmetic again": f"{_FACTS}\nThis Python should compute what the question asks from these facts and print it, but failed:\n"
    '$code\n\nError: $error\n\nWrite it again, corrected.\nReply as JSON: {"code": "..."}',
    "parse": f'{_FACTS}$format\nReply as JSON: {{"answer": "..."}}',
    "choose": f"{_FACTS}\nCandidate answers:\n$candidates\n\n"
    "Which one is best supported by the facts and in the format that the question asks for? "
    'Reply as JSON: {"number": the number of the best candidate}',
    # although nothing could be read
    "guess": "$situation\n\nNothing more can be fetched or read. Give your best answer, from the graph where it helps and by a guess where it does not.\n"
    '$format\nReply as JSON: {"answer": "..."}',
}  # fmt: skip
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


def format_tools(tools: Iterable[Tool]) -> str:
    """List tools with their arguments and descriptions."""
    return format_list(f"{t.name}({', '.join(_format_arguments(t))}): {t.description}" for t in tools)


def retrieve_request(dialect: Dialect | None) -> str:
    """Return what a ballot for RETRIEVE must give: a statement, or without a dialect the answer itself."""
    if dialect is None:
        return "in text, give the answer, using only facts of the graph."
    return Template(f"in text, write $language that reads the answer from the graph. {_READ}").substitute(
        language=dialect.name, how_to_read=dialect.how_to_read, read_example=dialect.read_example
    )


def _format_arguments(tool: Tool) -> list[str]:
    properties = tool.arguments.get("properties", {})
    return [f"{name}: {part.get('description', part.get('type', ''))}" for name, part in properties.items()]


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


class ChosenCall(BaseModel):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]

    _spelt = model_validator(mode="before")(as_call)


class ChosenCalls(BaseModel):
    """The tool calls of a step."""

    calls: list[ChosenCall]

    _listed = model_validator(mode="before")(as_calls)


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


def calls_schema(tools: Sequence[Tool], limit: int) -> Mapping[str, Json]:
    """Return the JSON schema of `ChosenCalls` restricted to the given tools, each with its own arguments."""
    variants = [object_schema({"tool": {"const": t.name}, "arguments": dict(t.arguments)}) for t in tools]
    items = variants[0] if len(variants) == 1 else {"anyOf": variants}
    return object_schema({"calls": {"type": "array", "minItems": 1, "maxItems": limit, "items": items}})
