"""The recall benchmark: every system on every data set, into receipts that an interruption leaves whole."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.datasets import Dataset, load, published
from kgot_lab.evaluation.growth import held_bytes
from kgot_lab.evaluation.own_data import from_beir
from kgot_lab.evaluation.plan import Plan
from kgot_lab.evaluation.receipts import circumstances, fingerprints, run_to, save_run
from kgot_lab.evaluation.reports import PLAN, Report, derive
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.evaluation.systems import BASELINE, Stages, systems
from kgot_lab.retrieval.cache import Remembered
from kgot_lab.retrieval.embeddings import Embedder
from kgot_lab.types import Json

DATASETS = ("musique", "2wiki", "hotpotqa", "musique-steps")
WRITTEN_BEFORE = Plan(BASELINE, expected="follow, sentences")
PUBLISHED = Plan("vector database", primary="all@8", measures=("recall@2", "recall@5", "all@8"))
BESIDE_PUBLISHED = ("bm25", "embeddings", BASELINE, "pagerank, titles", "follow", "follow, sentences")
Progress = Callable[[int, int, str], object]  # done, total, what is next


def benchmark(
    folder: Path,
    embedder: Embedder,
    *,
    names: Sequence[str] = DATASETS,
    only: Sequence[str] = (),
    develop: bool = False,
    progress: Progress = lambda done, total, what: None,
) -> list[Report]:
    """Run the systems on some data sets, named or in a folder as BEIR has them, and report them.

    Receipts go to folder/<data set>/<system>.jsonl.gz; those that are there are kept. `only` names the systems wanted besides the
    baseline, `develop` leaves the locked queries shut. A query's vector is computed before the clock runs. Raises UnknownName for a
    data set or system.
    """
    WRITTEN_BEFORE.save(folder / PLAN)
    jobs, opened = [], dict[str, Dataset]()
    for name in names:
        whole = from_beir(Path(name)) if Path(name).is_dir() else load(name)
        dataset = opened[whole.name] = whole.develop if develop else whole
        remembered = Remembered(embedder)
        made = systems(dataset, remembered)
        jobs += [(dataset, remembered, made, system) for system in _wanted(made, only)]
    asked: set[str] = set()
    for done, (dataset, remembered, made, system) in enumerate(jobs):
        progress(done, len(jobs), f"{system} on {dataset.name}")
        if dataset.name not in asked:
            remembered.remember([query.text for query in dataset.queries])
            asked.add(dataset.name)
        _measure(folder / dataset.name / f"{file_name(system)}.jsonl.gz", dataset, made, system)
    progress(len(jobs), len(jobs), "the report")
    return [report for report in derive(folder, load=lambda name: opened.get(name) or load(name)) if report.dataset.name in opened]


def beside_published(folder: Path, embedder: Embedder) -> list[Report]:
    """Some systems on the 780 passages that four published systems searched, eight deep, beside the rankings these published."""
    PUBLISHED.save(folder / PLAN)
    dataset = load("2wiki-780")
    for (size, system), rankings in published().items():
        if size == len(dataset.queries):
            hits = {ranking.query.id: tuple(ranking.hits) for ranking in rankings}
            unknown = Latency(float("nan"), float("nan"))
            said = "published by circlemind-ai/fast-graphrag, eight deep"
            run = Run(system, said, dataset.name, 8, hits, unknown, {}, fingerprints(dataset))
            save_run(run, folder / dataset.name / f"{file_name(system)}.jsonl.gz")
    remembered = Remembered(embedder)
    remembered.remember([query.text for query in dataset.queries])
    made = systems(dataset, remembered)
    for system in BESIDE_PUBLISHED:
        _measure(folder / dataset.name / f"{file_name(system)}.jsonl.gz", dataset, made, system, keep=8)
    return derive(folder)


def indexing(name: str, embedder: Embedder, *, progress: Progress = lambda done, total, what: None) -> list[dict[str, Json]]:
    """What it takes to build each system for a data set from nothing but the vectors: seconds, and megabytes kept.

    Systems share parts, so the sum over systems is more than all of them take together.
    """
    dataset, rows = load(name), list[dict[str, Json]]()
    remembered = Remembered(embedder)
    remembered.remember([query.text for query in dataset.queries])
    for done, system in enumerate(wanted := list(systems(dataset, remembered))):
        progress(done, len(wanted), f"indexing {name} for {system}")
        build = systems(dataset, remembered)[system]
        gc.collect()
        start = time.perf_counter()
        stage = build()
        seconds = time.perf_counter() - start
        size = held_bytes(stage, (dataset, remembered)) / 1e6
        rows.append({"dataset": name, "system": system, "seconds": round(seconds, 3), "megabytes": round(size, 1)})
    return [{"circumstances": circumstances()}, *rows]


def file_name(system: str) -> str:
    """A system's name as the name of a file."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in system).split())


def _wanted(made: Stages, only: Sequence[str]) -> list[str]:
    for name in only:
        if name not in made and not _elsewhere(name):
            raise UnknownName("system", name, made)
    return [name for name in made if not only or name in only or name == BASELINE]


def _elsewhere(name: str) -> bool:
    return name.endswith(", triples")  # only where the data hold a language model's triples


def _measure(path: Path, dataset: Dataset, made: Stages, system: str, keep: int = 20) -> None:
    if path.exists():
        return
    stage = made[system]()
    gc.collect()
    gc.freeze()  # a full collection walks every object of every index, and would be timed as part of some query
    path.parent.mkdir(parents=True, exist_ok=True)
    run_to(path, stage, dataset, name=system, keep=keep)
