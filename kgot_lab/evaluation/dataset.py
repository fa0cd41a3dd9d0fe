"""What retrieval is measured on: documents, queries, and which documents are relevant to which query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kgot_lab.types import Document, Edge, Query, Triple

Qrels = Mapping[str, Mapping[str, int]]  # query id -> document id -> grade; above 0 is relevant


@dataclass(frozen=True, repr=False)
class Dataset:
    """Documents, queries and qrels, with what more is known of them.

    `types` says of what kind a query is; `triples` holds what a language model took from each document; `locked` are the queries
    that are opened last; `classes` names the equivalence class of a document, where two may stand for the same thing;
    `notes` says what was left out when the data were read; `isomorphic` are the delta edges computed between the documents.
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
        counts = f"{len(self.queries):,} queries, {len(self.documents):,} documents, {relevant:,} relevant pairs"
        return f"<{'; '.join((f'{self.name}: {counts}', *self.notes))}>"
