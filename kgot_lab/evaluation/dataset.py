"""What retrieval is measured on: documents, queries, and which documents are relevant to which query."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral

from kgot_lab.errors import BadInput, described_value, shortly
from kgot_lab.types import Document, Edge, Query, Triple

Qrels = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade; above 0 is relevant

HIGHEST_GRADE = 1_000_000  # the measures count in a table with a place for each grade up to the highest


@dataclass(frozen=True, repr=False)
class Dataset:
    """Documents, queries and qrels, with what more is known of them.

    `types` says of what kind a query is; `triples` holds what a language model took from each document;
    `locked` are the queries that are opened last; `classes` names the equivalence class of a document, where
    two may stand for the same thing; `notes` says what was left out when the data were read; `isomorphic` are
    the delta edges computed between the documents; `groups` names the group of a query, where some are not
    independent, such as those that share a step; `excluded` are documents that are removed from the ranking
    of a query: its own text, and what was not judged.
    """

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    qrels: Qrels
    types: Mapping[str, str] = field(default_factory=dict)
    triples: Mapping[str, tuple[Triple, ...]] = field(default_factory=dict)
    locked: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    isomorphic: tuple[Edge, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    excluded: Mapping[str, frozenset[str]] = field(default_factory=dict)

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
        counts = (
            f"{len(self.queries):,} queries, {len(self.documents):,} documents, {relevant:,} relevant pairs"
        )
        return f"<{'; '.join((f'{self.name}: {counts}', *self.notes))}>"


def linked_by(held: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """For each item the least id of those that it is linked with, directly or through others, by something
    that both hold.
    """
    group = {id: id for id in held}

    def least(id: str) -> str:
        while group[id] != id:
            id = group[id]
        return id

    first: dict[str, str] = {}
    for id, things in held.items():
        for thing in things:
            one, other = least(id), least(first.setdefault(thing, id))
            group[max(one, other)] = min(one, other)
    return {id: least(id) for id in held}


def musique_steps(id: str) -> list[str]:
    """The single questions that a question of MuSiQue was composed of, as its id names them:
    2hop__34734_92852.
    """
    return id.partition("__")[2].split("_")


def content_id(title: str, text: str) -> str:
    """An id that says nothing but which text it is: one that follows the order of the questions would tell a
    tie where to look.
    """
    return "p" + hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()[:8]


def query_parts(dataset: Dataset) -> dict[str, frozenset[str]]:
    """The queries by part; where all are of one part there is no other."""
    everything = frozenset(query.id for query in dataset.queries)
    if not dataset.locked:
        return {"all": everything}
    split = {"develop": everything - dataset.locked, "locked": everything & dataset.locked}
    held = {part: ids for part, ids in split.items() if ids}
    return {"all": everything, **held} if len(held) > 1 else held


def checked_qrels(dataset: Dataset) -> dict[str, dict[str, int]]:
    """The qrels of the queries of a data set, grades as plain whole numbers, once it is sure that a perfect
    system would score 1.

    Raises BadInput for a query without qrels, or without a relevant document; for a document that the data
    set does not have; and for what is no grade.
    """
    name, known, checked = (
        dataset.name,
        {document.id for document in dataset.documents},
        dict[str, dict[str, int]](),
    )
    shape = f"the qrels of {name} are a dictionary {{query id: {{document id: grade}}}}"
    if not isinstance(dataset.qrels, Mapping):
        raise BadInput(f"{shape}, not {described_value(dataset.qrels)}")
    if not dataset.qrels:
        raise BadInput(
            f"{name} has no qrels, so nothing found is right or wrong; give Dataset(qrels={{query id: {{document id: 1}}}})"
        )
    if without := [query.id for query in dataset.queries if query.id not in dataset.qrels]:
        raise BadInput(
            f"{len(without)} queries of {name} have no qrels, for example {without[0]!r}; leave them out with data.only(ids)"
        )
    for query in dataset.queries:
        grades = dataset.qrels[query.id]
        if not isinstance(grades, Mapping):
            raise BadInput(f"{shape}; those of query {query.id!r} are {described_value(grades)}")
        if strange := [id for id in grades if id not in known]:
            raise BadInput(
                f"the qrels of query {query.id!r} name {shortly(strange[0])}, which is no document of {name}"
            )
        checked[query.id] = {id: _checked_grade(grade, query.id, id) for id, grade in grades.items()}
    if silent := [query for query, grades in checked.items() if max(grades.values(), default=0) <= 0]:
        said = f"{len(silent)} queries of {name} have no relevant document (a grade above 0), for example {silent[0]!r}"
        raise BadInput(f"{said}; leave them out with data.only(ids)")
    return checked


def _checked_grade(grade: object, query: str, document: str) -> int:
    whole = isinstance(grade, Integral) or (isinstance(grade, float) and grade.is_integer())
    if not whole or abs(int(grade)) > HIGHEST_GRADE:  # type: ignore[call-overload]
        wanted = f"a grade is a whole number up to {HIGHEST_GRADE:,}, above 0 for a relevant document"
        raise BadInput(
            f"{wanted}; document {shortly(document)} has {described_value(grade)} for query {query!r}"
        )
    return int(grade)  # type: ignore[call-overload, no-any-return]
