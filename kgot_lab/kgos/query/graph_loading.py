"""Load a graph from a file of any supported format, a store's address, or a folder of code."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Literal

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.conversion import CONVERTERS
from kgot_lab.documents.files import MAIL_EXTENSIONS
from kgot_lab.errors import BadInput, StoreUnavailable, UnknownName, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import NamedGraph, use_names_as_ids
from kgot_lab.io.sqlite.connection import connect, is_searched_at_opening, query_number
from kgot_lab.io.sqlite.copies import private_copy
from kgot_lab.io.sqlite.file import is_open_in_process
from kgot_lab.io.sqlite.wal import find_log_damage
from kgot_lab.kgos.extraction.facts import PROSE_ENDINGS, PYTHON_ENDINGS, SCRIPT_ENDINGS
from kgot_lab.kgos.extraction.folder import FileProgress, extract_folder
from kgot_lab.kgos.extraction.patterns import add_patterns
from kgot_lab.kgos.schemas.foreign_files import NO_REFERENCE, read_foreign, read_references
from kgot_lab.kgos.schemas.profiles import HEURISTIC
from kgot_lab.loop.evidence import add_supports
from kgot_lab.loop.trace import graph_after, is_trace, load_run
from kgot_lab.stores.files import read_named_graph
from kgot_lab.stores.files.elements import build_graph
from kgot_lab.stores.opening import environment_login, open_store
from kgot_lab.stores.sql import edge_from_row, node_from_row
from kgot_lab.stores.sqlite.damage import SELECT_SOUND_ROWS, enable_checksums, find_dangling_edge
from kgot_lab.stores.sqlite.file import (
    APPLICATION,
    STEPS,
    damaged_error,
    require_own_format,
    unavailable_error,
)
from kgot_lab.text.cleaning import format_count

# Read the graph in a store's file without opening the store: nothing is locked, repaired or created.

_SQLITE_ENDINGS = (".sqlite", ".sqlite3", ".db", ".log")
_MEMORY = 0x6B676C63  # the application id of a memory of claims
_SQLITE_MAGIC = b"SQLite format 3"


def is_store_file(path: Path | str) -> bool:
    """Return whether a file is a store, by its ending or because it begins as SQLite does.

    Raises OSError if it cannot be read.
    """
    path = Path(path)
    with path.open("rb") as file:
        return path.suffix.lower() in _SQLITE_ENDINGS or file.read(15) == _SQLITE_MAGIC


def read_store_file(path: Path | str, columns: Mapping[str, str] | None = None) -> NamedGraph:
    """Read the graph in an SQLite file without changing it, and note any damage.

    An SQLite file of another program is read by the profile of its tables, with `columns` as in `read_foreign`.
    The note then names the profile and the rows that were not read. Raises BadInput if the file is empty or has no
    graph. Raises StoreDamaged if acknowledged data is missing, and
    StoreUnavailable.
    """
    path = Path(path)
    if not path.stat().st_size:
        raise BadInput(f"{path} is empty, so it holds no graph: if it held one once, restore a copy")
    with path.open("rb") as file:
        is_text = b"\0" not in file.read(512)  # which no SQLite file is, nor one that is damaged
    if is_text and path.suffix.lower() in _SQLITE_ENDINGS:
        problem = f"{path} is a text and no SQLite file: name it by what it is, as in graph.csv"
        raise BadInput(f"{problem}; if it was a store once, restore a copy")
    return _read_sqlite(path, columns or {})


def _read_sqlite(path: Path, columns: Mapping[str, str]) -> NamedGraph:
    try:
        with _open_for_reading(path) as (connection, lost):
            application = query_number(connection, "PRAGMA application_id")
            if application == _MEMORY:
                problem = f"{path} is a memory and no graph: kgot-lab memory {path} facts shows it"
                raise BadInput(f"{problem}, and kgot-lab mcp {path} --user NAME serves it")
            if application != APPLICATION:
                return _read_foreign_sqlite(path, columns)
            _require_sound_file(connection, path)
            enable_checksums(connection)
            for version in range(query_number(connection, "PRAGMA user_version"), max(STEPS)):
                STEPS[version + 1](connection)  # on a copy
            ordered = (f"{SELECT_SOUND_ROWS[kind]} ORDER BY row.number" for kind in ("nodes", "edges"))
            nodes, edges = (connection.execute(query).fetchall() for query in ordered)
            for kind, rows in (("nodes", nodes), ("edges", edges)):
                if gone := query_number(connection, f"SELECT count(*) FROM {kind}") - len(rows):
                    raise damaged_error(path, f"{format_count(gone, 'row')} of {kind} not as written")
            if dangling := find_dangling_edge(connection):
                raise damaged_error(path, dangling)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise unavailable_error(error, path) or StoreUnavailable(f"{path}: {error}") from None
    return NamedGraph(PropertyGraph.of(map(node_from_row, nodes), map(edge_from_row, edges)), lost)


def _read_foreign_sqlite(path: Path, columns: Mapping[str, str]) -> NamedGraph:
    called = columns.get("called", "")
    own = {name: column for name, column in columns.items() if column != "id"}
    read, problem = None, BadInput("")
    try:
        read = read_foreign(path, columns=own)
    except UnknownName:
        raise
    except BadInput as error:
        problem = error
    if read is None or (read.profile.name == HEURISTIC and read.others):
        found = read_references(path, own)
        if len(found.edges) > (len(read.graph.edges) if read else 0):
            given = {"types": columns.get("type", ""), "relation": columns.get("relation", "")}
            is_named = called != "id" and any("name" in fields for _, fields in found.nodes.values())
            named = build_graph(found, names="name" if is_named else called, **given, rename=True)
            return NamedGraph(named.graph, named.summary)
    if read is None:
        raise BadInput(f"{problem}\n  references between tables: {NO_REFERENCE}")
    named = (
        NamedGraph(read.graph) if called == "id" else use_names_as_ids(read.graph, "name" if called else "")
    )
    notes = [f"tables of the profile {read.profile}", named.note]
    notes += [f"left out: the tables {', '.join(read.others)}, as the profile has two"] if read.others else []
    if read.unread:
        more = f" and {len(read.unread) - 1:,} more" if len(read.unread) > 1 else ""
        notes.append(f"{format_count(len(read.unread), 'row')} not read as written: {read.unread[0]}{more}")
    return NamedGraph(named.graph, "; ".join(filter(None, notes)))


@contextmanager
def _open_for_reading(path: Path) -> Iterator[tuple[sqlite3.Connection, str]]:
    """Yield a connection in one transaction, and what the log beside the file has lost.

    The connection is to a copy, except if a store in this process has the file open.
    """
    with ExitStack() as opened:
        if is_open_in_process(path):
            uri, lost = f"{path.absolute().as_uri()}?mode=ro", ""
        else:
            copied = opened.enter_context(private_copy(path))
            uri, lost = copied.path.as_uri(), find_log_damage(copied)
        connection = opened.enter_context(closing(connect(uri)))
        connection.execute("BEGIN")
        yield connection, lost


def _require_sound_file(connection: sqlite3.Connection, path: Path) -> None:
    """Raise BadInput if a file is not a store, and StoreDamaged if a short check finds damage."""
    require_own_format(connection, path)
    if is_searched_at_opening(connection):
        (integrity,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if integrity != "ok":
            raise damaged_error(path, str(integrity).removeprefix("*** in database main ***\n"))


NoteCallback = Callable[[str], None]
# files of these endings are texts or code, except that a .txt or .json may hold a graph
_PROSE = (*PROSE_ENDINGS, *PYTHON_ENDINGS, *SCRIPT_ENDINGS, *CONVERTERS, *MAIL_EXTENSIONS)


def is_graph_file(path: Path) -> bool:
    """Return whether a file is read as a graph, because it holds one or is no text either.

    A text, as documents and code are, is read as a folder of one file.
    """
    suffix = path.suffix.lower()
    if suffix not in (".txt", ".html", ".htm"):
        return suffix not in _PROSE
    try:
        return bool(read_graph(path, say=lambda _: None))
    except BadInput:
        return False


@check_arguments
def load_graph(
    where: str | Path,
    *,
    namespace: str | None = None,
    cache: Path | Literal[False] | None = None,
    say: NoteCallback | None = None,
    progress: FileProgress | None = None,
    client: Any = None,
    all_files: bool = False,
) -> PropertyGraph:
    """Load the graph at a location, such as a folder, a document, a file or a store's address, without changing it.

    `say` receives what had to be guessed, and `progress` the files of a folder. A Dask `client` distributes
    the reading of a folder; `all_files` reads build output and ignored files too. Raises BadInput if nothing
    can be read, and what opening a store raises.
    """
    report, where = say or (lambda _: None), str(where)
    path, is_address = Path(where).expanduser(), "://" in where
    if namespace and not is_address:
        raise BadInput(
            f"{where} is no server's address, and only a server has namespaces: leave namespace out"
        )
    if (cache is not None or all_files or client is not None) and not path.is_dir():
        raise BadInput(
            f"{where} is no folder, and cache, client and all_files are of folders: leave them out"
        )
    if is_address:
        if not namespace:
            how = f"--namespace NAME before its address; kgot-lab namespaces {where} lists them"
            raise BadInput(f"say which graph of the server: {how}")
        with closing(open_store(where, namespace=namespace, **environment_login(where))) as store:
            return store.graph()
    suffixes = {each.suffix.lower() for each in path.glob("*")}
    is_tables = bool(suffixes) and suffixes <= {".csv", ".tsv", ".parquet"}
    if (path.is_dir() and not is_tables) or (path.is_file() and not is_graph_file(path)):
        found = extract_folder(path, cache=cache, progress=progress, client=client, all_files=all_files)
        whole = add_patterns(found.graph)
        sizes = f"{format_count(len(whole), 'node')}, {format_count(len(whole.edge_keys), 'edge')}"
        report(f"{found.describe(None)}\n  with the patterns in it {sizes}")
        return whole
    if not path.is_file() and not is_tables:
        raise BadInput(
            f"there is no graph at {where}: name a folder, a file with a graph, a trace, or a store's file or address"
        )
    return read_graph(path, say=lambda summary: report(f"note: {where}: {summary}"))


@check_arguments
def read_graph(
    path: Path | str | Sequence[Path | str],
    *,
    names: str = "",
    types: str = "",
    relation: str = "",
    source: str | int = "",
    target: str | int = "",
    encoding: str = "",
    say: NoteCallback | None = None,
) -> PropertyGraph:
    """Read the graph in a file of any program, in a store's file or a run's trace, by what is in it.

    Several files, such as a table of nodes and one of edges, are given as a list, a folder or a zip. Nodes go by
    their names if their ids are numbers or IRIs. The fields of names, types, relations and ends of edges are found
    by evidence, or as given; the names "id" rename no node. `encoding` is that of a text which is not UTF-8. `say`
    receives a summary of what was understood and left out, which otherwise is a warning. `read_named_graph` of
    `kgot_lab.stores.files` lists the forms. Raises BadInput if the file holds no graph.
    """
    source, target = str(source), str(target)
    if isinstance(path, str) and "://" in path:
        way = "open_store(address, namespace=…).graph() reads a server's graph; download a file first"
        raise BadInput(f"read_graph() reads files, not the address {short_repr(path)}: {way}")
    file = Path(path).expanduser() if isinstance(path, str | Path) else Path()
    if file.is_file() and is_trace(file):
        run = load_run(file)
        graph, summary = add_supports(graph_after(run.events), run.events), run.unfinished
    elif file.is_file() and is_store_file(file):
        fields = {"called": names, "type": types, "relation": relation, "source": source, "target": target}
        stored = read_store_file(file, {name: column for name, column in fields.items() if column})
        graph, summary = stored.graph, stored.note
    else:
        given = file if isinstance(path, str | Path) else path
        ends = {"source": source, "target": target, "encoding": encoding}
        read = read_named_graph(given, names=names, types=types, relation=relation, rename=True, **ends)
        graph, summary = read.graph, read.summary
    if summary and say is not None:
        say(summary)
    elif summary:
        warnings.warn(f"{path}: {summary}", stacklevel=2)
    return graph
