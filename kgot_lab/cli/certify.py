"""`kgot-lab certify TRACE` and `kgot-lab memory FILE answers`: what an answer rests on, whether that holds,
and what may be told of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.cli.memory import memory_opened, parse_time
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless


def certify_run(
    trace: Annotated[Path, typer.Argument(help="the trace of a run that has its answer")],
    as_json: options.AsJson = False,
) -> None:
    """Certify the answer of a run: the facts it needs, the sentences that support them, weak points, and
    the verdict.
    """
    from kgot_lab.loop.certificate import certificate_of_run
    from kgot_lab.loop.events import Answered
    from kgot_lab.loop.replay.replay import started
    from kgot_lab.loop.trace import load_run
    from kgot_lab.memory.claims.certificate import certificate_parts

    run = load_run(trace)
    certificate = certificate_of_run(run)
    answer = next(event.text for event in reversed(run.events) if isinstance(event, Answered))
    told = certificate_parts(started(run.events).question, answer, certificate)
    if as_json:
        typer.echo(json.dumps(told))
        return
    for line in terminal.certificate_lines(told):
        typer.echo(harmless(line))


def list_answers(context: typer.Context, as_of: options.AsOf = None, as_json: options.AsJson = False) -> None:
    """List the answers that were noted, each with its certificate: whether the facts that it rests on hold
    still, and by which sources.
    """
    from kgot_lab.memory.claims.certificate import certificate_parts, certify

    with memory_opened(context) as claims, claims.storage.reading():
        at = None if as_of is None else parse_time(as_of)
        beliefs = claims.as_of(at, at) if at is not None else claims
        noted = [
            (each, facts) for each, facts in claims.recorded_answers().items() if at is None or each.at <= at
        ]
        rows = [
            certificate_parts(each.id, each.text, certify(beliefs, facts, at=at))
            | {"at": each.at.isoformat()}
            for each, facts in noted
        ]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        for line in terminal.certificate_lines(row):
            typer.echo(harmless(line))
    by = [
        f"{sum(row['ruling'] == ruling for row in rows)} {ruling}"
        for ruling in ("passes", "hedged", "withheld")
    ]
    terminal.say(f"{counted(len(rows), 'answer')}: {', '.join(by)}")
