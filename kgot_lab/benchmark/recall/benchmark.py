"""The recall benchmark: every system on every data set, into receipts that an interruption leaves whole."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kgot_lab.benchmark.recall.bench import BenchmarkProgress, begin, checked_data, plan_of, report_on
from kgot_lab.benchmark.recall.datasets import load_dataset, opened_data, published
from kgot_lab.benchmark.recall.filling import Filled, earlier, file_name, fill, fill_by_workers, receipt
from kgot_lab.benchmark.recall.growth import SyntheticVectors, held_bytes, synthetic
from kgot_lab.benchmark.recall.systems import BASELINE, WRITTEN_BEFORE, systems
from kgot_lab.embedding.cache import Remembered
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, LabError, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.plan import Plan
from kgot_lab.evaluation.reports import PLAN, Report, derive
from kgot_lab.evaluation.results import circumstances, fingerprints, load_receipt, save_receipt
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.types import Json

DATASETS = ("musique", "2wiki", "hotpotqa", "musique-steps")
PUBLISHED = Plan("vector database", primary="all@8", measures=("recall@2", "recall@5", "all@8"))
BESIDE_PUBLISHED = ("bm25", "embeddings", BASELINE, "pagerank, titles", "follow", "follow, sentences")
_DEEP = 8  # what the published systems gave


def benchmark(
    folder: Path,
    embedder: Embedder,
    *,
    names: Sequence[str] = DATASETS,
    only: Sequence[str] = (),
    develop: bool = False,
    plan: Plan | None = None,
    progress: BenchmarkProgress = lambda done, total, what: None,
    client: Any = None,
) -> list[Report]:
    """Run the systems on some data sets, named or in a folder as BEIR has them, and report them and what else
    the folder holds.

    Receipts go to folder/<data set>/<system>.jsonl.gz; one that is there is kept while code, embedder and
    data are those it names. `only` names the systems wanted besides the baseline, `develop` leaves the locked
    queries shut. Without a plan, that of the folder is followed, or else ours. The embedder's vector of a
    query is computed before the clock runs; lanes with an embedder of their own compute theirs. With a Dask
    `client` its workers share the systems on all data sets, and the embedder still computes here. Raises
    UnknownName for a data set, a system or a baseline, BadInput for a data set with less than two queries,
    for a receipt that is broken or was made on other data, and for a folder that holds another plan, or
    receipts of data that are not named and cannot be found by their name.
    """
    opened = _opened(names, develop)
    known = {name: list(systems(dataset, embedder)) for name, dataset in opened.items()}
    _check_names(only, [system for own in known.values() for system in own])
    plan = plan or plan_of(folder, WRITTEN_BEFORE)
    wanted = {
        name: [system for system in own if not only or system in {*only, plan.baseline}]
        for name, own in known.items()
    }
    for dataset in opened.values():
        earlier(folder, dataset)  # what cannot be used is said now, not after minutes
    beside = _beside(folder, opened, plan)
    begin(folder, plan, {name: dict.fromkeys(own) for name, own in known.items()})
    steps = [f"{system} on {name}" for name, some in wanted.items() for system in some]

    def tell(data: str, system: str, also: str = "") -> None:
        what = f"{system} on {data}"
        progress(steps.index(what), len(steps), what + also)

    told = dict[str, Filled]()
    if client is not None:
        ours = {name: systems(dataset, embedder) for name, dataset in opened.items()}
        shared = [
            (dataset, {system: ours[name][system] for system in wanted[name]})
            for name, dataset in opened.items()
        ]
        told = fill_by_workers(client, folder, shared, plan, progress)
    for name, dataset in opened.items() if client is None else ():
        made = systems(dataset, embedder)  # lets go of what was built for the data set before
        some = {system: made[system] for system in wanted[name]}
        told[name] = fill(folder, dataset, some, plan, partial(tell, name), also=partial(tell, name))
    progress(len(steps), len(steps), "the report")
    found = {dataset.name: dataset for dataset in (*opened.values(), *beside)}
    return [report_on(folder, dataset, plan, told.get(name, Filled())) for name, dataset in found.items()]


def compare_with_published(folder: Path, embedder: Embedder) -> list[Report]:
    """Some systems on the 780 passages that four published systems searched, eight deep, beside the rankings
    these published.
    """
    PUBLISHED.write_down(folder / PLAN)
    dataset = load_dataset("2wiki-780")
    for (size, system), rankings in published().items():
        if size == len(dataset.queries):
            hits = {ranking.query.id: tuple(ranking.hits) for ranking in rankings}
            unknown = Latency(float("nan"), float("nan"))
            said = "published by circlemind-ai/fast-graphrag, eight deep"
            path = receipt(folder, dataset, system)
            save_receipt(
                Run(system, said, dataset.name, _DEEP, hits, unknown, {}, fingerprints(dataset)), path
            )
    made = systems(dataset, embedder)
    fill(folder, dataset, {system: made[system] for system in BESIDE_PUBLISHED}, PUBLISHED, keep=_DEEP)
    return derive(folder, load_dataset)


def indexing(
    name: str, embedder: Embedder, *, progress: BenchmarkProgress = lambda done, total, what: None
) -> list[dict[str, Json]]:
    """What it takes to build each system for a data set from nothing but the vectors: seconds, and megabytes
    kept.

    Systems share parts, so the sum over systems is more than all of them take together.
    """
    dataset, rows = load_dataset(name), list[dict[str, Json]]()
    remembered = Remembered(embedder)
    remembered.remember([query.text for query in dataset.queries])
    warm = systems(synthetic(16, 4), SyntheticVectors())
    for done, system in enumerate(wanted := list(systems(dataset, remembered))):
        progress(done, len(wanted), f"indexing {name} for {system}")
        if system in warm:
            warm[system]()  # imports what it needs, which is not its index
        build = systems(dataset, remembered)[system]
        gc.collect()
        start = time.perf_counter()
        stage = build()
        seconds = time.perf_counter() - start
        size = held_bytes(stage, (dataset, remembered)) / 1e6
        rows.append(
            {"dataset": name, "system": system, "seconds": round(seconds, 3), "megabytes": round(size, 1)}
        )
    return [{"circumstances": circumstances()}, *rows]


# --- parts
# ------------------------------------------------------------------------------------------------------------


def _opened(names: Sequence[str], develop: bool) -> dict[str, Dataset]:
    opened = dict[str, Dataset]()
    for name in dict.fromkeys(names):
        whole = opened_data(name)
        if whole.name in opened:
            raise BadInput(
                f"two of the data sets are called {whole.name!r}; give one folder another name, or run them one after the other"
            )
        opened[whole.name] = checked_data(whole.develop if develop else whole)
    return opened


def _beside(folder: Path, opened: Mapping[str, Dataset], plan: Plan) -> list[Dataset]:
    """The other data sets whose receipts a folder holds, that of the baseline among them: a report without
    them would take their place.

    Raises BadInput for one that cannot be found by its name.
    """
    named, found = {file_name(name) for name in opened}, list[Dataset]()
    for path in sorted(folder.glob(f"*/{file_name(plan.baseline)}.jsonl.gz")):
        if path.parent.name in named:
            continue
        made = load_receipt(path)
        try:
            dataset = load_dataset(made.dataset).only(made.hits)
        except LabError:
            held = f"{folder} also holds runs on {made.dataset}, which the report would lose"
            raise BadInput(
                f"{held}: name the folder of those data too, or take another folder with --folder DIR"
            ) from None
        earlier(folder, dataset)
        found.append(dataset)
    return found


def _check_names(only: Sequence[str], known: Sequence[str]) -> None:
    for name in only:
        if name not in known:
            raise UnknownName("system of these data", name, dict.fromkeys(known))
