"""Triples in one SQLite file, which several threads and processes may use at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, StoreDamaged, StoreUnavailable, require_count
from kgot_lab.io.files import read_statements
from kgot_lab.io.sqlite.connection import Connection, immediate_transaction, query_number
from kgot_lab.io.sqlite.file import SQLiteFile
from kgot_lab.memory import triples as triple_rules
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

_MAX_ROWS = 2**62  # the largest limit that a database accepts
TRIPLE_TABLES = read_statements(__file__, "triples.sql")["tables"]
# Rows that another program adds are indexed in this store's next transaction, by their ids, which AUTOINCREMENT
# never reuses.
WORD_INDEX = "CREATE TABLE IF NOT EXISTS triple_words (word TEXT, id INTEGER, PRIMARY KEY (word, id)) STRICT, WITHOUT ROWID"
_COLUMNS = ("id", "subject", "relation", "object", "confidence", "source_turn", "created_at")
_TRIPLE_COLUMNS = "subject, relation, object, confidence, source_turn, created_at"
_SELECT_UNINDEXED = "SELECT id, subject, relation, object FROM triples WHERE id > (SELECT coalesce(max(id), 0) FROM triple_words)"
_INSERT_WORD = "INSERT OR IGNORE INTO triple_words (word, id) VALUES (?, ?)"
_WITH_WORD = "SELECT id FROM triple_words WHERE word = ?"
_WITH_PREFIX = "SELECT id FROM triple_words WHERE word >= ? AND word < ? || char(1114111)"


class SQLiteTripleStore(SQLiteFile):
    """A triple store in an SQLite file, created if it is missing.

    Writers wait for each other. When `add` returns, its triples are on disk. The words of deleted triples leave
    the file when it is closed. Raises BadInput for a file of another kind and StoreDamaged for a broken one,
    neither of which is changed, and StoreUnavailable.
    """

    settings = ("secure_delete = ON", *SQLiteFile.settings)
    _has_deleted = False

    @check_arguments
    def __init__(self, db_path: str | Path):
        if str(db_path) == ":memory:":
            raise BadInput("a triple store without a file is InMemoryTripleStore()")
        super().__init__(Path(db_path).expanduser())

    def add(self, triples: Iterable[Triple]) -> None:
        """Store triples, all or none.

        An existing one changes nothing. Raises BadInput for an invalid triple.
        """
        checked = triple_rules.check_triples(triples)
        rows = [(*t.identity, t.confidence, t.source_turn, _format_time(t.created_at)) for t in checked]
        insert = f"INSERT OR IGNORE INTO triples ({_TRIPLE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        with self._transaction() as connection, self._convert_errors():
            connection.executemany(insert, rows)
            _index_new_rows(connection)

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        pattern = triple_rules.require_triple_pattern(subject, relation, object)
        statement = f"SELECT {_TRIPLE_COLUMNS} FROM triples {_where_clause(pattern)} ORDER BY id"
        return self._select_triples(statement, tuple(pattern.values()))

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. A quoted
        keyword that begins within a word, such as "ovelac", scans all triples. Raises BadInput for invalid
        keywords.
        """
        checked = triple_rules.check_keywords(keywords, top_k)
        if not checked:
            return []
        subqueries = [_keyword_query(keyword) for keyword in checked]
        matches = f"SELECT id, count(*) AS matched FROM ({' UNION ALL '.join(part for part, _ in subqueries)}) GROUP BY id"
        order = "matched DESC, confidence DESC, created_at DESC, source_turn DESC, id"
        found = f"SELECT {_TRIPLE_COLUMNS} FROM triples JOIN ({matches}) USING (id)"
        values = [value for _, values in subqueries for value in values]
        return self._select_triples(f"{found} ORDER BY {order} LIMIT ?", (*values, min(top_k, _MAX_ROWS)))

    def delete(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> int:
        """Delete the triples with exactly these parts and return their number.

        Raises BadInput without any part.
        """
        pattern = triple_rules.require_deletion_pattern(subject, relation, object)
        with self._transaction() as connection, self._convert_errors():
            condition, values = f"FROM triples {_where_clause(pattern)}", tuple(pattern.values())
            select = f"SELECT id, subject, relation, object {condition}"
            deleted = connection.execute(select, values).fetchall()
            words = (pair for row in deleted for pair in _indexed_words(row))
            connection.executemany("DELETE FROM triple_words WHERE word = ? AND id = ?", words)
            connection.execute(f"DELETE {condition}", values)
        self._has_deleted = self._has_deleted or bool(deleted)
        return len(deleted)

    def all(self) -> list[Triple]:
        """Return every triple, in the order of adding."""
        return self.query()

    def newest(self, limit: int) -> list[Triple]:
        """Return the last `most` triples that were added, in the order of adding."""
        require_count(limit, 0, "most")
        statement = f"SELECT {_TRIPLE_COLUMNS} FROM triples ORDER BY id DESC LIMIT ?"
        return self._select_triples(statement, (min(limit, _MAX_ROWS),))[::-1]

    def clear(self) -> None:
        """Delete everything."""
        with self._transaction() as connection, self._convert_errors():
            connection.execute("DELETE FROM triples")
            connection.execute("DELETE FROM triple_words")

    def count(self) -> int:
        """Return the number of triples."""
        with self._connected() as connection:
            return query_number(connection, "SELECT count(*) FROM triples")

    def __repr__(self) -> str:
        return f"<SQLiteTripleStore {self._path}{' (closed)' if self._over else ''}>"

    def _select_triples(self, statement: str, values: Sequence[object]) -> list[Triple]:
        with self._connected() as connection:
            return [_triple_from_row(row) for row in connection.execute(statement, values)]

    def _refuse_foreign(self, connection: sqlite3.Connection) -> None:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        columns = tuple(name for (_, name, *_) in connection.execute("PRAGMA table_info(triples)"))
        if tables and columns != _COLUMNS:
            content = "no table of triples"
            if columns:
                content = f"a table of triples with other columns ({', '.join(columns)})"
            origin = f"an SQLite file that something else made, with {content}"
            raise BadInput(f"{self._path}: {origin}, so it was not touched; give another path")

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        for statement in TRIPLE_TABLES:
            connection.execute(statement)

    def _upgrade(self, connection: Connection) -> None:
        connection.create_function("has_keyword", 5, _has_keyword, deterministic=True)
        has_index = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'triple_words'").fetchone()
        if not has_index or connection.execute(_SELECT_UNINDEXED).fetchone():
            with immediate_transaction(connection):
                connection.execute(WORD_INDEX)
                _index_new_rows(connection)  # for a file that another program made with the same tables

    def _close_connections(self) -> None:
        try:
            if self._has_deleted and self._path is not None:
                with self._convert_errors():
                    self._connection.execute("VACUUM")  # pages keep copies of rows that were moved
        except StoreUnavailable as error:
            left = "closed, and the words of deleted triples stay in it until a store that deleted some is closed"
            raise type(error)(f"{error} ({left})") from None
        finally:
            super()._close_connections()


def _index_new_rows(connection: sqlite3.Connection) -> None:
    """Add the rows to the word index that are not in it yet."""
    rows = connection.execute(_SELECT_UNINDEXED).fetchall()
    connection.executemany(_INSERT_WORD, (pair for row in rows for pair in _indexed_words(row)))


def _indexed_words(row: Sequence[Any]) -> Iterator[tuple[str, int]]:
    words = {word for part in row[1:] for word in triple_rules.pad_words(part).split()}
    return ((word, row[0]) for word in words)


def _where_clause(pattern: Mapping[str, str]) -> str:
    return f"WHERE {' AND '.join(f'{name} = ?' for name in pattern)}" if pattern else ""


def _keyword_query(keyword: triple_rules.Keyword) -> tuple[str, tuple[str, ...]]:
    """Return a query for the ids of the triples that contain a keyword, and its parameters."""
    words, prefix = keyword.words.split(), ""
    if keyword.quoted:
        # the first word of a text may begin earlier, and the last may continue
        tokens = name_tokens(keyword.quoted)
        words = list(tokens[1:] if tokens and keyword.quoted.startswith(tokens[0]) else tokens)
        prefix = words.pop() if words and keyword.quoted.endswith(words[-1]) else ""
    elif len(words) == 1:
        return _WITH_WORD, (words[0],)
    queries = [_WITH_WORD] * len(words) + [_WITH_PREFIX] * bool(prefix)
    among = "".join(f" AND id IN ({query})" for query in queries)
    values = (*words, *((prefix, prefix) if prefix else ()))
    found = "SELECT id FROM triples WHERE has_keyword(?, ?, subject, relation, object)"
    return f"{found}{among}", (keyword.words, keyword.quoted, *values)


def _has_keyword(words: str, quoted: str, *parts: str) -> bool:
    keyword = triple_rules.Keyword(words, quoted)
    return any(
        keyword.is_in(triple_rules.normalize_text(part), triple_rules.pad_words(part)) for part in parts
    )


def _format_time(time: datetime | None) -> str | None:
    """Format a time as text of fixed length, so that texts sort as times do."""
    return None if time is None else time.isoformat(timespec="microseconds")


def _triple_from_row(row: Sequence[Any]) -> Triple:
    subject, relation, object, confidence, turn, created_at = row
    sure = 1.0 if confidence is None else confidence
    return Triple(subject, relation, object, sure, turn, _parse_time(created_at))


def _parse_time(text: str | None) -> datetime | None:
    """Parse a stored time.

    One that another program wrote without a time zone is taken as UTC. Raises StoreDamaged if it is no time.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        problem = f"a triple was created at {text!r}, which is no time"
        raise StoreDamaged(f"{problem}; nothing was changed") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
