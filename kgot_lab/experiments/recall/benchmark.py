"""The recall benchmark: every system on every data set, into receipts that an interruption leaves whole."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kgot_lab.embedding.cache import Remembered
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.own_data import from_beir
from kgot_lab.evaluation.plan import Plan
from kgot_lab.evaluation.receipts import circumstances, fingerprints, load_receipt, run_to, save_receipt
from kgot_lab.evaluation.reports import PLAN, Report, derive, report
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.experiments.recall.datasets import BUNDLED, load_dataset, published
from kgot_lab.experiments.recall.growth import held_bytes
from kgot_lab.experiments.recall.synthetic import SyntheticVectors, synthetic
from kgot_lab.experiments.recall.systems import BASELINE, systems
from kgot_lab.types import Json

DATASETS = ("musique", "2wiki", "hotpotqa", "musique-steps")
WRITTEN_BEFORE = Plan(BASELINE, expected="follow, sentences")
PUBLISHED = Plan("vector database", primary="all@8", measures=("recall@2", "recall@5", "all@8"))
BESIDE_PUBLISHED = ("bm25", "embeddings", BASELINE, "pagerank, titles", "follow", "follow, sentences")
BenchmarkProgress = Callable[[int, int, str], object]  # done, total, what is next


def benchmark(
    folder: Path,
    embedder: Embedder,
    *,
    names: Sequence[str] = DATASETS,
    only: Sequence[str] = (),
    develop: bool = False,
    progress: BenchmarkProgress = lambda done, total, what: None,
) -> list[Report]:
    """Run the systems on some data sets, named or in a folder as BEIR has them, and report them.

    Receipts go to folder/<data set>/<system>.jsonl.gz; those that are there are kept, so a changed system needs another folder. `only`
    names the systems wanted besides the baseline, `develop` leaves the locked queries shut. The embedder's vector of a query is computed
    before the clock runs; lanes with an embedder of their own compute theirs. Raises UnknownName for a data set or system, BadInput for a
    data set with less than two queries and for a receipt that is broken or was made on other data.
    """
    opened = _opened(names, develop)
    known = {name: list(systems(dataset, embedder)) for name, dataset in opened.items()}
    _check_names(only, [system for own in known.values() for system in own])
    wanted = {name: [system for system in own if not only or system in {*only, BASELINE}] for name, own in known.items()}
    for dataset in opened.values():
        _earlier(folder, dataset)  # what cannot be used is said now, not after minutes
    WRITTEN_BEFORE.save(folder / PLAN)
    done, total = 0, sum(map(len, wanted.values()))
    try:
        for name, dataset in opened.items():
            made = _Made(dataset, embedder)  # lets go of what was built for the data set before
            for system in wanted[name]:
                progress(done, total, f"{system} on {name}")
                made.measure(folder, system)
                done += 1
    finally:
        gc.unfreeze()
    progress(done, total, "the report")
    return [report(_earlier(folder, dataset), dataset, WRITTEN_BEFORE) for dataset in opened.values()]


def beside_published(folder: Path, embedder: Embedder) -> list[Report]:
    """Some systems on the 780 passages that four published systems searched, eight deep, beside the rankings these published."""
    PUBLISHED.save(folder / PLAN)
    dataset = load_dataset("2wiki-780")
    for (size, system), rankings in published().items():
        if size == len(dataset.queries):
            hits = {ranking.query.id: tuple(ranking.hits) for ranking in rankings}
            unknown = Latency(float("nan"), float("nan"))
            said = "published by circlemind-ai/fast-graphrag, eight deep"
            save_receipt(Run(system, said, dataset.name, 8, hits, unknown, {}, fingerprints(dataset)), receipt(folder, dataset, system))
    made = _Made(dataset, embedder)
    for system in BESIDE_PUBLISHED:
        made.measure(folder, system, keep=8)
    return derive(folder, load_dataset)


def indexing(name: str, embedder: Embedder, *, progress: BenchmarkProgress = lambda done, total, what: None) -> list[dict[str, Json]]:
    """What it takes to build each system for a data set from nothing but the vectors: seconds, and megabytes kept.

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
        rows.append({"dataset": name, "system": system, "seconds": round(seconds, 3), "megabytes": round(size, 1)})
    return [{"circumstances": circumstances()}, *rows]


def receipt(folder: Path, dataset: Dataset, system: str) -> Path:
    """Where the receipt of a system on a data set stands in a folder."""
    return folder / file_name(dataset.name) / f"{file_name(system)}.jsonl.gz"


def file_name(name: str) -> str:
    """A name as that of a file or a folder."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in name).split())


# --- parts ------------------------------------------------------------------------------------------------------------


class _Made:
    """The systems of a data set, with the vectors of its queries, which are computed when the first system is measured."""

    def __init__(self, dataset: Dataset, embedder: Embedder) -> None:
        self._dataset, self._remembered = dataset, Remembered(embedder)
        self.stages = systems(dataset, self._remembered)
        self._asked = False

    def measure(self, folder: Path, system: str, keep: int = 20) -> None:
        """Run a system into its receipt; one that is there is left alone."""
        path = receipt(folder, self._dataset, system)
        if path.exists():
            return
        if not self._asked:
            self._remembered.remember([query.text for query in self._dataset.queries])
            self._asked = True
        stage = self.stages[system]()
        gc.collect()
        gc.freeze()  # a full collection walks every object of every index, and would be timed as part of some query
        run_to(path, stage, self._dataset, name=system, keep=keep)


def _opened(names: Sequence[str], develop: bool) -> dict[str, Dataset]:
    opened = dict[str, Dataset]()
    for name in dict.fromkeys(names):
        whole = from_beir(Path(name)) if name not in BUNDLED and Path(name).is_dir() else load_dataset(name)
        if whole.name in opened:
            raise BadInput(f"two of the data sets are called {whole.name!r}; give one folder another name, or run them one after the other")
        opened[whole.name] = dataset = whole.develop if develop else whole
        if len(dataset.queries) < 2:
            raise BadInput(f"{name} needs two queries or more to tell a difference from chance, and has {len(dataset.queries)}")
    return opened


def _check_names(only: Sequence[str], known: Sequence[str]) -> None:
    for name in only:
        if name not in known:
            raise UnknownName("system of these data", name, dict.fromkeys(known))


def _earlier(folder: Path, dataset: Dataset) -> list[Run]:
    """What the receipts of a data set hold; raises BadInput for one that is broken or was made on other queries, documents or qrels."""
    now, asked, runs = fingerprints(dataset), {query.id for query in dataset.queries}, []
    for path in sorted((folder / file_name(dataset.name)).glob("*.jsonl.gz")):
        made = load_receipt(path)
        if set(made.hits) != asked or any(made.about.get(what) != digest for what, digest in now.items()):
            was = f"{path} was made on other data or on {len(made.hits)} queries, not these {len(asked)} of {dataset.name}"
            raise BadInput(f"{was}; name another folder, or delete the receipts there")
        runs.append(made)
    return runs
