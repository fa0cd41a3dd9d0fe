"""Commands of `query` that answer in words, by a model or, without one, with the retrieved context."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.cli.query.shared import (
    ANSWER_FILE,
    NOTHING_FOUND,
    QueriedGraph,
    check_new_graph_file,
    queries,
    time_limit,
    write_answer,
)
from kgot_lab.errors import BadInput
from kgot_lab.text.cleaning import format_count

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.kgos.query.answering import TextAnswer
    from kgot_lab.types import LLM

    _MakeAnswer = Callable[[PropertyGraph, LLM | None], TextAnswer]

_ANSWER_PANEL = "Natural language"


_LIMIT_OPTION = option("how many nodes to answer from, with neighbours", "--limit", default=10, min=1)
_QUESTION_ARGUMENT = argument("a question in plain words")


@dataclass(frozen=True)
class _OutputOptions:
    """Where an answer goes."""

    output: Path | None = ANSWER_FILE
    as_json: bool = option("print JSON, with the context and what is cited", "--json", default=False)
    timeout: float | None = option("stop after so many seconds", min=0.001)


@dataclass(frozen=True)
class _AnswerOptions(_OutputOptions):
    """Options for the model and the output."""

    model: str | None = option(f"what answers; without it the context is shown; {options.MODEL_FORMS}")
    models: Path | None = options.MODELS_FILE


@queries.command("ask", rich_help_panel=_ANSWER_PANEL)
@options.with_options
def _ask(
    context: typer.Context,
    *,
    question: str = _QUESTION_ARGUMENT,
    output: _AnswerOptions,
    session: Path | None = option("a file that keeps question and answer, for follow-up"),
    limit: int = _LIMIT_OPTION,
) -> None:
    """Answer a question from the graph, and name the nodes that the answer cites."""
    from kgot_lab.kgos.query.answering import Conversation, answer_question

    conversation = Conversation(session) if session else None
    ask = partial(answer_question, limit=limit)
    answer = _answer_by_search(context, output, ask, question)
    if conversation:
        conversation.add(answer)


@queries.command("follow-up", rich_help_panel=_ANSWER_PANEL)
@options.with_options
def _follow_up(
    context: typer.Context,
    *,
    question: str = _QUESTION_ARGUMENT,
    session: Path = option("the file of the conversation that this follows", default=...),
    output: _AnswerOptions,
    limit: int = _LIMIT_OPTION,
) -> None:
    """Answer a follow-up question, also using what was found for the questions before."""
    from kgot_lab.kgos.query.answering import Conversation, answer_question

    conversation = Conversation(session)
    if not conversation.turns:
        raise BadInput(f"{session} holds no question to follow: begin with `ask … --session {session}`")

    ask = partial(answer_question, before=conversation.turns, limit=limit)
    conversation.add(_answer_by_search(context, output, ask, question))


@queries.command("explain", rich_help_panel=_ANSWER_PANEL)
@options.with_options
def _explain(
    context: typer.Context,
    *,
    node: str = argument("a node, by its id, its name or the end of its id"),
    output: _AnswerOptions,
) -> None:
    """Explain a node by its properties and edges, in words if a model is given."""
    from kgot_lab.kgos.query.answering import explain_node

    _answer_and_print(context, output, lambda graph, llm: explain_node(graph, node, llm))


@queries.command("summarize", rich_help_panel=_ANSWER_PANEL)
@options.with_options
def _summarize(context: typer.Context, *, output: _AnswerOptions) -> None:
    """Summarize the graph: what it holds, where to begin, its clusters."""
    from kgot_lab.kgos.query.answering import summarise_graph

    _answer_and_print(context, output, summarise_graph)


@queries.command("context", rich_help_panel=_ANSWER_PANEL)
@options.with_options
def _context(
    context: typer.Context,
    *,
    question: str = _QUESTION_ARGUMENT,
    output: _OutputOptions,
    limit: int = _LIMIT_OPTION,
) -> None:
    """Print what the graph says about a question, as context for a model of your own."""
    from kgot_lab.kgos.query.answering import answer_question

    _answer_by_search(context, output, partial(answer_question, limit=limit), question)


def _answer_by_search(
    context: typer.Context, output: _OutputOptions, ask: Callable[..., TextAnswer], question: str
) -> TextAnswer:
    queried: QueriedGraph = context.obj
    with queried.search_embedder() as by:

        def make(graph: PropertyGraph, llm: LLM | None) -> TextAnswer:
            embedder, note = by.select(graph)
            queried.say(note)
            return ask(graph, question, llm, embedder=embedder)

        return _answer_and_print(context, output, make)


def _answer_and_print(context: typer.Context, output: _OutputOptions, make: _MakeAnswer) -> TextAnswer:
    queried: QueriedGraph = context.obj
    model, models = (output.model, output.models) if isinstance(output, _AnswerOptions) else (None, None)
    queried.stop_if_dry(f"tell it by {model}: one call of a model" if model else "ask no model")
    with time_limit(output.timeout):
        graph = queried.graph  # read before a model is loaded, to report a wrong name at once
        llm = None
        if model and len(graph):
            llm = terminal.connect_model(model, models=str(models) if models else None)
        answer = make(graph, llm)
    text = answer.text
    if output.as_json:
        fields = ("question", "text", "context", "nodes", "cited")
        record = {name: getattr(answer, name) for name in fields}
        record |= {"cited falsely": answer.false, "model": answer.model}
        text = json.dumps(record, ensure_ascii=False, indent=1)
    write_answer(text, output.output)
    if isinstance(output, _AnswerOptions) and not model and answer.nodes:
        terminal.say("note: this is what the graph says of it; --model local answers in words")
    if answer.model and not answer.cited:
        terminal.say("unsure: the answer names no node that it rests on, and the graph may not say it")
    if answer.cited:
        terminal.say(f"cited: {', '.join(answer.cited)}")
    for id in answer.false:
        terminal.say(f"note: [{id}] is cited, and was not in what the model was given")
    if not answer.nodes:
        terminal.say("nothing in the graph speaks of it")
        raise typer.Exit(NOTHING_FOUND)
    return answer


# `kgot-lab query FOLDER concepts`: concepts that a model extracts from documents and docstrings.


@queries.command("concepts", rich_help_panel="Graph operations")
@options.with_options
def _concepts(
    context: typer.Context,
    *,
    cost: options.BudgetOptions,
    output: Path = option("the new file for the graph: a snapshot (.json), .graphml or .ttl", default=...),
    model: str = option(options.MODEL_FORMS, default="local"),
    models: Path | None = options.MODELS_FILE,
    only: str = option("only passages of files whose path begins so", default=""),
    most: int | None = option("only the first passages", "--max-passages", min=1),
    relations: bool = option("no keywords and dimensions: half the calls", "--relations-only", default=False),
) -> None:
    """Extract concepts, keywords and dimensions from documents and docstrings with a model.

    Each extracted item keeps the words that state it. The estimated cost is shown before a model is
    called. With --dry-run (before the name of this command) nothing else happens. Extracted items are stored, so the same
    command resumes where it was interrupted, without repeating a call.
    """
    from kgot_lab.cli.question_setup import model_rate
    from kgot_lab.kgos.extraction.concepts import estimate_reading, list_passages, read_concepts
    from kgot_lab.stores.files import write_graph

    queried: QueriedGraph = context.obj
    check_new_graph_file(output)
    folder = Path(queried.where).expanduser()
    graph = queried.graph
    listed = list_passages(graph, folder if folder.is_dir() else None)
    passages = [passage for passage in listed if passage.file.startswith(only)][:most]
    if not passages:
        raise BadInput(f"{queried.where} has no paragraph of a document and no description of code to read")
    budget = terminal.make_budget(cost.max_calls, cost.max_seconds, cost.max_dollars)
    llm = terminal.connect_model(model, budget, models=str(models) if models else None)
    takes = estimate_reading(passages, about=not relations, rate=model_rate(llm))
    estimate = f"{format_count(len(passages), 'passage')}, {takes}; what was read before is not asked again"
    if queried.dry:
        write_answer(estimate, None)
        return
    terminal.say(f"estimate: {estimate}")
    with terminal.progress_bar("passages") as progress:
        reading: dict[str, Any] = {"about": not relations, "cache": False if queried.fresh else None}
        extracted = read_concepts(graph, passages, llm, progress=progress, **reading)
    write_graph(extracted.graph, output)
    terminal.say(repr(extracted))
    terminal.say(f"{output}: {extracted.graph}")
