"""Ask questions by name, with arguments as typed by a user or sent by a program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from inspect import Parameter as Inspected
from multiprocessing import get_context
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError

from kgot_lab.arguments import check_arguments, parse_json
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, LabError, UnknownName, require_known, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.query.questions import QUESTIONS, GraphQuestion, Parameter
from kgot_lab.kgos.query.search_embedder import SearchEmbedder
from kgot_lab.llm.structured import field_problem


@check_arguments
def get_question(name: str) -> GraphQuestion:
    """Return a question by its name, with dashes or underscores.

    Raises UnknownName if there is none.
    """
    known = name.strip().replace("_", "-")
    require_known("question", QUESTIONS, known)
    return QUESTIONS[known]


@check_arguments
def ask_by_name(
    graph: PropertyGraph, question: str, /, *, embedder: Embedder | None = None, **arguments: Any
) -> MethodResult:
    """Ask a graph a question by its name, as `kgot-lab query` does, and return the answer.

    For example, `query(graph, "used-by", node="get_command")`. Texts are converted to numbers if the argument is
    a number. With an embedder, a search and a question of what can be done
    go by meaning too. Raises UnknownName, which lists the questions or the arguments, and BadInput.
    """
    return ask_question(graph, get_question(question), arguments, embedder)


def ask_question(
    graph: PropertyGraph, question: GraphQuestion, arguments: Mapping[str, Any], embedder: Embedder | None
) -> MethodResult:
    """Ask a question with arguments that are converted, and with the embedder if it takes one."""
    meaning = {"embedder": embedder} if question.takes_embedder else {}
    return question.ask(graph, **convert_arguments(question, arguments), **meaning)


def convert_arguments(question: GraphQuestion, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments to the types that a question takes.

    A common other name, such as query for goal or k for limit, is taken where it can mean only one argument, and
    null is the default. Raises UnknownName for an argument that the question does not have, and BadInput if one
    is missing or has another type.
    """
    known = {parameter.name: parameter for parameter in question.parameters}
    given = resolve_aliases(question.name, arguments, known)
    values = {
        name: value
        for name, value in given.items()
        if value is not None or name not in known or known[name].default is Inspected.empty
    }
    require_known(f"argument of {question.name}", known, *values)
    required = [p.name for p in known.values() if p.default is Inspected.empty]
    if missing := [name for name in required if name not in values]:
        helps = "; ".join(known[name].help for name in missing)
        raise BadInput(f"{question.name} needs {', '.join(missing)}: {helps}")
    return {name: _convert_value(question, known[name], value) for name, value in values.items()}


# names by which models send an argument
_ALIASES = tuple(
    frozenset(names.split())
    for names in (
        "limit number top_k k n top max max_results count",
        "goal capability query q question text",
        "node id node_id name start source from node_a",
        "other target end to node_b",
        "depth max_depth hops",
        "type types node_type label",
        "edge_type edge_types relation",
        "statement cypher query q",
        "text episode episode_body body content message fact",
        "at time date when timestamp reference_time valid_at",
    )
)


def resolve_aliases(of: str, arguments: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return arguments by their own names, where a name is another one of only one of those that are known.

    Raises BadInput if one is given twice.
    """
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        name = name.replace("-", "_")
        meant = [each for each in known if any(name in names and each in names for names in _ALIASES)]
        name = name if name in known or len(meant) != 1 else meant[0]
        if value is not None and found.get(name) is not None:
            raise BadInput(f"{of} got {name} twice, also by another name: give it once")
        found[name] = found.get(name) if value is None else value
    return found


def _convert_value(question: GraphQuestion, parameter: Parameter, value: Any) -> Any:
    if is_list_type(parameter.type) and isinstance(value, str):
        value = [value]
    if parameter.type is str and isinstance(value, int | float):
        value = str(value)
    try:
        return TypeAdapter(parameter.type).validate_python(value)
    except ValidationError as error:
        problem = f"{parameter.name} of {question.name}: {field_problem(error)[1]}, not {short_repr(value)}"
        raise BadInput(f"{problem}; it is {parameter.help}") from None


def is_list_type(type: Any) -> bool:
    """Return whether an argument is a list."""
    return get_origin(type) is list or any(get_origin(argument) is list for argument in get_args(type))


def parse_line(line: str) -> tuple[str, dict[str, Any]]:
    """Parse a line into the name and the arguments of a question.

    A line is as typed (`want-to "less cost" --limit 5`) or {"ask": name, …}. Raises BadInput if it is
    neither.
    """
    if line.lstrip().startswith("{"):
        try:
            values = parse_json(line)
        except ValueError as error:
            raise BadInput(f"{line.strip()[:80]} is no JSON: {error}") from None
        if not isinstance(values, dict) or not isinstance(values.get("ask"), str):
            example = '{"ask": "want-to", "goal": "less cost"}'
            raise BadInput(f"a question in JSON is an object with its name, as {example}")
        return values.pop("ask"), values
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise BadInput(f"{line.strip()[:80]}: {error}") from None
    if not words:
        raise BadInput("a question begins with its name")
    return words[0], parse_words(get_question(words[0]), words[1:])


def parse_words(question: GraphQuestion, words: Sequence[str]) -> dict[str, Any]:
    """Parse command-line words into arguments of a question.

    Required arguments come in their order, the others after --name. Raises UnknownName for an option that the
    question does not have, and BadInput.
    """
    needed = [parameter for parameter in question.parameters if parameter.default is Inspected.empty]
    known = {parameter.name: parameter for parameter in question.parameters}
    values: dict[str, Any] = {}
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            name = name.replace("-", "_")
            if name not in known:
                options = [f"--{name.replace('_', '-')}" for name in known]
                raise UnknownName(f"option of {question.name}", word, options)
            if known[name].type is bool:
                values[name] = value or "true"
                continue
            if not sign and not waiting:
                raise BadInput(f"--{name} of {question.name} needs a value: {known[name].help}")
            value = value if sign else waiting.pop(0)
            values[name] = [*values.get(name, []), value] if is_list_type(known[name].type) else value
        else:
            parameter = next((p for p in needed if p.name not in values or is_list_type(p.type)), None)
            if parameter is None:
                takes = f"{question.name} takes {len(needed)} words and options"
                raise BadInput(f"{takes}, and {word!r} is one too many: put quotes around a text")
            earlier = values.get(parameter.name, [])
            values[parameter.name] = [*earlier, word] if is_list_type(parameter.type) else word
    return values


# Ask many questions: independently, in parallel, or as a pipeline in which each uses what the one before
# found.

_PIPE = re.compile(r"""\|(?=(?:[^"']|"[^"]*"|'[^']*')*$)""")  # a | outside quotes
_REFERENCE = re.compile(r"\{(\d+)\}")
_worker_graph: PropertyGraph | None = None  # of a worker process
_worker_embedder: SearchEmbedder | None = None


@dataclass(frozen=True)
class AnsweredLine:
    """A question in a line, with its answer or its error."""

    line: str
    result: MethodResult | None
    error: str = ""


def answer_lines(
    graph: PropertyGraph, lines: Iterable[str], *, parallel: int = 1, by: SearchEmbedder | None = None
) -> Iterator[AnsweredLine]:
    """Yield the answers to questions, one per line, in their order, with the embedder of searches `by`.

    An error is reported in place of its answer, and the other questions go on.
    """
    asked_lines = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if parallel <= 1 or len(asked_lines) < 2:
        yield from (_answer_line(graph, line, by) for line in asked_lines)
        return
    context = get_context("spawn")  # forking a process with threads may deadlock
    given = graph, SearchEmbedder(by.name) if by else None
    with ProcessPoolExecutor(min(parallel, len(asked_lines)), context, _init_worker, given) as pool:
        yield from pool.map(_answer_in_worker, asked_lines)


def _init_worker(graph: PropertyGraph, by: SearchEmbedder | None) -> None:
    global _worker_graph, _worker_embedder
    _worker_graph, _worker_embedder = graph, by


def _answer_in_worker(line: str) -> AnsweredLine:
    assert _worker_graph is not None
    return _answer_line(_worker_graph, line, _worker_embedder)


def _answer_line(graph: PropertyGraph, line: str, by: SearchEmbedder | None) -> AnsweredLine:
    try:
        name, arguments = parse_line(line)
        known = get_question(name)
        embedder = by.select(graph)[0] if by and known.takes_embedder else None
        return AnsweredLine(line, ask_question(graph, known, arguments, embedder))
    except LabError as error:
        return AnsweredLine(line, None, str(error))


def run_pipeline(
    graph: PropertyGraph, text: str, *, by: SearchEmbedder | None = None
) -> Iterator[tuple[str, MethodResult]]:
    """Yield the answers to questions joined by |.

    In a question, {1} is the first node that the one before found, {2} the second. Raises BadInput, before
    the question is asked, if there is no such node.
    """
    steps = [each.strip() for each in _PIPE.split(text)]
    if not all(steps):
        raise BadInput('questions in a pipeline have a | between them: want-to "less cost" | impact {1}')
    for step in steps:
        get_question(parse_line(step)[0])  # report a wrong name before asking anything
    previous: MethodResult | None = None
    for step in steps:
        name, arguments = parse_line(step)
        filled = {key: _fill_references(value, previous, step) for key, value in arguments.items()}
        known = get_question(name)
        embedder = by.select(graph)[0] if by and known.takes_embedder else None
        previous = ask_question(graph, known, filled, embedder)
        yield step, previous


def _fill_references(value: Any, previous: MethodResult | None, step: str) -> Any:
    if isinstance(value, list):
        return [_fill_references(each, previous, step) for each in value]
    if not isinstance(value, str):
        return value

    def id_at(match: re.Match[str]) -> str:
        position = int(match[1])
        if previous is None:
            raise BadInput(f"{step!r} is the first question: nothing was found before, for {match[0]} to be")
        if not 1 <= position <= len(previous.ids):
            raise BadInput(f"{match[0]} in {step!r}: the question before found {len(previous.ids)} nodes")
        return previous.ids[position - 1]

    return _REFERENCE.sub(id_at, value)
