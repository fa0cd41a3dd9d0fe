"""Data sets to measure retrieval on: documents, queries, and which documents are relevant to which query."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from kgot_lab.bundled import bundled
from kgot_lab.errors import UnknownName
from kgot_lab.types import Document, Json, Query, Triple

Qrels = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade; above 0 is relevant


@dataclass(frozen=True, repr=False)
class Dataset:
    """Documents, queries and qrels, with what more is known of them.

    `types` says of what kind a query is; `triples` holds what a language model took from each document; `locked` are the queries
    that are opened once, at the end; `classes` names the equivalence class of a document, where two may stand for the same thing.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    qrels: Qrels
    types: Mapping[str, str] = field(default_factory=dict)
    triples: Mapping[str, tuple[Triple, ...]] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)

    def only(self, ids: Collection[str]) -> Dataset:
        """The same documents with some of the queries."""
        kept = tuple(query for query in self.queries if query.id in ids)
        return replace(self, queries=kept, qrels={query.id: self.qrels[query.id] for query in kept})

    @property
    def develop(self) -> Dataset:
        """The queries one may look at and tune on."""
        return self.only([query.id for query in self.queries if query.id not in self.locked])

    @property
    def held_out(self) -> Dataset:
        """The locked queries."""
        return self.only(self.locked)

    def __repr__(self) -> str:
        relevant = sum(grade > 0 for grades in self.qrels.values() for grade in grades.values())
        return f"<{self.name}: {len(self.queries)} queries, {len(self.documents):,} documents, {relevant} relevant pairs>"


def load(name: str) -> Dataset:
    """A data set by its name; raises UnknownName."""
    if name not in BUNDLED:
        raise UnknownName("data set", name, BUNDLED)
    return BUNDLED[name]()


# --- bundled ----------------------------------------------------------------------------------------------------------


def _hotpotqa() -> Dataset:
    return _read("hotpotqa", "hotpotqa-train-100", lambda row: f"{row['type']}")


def _musique() -> Dataset:
    return _read("musique", "musique-train-100", lambda row: f"{row['hops']} hops")


def _twowiki() -> Dataset:
    return _read("2wiki", "2wiki-fastgraphrag-101", lambda row: "")


def _musique_steps() -> Dataset:
    whole = _musique()
    rows = list(_rows("musique-train-100/subqueries.jsonl.gz"))
    queries = tuple(Query(row["text"], row["_id"]) for row in rows)
    qrels = _qrels("musique-train-100/subqueries_qrels.tsv", _new_ids("musique-train-100"))
    locked = frozenset(row["_id"] for row in rows if row["parent"] in whole.locked)
    return replace(whole, name="musique-steps", queries=queries, qrels=qrels, locked=locked, types={})


BUNDLED: Mapping[str, Callable[[], Dataset]] = {
    "musique": _musique,
    "musique-steps": _musique_steps,
    "2wiki": _twowiki,
    "hotpotqa": _hotpotqa,
}


def _read(name: str, folder: str, type_of: Callable[[Json], str]) -> Dataset:
    rows = {row["_id"]: row for row in _rows(f"{folder}/corpus.jsonl.gz")}
    ids = _new_ids(folder)
    documents = sorted((Document(ids[old], row["text"], row["title"]) for old, row in rows.items()), key=lambda document: document.id)
    questions = list(_rows(f"{folder}/queries.jsonl.gz"))
    triples: dict[str, tuple[Triple, ...]] = {}
    if folder == "musique-train-100":
        for row in _rows(f"{folder}/openie_gpt35.jsonl.gz"):
            triples[ids[row["doc_id"]]] = tuple(Triple(*parts) for parts in row["triples"])
    return Dataset(
        name,
        tuple(documents),
        tuple(Query(row["text"], row["_id"]) for row in questions),
        _qrels(f"{folder}/qrels.tsv", ids),
        {row["_id"]: type_of(row) for row in questions},
        triples,
        frozenset(json.loads(bundled(f"{folder}/split.json").read_text(encoding="utf-8"))["locked"]),
    )


def _new_ids(folder: str) -> dict[str, str]:
    """Ids from a hash of the content: the files number the passages in the order of the questions, which would tell a tie where to look."""
    return {row["_id"]: content_id(row["title"], row["text"]) for row in _rows(f"{folder}/corpus.jsonl.gz")}


def content_id(title: str, text: str) -> str:
    """An id that says nothing but which text it is."""
    return "p" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]


def _qrels(path: str, ids: Mapping[str, str]) -> Qrels:
    qrels: dict[str, dict[str, int]] = {}
    for line in bundled(path).read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[ids[document]] = int(grade)
    return qrels


def _rows(name: str) -> list[Json]:
    with gzip.open(bundled(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
