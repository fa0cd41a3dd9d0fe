"""How fast pairs of similar vectors are found, as a share of the rate at which this computer multiplies matrices.

python benchmarks/join.py           10,000, 30,000 and 100,000 vectors: about half an hour; writes benchmarks/results/join.json
python benchmarks/join.py --quick   a minute, 4,000 and 10,000 vectors; writes nothing
python benchmarks/join.py --only nearest delta   some of: similar nearest delta dense dimensions memory dask approximate

One core: SGEMM on one thread, blocks of the join's shape, is the ceiling; each pair counts once. A join of two matrices has half of it.
The products that calibrate run between the blocks of a join, twice a second, and their time is taken off: so both meet the same clock.
Vectors are of chance but clustered: a common direction, sqrt(n) topics, n / 20 events within topics, and a rest, all with a falling
spectrum (the standard deviation of dimension j is j^-.4). At n = 6,119 that is near to the MiniLM vectors of 2wiki-fastgraphrag-101.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from kgot_lab.bundled import bundled
from kgot_lab.pairs.bands import Thresholds
from kgot_lab.pairs.blocks import SIDE
from kgot_lab.pairs.join import delta_pairs, nearest, similar_pairs
from kgot_lab.pairs.nearby import IndexEffort, approximate, approximate_delta
from kgot_lab.pairs.work import Effort, best_threads, seconds_a_product

REPORT = Path(__file__).parent / "results" / "join.json"
SHAPES = tuple((side, side) for side in (512, 1024, SIDE, 2048, 4096))
BARS = {"share": 0.85, "similar_s": 45, "delta_s": 90}
K = 10


# --- vectors ------------------------------------------------------------------------------------------------------------


def clustered(count: int, dimension: int, seed: int, common=0.25, topic=0.4, event=0.5) -> np.ndarray:
    """Vectors of length 1 with a share of what is common to all, to a topic and to an event."""
    chance = np.random.default_rng(seed)
    spectrum = np.arange(1, dimension + 1) ** -0.4
    spectrum = (spectrum / np.linalg.norm(spectrum)).astype(np.float32)

    def some(rows: int) -> np.ndarray:
        return chance.standard_normal((rows, dimension), dtype=np.float32) * spectrum

    events = event * some(max(1, count // 20))
    events += topic * some(max(1, round(count**0.5)))[chance.integers(0, max(1, round(count**0.5)), len(events))]
    vectors = events[chance.integers(0, len(events), count)]
    vectors += (1 - common**2 - topic**2 - event**2) ** 0.5 * some(count)
    vectors += common * some(1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def skeletons(count: int, dimension: int, alike: bool) -> np.ndarray:
    """Vectors for skeletons: as clustered as texts, or (alike) with much in common, as short abstract sentences have it."""
    return clustered(count, dimension, 2, *((0.5, 0.35, 0.4) if alike else (0.25, 0.4, 0.5)))


def described(vectors: np.ndarray) -> dict[str, float]:
    """How similar vectors are: all pairs of a sample with all others, and the first, tenth and fiftieth neighbour."""
    sample = vectors[:500]
    cosines = sample @ vectors.T
    cosines[np.arange(len(sample)), np.arange(len(sample))] = np.nan
    lists = -np.sort(-np.nan_to_num(cosines, nan=-1), axis=1)
    told = {"mean": np.nanmean(cosines), "sd": np.nanstd(cosines), "share >= .45": np.nanmean(cosines >= 0.45)}
    told |= {f"neighbour {place}": np.median(lists[:, place - 1]) for place in (1, 10, 50)}
    return {name: round(float(value), 4) for name, value in told.items()}


# --- the rate of this computer, and a run measured against it ---------------------------------------------------------------


def clocks() -> np.ndarray:
    """The time on the wall, and the time that this process has computed: on one thread of an idle computer they go together."""
    return np.array([time.perf_counter(), time.process_time()])


class Calibration:
    """Multiplies two blocks of the join's shape between the blocks of a join, twice a second, and says at what rate."""

    def __init__(self, dimension: int) -> None:
        chance = np.random.default_rng(9)
        self.left, self.right = (chance.standard_normal((SIDE, dimension), dtype=np.float32) for _ in range(2))
        self.room = np.empty((SIDE, SIDE), np.float32)
        self.rounds: list[np.ndarray] = []
        self.spent, self.due = np.zeros(2), 0.0

    def __call__(self, done: int = 0, total: int = 0) -> None:
        """A round of five products, if it is time for one."""
        began = clocks()
        if began[0] < self.due:
            return
        times = []
        for _ in range(5):
            start = clocks()
            np.matmul(self.left, self.right.T, out=self.room)
            times.append(clocks() - start)
        self.rounds.append(np.median(times, axis=0))
        self.due = time.perf_counter() + 0.5
        self.spent += clocks() - began

    @property
    def rates(self) -> np.ndarray:
        """Pairs a second by both clocks: of the mean of the rounds, as the join lives through good and bad moments too."""
        return SIDE * SIDE / np.mean(self.rounds, axis=0)


def measured(join: Callable[..., Any], pairs: int, dimension: int, repeats: int, products: int = 1) -> dict[str, Any]:
    """Seconds, pairs a second and share of the calibrated rate: medians over some runs. `products`: matrices that are multiplied whole.

    `share` goes by the wall; `cpu_share` by the time computed, which a computer that does other work at the same time disturbs less.
    """
    runs = []
    for _ in range(repeats):
        calibration = Calibration(dimension)
        with threadpool_limits(1, user_api="blas"):
            calibration()
            before = calibration.spent.copy()
            began = clocks()
            found = join(effort=Effort(threads=1, progress=calibration))
            seconds = clocks() - began - (calibration.spent - before)
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
    row |= {"share": round(share, 4), "cpu_share": round(cpu_share, 4), "shares": [round(run[0], 4) for run in runs]}
    return {**row, "products": products, "found": len(found), "dropped": found.dropped}


def peak_megabytes(name: str, count: int, options: dict[str, Any]) -> tuple[float, float]:
    """What a join takes in a fresh process beyond its vectors and the BLAS's own buffers: as Python traces it, and as the process grows."""
    join, _ = lane(name, count)
    seconds_a_product(1)
    ctypes.CDLL(None).malloc_trim(0)  # so that nothing freed before is used again unseen
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before = resident("VmRSS")
    tracemalloc.start()
    join(**options)
    return round(tracemalloc.get_traced_memory()[1] / 2**20, 1), round((resident("VmHWM") - before) / 1024, 1)


def resident(what: str) -> int:
    """A line of what the kernel says of this process's memory, in kB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(what)))


# --- the experiments ----------------------------------------------------------------------------------------------------


def lane(name: str, count: int, dimension: int = 384) -> tuple[Callable[..., Any], int]:
    """A join on so many vectors, and how many matrices it multiplies whole."""
    texts = clustered(count, dimension, 0)
    if name == "similar":
        return lambda **options: similar_pairs(texts, 0.7, **options), 1
    if name == "all":
        return lambda **options: similar_pairs(texts, -1, **options), 1
    if name == "nearest":
        return lambda **options: nearest(texts, K, **options), 1
    alike = skeletons(count, dimension, name == "dense")
    thresholds = Thresholds(0.45, 0.08) if name == "dense" else Thresholds(0.6, 0.08)
    return lambda **options: delta_pairs(texts, alike, thresholds, **options), 2 if name == "dense" else 1


def scale(sizes: dict[int, int], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Each join on each number of vectors, so many times."""
    rows = []
    for count, repeats in sizes.items():
        for name in names:
            join, products = lane(name, count)
            row = {"join": name, "n": count, "d": 384, **measured(join, count * (count - 1) // 2, 384, repeats, products)}
            rows.append(row)
            rates = f"{row['pairs_per_s'] / 1e6:.1f} M pairs/s, share {row['share']:.3f} (cpu {row['cpu_share']:.3f})"
            rates = f"{row['pairs_per_s'] / 1e6:.1f} M pairs/s, share {row['share']:.3f} (cpu {row['cpu_share']:.3f})"
            print(f"{name:>8} {count:8,} {row['seconds']:8.2f} s, {rates}", flush=True)
    return rows


def dimensions(count: int) -> list[dict[str, Any]]:
    """Short and long vectors, as information."""
    rows = []
    for dimension in (256, 3072):
        for name in ("similar", "nearest", "delta", "dense"):
            join, products = lane(name, count, dimension)
            rows.append({"join": name, "n": count, "d": dimension, **measured(join, count * (count - 1) // 2, dimension, 3, products)})
    return rows


def memory(count: int) -> list[dict[str, Any]]:
    """How far the resident memory grows against the bound, each in a process of its own; also where all pairs pass."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    rows = []
    for megabytes in (128, 256, 512):
        for name, size in (("similar", count), ("nearest", count), ("dense", count), ("all", min(count, 10_000))):
            options = {"effort": Effort(megabytes << 20, threads=1)} | ({} if name == "nearest" else {"most": 100_000})
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
                traced, grown = fresh.submit(peak_megabytes, name, size, options).result()
            rows.append({"join": name, "n": size, "bound_mb": megabytes, "traced_peak_mb": traced, "process_grew_mb": grown})
    return rows


def dask(count: int) -> list[dict[str, Any]]:
    """Two workers on this computer against one process, one thread each; the result is compared too."""
    import distributed

    rows = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        for name in ("similar", "nearest", "dense"):
            join, _ = lane(name, count)
            (alone, one), (shared, two) = timed(join, effort=Effort(threads=1)), timed(join, effort=Effort(client=client))
            same = all(np.array_equal(getattr(one, column), getattr(two, column)) for column in vars(one))
            rows.append({"join": name, "n": count, "one_process_s": alone, "two_workers_s": shared, "same": same})
    return rows


def approximately(count: int) -> list[dict[str, Any]]:
    """The approximate mode on one thread: seconds, the recall's sample among them, and the recall."""
    texts, alike, rows = clustered(count, 384, 0), skeletons(count, 384, False), []
    for effort in (64, 128):
        seconds, found = timed(approximate, texts, K, effort=IndexEffort(effort))
        rows.append({"join": "nearest", "n": count, "k": K, "effort": effort, "seconds": seconds, "recall": round(found.recall, 4)})
    seconds, found = timed(approximate_delta, texts, alike, Thresholds(0.6, 0.08), k=20)
    rows.append({"join": "delta", "n": count, "k": 20, "effort": 64, "seconds": seconds, "recall": round(found.recall, 4)})
    return rows


def timed(work: Callable[..., Any], *given: Any, **options: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work(*given, **options)
    return round(time.perf_counter() - began, 2), result


# --- the report ---------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    blas = [f"{library['internal_api']} {library['version']} {library.get('architecture', '')}" for library in threadpool_info()]
    rates = {
        f"{threads} threads, {rows} x {columns}": round(rows * columns / seconds_a_product(threads, 384, rows, columns) / 1e6, 1)
        for threads in sorted({1, os.cpu_count() or 1})
        for rows, columns in SHAPES
    }
    facts = {"cpu": model, "cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__, "blas": blas[:1]}
    return {**facts, "threads_chosen": best_threads(), "million_pairs_per_s_of_sgemm_at_384": rates, "date": date.today().isoformat()}


def vectors_used() -> dict[str, Any]:
    """How similar the vectors of chance are, and the real ones they stand for."""
    real = np.load(bundled("2wiki-fastgraphrag-101/vectors.npz"))["matrix"].astype(np.float32)
    real /= np.linalg.norm(real, axis=1, keepdims=True)
    made = {
        "texts": clustered(6119, 384, 0),
        "skeletons, few alike": skeletons(6119, 384, False),
        "skeletons, many alike": skeletons(6119, 384, True),
    }
    return {name: described(vectors) for name, vectors in {"MiniLM, 2wiki-fastgraphrag-101": real, **made}.items()}


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as aligned text."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "shares"))
    lines = [
        names,
        *(
            [f"{row.get(name, ''):,}" if isinstance(row.get(name), int | float) else str(row.get(name, "")) for name in names]
            for row in rows
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def bars(rows: list[dict[str, Any]]) -> dict[str, bool]:
    """Which of the bars are reached."""
    large = {row["join"]: row for row in rows if row["n"] == 100_000}
    reached = {f"share of {row['join']} at {row['n']:,} >= {BARS['share']}": row["share"] >= BARS["share"] for row in rows}
    if large:
        reached["similar at 100,000 under 45 s"] = large["similar"]["seconds"] < BARS["similar_s"]
        reached["delta at 100,000 under 90 s"] = max(large["delta"]["seconds"], large["dense"]["seconds"]) < BARS["delta_s"]
    return reached


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a minute, nothing is written")
    parser.add_argument(
        "--only", nargs="+", default=["similar", "nearest", "delta", "dense", "dimensions", "memory", "dask", "approximate"]
    )
    options = parser.parse_args()
    names = tuple(name for name in ("similar", "nearest", "delta", "dense") if name in options.only)
    sizes = {4_000: 3, 10_000: 3} if options.quick else {10_000: 9, 30_000: 3, 100_000: 3}
    small, middle, large = (2_000, 4_000, 4_000) if options.quick else (10_000, 30_000, 100_000)
    experiments: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "scale": lambda: scale(sizes, names),
        "dimensions": lambda: dimensions(small),
        "memory": lambda: memory(middle),
        "dask": lambda: dask(middle),
        "approximate": lambda: approximately(large),
    }
    report: dict[str, Any] = {"machine": machine(), "vectors": vectors_used()}
    print(json.dumps(report, indent=1))
    for name, experiment in experiments.items():
        if name in options.only or (name == "scale" and names):
            report[name] = experiment()
            print(f"\n{name}\n{table(report[name])}", flush=True)
    report["bars"] = bars(report.get("scale", []))
    print("\n" + "\n".join(f"{'reached' if reached else 'MISSED':>8}  {bar}" for bar, reached in report["bars"].items()))
    if not options.quick:
        REPORT.write_text(json.dumps({**(json.loads(REPORT.read_text()) if REPORT.exists() else {}), **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
