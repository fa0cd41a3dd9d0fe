"""Your own systems measured beside ours, on one data set, by a plan that is written down before anything
runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kgot_lab.benchmark.recall.datasets import opened_data
from kgot_lab.benchmark.recall.filling import Contender, Filled, earlier, file_name, fill, fill_by_workers
from kgot_lab.benchmark.recall.systems import BASELINE
from kgot_lab.benchmark.recall.systems import systems as ours
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.minilm import MiniLM
from kgot_lab.errors import BadInput, UnknownName, described_value, require
from kgot_lab.evaluation.dataset import Dataset, checked_qrels, query_parts
from kgot_lab.evaluation.plan import Plan
from kgot_lab.evaluation.reports import PLAN, Report, report
from kgot_lab.evaluation.results import EMBEDDER_HASH
from kgot_lab.evaluation.runs import Run, unique
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import checked_documents

BenchmarkProgress = Callable[[int, int, str], object]  # done, total, what is next
_LONGEST = 200  # characters in the name of a receipt


def bench(
    data: Dataset | str | Path,
    *,
    systems: Mapping[str, Contender] | None = None,
    plan: Plan | None = None,
    folder: Path | str | None = None,
    progress: BenchmarkProgress = lambda done, total, what: None,
    client: Any = None,
    embedder: Embedder | str | None = None,
) -> Report:
    """Measure systems on a data set and compare each with the plan's baseline: bench(data, systems={"mine":
    stage, **systems(data)}).

    `data`: a Dataset, a name that load_dataset knows, or a folder as BEIR has them. `systems` maps a name to
    a Stage, or to what builds one when its turn comes; by default they are all of ours, on an `embedder` or
    the name of one, as systems() takes it. Without a plan the baseline is "convex", or else the first system,
    and the report says that nobody gave one. In a `folder` the plan and a receipt for each system are kept:
    the same call goes on from there and reports every system it holds. What has a receipt is not run again,
    unless its version, its embedder or its pipeline has changed, or it declares no version (Stage(name, step,
    version), or an attribute `version` of what builds it); `again` of the report says why. Then the new
    receipt replaces the old one. A system that raised begins anew; one with a version that was stopped goes
    on, and the report says how many rankings are from before. Two processes at one receipt wait for each
    other. Without a folder nothing is kept. A system that learns from the documents is left out,
    which the report says, where they are too few. `progress(done, total, what)` counts systems. With a Dask
    `client` (kgot_lab.io.dask_workers.workers_at) its workers run them, each of yours pickled. Raises
    BadInput for data without two judged queries, for systems that cannot be measured or rank wrongly, and for
    a folder that holds another plan or other data; UnknownName for the baseline or the embedder;
    NotInstalled; LabError for an error of a system's own code, which is its cause.
    """
    if plan is not None:
        require(plan, Plan, "a plan is Plan(baseline), with what else is to be settled before")
    if folder is not None:
        require(folder, (str, Path), "the folder for receipts is named by its path")
    dataset = checked_data(data)
    if systems is not None and embedder is not None:
        raise BadInput(
            "an embedder is for our systems, and systems were given: build them with it, systems={**systems(data, embedder)}"
        )
    named = checked_systems(ours(dataset, embedder) if systems is None else systems)
    if folder is None:
        with TemporaryDirectory(prefix="kgot_lab-bench-") as made:
            return _reported(Path(made), dataset, named, plan, progress, client)
    return _reported(Path(folder), dataset, named, plan, progress, client)


def _reported(
    folder: Path,
    dataset: Dataset,
    systems: Mapping[str, Contender],
    plan: Plan | None,
    progress: BenchmarkProgress,
    client: Any,
) -> Report:
    known = dict.fromkeys([*systems, *(run.system for run in earlier(folder, dataset))])
    plan = plan or plan_of(folder, Plan(BASELINE if BASELINE in known else next(iter(systems)), assumed=True))
    begin(folder, plan, {dataset.name: known})
    left = list(systems)

    def tell(name: str, also: str = "") -> None:
        progress(left.index(name), len(left), f"{name} on {dataset.name}{also}")

    if client is None:
        told = fill(folder, dataset, systems, plan, tell, also=tell)
    else:
        told = fill_by_workers(client, folder, [(dataset, systems)], plan, progress)[dataset.name]
    progress(len(left), len(left), "the report")
    return report_on(folder, dataset, plan, told)


def report_on(folder: Path, dataset: Dataset, plan: Plan, told: Filled) -> Report:
    """The report on what a folder holds of a data set, with what there is to tell of its systems."""
    made = report(earlier(folder, dataset), dataset, plan)
    return replace(made, left_out=told.left_out, again=told.again, notes=learnt_elsewhere(made.runs))


def learnt_elsewhere(runs: Iterable[Run]) -> tuple[str, ...]:
    """A line on the systems whose weights were learnt with the bundled embedder, where they used another one
    here.
    """
    given = [
        (run.system, run.about.get(EMBEDDER_HASH, MiniLM.name)) for run in runs if "trail(" in run.description
    ]
    others = [
        system
        for system, embedder in given
        if not embedder.startswith(f"{MiniLM.name} ") and embedder != MiniLM.name
    ]
    said = f"The weights of {' and '.join(others)} were learnt with {MiniLM.name}, the bundled embedder, and not with the one used here."
    return (said,) if others else ()


# --- before anything runs
# ---------------------------------------------------------------------------------------------


def checked_data(given: object) -> Dataset:
    """A data set that can be measured on: two queries or more in each part, each with a relevant document,
    and documents with own ids.
    """
    data = opened_data(given)
    require(data.locked, Set, f"the locked queries of {data.name} are a set of ids")
    if not (isinstance(data.name, str) and file_name(data.name)):
        raise BadInput(
            f"a data set is named by a text with a letter or digit, not by {described_value(data.name)}"
        )
    checked_documents(data.documents)
    queries = unique(data.queries) if data.queries else ()
    if len(queries) < 2:
        raise BadInput(
            f"{data.name} needs two queries or more to tell a difference from chance, and has {len(queries)}"
        )
    if alone := [part for part, ids in query_parts(data).items() if len(ids) < 2]:
        others = "lock two or more, or none"
        raise BadInput(
            f"{data.name} has one {alone[0]} query, and the mean of one cannot be told from chance; {others}"
        )
    # qrels of other queries are of no use here
    return replace(data, queries=queries, qrels=checked_qrels(data))


def checked_systems(systems: object) -> dict[str, Contender]:
    """The systems by name, once it is sure that each can be built and has a receipt of its own; raises
    BadInput.
    """
    if not isinstance(systems, Mapping):
        raise BadInput(
            f"systems is a dictionary from a name to a Stage or to what builds one, not a {type(systems).__name__}"
        )
    if not systems:
        raise BadInput('there are no systems to measure; give one or more, as systems={"mine": stage}')
    files: dict[str, str] = {}
    for name, system in systems.items():
        file = file_name(name) if isinstance(name, str) else ""
        if not 0 < len(file.encode()) <= _LONGEST:
            raise BadInput(
                f"a system is named by a text with a letter or digit, at most {_LONGEST} long, not by {str(name)[:40]!r}"
            )
        if (same := files.setdefault(file.casefold(), name)) != name:
            raise BadInput(
                f"the systems {same!r} and {name!r} have one name as a file ({file}); rename one of them"
            )
        if not (isinstance(system, Stage) or _builds(system)):
            what = f"{name!r} is a {type(system).__name__}, neither a Stage nor something to call without arguments that builds one"
            raise BadInput(f"{what}; a function of a ranking becomes one by Stage({name!r}, function)")
    return dict(systems)


def _builds(system: object) -> bool:
    if not callable(system):
        return False
    try:
        inspect.signature(system).bind()
    except TypeError:  # it needs arguments
        return False
    except ValueError:  # it does not say what it needs
        return True
    return True


def plan_of(folder: Path, usual: Plan) -> Plan:
    """The plan that a folder holds, or else the usual one."""
    return Plan.load(folder / PLAN) if (folder / PLAN).exists() else usual


def begin(folder: Path, plan: Plan, systems: Mapping[str, Mapping[str, object]]) -> None:
    """Write the plan down in a folder; `systems` are those of each data set.

    Raises UnknownName for a baseline, or a system expected best, that is not among them; BadInput where the
    folder holds another plan.
    """
    for known in systems.values():
        if plan.baseline not in known:
            raise UnknownName("baseline", plan.baseline, known)
        if plan.expected and plan.expected not in known:
            raise UnknownName("system expected best", plan.expected, known)
    plan.write_down(folder / PLAN)
