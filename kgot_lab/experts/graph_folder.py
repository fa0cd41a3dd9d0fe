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
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import os_errors_as
from kgot_lab.kgos.extraction.folder import folder_fingerprint
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.methods.search.multi_graph import SEPARATOR, MultiGraph
from kgot_lab.kgos.query.graph_loading import load_graph
from kgot_lab.types import Edge

# A folder of code is read into a graph in a separate process, so that the server keeps responding. It is a
# daemon: it ends with the server.


def read_graph_in_worker(folder: Path) -> PropertyGraph:
    """Read the graph of a folder in a worker process.

    Raises BadInput if it cannot be read.
    """
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    context.Process(target=_send_graph, args=(folder, sending), daemon=True).start()
    sending.close()
    try:
        with receiving:
            graph: PropertyGraph | Exception = receiving.recv()
    except EOFError:
        reason = "ended before its time: it was stopped, or memory ran out"
        raise BadInput(f"reading the folder {folder.name} {reason}") from None
    if isinstance(graph, Exception):
        raise graph
    return graph


def _send_graph(folder: Path, sending: Connection) -> None:
    """Read a graph and send it, or the error of reading it. If nobody receives any more, end quietly."""
    with suppress(BrokenPipeError):
        try:
            sending.send(load_graph(str(folder)))
        except Exception as error:
            sending.send(error)


def _read_graph(path: Path) -> PropertyGraph:
    return read_graph_in_worker(path) if path.is_dir() else load_graph(str(path))


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


class _LoadedGraph(NamedTuple):
    stamp: str
    graph: PropertyGraph


_MakeGraph = Callable[[], PropertyGraph]


class GraphFolder:
    """A folder of graphs. Nothing outside the folder is read.

    The id of a graph is its file name without the suffix. `more` are functions that create graphs without
    files by name, called at first use. Files are checked at each question, so a changed graph takes effect at
    once.
    """

    @check_arguments
    def __init__(self, folder: Path | None = None, more: Mapping[str, _MakeGraph] | None = None):
        self.folder = None if folder is None else folder.resolve()
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
            try:
                stamp = _file_stamp(path) if path else ""
                if loaded is None or loaded.stamp != stamp:
                    loaded = _LoadedGraph(stamp, _read_graph(path) if path else self._factories[name]())
                    graph_index(loaded.graph)
            except LabError as error:
                reason = str(error).replace(str(path or name), name)
                raise BadInput(f"the graph {name} cannot be read: {reason}") from None
            except OSError as error:  # it was deleted meanwhile, or cannot be read
                raise BadInput(f"the graph {name} cannot be read: {error.strerror}") from None
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

    def _entries(self) -> list[Path]:
        if self.folder is None:
            return []
        with os_errors_as("the folder of graphs cannot be read"):
            return sorted(self.folder.iterdir())


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
