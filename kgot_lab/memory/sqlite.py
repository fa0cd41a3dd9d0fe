"""The triple store on claims: the document's interface, lookup by words, and its table layout in a file."""

from __future__ import annotations

import sqlite3
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, StoreUnavailable, require_count, short_repr
from kgot_lab.io.files import read_statements
from kgot_lab.io.processes import Closing
from kgot_lab.io.sqlite.connection import Connection, immediate_transaction, query_number
from kgot_lab.memory import tables as sql
from kgot_lab.memory import triples as triple_rules
from kgot_lab.memory.claims.beliefs import turn_source
from kgot_lab.memory.claims.claim import Claim, Span
from kgot_lab.memory.claims.claims import Claims
from kgot_lab.memory.claims.justification import Aliases, fact_ids
from kgot_lab.memory.sqlite_tables import SQLiteClaims
from kgot_lab.memory.triples import MAX_TEXT_LENGTH, InMemoryTripleStore, Keyword
from kgot_lab.stores.tables.history import LAST_CHANGE
from kgot_lab.stores.tables.layout import TableRow
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Triple

_STATEMENTS = read_statements(__file__, "triples.sql")
TRIPLE_TABLES = _STATEMENTS["tables"]
_COLUMNS = "id, subject, relation, object, confidence, source_turn, created_at"
_BATCH = 10_000  # rows of another program that are learnt in one change
MAX_FACTS_READ = 1_000  # facts that a search reads first, for each word and in total
_MAX_KEYS_PER_QUERY = 100  # of one statement: SQLite takes 500 parts of a UNION


class ClaimTripleStore(Closing):
    """A triple store on claims: its triples are the facts that hold, each with its combined confidence.

    What is added becomes a claim of its turn, valid from its time. Below `accept_from` of the claims it waits for
    review, and is not in the store. What is deleted is erased from every table, and its words leave the file when
    the store is closed. Texts that are too long for a prompt are left out. Raises what Claims raise.

    A search reads the newest facts of each word, and of these first those with more and rarer words. If too few
    hold, it continues with older ones. For a word in more than MAX_FACTS_READ facts it may therefore return newer
    facts before older ones of higher confidence. A quoted text without a whole word inside scans everything.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims = claims
        self._has_deleted = False
        self._last_read: tuple[object, InMemoryTripleStore, bool] = (None, InMemoryTripleStore(), True)

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

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. Raises
        BadInput for invalid keywords.
        """
        self.refresh()
        checked = tuple(triple_rules.check_keywords(keywords, top_k))
        depth, change = MAX_FACTS_READ, self.claims.storage.rows(LAST_CHANGE)
        while True:
            if self._last_read[0] != (change, checked, depth):
                self._last_read = ((change, checked, depth), *self._read_candidates(checked, depth))
            _, candidates, is_complete = self._last_read
            found = candidates.search(keywords, top_k)
            if is_complete or len(found) >= top_k:
                return found
            depth *= 8

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        self.refresh()
        pattern = triple_rules.require_triple_pattern(subject, relation, object)
        if not pattern:
            return self._triples()
        found = self._triples(self.claims.recorded(pattern))  # also by a name that was merged into another
        return [each for each in found if all(getattr(each, part) == text for part, text in pattern.items())]

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return self.query()

    def newest(self, limit: int) -> list[Triple]:
        """Return the last `limit` triples that were added, in the order of adding."""
        require_count(limit, 0, "limit")
        names, depth = self.claims.names(), limit
        while True:
            values = {"known": self.claims.known, "most": min(depth, 2**62)}
            rows = self.claims.storage.rows(sql.LEARNT_LAST, values)
            found = self._triples(names.canonical_facts(rows))
            if len(found) >= limit or len(rows) < depth:
                return found[len(found) - min(limit, len(found)) :]
            depth *= 8

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

    def refresh(self) -> None:
        """Take in what was written elsewhere, before triples are read."""

    def _triples(self, facts: Iterable[Triple] | None = None) -> list[Triple]:
        """Return the facts that hold, or those among `facts`, in the order of adding."""
        found = self.claims.triples(facts)
        return [triple for triple in found if max(map(len, triple.identity)) <= MAX_TEXT_LENGTH]

    def _read_candidates(self, keywords: Sequence[Keyword], depth: int) -> tuple[InMemoryTripleStore, bool]:
        """Return the facts that keywords lead to, and whether these are all."""
        candidates, names = InMemoryTripleStore(), self.claims.names()
        keys = self._keys_of_keywords(keywords, names)
        if keys is None:
            facts = names.canonical_facts(self.claims.storage.rows(sql.select_facts()))
            fitting = [fact for fact in facts if any(keyword.is_in(*fact.identity) for keyword in keywords)]
            candidates.add(self._triples(fitting))
            return candidates, True
        ids_by_key, is_complete = self._fact_ids_by_key(keys, depth)
        # in the order in which they were found, the newest of a word first
        scores: dict[str, float] = defaultdict(float)
        for ids in ids_by_key:
            for id in ids:
                scores[id] += 1 / len(ids)
        nearest = sorted(scores, key=lambda id: -scores[id])[:depth]
        rows = self.claims.storage.rows(sql.FACTS_BY_ID, {"facts": nearest})
        candidates.add(self._triples(names.canonical_facts(rows)))
        return candidates, is_complete and len(nearest) == len(scores)

    def _keys_of_keywords(self, keywords: Iterable[Keyword], names: Aliases) -> list[int] | None:
        """Return the keys of the facts that may contain any of some keywords.

        Facts are found by their own names and by their canonical ones. None if the keywords give no key.
        """
        keys: dict[int, None] = {}
        for keyword in keywords:
            words = keyword.complete_words()
            if not words:
                return None
            keys |= dict.fromkeys(map(sql.word_key, words))
        for other in names.merges:
            canonical = names.canonical(other)
            if any(keyword.is_in(canonical) for keyword in keywords):
                keys |= {sql.end_key("subject", other): None, sql.end_key("object", other): None}
        return list(keys)

    def _fact_ids_by_key(self, keys: Sequence[int], depth: int) -> tuple[list[list[str]], bool]:
        """Return the ids of the facts with each key, newest first, and whether these are all.

        There are at most `depth` for each key.
        """
        found: list[list[str]] = []
        for start in range(0, len(keys), _MAX_KEYS_PER_QUERY):
            batch = keys[start : start + _MAX_KEYS_PER_QUERY]
            values = {f"key{number}": key for number, key in enumerate(batch)} | {"most": depth + 1}
            of_key: list[list[tuple[int, str]]] = [[] for _ in batch]
            rows = self.claims.storage.rows(sql.select_facts_by_key(len(batch)), values)
            for key_index, id, learnt in rows:
                of_key[key_index].append((learnt, id))
            found += [[id for _, id in sorted(each, reverse=True)] for each in of_key if each]
        return [ids[:depth] for ids in found], all(len(ids) <= depth for ids in found)

    def _erase(self, pattern: Mapping[str, str]) -> int:
        with self.claims.storage.changing():
            facts = self.claims.recorded(pattern)
            held, ids = self.claims.triples(facts), fact_ids(facts, self.claims.names())
            self.claims.erase_claims(sql.CLAIMS_OF_FACTS, lambda: {"facts": ids}, "", facts, scrub=False)
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

    def written_rows(self, after: int) -> list[TableRow]:
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
