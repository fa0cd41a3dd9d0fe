"""What other systems published for the bundled questions, and some of ours measured beside them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import results_path, run_missing
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.dataset import Dataset, content_id
from kgot_lab.evaluation.reports import PLAN, Report, derive_reports
from kgot_lab.evaluation.results import Plan, fingerprints, save_results
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.io.files import bundled_path
from kgot_lab.types import Hit, Json, Ranking

_DEEP = 8  # what the published systems gave
SYSTEMS = {
    "vdb": "vector database",
    "lightrag": "LightRAG",
    "nano": "nano-graphrag",
    "graph": "fast-graphrag",
}
PUBLISHED = Plan("vector database", primary="all@8", measures=("recall@2", "recall@5", "all@8"))
BESIDE_PUBLISHED = ("bm25", "embeddings", BASELINE, "pagerank, titles", "follow", "follow, sentences")


# what the published systems searched: the key that marks its passages and questions in the files of "2wiki"
_SUBSETS = {"2wiki-780": "in_101", "2wiki-421": "in_51"}


def load_published(name: str) -> Dataset:
    """A data set by name: also "2wiki-780" and "2wiki-421", the parts of 2wiki that the published systems
    searched, with all 101 questions or the first 51.
    """
    if name not in _SUBSETS:
        return load_dataset(name)
    mark, whole, ids = _SUBSETS[name], load_dataset("2wiki"), _ids()
    kept = {ids[row["_id"]] for row in _rows("2wiki-fastgraphrag-101/corpus.jsonl.gz") if row[mark]}
    asked = [row["_id"] for row in _rows("2wiki-fastgraphrag-101/queries.jsonl.gz") if row.get(mark, True)]
    documents = tuple(document for document in whole.documents if document.id in kept)
    test_ids = whole.test_ids.intersection(asked)
    return replace(whole.only(asked), name=name, documents=documents, isomorphic=(), test_ids=test_ids)


def compare_with_published(folder: Path, embedder: Embedder) -> list[Report]:
    """Some systems on the 780 passages that four published systems searched, eight deep, beside the rankings
    these published.
    """
    PUBLISHED.write_down(folder / PLAN)
    dataset = load_published("2wiki-780")
    for (size, system), rankings in published().items():
        if size == len(dataset.queries):
            hits = {ranking.query.id: tuple(ranking.hits) for ranking in rankings}
            unknown = Latency(float("nan"), float("nan"))
            said = "published by circlemind-ai/fast-graphrag, eight deep"
            path = results_path(folder, dataset, system)
            save_results(
                Run(system, said, dataset.name, _DEEP, hits, unknown, {}, fingerprints(dataset)), path
            )
    made = systems(dataset, embedder)
    run_missing(folder, dataset, {system: made[system] for system in BESIDE_PUBLISHED}, PUBLISHED, keep=_DEEP)
    return derive_reports(folder, load_published)


def published() -> dict[tuple[int, str], tuple[Ranking, ...]]:
    """What four published systems found, at most eight deep, for the 51 questions of "2wiki-421" and the 101
    of "2wiki-780".

    Keys are (51 or 101, one of SYSTEMS' names). A title the system garbled, or named twice, keeps its rank
    with an id that is no passage's, so that what stood behind it does not move up. Three hits of LightRAG are
    passages of "2wiki" that it did not search. Source: the results in the fast-graphrag repository.
    """
    ids = _ids()
    queries = {query.id: query for query in load_dataset("2wiki").queries}
    runs: dict[tuple[int, str], tuple[Ranking, ...]] = {}
    for row in _rows("2wiki-fastgraphrag-101/published_runs.jsonl.gz"):
        key, found = (row["subset"], SYSTEMS[row["system"]]), row["ranking"]
        hits = tuple(Hit(_slot(found, rank, ids), 1 / rank) for rank in range(1, len(found) + 1))
        runs[key] = (*runs.get(key, ()), Ranking(queries[row["query_id"]], hits, key[1]))
    return runs


def published_thousand() -> Mapping[str, tuple[Hit, ...]]:
    """The five passages that Psi-RAG found for each question of "2wiki-1000", best first, as its repository
    published them.

    Psi-RAG: a tree of summaries, qwen3-embedding, BM25, RRF, then Qwen3-Reranker-8B; one retrieval.
    """
    ids = _ids()
    rows = _rows("2wiki-1000/published_runs.jsonl.gz")
    return {
        row["query_id"]: tuple(Hit(ids[old], 1 / rank) for rank, old in enumerate(row["ranking"], 1))
        for row in rows
    }


def _slot(found: list[str | None], rank: int, ids: Mapping[str, str]) -> str:
    old = found[rank - 1]
    if old is None:
        return f"garbled title at rank {rank}"
    return f"repeated title at rank {rank}" if old in found[: rank - 1] else ids[old]


def _ids() -> dict[str, str]:
    rows = _rows("2wiki-fastgraphrag-101/corpus.jsonl.gz")
    return {row["_id"]: content_id(row["title"], row["text"]) for row in rows}


def _rows(name: str) -> list[Json]:
    with gzip.open(bundled_path(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
