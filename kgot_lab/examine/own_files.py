"""Whether a file of ours is whole: a log, an SQLite graph, the cache of vectors, a trace, a tape, a graph file, a ledger."""

from __future__ import annotations

import codecs
import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from kgot_lab.errors import BadInput, LabError, NotInstalled, StoreDamaged, shortly
from kgot_lab.reading import require_narrow
from kgot_lab.text.counted import counted

_HEAD = 400  # bytes of a file that tell what it is
_LONG_NAME = 4_000  # bytes that no path has
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_ONLY_READ = "it can be read, and holds no checksum, so a changed value would not show"


@dataclass(frozen=True)
class Health:
    """What a file is, whether it is whole, and what was found or what to do."""

    path: Path
    kind: str
    whole: bool
    said: str

    def __str__(self) -> str:
        return f"{'whole' if self.whole else 'BROKEN'}  {self.path}: {self.kind}: {self.said}"


def examine_file(path: Path | str) -> Health:
    """Search a file of ours for damage; nothing is changed in it. Raises BadInput for one that is not there or not ours, NotInstalled."""
    path = Path(path)
    kind = _kind_of(path)
    try:
        return Health(path, kind, True, _EXAMINED[kind](path))
    except NotInstalled:  # which says nothing of the file
        raise
    except OSError as error:
        return Health(path, kind, False, f"{_unread(error)}, so nobody can say: see that the disk is sound, and try again")
    except (LabError, sqlite3.Error, UnicodeDecodeError) as error:
        return Health(path, kind, False, str(error).removeprefix(f"{path}: "))


def salvage_file(path: Path | str) -> Path:
    """Keep what is whole of a damaged log or SQLite graph; returns where the damaged one is kept now. Raises BadInput for other files."""
    from kgot_lab.stores.log import salvage
    from kgot_lab.stores.sqlite.salvage import salvage_sqlite

    kind = _kind_of(path := Path(path))
    ways: dict[str, Callable[[Path], Path]] = {_LOG: salvage, _GRAPH: salvage_sqlite}
    if kind not in ways:
        raise BadInput(f"{path} is {kind}: only a log and an SQLite graph can be salvaged; restore a copy")
    return ways[kind](path)


def _kind_of(path: Path) -> str:
    head = _head_of(path).removeprefix(codecs.BOM_UTF8)
    if not head:
        raise BadInput(f"{path} is empty: what was in it is lost, or it was never written; restore a copy, or delete it")
    if b"kgot_lab diff log" in head or b"\nmark 0000" in head:
        return _LOG
    if head.startswith(b"SQLite format 3"):
        return _sqlite_kind(path)
    for start, kind in ((b'{"trace"', _TRACE), (b'{"tape"', _TAPE), (b'{"run"', _LEDGER)):
        if head.startswith(start):
            return kind
    if path.suffix.lower() != ".graphml":  # which may be in UTF-16
        require_narrow(head, path)
    if path.suffix.lower() in {".json", ".jsonl", ".graphml", ".ttl"}:
        return _GRAPH_FILE
    if path.suffix.lower() in {".log", ".db", ".sqlite", ".sqlite3"}:
        named = "log of diffs" if path.suffix.lower() == ".log" else "SQLite file"
        raise BadInput(f"{path} is no {named}, or has lost its beginning and all with it: if it was one, restore a copy")
    raise BadInput(f"{path} is no log, SQLite graph, cache of vectors, trace, tape, graph file or ledger of this package: name another")


def _head_of(path: Path) -> bytes:
    """The first bytes of a file; raises BadInput, which says what else is there, or why it cannot be read."""
    name = shortly(str(path)).strip("'") if len(str(path)) > _LONG_NAME else str(path)
    try:
        kind = stat.S_IFMT(path.stat().st_mode)
        if kind == stat.S_IFREG:
            with path.open("rb") as file:
                return file.read(_HEAD)
    except FileNotFoundError:
        if path.is_symlink():
            there = path.readlink()
            raise BadInput(f"{name} is a link to {there}, and there is no such file: mend the link or restore that file") from None
        raise BadInput(f"there is no file {name}: see that the name is right") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{name} {_unread(error)}: see that it may be read by you, and that the disk is sound") from None
    if kind == stat.S_IFDIR:
        raise BadInput(f"{name} is a folder: name a file in it")
    raise BadInput(f"{name} is {_KINDS.get(kind, 'no file')}, of which nothing was read: name a file")


def _unread(error: Exception) -> str:
    return f"cannot be read ({(isinstance(error, OSError) and error.strerror) or error})"


def _sqlite_kind(path: Path) -> str:
    from kgot_lab.stores.sqlite.file import APPLICATION

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION
            tables = set() if ours else {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    except (sqlite3.Error, UnicodeDecodeError):
        return _GRAPH
    if "vectors" in tables:
        return _VECTORS
    if not ours and not {"nodes", "edges", "words"} <= tables:
        raise BadInput(f"{path} is an SQLite file of another program, not a graph or cache of this package: nothing here can check it")
    return _GRAPH


def _log(path: Path) -> str:
    from kgot_lab.stores.log import chain_on_file, history

    found = chain_on_file(path)
    writes = sum(1 for _ in history(path))
    if found.torn:
        raise StoreDamaged(f"{found.torn}; the {counted(writes, 'write')} before it are whole, and the next to open it goes on from there")
    old = "" if found.version > 1 else "; an old log, without a chain: a removed line would not show (compact() gives it one)"
    return f"{counted(writes, 'write')}, all of them{old}"


def _graph(path: Path) -> str:
    from kgot_lab.stores.sqlite.file import damage_on_file

    if damage := damage_on_file(path):
        raise StoreDamaged(f"{damage}: restore a copy, or keep what is whole: kgot-lab doctor --salvage {path}")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        summed = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sums'").fetchone()
    return "every row is as it was written" if summed else _ONLY_READ


def _vectors(path: Path) -> str:
    from kgot_lab.embedding.cache import VECTOR_CHECK, vector_check

    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if said != "ok":
            raise StoreDamaged(f"{said}: delete it, and vectors are computed again")
        rows = broken = 0
        for key, blob in connection.execute("SELECT key, CAST(vector AS BLOB) FROM vectors"):
            rows += 1
            broken += not isinstance(blob, bytes) or blob[-VECTOR_CHECK:] != vector_check(key, blob[:-VECTOR_CHECK])
    if broken:
        told = "are not as they were written: they are computed again when they are needed"
        raise StoreDamaged(f"{broken:,} of {counted(rows, 'vector')} {told}")
    return f"{counted(rows, 'vector')}, each as it was written"


def _trace(path: Path) -> str:
    from kgot_lab.llm.recorded import lines_on_file
    from kgot_lab.loop.trace import load_run, not_following, parted_at

    run, lines = load_run(path), lines_on_file(path)
    ended = "answered" if run.finished else "not finished: stopped, or cut short"
    torn = "; its last line was cut short" if lines[-1].strip() else ""
    known = "" if '"check":"' in lines[0] else f"; {_ONLY_READ}"
    apart = "" if (parted := parted_at(run.events)) is None else f"; {not_following(parted)}"
    return f"{counted(len(run.events), 'event')}, {ended}{torn}{known}{apart}"


def _tape(path: Path) -> str:
    from kgot_lab.llm.recorded import Recorded

    return f"{len(Recorded(path).replies):,} replies; {_ONLY_READ}"


def _graph_file(path: Path) -> str:
    from kgot_lab.stores.files import read_graph

    graph = read_graph(path)
    return f"{len(graph):,} nodes, {len(graph.edges):,} edges; {_ONLY_READ}"


def _ledger(path: Path) -> str:
    from kgot_lab.loop.ledger import Entry

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


_LOG, _GRAPH, _VECTORS = "a log of diffs", "a graph in SQLite", "a cache of vectors"
_TRACE, _TAPE, _GRAPH_FILE, _LEDGER = "a trace", "a tape", "a graph file", "a ledger"
_EXAMINED: dict[str, Callable[[Path], str]] = {
    _LOG: _log, _GRAPH: _graph, _VECTORS: _vectors, _TRACE: _trace, _TAPE: _tape, _GRAPH_FILE: _graph_file, _LEDGER: _ledger,
}  # fmt: skip
