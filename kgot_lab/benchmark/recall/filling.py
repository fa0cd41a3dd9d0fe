"""A folder of receipts: where each stands, and running what is missing or was changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kgot_lab.benchmark.recall.systems import ByPlan
from kgot_lab.errors import BadInput, InsufficientData
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import depth
from kgot_lab.evaluation.results import KEEP, Plan, fingerprints, load_receipt
from kgot_lab.evaluation.runner import rerun_reason, run_to
from kgot_lab.evaluation.runs import Run
from kgot_lab.retrieval.stage import Stage

Contender = Stage | Callable[[], Stage]
WAITED_FOR = " (another process is at work on it and is waited for)"


@dataclass(frozen=True)
class Filled:
    """What is to be told of the systems on a data set, each with why: those left out, as the data are too
    little, and those run again.
    """

    left_out: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)


def fill(
    folder: Path,
    dataset: Dataset,
    systems: Mapping[str, Contender],
    plan: Plan,
    tell: Callable[[str], object] = lambda name: None,
    *,
    also: Callable[[str, str], object] = lambda name, more: None,
    keep: int = KEEP,
) -> Filled:
    """Run each system on a data set into its receipt, by run_to, and tell its name before; what has a receipt
    of it is not run.

    `also` is told the name of one with what more there is to say of it: that another process is at it, or why
    it is run again.

    Systems are left out where the data are too little to build them from; for the plan's baseline that is
    raised instead. Hits are kept as deep as the deepest measure of the plan looks, and `keep` at least.
    """
    keep, told = result_depth(plan, keep), Filled()
    for name, system in systems.items():
        tell(name)
        path, planned = receipt(folder, dataset, name), by_plan(system, plan)
        if why := rerun_reason(path, planned, dataset):
            told.again[name] = why
            also(name, rerun_note(why))
        try:
            run_to(
                path,
                planned,
                dataset,
                name=name,
                keep=keep,
                ties=plan.ties,
                waits=partial(also, name, WAITED_FOR),
            )
        except InsufficientData as error:
            if name == plan.baseline:
                raise
            told.left_out[name] = str(error)
            told.again.pop(name, None)
    return told


def rerun_note(why: str) -> str:
    """Behind the name of a system that is run again: why."""
    return f" (again, since {why})"


def result_depth(plan: Plan, keep: int = KEEP) -> int:
    """How many hits of a query are kept: as many as the deepest measure of a plan looks at, and so many at
    least.
    """
    return max(keep, *map(depth, plan.measures))


def by_plan(system: Contender, plan: Plan) -> Contender:
    """A system as it is built by a plan."""
    return system.by(plan) if isinstance(system, ByPlan) else system


def receipt(folder: Path, dataset: Dataset, system: str) -> Path:
    """Where the receipt of a system on a data set stands in a folder."""
    return folder / file_name(dataset.name) / f"{file_name(system)}.jsonl.gz"


def file_name(name: str) -> str:
    """A name as that of a file or a folder."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


def earlier(folder: Path, dataset: Dataset) -> list[Run]:
    """What the receipts of a data set hold; raises BadInput for one that is broken or was made on other
    queries, documents or qrels.
    """
    now, asked, runs = fingerprints(dataset), {query.id for query in dataset.queries}, []
    for path in sorted((folder / file_name(dataset.name)).glob("*.jsonl.gz")):
        made = load_receipt(path)
        other = [what for what, digest in now.items() if made.about.get(what) != digest]
        if other or set(made.hits) != asked:
            was = f"{path} was made on other {', '.join(other) or 'questions'} than {dataset.name} has now"
            raise BadInput(
                f"{was}; name another folder, or delete the receipts there, whose figures are of the data before"
            )
        runs.append(made)
    return runs
