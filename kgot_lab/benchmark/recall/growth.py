"""How time and memory of a lane grow with the number of passages, each measured in a process of its own."""

from __future__ import annotations

import gc
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from kgot_lab.benchmark.recall.growth import SyntheticVectors, synthetic
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.io.files import write_whole
from kgot_lab.retrieval.bm25 import bm25
from kgot_lab.retrieval.dense import meaning
from kgot_lab.retrieval.fulltext import fts5
from kgot_lab.retrieval.fusion import rrf, weighted
from kgot_lab.retrieval.links import title_graph
from kgot_lab.retrieval.names import Titles
from kgot_lab.retrieval.pagerank import first_hits, pagerank, titles_in_question
from kgot_lab.retrieval.stage import Stage
from kgot_lab.types import Json

GrowthRow = Mapping[str, Json]
SIZES = (1_000, 10_000, 100_000, 1_000_000)
_KEPT = 1_000  # hits a lane keeps
_FEWEST = 5  # queries measured, however long they take


def _bm25(dataset: Dataset) -> Stage:
    return bm25(dataset.documents)


def _meaning(dataset: Dataset) -> Stage:
    return meaning(dataset.documents, SyntheticVectors(), keep=_KEPT)


LANES: Mapping[str, Callable[[Dataset], Stage]] = {
    "bm25": _bm25,
    "fts5": lambda dataset: fts5(dataset.documents),
    "embeddings": _meaning,
    "weighted": lambda dataset: weighted((0.5, _bm25(dataset)), (0.5, _meaning(dataset))),
    "rrf": lambda dataset: rrf(_bm25(dataset), _meaning(dataset)),
    "title pagerank": lambda dataset: (
        _bm25(dataset) % _KEPT
        >> pagerank(
            title_graph(dataset.documents), first_hits(5), titles_in_question(Titles(dataset.documents))
        )
    ),
}


def measure_growth(
    sizes: Sequence[int] = SIZES,
    lanes: Sequence[str] = tuple(LANES),
    *,
    file: Path | None = None,
    queries: int = 50,
    seconds: float = 60.0,
    progress: Callable[[int, int, str], object] = lambda done, total, what: None,
) -> list[GrowthRow]:
    """One row per lane and number of passages: what indexing and searching synthetic passages took.

    A row holds lane, passages, queries (measured within `seconds`, at least five), index_s, peak_mb (the most
    memory over that of the passages, while indexing and searching), index_mb (what the lane keeps),
    median_ms, p95_ms and cpu_ms a query (wall time, and the median processor time, which other programs move
    less; one thread; the query's synthetic vector, some .2 ms, included), and recall@10 of the planted
    answers. A lane that fails has `error` instead. Rows go to `file`, a JSON line each; those already there
    are not measured again, failed ones are. `progress` is told how many of how many are done, and what comes
    next. Raises UnknownName for a lane and BadInput for a file that is not of this kind.
    """
    for lane in lanes:
        if lane not in LANES:
            raise UnknownName("lane", lane, LANES)
    known = {(row["lane"], row["passages"], row["asked"]): row for row in _rows(file)} if file else {}
    wanted = [(lane, size, queries) for size in sizes for lane in lanes]
    rows: list[GrowthRow] = []
    for done, key in enumerate(wanted):
        progress(done, len(wanted), f"{key[0]} over {key[1]:,} passages")
        row = known.get(key) or _in_a_process(*key, seconds)
        if file and key not in known and "error" not in row:
            _append(file, row)
        rows.append(row)
    progress(len(wanted), len(wanted), "done")
    return rows


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
            raise BadInput(
                f"{file}, line {number} is not a row of this benchmark; give another file, or delete the line"
            ) from None
        yield row


def _append(file: Path, row: GrowthRow) -> None:
    whole = file.read_text(encoding="utf-8") if file.exists() else ""
    kept = whole[: whole.rfind("\n") + 1]  # without a line cut short
    write_whole(file, f"{kept}{json.dumps(row)}\n", "the rows")


def _in_a_process(lane: str, size: int, queries: int, seconds: float) -> GrowthRow:
    code = "import sys; from kgot_lab.benchmark.recall.growth import _answer; _answer(sys.argv[1:])"
    command = [sys.executable, "-c", code, lane, str(size), str(queries), str(seconds)]
    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
    )
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **threads}
    )
    if ended.returncode == 0:
        return dict(json.loads(ended.stdout.splitlines()[-1]))
    last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
    why = "killed, most likely for want of memory" if ended.returncode == -9 else last[:300]
    return {"lane": lane, "passages": size, "asked": queries, "error": why}


def _answer(arguments: Sequence[str]) -> None:
    lane, size, queries, seconds = arguments
    sys.stdout.write(json.dumps(measured(lane, int(size), int(queries), float(seconds))) + "\n")


# --- one measurement, in the process it has to itself
# -----------------------------------------------------------------


def measured(lane: str, size: int, queries: int = 50, seconds: float = 60.0) -> GrowthRow:
    """The row of one lane and size, see growth(); memory is right only in a fresh process."""
    LANES[lane](synthetic(8, 2)).search("warm up")  # imports what the lane needs, which is not its index
    dataset = synthetic(size, min(queries, size // 4))
    gc.collect()
    _forget_peak()
    before = _memory("VmRSS")
    start = time.perf_counter()
    stage = LANES[lane](dataset)
    index_s = time.perf_counter() - start
    milliseconds, busy, found = _searched(stage, dataset, seconds)
    return {
        "lane": lane,
        "passages": size,
        "asked": queries,
        "queries": len(milliseconds),
        "index_s": round(index_s, 3),
        "peak_mb": round(max(0.0, _memory("VmHWM") - before), 1),
        "index_mb": round(held_bytes(stage, apart_from=dataset) / 1e6, 1),
        "median_ms": round(float(np.median(milliseconds)), 3),
        "p95_ms": round(float(np.percentile(milliseconds, 95)), 3),
        "cpu_ms": round(float(np.median(busy)), 3),
        "recall@10": round(float(np.mean(found)), 3),
    }


def _searched(stage: Stage, dataset: Dataset, seconds: float) -> tuple[list[float], list[float], list[float]]:
    milliseconds, busy, found = [], [], []
    for query in dataset.queries:
        start, busy_start = time.perf_counter(), time.process_time()
        ranking = stage.search(query)
        milliseconds.append(1000 * (time.perf_counter() - start))
        busy.append(1000 * (time.process_time() - busy_start))
        relevant = dataset.qrels[query.id]
        found.append(sum(hit.id in relevant for hit in ranking.hits[:10]) / len(relevant))
        if sum(milliseconds) > 1000 * seconds and len(milliseconds) >= _FEWEST:
            break
    return milliseconds, busy, found


def _memory(what: str) -> float:
    """VmRSS or VmHWM of this process in MB. On Linux as the kernel says, since getrusage's peak there counts
    that of the parent too.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return (
            next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(what))
            * 1024
            / 1e6
        )
    try:
        import resource
    except ImportError:
        return float("nan")  # Windows
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # bytes on macOS, and the peak for both


def _forget_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    except OSError:
        return  # elsewhere the peak counts what came before


def held_bytes(value: object, apart_from: object = ()) -> int:
    """How many bytes are reachable from a value: arrays, texts, containers, what functions close over, SQLite
    databases in memory.

    What `apart_from` reaches counts for nothing, nor do modules and types.
    """
    seen = {id(each) for each in _reachable([apart_from], set())}
    return sum(map(_size, _reachable([value], seen)))


def _reachable(todo: list[object], seen: set[int]) -> Iterator[object]:
    while todo:
        each = todo.pop()
        if id(each) in seen or isinstance(each, ModuleType | type):
            continue
        seen.add(id(each))
        yield each
        todo.extend(_parts(each))


def _parts(each: object) -> Iterable[object]:
    if isinstance(each, FunctionType):  # not its globals: they are everybody's
        return [cell.cell_contents for cell in each.__closure__ or ()] + list(each.__defaults__ or ())
    if isinstance(each, np.ndarray) and each.base is not None:
        return [each.base]
    return gc.get_referents(each)


def _size(each: Any) -> int:
    if isinstance(each, sqlite3.Connection):
        return int(
            each.execute("PRAGMA page_count").fetchone()[0] * each.execute("PRAGMA page_size").fetchone()[0]
        )
    return sys.getsizeof(each)  # of an array with its numbers, where they are its own
