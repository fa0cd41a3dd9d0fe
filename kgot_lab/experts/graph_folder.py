"""The graphs that experts can use: the files of a folder, by name.

Each is loaded once, and again when it changes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput, LabError, UnknownName
from kgot_lab.experts.expert import GRAPH_ID, CrossEdge, ExpertConfig
from kgot_lab.experts.uploads import UploadFolder
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import os_errors_as
from kgot_lab.kgos.extraction.folder import FileProgress, folder_fingerprint
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.search.multi_graph import SEPARATOR, MultiGraph
from kgot_lab.kgos.query.graph_loading import NoteCallback, load_graph
from kgot_lab.types import Edge, Json

# A folder of code is read into a graph in a separate process, so that the server keeps responding. It is a
# daemon: it ends with the server.


def read_graph_in_worker(
    folder: Path, progress: FileProgress = lambda *_: None, note: NoteCallback = lambda _: None
) -> PropertyGraph:
    """Read the graph of a folder in a worker process, and report its progress and what was passed over.

    Raises BadInput if it cannot be read.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    context.Process(target=_send_graph, args=(folder, sending), daemon=True).start()
    sending.close()
    try:
        with receiving:
            while isinstance(graph := receiving.recv(), tuple):
                (note if len(graph) == 1 else progress)(*graph)
    except EOFError:
        reason = "ended before its time: it was stopped, or memory ran out"
        raise BadInput(f"reading the folder {folder.name} {reason}") from None
    if not isinstance(graph, PropertyGraph):
        raise graph
    return graph


def _send_graph(folder: Path, sending: Connection) -> None:
    """Read a graph and send it, or the error of reading it. If nobody receives any more, end quietly."""
    with suppress(BrokenPipeError):
        try:
            report, note = (lambda *done: sending.send(done)), (lambda text: sending.send((text,)))
            sending.send(load_graph(str(folder), say=note, progress=report))
        except Exception as error:
            sending.send(error)


@dataclass(frozen=True, eq=False)
class KnownGraphs:
    """The graphs of an expert for querying: one graph, or several joined.

    The ids in joined graphs begin with the name of their graph.
    """

    names: tuple[str, ...]
    asked: PropertyGraph | MultiGraph
    digest: str  # of the contents of all of them

    @property
    def graph(self) -> PropertyGraph:
        return self.asked.graph if isinstance(self.asked, MultiGraph) else self.asked

    def split_id(self, id: str) -> tuple[str, str]:
        """Return the graph of a node, and its id in that graph."""
        if not isinstance(self.asked, MultiGraph):
            return self.names[0], id
        name, _, own = id.partition(SEPARATOR)
        return name, own


def _read_graph(path: Path, progress: FileProgress, note: NoteCallback) -> PropertyGraph:
    return read_graph_in_worker(path, progress, note) if path.is_dir() else load_graph(str(path), say=note)


@dataclass
class ReadingProgress:
    """How far the reading of a graph is: files done and in all, the current one, why it failed, and its notes.

    The notes are lines on what was read, guessed, and passed over.
    """

    done: int = 0
    total: int = 0
    file: str = ""
    error: str = ""
    notes: tuple[str, ...] = ()


class _LoadedGraph(NamedTuple):
    stamp: str
    graph: PropertyGraph


_MakeGraph = Callable[[], PropertyGraph]


@check_arguments
class GraphFolder:
    """A folder of graphs. Nothing outside the folder is read.

    The id of a graph is its file name without the suffix. `more` are functions that create graphs without
    files by name, called at first use. Files are checked at each question, so a changed graph takes effect at
    once. Those in the folder of `uploads` are offered too.
    """

    def __init__(
        self,
        folder: Path | None = None,
        more: Mapping[str, _MakeGraph] | None = None,
        uploads: UploadFolder | None = None,
    ):
        self.folder = None if folder is None else folder.resolve()
        self.uploads = uploads
        self.readings: dict[str, ReadingProgress] = {}  # of graphs that were read, or are, by name
        self._factories = dict(more or {})
        self._read: dict[str, _LoadedGraph] = {}
        self._joined: dict[str, KnownGraphs] = {}
        # adds the approved changes to a graph
        self.apply_accepted: Callable[[str, PropertyGraph], PropertyGraph] | None = None
        self._lock = threading.RLock()
        self._locks: dict[str, threading.Lock] = {}

    def names(self) -> tuple[str, ...]:
        """Return the ids of all graphs."""
        return tuple(sorted({*self._factories, *self._files()}))

    def skipped_entries(self) -> tuple[str, ...]:
        """Return the entries of the folder that are not offered as graphs, each with the reason.

        Hidden files are left out.
        """
        offered, reasons = set(self._files().values()), []
        for path in self._entries():
            if path in offered or path.name.startswith("."):
                continue
            if path.is_symlink():
                why = "is a link"
            elif path.suffix == ".md":
                why = "is a note by itself: put it into a folder, which is a graph"
            elif GRAPH_ID.fullmatch(path.stem):
                why = f"has the same name as {self._files()[path.stem].name}: rename one of them"
            else:
                why = "has a name that is no id: take letters, digits, dots, dashes and underscores, at most 100"
            reasons.append(f"{path.name!r} {why}")
        return tuple(reasons)

    def graph(self, name: str) -> PropertyGraph:
        """Return a graph by its id, with the learned changes.

        Raises UnknownName if there is none, and BadInput if its file is no graph.
        """
        base = self.base_graph(name)
        return base if self.apply_accepted is None else self.apply_accepted(name, base)

    def base_graph(self, name: str) -> PropertyGraph:
        """Return a graph by its id as it is read, without the learned changes. Raises what `graph` raises."""
        path = None if name in self._factories else self._files().get(name)
        if path is None and name not in self._factories:
            skipped = (entry for entry in self.skipped_entries() if entry.startswith(repr(name)[:-1]))
            raise UnknownName("graph", name, self.names(), advice=next(skipped, ""))
        # one lock for each graph, so that a large one does not block another
        with self._locks.setdefault(name, threading.Lock()):
            loaded = self._read.get(name)
            reading = ReadingProgress()

            def report(done: int, total: int, file: str) -> None:
                reading.done, reading.total, reading.file = done, total, file

            def note(text: str) -> None:
                reading.notes += tuple(text.replace(str(path), name).splitlines())

            try:
                stamp = _file_stamp(path) if path else ""
                if loaded is None or loaded.stamp != stamp:
                    self.readings[name] = reading
                    graph = _read_graph(path, report, note) if path else self._factories[name]()
                    loaded = _LoadedGraph(stamp, graph)
                    graph_index(loaded.graph)
            except (LabError, OSError) as error:  # an OSError: it was deleted meanwhile, or cannot be read
                why = error.strerror if isinstance(error, OSError) else str(error)
                reading.error = (
                    f"the graph {name} cannot be read: {str(why).replace(str(path or name), name)}"
                )
                raise BadInput(reading.error) from None
            self._read[name] = loaded
        return loaded.graph

    def expert_graphs(self, config: ExpertConfig) -> KnownGraphs:
        """Return the joined graphs of an expert.

        Raises UnknownName for an unknown graph, and BadInput if one cannot be read or joined.
        """
        graphs = {name: self.graph(name) for name in config.graphs}
        digests = "".join(f"{name}={graph.digest};" for name, graph in graphs.items())
        digest = hashlib.sha256(digests.encode()).hexdigest()
        if len(graphs) == 1:
            return KnownGraphs(config.graphs, next(iter(graphs.values())), digest)
        settings = f"{digest}{sorted(config.graph_weights.items())}{config.cross_edges}"
        key = hashlib.sha256(settings.encode()).hexdigest()
        with self._lock:
            if key not in self._joined:
                cross_edges = [_to_edge(edge, graphs) for edge in config.cross_edges]
                joined = MultiGraph.of(graphs, cross_edges, weights=config.graph_weights)
                known = KnownGraphs(config.graphs, joined, digest)
                self._joined = dict([*self._joined.items()][-7:]) | {key: known}
            return self._joined[key]

    def _files(self) -> dict[str, Path]:
        """Return the files and folders that may be graphs, by id.

        Links are skipped, because they may lead out of the folder.
        """
        files = (path for path in self._entries() if path.suffix != ".md" and not path.is_symlink())
        return {path.stem: path for path in files if GRAPH_ID.fullmatch(path.stem)}

    def state(self, name: str) -> dict[str, Json]:
        """Return how far a graph is: unread, reading, ready or failed, with its progress."""
        reading = self.readings.get(name)
        state = "failed" if reading and reading.error else "ready" if name in self._read else "reading"
        return {"id": name, "state": state if reading else "unread", **vars(reading or ReadingProgress())}

    def remove_upload(self, name: str) -> None:
        """Delete an uploaded graph. Raises UnknownName if there is none of this name."""
        path = self._files().get(name)
        if path is None or self.uploads is None or not self.uploads.remove(path):
            raise UnknownName("uploaded graph", name, ())
        self._read.pop(name, None)
        self.readings.pop(name, None)

    def _entries(self) -> list[Path]:
        folders = [self.folder] if self.folder else []
        folders += [self.uploads.folder] if self.uploads and self.uploads.folder.is_dir() else []
        with os_errors_as("the folder of graphs cannot be read"):
            return [path for folder in folders for path in sorted(folder.iterdir())]


def _file_stamp(path: Path) -> str:
    if path.is_dir():
        return folder_fingerprint(path)
    status = path.stat()
    return f"{status.st_mtime_ns} {status.st_size} {status.st_ino}"


def _to_edge(cross_edge: CrossEdge, graphs: Mapping[str, PropertyGraph]) -> Edge:
    for end in (cross_edge.source, cross_edge.target):
        name, _, id = end.partition(SEPARATOR)
        if id not in graphs[name]:
            raise BadInput(f"cross_edges: the graph {name} has no node {id[:60]!r}")
    return Edge(cross_edge.source, cross_edge.type, cross_edge.target)
