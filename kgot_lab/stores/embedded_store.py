"""A graph in this process: kept in dictionaries and perhaps in a file, changed by statements in a sandbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from keyword import iskeyword
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Concatenate, ParamSpec, TypeVar
from unicodedata import normalize

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable, require_count
from kgot_lab.graph.changes import MutableGraph, inverse
from kgot_lab.graph.validation import copy_edge, copy_node, validate_diff
from kgot_lab.io.processes import OPENED_BEFORE_FORK, register_for_forks
from kgot_lab.sandbox import Calculator, open_sandbox
from kgot_lab.stores.lookup import WordIndex
from kgot_lab.stores.protocol import DIALECT_TEXTS, Dialect, Schema, StatementExecutor, UndoableStore
from kgot_lab.stores.sqlite.store import Sqlite
from kgot_lab.stores.statements import python_constants, python_path_query, require_statement
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import casefold_words
from kgot_lab.types import Diff, Edge, Json, Node, Rows, Triple

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

P = ParamSpec("P")
R = TypeVar("R")


def _synchronized(
    method: Callable[Concatenate[EmbeddedStore, P], R],
) -> Callable[Concatenate[EmbeddedStore, P], R]:
    """Decorate a method of a store so that one thread at a time runs it.

    The graph, log and sandbox do not change meanwhile.
    """

    @wraps(method)
    def synchronized(store: EmbeddedStore, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with store._lock:
            return method(store, *args, **kwargs)

    return synchronized


class EmbeddedStore(UndoableStore):
    """The base class of the embedded stores, which differ in the language of their statements.

    `open` makes, at the first statement, what runs those of this store alone: by default a sandbox. `seconds`
    limits one statement. `unsafe` allows a sandbox that does not isolate. A statement raises NoSandbox if there
    is none. Applying diffs and reading the graph need no sandbox. With a `path` every diff is written to an
    SQLite file before it takes effect, and a later store on that path continues from there. Raises BadInput if
    the file contains something else, and StoreDamaged if it lost acknowledged writes. Threads may share a store,
    and processes a file: they wait for each other.
    """

    dialect: ClassVar[Dialect]
    language: ClassVar[str]

    def __init__(
        self,
        *,
        open: Callable[[], StatementExecutor] | None = None,
        path: Path | str | None = None,
        seconds: float = 5.0,
        unsafe: bool = False,
    ):
        self._lock = RLock()
        self._state = MutableGraph()
        self._word_index: WordIndex | None = None  # created at the first search
        self._unsafe, self._seconds = unsafe, seconds
        self._executor: StatementExecutor | None = None
        self._create_executor, self._is_loaded = open or self._open_sandbox, False
        self._calculator = Calculator(unsafe=unsafe, seconds=seconds)
        self._path = None if path is None else Path(path).expanduser()
        self._location = f"in {self._path}" if self._path else "in this process"
        self._closed_reason = ""  # why it can no longer be used
        self._file = None if self._path is None else Sqlite(self._path)
        self._file_state: object = None  # of the file when it held this graph
        register_for_forks(self)

    def __repr__(self) -> str:
        where = f" {self._path.name}" if self._path else ""
        return f"<{type(self).__name__}{where}: {self._contents()}>"

    @_synchronized
    def _contents(self) -> str:
        if self._closed_reason:
            return "closed"
        state = self._current_state
        return f"{format_count(len(state.nodes), 'node')}, {format_count(len(state.edges), 'edge')}"

    # --- statements ---

    @_synchronized
    def write(self, statement: str) -> Diff:
        """Run a statement and store its changes.

        Raises QueryFailed, changing nothing, if the statement is refused or fails.
        """
        self._check_statement("write", statement)
        with self._write_transaction():
            diff = self._loaded_executor().write(statement)
            try:
                stored = validate_diff(diff)
                self._store_diff(stored)
            except BadInput as error:
                raise QueryFailed(statement, str(error)) from None
        self._update_sandbox(stored)
        return diff

    @_synchronized
    def read(self, statement: str) -> Rows:
        """Run a read statement and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        self._check_statement("read", statement)
        return self._loaded_executor().read(statement)

    @_synchronized
    def read_without(self, statement: str, edges: Sequence[Edge]) -> Rows:
        """Run a read statement as if some edges were missing, and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        self._check_statement("read", statement)
        return self._loaded_executor().read(statement, edges)

    @_synchronized
    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python and return what it prints, or the value of its last expression.

        It has no access to the graph and is limited to `seconds`. Raises QueryFailed if the code fails.
        """
        self._require_open()
        EmbeddedStore._check_statement(self, "compute", code)
        if self.language == "python":
            return self._opened_executor().compute(code, seconds=seconds)
        return self._calculator.compute(code, seconds=seconds)

    # --- the graph ---

    @_synchronized
    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state."""
        from kgot_lab.graph import PropertyGraph

        state = self._current_state
        return PropertyGraph.of(state.nodes.values(), state.edges.values())

    @_synchronized
    def apply(self, diff: Diff) -> None:
        """Apply a diff to the graph, for example that of an earlier write.

        Raises BadInput if it does not fit.
        """
        stored = validate_diff(diff)
        with self._write_transaction():
            self._store_diff(stored)
        self._update_sandbox(stored)

    @_synchronized
    def close(self) -> None:
        """Close the sandbox and the file, which keeps the graph.

        A later call raises StoreUnavailable.
        """
        if self._closed_reason == OPENED_BEFORE_FORK:
            return
        self._closed_reason = "was closed; open another one"
        if self._executor is not None:
            self._executor.close()
        self._calculator.close()
        if self._file is not None:
            self._file.close()

    def after_fork(self) -> None:
        """Mark the store in a forked child.

        A graph on file belongs to the parent. A graph in memory is a usable copy, unless a thread of the
        parent was changing it.
        """
        if self._path is not None or not self._lock.acquire(blocking=False):
            self._closed_reason = self._closed_reason or OPENED_BEFORE_FORK
        self._lock = RLock()

    # --- queries ---

    @_synchronized
    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        self._refresh()
        truth = self._current_state
        labels = Counter(label for node in truth.nodes.values() for label in node.labels)
        relations = Counter(edge.type for edge in truth.edges.values())
        return Schema(
            dict(sorted(labels.items())), dict(sorted(relations.items())), len(truth.nodes), len(truth.edges)
        )

    @_synchronized
    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges, oldest first.

        Empty if there is no such node.
        """
        self._refresh()
        state = self._current_state
        return tuple(copy_edge(state.edges[identity]) for identity in state.incident.get(id, ()))

    @_synchronized
    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first."""
        require_count(limit, 0, "limit")
        self._refresh()
        truth = self._current_state
        if self._word_index is None:
            self._word_index = WordIndex()
            for node in truth.nodes.values():
                self._word_index.add(node)
        best = self._word_index.best_matches(casefold_words(words), limit)
        return tuple(copy_node(truth.nodes[id]) for id in best)

    # --- internal ---

    def _check_statement(self, kind: str, statement: str) -> None:
        """Raise QueryFailed for a statement that this store does not run."""
        require_statement(statement)
        if not statement.strip():
            raise QueryFailed(statement, "there is no statement")

    def _refresh(self) -> None:
        """Update the graph before a query, where it is a copy of a server's."""

    def _require_open(self) -> None:
        if self._closed_reason:
            raise StoreUnavailable(f"the store {self._location} {self._closed_reason}")

    @property
    def _current_state(self) -> MutableGraph:
        """The graph, read from the file again if that has changed, since others write to it or a write failed."""
        self._require_open()
        if self._file is not None and (state := self._file.state()) != self._file_state:
            graph = self._file.graph()
            self._set_state(MutableGraph(graph.nodes, graph.edges))
            self._file_state = state
        return self._state

    @contextmanager
    def _write_transaction(self) -> Iterator[None]:
        """Exclude other processes from the file while a diff is found and written. An error undoes the write."""
        self._require_open()
        if self._file is None:
            yield
            return
        with self._file.transaction():
            yield
            state = self._file.state()
        self._file_state = state

    def _open_sandbox(self) -> StatementExecutor:
        return open_sandbox(language=self.language, seconds=self._seconds, unsafe=self._unsafe)

    def _opened_executor(self) -> StatementExecutor:
        self._require_open()
        if self._executor is None:
            self._executor = self._create_executor()
        return self._executor

    def _loaded_executor(self) -> StatementExecutor:
        execute, truth = self._opened_executor(), self._current_state
        if not self._is_loaded:
            execute.reset(tuple(truth.nodes.values()), tuple(truth.edges.values()))
            self._is_loaded = True
        return execute

    def _set_state(self, state: MutableGraph) -> None:
        self._state, self._is_loaded, self._word_index = state, False, None

    def _store_diff(self, diff: Diff) -> None:
        """Write a diff to the file and apply it to the graph.

        Raises BadInput if it does not fit, and StoreUnavailable if it cannot be written.
        """
        self._current_state.check(diff)
        if self._file is not None and diff:
            self._file_state = None  # until the transaction has ended
            self._file.apply(diff)
        self._apply_in_memory(diff)

    def _update_sandbox(self, diff: Diff) -> None:
        """Send a stored diff to the sandbox."""
        if self._is_loaded and self._executor is not None:
            try:
                self._executor.apply(diff)
            # the diff is stored in any case: the sandbox gets the whole graph before the next statement
            except Exception:
                self._is_loaded = False

    def _apply_in_memory(self, diff: Diff) -> None:
        self._state.apply_checked(diff)
        removed = (*diff.removed_nodes, *(before for before, _ in diff.changed_nodes))
        added = diff.written_nodes
        if self._word_index is not None:
            for node in removed:
                self._word_index.remove(node)
            for node in added:
                self._word_index.add(node)


# The embedded Python store: NetworkX in the sandbox.


def fact_of(edge: Edge) -> str:
    """Format an edge as one line of text."""
    return f"{edge.source} --[{edge.type}]--> {edge.target}"


def format_properties(element: Node | Edge) -> str:
    """Format an element's properties as they follow it on a line."""
    pairs = ", ".join(f"{name}: {value}" for name, value in element.properties.items())
    return f" {{{pairs}}}" if pairs else ""


def _format_labels(node: Node) -> str:
    return f" ({', '.join(node.labels)})" if node.labels else ""


_ARGUMENTS = ("subject", "relation", "object", "subject_label", "object_label")


def _is_keyword_name(name: str) -> bool:
    """Return whether a property can be passed as a keyword argument of add."""
    # Python reads other spellings as that one
    is_identifier = name.isidentifier() and normalize("NFKC", name) == name
    return is_identifier and not iskeyword(name) and name not in _ARGUMENTS and name.rstrip("_") != "relation"


def _add_fact(triple: Triple, properties: Mapping[str, Json]) -> str:
    """Format one call of add, followed by an update for properties that cannot be keyword arguments.

    A property named like the edge's type has an underscore in the graph.
    """
    keywords = {name: value for name, value in properties.items() if _is_keyword_name(name)}
    arguments = "".join(f", {name}={value!r}" for name, value in keywords.items())
    line = f"add({triple.subject!r}, {triple.relation!r}, {triple.object!r}{arguments})"
    others = {name: value for name, value in properties.items() if name not in keywords}
    updates = {f"{n}_" if n.rstrip("_") == "relation" else n: value for n, value in others.items()}
    edge = f"G.edges[{triple.subject!r}, {triple.object!r}, {triple.relation!r}]"
    return f"{line}\n{edge}.update({updates!r})" if updates else line


def _label_nodes(nodes: Sequence[Node]) -> str:
    """Format one call of node for each node. A property that cannot be a keyword argument follows in a mapping."""
    lines = []
    for node in nodes:
        label = f", {node.labels[0]!r}" if node.labels else ""
        lines.append(f"node({node.id!r}{label}{f', **{dict(node.properties)!r}' if node.properties else ''})")
    return "\n".join(lines)


PYTHON = Dialect(
    **DIALECT_TEXTS["python"],
    add=lambda facts: "\n".join(_add_fact(*fact) for fact in facts),
    about=lambda names, hops: f"result = facts(about={list(names)!r}, hops={hops})",
    paths=python_path_query,
    node=lambda node: f"{node.id}{_format_labels(node)}{format_properties(node)}",
    edge=lambda edge: f"{fact_of(edge)}{format_properties(edge)}",
    label=_label_nodes,
    constants=python_constants,
)


class InMemory(EmbeddedStore):
    """A store for Python statements."""

    dialect = PYTHON
    language = "python"


__all__ = ["PYTHON", "InMemory", "inverse"]
