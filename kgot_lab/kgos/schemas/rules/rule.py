"""A rule of a sound graph, what breaks it, and the report on all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kgot_lab.errors import shortly
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.property_graph import Ints, Items
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.kgos.schemas.check import Fault
from kgot_lab.text.cleaning import counted

Severity = Literal["error", "warning", "info"]
On = Literal["nodes", "edges", "rows"]  # rows are those of a file, of what its graph cannot show
Find = Callable[[PropertyGraph, Vocabulary], Ints]
_SHOWN = 3


@dataclass(frozen=True)
class Unread:
    """A row of a file that is not in its graph as it stands, or not at all: the rule it breaks (3 or 8),
    where it is, and why.
    """

    rule: int
    table: str
    row: int  # counted from 1, in the order of the table
    of: str  # the node or edge that it is
    why: str

    def __str__(self) -> str:
        return f"row {self.row:,} of {self.table} ({self.of}): {self.why}"


@dataclass(frozen=True)
class Rule:
    """What every graph should be: `find` gives the rows of nodes or edges that are not; a rule on rows of a
    file has none.

    `why` says of one of them what is wrong.
    """

    number: int
    severity: Severity
    says: str
    do: str
    on: On
    find: Find | None = None
    why: Callable[[PropertyGraph, int], str] = lambda graph, row: ""

    def __str__(self) -> str:
        return f"{self.number} {self.severity.upper()}: {self.says}"


@dataclass(frozen=True, eq=False, repr=False)
class Broken:
    """What breaks a rule: rows of the nodes or edges of a graph, or rows of the file it was read from."""

    rule: Rule
    graph: PropertyGraph
    rows: Ints
    unread: tuple[Unread, ...] = ()

    def __len__(self) -> int:
        return len(self.unread) if self.rule.on == "rows" else len(self.rows)

    @property
    def faults(self) -> Sequence[Fault]:
        """Each of them in words, made when looked at."""
        return Items(len(self), self._fault)

    def _fault(self, number: int) -> Fault:
        rule = self.rule
        if rule.on == "rows":
            row = self.unread[number]
            return Fault(rule.severity, row.why, f"row {row.row:,} of {row.table} ({row.of})", rule.do)
        at = int(self.rows[number])
        what = rule.why(self.graph, at) or f"rule {rule.number}, {rule.says}, does not hold"
        if rule.on == "nodes":
            return Fault(rule.severity, what, f"node {shortly(self.graph.ids[at])}", rule.do)
        edge = self.graph.edges[at]
        return Fault(
            rule.severity, what, f"edge {shortly(edge.source)} -{edge.type}-> {shortly(edge.target)}", rule.do
        )

    def __repr__(self) -> str:
        head = f"{self.rule}: {counted(len(self), self.rule.on[:-1])}"
        more = [f"  … {len(self) - _SHOWN:,} more"] * (len(self) > _SHOWN)
        return "\n".join([head, *(f"  {fault}" for fault in self.faults[:_SHOWN]), *more])


@dataclass(frozen=True, eq=False, repr=False)
class RuleReport:
    """What each of the rules found in a graph, in the order of their numbers."""

    found: tuple[Broken, ...]

    def __getitem__(self, number: int) -> Broken:
        return next(each for each in self.found if each.rule.number == number)

    @property
    def broken(self) -> tuple[Broken, ...]:
        """The rules that something breaks, with what does."""
        return tuple(each for each in self.found if len(each))

    @property
    def sound(self) -> bool:
        """Whether no rule whose severity is error is broken."""
        return not any(each.rule.severity == "error" for each in self.broken)

    @property
    def faults(self) -> Iterator[Fault]:
        """All that was found, in words, rule by rule."""
        return (fault for each in self.found for fault in each.faults)

    def __str__(self) -> str:
        counts = {
            kind: sum(len(each) for each in self.broken if each.rule.severity == kind)
            for kind in ("error", "warning", "info")
        }
        passed = len(self.found) - len(self.broken)
        told = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
        return f"{passed} of {len(self.found)} rules hold{told and f'; found: {told}'}"

    def __repr__(self) -> str:
        return "\n".join([str(self), *map(repr, self.broken)])
