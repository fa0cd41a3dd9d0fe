"""The command that walks a run again with one event changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli import terminal
from kgot_lab.errors import BadInput


def fork_run(
    trace: Annotated[Path, typer.Argument(help="a run on file")],
    event: Annotated[int, typer.Argument(help="the number of the event to change, as --list shows it")] = -1,
    change: Annotated[str | None, typer.Option("--change", help="the new reply, text of a tool, or statement")] = None,
    change_file: Annotated[Path | None, typer.Option("--change-file", help="a file with that text")] = None,
    listed: Annotated[bool, typer.Option("--list", help="list the events that can be changed, and stop")] = False,
    documents: Annotated[Path | None, typer.Option("--documents", help="the folder that the run searched")] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="a model for what the recording does not hold; without one it stops there")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="where the fork is written (default: beside the run)")] = None,
) -> None:
    """Walk a run again with one event changed: what would have happened? Only what follows from the change is asked."""
    from kgot_lab.loop.again.forks import change_of, changeable, save_fork
    from kgot_lab.loop.again.replay import Resources, fork
    from kgot_lab.loop.telling import caption

    run, begun = terminal.run_of(trace)
    if listed:
        for number, each in enumerate(run.events):
            if changeable(each):
                typer.echo(f"{number:5}  {changeable(each):9}  {caption(each)}: {' '.join(change_of(run.events, number).split())[:80]}")
        return
    if (change is None) == (change_file is None):
        raise BadInput("say what the event is changed to: --change TEXT or --change-file FILE; --list shows what can be changed")
    if change_file is not None:
        try:
            change = change_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{change_file} cannot be read: {error}") from error
    path = out or trace.with_name(f"{trace.stem}_fork_{event}.jsonl")
    terminal.check_apart(trace=trace, out=path)
    terminal.check_new(path)
    llm = terminal.connect_model(model, trace=None) if model else None
    tools = terminal.tools_with_notes(terminal.documents_of(run, documents), []) if documents or not begun.attachments else []
    made = fork(run, event, str(change), live=Resources(tools, llm))
    save_fork(made, path, run, about={"written": "the change was written on the command line"})
    for each in made.events[made.first_difference :]:
        terminal.show_event(each)
    typer.echo(repr(made))
    terminal.say(f"the fork is in {path}" + ("" if made.answer else "; give --model to go on where it stopped"))
