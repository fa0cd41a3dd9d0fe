"""Many questions at once: each apart, on several processors, or one after another, each about what the one
before found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from kgot_lab.errors import BadInput, LabError
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.query.question_arguments import ask_by_name, fitting, parsed_line, question_named

_BETWEEN = re.compile(r"""\|(?=(?:[^"']|"[^"]*"|'[^']*')*$)""")  # a | that stands in no quotes
_PLACE = re.compile(r"\{(\d+)\}")
_graph: PropertyGraph | None = None  # of a process that answers; each has its own


@dataclass(frozen=True)
class AnsweredLine:
    """One of many questions: the line it was asked in, and its answer, or what was wrong with it."""

    line: str
    result: MethodResult | None
    error: str = ""


def answered_lines(
    graph: PropertyGraph, lines: Iterable[str], *, parallel: int = 1
) -> Iterator[AnsweredLine]:
    """The answers to questions, each in a line, in their order; what is wrong with one is told in its place,
    and the others go on.
    """
    asked_lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if parallel <= 1 or len(asked_lines) < 2:
        yield from (_one(graph, line) for line in asked_lines)
        return
    context = get_context("spawn")  # a copy of a process with threads may hang
    with ProcessPoolExecutor(min(parallel, len(asked_lines)), context, _begin, (graph,)) as pool:
        yield from pool.map(_there, asked_lines)


def _begin(graph: PropertyGraph) -> None:
    global _graph
    _graph = graph


def _there(line: str) -> AnsweredLine:
    assert _graph is not None
    return _one(_graph, line)


def _one(graph: PropertyGraph, line: str) -> AnsweredLine:
    try:
        return AnsweredLine(line, ask_by_name(graph, *parsed_line(line)))
    except LabError as error:
        return AnsweredLine(line, None, str(error))


def piped(graph: PropertyGraph, text: str) -> Iterator[tuple[str, MethodResult]]:
    """The answers to questions with | between them; {1} in one is the first node that the one before found,
    {2} the second.

    Raises BadInput where there is no such node, before the question is asked.
    """
    steps = [each.strip() for each in _BETWEEN.split(text)]
    if not all(steps):
        raise BadInput(
            'questions in a pipeline have a | between them, as in: want-to "less cost" | impact {1}'
        )
    for step in steps:
        question_named(parsed_line(step)[0])  # a wrong name in the last is told before the first is asked
    found: MethodResult | None = None
    for step in steps:
        name, arguments = parsed_line(step)
        filled = {key: _filled(value, found, step) for key, value in arguments.items()}
        found = question_named(name).ask(graph, **fitting(question_named(name), filled))
        yield step, found


def _filled(value: Any, found: MethodResult | None, step: str) -> Any:
    if isinstance(value, list):
        return [_filled(each, found, step) for each in value]
    if not isinstance(value, str):
        return value

    def id_at(match: re.Match[str]) -> str:
        place = int(match[1])
        if found is None:
            raise BadInput(
                f"{step!r} is the first question, so nothing was found before it that {match[0]} could be"
            )
        if not 1 <= place <= len(found.ids):
            raise BadInput(f"{match[0]} in {step!r}: the question before found {len(found.ids)} nodes")
        return found.ids[place - 1]

    return _PLACE.sub(id_at, value)
