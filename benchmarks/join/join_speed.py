"""How fast pairs of similar vectors are found, as a share of the rate at which this computer multiplies
matrices.
"""

from __future__ import annotations

import ctypes
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

from benchmarks.join.approximate import IndexEffort, approximate_delta_pairs, approximate_nearest
from benchmarks.join.join_vectors import clustered, skeleton_vectors
from benchmarks.join.nearest import nearest
from kgot_lab.similarity.blocks import BLOCK_SIDE, Effort, fastest_thread_count, measure_product_seconds
from kgot_lab.similarity.delta import Thresholds
from kgot_lab.similarity.join import delta_pairs, similar_pairs

_SHAPES = tuple((side, side) for side in (512, 1024, BLOCK_SIDE, 2048, 4096))
_BARS = {"share": 0.85, "similar_s": 45, "delta_s": 90}
_K = 10


def _clocks() -> NDArray[np.floating[Any]]:
    """The time on the wall, and the time that this process has computed: on one thread of an idle computer
    they go together.
    """
    return np.array([time.perf_counter(), time.process_time()])


class _Calibration:
    """Multiplies two blocks of the join's shape between the blocks of a join, twice a second, and says at
    what rate.
    """

    def __init__(self, dimension: int) -> None:
        chance = np.random.default_rng(9)
        self.left, self.right = (
            chance.standard_normal((BLOCK_SIDE, dimension), dtype=np.float32) for _ in range(2)
        )
        self.room = np.empty((BLOCK_SIDE, BLOCK_SIDE), np.float32)
        self.rounds: list[NDArray[np.floating[Any]]] = []
        self.spent, self.due = np.zeros(2), 0.0

    def __call__(self, done: int = 0, total: int = 0) -> None:
        """A round of five products, if it is time for one."""
        began = _clocks()
        if began[0] < self.due:
            return
        times = []
        for _ in range(5):
            start = _clocks()
            np.matmul(self.left, self.right.T, out=self.room)
            times.append(_clocks() - start)
        self.rounds.append(np.median(times, axis=0))
        self.due = time.perf_counter() + 0.5
        self.spent += _clocks() - began

    @property
    def rates(self) -> NDArray[np.floating[Any]]:
        """Pairs a second by both clocks: of the mean of the rounds, as the join lives through good and bad
        moments too.
        """
        return np.asarray(BLOCK_SIDE * BLOCK_SIDE / np.mean(self.rounds, axis=0))


def _measured(
    join: Callable[..., Any], pairs: int, dimension: int, repeats: int, products: int = 1
) -> dict[str, Any]:
    """Seconds, pairs a second and share of the calibrated rate: medians over some runs. `products`: matrices
    that are multiplied whole.

    `share` goes by the wall; `cpu_share` by the time computed, which a computer that does other work at the
    same time disturbs less.
    """
    runs = []
    for _ in range(repeats):
        calibration = _Calibration(dimension)
        with threadpool_limits(1, user_api="blas"):
            calibration()
            before = calibration.spent.copy()
            began = _clocks()
            found = join(effort=Effort(threads=1, progress=calibration))
            seconds = _clocks() - began - (calibration.spent - before)
            calibration.due = 0.0
            calibration()
        runs.append((*(products * pairs / seconds / calibration.rates), *seconds, calibration.rates[0]))
    share, cpu_share, wall, cpu, rate = np.median(runs, axis=0).tolist()
    row = {
        "seconds": round(wall, 3),
        "cpu_seconds": round(cpu, 3),
        "pairs_per_s": round(pairs / wall),
        "calibrated_pairs_per_s": round(rate),
    }
    row |= {
        "share": round(share, 4),
        "cpu_share": round(cpu_share, 4),
        "shares": [round(run[0], 4) for run in runs],
    }
    return {**row, "products": products, "found": len(found), "dropped": found.dropped}


def _peak_megabytes(name: str, count: int, options: dict[str, Any]) -> tuple[float, float]:
    """What a join takes in a fresh process beyond its vectors and the BLAS's own buffers: as Python traces
    it, and as the process grows.
    """
    join, _ = _lane(name, count)
    measure_product_seconds(1)
    ctypes.CDLL(None).malloc_trim(0)  # so that nothing freed before is used again unseen
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts again
    before = _resident("VmRSS")
    tracemalloc.start()
    join(**options)
    return round(tracemalloc.get_traced_memory()[1] / 2**20, 1), round(
        (_resident("VmHWM") - before) / 1024, 1
    )


def _resident(what: str) -> int:
    """A line of what the kernel says of this process's memory, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


def _lane(name: str, count: int, dimension: int = 384) -> tuple[Callable[..., Any], int]:
    """A join on so many vectors, and how many matrices it multiplies whole."""
    texts = clustered(count, dimension, 0)
    if name == "similar":
        return lambda **options: similar_pairs(texts, 0.7, **options), 1
    if name == "all":
        return lambda **options: similar_pairs(texts, -1, **options), 1
    if name == "nearest":
        return lambda **options: nearest(texts, _K, **options), 1
    alike = skeleton_vectors(count, dimension, name == "dense")
    thresholds = Thresholds(0.45, 0.08) if name == "dense" else Thresholds(0.6, 0.08)
    return lambda **options: delta_pairs(texts, alike, thresholds, **options), 2 if name == "dense" else 1


def join_scale(
    sizes: dict[int, int], names: tuple[str, ...], say: Callable[[dict[str, Any]], None]
) -> list[dict[str, Any]]:
    """Each join on each number of vectors, so many times."""
    rows = []
    for count, repeats in sizes.items():
        for name in names:
            join, products = _lane(name, count)
            row = {
                "join": name,
                "n": count,
                "d": 384,
                **_measured(join, count * (count - 1) // 2, 384, repeats, products),
            }
            rows.append(row)
            say(row)
    return rows


def join_dimensions(count: int) -> list[dict[str, Any]]:
    """Short and long vectors, as information."""
    rows = []
    for dimension in (256, 3072):
        for name in ("similar", "nearest", "delta", "dense"):
            join, products = _lane(name, count, dimension)
            rows.append(
                {
                    "join": name,
                    "n": count,
                    "d": dimension,
                    **_measured(join, count * (count - 1) // 2, dimension, 3, products),
                }
            )
    return rows


def join_memory(count: int) -> list[dict[str, Any]]:
    """How far the resident memory grows against the bound, each in a process of its own; also where all pairs
    pass.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    rows = []
    for megabytes in (128, 256, 512):
        for name, size in (
            ("similar", count),
            ("nearest", count),
            ("dense", count),
            ("all", min(count, 10_000)),
        ):
            options = {"effort": Effort(megabytes << 20, threads=1)} | (
                {} if name == "nearest" else {"most": 100_000}
            )
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
                traced, grown = fresh.submit(_peak_megabytes, name, size, options).result()
            rows.append(
                {
                    "join": name,
                    "n": size,
                    "bound_mb": megabytes,
                    "traced_peak_mb": traced,
                    "process_grew_mb": grown,
                }
            )
    return rows


def join_on_dask(count: int) -> list[dict[str, Any]]:
    """Two workers on this computer against one process, one thread each; the result is compared too."""
    distributed: Any = import_module("distributed")

    rows = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        for name in ("similar", "nearest", "dense"):
            join, _ = _lane(name, count)
            (alone, one), (shared, two) = (
                _timed(join, effort=Effort(threads=1)),
                _timed(join, effort=Effort(client=client)),
            )
            same = all(np.array_equal(getattr(one, column), getattr(two, column)) for column in vars(one))
            rows.append(
                {"join": name, "n": count, "one_process_s": alone, "two_workers_s": shared, "same": same}
            )
    return rows


def join_approximately(count: int) -> list[dict[str, Any]]:
    """The approximate mode on one thread: seconds, the recall's sample among them, and the recall."""
    texts, alike, rows = clustered(count, 384, 0), skeleton_vectors(count, 384, False), []
    for effort in (64, 128):
        seconds, found = _timed(approximate_nearest, texts, _K, effort=IndexEffort(effort))
        rows.append(
            {
                "join": "nearest",
                "n": count,
                "k": _K,
                "effort": effort,
                "seconds": seconds,
                "recall": round(found.recall, 4),
            }
        )
    seconds, found = _timed(approximate_delta_pairs, texts, alike, Thresholds(0.6, 0.08), k=20)
    rows.append(
        {
            "join": "delta",
            "n": count,
            "k": 20,
            "effort": 64,
            "seconds": seconds,
            "recall": round(found.recall, 4),
        }
    )
    return rows


def _timed(work: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work(*given, **options)
    return round(time.perf_counter() - began, 2), result


def join_machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    blas = [
        f"{library['internal_api']} {library['version']} {library.get('architecture', '')}"
        for library in threadpool_info()
    ]
    rates = {
        f"{threads} threads, {rows} x {columns}": round(
            rows * columns / measure_product_seconds(threads, 384, rows, columns) / 1e6, 1
        )
        for threads in sorted({1, os.cpu_count() or 1})
        for rows, columns in _SHAPES
    }
    facts = {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": blas[:1],
    }
    return {
        **facts,
        "threads_chosen": fastest_thread_count(),
        "million_pairs_per_s_of_sgemm_at_384": rates,
        "date": date.today().isoformat(),
    }


def join_bars(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """Which of the bars are reached."""
    large = {row["join"]: row for row in rows if row["n"] == 100_000}
    reached = {
        f"share of {row['join']} at {row['n']:,} >= {_BARS['share']}": row["share"] >= _BARS["share"]
        for row in rows
    }
    if large:
        reached["similar at 100,000 under 45 s"] = large["similar"]["seconds"] < _BARS["similar_s"]
        reached["delta at 100,000 under 90 s"] = (
            max(large["delta"]["seconds"], large["dense"]["seconds"]) < _BARS["delta_s"]
        )
    return reached
