"""The prompts of the loop. The query language of the graph is a parameter, a Dialect.

Prompts of one turn share a prefix (system line, question, graph), so that a local engine can reuse its cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from kgot_lab.loop.events import ToolCall
from kgot_lab.loop.render import join_lines
from kgot_lab.stores.protocol import Dialect
from kgot_lab.text.cleaning import FENCES, fence_text
from kgot_lab.tools.tool import Tool
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


def _messages(system: str, text: str) -> tuple[Message, ...]:
    return Message("system", system), Message("user", text)


def format_situation(question: str, attachments: Sequence[str], graph: str) -> str:
    """Return the text that every prompt of a turn begins with."""
    files = f"\n\nFiles attached to the question:\n{join_lines(attachments)}" if attachments else ""
    return f"Question: {question}{files}\n\nKnowledge graph so far:\n{graph or 'empty'}"


def _format_calls(calls: Sequence[ToolCall]) -> str:
    return "Tool calls made so far:\n" + (join_lines(f"- {call}" for call in calls) or "- none")


def vote_prompt(situation: str, calls: Sequence[ToolCall], dialect: Dialect | None) -> tuple[Message, ...]:
    """Ask for the next step, and with RETRIEVE for the statement that reads the answer.

    Without a dialect, RETRIEVE gives the answer itself.
    """
    retrieve = (
        f"in text, write {dialect.name} that reads the answer from the graph. {dialect.how_to_read}\nExample of reading:\n{dialect.read_example}"
        if dialect
        else "in text, give the answer, using only facts of the graph."
    )
    return _messages(
        SYSTEM,
        f"{situation}\n\n{_format_calls(calls)}\n\n"
        "What next? RETRIEVE if the graph holds everything that answers the question; INSERT if any fact is missing.\n"
        "- INSERT: in text, say which facts are missing and why, in one or two sentences.\n"
        f"- RETRIEVE: {retrieve}\n"
        'Reply as JSON: {"choice": "INSERT" or "RETRIEVE", "text": "..."}',
    )


def vote_by_names_prompt(situation: str) -> tuple[Message, ...]:
    """Ask for an answer from the facts alone, the names it rests on, and what is missing.

    The vote follows from the answer.
    """
    return _messages(
        SYSTEM,
        f"{situation}\n\nUse only the facts above.\n"
        "answer: the answer to the question in a few words, or unknown if the facts do not give it.\n"
        "choice: RETRIEVE if the facts give the answer, INSERT if it is unknown.\n"
        "about: the names in the facts that the answer rests on.\n"
        "missing: what must still be looked up.\n"
        'Reply as JSON: {"answer": "...", "choice": "INSERT" or "RETRIEVE", "about": ["..."], "missing": "..."}',
    )


def name_choice_prompt(situation: str) -> tuple[Message, ...]:
    """Ask which nodes of the graph to look at. The model must choose some."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nWhich names of the graph should be looked up to answer the question? Choose from the names above; guess if you must.\n"
        'Reply as JSON: {"about": ["..."]}',
    )


def merge_reasons_prompt(reasons: Sequence[str]) -> tuple[Message, ...]:
    """Ask to fuse several reasons into one."""
    listed = join_lines(f"- {reason}" for reason in reasons)
    return _messages(
        SYSTEM,
        f'Fuse these notes on missing facts into one short paragraph, nothing twice:\n{listed}\n\nReply as JSON: {{"reason": "..."}}',
    )


def tool_choice_prompt(
    situation: str, calls: Sequence[ToolCall], missing: str, tools: Sequence[Tool]
) -> tuple[Message, ...]:
    """Ask which tools to call for the missing facts."""
    listed = join_lines(f"- {t.name}({', '.join(_format_arguments(t))}): {t.description}" for t in tools)
    return _messages(
        SYSTEM,
        f"{situation}\n\n{_format_calls(calls)}\n\nMissing: {missing or 'not stated'}\n\nTools:\n{listed}\n\n"
        "Choose the calls that fetch the missing facts. Give every argument in full; use names that the graph already revealed; "
        "never repeat a call made before; do not ask for what the graph already holds.\n"
        'Reply as JSON: {"calls": [{"tool": "...", "arguments": {...}}]}',
    )


def next_names_prompt(situation: str, names: Sequence[str]) -> tuple[Message, ...]:
    """Ask which names that the graph revealed to look up next."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nNot looked up yet: {'; '.join(names)}\n\n"
        "Which of these must be looked up next to answer the question? The most important first, no more than needed.\n"
        'Reply as JSON: {"about": ["..."]}',
    )


def _format_arguments(tool: Tool) -> list[str]:
    properties = tool.arguments.get("properties", {})
    return [f"{name}: {part.get('description', part.get('type', ''))}" for name, part in properties.items()]


def write_prompt(situation: str, source: str, text: str, dialect: Dialect) -> tuple[Message, ...]:
    """Ask for statements that write a tool's output into the graph."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nNew information:\n{fence_text(text, source)}\n{FENCES}\n\n"
        f"Write {dialect.name} statements that add this to the graph. {dialect.how_to_write}\n"
        "Add only what the new information says and the graph lacks, and only what may help with the question. "
        "Reuse the ids of the graph. Store raw numbers and dates; compute nothing.\n"
        f"Example of writing:\n{dialect.write_example}\n"
        'Reply as JSON: {"statements": ["..."]}',
    )


def repair_prompt(
    statement: str, error: str, graph: str, dialect: Dialect, *, writing: bool
) -> tuple[Message, ...]:
    """Ask for a corrected statement, with the engine's own message."""
    instructions = dialect.how_to_write if writing else dialect.how_to_read
    return _messages(
        SYSTEM,
        f"Knowledge graph so far:\n{graph or 'empty'}\n\nThis {dialect.name} failed:\n{statement}\n\nError: {error}\n\n"
        f'{instructions}\nWrite it again, corrected.\nReply as JSON: {{"statement": "..."}}',
    )


def reread_prompt(situation: str, wrong: str, dialect: Dialect) -> tuple[Message, ...]:
    """Ask for another read statement after one that found nothing."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nThis {dialect.name} found nothing:\n{wrong}\n\n"
        f"Write another that reads what answers the question. {dialect.how_to_read} Use only ids, labels and relations that the graph has.\n"
        f'Example of reading:\n{dialect.read_example}\nReply as JSON: {{"statement": "..."}}',
    )


def dialect_read_prompt(situation: str, dialect: Dialect) -> tuple[Message, ...]:
    """Ask for a read statement in one more language, for a graph that is thought to be complete."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nWrite {dialect.name} that reads what answers the question from this graph. {dialect.how_to_read} "
        f"Use only ids, labels and relations that the graph has.\n"
        f'Example of reading:\n{dialect.read_example}\nReply as JSON: {{"statement": "..."}}',
    )


def forced_read_prompt(situation: str, dialect: Dialect) -> tuple[Message, ...]:
    """Ask for the best read statement, when nothing more can be inserted."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nNo more facts can be fetched. Write {dialect.name} that reads whatever comes nearest to an answer; guess if you must. "
        f'{dialect.how_to_read}\nExample of reading:\n{dialect.read_example}\nReply as JSON: {{"statement": "..."}}',
    )


def arithmetic_needed_prompt(question: str, facts: str) -> tuple[Message, ...]:
    """Ask whether the facts must still be computed with."""
    return _messages(
        ANSWER,
        f"Facts:\n{facts}\n\nQuestion: {question}\n\nMust numbers or dates in these facts still be computed with (added, counted, subtracted, compared, averaged) "
        'to answer the question? Say false if the answer stands in the facts.\nReply as JSON: {"needed": true or false}',
    )


def arithmetic_prompt(question: str, facts: str) -> tuple[Message, ...]:
    """Ask for Python that does the computation."""
    return _messages(
        ANSWER,
        f"Facts:\n{facts}\n\nQuestion: {question}\n\nWrite short Python that computes what the question asks from these facts and prints it. "
        'Copy the numbers into the code; nothing else is available.\nReply as JSON: {"code": "..."}',
    )


def arithmetic_repair_prompt(question: str, facts: str, code: str, error: str) -> tuple[Message, ...]:
    """Ask for corrected Python, with the error that the last one ended in."""
    return _messages(
        ANSWER,
        f"Facts:\n{facts}\n\nQuestion: {question}\n\nThis Python should compute what the question asks from these facts and print it, but failed:\n"
        f'{code}\n\nError: {error}\n\nWrite it again, corrected.\nReply as JSON: {{"code": "..."}}',
    )


def answer_prompt(question: str, facts: str, format: str) -> tuple[Message, ...]:
    """Ask for the answer that follows from the facts, in a format."""
    return _messages(
        ANSWER,
        f'Facts:\n{facts}\n\nQuestion: {question}\n{FORMATS[format]}\nReply as JSON: {{"answer": "..."}}',
    )


def best_candidate_prompt(question: str, facts: str, candidates: Sequence[str]) -> tuple[Message, ...]:
    """Ask which candidate answer is best."""
    listed = join_lines(f"{number}. {candidate}" for number, candidate in enumerate(candidates, start=1))
    return _messages(
        ANSWER,
        f"Facts:\n{facts}\n\nQuestion: {question}\n\nCandidate answers:\n{listed}\n\n"
        "Which one is best supported by the facts and in the format that the question asks for? "
        'Reply as JSON: {"number": the number of the best candidate}',
    )


def guess_prompt(situation: str, format: str) -> tuple[Message, ...]:
    """Ask for an answer although nothing could be read: it may guess."""
    return _messages(
        SYSTEM,
        f"{situation}\n\nNothing more can be fetched or read. Give your best answer, from the graph where it helps and by a guess where it does not.\n"
        f'{FORMATS[format]}\nReply as JSON: {{"answer": "..."}}',
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


class ChosenCall(BaseModel):
    """A tool and its arguments."""

    tool: str
    arguments: dict[str, Any]


class ChosenCalls(BaseModel):
    """The tool calls of a step."""

    calls: list[ChosenCall]


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
    return _object_schema(about=array)


def calls_schema(tools: Sequence[Tool], limit: int) -> Mapping[str, Json]:
    """Return the JSON schema of `ChosenCalls` restricted to the given tools, each with its own arguments."""
    variants = [_object_schema(tool={"const": tool.name}, arguments=dict(tool.arguments)) for tool in tools]
    items = variants[0] if len(variants) == 1 else {"anyOf": variants}
    return _object_schema(calls={"type": "array", "minItems": 1, "maxItems": limit, "items": items})


def _object_schema(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object that has these properties and no other."""
    closed = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed}
