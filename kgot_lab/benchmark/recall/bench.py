"""Evaluate retrieval systems, your own and the bundled ones, by a plan written before anything runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kgot_lab.arguments import check_arguments, require_path
from kgot_lab.benchmark.recall.datasets import load_dataset, open_dataset
from kgot_lab.benchmark.recall.filling import (
    FillOutcome,
    SystemOrBuilder,
    file_name,
    load_stored_runs,
    run_missing,
    run_missing_on_workers,
)
from kgot_lab.benchmark.recall.systems import BASELINE, DEFAULT_PLAN, systems
from kgot_lab.benchmark.recall.systems import systems as ours
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.embedding.vectors import minilm
from kgot_lab.errors import BadInput, LabError, describe_value, require_known
from kgot_lab.evaluation.dataset import Dataset, checked_qrels, query_splits, with_queries
from kgot_lab.evaluation.reports import PLAN, Report, derive_reports, report
from kgot_lab.evaluation.results import EMBEDDER_HASH, Plan, load_results
from kgot_lab.evaluation.runs import Run, checked_queries
from kgot_lab.evaluation.significance import compare
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.io.dask_workers import DaskClient
from kgot_lab.retrieval.stage import Stage
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import checked_documents

BenchmarkProgress = Callable[[int, int, str], object]  # done, total, what is next
_LONGEST_FILE_NAME = 200  # maximum length of a results file name, in bytes


@check_arguments
def bench(
    data: Dataset | str | Path,
    *,
    systems: Mapping[str, SystemOrBuilder] | None = None,
    plan: Plan | None = None,
    folder: Path | str | None = None,
    progress: BenchmarkProgress = lambda done, total, what: None,
    client: DaskClient | None = None,
    embedder: Embedder | str | None = None,
) -> Report:
    """Evaluate systems on a data set and compare each with the plan's baseline.

    For example, bench(data, systems={"mine": stage, **systems(data)}).

    `data` is a Dataset, a name for load_dataset, or a folder in BEIR format. `systems` maps a name to a
    Stage, or to a function that builds one when it is needed. By default all bundled systems are run, with an
    `embedder` or its name, as in systems(). Without a plan, the baseline is "convex", or else the first
    system, and the report says that no plan was given. In a `folder`, the plan and the per-query results of
    each system are stored, and the same call resumes and reports every system in the folder. A system with
    results is not run again, unless its version, embedder or pipeline changed, or it declares no version
    (Stage(name, step, version), or an attribute `version` of its builder). `again` in the report gives the
    reason, and the new results replace the old ones. A system that raised starts over. An interrupted one
    with a version resumes, and the report says how many rankings are from before. Two processes that write
    the same results wait for each other. Without a folder nothing is stored. A system that learns from the
    documents is left out, with a note in the report, if there are too few. `progress(done, total, what)`
    counts systems. With a Dask `client` (kgot_lab.io.dask_workers.dask_client) the systems run on its workers,
    and your own are pickled. Raises BadInput for data without two judged queries, for systems that cannot be
    evaluated or rank wrongly, and for a folder with another plan or other data, UnknownName for the baseline
    or the embedder, NotInstalled, and LabError, with its cause, for an error in a system's own code.
    """
    dataset = checked_data(data)
    require_path(dataset.name, "data")  # a file is named after it
    if systems is not None and embedder is not None:
        remedy = "build them with it, systems={**systems(data, embedder)}"
        raise BadInput(f"an embedder is for our systems, and systems were given: {remedy}")
    named = checked_systems(ours(dataset, embedder) if systems is None else systems)
    if folder is None:
        with TemporaryDirectory(prefix="kgot_lab-bench-") as made:
            return _bench_folder(Path(made), dataset, named, plan, progress, client)
    return _bench_folder(Path(folder), dataset, named, plan, progress, client)


def _bench_folder(
    folder: Path,
    dataset: Dataset,
    systems: Mapping[str, SystemOrBuilder],
    plan: Plan | None,
    progress: BenchmarkProgress,
    client: DaskClient | None,
) -> Report:
    known = dict.fromkeys([*systems, *(run.system for run in load_stored_runs(folder, dataset))])
    baseline = BASELINE if BASELINE in known else next(iter(systems))
    plan = plan or load_plan(folder, Plan(baseline, assumed=True))
    write_plan(folder, plan, {dataset.name: known})
    outcomes = _run_systems(
        folder, {dataset.name: [*systems]}, lambda _: (dataset, systems), plan, progress, client
    )
    return build_report(folder, dataset, plan, outcomes[dataset.name])


def _run_systems(
    folder: Path,
    wanted: Mapping[str, Sequence[str]],
    open_systems: Callable[[str], tuple[Dataset, Mapping[str, SystemOrBuilder]]],
    plan: Plan,
    progress: BenchmarkProgress,
    client: DaskClient | None,
) -> dict[str, FillOutcome]:
    """Run what is missing of the systems that are wanted on each data set, here or on the workers of a client.

    `open_systems` returns a data set and these systems of it, just before they are run.
    """
    steps = [(data, system) for data, some in wanted.items() for system in some]

    def tell(data: str, system: str, note: str = "") -> None:
        progress(steps.index((data, system)), len(steps), f"{system} on {data}{note}")

    if client is not None:
        outcomes = run_missing_on_workers(client, folder, list(map(open_systems, wanted)), plan, progress)
    else:
        outcomes = {
            data: run_missing(folder, *open_systems(data), plan, partial(tell, data)) for data in wanted
        }
    progress(len(steps), len(steps), "the report")
    return outcomes


def build_report(folder: Path, dataset: Dataset, plan: Plan, outcome: FillOutcome) -> Report:
    """Build the report on the results of a data set in a folder, with notes on its systems."""
    made = report(load_stored_runs(folder, dataset), dataset, plan)
    return replace(made, left_out=outcome.left_out, again=outcome.again, notes=embedder_notes(made.runs))


def embedder_notes(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return a note on systems that use weights learnt with the bundled embedder on another one."""
    learned = [run for run in runs if "trail(" in run.description]
    embedders = {run.system: run.about.get(EMBEDDER_HASH, MiniLM.name) for run in learned}
    others = [name for name, used in embedders.items() if not f"{used} ".startswith(f"{MiniLM.name} ")]
    said = f"The weights of {' and '.join(others)} were learnt with {MiniLM.name}, the bundled embedder, and not with the one used here."
    return (said,) if others else ()


# --- before anything runs ---


def checked_data(given: Dataset | str | Path) -> Dataset:
    """Return a data set after checking that it can be evaluated.

    Each part needs two or more queries, each query a relevant document, and documents need unique ids. Raises
    BadInput otherwise.
    """
    data = open_dataset(given)
    if not file_name(data.name):
        expected = "a data set is named by a text with a letter or digit"
        raise BadInput(f"{expected}, not by {describe_value(data.name)}")
    checked_documents(data.documents)
    queries = checked_queries(data.queries) if data.queries else ()
    if len(queries) < 2:
        need = f"{data.name} needs two queries or more to tell a difference from chance"
        raise BadInput(f"{need}, and has {len(queries)}")
    if alone := [part for part, ids in query_splits(data).items() if len(ids) < 2]:
        problem = f"{data.name} has one {alone[0]} query, and the mean of one cannot be told from chance"
        raise BadInput(f"{problem}; hold out two or more, or none")
    known = {query.id for query in queries}
    for what in ("qrels", "types", "groups", "excluded", *(() if data.is_part else ("test_ids",))):
        if unknown := sorted(set(getattr(data, what)) - known):
            problem = f"{what} of {data.name} names {unknown[0]!r}, which is none of its queries"
            warnings.warn(f"{problem}: {format_count(len(unknown), 'such id')} left out", stacklevel=4)
    data = with_queries(data, known, checked_qrels(data))
    if data.groups and (alone := [query.id for query in queries if query.id not in data.groups]):
        raise BadInput(f"groups names the group of each query, and not that of {alone[0]!r}")
    return data


def checked_systems(systems: Mapping[str, SystemOrBuilder]) -> dict[str, SystemOrBuilder]:
    """Return the systems by name after checking that each can be built and has its own results file.

    Raises BadInput otherwise.
    """
    if not systems:
        raise BadInput('there are no systems to measure; give one or more, as systems={"mine": stage}')
    files: dict[str, str] = {}
    for name, system in systems.items():
        file = file_name(name) if isinstance(name, str) and name.isprintable() else ""
        if not 0 < len(file.encode()) <= _LONGEST_FILE_NAME:
            limits = f"a text on one line with a letter or digit, at most {_LONGEST_FILE_NAME} long"
            raise BadInput(f"a system is named by {limits}, not by {str(name)[:40]!r}")
        if (same := files.setdefault(file.casefold(), name)) != name:
            clash = f"the systems {same!r} and {name!r} have one name as a file ({file})"
            raise BadInput(f"{clash}; rename one of them")
        if not (isinstance(system, Stage) or _is_builder(system)):
            what = f"{name!r} is a {type(system).__name__}, neither a Stage nor something to call without arguments that builds one"
            raise BadInput(f"{what}; a function of a ranking becomes one by Stage({name!r}, function)")
    return dict(systems)


def _is_builder(system: object) -> bool:
    if not callable(system):
        return False
    try:
        inspect.signature(system).bind()
    except TypeError:  # it needs arguments
        return False
    except ValueError:  # it does not say what it needs
        return True
    return True


def load_plan(folder: Path, usual: Plan) -> Plan:
    """Load the plan of a folder, or return the default plan if it has none."""
    return Plan.load(folder / PLAN) if (folder / PLAN).exists() else usual


def write_plan(folder: Path, plan: Plan, systems: Mapping[str, Mapping[str, object]]) -> None:
    """Write the plan into a folder. `systems` are those of each data set.

    Raises UnknownName for a baseline, or a system expected best, that is not among them, and BadInput if the
    folder holds another plan.
    """
    for known in systems.values():
        require_known("baseline", known, plan.baseline)
        require_known("system expected best", known, *filter(None, (plan.expected,)))
    plan.write_down(folder / PLAN)


# The recall benchmark: every system on every data set, with results that survive an interruption.

DATASETS = ("musique", "2wiki", "hotpotqa", "musique-steps")


def run_benchmark(
    folder: Path,
    embedder: Embedder,
    *,
    names: Sequence[str] = DATASETS,
    only: Sequence[str] = (),
    dev: bool = False,
    plan: Plan | None = None,
    progress: BenchmarkProgress = lambda done, total, what: None,
    client: DaskClient | None = None,
) -> list[Report]:
    """Run the systems on data sets, and report on them and everything else in the folder.

    Data sets are given by name or as folders in BEIR format. Results are written to folder/<data
    set>/<system>.jsonl.gz. Existing ones are used as long as they name the same code, embedder and data.
    `only` names the systems to run besides the baseline. `dev` leaves out the test split. Without a plan,
    that of the folder is used, or else the default. Query vectors are computed before timing starts, except
    by retrievers with an embedder of their own. With a Dask `client`, its workers share the systems on all
    data sets, while the embedder runs here. Raises UnknownName for a data set, a system or a baseline,
    BadInput for a data set with fewer than two queries, for results that are broken or were made on other
    data, and for a folder that holds another plan, or results of data that are not named and cannot be found
    by name.
    """
    opened = _open_datasets(names, dev)
    known = {name: list(systems(dataset, embedder)) for name, dataset in opened.items()}
    every_name = dict.fromkeys(system for own in known.values() for system in own)
    require_known("system of these data", every_name, *only)
    plan = plan or load_plan(folder, DEFAULT_PLAN)
    chosen = {*only, plan.baseline}
    wanted = {name: [each for each in own if not only or each in chosen] for name, own in known.items()}
    for dataset in opened.values():
        load_stored_runs(folder, dataset)  # what cannot be used is said now, not after minutes
    beside = _other_datasets(folder, opened, plan)
    write_plan(folder, plan, {name: dict.fromkeys(own) for name, own in known.items()})

    def open_systems(name: str) -> tuple[Dataset, Mapping[str, SystemOrBuilder]]:
        made = systems(opened[name], embedder)  # lets go of what was built for the data set before
        return opened[name], {system: made[system] for system in wanted[name]}

    outcomes = _run_systems(folder, wanted, open_systems, plan, progress, client)
    found = {dataset.name: dataset for dataset in (*opened.values(), *beside)}
    filled = {name: outcomes.get(name, FillOutcome()) for name in found}
    return [build_report(folder, dataset, plan, filled[name]) for name, dataset in found.items()]


# --- parts ---


def _open_datasets(names: Sequence[str], dev: bool) -> dict[str, Dataset]:
    opened = dict[str, Dataset]()
    for name in dict.fromkeys(names):
        whole = open_dataset(name)
        if whole.name in opened:
            remedy = "give one folder another name, or run them one after the other"
            raise BadInput(f"two of the data sets are called {whole.name!r}; {remedy}")
        opened[whole.name] = checked_data(whole.dev if dev else whole)
    return opened


def _other_datasets(folder: Path, opened: Mapping[str, Dataset], plan: Plan) -> list[Dataset]:
    """Return the other data sets that a folder holds baseline results for.

    Without them, a new report would replace theirs. Raises BadInput if one cannot be found by its name.
    """
    named, found = {file_name(name) for name in opened}, list[Dataset]()
    for path in sorted(folder.glob(f"*/{file_name(plan.baseline)}.jsonl.gz")):
        if path.parent.name in named:
            continue
        made = load_results(path)
        try:
            dataset = load_dataset(made.dataset).only(made.hits)
        except LabError:
            held = f"{folder} also holds runs on {made.dataset}, which the report would lose"
            remedy = "name the folder of those data too, or take another folder with --folder DIR"
            raise BadInput(f"{held}: {remedy}") from None
        load_stored_runs(folder, dataset)
        found.append(dataset)
    return found


# Compare five retrieval families on every bundled set: dense, BM25, two fusions, and delta edges.

WITHOUT_EDGES = "neighbours, turns"
WITH_EDGES = "neighbours, turns + delta"
SHUFFLED = "control: delta shuffled"
FAMILIES = {  # the name of the column, and that of the system
    "dense": "embeddings",
    "BM25": "bm25",
    "hybrid (convex)": BASELINE,
    "RRF": "rrf",
    "graph walk": WITHOUT_EDGES,
    "walk + delta edges": WITH_EDGES,
}
FAMILY_SYSTEMS = (*FAMILIES.values(), SHUFFLED)
FAMILY_SETS = {  # and what the table calls them
    "musique": "MuSiQue",
    "musique-498": "MuSiQue, 498 questions",
    "2wiki": "2WikiMultiHopQA",
    "2wiki-1000": "2WikiMultiHopQA, 989 questions",
    "hotpotqa": "HotpotQA",
    "cookbook": "curated graph",
    "parallelparc": "analogous processes (ParallelPARC)",
    "storyanalogy-mc": "analogous stories (StoryAnalogy)",
}
FAMILY_PLAN = Plan(BASELINE, measures=("recall@5", "recall@10"))
_TEST_PART = "test"


@check_arguments
def bench_families(
    folder: Path | str | None = None,
    *,
    names: Sequence[str] = (),
    embedder: Embedder | None = None,
    table: bool = False,
    measure: str = "recall@5",
    progress: BenchmarkProgress = lambda done, total, what: None,
) -> Grid:
    """Evaluate the five retrieval families and tabulate their test split, with 95 % intervals.

    `names` are data sets, by default FAMILY_SETS. The per-query results go to `folder`, one JSON lines file
    per system and data set. With `table` nothing runs: the numbers are recomputed from those files. Raises
    BadInput if they do not fit the data.
    """
    plan = load_plan(Path(folder), FAMILY_PLAN) if folder is not None else FAMILY_PLAN
    require_known("measure", plan.measures, measure)
    if table and folder is None:
        problem = "table=True reads the results in a folder"
        raise BadInput(f"{problem}: name it, or leave table out to run the systems")
    if table and folder is not None:
        return family_table(derive_reports(Path(folder), load_dataset), measure)
    with TemporaryDirectory(prefix="kgot_lab-families-") as made:
        where = Path(made if folder is None else folder)
        names = names or tuple(FAMILY_SETS)
        reports = run_benchmark(
            where, embedder or minilm(), names=names, only=FAMILY_SYSTEMS, plan=FAMILY_PLAN, progress=progress
        )
        return family_table(reports, measure)


def family_table(reports: Sequence[Report], measure: str = "recall@5", part: str = _TEST_PART) -> Grid:
    """Tabulate the mean and 95 % interval of each family, and the gain from delta edges over the same walk.

    `part` is "test", the test split, or "all". Bold marks the best family of a row, and differences with
    p below .05 (sign flips).
    """
    order = list(FAMILY_SETS)
    by_name = {report.dataset.name: report for report in reports}
    names = [name for name in order if name in by_name] + sorted(set(by_name) - set(order))
    split = "test split (held out)" if part == _TEST_PART else f"{part} questions"
    columns = ("set", "documents", "questions", *FAMILIES, "delta edges add", "shuffled edges add")
    rows = tuple(_family_row(by_name[name], measure, part) for name in names)
    return Grid(f"{measure}, {split}, 95 % intervals", columns, rows)


def _family_row(report: Report, measure: str, part: str) -> tuple[Cell, ...]:
    part = part if part in report.parts else report.parts[0]
    rows = {name: report.row(name, measure, part) for name in FAMILY_SYSTEMS if name in report.scores}
    best = max(rows[name].mean for name in FAMILIES.values() if name in rows)
    name = report.dataset.name
    cells = [Cell(FAMILY_SETS.get(name, name)), Cell(f"{len(report.dataset.documents):,}")]
    cells.append(Cell(str(rows[BASELINE].n)))
    for name in FAMILIES.values():
        row = rows.get(name)
        cells.append(_interval_cell(row.mean, row.low, row.high, row.mean == best) if row else Cell(""))
    return *cells, *(_gain_cell(report, name, measure, part) for name in (WITH_EDGES, SHUFFLED))


def _gain_cell(report: Report, system: str, measure: str, part: str) -> Cell:
    """Format the paired difference to the same walk without delta edges."""
    if system not in report.scores:
        return Cell("not computed")
    ids = query_splits(report.dataset)[part]
    both = {name: report.scores[name].only(ids) for name in (WITHOUT_EDGES, system)}
    row = compare(both, WITHOUT_EDGES, measure, groups=report.dataset.groups)[system]
    gap = row.difference
    text = f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]"
    return Cell(text, row.p < 0.05)


def _interval_cell(mean: float, low: float, high: float, bold: bool) -> Cell:
    return Cell(f"{format_decimal(mean)} [{format_decimal(low)}, {format_decimal(high)}]", bold)
