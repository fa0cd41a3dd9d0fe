"""Scaling of retrievers: time and memory by the number of passages, each measured in its own process."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.tables import Cell, Grid
from kgot_lab.io.files import write_atomically
from kgot_lab.retrieval.dense import dense
from kgot_lab.retrieval.entity_linking import NameIndex, title_graph
from kgot_lab.retrieval.fusion import rrf, weighted
from kgot_lab.retrieval.lexical import bm25, fts5
from kgot_lab.retrieval.multihop.retriever import hybrid_multihop
from kgot_lab.retrieval.pagerank import first_hits, pagerank, titles_in_question
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Document, Json, Query

# Synthetic passages with planted answers, to measure time and memory rather than retrieval quality.

# no e and no s: no stop word, no suffix to stem
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aiou"]
_VOCABULARY = 50_000  # words that passages are filled with
_PASSAGE_WORDS = 32  # of them in a passage
_RARE_WORDS = 2  # words of a query that only its first passage has together
_CHUNK = 10_000  # passages made at a time: what is held besides the passages themselves


def synthetic(n: int, queries: int = 50, seed: int = 0) -> Dataset:
    """Generate `n` passages with Zipf-distributed words, and queries with two relevant passages each.

    Some passages name the title of another. The first relevant passage contains both rare words of the query
    (two other passages contain one of them each). The second contains no rare word, but the first names its
    title. Equal arguments give equal data. Raises BadInput for fewer than four passages per query.
    """
    if queries < 1 or n < 4 * queries:
        need = "synthetic() takes at least one query and four passages a query"
        raise BadInput(f"{need}; {queries} and {n} were asked for")
    chance = np.random.default_rng(seed)
    # first, second, and two with one rare word each
    planted = chance.choice(n, size=(queries, 4), replace=False).tolist()
    extra: dict[int, list[str]] = {}
    asked = []
    for number, (first, second, one, other) in enumerate(planted):
        rare = [synthetic_word(_VOCABULARY + _RARE_WORDS * number + place) for place in range(_RARE_WORDS)]
        extra |= {first: [*rare, synthetic_title(second)], one: rare[:1], other: rare[1:]}
        common = " ".join(synthetic_word(int(rank)) for rank in chance.integers(20, 2_000, size=4))
        asked.append(Query(f"{' '.join(rare)} {common}", f"q{number}"))
    words = np.array([synthetic_word(rank) for rank in range(_VOCABULARY)], object)
    batches = (_passages(n, start, chance, words, extra) for start in range(0, n, _CHUNK))
    documents = tuple(chain.from_iterable(batches))
    answers = zip(asked, planted, strict=True)
    qrels = {query.id: {_id(first): 1, _id(second): 1} for query, (first, second, *_) in answers}
    return Dataset(f"synthetic-{n}", documents, tuple(asked), qrels)


def _passages(
    n: int,
    start: int,
    chance: np.random.Generator,
    words: NDArray[np.object_],
    extra: Mapping[int, list[str]],
) -> Iterator[Document]:
    size = min(_CHUNK, n - start)
    texts = words[zipf(chance, (size, _PASSAGE_WORDS))].tolist()
    # squared: the first titles are named most, as hubs are
    named = (n * chance.random(size) ** 2).astype(np.int64).tolist()
    for row, (text, other) in enumerate(zip(texts, named, strict=True)):
        number = start + row
        ours = [synthetic_title(other)] if other != number else []
        text = " ".join([*extra.get(number, ()), *text, *ours])
        yield Document(_id(number), f"{text}.", synthetic_title(number))


def zipf(chance: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Draw word ranks, from 0, where the k-th rank has a probability proportional to 1 / k."""
    shares = np.cumsum(1 / np.arange(1, _VOCABULARY + 1))
    ranks: NDArray[np.int64] = np.searchsorted(shares, chance.random(shape) * shares[-1])
    return ranks


def synthetic_word(number: int) -> str:
    """Return the three-syllable word of a number below 140,608."""
    number = number * 7_919 % 52**3  # neighbours look different
    return _SYLLABLES[number // 2704 % 52] + _SYLLABLES[number // 52 % 52] + _SYLLABLES[number % 52]


def synthetic_title(number: int) -> str:
    """Return the unique title of a passage: a given name and a family name.

    Up to a thousand passages share a family name.
    """
    given, family = number % 1_000, number // 1_000
    return f"{synthetic_word(given).capitalize()}na {synthetic_word(family).capitalize()}ro"


def _id(number: int) -> str:
    return f"s{number:07d}"


class SyntheticVectors:
    """Vectors by feature hashing (Weinberger et al. 2009).

    Every word adds or subtracts 1 at a few positions given by its SHA-256. They replace an embedder where
    only size matters. Texts with common words are close, and nothing more is intended.
    """

    def __init__(self, dimension: int = 384) -> None:
        if dimension < 8:
            raise BadInput(f"vectors need at least 8 dimensions, not {dimension}")
        self.name, self.dimension = "synthetic-hashing", dimension
        self.digest = hashlib.sha256(f"{self.name} {dimension}".encode()).hexdigest()
        self._places: dict[str, int] = {}  # the row of a word in the two tables below, which grow
        self._at = np.zeros((1_024, 4), np.int64)
        self._sign = np.zeros((1_024, 4))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector per text, shape (len(texts), dimension), or zeros for one without words."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for start in range(0, len(texts), _CHUNK):
            sums = self._sums(texts[start : start + _CHUNK])
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
            vectors[start : start + _CHUNK] = sums / np.where(lengths > 0, lengths, 1)
        return vectors

    def _sums(self, texts: Sequence[str]) -> NDArray[np.float64]:
        words = [text.lower().replace(".", " ").split() for text in texts]
        rows = np.repeat(np.arange(len(texts)), [len(line) for line in words])
        known = np.array([self._row(each) for line in words for each in line], np.int64)
        if not len(known):
            return np.zeros((len(texts), self.dimension))
        places = (rows[:, None] * self.dimension + self._at[known]).ravel()
        sums = np.bincount(places, self._sign[known].ravel(), len(texts) * self.dimension)
        return np.asarray(sums, np.float64).reshape(len(texts), self.dimension)

    def _row(self, each: str) -> int:
        row = self._places.setdefault(each, len(self._places))
        if row + 1 == len(self._places):  # the newest word: new, or written again
            if row == len(self._at):
                self._at, self._sign = np.concatenate([self._at] * 2), np.concatenate([self._sign] * 2)
            draw = hashlib.sha256(each.encode("utf-8", "replace")).digest()
            self._at[row] = np.frombuffer(draw, ">u4", 4) % self.dimension
            self._sign[row] = [1.0 if byte % 2 else -1.0 for byte in draw[16:20]]
        return row

    def __repr__(self) -> str:
        return f"<{self.name}, {self.dimension} dimensions>"


GrowthRow = Mapping[str, Json]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
_HITS = 1_000  # hits per query
_MIN_QUERIES = 5  # queries measured, however long they take


def _bm25(dataset: Dataset) -> Stage:
    return bm25(dataset.documents)


def _dense(dataset: Dataset) -> Stage:
    return dense(dataset.documents, SyntheticVectors(), keep=_HITS)


RETRIEVERS: Mapping[str, Callable[[Dataset], Stage]] = {
    "bm25": _bm25,
    "fts5": lambda dataset: fts5(dataset.documents),
    "embeddings": _dense,
    "weighted": lambda dataset: weighted((0.5, _bm25(dataset)), (0.5, _dense(dataset))),
    "rrf": lambda dataset: rrf(_bm25(dataset), _dense(dataset)),
    "title pagerank": lambda dataset: (
        _bm25(dataset) % _HITS
        >> pagerank(
            title_graph(dataset.documents), first_hits(5), titles_in_question(NameIndex(dataset.documents))
        )
    ),
    "default": lambda dataset: hybrid_multihop(dataset.documents, SyntheticVectors()),
}


def measure_growth(
    sizes: Sequence[int] = SIZES,
    retrievers: Sequence[str] = tuple(RETRIEVERS),
    *,
    file: Path | None = None,
    queries: int = 50,
    seconds: float = 60.0,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[GrowthRow]:
    """Measure indexing and searching of synthetic passages, one row per retriever and number of passages.

    A row has lane (the retriever), passages, queries (measured within `seconds`, at least five), index_s,
    peak_mb (peak memory above that of the passages, during indexing and search), index_mb (the size of the
    index), median_ms, p95_ms and cpu_ms per query, and recall@10 of the planted answers. Times are wall-clock
    except cpu_ms, the median processor time, which other programs affect less. They use one thread and
    include the query's synthetic vector, about .2 ms. A retriever that fails has `error` instead. Rows are
    appended to `file`, one JSON line each. Rows already there are not measured again, except failed ones.
    `progress` is called with the number done, the total, and what comes next. Raises UnknownName for an
    unknown retriever, and BadInput if `file` is of another kind.
    """
    for lane in retrievers:
        if lane not in RETRIEVERS:
            raise UnknownName("lane", lane, RETRIEVERS)
    known = {(row["lane"], row["passages"], row["asked"]): row for row in _rows(file)} if file else {}
    wanted = [(lane, size, queries) for size in sizes for lane in retrievers]
    rows: list[GrowthRow] = []
    for done, key in enumerate(wanted):
        progress(done, len(wanted), f"{key[0]} over {key[1]:,} passages")
        row = known.get(key) or _measure_in_process(*key, seconds)
        if file and key not in known and "error" not in row:
            _append(file, row)
        rows.append(row)
    progress(len(wanted), len(wanted), "done")
    return rows


def scaling_grid(rows: Sequence[GrowthRow]) -> Grid:
    """Tabulate the growth of time and memory."""
    measures = ("index_s", "peak_mb", "index_mb", "median_ms", "p95_ms", "recall@10")
    columns = (
        "retriever",
        "passages",
        "index, s",
        "peak, MB",
        "index, MB",
        "median, ms",
        "p95, ms",
        "recall@10",
    )

    def cells(row: GrowthRow) -> tuple[Cell, ...]:
        measured = [f"{row[name]:,.2f}" if name in row else "failed" for name in measures]
        return Cell(row["lane"]), Cell(f"{row['passages']:,}"), *map(Cell, measured)

    return Grid("How time and memory grow: synthetic passages, one thread", columns, tuple(map(cells, rows)))


def _rows(file: Path) -> Iterator[GrowthRow]:
    if not file.exists():
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            return  # cut short by an interruption: measured again
        try:
            row = json.loads(line)
            row["lane"], row["passages"], row["asked"]
        except (ValueError, KeyError, TypeError):
            problem = f"{file}, line {number} is not a row of this benchmark"
            raise BadInput(f"{problem}; give another file, or delete the line") from None
        yield row


def _append(file: Path, row: GrowthRow) -> None:
    whole = file.read_text(encoding="utf-8") if file.exists() else ""
    kept = whole[: whole.rfind("\n") + 1]  # without a line cut short
    write_atomically(file, f"{kept}{json.dumps(row)}\n", "the rows")


def _measure_in_process(retriever: str, size: int, queries: int, seconds: float) -> GrowthRow:
    code = "import sys; from benchmarks.recall.growth import _answer; _answer(sys.argv[1:])"
    command = [sys.executable, "-c", code, retriever, str(size), str(queries), str(seconds)]
    libraries = ("OMP", "OPENBLAS", "MKL")
    threads = {f"{name}_NUM_THREADS": "1" for name in libraries} | {"VECLIB_MAXIMUM_THREADS": "1"}
    environment = {**os.environ, **threads}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=Path(__file__).parents[2]
    )
    if ended.returncode == 0:
        return dict(json.loads(ended.stdout.splitlines()[-1]))
    last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
    why = "killed, most likely for want of memory" if ended.returncode == -9 else last[:300]
    return {"lane": retriever, "passages": size, "asked": queries, "error": why}


def _answer(arguments: Sequence[str]) -> None:
    lane, size, queries, seconds = arguments
    sys.stdout.write(json.dumps(measure_retriever(lane, int(size), int(queries), float(seconds))) + "\n")


# --- one measurement in its own process ---


def measure_retriever(retriever: str, size: int, queries: int = 50, seconds: float = 60.0) -> GrowthRow:
    """Measure one retriever at one size, as a row of `measure_growth`.

    Memory is accurate only in a fresh process.
    """
    RETRIEVERS[retriever](synthetic(8, 2)).search("warm up")  # imports packages, outside the index time
    dataset = synthetic(size, min(queries, size // 4))
    gc.collect()
    _reset_peak_memory()
    before = _memory_mb("VmRSS")
    start = time.perf_counter()
    stage = RETRIEVERS[retriever](dataset)
    index_s = time.perf_counter() - start
    milliseconds, busy, found = _time_searches(stage, dataset, seconds)
    return {
        "lane": retriever,
        "passages": size,
        "asked": queries,
        "queries": len(milliseconds),
        "index_s": round(index_s, 3),
        "peak_mb": round(max(0.0, _memory_mb("VmHWM") - before), 1),
        "index_mb": round(reachable_bytes(stage, excluding=dataset) / 1e6, 1),
        "median_ms": round(float(np.median(milliseconds)), 3),
        "p95_ms": round(float(np.percentile(milliseconds, 95)), 3),
        "cpu_ms": round(float(np.median(busy)), 3),
        "recall@10": round(float(np.mean(found)), 3),
    }


def _time_searches(
    stage: Stage, dataset: Dataset, seconds: float
) -> tuple[list[float], list[float], list[float]]:
    milliseconds, busy, found = [], [], []
    for query in dataset.queries:
        start, busy_start = time.perf_counter(), time.process_time()
        ranking = stage.search(query)
        milliseconds.append(1000 * (time.perf_counter() - start))
        busy.append(1000 * (time.process_time() - busy_start))
        relevant = dataset.qrels[query.id]
        found.append(sum(hit.id in relevant for hit in ranking.hits[:10]) / len(relevant))
        if sum(milliseconds) > 1000 * seconds and len(milliseconds) >= _MIN_QUERIES:
            break
    return milliseconds, busy, found


def _memory_mb(what: str) -> float:
    """Return VmRSS or VmHWM of this process in MB.

    On Linux it is read from the kernel, since getrusage's peak includes that of the parent there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith(what))
        return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:
        return float("nan")  # Windows
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS, and the peak for both


def _reset_peak_memory() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")  # resets VmHWM
    except OSError:
        return  # elsewhere the peak counts what came before


def reachable_bytes(value: object, excluding: object = ()) -> int:
    """Return the number of bytes reachable from a value.

    Counts arrays, strings, containers, closures and SQLite databases in memory. Whatever is reachable from
    `excluding` is not counted, nor are modules and types.
    """
    seen = {id(each) for each in _reachable([excluding], set())}
    return sum(map(_size, _reachable([value], seen)))


def _reachable(todo: list[object], seen: set[int]) -> Iterator[object]:
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, ModuleType | type):
            continue
        seen.add(id(each))
        yield each
        todo.extend(_referents(each))


def _referents(each: object) -> Iterable[object]:
    if isinstance(each, FunctionType):  # not its globals: they are everybody's
        return [cell.cell_contents for cell in each.__closure__ or ()] + list(each.__defaults__ or ())
    if isinstance(each, np.ndarray) and each.base is not None:
        return [each.base]
    return gc.get_referents(each)


def _size(each: Any) -> int:
    if isinstance(each, sqlite3.Connection):
        pages, size = (each.execute(f"PRAGMA page_{of}").fetchone()[0] for of in ("count", "size"))
        return int(pages * size)
    return sys.getsizeof(each)  # of an array with its numbers, where they are its own
