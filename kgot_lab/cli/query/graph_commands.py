"""Commands of `query` on many questions or whole graphs: check, compare, merge, write, estimate."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.options import argument, option
from kgot_lab.cli.query.shared import (
    ANSWER_FILE,
    RULES_BROKEN,
    FormatOptions,
    QueriedGraph,
    check_new_graph_file,
    print_result,
    queries,
    result_to_json,
    time_limit,
    to_jsonable,
    write_answer,
)
from kgot_lab.errors import BadInput, require_count
from kgot_lab.io.files import os_errors_as, read_regular_text
from kgot_lab.text.cleaning import format_count

_BATCH_PANEL = "Many questions"
_GRAPH_PANEL = "Graph operations"
_OUTPUT_OPTION = option("the file to write: a snapshot (.json), .graphml or .ttl", "--output", default=...)


class VocabularyName(StrEnum):
    """The vocabulary that a graph is checked against."""

    UNIFIED = "unified"
    CODE = "code"
    CURATED = "curated"


@queries.command("batch", rich_help_panel=_BATCH_PANEL)
def _batch(
    context: typer.Context,
    file: str = argument('a file with a question a line, as behind GRAPH or as JSON; "-" for standard input'),
    parallel: int = option("how many processes answer", default=1, min=1),
    output: Path | None = ANSWER_FILE,
    timeout: float | None = option("stop after so many seconds", "--timeout", min=0.001),
) -> None:
    """Answer many questions, with one JSON object each, in order. A failed one does not stop the others."""
    from kgot_lab.kgos.query.question_arguments import answer_lines

    queried: QueriedGraph = context.obj
    lines = (terminal.standard_input().read() if file == "-" else _read_questions(Path(file))).splitlines()
    count = len([line for line in lines if line.strip()])
    queried.stop_if_dry(f"ask {format_count(count, 'question')} of {queried.where}")
    lines_out, failed = [], 0
    with time_limit(timeout), queried.search_embedder() as by:
        workers = min(parallel, os.cpu_count() or 1)
        for answer in answer_lines(queried.graph, lines, parallel=workers, by=by):
            failed += answer.result is None
            if answer.result is None:
                row = {"asked": answer.line, "error": answer.error}
                terminal.say(f"error: {answer.line}: {answer.error}")
            else:
                found = answer.result
                row = {"asked": answer.line, **result_to_json(found, found.COLUMNS, found.rows())}
            lines_out.append(json.dumps(row, ensure_ascii=False, default=to_jsonable))
            if output is None:
                write_answer(lines_out[-1], None)
    if output is not None:
        write_answer("\n".join(lines_out), output)
    if failed:
        raise typer.Exit(1)


@queries.command("pipeline", rich_help_panel=_BATCH_PANEL)
@options.with_options
def _pipeline(
    context: typer.Context,
    *,
    questions: str = argument('questions, parted by |; {1} is the first node: want-to "speed" | impact {1}'),
    shape: FormatOptions,
) -> None:
    """Ask questions in sequence, each about the result of the one before, and show the last answer."""
    from kgot_lab.kgos.query.question_arguments import run_pipeline

    queried: QueriedGraph = context.obj
    queried.stop_if_dry(f"ask {questions} of {queried.where}")
    result, queried.quiet = None, shape.quiet
    with time_limit(shape.timeout), queried.search_embedder() as by:
        for step, result in run_pipeline(queried.graph, questions, by=by):
            queried.say(f"{step} → {result.title}")
    if result is not None:
        print_result(result, shape)


@queries.command("validate", rich_help_panel=_GRAPH_PANEL)
@options.with_options
def _validate(
    context: typer.Context,
    *,
    vocabulary: VocabularyName = option("what types it is held to", default=VocabularyName.UNIFIED),
    shape: FormatOptions,
) -> None:
    """Check the graph against the twelve rules, and show 50 violations unless --max-results says how many.

    Exits with 4 if a rule of severity error is broken.
    """
    from kgot_lab.kgos.methods.formatting import TableFound
    from kgot_lab.kgos.schemas.rules import check_rules
    from kgot_lab.kgos.schemas.vocabularies import CODE, CURATED, UNIFIED

    queried: QueriedGraph = context.obj
    queried.stop_if_dry(f"check {queried.where} against the twelve rules")
    most, queried.quiet = shape.max_results or 50, shape.quiet
    with time_limit(shape.timeout):
        rules = {"unified": UNIFIED, "code": CODE, "curated": CURATED}[vocabulary]
        report = check_rules(queried.graph, rules)
        rows = [
            (each.rule.number, fault.level, fault.where, fault.what, fault.do)
            for each in report.broken
            for fault in each.faults[:most]
        ]
    counts = tuple(f"rule {e.rule.number}, {e.rule.says}: broken {len(e):,} times" for e in report.broken)
    columns = ("rule", "severity", "where", "what", "do")
    result = TableFound(str(report), columns, tuple(rows[:most]), counts, queried.graph.ids[:1] or ("",))
    print_result(result, replace(shape, explain=bool(rows)), verdict=True)
    if not report.sound:
        raise typer.Exit(RULES_BROKEN)


@queries.command("whats-new", rich_help_panel=_GRAPH_PANEL)
@options.with_options
def _whats_new(
    context: typer.Context,
    *,
    since: str = option("the earlier graph, named as the graph is", default=...),
    shape: FormatOptions,
) -> None:
    """List what was added, removed and changed since an earlier graph."""
    _print_comparison(context.obj, since, shape)


@queries.command("compare", rich_help_panel=_GRAPH_PANEL)
@options.with_options
def _compare(
    context: typer.Context,
    *,
    other: str = argument("another graph, named as the graph is"),
    shape: FormatOptions,
) -> None:
    """List the differences between the graph and another one, in both directions."""
    _print_comparison(context.obj, other, shape)


@queries.command("import-graph", rich_help_panel=_GRAPH_PANEL)
def _import_graph(
    context: typer.Context,
    other: str = argument("a graph to take in, named as the graph is"),
    output: Path = _OUTPUT_OPTION,
) -> None:
    """Merge another graph into this one and write the result.

    What both contain appears once. Where they differ, this graph takes precedence.
    """
    from kgot_lab.graph import PropertyGraph
    from kgot_lab.stores.files import write_graph

    queried: QueriedGraph = context.obj
    check_new_graph_file(output, of_any=False)
    queried.stop_if_dry(f"write {queried.where} and {other} as one graph to {output}")
    first, second = queried.graph, QueriedGraph(other, queried.namespace).graph
    differing = [node.id for node in second.nodes if node.id in first and first.node(node.id) != node]
    identities = {edge.identity for edge in first.edges}
    nodes = [*first.nodes, *(node for node in second.nodes if node.id not in first)]
    edges = [*first.edges, *(edge for edge in second.edges if edge.identity not in identities)]
    merged = PropertyGraph.of(nodes, edges)
    write_graph(merged, output)
    terminal.say(f"{output}: {merged}")
    if differing:
        ids = ", ".join(differing[:10])
        terminal.say(
            f"note: {format_count(len(differing), 'differing node')} taken from {queried.where}: {ids}"
        )


@queries.command("export-graph", rich_help_panel=_GRAPH_PANEL)
def _export_graph(context: typer.Context, output: Path = _OUTPUT_OPTION) -> None:
    """Write the graph to a file of another format."""
    from kgot_lab.stores.files import write_graph

    queried: QueriedGraph = context.obj
    check_new_graph_file(output, of_any=False)
    queried.stop_if_dry(f"write {queried.where} to {output}")
    write_graph(queried.graph, output)
    terminal.say(f"{output}: {queried.graph}")


@queries.command("estimate-cost", rich_help_panel=_GRAPH_PANEL)
def _estimate_cost(
    context: typer.Context,
    question: str = argument("a question as `ask` would put it"),
    model: str = option(f"the model that would be asked; {options.MODEL_FORMS}", default="local"),
    times: int = option("how often", default=1, min=1),
) -> None:
    """Estimate the calls, tokens, seconds and dollars of `ask`, without calling a model."""
    from kgot_lab.cli.question_setup import model_rate
    from kgot_lab.kgos.query.answering import answer_prompt, answer_question, count_prompt_tokens
    from kgot_lab.llm.budget import estimate

    require_count(times, 1, "times")
    queried: QueriedGraph = context.obj
    answer = answer_question(queried.graph, question)
    sizes = count_prompt_tokens(answer_prompt(question, answer.context))
    llm = terminal.connect_model(model)
    write_answer(str(estimate({"ask": times}, {"ask": sizes}, model_rate(llm))), None)


def _print_comparison(queried: QueriedGraph, other: str, shape: FormatOptions) -> None:
    from kgot_lab.kgos.methods.selection import list_changes

    queried.stop_if_dry(f"compare {queried.where} with {other}")
    queried.quiet = shape.quiet
    with time_limit(shape.timeout):
        compared = QueriedGraph(other, queried.namespace, fresh=queried.fresh, all_files=queried.all_files)
        result = list_changes(queried.graph, compared.graph)
    print_result(result, shape)


def _read_questions(path: Path) -> str:
    if not path.is_file():
        raise BadInput(f"there is no file {path}: name one with a question in each line")
    with os_errors_as(f"{path} cannot be read as questions"):
        return read_regular_text(path)
