"""Analogies to search for: each query is a text, and what it should find is the texts that are analogous to
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from benchmarks.structure.analogies import LENGTHS, choices, jsonl_rows, read_test_ids
from kgot_lab.errors import UnknownName
from kgot_lab.evaluation.dataset import Dataset, content_id
from kgot_lab.types import Document, Query


@dataclass(frozen=True, repr=False)
class Retrieval:
    """A data set to search, and the ids of the documents that each query has to choose from."""

    dataset: Dataset
    pools: Mapping[str, tuple[str, ...]]

    def only(self, ids: Collection[str]) -> Retrieval:
        """The same documents with some of the queries."""
        part = self.dataset.only(ids)
        return replace(self, dataset=part, pools={query.id: self.pools[query.id] for query in part.queries})

    @property
    def dev(self) -> Retrieval:
        """The queries one may look at and tune on."""
        return self.only({query.id for query in self.dataset.queries} - self.dataset.test_ids)

    @property
    def held_out(self) -> Retrieval:
        """The test queries."""
        return self.only(self.dataset.test_ids)

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text of the documents and the queries once, in the order of the alphabet."""
        return tuple(
            sorted(
                {document.text for document in self.dataset.documents}
                | {query.text for query in self.dataset.queries}
            )
        )

    def __repr__(self) -> str:
        sizes = {len(pool) for pool in self.pools.values()}
        span = f"{min(sizes):,}" + f" to {max(sizes):,}" * (len(sizes) > 1) if sizes else "0"
        return f"{repr(self.dataset).removesuffix('>')}; {span} to choose from>"


def retrieval(name: str) -> Retrieval:
    """A collection to find analogies in, by its name, one of RETRIEVALS; raises UnknownName."""
    if name not in RETRIEVALS:
        raise UnknownName("collection of analogies", name, RETRIEVALS)
    return RETRIEVALS[name]()


def _storyanalogy() -> Retrieval:
    """The distinct choices of all questions, the right one of which is relevant. A source that is a choice
    elsewhere never finds itself.
    """
    asked = choices("storyanalogy-mc")
    documents = _documents(text for question in asked.questions for text in question.choices)
    ids = [document.id for document in documents]
    queries = tuple(Query(question.source, question.id) for question in asked.questions)
    qrels = {question.id: {_id(question.choices[question.answer]): 1} for question in asked.questions}
    pools = {query.id: tuple(id for id in ids if id != _id(query.text)) for query in queries}
    return Retrieval(
        Dataset("storyanalogy-mc pool", documents, queries, qrels, test_ids=asked.test_ids), pools
    )


def _analobench(length: str, *, task: bool) -> Retrieval:
    """Every item asks for its cluster mates: of the 200 options that the task T2 gives it, or of the whole
    corpus without itself.
    """
    rows = jsonl_rows("analobench/corpus.jsonl.gz")
    texts = {row["_id"]: row[length.lower()] for row in rows}
    # the file stands in the order of the clusters, which would tell a tie
    ids = {own: _id(text) for own, text in texts.items()}
    queries = tuple(Query(texts[row["_id"]], row["_id"]) for row in rows)
    if task:
        asked = {
            row["query"]: (row["options"], row["relevant"]) for row in jsonl_rows("analobench/t2.jsonl.gz")
        }
    else:
        asked = {
            row["_id"]: _others(row["_id"], {row["_id"]: row["cluster"] for row in rows}) for row in rows
        }
    pools = {query.id: tuple(sorted(ids[option] for option in asked[query.id][0])) for query in queries}
    qrels = {query.id: {ids[mate]: 1 for mate in asked[query.id][1]} for query in queries}
    name = f"analobench {'T2 ' * task}{length}"
    return Retrieval(
        Dataset(name, _documents(texts.values()), queries, qrels, test_ids=read_test_ids("analobench")), pools
    )


def _others(own: str, cluster_of: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """All items but one, and those of them that are of its cluster."""
    others = [id for id in cluster_of if id != own]
    return others, [id for id in others if cluster_of[id] == cluster_of[own]]


def _parallelparc() -> Retrieval:
    """The targets of the human-checked pairs and their broken versions; a source should find its own target.

    Texts of other pairs that share a subject with it are out of its pool: people judged each source with its
    own target alone, so to call those relevant would be a guess, and to call them wrong would be an error as
    often as not. Its own broken target stays in.
    """
    rows = jsonl_rows("parallelparc/gold.jsonl.gz")
    documents = _documents(row[side] for row in rows for side in ("target", "distractor"))
    subjects = {row["_id"]: {row["source_subject"], row["target_subject"]} for row in rows}
    pools: dict[str, tuple[str, ...]] = {}
    for row in rows:
        related = [
            other for other in rows if other is not row and subjects[other["_id"]] & subjects[row["_id"]]
        ]
        out = {_id(other[side]) for other in related for side in ("target", "distractor")}
        pools[row["_id"]] = tuple(document.id for document in documents if document.id not in out)
    queries = tuple(Query(row["source"], row["_id"]) for row in rows)
    qrels = {row["_id"]: {_id(row["target"]): 1} for row in rows}
    types = {row["_id"]: row["analogy_type"] for row in rows}
    test = read_test_ids("parallelparc") & set(subjects)
    return Retrieval(Dataset("parallelparc pool", documents, queries, qrels, types, test_ids=test), pools)


def _whole(length: str) -> Callable[[], Retrieval]:
    return lambda: _analobench(length, task=False)


def _task(length: str) -> Callable[[], Retrieval]:
    return lambda: _analobench(length, task=True)


RETRIEVALS: Mapping[str, Callable[[], Retrieval]] = {
    "storyanalogy-mc pool": _storyanalogy,
    **{f"analobench T2 {length}": _task(length) for length in LENGTHS},
    **{f"analobench {length}": _whole(length) for length in LENGTHS},
    "parallelparc pool": _parallelparc,
}


def _documents(texts: Iterable[str]) -> tuple[Document, ...]:
    """Each text once, in the order of the ids."""
    return tuple(Document(id, text) for id, text in sorted({_id(text): text for text in texts}.items()))


def _id(text: str) -> str:
    """An id that says nothing but which text it is."""
    return content_id("", text)
