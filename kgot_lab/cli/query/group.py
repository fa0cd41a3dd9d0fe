"""The group `query`: one command for each question, with its arguments and the options that all share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgot_lab.cli import terminal
from kgot_lab.cli.query.shared import SHARED, Named, shape_of, tell_result, within_time
from kgot_lab.errors import BadInput
from kgot_lab.kgos.query.questions import QUESTIONS, GraphQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

queries = typer.Typer(
    help="Ask a graph: a file of any known form, a store's address, or a folder of code and notes, which is read first.",
    no_args_is_help=True,
    subcommand_metavar="QUESTION [ARGS]...",
)


@queries.callback()
def about(
    context: typer.Context,
    graph: Annotated[
        str,
        typer.Argument(
            help="a graph's file, a store's address, SQLite, or a folder of code, settings and Markdown"
        ),
    ],
    namespace: Annotated[str | None, typer.Option("--namespace", help="which graph of a server")] = None,
    beside: Annotated[
        list[str] | None, typer.Option("--with", help="ask another graph too: NAME=GRAPH; repeat for more")
    ] = None,
    fresh: Annotated[bool, typer.Option("--no-cache", help="read all files of a folder again")] = False,
    dask: Annotated[
        str | None,
        typer.Option("--dask", help="the address of a Dask scheduler, whose workers read the folder"),
    ] = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="say what would be asked of what, and ask nothing")
    ] = False,
) -> None:
    """Ask a graph. Ends with 0 found, 1 error, 2 wrong words, 3 nothing found, 4 rules are broken, 124 out of
    time, 130 interrupted.
    """
    if not graph.strip():
        raise BadInput('name a graph: a file, an address, or a folder ("." for the one you are in)')
    others: dict[str, str] = {}
    for each in beside or ():
        name, sign, where = each.partition("=")
        if not sign or not name or not where:
            raise BadInput(f"--with is NAME=GRAPH, not {each!r}")
        if name in others:
            raise BadInput(f"--with names {name} twice: each graph has a name of its own")
        others[name] = where
    if dask is not None and not any(Path(each).expanduser().is_dir() for each in (graph, *others.values())):
        raise BadInput("--dask shares out the reading of a folder, and no folder is named: leave --dask out")
    context.obj = Named(graph, namespace, others, fresh, dry, dask=dask)


def command_of(question: GraphQuestion) -> Callable[..., None]:
    """The command that asks a question: its parameters are those of the question, and the shared options."""

    def run(**given: Any) -> None:
        context: typer.Context = given.pop("context")
        named: Named = context.obj
        shape = shape_of(given)
        arguments = {each.name: given[each.name] for each in question.parameters}
        arguments = {
            name: value or None if isinstance(value, list) else value for name, value in arguments.items()
        }
        if named.dry:
            told = ", ".join(
                f"{name} = {value!r}" for name, value in arguments.items() if value not in (None, [], False)
            )
            terminal.say(
                f"would ask {question.name} of {named.where}{told and f' with {told}'}: {question.help}"
            )
            return
        named.quiet = shape.quiet
        with within_time(shape.timeout):
            # a search ranks several graphs together and tells a thing that two know once; to the others they
            # are one graph
            result = question.ask(named.whole if question.name == "search" else named.graph, **arguments)
        tell_result(result, shape)

    parameters = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    for each in question.parameters:
        required = each.default is inspect.Parameter.empty
        told = (
            typer.Argument(help=each.help)
            if required
            else typer.Option(f"--{each.name.replace('_', '-')}", help=each.help)
        )
        parameters.append(_parameter(each.name, Annotated[each.type, told], each.default))
    parameters += [_parameter(name, type, default) for name, (type, default) in SHARED.items()]
    return as_command(run, parameters, question.help)


def as_command(
    run: Callable[..., None], parameters: list[inspect.Parameter], help: str
) -> Callable[..., None]:
    """A function that typer reads as if these parameters were written in it."""
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = help
    return run


def shared_parameters() -> list[inspect.Parameter]:
    """The shared options as parameters."""
    return [_parameter(name, type, default) for name, (type, default) in SHARED.items()]


def _parameter(name: str, type: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type)


_PANELS: Mapping[str, str] = {
    "discovery": "What is there",
    "intent": "What one is after",
    "exploration": "Going along edges",
    "analysis": "What hangs on what",
    "ranking": "What is near",
    "dimensions": "Dimensions",
}
for _question in QUESTIONS.values():
    queries.command(_question.name, rich_help_panel=_PANELS[_question.group])(command_of(_question))
