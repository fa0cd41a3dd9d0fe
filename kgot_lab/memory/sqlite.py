"""The triple store on claims, in a file or on a server: the document's interface and table layout."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, StoreUnavailable, short_repr
from kgot_lab.io.files import read_statements
from kgot_lab.io.processes import Closing
from kgot_lab.io.sqlite.connection import Connection, immediate_transaction, query_number
from kgot_lab.memory import tables as sql
from kgot_lab.memory import triples as triple_rules
from kgot_lab.memory.claims.beliefs import turn_source
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.justification import fact_ids
from kgot_lab.memory.claims.lookup import BeliefTriples
from kgot_lab.memory.claims.transactions import erase_claims
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Triple

_STATEMENTS = read_statements(__file__, "triples.sql")
TRIPLE_TABLES = _STATEMENTS["tables"]
_COLUMNS = "id, subject, relation, object, confidence, source_turn, created_at"
_BATCH = 10_000  # rows of another program that are learnt in one change


class ClaimTripleStore(BeliefTriples, Closing):
    """A triple store on claims: its triples are the facts that hold, each with its combined confidence.

    What is added becomes a claim of its turn, valid from its time. Below `accept_from` of the claims it waits for
    review, and is not in the store. What is deleted is erased from every table, and its words leave the file when
    the store is closed. Raises what Claims raise.
    """

    def __init__(self, claims: Claims) -> None:
        super().__init__(claims, as_stated=True)
        self.claims = claims
        self._has_deleted = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self.claims.storage!r}>"

    def add(self, triples: Iterable[Triple]) -> None:
        """Store triples, all or none.

        An existing one changes nothing. Raises BadInput for an invalid triple.
        """
        distinct = dict.fromkeys(triple_rules.check_triples(triples))  # keeps the first of equal ones
        with self.claims.storage.changing():
            known, names = set(self.claims.triples(distinct)), self.claims.names()
            new = [each for each in distinct if names.canonical_fact(each) not in known]
            if new:
                self.claims.learn(_claim_of(triple, number) for number, triple in enumerate(new))

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Erase the triples with exactly these parts and return their number.

        Raises BadInput without any part.
        """
        return self._erase(triple_rules.require_deletion_pattern(subject, relation, object))

    def clear(self) -> None:
        """Erase everything."""
        self._erase({})

    def count(self) -> int:
        """Return the number of triples."""
        return self.claims.count()

    def close(self) -> None:
        """Close the claims, after rewriting the file without what was deleted."""
        try:
            if self._has_deleted:
                self._has_deleted = False
                self.claims.storage.scrub()
        except StoreUnavailable as error:
            left = "closed, and the words of deleted triples stay in it until it is opened again"
            raise type(error)(f"{error} ({left})") from None
        finally:
            self.claims.close()

    def _erase(self, pattern: Mapping[str, str]) -> int:
        with self.claims.storage.changing():
            facts = self.claims.recorded(pattern)
            held, ids = self.claims.triples(facts), fact_ids(facts, self.claims.names())
            erase_claims(self.claims, sql.CLAIMS_OF_FACTS, lambda: {"facts": ids}, "", facts, scrub=False)
        self._has_deleted = self._has_deleted or bool(facts)
        return len(held)


def _claim_of(triple: Triple, number: int) -> Claim:
    """Return the claim of a triple, whose position in its source is its number in what was added with it."""
    fact, span = Triple(*triple.identity), Span(number, number + 1)
    source, confidence = turn_source(triple.source_turn), triple.confidence
    return Claim(fact, source, span, confidence=confidence, valid_from=triple.created_at)


class SQLiteTripleStore(ClaimTripleStore):
    """A triple store in an SQLite file of claims, created if it is missing.

    Other programs read and write its triples as rows of `triples`, in the layout of the document. A file with a
    table of that layout, such as one of an earlier version, becomes a file of claims. Raises BadInput for a file
    of another kind and StoreDamaged for a broken one, neither of which is changed, and StoreUnavailable.
    """

    @check_arguments
    def __init__(self, db_path: str | Path):
        if str(db_path) == ":memory:":
            raise BadInput("a triple store without a file is InMemoryTripleStore()")
        self._file, self._last_refused = _TripleFile(Path(db_path).expanduser()), 0
        super().__init__(Claims(self._file, accept_from=0))
        self.refresh()

    def refresh(self) -> None:
        """Learn the rows that another program wrote.

        Those that are no triples stay where they are, with a warning.
        """
        refused: list[str] = []
        while self._file.written_rows(self._last_refused):
            with self._file.changing():
                triples = dict[int, Triple]()
                for id, *row in self._file.written_rows(self._last_refused):
                    try:
                        triples[id] = triple_rules.check_triple(_triple_of(row))
                    except BadInput as error:
                        self._last_refused = id
                        refused.append(str(error))
                self.add(triples.values())
                self._file.rows("DELETE FROM written_triples WHERE id = ANY(:ids)", {"ids": list(triples)})
        if refused:
            problem = f"{format_count(len(refused), 'row')} of another program cannot be read as triples"
            warnings.warn(f"{self._file!r}: {problem}, and stay unread in it ({refused[0]})", stacklevel=3)


class _TripleFile(SQLiteClaims):
    """A file of claims whose triples other programs read and write in the layout of the document."""

    closed_error = StoreUnavailable

    def written_rows(self, after: int) -> list[sql.ClaimRow]:
        """Return the next rows that other programs wrote, or none where they could not be deleted."""
        statement = f"SELECT {_COLUMNS} FROM written_triples WHERE id > :after ORDER BY id LIMIT {_BATCH}"
        return self.rows(statement, {"after": after}) if self._connection.can_write else []

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        if not _has_document_layout(connection):
            super()._refuse_foreign(connection)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        super()._create_tables(connection)
        for statement in _STATEMENTS["view"]:
            connection.execute(statement)

    def _upgrade(self, connection: Connection) -> None:
        if _has_document_layout(connection):
            if not connection.can_write:
                problem = "its triples have the layout of an earlier version, and nothing can be written here"
                raise StoreUnavailable(f"{self._path}: {problem}: open a copy in another folder")
            with immediate_transaction(connection):
                if _has_document_layout(connection):  # no other process was first
                    self._convert(connection)
        if connection.can_write:
            for statement in _STATEMENTS["view"]:
                connection.execute(statement)

    def _convert(self, connection: Connection) -> None:
        """Make a file with a table of triples one of claims, all of whose rows are still to be learnt."""
        inbox, *_ = _STATEMENTS["view"]
        connection.execute(inbox)
        connection.execute(f"INSERT INTO written_triples ({_COLUMNS}) SELECT {_COLUMNS} FROM triples")
        for table in ("triples", "triple_words", "checksums"):  # those are computed again
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        self._create_tables(connection)
        connection.execute(sql.MARK_UNSCRUBBED, {"change": 0})
        count = query_number(connection, "SELECT count(*) FROM written_triples")
        became = f"{format_count(count, 'triple')} of an earlier version or another program became claims"
        warnings.warn(f"{self._path}: {became}; `triples` shows them to other programs", stacklevel=2)


def _has_document_layout(connection: sqlite3.Connection) -> bool:
    columns = [name for (_, name, *_) in connection.execute("PRAGMA table_info(triples)")]
    application = query_number(connection, "PRAGMA application_id")
    return not application and columns == _COLUMNS.split(", ")


def _triple_of(row: Sequence[Any]) -> Triple:
    """Return the triple of a row, whose time is in UTC if it has no zone. Raises BadInput if it is none."""
    subject, relation, object, confidence, turn, created_at = row
    try:
        time = None if created_at is None else datetime.fromisoformat(created_at)
    except (ValueError, TypeError):
        raise BadInput(f"a triple was created at {short_repr(created_at)}, which is no time") from None
    time = time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time
    return Triple(subject, relation, object, 1.0 if confidence is None else confidence, turn, time)
