"""The command that walks a run again with one event changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli import asking, terminal
from kgot_lab.cli.going_on import GoOn
from kgot_lab.errors import BadInput
from kgot_lab.text.harmless import harmless


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
    models: Annotated[Path | None, typer.Option("--models", help="a YAML file of models, to be named by --model")] = None,
    attach: Annotated[list[Path] | None, typer.Option("--attach", help="a file that belongs to the question; repeat for more")] = None,
    max_calls: Annotated[int | None, typer.Option("--max-calls", help="stop before more calls of a model")] = None,
    max_seconds: Annotated[float | None, typer.Option("--max-seconds", help="stop before a model would have worked longer")] = None,
    max_dollars: Annotated[float | None, typer.Option("--max-dollars", help="stop before this costs more")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="where the fork is written (default: beside the run)")] = None,
) -> None:
    """Walk a run again with one event changed: what would have happened? Only what follows from the change is asked."""
    from kgot_lab.cli.configuration import configuration_of
    from kgot_lab.loop.again.forks import change_of, changeable, save_fork
    from kgot_lab.loop.again.replay import BY_CTRL_C, Resources, fork, limits_of
    from kgot_lab.loop.telling import caption

    run, begun = terminal.run_of(trace)
    if listed:
        for number, each in enumerate(run.events):
            if changeable(each):
                told = f"{caption(each)}: {' '.join(change_of(run.events, number).split())[:80]}"
                typer.echo(f"{number:5}  {changeable(each):9}  {harmless(told)}")
        return
    if (change is None) == (change_file is None):
        raise BadInput("say what the event is changed to: --change TEXT or --change-file FILE; --list shows what can be changed")
    if change_file is not None:
        try:
            change = change_file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{change_file} cannot be read: {error}") from error
    if not 0 <= event < len(run.events) or not changeable(run.events[event]):
        raise BadInput(f"event {event} cannot be changed: kgot-lab fork {trace} --list shows which can")
    if change == change_of(run.events, event):
        raise BadInput(f"event {event} says just that already: nothing would be changed")
    path = out or trace.with_name(f"{trace.stem}_fork_{event}.jsonl")
    terminal.check_apart(trace=trace, out=path)
    terminal.check_new(path)
    budget = {"budget.calls": max_calls, "budget.seconds": max_seconds, "budget.dollars": max_dollars}
    terminal.budget_of(max_calls, max_seconds, max_dollars)
    given = {"models": str(models) if models else None, "documents": str(documents) if documents else None, **budget}
    configuration = configuration_of(run.about).with_flags(given)
    live = Resources()
    if model is not None:
        spending = asking.spending_of(configuration)
        llm = terminal.connect_model(model, spending, models=configuration.models)
        passages = terminal.documents_of(run, documents)
        at_hand = asking.at_hand(configuration, passages, attach or [], llm, limits_of(begun), spending)
        asking.check_prices(configuration, llm, at_hand.vision)
        live = Resources(asking.tools_again(at_hand, configuration, begun), llm)
        asking.told_beforehand(llm, limits_of(begun))
    made = fork(run, event, str(change), live=live)
    save_fork(made, path, run, about={"written": "the change was written on the command line"})
    for each in made.events[made.first_difference :]:
        terminal.show_event(each)
    typer.echo(harmless(repr(made)))
    if made.answer or model is None:
        terminal.say(f"the fork is in {path}" + ("" if made.answer else "; give --model to go on where it stopped"))
        return
    again = {
        "documents": documents, "model": model, "models": models, "attach": attach or None,
        "max_calls": max_calls, "max_seconds": max_seconds, "max_dollars": max_dollars,
    }  # fmt: skip
    terminal.say(f"{made.stopped}. The fork is in {path} as far as it came. Go on with: {GoOn('resume', path, again)}")
    raise typer.Exit(terminal.INTERRUPTED if made.stopped == BY_CTRL_C else 1)
