"""The twelve rules with their severities, and the check of a graph against them.

Where the document is ambiguous: rule 6 requires that a node has an edge, not an incoming edge, which no root
would have. Rules 10 and 12 accept has_workaround from a limitation and from the node that has it. A self-loop
of requires or feeds_into breaks rule 4 and rule 9 or 11. Rules 3 and 8 are about what a graph in memory
cannot hold, so the reader of a file reports the rows that break them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import UnknownName, describe_value, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints, LazySequence
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.io.files import read_tables
from kgot_lab.kgos.schemas.check import Fault, edge_text
from kgot_lab.kgos.schemas.vocabularies import UNIFIED
from kgot_lab.text.cleaning import format_count

# Rules, their violations, and the report on all rules.

Severity = Literal["error", "warning", "info"]
RuleTarget = Literal["nodes", "edges", "rows"]  # rows of a file, for what the graph cannot show
FindRows = Callable[[PropertyGraph, Vocabulary], Ints]
DescribeRow = Callable[[PropertyGraph, int], str]
_MAX_FAULTS = 3


@dataclass(frozen=True)
class UnreadRow:
    """A row of a file that was left out or changed: the rule it breaks (3 or 8), its position, and the
    reason.
    """

    rule: int
    table: str
    row: int  # from 1, in the order of the table
    of: str  # the node or edge that it is
    why: str

    def __str__(self) -> str:
        return f"row {self.row:,} of {self.table} ({self.of}): {self.why}"


@dataclass(frozen=True)
class Rule:
    """A rule for every graph.

    `find` returns the rows of nodes or edges that break it; a rule on rows of a file has none. `why`
    describes one violation.
    """

    number: int
    severity: Severity
    says: str
    do: str
    on: RuleTarget
    find: FindRows | None = None
    why: DescribeRow = lambda graph, row: ""

    def __str__(self) -> str:
        return f"{self.number} {self.severity.upper()}: {self.says}"


@dataclass(frozen=True, eq=False, repr=False)
class RuleViolations:
    """The violations of a rule: rows of nodes or edges of a graph, or rows of the file it was read from."""

    rule: Rule
    graph: PropertyGraph
    rows: Ints
    unread: tuple[UnreadRow, ...] = ()

    def __len__(self) -> int:
        return len(self.unread) if self.rule.on == "rows" else len(self.rows)

    @property
    def faults(self) -> Sequence[Fault]:
        """The violations as texts, formatted when read."""
        return LazySequence(len(self), self._build_fault)

    def _build_fault(self, number: int) -> Fault:
        rule = self.rule
        if rule.on == "rows":
            row = self.unread[number]
            return Fault(rule.severity, row.why, f"row {row.row:,} of {row.table} ({row.of})", rule.do)
        at = int(self.rows[number])
        what = rule.why(self.graph, at) or f"rule {rule.number}, {rule.says}, does not hold"
        if rule.on == "nodes":
            return Fault(rule.severity, what, f"node {short_repr(self.graph.ids[at])}", rule.do)
        edge = self.graph.edges[at]
        return Fault(rule.severity, what, edge_text(edge.source, edge.type, edge.target), rule.do)

    def __repr__(self) -> str:
        head = f"{self.rule}: {format_count(len(self), self.rule.on[:-1])}"
        more = [f"  … {len(self) - _MAX_FAULTS:,} more"] if len(self) > _MAX_FAULTS else []
        return "\n".join([head, *(f"  {fault}" for fault in self.faults[:_MAX_FAULTS]), *more])


@dataclass(frozen=True, eq=False, repr=False)
class RuleReport:
    """The result of each rule on a graph, in the order of their numbers."""

    found: tuple[RuleViolations, ...]

    def __getitem__(self, number: int) -> RuleViolations:
        return next(each for each in self.found if each.rule.number == number)

    @property
    def broken(self) -> tuple[RuleViolations, ...]:
        """The rules that are broken, with their violations."""
        return tuple(each for each in self.found if len(each))

    @property
    def sound(self) -> bool:
        """Whether no rule of severity error is broken."""
        return not any(each.rule.severity == "error" for each in self.broken)

    @property
    def faults(self) -> Iterator[Fault]:
        """All violations as texts, rule by rule."""
        return (fault for each in self.found for fault in each.faults)

    def __str__(self) -> str:
        counts = Counter(error=0, warning=0, info=0)
        for each in self.broken:
            counts[each.rule.severity] += len(each)
        passed = len(self.found) - len(self.broken)
        counts_text = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
        return f"{passed} of {len(self.found)} rules hold{counts_text and f'; found: {counts_text}'}"

    def __repr__(self) -> str:
        return "\n".join([str(self), *map(repr, self.broken)])


# Cycles of edges of one type: the nodes on them, and a shortest one through a node.


def edge_rows_of_types(graph: PropertyGraph, *types: str) -> Ints:
    """Return the rows of the edges of some types, in edge order."""
    codes = [code for code, name in enumerate(graph.type_names) if name in types]
    return np.flatnonzero(np.isin(graph.type_codes, codes)).astype(np.int32)


_TRIMMING_ROUNDS = 20  # in which edges from sources and to sinks are removed, before cycles are searched


def nodes_on_cycles(graph: PropertyGraph, type: str) -> Ints:
    """Return the rows of the nodes on a cycle of edges of one type, including self-loops.

    A graph of dependencies has none. These are the nodes of strongly connected components, since a node
    between two cycles lies on neither.
    """
    rows = edge_rows_of_types(graph, type)
    sources, targets = graph.sources[rows], graph.targets[rows]
    loops = sources[sources == targets]
    for _ in range(_TRIMMING_ROUNDS):  # leaves little of a graph of dependencies, so the search is short
        entered, left = (np.bincount(ends, minlength=len(graph)) > 0 for ends in (targets, sources))
        inside = entered[sources] & left[targets]
        sources, targets = sources[inside], targets[inside]
    linked: nx.DiGraph[int] = nx.DiGraph()
    linked.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    found = [row for part in nx.strongly_connected_components(linked) if len(part) > 1 for row in part]
    return np.union1d(np.array(found, dtype=np.int32), loops)


def cycle_through(graph: PropertyGraph, type: str, row: int) -> tuple[str, ...]:
    """Return the ids along a shortest cycle through a node over edges of one type.

    Returns () if the node lies on no cycle.
    """
    rows = edge_rows_of_types(graph, type)
    # edges back to the node end in -1
    ends = np.where(graph.targets[rows] == row, -1, graph.targets[rows])
    edges: nx.DiGraph[int] = nx.DiGraph([*zip(graph.sources[rows].tolist(), ends.tolist(), strict=True)])
    if not {row, -1} <= edges.nodes or not nx.has_path(edges, row, -1):
        return ()
    return (*(graph.ids[each] for each in nx.shortest_path(edges, row, -1)[:-1]), graph.ids[row])


# Find the rows of a graph that break each rule.


def nodes_without_name(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the nodes whose name is missing, blank or not a text."""
    names = (properties.get("name") for properties in graph.node_properties)
    return _matching_rows(not (isinstance(name, str) and name.strip()) for name in names)


def nodes_without_type(graph: PropertyGraph, vocabulary: Vocabulary) -> Ints:
    """Return the nodes that do not have exactly one label, or whose label is no type of the vocabulary."""
    known = {(each.name,) for each in vocabulary.node_types}
    return _matching_rows(labels not in known for labels in graph.node_labels)


def self_loops(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the edges from a node to itself."""
    return np.flatnonzero(graph.sources == graph.targets).astype(np.int32)


def repeated_edges(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the edges that repeat the source, target and type of an earlier one, whatever their keys."""
    repeats = count_repeats(graph.sources, graph.targets, graph.type_codes, len(graph))
    return np.flatnonzero(repeats).astype(np.int32)


def count_repeats(sources: Ints, targets: Ints, types: Ints, nodes: int) -> NDArray[np.int64]:
    """Count for each edge the earlier ones with its ends and its type, shape (edges,)."""
    triple = (types.astype(np.int64) * nodes + sources) * nodes + targets
    order = np.argsort(triple, kind="stable")
    begins = np.ones(len(triple), dtype=np.bool_)
    begins[1:] = np.diff(triple[order]) != 0
    positions = np.arange(len(triple))
    count = np.empty(len(triple), dtype=np.int64)
    count[order] = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    return count


def isolated_nodes(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the nodes without edges."""
    degrees = np.bincount(np.concatenate([graph.sources, graph.targets]), minlength=len(graph))
    return np.flatnonzero(degrees == 0).astype(np.int32)


def edges_of_unknown_type(graph: PropertyGraph, vocabulary: Vocabulary) -> Ints:
    """Return the edges whose type is not in the vocabulary."""
    known = {each.name for each in vocabulary.edge_types}
    return edge_rows_of_types(graph, *(set(graph.type_names) - known))


def dangling_workarounds(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the has_workaround edges whose source neither has a limitation nor is one that a node has."""
    limited, worked = edge_rows_of_types(graph, "has_limitation"), edge_rows_of_types(graph, "has_workaround")
    concerned = np.zeros(len(graph), dtype=np.bool_)
    concerned[graph.sources[limited]] = concerned[graph.targets[limited]] = True
    return worked[~concerned[graph.sources[worked]]]


def nodes_without_workaround(graph: PropertyGraph, _: Vocabulary) -> Ints:
    """Return the nodes that have limitations and no workaround.

    A node with the property no_workaround is left out.
    """
    limited, worked = edge_rows_of_types(graph, "has_limitation"), edge_rows_of_types(graph, "has_workaround")
    helped, open_ = np.zeros(len(graph), dtype=np.bool_), np.zeros(len(graph), dtype=np.bool_)
    helped[graph.sources[worked]] = True
    open_[graph.sources[limited]] = True
    open_[graph.sources[limited[helped[graph.targets[limited]]]]] = False
    found = np.flatnonzero(open_ & ~helped)
    properties = graph.node_properties
    rows = [row for row in found.tolist() if not properties[row].get("no_workaround")]
    return np.array(rows, dtype=np.int32)


def _matching_rows(matches: Iterable[bool]) -> Ints:
    return np.flatnonzero(np.fromiter(matches, np.bool_)).astype(np.int32)


def _describe_name(graph: PropertyGraph, row: int) -> str:
    return f"its name is {describe_value(graph.node_properties[row].get('name'))}"


def _describe_labels(graph: PropertyGraph, row: int) -> str:
    labels = graph.node_labels[row]
    if len(labels) != 1:
        return f"it has {len(labels)} types"
    return f"its type is {short_repr(labels[0])}, which is not in the vocabulary"


def _describe_edge_type(graph: PropertyGraph, row: int) -> str:
    type = short_repr(graph.type_names[graph.type_codes[row]])
    return f"its type is {type}, which is not in the vocabulary"


def _constant_reason(why: str) -> DescribeRow:
    return lambda graph, row: why


def _describe_cycle(type: str, verb: str) -> DescribeRow:
    def why(graph: PropertyGraph, row: int) -> str:
        return f"it {verb} itself: {f' -{type}-> '.join(map(short_repr, cycle_through(graph, type, row)))}"

    return why


# what breaks a rule, and a description of one violation
_RULE_FUNCTIONS: Mapping[int, tuple[FindRows, DescribeRow]] = {
    1: (nodes_without_name, _describe_name),
    2: (nodes_without_type, _describe_labels),
    4: (self_loops, _constant_reason("it joins a node with itself")),
    5: (repeated_edges, _constant_reason("an earlier edge has the same ends and type")),
    6: (isolated_nodes, _constant_reason("it has no edge")),
    7: (edges_of_unknown_type, _describe_edge_type),
    9: (lambda graph, _: nodes_on_cycles(graph, "requires"), _describe_cycle("requires", "requires")),
    10: (dangling_workarounds, _constant_reason("neither end of an edge has_limitation is where it begins")),
    11: (lambda graph, _: nodes_on_cycles(graph, "feeds_into"), _describe_cycle("feeds_into", "feeds into")),
    12: (
        nodes_without_workaround,
        _constant_reason("it has a limitation, no workaround, and does not say that there is none"),
    ),
}


def _parse_rules() -> Iterator[Rule]:
    for number, severity, on, says, do in read_tables(Path(__file__).with_suffix(".txt"))["rules"]:
        functions = _RULE_FUNCTIONS.get(int(number), ())
        yield Rule(int(number), cast(Severity, severity), says, do, cast(RuleTarget, on), *functions)


TWELVE_RULES = tuple(_parse_rules())


@check_arguments
def check_rules(
    graph: PropertyGraph,
    vocabulary: Vocabulary = UNIFIED,
    *,
    unread: Iterable[UnreadRow] = (),
    only: Iterable[int] = (),
) -> RuleReport:
    """Check a graph against the twelve rules, or against those in `only`.

    `unread` holds the rows that reading its file reported. Raises UnknownName if there is no such rule.
    """
    numbers, rows = {rule.number for rule in TWELVE_RULES}, tuple(unread)
    wanted = set(only) or numbers
    if strange := wanted - numbers:
        raise UnknownName("rule", str(min(strange, key=str)), map(str, sorted(numbers)))
    found = []
    for rule in TWELVE_RULES:
        if rule.number in wanted:
            breaking = np.empty(0, dtype=np.int32) if rule.find is None else rule.find(graph, vocabulary)
            unread = tuple(row for row in rows if row.rule == rule.number)
            found.append(RuleViolations(rule, graph, breaking, unread))
    return RuleReport(tuple(found))
