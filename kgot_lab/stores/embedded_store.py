"""A graph in this process: kept in dictionaries, optionally logged on disk, changed by statements in a
sandbox.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from keyword import iskeyword
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, ClassVar, Concatenate, ParamSpec, Self, TypeVar
from unicodedata import normalize

from kgot_lab.errors import BadInput, QueryFailed, StoreUnavailable
from kgot_lab.graph.changes import Truth, inverse
from kgot_lab.graph.validation import copied_edge, copied_node, fit_diff
from kgot_lab.io.processes import ELSEWHERE, tell_of_forks
from kgot_lab.sandbox import Calculator, open_sandbox
from kgot_lab.stores.log import DiffLog, elements_of
from kgot_lab.stores.lookup import HeldValues, WordIndex, edges_among, path_between, reached
from kgot_lab.stores.protocol import Dialect, Execute, Fact, Scalar, Schema
from kgot_lab.stores.statements import python_paths, python_words, require_statement, require_words
from kgot_lab.text.words import casefold_words
from kgot_lab.types import Diff, Edge, Json, Node, Rows, Triple

if TYPE_CHECKING:
    from kgot_lab.graph import PropertyGraph

P = ParamSpec("P")
R = TypeVar("R")


def _alone(act: Callable[Concatenate[EmbeddedStore, P], R]) -> Callable[Concatenate[EmbeddedStore, P], R]:
    """Decorate a method of a store so that one thread at a time runs it.

    The graph, log and sandbox do not change meanwhile.
    """

    @wraps(act)
    def alone(store: EmbeddedStore, /, *given: P.args, **named: P.kwargs) -> R:
        with store._alone:
            return act(store, *given, **named)

    return alone


class EmbeddedStore:
    """The base class of the embedded stores, which differ in the language of their statements.

    `execute` runs the statements of this store alone. By default it is a sandbox that is opened at the first
    statement. `seconds` limits one statement. `unsafe` allows a sandbox that does not isolate. A statement
    raises NoSandbox if there is none. Applying diffs and reading the graph need no sandbox. With a `path`
    every diff is written to disk before it takes effect, and a later store on that path continues from there.
    Raises StoreUnavailable if another process has the file open, BadInput if it contains something else, and
    StoreDamaged if it lost acknowledged writes. Threads may share a store: they wait for each other.
    """

    dialect: ClassVar[Dialect]
    language: ClassVar[str]

    def __init__(
        self,
        execute: Execute | None = None,
        *,
        open: Callable[[], Execute] | None = None,
        path: Path | str | None = None,
        seconds: float = 5.0,
        unsafe: bool = False,
    ):
        self._alone = RLock()
        self._known = Truth()
        self._words: WordIndex | None = None  # created at the first search
        self._held: HeldValues | None = None  # created at the first call of `holds`
        self._labels, self._relations = Counter[str](), Counter[str]()
        self._unsafe, self._seconds = unsafe, seconds
        self._execute, self._open, self._told = execute, open or self._sandbox, False
        self._calculator = Calculator(unsafe=unsafe, seconds=seconds)
        self._path = None if path is None else Path(path).expanduser()
        self._place = f"in {self._path}" if self._path else "in this process"
        self._over = ""  # why it can no longer be used
        self._log: DiffLog | None = None
        if self._path is not None:
            self._reopen(self._path)
        tell_of_forks(self)

    def __repr__(self) -> str:
        where = f" {self._path.name}" if self._path else ""
        held = "closed" if self._over else f"{len(self._known.nodes)} nodes, {len(self._known.edges)} edges"
        return f"<{type(self).__name__}{where}: {held}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- statements ---

    @_alone
    def write(self, statement: str) -> Diff:
        """Run a statement and store its changes.

        Raises QueryFailed, changing nothing, if the statement is refused or fails.
        """
        require_statement(statement)
        execute = self._running()
        diff = execute.write(statement)
        try:
            kept = fit_diff(diff)
            self._keep(kept)
        except BadInput as error:
            raise QueryFailed(statement, str(error)) from None
        self._tell(kept)
        return diff

    @_alone
    def read(self, statement: str) -> Rows:
        """Run a read statement and return its rows.

        Raises QueryFailed if the statement is refused or fails.
        """
        require_statement(statement)
        return self._running().read(statement)

    @_alone
    def compute(self, code: str, *, seconds: float | None = None) -> str:
        """Run plain Python and return what it prints, or the value of its last expression.

        It has no access to the graph and is limited to `seconds`. Raises QueryFailed if the code fails.
        """
        self._require_open()
        require_statement(code)
        if self.language == "python":
            return self._opened().compute(code, seconds=seconds)
        return self._calculator.compute(code, seconds=seconds)

    # --- the graph ---

    @_alone
    def graph(self) -> PropertyGraph:
        """Return the whole graph in its current state."""
        from kgot_lab.graph import PropertyGraph

        return PropertyGraph.of(self._truth.nodes.values(), self._truth.edges.values())

    @_alone
    def apply(self, diff: Diff) -> None:
        """Apply a diff to the graph, for example that of an earlier write.

        Raises BadInput if it does not fit.
        """
        kept = fit_diff(diff)
        self._keep(kept)
        self._tell(kept)

    @_alone
    def undo(self, diff: Diff) -> None:
        """Undo a diff.

        Raises BadInput if the graph has changed in the same elements since.
        """
        self.apply(inverse(diff))

    @_alone
    def compact(self) -> None:
        """Replace the history in the log by the current graph, so that it opens fast again.

        Raises StoreUnavailable if the log cannot be written.
        """
        truth = self._truth
        if self._log is not None:
            self._log.compact(truth)

    @_alone
    def close(self) -> None:
        """Close the sandbox and the log, which keeps the graph.

        A later call raises StoreUnavailable.
        """
        if self._over == ELSEWHERE:
            return
        self._over = "was closed; open another one"
        if self._execute is not None:
            self._execute.close()
        self._calculator.close()
        if self._log is not None:
            self._log.close()
        self._log = None

    def forked(self) -> None:
        """Mark the store in a forked child.

        A graph on file belongs to the parent. A graph in memory is a usable copy, unless a thread of the
        parent was changing it.
        """
        if self._path is not None or not self._alone.acquire(blocking=False):
            self._over = self._over or ELSEWHERE
        self._alone = RLock()

    # --- queries ---

    @_alone
    def schema(self) -> Schema:
        """Count the nodes per label and the edges per type, by name."""
        truth = self._truth
        return Schema(
            dict(sorted(self._labels.items())),
            dict(sorted(self._relations.items())),
            len(truth.nodes),
            len(truth.edges),
        )

    @_alone
    def neighbours(self, id: str) -> tuple[Edge, ...]:
        """Return a node's incoming and outgoing edges, oldest first.

        Empty if there is no such node.
        """
        return tuple(map(copied_edge, self._edges_at(id)))

    @_alone
    def search(self, words: str, limit: int = 10) -> tuple[Node, ...]:
        """Return the nodes that share words with a query in their name or properties, best first."""
        require_words(words)
        truth = self._truth
        if self._words is None:
            self._words = WordIndex()
            for node in truth.nodes.values():
                self._words.add(node)
        return tuple(copied_node(truth.nodes[id]) for id in self._words.best(casefold_words(words), limit))

    @_alone
    def within(self, id: str, hops: int) -> dict[str, int]:
        """Return the nodes within some hops, ignoring direction, each with its distance.

        Empty if there is no such node.
        """
        return reached(id, hops, self._ends) if id in self._truth.nodes else {}

    @_alone
    def path(self, source: str, target: str, most: int = 6) -> tuple[Edge, ...]:
        """Return a shortest undirected path of at most `most` edges, or () if there is none."""
        return tuple(map(copied_edge, path_between(source, target, most, self._edges_at)))

    @_alone
    def holds(self, value: Scalar) -> bool:
        """Return whether the graph contains a text or a number exactly.

        For what counts as equal see `lookup.holds_value`.
        """
        truth = self._truth
        if self._held is None:
            self._held = HeldValues((*truth.nodes.values(), *truth.edges.values()))
        return value in self._held

    @_alone
    def edges_between(self, ids: Collection[str]) -> tuple[Edge, ...]:
        """Return the edges whose two ends are both among the given nodes."""
        return tuple(map(copied_edge, edges_among(ids, self._edges_at)))

    def _edges_at(self, id: str) -> tuple[Edge, ...]:
        return tuple(self._truth.edges[identity] for identity in self._truth.incident.get(id, ()))

    def _ends(self, id: str) -> Iterator[str]:
        return (end for source, _, target, _ in self._truth.incident[id] for end in (source, target))

    # --- internal ---

    def _require_open(self) -> None:
        if self._over:
            raise StoreUnavailable(f"the store {self._place} {self._over}")

    @property
    def _truth(self) -> Truth:
        """The graph.

        After a write that left the log damaged it is read from the log again, since another process may have
        written to it.
        """
        self._require_open()
        if self._path is not None and (self._log is None or self._log.closed):
            self._reopen(self._path)
        return self._known

    def _sandbox(self) -> Execute:
        return open_sandbox(language=self.language, seconds=self._seconds, unsafe=self._unsafe)

    def _opened(self) -> Execute:
        self._require_open()
        if self._execute is None:
            self._execute = self._open()
        return self._execute

    def _running(self) -> Execute:
        execute, truth = self._opened(), self._truth
        if not self._told:
            execute.reset(tuple(truth.nodes.values()), tuple(truth.edges.values()))
            self._told = True
        return execute

    def _reopen(self, path: Path) -> None:
        """Read the graph from its log, which another process may have changed while it was closed."""
        log = DiffLog(path)
        try:
            truth = Truth()
            for number, record in enumerate(log.records, start=1):
                try:
                    truth.apply(truth.difference(*elements_of(record)))
                except BadInput as error:
                    raise BadInput(
                        f"{path}: record {number} does not follow from the ones before it: {error}"
                    ) from None
            log.records.clear()
        except BaseException:
            log.close()
            raise
        self._log, self._known, self._told = log, truth, False
        self._words = self._held = None
        self._labels = Counter(label for node in truth.nodes.values() for label in node.labels)
        self._relations = Counter(edge.type for edge in truth.edges.values())

    def _keep(self, diff: Diff) -> None:
        """Write a diff to disk and then apply it to the graph.

        Raises BadInput if it does not fit, and StoreUnavailable if it cannot be written.
        """
        self._truth.check(diff)
        if self._log is not None and diff:
            self._log.append(diff)
        try:
            self._take(diff)
        except (
            BaseException
        ):  # interrupted or out of memory after the write to disk: the graph is read from there again
            if self._log is not None:
                self._log.close()
            raise

    def _tell(self, diff: Diff) -> None:
        """Send a stored diff to the sandbox."""
        if self._told and self._execute is not None:
            try:
                self._execute.apply(diff)
            except (
                Exception
            ):  # the diff is stored in any case: the sandbox gets the whole graph before the next statement
                self._told = False

    def _take(self, diff: Diff) -> None:
        self._known.take(diff)
        gone = (*diff.removed_nodes, *(before for before, _ in diff.changed_nodes))
        came = (*diff.added_nodes, *(after for _, after in diff.changed_nodes))
        if self._words is not None:
            for node in gone:
                self._words.remove(node)
            for node in came:
                self._words.add(node)
        if self._held is not None:
            self._held.change(
                (*gone, *diff.removed_edges, *(before for before, _ in diff.changed_edges)), came
            )
            self._held.change((), (*diff.added_edges, *(after for _, after in diff.changed_edges)))
        _recount(
            self._labels,
            (label for node in gone for label in node.labels),
            (label for node in came for label in node.labels),
        )
        _recount(
            self._relations,
            (edge.type for edge in diff.removed_edges),
            (edge.type for edge in diff.added_edges),
        )


def _recount(counts: Counter[str], gone: Iterator[str], came: Iterator[str]) -> None:
    counts.update(came)
    for name in gone:
        counts[name] -= 1
        if not counts[name]:
            del counts[name]


# The embedded Python store: NetworkX in the sandbox.


def fact_of(edge: Edge) -> str:
    """Format an edge as one line of text."""
    return f"{edge.source} --[{edge.type}]--> {edge.target}"


def properties_of(element: Node | Edge) -> str:
    """Format an element's properties as they follow it on a line."""
    return (
        " {" + ", ".join(f"{name}: {value}" for name, value in element.properties.items()) + "}"
        if element.properties
        else ""
    )


def _kinds(node: Node) -> str:
    return f" ({', '.join(node.labels)})" if node.labels else ""


_ARGUMENTS = ("subject", "relation", "object", "subject_label", "object_label")


def _adds(facts: Sequence[Fact]) -> str:
    return "\n".join(_add(*fact) for fact in facts)


def _is_plain(name: str) -> bool:
    """Return whether a property can be passed as a keyword argument of add."""
    own = name.isidentifier() and normalize("NFKC", name) == name  # Python reads other spellings as that one
    return own and not iskeyword(name) and name not in _ARGUMENTS and name.rstrip("_") != "relation"


def _add(triple: Triple, properties: Mapping[str, Json]) -> str:
    """Format one call of add, followed by an update for properties that cannot be keyword arguments.

    A property named like the edge's type has an underscore in the graph.
    """
    plain = {name: value for name, value in properties.items() if _is_plain(name)}
    told = "".join(f", {name}={value!r}" for name, value in plain.items())
    line = f"add({triple.subject!r}, {triple.relation!r}, {triple.object!r}{told})"
    odd = {
        f"{name}_" if name.rstrip("_") == "relation" else name: value
        for name, value in properties.items()
        if name not in plain
    }
    return (
        f"{line}\nG.edges[{triple.subject!r}, {triple.object!r}, {triple.relation!r}].update({odd!r})"
        if odd
        else line
    )


PYTHON = Dialect(
    name="Python (NetworkX)",
    how_to_write=(
        "Write plain Python that changes the graph G, a networkx.MultiDiGraph; nx is imported. One statement for each fact.\n"
        "add(subject, relation, object, subject_label=..., object_label=..., **properties) adds a fact and its two nodes.\n"
        "node(id, label, **properties) adds a node or adds to it. A node's id is its name, as text; every node has a label.\n"
        "Values: text, numbers, True, False, lists of these. To remove: G.remove_node(id), G.remove_edge(subject, object, relation).\n"
        "Never assign to G. No imports, files or network are needed."
    ),
    how_to_read=(
        "Begin with result = and read the graph G, a networkx.MultiDiGraph, in plain Python. No sentences. It must not change G.\n"
        "facts(about=None, relation=None, hops=1) lists facts near a name, or all, as dicts: subject, relation, object, own properties.\n"
        "names(label=None) lists node ids. G.nodes[id] is a node's properties with its label; an edge's data has its type under relation."
    ),
    # in single quotes, because a model puts statements into JSON and forgets to escape double quotes there
    write_example="add('Marie Curie', 'won', 'Nobel Prize in Physics', subject_label='Person', object_label='Prize', year=1903)",
    read_example="result = facts('Marie Curie')",
    add=_adds,
    about=lambda names, hops: f"result = facts(about={list(names)!r}, hops={hops})",
    paths=python_paths,
    node=lambda node: f"{node.id}{_kinds(node)}{properties_of(node)}",
    edge=lambda edge: f"{fact_of(edge)}{properties_of(edge)}",
    own_words=python_words,
)


class InMemory(EmbeddedStore):
    """A store for Python statements."""

    dialect = PYTHON
    language = "python"


__all__ = ["PYTHON", "InMemory", "inverse"]
