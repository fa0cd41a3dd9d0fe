"""`kgot-lab bench questions`: the same questions with and without a graph, on the command line, over as many
sittings as it takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgot_lab.cli import options, terminal
from kgot_lab.errors import BadInput, LabError, require_amount, require_count, shortly
from kgot_lab.io.files import write_whole
from kgot_lab.text.counted import counted
from kgot_lab.text.harmless import harmless

if TYPE_CHECKING:
    from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, Due, Slice
    from kgot_lab.benchmark.comparison.plan import Design
    from kgot_lab.loop.events import Event
    from kgot_lab.types import LLM

_FOLDER = Path("runs/graph-pays")
_Folder = Annotated[
    Path | None,
    typer.Option("--folder", help=f"folder of plan, traces and results (default: {_FOLDER})"),
]
_Develop = Annotated[
    bool,
    typer.Option("--develop", help="ask the dev split instead, in a folder of its own"),
]
_Ablate = Annotated[
    bool,
    typer.Option(
        "--ablate", help="ablation: ask the modes with one part changed at a time, in a folder of their own"
    ),
]
_Reuse = Annotated[
    list[Path] | None,
    typer.Option(
        "--reuse",
        help="take replies to the very same prompts from the traces in this folder; repeat for more",
    ),
]
_Only = Annotated[list[str] | None, typer.Option("--only", help="ask only this system; repeat for more")]
_Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="ask only of this set: hotpotqa, 2wiki, musique-498 (with --develop musique); repeat for more",
    ),
]
_Limit = Annotated[
    int | None, typer.Option("--limit", help="ask only the first so many questions of each set")
]
_Minutes = Annotated[float | None, typer.Option("--minutes", help="begin no question after so many minutes")]
_Estimate = Annotated[
    bool, typer.Option("--estimate", help="say how long the rest will take; nothing is asked")
]
_Table = Annotated[bool, typer.Option("--table", help="show the results so far; nothing is asked")]


@dataclass(frozen=True)
class _ScopeOptions:
    """Which answers are made."""

    only: _Only = None
    sets: _Sets = None
    limit: _Limit = None
    develop: _Develop = False
    ablate: _Ablate = False
    minutes: _Minutes = None


@dataclass(frozen=True)
class _ModelOptions:
    """Which model answers, and folders whose replies are taken instead."""

    model: options.Model = None
    models: options.ModelsFile = None
    unsafe: options.Unsafe = False
    reuse: _Reuse = None

    def connect(self) -> LLM:
        """Connect the model, by default the local one."""
        return terminal.connect_model(self.model or "local", models=str(self.models) if self.models else None)


@options.with_option_groups
def bench_questions(
    scope: _ScopeOptions,
    use: _ModelOptions,
    folder: _Folder = None,
    estimate: _Estimate = False,
    table: _Table = False,
) -> None:
    """Does the graph pay? Answer fixed questions of three sets with and without a graph, by a plan that is
    written before the first.

    All systems answer the first question of each set, then all the second, so any stop leaves them
    comparable.
    """
    from kgot_lab.benchmark.comparison.comparison_run import Slice, count_replies, turns
    from kgot_lab.benchmark.comparison.plan import Design, check_comparison, develop_samples
    from kgot_lab.benchmark.comparison.systems import ABLATION_PAIRS, ABLATIONS

    suffix = "-ablations" * scope.ablate + "-develop" * scope.develop
    folder = folder or _FOLDER.with_name(_FOLDER.name + suffix)
    only, sets, reuse = scope.only or (), scope.sets or (), use.reuse or ()
    if scope.limit is not None:
        require_count(scope.limit, 1, "--limit", "so many questions of each set are asked")
    if scope.minutes is not None:
        require_amount(scope.minutes, "--minutes", some=True)
    if estimate and table:
        raise BadInput("--estimate says what is left and --table what is there: leave out one of them")
    if table:
        flags = {"--only": only, "--set": sets, "--limit": scope.limit, "--minutes": scope.minutes}
        _refuse_with_table({**flags, "--model": use.model, "--reuse": reuse})
        _show(folder)
        return
    design = Design(develop_samples(), develop=True) if scope.develop else Design()
    if scope.ablate:
        design = replace(design, systems=ABLATIONS, pairs=ABLATION_PAIRS, aims=())
    chosen = Slice(only, sets, scope.limit)
    # before a model is connected: what is named must be there
    asked = _Asked(chosen, scope.minutes, len(list(turns(design, chosen))))
    on_file = count_replies(reuse, design.samples)
    _report_missing_systems(design, only)
    if estimate:
        check_comparison(design.plan(use.connect() if use.model else None), folder)
        typer.echo(_forecast(design, folder, chosen))
        return
    terminal.check_writable(folder / "plan.json")
    if reuse:
        terminal.say(f"{counted(on_file, 'reply', 'replies')} on file in {', '.join(map(str, reuse))}")
    _answer(design, folder, asked, use)


def _refuse_with_table(given: dict[str, object]) -> None:
    if named := [flag for flag, value in given.items() if value]:
        raise BadInput(f"--table shows all that is on file: leave {named[0]} out")


def _report_missing_systems(design: Design, only: Sequence[str]) -> None:
    """Say which systems are left out because this version has no such preset."""
    for name, system in design.systems.items():
        if not system.exists_whole and not only:
            terminal.say(f"note: {name} is left out, since this version has no preset {system.preset!r}")


@dataclass(frozen=True)
class _Asked:
    """What a command asks for: which answers, for how long, and how many that are."""

    chosen: Slice
    minutes: float | None
    total: int


def _answer(design: Design, folder: Path, asked: _Asked, use: _ModelOptions) -> None:
    """Answer what is missing; whatever stops it, the way to go on is said."""
    from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, missing
    from kgot_lab.benchmark.questions.batch import alone_in

    kept = f"Everything so far is in {folder}; the same command goes on from there."
    with alone_in(folder):
        sitting = ComparisonRun(design, folder, use.connect(), use.unsafe, use.reuse or ())
        sitting.keep_plan()
        terminal.say(_forecast(design, folder, asked.chosen))
        try:
            failed = _answer_all(sitting, asked, len(missing(design, folder, asked.chosen)))
        except KeyboardInterrupt:
            terminal.say(f"\nStopped. {kept}")
            raise typer.Exit(terminal.INTERRUPTED) from None
        except OSError as error:
            raise LabError(f"{terminal.reason_of(error)}. {kept}") from error
        except LabError as error:
            raise LabError(f"{str(error).rstrip('.')}. {kept}") from error
        finally:
            if use.reuse:
                terminal.say(
                    f"{counted(sitting.reused, 'reply', 'replies')} taken from file instead of asking again"
                )
        still = len(missing(design, folder, asked.chosen)) - len(failed)
        if still < asked.total:
            _show(folder)
        if still:
            terminal.say(f"{still:,} of {asked.total:,} answers are still to be given. {kept}")
    if failed:
        terminal.say(terminal.ended_in_errors(len(failed), sum(map(sitting.is_damaged, failed)), "answer"))
        raise typer.Exit(1)


def _answer_all(sitting: ComparisonRun, asked: _Asked, left: int) -> list[Due]:
    """Answer with a progress bar, and say which ended in an error."""
    done = asked.total - left
    failed: list[Due] = []
    with terminal.bar("answers") as progress:

        def report(due: Due, event: Event) -> None:
            progress(
                done, asked.total, f"{due.set} {harmless(due.question.id)}, {due.system}, step {event.step}"
            )

        for due, receipt in sitting.answers(asked.chosen, asked.minutes, report):
            done += 1
            if receipt.error:
                failed.append(due)
            said = (
                receipt.error
                or f"{receipt.end}, {shortly(receipt.predicted)}; right is {shortly(receipt.gold)}"
            )
            terminal.say(f"{due.set} {due.question.id}, {due.system}: {said}")
    return failed


def _forecast(design: Design, folder: Path, chosen: Slice) -> str:
    from kgot_lab.benchmark.comparison.comparison_run import expected_rest, forecast_grid

    rows = expected_rest(design, folder, chosen)
    return forecast_grid(rows).text if rows else "nothing is left to answer"


def _show(folder: Path) -> None:
    """The results so far, also written to files."""
    from kgot_lab.benchmark.comparison.losses import keep_losses, losses, losses_grid
    from kgot_lab.benchmark.comparison.results import Findings, comparison_grids

    findings = Findings.of(folder)
    grids = comparison_grids(findings)
    if not findings.answers:
        raise BadInput(f"no question is answered yet in {folder}")
    if stages := losses(folder, findings):
        keep_losses(folder, stages)
        grids.append(losses_grid(findings, stages))
    write_whole(folder / "results.md", "\n\n".join(grid.markdown for grid in grids) + "\n", "the results")
    write_whole(folder / "results.json", json.dumps(findings.as_json(), indent=1) + "\n", "the results")
    typer.echo("\n\n".join(grid.text for grid in grids))
    also = f"; {folder}/lost.json from traces, which may go then" if stages else ""
    typer.echo(
        f"\nwritten: {folder}/results.md and results.json, from plan.json and a receipt for each answer{also}"
    )
