"""Integrity checks of this package's files.

These are SQLite graphs, memories, vector caches, traces, recordings and others.
"""

from __future__ import annotations

import codecs
import json
import re
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgot_lab.errors import BadInput, LabError, NotInstalled, StoreDamaged, StoreUnavailable, short_repr
from kgot_lab.io.files import SPECIAL_FILES, read_regular_file, refuse_wide_encoding, utf8_text
from kgot_lab.io.sqlite.checksums import enable_checksums, find_damage, migrate, tables_of, unsummed_tables
from kgot_lab.io.sqlite.connection import Connection, connect, has_tables, is_unavailable, query_number
from kgot_lab.io.sqlite.copies import back_up, open_copy, private_copy
from kgot_lab.io.sqlite.file import require_closed
from kgot_lab.io.sqlite.wal import find_log_damage
from kgot_lab.text.cleaning import format_count

if TYPE_CHECKING:
    from kgot_lab.stores.sqlite.salvage import SalvageResult

_HEAD = 400  # bytes of a file that identify it
_APPLICATION = slice(68, 72)  # the application id of an SQLite file, also in a damaged one
_LONG_NAME = 4_000  # longer than any path
_LINES, _LONGEST = 50, 20_000_000  # maximum lines of JSON to read, and bytes of each
_AS_WRITTEN = "every row is as it was written"
_UNKNOWN = "where a changed value would not show"
_UNFINISHED = "not finished: stopped, or cut short"
_ONLY_READ = "it can be read, and holds no checksum, so a changed value would not show"


@dataclass(frozen=True)
class Health:
    """The kind of a file, whether it is intact, and what was found or what to do."""

    path: Path
    kind: str
    whole: bool
    said: str

    def __str__(self) -> str:
        state = "BROKEN" if not self.whole else "UNFINISHED" if _UNFINISHED in self.said else "whole"
        return f"{state}  {self.path}: {self.kind}: {self.said}"


def check_file(path: Path | str) -> Health:
    """Check a file of this package for damage, without changing it.

    Raises BadInput for a missing or unknown file, and NotInstalled for a missing package.
    """
    path = Path(path)
    kind = _kind_of(path)
    try:
        return Health(path, kind, True, _EXAMINED[kind](path))
    except StoreDamaged as error:
        return Health(path, kind, False, str(error).removeprefix(f"{path}: "))
    except (NotInstalled, StoreUnavailable):  # which are not about the file
        raise
    except OSError as error:
        reason = f"{_read_error(error)}, so nobody can say: see that the disk is sound, and try again"
        return Health(path, kind, False, reason)
    except (LabError, sqlite3.Error, UnicodeDecodeError) as error:
        if is_unavailable(error):
            raise StoreUnavailable(f"{path} cannot be read now ({error}): try again") from None
        return Health(path, kind, False, str(error).removeprefix(f"{path}: "))


def salvage_file(path: Path | str) -> SalvageResult:
    """Recover the intact part of a damaged graph in SQLite.

    Raises BadInput for any other file, and StoreDamaged or StoreUnavailable if it cannot be recovered. The
    file is then untouched.
    """
    from kgot_lab.stores.sqlite.salvage import salvage_sqlite

    if (kind := _kind_of(path := Path(path))) != _GRAPH:
        raise BadInput(f"{path} is {kind}: only a graph in SQLite can be salvaged; restore a copy")
    return salvage_sqlite(path)


def back_up_file(path: Path | str, copy: Path | str) -> Health:
    """Copy an SQLite file of this package, with its log, to a new file, while others may write, and check that.

    The copy is there if it is whole. Raises BadInput for another file, or if the copy exists, and
    StoreUnavailable if it cannot be made.
    """
    path, copy = Path(path), Path(copy)
    if not _head_of(path).startswith(b"SQLite format 3"):
        raise BadInput(f"{path} is no SQLite file: copy it as any file, which is whole by itself")
    if copy.exists():
        raise BadInput(f"{copy} exists already, and a backup replaces nothing: give another name")
    part = copy.with_name(f"{copy.name}.part")
    try:
        back_up(path, part)
        health = check_file(part)
        if health.whole:
            part.replace(copy)
    finally:
        part.unlink(missing_ok=True)
    return replace(health, path=copy if health.whole else path)


def _kind_of(path: Path) -> str:
    require_closed(path)
    head = _head_of(path).removeprefix(codecs.BOM_UTF8)
    if not head:
        raise BadInput(f"{path} is empty, or was never written: restore a copy, or delete it")
    if head.startswith(b"SQLite format 3"):
        return _sqlite_kind(path, int.from_bytes(head[_APPLICATION]))
    if match := _NUMBERED.match(head):
        return _TRACE if match[1] == b"trace" else _RECORDING
    if path.suffix.lower() != ".graphml":  # GraphML may be in UTF-16
        refuse_wide_encoding(head, path)
    if path.suffix.lower() in {".graphml", ".ttl"}:
        return _GRAPH_FILE
    if path.suffix.lower() in {".json", ".jsonl"} or head.startswith(b"{"):
        return _json_kind(path)
    if path.suffix.lower() in {".log", ".db", ".sqlite", ".sqlite3"}:
        raise BadInput(f"{path} is no SQLite file, or has lost its beginning: if it was one, restore a copy")
    problem = f"{path} is no SQLite file, trace, recording, graph file or ledger of this package"
    raise BadInput(f"{problem}: name another")


def _json_kind(path: Path) -> str:
    """Return the kind of file by its first lines.

    Raises BadInput for an unknown kind, which may still be intact.
    """
    with path.open("rb") as file:
        for _ in range(_LINES):
            line = file.readline(_LONGEST).removeprefix(codecs.BOM_UTF8)
            if line.strip() and (kind := _kind_of_line(line)):
                return kind
    known = "a trace, recording, ledger, graph or results of questions"
    problem = f"{path} is no file that the doctor knows: it does not begin as {known} of this package does"
    raise BadInput(f"{problem}; nothing here can check it")


def _kind_of_line(line: bytes) -> str:
    """Return the kind of a line of JSON, or "".

    A line that is not valid JSON is classified by its beginning.
    """
    from kgot_lab.loop.state import Entry

    try:
        record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return next((kind for start, kind in _BEGINNINGS if start.match(line)), "")
    if not isinstance(record, dict):
        return ""
    if record.get("type") in ("node", "relationship"):
        return _GRAPH_FILE
    if isinstance(record.get("event"), str):
        return _TRACE
    if {field.name for field in fields(Entry)} <= record.keys():
        return _LEDGER
    return _RESULTS if {"id", "predicted", "scored_by"} <= record.keys() else ""


def _head_of(path: Path) -> bytes:
    """Read the first bytes of a file.

    Raises BadInput, which says what is there instead, or why it cannot be read.
    """
    name = short_repr(str(path)).strip("'") if len(str(path)) > _LONG_NAME else str(path)
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind == stat.S_IFREG:
            with path.open("rb") as file:
                return file.read(_HEAD)
    except FileNotFoundError:
        if path.is_symlink():
            link_target = path.readlink()
            raise BadInput(f"{name} is a link to {link_target}, which is not there: restore it") from None
        raise BadInput(f"there is no file {name}: see that the name is right") from None
    except (OSError, ValueError) as error:
        problem = f"{name} {_read_error(error)}"
        raise BadInput(f"{problem}: see that you may read it, and the disk is sound") from None
    if kind == stat.S_IFDIR:
        raise BadInput(f"{name} is a folder: name a file in it")
    raise BadInput(f"{name} is {SPECIAL_FILES.get(kind, 'no file')}, of which nothing was read: name a file")


def _read_error(error: Exception) -> str:
    return f"cannot be read ({(isinstance(error, OSError) and error.strerror) or error})"


def _sqlite_kind(path: Path, application: int) -> str:
    """Return the kind of an SQLite file.

    Raises BadInput for a file of another program, and for a graph of another version.
    """
    from kgot_lab.stores.sqlite.file import require_own_format

    kind = _SQLITE_KINDS.get(application)
    if kind not in (None, _GRAPH):
        return kind
    with open_copy(path) as connection:
        try:
            if kind is not None:
                require_own_format(connection, path)
                return kind
            columns = [
                name for (name,) in connection.execute("SELECT name FROM pragma_table_info('triples')")
            ]
        except (sqlite3.Error, UnicodeDecodeError):  # too damaged to identify
            return _GRAPH
    if {"subject", "relation", "object", "confidence", "source_turn", "created_at"} <= set(columns):
        return _TRIPLES
    message = f"{path} is an SQLite file of another program, not a graph, memory or cache of this package"
    raise BadInput(f"{message}: nothing here can check it")


def _graph(path: Path) -> str:
    from kgot_lab.stores.sqlite import damage
    from kgot_lab.stores.sqlite.file import SALVAGE_ADVICE, STEPS
    from kgot_lab.stores.sqlite.tables import GRAPH_TABLES

    with _whole_copy(path, f"{SALVAGE_ADVICE} {path}") as (connection, has_log):
        damage.enable_checksums(connection)
        is_old = query_number(connection, "PRAGMA user_version") in range(1, max(STEPS))
        found = migrate(connection, STEPS) or damage.find_damage(connection, GRAPH_TABLES)
        if found := found or damage.find_dangling_edge(connection):
            raise StoreDamaged(f"{found}: {SALVAGE_ADVICE} {path}")
        nodes, edges = (
            query_number(connection, f"SELECT count(*) FROM {kind}") for kind in ("nodes", "edges")
        )
        foreign = damage.count_without_checksum(connection)
    known = f"another program wrote {format_count(foreign, 'row')}, {_UNKNOWN}" if foreign else _AS_WRITTEN
    known = _ONLY_READ if is_old else known
    return (
        f"{format_count(nodes, 'node')}, {format_count(edges, 'edge')}, {known}{_missing_log(path, has_log)}"
    )


def _tables(path: Path) -> str:
    with _whole_copy(path, "restore a copy") as (connection, has_log):
        enable_checksums(connection)
        if damage := find_damage(connection):
            raise StoreDamaged(f"{damage}: restore a copy")
        if not has_tables(connection):
            return "nothing yet: what created it did not end, and opening it does"
        unsummed = unsummed_tables(connection)
        # which are tables without row ids
        indexes = {name for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE wr = 1")}
        counts = (f"SELECT count(*) FROM {table}" for table in tables_of(connection) if table not in indexes)
        rows = sum(query_number(connection, count) for count in counts)
    changed = f"another program changed {', '.join(unsummed)}, {_UNKNOWN}"
    known = changed if unsummed else _AS_WRITTEN
    return f"{format_count(rows, 'row')}, {known}{_missing_log(path, has_log)}"


@contextmanager
def _whole_copy(path: Path, advice: str) -> Iterator[tuple[Connection, bool]]:
    """Open a copy of a file whose log is whole, and tell whether it has one. Raises StoreDamaged if it is not."""
    with private_copy(path) as copy:
        if damage := find_log_damage(copy):
            raise StoreDamaged(f"{damage}: {advice}")
        with closing(connect(copy.path.as_uri())) as connection:
            yield connection, copy.has_log


def _missing_log(path: Path, has_log: bool) -> str:
    log = "" if has_log else " (a log beside it that was taken away, FILE-wal, would not show)"
    names = "; it has other names (hard links), and stores open none such" if path.stat().st_nlink > 1 else ""
    return f"{log}{names}"


def _cache(path: Path) -> str:
    from kgot_lab.embedding.vectors import is_intact

    rows = broken = 0
    with open_copy(path) as connection:
        enable_checksums(connection)
        if damage := find_damage(connection):
            raise StoreDamaged(f"{damage}: delete it, and what it holds is computed again")
        is_begun = has_tables(connection)
        rows_read = connection.execute("SELECT key, CAST(value AS BLOB) FROM cache") if is_begun else ()
        for key, value in rows_read:
            rows += 1
            broken += not is_intact(key, value)
    if broken:
        advice = "what is damaged is computed again when it is needed"
        raise StoreDamaged(f"it holds {format_count(broken, 'damaged value')} of {rows:,}: {advice}")
    return f"{format_count(rows, 'value')}, each as it was written"


def _trace(path: Path) -> str:
    from kgot_lab.llm.recorded import read_lines
    from kgot_lab.loop.trace import first_inconsistent_write, inconsistency_message, load_run

    lines = read_lines(path)
    if not _NUMBERED.match(lines[0].encode()):
        raise StoreDamaged("its first line, which says of which run it is, is not there: restore a copy")
    run = load_run(path)
    ended = "answered" if run.finished else _UNFINISHED
    torn = "; its last line was cut short" if lines[-1].strip() else ""
    known = "" if run.sealed else f"; {_ONLY_READ}"
    parted = first_inconsistent_write(run.events)
    apart = "" if parted is None else f"; {inconsistency_message(parted)}"
    return f"{format_count(len(run.events), 'event')}, {ended}{torn}{known}{apart}"


def _recording(path: Path) -> str:
    from kgot_lab.llm.recorded import Recorded

    return f"{len(Recorded(path).replies):,} replies; {_ONLY_READ}"


def _graph_file(path: Path) -> str:
    from kgot_lab.stores.files import read_graph

    utf8_text(read_regular_file(path), path)  # other programs' are read in other encodings too
    graph = read_graph(path)
    return f"{format_count(len(graph), 'node')}, {format_count(len(graph.edges), 'edge')}; {_ONLY_READ}"


def _ledger(path: Path) -> str:
    from kgot_lab.loop.state import Entry

    names, entries = {field.name for field in fields(Entry)}, 0
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if not line:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            raise StoreDamaged(f"line {number} is not JSON: {line[:60]!r}") from None
        if not isinstance(entry, dict) or not names <= entry.keys():
            raise StoreDamaged(f"line {number} is no entry of a ledger: {line[:60]!r}")
        entries += 1
    return f"{entries:,} entries; {_ONLY_READ}"


def _results(path: Path) -> str:
    from kgot_lab.benchmark.questions.question_result import read_results

    return f"those of {format_count(len(read_results(path)), 'question')}; {_ONLY_READ}"


_GRAPH, _CACHE, _TRIPLES = "a graph in SQLite", "a cache", "a store of triples"
_TRACE, _RECORDING, _GRAPH_FILE, _LEDGER = "a trace", "a recording", "a graph file", "a ledger"
_RESULTS = "results of questions"
_SQLITE_KINDS = {  # by application id
    0x6B676C62: _GRAPH, 0x6B676C63: "a memory of claims", 0x6B676C77: "a world", 0x6B676C78: "experts",
    0x6B676C70: "proposals", 0x6B676C6F: "seen nonces", 0x6B676C69: "investment graphs", 0x6B676C75: "investment accounts",
    0x6B676C6E: "investment news", 0x6B676C76: _CACHE,
}  # fmt: skip
_EXAMINED: dict[str, Callable[[Path], str]] = {
    **dict.fromkeys(_SQLITE_KINDS.values(), _tables), _TRIPLES: _tables, _GRAPH: _graph, _CACHE: _cache, _TRACE: _trace,
    _RECORDING: _recording, _GRAPH_FILE: _graph_file, _LEDGER: _ledger, _RESULTS: _results,
}  # fmt: skip
_NUMBERED = re.compile(rb'\s*\{\s*"(trace|tape)":\s*\d')
_BEGINNINGS = (
    (re.compile(rb'\{"type": ?"(node|relationship)"'), _GRAPH_FILE),
    (re.compile(rb'\{"event": ?"'), _TRACE),
    (re.compile(rb'\{"run": ?".*"step":'), _LEDGER),
)
