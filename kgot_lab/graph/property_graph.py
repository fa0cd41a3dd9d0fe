"""The in-memory property graph that every analysis reads: columns of nodes and typed edges, and adjacency."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments, check_names
from kgot_lab.errors import (
    BadInput,
    UnknownName,
    describe_value,
    require,
    require_count,
    require_known,
    short_repr,
)
from kgot_lab.graph.changes import MutableGraph, compare_tables, same_properties
from kgot_lab.graph.validation import copy_properties, validate_diff, validate_properties
from kgot_lab.text.cleaning import format_count, is_encodable, printable_line
from kgot_lab.types import Diff, Edge, Json, Node, Triple

if TYPE_CHECKING:
    import igraph
    import networkx as nx
    import pandas as pd
    import pyoxigraph
    from pyvis.network import Network

# The columns of a graph: lazy sequences, and sparse rows.

Ints = NDArray[np.int32]
_T = TypeVar("_T")
Int = TypeVar("Int", np.int32, np.int64)


class Csr(NamedTuple):
    """Compressed sparse rows: row r has the neighbours indices[indptr[r]:indptr[r + 1]], over edges[...]."""

    indptr: NDArray[np.int64]
    indices: Ints
    edges: Ints


class LazySequence(Sequence[_T], Generic[_T]):
    """A sequence whose items are created on access."""

    def __init__(self, length: int, make: Callable[[int], _T]):
        self._rows, self._make = range(length), make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, index: int | slice) -> _T | tuple[_T, ...]:
        if isinstance(index, slice):
            return tuple(map(self._make, self._rows[index]))
        return self._make(self._rows[index])

    def __iter__(self) -> Iterator[_T]:
        return map(self._make, self._rows)

    def __repr__(self) -> str:
        more = f", … {len(self) - 3} more" if len(self) > 3 else ""
        return f"[{', '.join(map(repr, self[:3]))}{more}]"


def build_csr(rows: Ints, columns: Ints, size: int) -> Csr:
    order = np.argsort(rows, kind="stable").astype(np.int32)  # stable: a node's edges stay in edge order
    indptr = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=size)))).astype(np.int64)
    return Csr(make_read_only(indptr), make_read_only(columns[order]), make_read_only(order))


def make_read_only(values: NDArray[Int]) -> NDArray[Int]:
    values.flags.writeable = False
    return values


# The text summary of a graph: counts, most frequent labels and relations, and the first facts.

_SHOWN = 5  # number of labels, relations and facts shown
_LINE = 140  # characters of a line
_NAME = 40  # characters of a label or a relation


def summary_line(graph: PropertyGraph) -> str:
    """Format the counts of a graph on one line."""
    counts = [(len(graph), "node"), (len(graph.edges), "edge")]
    counts += [(len(graph.labels()), "label"), (len(graph.types()), "relation")]
    return f"<PropertyGraph: {', '.join(format_count(count, noun) for count, noun in counts)}>"


def format_graph(graph: PropertyGraph) -> str:
    """Format the counts, the most frequent labels and relations, and the first facts of a graph.

    No text of the graph starts a line of its own.
    """
    named = {"labels": graph.labels(), "relations": graph.types()}
    most_used = [f"{name}: {_format_counts(counts)}" for name, counts in named.items() if counts]
    facts = [str(Triple(edge.source, edge.type, edge.target)) for edge in islice(graph.edges, _SHOWN)]
    more = [f"… and {len(graph.edges) - _SHOWN:,} more"] if len(graph.edges) > _SHOWN else []
    lines = (f"  {_one_line(line, _LINE)}" for line in (*most_used, *facts, *more))
    return "\n".join([summary_line(graph), *lines])


def _format_counts(counts: Mapping[str, int]) -> str:
    more = [f"… and {len(counts) - _SHOWN:,} more"] if len(counts) > _SHOWN else []
    return ", ".join([*(f"{_one_line(n, _NAME)} {c:,}" for n, c in islice(counts.items(), _SHOWN)), *more])


def _one_line(text: str, max_length: int) -> str:
    """Return a text on one line, without terminal control codes, truncated to `max_length` characters."""
    line = printable_line(text)
    return line if len(line) <= max_length else f"{line[: max_length - 1].rstrip()}…"


Direction = Literal["out", "in", "both"]
Properties = Mapping[str, Json]
_NO_ROWS: Any = ()
_NO_PROPERTIES: Properties = {}  # shared by every node and edge without properties; never handed out


@check_arguments
@dataclass(frozen=True, eq=False, repr=False)
class PropertyGraph:
    """An immutable graph: nodes with labels and properties, typed edges with properties.

    Build it with `of` or a `from_…` method. Row r of the node columns is one node, row e of the edge columns
    one edge. `sources` and `targets` hold node rows.
    """

    # without a column the graph is refused
    ids: tuple[str, ...] = ()
    node_labels: tuple[tuple[str, ...], ...] = ()
    node_properties: tuple[Properties, ...] = ()
    sources: Ints = _NO_ROWS
    targets: Ints = _NO_ROWS
    type_codes: Ints = _NO_ROWS
    type_names: tuple[str, ...] = ()
    edge_properties: tuple[Properties, ...] = ()
    edge_keys: tuple[str, ...] = ()
    undirected: bool = False  # read from edges without direction, which are listed in any

    def __post_init__(self) -> None:
        ends = ((self.sources, self.ids), (self.targets, self.ids), (self.type_codes, self.type_names))
        try:
            sizes = {len(each) for each in (self.ids, self.node_labels, self.node_properties)}
            rows = {len(each) for each in (self.edge_properties, self.edge_keys, *(each for each, _ in ends))}
            are_rows = all(each.min(initial=0) >= 0 and each.max(initial=-1) < len(of) for each, of in ends)
        except (AttributeError, TypeError, ValueError):
            are_rows = False
        if not are_rows or len(sizes) > 1 or len(rows) > 1:
            problem = "these are no columns of a graph, with an item for each node or edge, and rows of nodes and types"
            raise BadInput(
                f"{problem}: build it with PropertyGraph.of(nodes, edges), or PropertyGraph.of() for an empty one"
            )

    # --- construction ---

    @classmethod
    def of(
        cls,
        nodes: Iterable[Node] = (),
        edges: Iterable[Edge] = (),
        *,
        dangling: Literal["refuse", "add"] = "refuse",
    ) -> PropertyGraph:
        """Build a graph from nodes and edges. Exact duplicates count once.

        Raises BadInput if two nodes or edges share an identity but differ, and if an edge ends at an unknown
        node, unless dangling="add" creates such nodes without labels and properties.
        """
        require_known("way with dangling edges", ("refuse", "add"), dangling)
        columns = _ColumnBuilder()
        for node in nodes:
            columns.add_node(node)
        for edge in edges:
            columns.add_edge(edge, bare_ends=dangling == "add")
        return columns.graph()

    @classmethod
    def from_triples(cls, triples: Iterable[Triple | tuple[str, str, str]]) -> PropertyGraph:
        """Build a graph from triples, or tuples of three texts.

        The nodes have no labels or properties. Each distinct triple is one edge. Raises BadInput for anything
        that is not a triple.
        """
        return cls.of((), (Edge(*_triple_parts(triple)) for triple in triples), dangling="add")

    def to_triples(self) -> tuple[Triple, ...]:
        """Return one triple for each edge, in edge order.

        Nodes without edges are lost.
        """
        return tuple(Triple(source, relation, target) for source, relation, target, _ in self._identities())

    @classmethod
    def from_networkx(cls, graph: nx.Graph[Any]) -> PropertyGraph:
        """Convert any NetworkX graph.

        See `kgot_lab.graph.exchange.from_networkx` for the meaning of its attributes.
        """
        from kgot_lab.graph import exchange

        return exchange.from_networkx(graph)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Convert to a NetworkX MultiDiGraph that `from_networkx` reads back without loss."""
        from kgot_lab.graph import exchange

        return exchange.to_networkx(self)

    @classmethod
    def from_pandas(cls, nodes: pd.DataFrame, edges: pd.DataFrame) -> PropertyGraph:
        """Build a graph from a data frame of nodes and one of edges.

        See `kgot_lab.graph.exchange.from_pandas`.
        """
        from kgot_lab.graph import exchange

        return exchange.from_pandas(nodes, edges)

    def to_pandas(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Convert to data frames of nodes and edges that `from_pandas` reads back without loss."""
        from kgot_lab.graph import exchange

        return exchange.to_pandas(self)

    def to_igraph(self, *, directed: bool = True) -> igraph.Graph:
        """Convert to an igraph graph. See `kgot_lab.graph.exchange.to_igraph`."""
        from kgot_lab.graph import exchange

        return exchange.to_igraph(self, directed=directed)

    def to_rdf(self) -> pyoxigraph.Store:
        """Convert to an RDF store in memory, to query with SPARQL or to dump in any form of RDF.

        Ids, labels, types and properties become IRIs of the namespace urn:kgot:. Raises BadInput if RDF cannot
        represent the graph, and NotInstalled if pyoxigraph is missing.
        """
        from kgot_lab.stores.sparql import triples

        return triples.to_rdf(self)

    def to_pyvis(self, *, color: str = "", size: str = "", width: str = "", directed: bool = True) -> Network:
        """Convert to a pyvis Network to change and save. See `kgot_lab.graph.exchange.to_pyvis`."""
        from kgot_lab.graph import exchange

        return exchange.to_pyvis(self, color=color, size=size, width=width, directed=directed)

    # --- access ---

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._row_of

    def __str__(self) -> str:
        return summary_line(self)

    def __repr__(self) -> str:
        return format_graph(self)

    @property
    def nodes(self) -> Sequence[Node]:
        """All nodes, created on access."""
        return LazySequence(len(self.ids), self._node)

    @property
    def edges(self) -> Sequence[Edge]:
        """All edges, created on access."""
        return LazySequence(len(self.edge_keys), self._edge)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The display name of each node, in node order."""
        return tuple(node.text for node in self.nodes)

    @check_names
    def node(self, id: str) -> Node:
        """Return the node with this id.

        Raises UnknownName if there is none.
        """
        return self._node(self.row(id))

    @check_names
    def row(self, id: str) -> int:
        """Return the row of a node in the columns.

        Raises UnknownName, which lists at most twenty ids, if there is none.
        """
        try:
            return self._row_of[id]
        except (KeyError, TypeError):  # a list is not hashable
            raise UnknownName("node", id, islice(self.ids, 20)) from None

    def labels(self) -> dict[str, int]:
        """Count the nodes with each label, most frequent first."""
        return _sort_by_count(Counter(label for labels in self.node_labels for label in labels))

    def types(self) -> dict[str, int]:
        """Count the edges of each type, most frequent first."""
        counts = np.bincount(self.type_codes, minlength=len(self.type_names)).tolist()
        pairs = zip(self.type_names, counts, strict=True)
        return _sort_by_count({name: count for name, count in pairs if count})

    @cached_property
    def out_csr(self) -> Csr:
        """Outgoing adjacency: the targets of each node, in edge order."""
        return build_csr(self.sources, self.targets, len(self))

    @cached_property
    def in_csr(self) -> Csr:
        """Incoming adjacency: the sources of each node's incoming edges, in edge order."""
        return build_csr(self.targets, self.sources, len(self))

    def neighbours(
        self, id: str, direction: Direction = "out", types: Collection[str] | None = None
    ) -> tuple[Edge, ...]:
        """Return the edges that leave a node, enter it, or both, optionally only of some types.

        A loop is returned once. Raises UnknownName for an unknown node, and if no edge has any of the types.
        """
        row = self.row(id)
        if types and self.type_names and set(self.type_names).isdisjoint(types):
            raise UnknownName("edge type", min(types), self.type_names)
        slices = (csr.edges[csr.indptr[row] : csr.indptr[row + 1]] for csr in self._adjacencies(direction))
        edge_rows = [e for rows in slices for e in rows.tolist()]
        edges = map(self._edge, dict.fromkeys(edge_rows))
        return tuple(edge for edge in edges if types is None or edge.type in types)

    def degree(self, id: str, direction: Direction = "both") -> int:
        """Return the degree of a node. A loop counts twice, as in NetworkX.

        Raises UnknownName for an unknown node.
        """
        row = self.row(id)
        return sum(int(csr.indptr[row + 1] - csr.indptr[row]) for csr in self._adjacencies(direction))

    # --- subgraphs and diffs ---

    def subgraph(self, ids: Iterable[str]) -> PropertyGraph:
        """Return the subgraph induced by nodes, in the order of this graph.

        Raises UnknownName for an unknown node, and BadInput for one id in place of a list.
        """
        rows = np.unique(np.array([self.row(id) for id in ids], dtype=np.int32))
        new_row = np.full(len(self), -1, dtype=np.int32)
        new_row[rows] = np.arange(len(rows), dtype=np.int32)
        edge_rows = np.flatnonzero((new_row[self.sources] >= 0) & (new_row[self.targets] >= 0))
        columns: list[Any] = [self.ids, self.node_labels, self.node_properties]
        columns = [tuple(of[r] for r in rows) for of in columns]
        columns += (make_read_only(new_row[each[edge_rows]]) for each in (self.sources, self.targets))
        columns += [make_read_only(self.type_codes[edge_rows]), self.type_names]
        columns += (tuple(of[e] for e in edge_rows) for of in (self.edge_properties, self.edge_keys))
        return PropertyGraph(*columns)

    def neighbourhood(self, ids: Iterable[str], hops: int = 1) -> PropertyGraph:
        """Return the subgraph within `hops` edges of the nodes, ignoring edge direction.

        Raises UnknownName for an unknown node.
        """
        require_count(hops, 0, "hops")
        frontier = reached = {self.row(id) for id in ids}
        for _ in range(hops):
            adjacencies = self._adjacencies("both")
            slices = [csr.indices[csr.indptr[r] : csr.indptr[r + 1]] for csr in adjacencies for r in frontier]
            frontier = set(np.concatenate(slices).tolist()) - reached if slices else set()
            reached = reached | frontier
            if not frontier:
                break
        return self.subgraph(self.ids[r] for r in reached)

    def diff(self, other: PropertyGraph) -> Diff:
        """Compute the diff from this graph to another.

        1, 1.0 and True are different values. A list and a tuple are not.
        """
        nodes = compare_tables(
            {id: r for r, id in enumerate(self.ids)},
            {id: r for r, id in enumerate(other.ids)},
            lambda r, s: (
                self.node_labels[r] == other.node_labels[s]
                and same_properties(self.node_properties[r], other.node_properties[s])
            ),
        )
        edges = compare_tables(
            {identity: e for e, identity in enumerate(self._identities())},
            {identity: e for e, identity in enumerate(other._identities())},
            lambda e, f: same_properties(self.edge_properties[e], other.edge_properties[f]),
        )
        return Diff(*nodes.mapped(self._node, other._node), *edges.mapped(self._edge, other._edge))

    def apply(self, diff: Diff) -> PropertyGraph:
        """Return the graph after a diff.

        Raises BadInput if the diff does not fit: its old values must be in the graph and its additions must
        not.
        """
        graph = MutableGraph(self.nodes, self.edges)
        graph.apply(validate_diff(diff))
        return PropertyGraph.of(graph.nodes.values(), graph.edges.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PropertyGraph):
            return NotImplemented
        same_size = len(self.ids) == len(other.ids) and len(self.edge_keys) == len(other.edge_keys)
        return same_size and not self.diff(other)

    def __hash__(self) -> int:
        # equal graphs may differ in order, so their contents cannot be hashed cheaply
        return hash((len(self.ids), len(self.edge_keys)))

    @cached_property
    def digest(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of all nodes and edges, in any order."""
        nodes = ([node.id, node.labels, node.properties] for node in self.nodes)
        edges = ([edge.identity, edge.properties] for edge in self.edges)
        lines = sorted(json.dumps(element, sort_keys=True, default=dict) for element in (*nodes, *edges))
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {id: r for r, id in enumerate(self.ids)}

    def _node(self, r: int) -> Node:
        return Node(self.ids[r], self.node_labels[r], copy_properties(self.node_properties[r]))

    def _edge(self, e: int) -> Edge:
        source = self.ids[self.sources[e]]
        target = self.ids[self.targets[e]]
        type = self.type_names[self.type_codes[e]]
        return Edge(source, type, target, copy_properties(self.edge_properties[e]), self.edge_keys[e])

    def _identities(self) -> Iterator[tuple[str, str, str, str]]:
        sources = map(self.ids.__getitem__, self.sources.tolist())
        targets = map(self.ids.__getitem__, self.targets.tolist())
        types = map(self.type_names.__getitem__, self.type_codes.tolist())
        return zip(sources, types, targets, self.edge_keys, strict=True)

    def _adjacencies(self, direction: Direction) -> tuple[Csr, ...]:
        attributes = {"out": ("out_csr",), "in": ("in_csr",), "both": ("out_csr", "in_csr")}
        require_known("direction", attributes, direction)
        return tuple(getattr(self, name) for name in attributes[direction])


class _ColumnBuilder:
    """Columns under construction."""

    def __init__(self) -> None:
        self.row_of: dict[str, int] = {}
        self.labels: list[tuple[str, ...]] = []
        self.node_properties: list[Properties] = []
        self.edge_of: dict[tuple[int, int, int, str], int] = {}
        self.code_of: dict[str, int] = {}
        self.sources, self.targets, self.codes = array("i"), array("i"), array("i")
        self.edge_properties: list[Properties] = []

    def add_node(self, node: Node) -> None:
        require(node, Node, "a node is Node(id, labels, properties)")
        labels = node.labels
        _require_encodable(node, node.id, *labels)
        own = node.properties
        properties = validate_properties(node) if type(own) is not dict or own else _NO_PROPERTIES
        row = self.row_of.setdefault(node.id, len(self.labels))
        if row == len(self.labels):
            self.labels.append(labels)
            self.node_properties.append(properties)
        elif labels != self.labels[row] or not same_properties(properties, self.node_properties[row]):
            problem = f"two different nodes have the id {node.id!r}"
            raise BadInput(f"{problem}; give each its own id or merge them first")

    def add_edge(self, edge: Edge, bare_ends: bool) -> None:
        require(edge, Edge, "an edge is Edge(source, type, target)")
        _require_encodable(edge, edge.type, edge.key)
        own = edge.properties
        properties = validate_properties(edge) if type(own) is not dict or own else _NO_PROPERTIES
        for end in (edge.source, edge.target):
            if end not in self.row_of:
                if not bare_ends:
                    problem = f"no node {end!r} for {edge.source!r} --[{edge.type}]--> {edge.target!r}"
                    raise BadInput(f"{problem}; add it, or say dangling='add'")
                self.add_node(Node(end))
        source, target = self.row_of[edge.source], self.row_of[edge.target]
        code = self.code_of.setdefault(edge.type, len(self.code_of))
        row = self.edge_of.setdefault((source, code, target, edge.key), len(self.edge_properties))
        if row == len(self.edge_properties):
            self.sources.append(source)
            self.targets.append(target)
            self.codes.append(code)
            self.edge_properties.append(properties)
        elif not same_properties(properties, self.edge_properties[row]):
            raise BadInput(f"two different edges are {edge.identity}; give each its own key")

    def graph(self) -> PropertyGraph:
        nodes = tuple(self.row_of), tuple(self.labels), tuple(self.node_properties)
        edges = tuple(self.edge_properties), tuple(key for *_, key in self.edge_of)
        ends = (np.array(each, dtype=np.int32) for each in (self.sources, self.targets, self.codes))
        sources, targets, codes = map(make_read_only, ends)
        return PropertyGraph(*nodes, sources, targets, codes, tuple(self.code_of), *edges)


def _triple_parts(triple: object) -> tuple[str, str, str]:
    """Return the three parts of a triple.

    Raises BadInput for anything that is not a triple.
    """
    parts = (triple.subject, triple.relation, triple.object) if isinstance(triple, Triple) else triple
    if isinstance(parts, tuple | list) and len(parts) == 3 and all(isinstance(part, str) for part in parts):
        return parts[0], parts[1], parts[2]
    given = short_repr(triple) if isinstance(triple, tuple | list | Triple) else describe_value(triple)
    raise BadInput(f"a triple is (subject, relation, object), three texts, not {given}")


def _require_encodable(element: Node | Edge, *texts: str) -> None:
    if not all(map(str.isascii, texts)) and not is_encodable("".join(texts)):
        raise BadInput(f"{short_repr(element)} holds half a surrogate pair, which is no text")


def _sort_by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
