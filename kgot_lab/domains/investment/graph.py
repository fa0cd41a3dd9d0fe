"""A persistent graph. Writes are validated, dated and given an expiry.

Nothing is deleted, so the state at any time can be viewed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.versions import (
    LIFETIMES,
    EdgeIds,
    GivenEnds,
    GraphChange,
    Lifetime,
    edge_ids,
    edge_in_order,
    last_time,
    one_each,
    ownership_faults,
    require_key,
    require_owner,
)
from kgot_lab.domains.investment.view import FOREVER, DatedNode, InvestmentView, storable_text
from kgot_lab.errors import BadInput, describe_value, require, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.kgos.schemas.check import Fault, faults, refuse_faulty
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT
from kgot_lab.memory.claims.claim import instant, open_instant, utc_now
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import InTables, TableStorage
from kgot_lab.types import Edge, Node


@dataclass(frozen=True)
class GraphUpdate:
    """The result of a write: ids of new or changed nodes, such edges, the number unchanged, and warnings."""

    nodes: tuple[str, ...] = ()
    edges: tuple[EdgeIds, ...] = ()
    unchanged: int = 0
    warnings: tuple[Fault, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges)


class InvestmentGraph(InTables):
    """An investment graph in tables.

    `now` is its clock, `lifetimes` set how long facts stay fresh, and `vocabulary` the allowed types. Time
    never goes back: if the clock does, a write is dated by the last change before it.
    """

    def __init__(
        self,
        storage: TableStorage,
        *,
        vocabulary: Vocabulary = INVESTMENT,
        lifetimes: Sequence[Lifetime] = LIFETIMES,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.storage, self.vocabulary, self.lifetimes, self.now = storage, vocabulary, tuple(lifetimes), now

    # --- reading ---

    def view(self, owner: str = "", *, at: datetime | None = None) -> InvestmentView:
        """Return the graph as an owner sees it at a time, or now.

        It has the shared and the owner's nodes and edges that were live then.
        """
        require_owner(owner)
        return InvestmentView(
            self.storage,
            owner,
            self._time() if at is None else instant(at, "the time of a view"),
            self.vocabulary,
        )

    def _time(self) -> int:
        """Return the current time, or that of the last change if the clock is behind it.

        So the last write is always visible.
        """
        return last_time(self.storage, instant(self.now(), "now"))

    # --- writing ---

    def write(
        self,
        nodes: Iterable[Node] = (),
        edges: Iterable[Edge] = (),
        *,
        owner: str = "",
        expires_at: Mapping[str | EdgeIds, datetime | None] | None = None,
    ) -> GraphUpdate:
        """Write new nodes and edges, or new properties of existing ones (None removes one), all or none.

        `expires_at` maps an id, or (source, type, target), to an expiry (None: never). All others live as
        `lifetimes` say, and writing something again never makes it expire earlier. Writing what exists
        changes nothing. Raises BadInput with all faults that the vocabulary finds.
        """
        nodes, edges = one_each(nodes), [edge_in_order(edge, self.vocabulary) for edge in edges]
        require_owner(owner)
        given = {
            key: open_instant(time, "the time something expires") for key, time in (expires_at or {}).items()
        }
        if strange := sorted(
            map(str, given.keys() - {node.id for node in nodes} - set(map(edge_ids, edges)))
        ):
            raise BadInput(
                f"expires_at names {short_repr(strange[0])}, which is not among what is written; give its id, or (source, type, target)"
            )
        with self.storage.changing():
            change = GraphChange(self.storage, owner, self.now)
            there = change.last_nodes(
                {node.id for node in nodes} | {end for edge in edges for end in (edge.source, edge.target)}
            )
            written = {node.id: _updated(there.get(node.id), node) for node in nodes}
            known = {id: dated.node for id, dated in there.items()} | written
            types = {id: node.labels[0] for id, node in known.items() if len(node.labels) == 1}
            found = [
                *ownership_faults(nodes, there, owner),
                *faults(self.vocabulary, written.values(), edges, types=types),
            ]
            warnings = refuse_faulty(found)
            new = tuple(
                node.id
                for node in written.values()
                if change.keep_node(node, there.get(node.id), self.lifetimes, given)
            )
            new_edges = self._keep_edges(change, edges, known, given)
        return GraphUpdate(
            new,
            new_edges,
            len(written) + len(set(map(edge_ids, edges))) - len(new) - len(new_edges),
            warnings,
        )

    def expire(self, *what: str | EdgeIds, owner: str = "") -> GraphUpdate:
        """Expire nodes (by id) and edges (by source, type and target) now. They stay in the history.

        Those that have already ended are not changed.
        """
        require_owner(owner)
        for each in what:
            for part in (each,) if isinstance(each, str) else each:
                require_key(part, "what is to end")
        with self.storage.changing():
            change = GraphChange(self.storage, owner, self.now)
            there = change.last_nodes(each for each in what if isinstance(each, str))
            edges = change.last_edges(each[0] for each in what if not isinstance(each, str))
            ended_nodes, ended_edges = list[str](), list[EdgeIds]()
            for each in dict.fromkeys(what):
                if isinstance(each, str):
                    node = there.get(each)
                    if node is None or node.owner != owner:
                        raise BadInput(
                            f"there is no node {short_repr(each)} of this owner; look at the ids of view().nodes()"
                        )
                    ended_nodes += [each] * change.end_node(node)
                else:
                    if each not in edges:
                        raise BadInput(
                            f"there is no edge {short_repr(each)} of this owner; look at view().edges()"
                        )
                    ended_edges += [each] * change.end_edge(edges[each])
        return GraphUpdate(tuple(ended_nodes), tuple(ended_edges))

    def note_indicator(self, name: str, values: Mapping[datetime, float], *, source: str = "") -> int:
        """Store values of an indicator by period, and return how many were new or revised.

        Existing values are revised.
        """
        require_key(name, "the name of an indicator, such as CPI,")
        require(source, str, "the source of an indicator is a text")
        for value in values.values():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise BadInput(f"a value of {name} is a finite number, not {describe_value(value)}")
        source = storable_text(source)
        new = {
            instant(time, f"the time of a value of {name}"): float(value) for time, value in values.items()
        }
        with self.storage.changing():
            change = GraphChange(self.storage, "", self.now)
            rows = self.storage.rows(sql.VALUES_THEN, {"name": name, "at": FOREVER})
            there = {period: (value, said_by) for period, value, said_by in rows}
            changed = {period: value for period, value in new.items() if there.get(period) != (value, source)}
            for period, value in changed.items():
                change.begin()
                key = {"name": name, "period": period, "at": change.at}
                self.storage.rows(sql.CLOSE_VALUE, key)
                self.storage.rows(sql.OPEN_VALUE, key | {"value": value, "source": source})
        return len(changed)

    def _keep_edges(
        self, change: GraphChange, edges: Sequence[Edge], nodes: Mapping[str, Node], given: GivenEnds
    ) -> tuple[EdgeIds, ...]:
        there = change.last_edges(edge.source for edge in edges)
        own = change.own_classes(edges, nodes, self.vocabulary)
        changed: dict[EdgeIds, None] = {}
        for edge in edges:
            identity = edge_ids(edge)
            classes = {each for end in (edge.source, edge.target) for each in own.get(end, ())}
            kept = change.keep_edge(
                edge, there.get(identity), nodes[edge.source], classes, self.lifetimes, given
            )
            if kept is not None:
                there[identity], changed[identity] = kept, None
        return tuple(changed)


def open_investment_graph(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    vocabulary: Vocabulary = INVESTMENT,
    lifetimes: Sequence[Lifetime] = LIFETIMES,
    now: Callable[[], datetime] = utc_now,
) -> InvestmentGraph:
    """Open an investment graph in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address.

    `namespace` is its schema in PostgreSQL.
    """
    storage = open_tables(sql.GRAPH_LAYOUT, place, namespace=namespace)
    return InvestmentGraph(storage, vocabulary=vocabulary, lifetimes=lifetimes, now=now)


def _updated(there: DatedNode | None, node: Node) -> Node:
    """Merge the new properties of a node over its previous ones."""
    return Node(
        node.id, node.labels, merged_properties(there.node.properties if there else {}, node.properties)
    )
