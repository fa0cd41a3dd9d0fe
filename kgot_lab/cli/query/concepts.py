"""`kgot-lab query FOLDER concepts`: what a model reads in documents and docstrings, put into the graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.query.shared import Named, put_text, queries
from kgot_lab.errors import BadInput


@queries.command("concepts", rich_help_panel="Whole graphs")
@options.with_option_groups
def _concepts(
    context: typer.Context,
    cost: options.BudgetOptions,
    output: Annotated[
        Path,
        typer.Option("--output", help="the new file for the graph: a snapshot (.json), .graphml or .ttl"),
    ],
    model: Annotated[str, typer.Option("--model", help=options.MODELS)] = "local",
    models: options.ModelsFile = None,
    only: Annotated[str, typer.Option("--only", help="only passages of files whose path begins so")] = "",
    most: Annotated[int | None, typer.Option("--max-passages", min=1, help="only the first passages")] = None,
    relations: Annotated[
        bool, typer.Option("--relations-only", help="leave keywords and dimensions out: half the calls")
    ] = False,
) -> None:
    """Read concepts, keywords and dimensions in documents and docstrings with a model; nothing without the
    words that say it.

    What it takes is told before a model is asked; with --dry-run (before the name of this command) that is
    all. What was read is kept, so the same command goes on where it was interrupted, and asks nothing a
    second time.
    """
    from kgot_lab.cli.question_setup import rate_of
    from kgot_lab.kgos.extraction.concepts.graph_building import read_concepts, what_it_takes
    from kgot_lab.kgos.extraction.concepts.passages import passages_to_read
    from kgot_lab.stores.files import check_graph_file, write_graph

    named: Named = context.obj
    check_graph_file(output)
    if output.exists():
        raise BadInput(f"{output} is there already, and would be lost: name another file")
    folder = Path(named.where).expanduser()
    graph = named.graph
    passages = [
        each
        for each in passages_to_read(graph, folder if folder.is_dir() else None)
        if each.file.startswith(only)
    ][:most]
    if not passages:
        raise BadInput(
            f"nothing in {named.where} says enough to be read: no paragraph of a document, and no description of code"
        )
    budget = terminal.budget_of(cost.max_calls, cost.max_seconds, cost.max_dollars)
    llm = terminal.connect_model(model, budget, models=str(models) if models else None)
    takes = what_it_takes(passages, about=not relations, rate=rate_of(llm))
    told = f"{len(passages)} passages, {takes}; what was read before is not asked again"
    if named.dry:
        put_text(told, None)
        return
    terminal.say(f"estimate: {told}")
    with terminal.bar("passages") as shown_rows:
        grown = read_concepts(
            graph,
            passages,
            llm,
            about=not relations,
            cache=False if named.fresh else None,
            progress=shown_rows,
        )
    write_graph(grown.graph, output)
    terminal.say(repr(grown))
    terminal.say(f"{output}: {grown.graph}")
