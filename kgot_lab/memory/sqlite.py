"""Triples in one SQLite file, which several threads and processes may use at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import Any

from kgot_lab.errors import BadInput, LabError, StoreDamaged, StoreUnavailable, require, require_count
from kgot_lab.io.processes import OPENED_BEFORE_FORK, Closing, prevent_collection, register_for_forks
from kgot_lab.io.sqlite_snapshot import check_before_opening
from kgot_lab.memory import triple_store
from kgot_lab.stores.log import is_nonempty_file, require_valid_path
from kgot_lab.text.words import name_tokens
from kgot_lab.types import Triple

# SQLite files of memory: the search for damage before anything is written, and errors that say what to do.

BUSY_TIMEOUT = 30.0  # seconds to wait for another process that is writing
# bytes of a file that is searched for damage at each opening, in about a second
_MAX_CHECKED_BYTES = 32_000_000


def refuse_damaged_file(connection: sqlite3.Connection, path: Path | None) -> None:
    """Raise StoreDamaged if the pages of a file that is not too large are inconsistent."""
    pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    if pages * size <= _MAX_CHECKED_BYTES:
        verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise _damage_error(" ".join(verdict.split()), path)


def explain_sqlite_error(error: Exception, path: Path | None) -> LabError:
    """Return the error to raise for an SQLite error, which says what to do."""
    location, code = path or "what is kept in memory", _primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        reason = f"another process has been writing to it for {BUSY_TIMEOUT:g} s"
        return StoreUnavailable(f"{location}: {reason}; try again when it is done")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or isinstance(error, UnicodeDecodeError):
        return _damage_error(str(error), path)
    if code == sqlite3.SQLITE_TOOBIG:
        return BadInput(f"{location}: {error}: no text of more than a billion bytes")
    hint = "see that its folder is there, can be written to and has room"
    return StoreUnavailable(f"{location}: {error}; {hint}")


def _damage_error(what: str, path: Path | None) -> StoreDamaged:
    return StoreDamaged(f"{path} is damaged ({what}); nothing was changed: put a copy in its place")


def _primary_code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_MAX_ROWS = 2**62  # the largest limit that a database accepts
TRIPLE_TABLES = (
    """CREATE TABLE triples (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    relation TEXT NOT NULL,
    object TEXT NOT NULL,
    confidence REAL DEFAULT 1.0,
    source_turn INTEGER,
    created_at TEXT,
    UNIQUE(subject, relation, object)
)""",
    "CREATE INDEX idx_subject ON triples(subject)",
    "CREATE INDEX idx_object ON triples(object)",
    "CREATE INDEX idx_relation ON triples(relation)",
)
# Without an index of words a search reads every row. It stores no text (content=''), and gets the words as
# `pad_words` splits them, so that both stores find the same. The ascii tokenizer then splits only at the
# spaces. It changes in the transaction that changes the triples. Rows that another program adds are indexed
# in this store's next transaction, by their ids, which AUTOINCREMENT never reuses.
WORD_INDEX = """CREATE VIRTUAL TABLE IF NOT EXISTS triple_words
    USING fts5(subject, relation, object, content='', tokenize='ascii')"""
_COLUMNS = ("id", "subject", "relation", "object", "confidence", "source_turn", "created_at")
_TRIPLE_COLUMNS = "subject, relation, object, confidence, source_turn, created_at"
_SELECT_UNINDEXED = "SELECT id, subject, relation, object FROM triples WHERE id > (SELECT coalesce(max(id), 0) FROM triple_words_docsize)"
_INSERT_WORDS = "INSERT INTO triple_words (rowid, subject, relation, object) VALUES (?, ?, ?, ?)"
_DELETE_WORDS = (
    "INSERT INTO triple_words (triple_words, rowid, subject, relation, object) VALUES ('delete', ?, ?, ?, ?)"
)


class SQLiteTripleStore(Closing):
    """A triple store in an SQLite file, created if it is missing.

    Writers wait for each other. When `add` returns, its triples are on disk. Raises BadInput for a file of
    another kind and StoreDamaged for a broken one, neither of which is changed, and StoreUnavailable.
    """

    def __init__(self, db_path: str | Path):
        require(db_path, (str, Path), "db_path is the path of a file")
        if str(db_path) == ":memory:":
            raise BadInput("a triple store without a file is InMemoryTripleStore()")
        self.path = Path(db_path).expanduser()
        require_valid_path(self.path)
        self._lock = RLock()
        self._away = ""  # why it can no longer be used
        with self._convert_errors():
            if is_nonempty_file(self.path):
                check_before_opening(self.path, lambda alone: _refuse_other_tables(alone, self.path))
            self._connection = _connect(self.path)
        register_for_forks(self)

    def add(self, triples: Iterable[Triple]) -> None:
        """Store triples, all or none.

        An existing one changes nothing. Raises BadInput for an invalid triple.
        """
        checked = triple_store.check_triples(triples)
        rows = [(*t.identity, t.confidence, t.source_turn, _format_time(t.created_at)) for t in checked]
        insert = f"INSERT OR IGNORE INTO triples ({_TRIPLE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        with self._transaction() as connection:
            connection.executemany(insert, rows)
            _index_new_rows(connection)

    def query(
        self, subject: str | None = None, relation: str | None = None, object: str | None = None
    ) -> list[Triple]:
        """Return the triples with exactly these parts, in the order of adding.

        None matches any text. Raises BadInput for an invalid part.
        """
        pattern = triple_store.require_triple_pattern(subject, relation, object)
        statement = f"SELECT {_TRIPLE_COLUMNS} FROM triples {_where_clause(pattern)} ORDER BY id"
        return self._select_triples(statement, tuple(pattern.values()))

    def search(self, keywords: Sequence[str], top_k: int = 20) -> list[Triple]:
        """Return the triples that contain any of the keywords.

        Those with most keywords come first, then those of higher confidence, then the more recent. A quoted
        keyword that begins within a word, such as "ovelac", scans all triples. Raises BadInput for invalid
        keywords.
        """
        checked = triple_store.check_keywords(keywords, top_k)
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
        pattern = triple_store.require_deletion_pattern(subject, relation, object)
        with self._transaction() as connection:
            _index_new_rows(connection)  # a row that is not in the index could not be removed from it
            condition, values = f"FROM triples {_where_clause(pattern)}", tuple(pattern.values())
            select = f"SELECT id, subject, relation, object {condition}"
            deleted = connection.execute(select, values).fetchall()
            connection.executemany(_DELETE_WORDS, map(_index_row, deleted))
            connection.execute(f"DELETE {condition}", values)
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
        with self._transaction() as connection:
            connection.execute("DELETE FROM triples")
            connection.execute("INSERT INTO triple_words (triple_words) VALUES ('delete-all')")

    def count(self) -> int:
        """Return the number of triples."""
        with self._connected() as connection:
            (number,) = connection.execute("SELECT count(*) FROM triples").fetchone()
        return int(number)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if not self._away:
                self._away = "the store is closed: open it again"
                self._connection.close()

    def after_fork(self) -> None:
        """Detach the connection in a forked child, where SQLite must not even close it."""
        prevent_collection(self._connection)
        self._away, self._lock = OPENED_BEFORE_FORK, RLock()

    def __repr__(self) -> str:
        return f"<SQLiteTripleStore {self.path}{' (closed)' if self._away else ''}>"

    def _select_triples(self, statement: str, values: Sequence[object]) -> list[Triple]:
        with self._connected() as connection:
            return [_triple_from_row(row) for row in connection.execute(statement, values)]

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection, for exclusive use by this thread."""
        with self._lock:
            if self._away:
                raise StoreUnavailable(f"{self.path}: {self._away}")
            with self._convert_errors():
                yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction that excludes other writers.

        Its changes are on disk at its end, or not made at all.
        """
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        """Convert errors of SQLite to errors of this package."""
        try:
            yield
        except sqlite3.Error as error:
            raise explain_sqlite_error(error, self.path) from None


def _refuse_other_tables(connection: sqlite3.Connection, path: Path) -> None:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    columns = tuple(name for (_, name, *_) in connection.execute("PRAGMA table_info(triples)"))
    if tables and columns != _COLUMNS:
        content = "no table of triples"
        if columns:
            content = f"a table of triples with other columns ({', '.join(columns)})"
        origin = f"an SQLite file that something else made, with {content}"
        raise BadInput(f"{path}: {origin}, so it was not touched; give another path")


def _connect(path: Path) -> sqlite3.Connection:
    """Connect to a file, creating its tables if it is new.

    Raises StoreDamaged or BadInput if its tables are not sound.
    """
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        connection.create_function("holds_text", 4, _contains_text, deterministic=True)
        refuse_damaged_file(connection, path)
        connection.execute("BEGIN IMMEDIATE")  # another process may be creating the tables too
        _refuse_other_tables(connection, path)
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in TRIPLE_TABLES:
                connection.execute(statement)
        connection.execute(WORD_INDEX)
        _index_new_rows(connection)  # for a file that another program made with the same tables
        connection.execute("COMMIT")
        _enable_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _enable_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log, so that readers and the writer do not wait for each other.

    SQLite needs exclusive access to do so.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if _primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _index_new_rows(connection: sqlite3.Connection) -> None:
    """Add the rows to the word index that are not in it yet."""
    connection.executemany(_INSERT_WORDS, map(_index_row, connection.execute(_SELECT_UNINDEXED).fetchall()))


def _index_row(row: Sequence[Any]) -> tuple[Any, ...]:
    return row[0], *map(triple_store.pad_words, row[1:])


def _where_clause(pattern: Mapping[str, str]) -> str:
    return f"WHERE {' AND '.join(f'{name} = ?' for name in pattern)}" if pattern else ""


def _keyword_query(keyword: triple_store.Keyword) -> tuple[str, tuple[str, ...]]:
    """Return a query for the ids of the triples that contain a keyword, and its parameters."""
    by_index = "SELECT rowid AS id FROM triple_words WHERE triple_words MATCH ?"
    if not keyword.quoted:
        return by_index, (f'"{keyword.words.strip()}"',)
    contains_text = "holds_text(?, subject, relation, object)"
    if not (index_query := _phrase_query(keyword.quoted)):
        return f"SELECT id FROM triples WHERE {contains_text}", (keyword.quoted,)
    both = f"id IN ({by_index}) AND {contains_text}"
    return f"SELECT id FROM triples WHERE {both}", (index_query, keyword.quoted)


def _phrase_query(quoted: str) -> str:
    """Return the index query for a quoted text.

    It contains the words after the first, which may begin earlier. The last may continue.
    """
    words = name_tokens(quoted)
    complete = words[1:] if words and quoted.startswith(words[0]) else words
    suffix = " *" if words and quoted.endswith(words[-1]) else ""
    return f'"{" ".join(complete)}"{suffix}' if complete else ""


def _contains_text(quoted: str, *parts: str) -> bool:
    return any(quoted in triple_store.normalize_text(part) for part in parts)


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
