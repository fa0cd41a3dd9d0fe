"""How much faster the lanes answer than by the plain way they replaced, both in turn, so that a busy computer
slows both alike.

    python -m benchmarks.join.lanes                       all, about ten minutes and 5 GB; writes
    benchmarks/results/lanes.json python -m benchmarks.join.lanes --only words threads  some of: words threads
    walk near crowded python -m benchmarks.join.lanes --size 100000         fewer passages and vectors; writes
    nothing

words: a BM25 query with its whole ranking, beside bm25s with numba where both are installed. threads: one
query vector times 6,119, beside the BLAS at its own number of threads. walk: PageRank over titles, and over a
chance graph of hubs at a larger error. near: the nearest of many vectors by signs first. crowded: a delta
join in which millions of pairs pass. Times are medians in milliseconds; "times" is the plain way's through
ours.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.join.join_speed import join_machine
from benchmarks.join.join_vectors import clustered, skeleton_vectors
from benchmarks.recall.growth import synthetic
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.embedder import SignBits, argsort_descending, row_products
from kgot_lab.graph import PropertyGraph
from kgot_lab.retrieval.entity_linking import NameIndex, title_graph
from kgot_lab.retrieval.lexical import bm25
from kgot_lab.retrieval.pagerank import RandomWalk, first_hits, titles_in_question
from kgot_lab.similarity.blocks import BLOCK_SIDE, Effort
from kgot_lab.similarity.delta import Thresholds
from kgot_lab.similarity.join import delta_pairs
from kgot_lab.text.words import searched_words
from kgot_lab.types import Edge, Node, Ranking, full_text

REPORT = Path(__file__).parents[1] / "results" / "lanes.json"
Work = Callable[[Any], object]


def in_turn(ways: dict[str, Work], asked: Sequence[Any], rounds: int = 5) -> dict[str, float]:
    """The median milliseconds that each way takes for a query, after a round that is not counted, and how
    often as long the first takes.
    """
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for each in asked:
            for name, way in ways.items():
                start = time.perf_counter()
                way(each)
                taken[name] += [1000 * (time.perf_counter() - start)] * bool(number)
    medians = {name: statistics.median(times) for name, times in taken.items()}
    first, *others = medians
    told = {f"{name} ms": round(median, 4) for name, median in medians.items()}
    return told | {f"times {name}": round(medians[first] / medians[name], 2) for name in others}


def words(size: int) -> list[dict[str, Any]]:
    """BM25 on two bundled sets."""
    rows = []
    for name in ("musique", "2wiki"):
        data = load_dataset(name).dev
        stage, asked = bm25(data.documents), [query.text for query in data.queries]
        found = {text: by_row(stage.search(text)) for text in asked}
        ways: dict[str, Work] = {"lane": stage.search} | by_numba(data.documents)
        sorts: dict[str, Work] = {
            "stable sort": lambda text, found=found: np.argsort(-found[text], kind="stable"),
            "our sort": lambda text, found=found: argsort_descending(found[text]),
        }
        row = {
            "set": name,
            "passages": len(data.documents),
            "hits": round(statistics.mean(map(len, found.values()))),
        }
        rows.append(row | in_turn(ways, asked) | in_turn(sorts, asked))
    return rows


def by_row(ranking: Ranking) -> Any:
    """The scores of a ranking in the order of their documents, as they are before they are sorted."""
    return np.array([score for _, score in sorted(ranking.hits)], np.float32)


def by_numba(documents: Sequence[Any]) -> dict[str, Work]:
    """What bm25s does with numba for one query at a time, words and k best hits; nothing where numba is not
    installed.
    """
    try:
        import numba  # noqa: F401
    except ImportError:
        return {}
    import bm25s

    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numba")
    index.index([searched_words(full_text(document)) for document in documents], show_progress=False)

    def best(text: str, k: int) -> object:
        return index.retrieve([searched_words(text)], k=k, show_progress=False, n_threads=1)

    return {f"bm25s numba, {k}": partial(best, k=k) for k in (10, 100, 1_000)}


def threads(size: int) -> list[dict[str, Any]]:
    """The products of a query with the passages of a set, which `follow` asks for six times."""
    vectors = clustered(6_119, 384, 0)
    ways: dict[str, Work] = {
        "BLAS": lambda row: vectors @ vectors[row],
        "blocks": lambda row: row_products(vectors, vectors[row]),
    }
    return [{"rows": len(vectors)} | in_turn(ways, range(100))]


def walk(size: int) -> list[dict[str, Any]]:
    """PageRank from the seeds of synthetic questions, and from chance seeds of a graph with hubs."""
    data = synthetic(size, 20)
    lane, titles, graph = bm25(data.documents) % 1_000, NameIndex(data.documents), title_graph(data.documents)
    seeds, asked = (first_hits(5), titles_in_question(titles)), []
    for query in data.queries:
        start: dict[int, float] = {}
        for part in seeds:
            for id, weight in part.weights(lane(Ranking(query, ()))).items():
                start[graph.row(id)] = start.get(graph.row(id), 0.0) + weight
        asked.append((np.array(list(start)), np.array(list(start.values()))))
    rows = [{"graph": "titles", **spread(graph, asked, 1e-9)}]
    del data, lane, titles, graph
    chance, nodes = np.random.default_rng(0), size // 10
    ends = zip(
        chance.integers(nodes, size=3 * nodes).tolist(),
        (nodes * chance.random(3 * nodes) ** 3).astype(int).tolist(),
        strict=True,
    )
    hubs = PropertyGraph.of(
        [Node(str(n)) for n in range(nodes)], [Edge(str(a), "to", str(b)) for a, b in dict.fromkeys(ends)]
    )
    asked = [(chance.choice(nodes, 6, replace=False), chance.random(6) + 0.1) for _ in range(10)]
    return rows + [{"graph": "hubs", **spread(hubs, asked, error)} for error in (1e-9, 1e-4, 1e-3, 1e-2)]


def spread(graph: PropertyGraph, asked: Sequence[Any], error: float) -> dict[str, Any]:
    """The walk by rounds over all and from the seeds, and how many of its first ten and hundred are the same,
    in the same places.
    """
    steps = RandomWalk(graph, 0.5)

    def over_all(start: Any) -> Any:
        weights = np.zeros(len(graph))
        weights[start[0]] = start[1]
        return steps(weights)

    agreed = {10: 0.0, 100: 0.0}
    for start in asked:
        rows, shares = steps.reached_shares(*start, error)
        found, exact = rows[argsort_descending(shares)], over_all(start)
        best = argsort_descending(exact)
        for k in agreed:  # passages with equal shares may change places
            agreed[k] += (
                float(np.isclose(exact[found[:k]], exact[best[: len(found[:k])]], rtol=0, atol=1e-12).sum())
                / k
                / len(asked)
            )
    ways: dict[str, Work] = {
        "rounds over all": over_all,
        "from the seeds": lambda start: steps.reached_shares(*start, error),
    }
    told = {f"same place of {k}": round(share, 4) for k, share in agreed.items()}
    return {
        "nodes": len(graph),
        "edges": len(graph.sources),
        "error": error,
        **told,
        **in_turn(ways, asked, 2),
    }


def near(size: int) -> list[dict[str, Any]]:
    """The ten nearest among clustered vectors, of queries that are vectors with as much noise as a
    paraphrase.
    """
    vectors, chance = clustered(size, 384, 0), np.random.default_rng(5)
    asked = (
        vectors[chance.integers(size, size=40)]
        + 0.6 * chance.standard_normal((40, 384), np.float32) / 384**0.5
    )
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    start = time.perf_counter()
    bits, rows = SignBits(vectors), []
    seconds = time.perf_counter() - start

    def exact(query: Any) -> Any:
        cosines = row_products(vectors, query)
        found = np.flatnonzero(cosines >= np.partition(cosines, -10)[-10])
        return found[argsort_descending(cosines[found])][:10]

    def by_signs(query: Any, candidates: int) -> Any:
        found = bits.nearest(query, candidates)
        return found[argsort_descending(row_products(vectors[found], query))][:10]

    with threadpool_limits(1, user_api="blas"):
        for candidates in (500, 2_000):
            some = partial(by_signs, candidates=candidates)
            recall = statistics.mean(
                len(set(exact(query).tolist()) & set(some(query).tolist())) / 10 for query in asked
            )
            row = {
                "vectors": size,
                "candidates": candidates,
                "index s": round(seconds, 1),
                "recall@10": round(recall, 4),
            }
            rows.append(row | in_turn({"exact": exact, "by signs": some}, asked, 2))
    return rows


def crowded(size: int) -> list[dict[str, Any]]:
    """Delta joins in which so many pairs pass: the time computed, as a share of the products of both matrices
    alone.
    """
    rows = []
    for count in (10_000, 20_000) if size >= 1_000_000 else (4_000,):
        texts, alike = clustered(count, 384, 0), skeleton_vectors(count, 384, True)
        start = time.process_time()
        found = delta_pairs(texts, alike, Thresholds(0.45, 0.08), effort=Effort(threads=1))
        seconds = time.process_time() - start
        products = count * (count - 1) / BLOCK_SIDE**2 * computed_a_product(texts)
        passed = len(found) + found.dropped
        rows.append(
            {
                "vectors": count,
                "pairs passed": passed,
                "cpu s": round(seconds, 2),
                "share of SGEMM": round(products / seconds, 3),
            }
        )
    return rows


def computed_a_product(vectors: Any) -> float:
    """The seconds computed for the product of two blocks, the median of some; the time on the wall would
    count what others do.
    """
    taken, room = [], np.empty((BLOCK_SIDE, BLOCK_SIDE), np.float32)
    with threadpool_limits(1, user_api="blas"):
        for _ in range(15):
            start = time.process_time()
            np.matmul(vectors[:BLOCK_SIDE], vectors[-BLOCK_SIDE:].T, out=room)
            taken.append(time.process_time() - start)
    return statistics.median(taken)


PARTS = {part.__name__: part for part in (words, threads, walk, near, crowded)}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": join_machine()}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        for name in options.only:
            report[name] = PARTS[name](options.size)
            print(f"\n{name}", *(json.dumps(row) for row in report[name]), sep="\n", flush=True)
    if options.size == 1_000_000:
        kept = json.loads(REPORT.read_text()) if REPORT.exists() else {}
        REPORT.write_text(json.dumps({**kept, **report}, indent=1) + "\n")


if __name__ == "__main__":
    main()
