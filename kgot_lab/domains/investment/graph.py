"""The graph that lasts: what is written is checked, dated and given its expiry; nothing is deleted, so any time can be looked at again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment.lifetimes import LIFETIMES, Lifetime, edge_expiry, later, node_expiry
from kgot_lab.domains.investment.naming import LONGEST_ID, asked_for, fold, owned_prefix, shown_name, symbol_of
from kgot_lab.domains.investment.view import FOREVER, DatedEdge, DatedNode, InvestmentView, dated_edge, dated_node
from kgot_lab.errors import BadInput, described_value, require, shortly
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.gate import fit_edge, fit_node, fit_text
from kgot_lab.memory.claims.times import instant, open_instant, utc_now
from kgot_lab.memory.tables.opening import open_tables
from kgot_lab.memory.tables.storage import TableStorage
from kgot_lab.schemas.check import Fault, faults, refuse_faulty
from kgot_lab.schemas.investment import INVESTMENT
from kgot_lab.schemas.vocabulary import Vocabulary
from kgot_lab.types import Edge, Json, Node

EdgeIds = tuple[str, str, str]  # source, type, target


@dataclass(frozen=True)
class GraphUpdate:
    """What a write did: ids of nodes that are new or changed, edges that are, how many stayed as they were, and what it was warned of."""

    nodes: tuple[str, ...] = ()
    edges: tuple[EdgeIds, ...] = ()
    unchanged: int = 0
    warnings: tuple[Fault, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges)


class InvestmentGraph:
    """An investment graph in tables; `now` is its clock, `lifetimes` how long facts stay fresh, `vocabulary` what it may hold.

    A clock that goes back does not: what is written then is dated by the last change before it.
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

    def __repr__(self) -> str:
        return f"<InvestmentGraph in {self.storage!r}>"

    def __enter__(self) -> InvestmentGraph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self.storage.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def view(self, owner: str = "", *, at: datetime | None = None) -> InvestmentView:
        """The graph as an owner sees it at a time: what all share and what is their own, live then; without a time, now."""
        _require_owner(owner)
        return InvestmentView(self.storage, owner, self._time() if at is None else instant(at, "the time of a view"), self.vocabulary)

    def _time(self) -> int:
        """Now, or the last change where the clock is behind it, so that nobody misses what was just written."""
        clock = instant(self.now(), "now")
        return max(clock, int(self.storage.rows(sql.LAST_TIME, {"least": clock})[0][0]))

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(
        self,
        nodes: Iterable[Node] = (),
        edges: Iterable[Edge] = (),
        *,
        owner: str = "",
        expires_at: Mapping[str | EdgeIds, datetime | None] | None = None,
    ) -> GraphUpdate:
        """Write nodes and edges, all or none: new ones, or new properties of those that are there (None takes one away).

        `expires_at` says by id, or by (source, type, target), when something expires (None: never); all else lives as `lifetimes` say, and
        what is written again never expires earlier than it would have. Writing what is there changes nothing.
        Raises BadInput with all that the vocabulary has against it.
        """
        nodes, edges = _one_each(nodes), [self._in_order(edge) for edge in edges]
        _require_owner(owner)
        given = {key: open_instant(time, "the time something expires") for key, time in (expires_at or {}).items()}
        if strange := sorted(map(str, given.keys() - {node.id for node in nodes} - set(map(_identity, edges)))):
            raise BadInput(
                f"expires_at names {shortly(strange[0])}, which is not among what is written; give its id, or (source, type, target)"
            )
        with self.storage.changing():
            at, begin = self._moment()
            there = self._there(nodes, edges, owner)
            written = {node.id: _updated(there.get(node.id), node) for node in nodes}
            known = {id: dated.node for id, dated in there.items()} | written
            types = {id: node.labels[0] for id, node in known.items() if len(node.labels) == 1}
            found = [*self._ownership(nodes, edges, there, owner), *faults(self.vocabulary, written.values(), edges, types=types)]
            warnings = refuse_faulty(found)
            changed_nodes = [self._keep_node(node, there.get(node.id), owner, at, begin, given) for node in written.values()]
            changed_edges = self._keep_edges(edges, known, owner, at, begin, given)
        new = tuple(id for id in changed_nodes if id)
        return GraphUpdate(new, changed_edges, len(written) + len(set(map(_identity, edges))) - len(new) - len(changed_edges), warnings)

    def expire(self, *what: str | EdgeIds, owner: str = "") -> GraphUpdate:
        """Let nodes (by id) and edges (by source, type and target) end now; they stay in the history. What ended already is left alone."""
        _require_owner(owner)
        for each in what:
            for part in (each,) if isinstance(each, str) else each:
                _require_key(part, "what is to end")
        with self.storage.changing():
            at, begin = self._moment()
            ids = [each for each in what if isinstance(each, str)]
            there = {node.node.id: node for node in map(dated_node, self.storage.rows(sql.OPEN_NODES, {"owner": owner, "ids": ids}))}
            ended_nodes, ended_edges = [], []
            for each in dict.fromkeys(what):
                if isinstance(each, str):
                    node = there.get(each)
                    if node is None or node.owner != owner:
                        raise BadInput(f"there is no node {shortly(each)} of this owner; look at the ids of view().nodes()")
                    if node.expires is None or node.expires > at:
                        begin()
                        self._put_node(node.node, owner, node.created, at, at)
                        ended_nodes.append(each)
                else:
                    edge = self._open_edges([each[0]], owner).get(each)
                    if edge is None:
                        raise BadInput(f"there is no edge {shortly(each)} of this owner; look at view().edges()")
                    if edge.expires is None or edge.expires > at:
                        begin()
                        self._put_edge(edge.edge, owner, edge.created, at, at)
                        ended_edges.append(each)
        return GraphUpdate(tuple(ended_nodes), tuple(ended_edges))

    def note_indicator(self, name: str, values: Mapping[datetime, float], *, source: str = "") -> int:
        """Note values of an indicator, each by the time it is of; one that is there is revised. Gives how many were new or revised."""
        _require_key(name, "the name of an indicator, such as CPI,")
        require(source, str, "the source of an indicator is a text")
        for value in values.values():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise BadInput(f"a value of {name} is a finite number, not {described_value(value)}")
        source = asked_for(source)
        new = {instant(time, f"the time of a value of {name}"): float(value) for time, value in values.items()}
        with self.storage.changing():
            at, begin = self._moment()
            rows = self.storage.rows(sql.VALUES_THEN, {"name": name, "at": FOREVER})
            there = {period: (value, said_by) for period, value, said_by in rows}
            changed = {period: value for period, value in new.items() if there.get(period) != (value, source)}
            for period, value in changed.items():
                begin()
                key = {"name": name, "period": period, "at": at}
                self.storage.rows(sql.CLOSE_VALUE, key)
                self.storage.rows(sql.OPEN_VALUE, key | {"value": value, "source": source})
        return len(changed)

    # --- inside -------------------------------------------------------------------------------------------------------

    def _moment(self) -> tuple[int, Callable[[], None]]:
        """The time of a change, and what notes that there was one, once it changes something."""
        clock = instant(self.now(), "now")  # read within: to wait for another process is not to go back in time
        at = max(clock, int(self.storage.rows(sql.LAST_TIME, {"least": clock})[0][0]))
        number = int(self.storage.rows(sql.LAST_NUMBER)[0][0]) + 1
        begun: list[int] = []

        def begin() -> None:
            if not begun:
                begun.append(number)
                self.storage.rows(sql.ADD_CHANGE, {"id": number, "at": at, "clock": clock})

        return at, begin

    def _in_order(self, edge: Edge) -> Edge:
        """An edge that says the same both ways in the order of its ends; its key is the owner's, and not the caller's."""
        edge = fit_edge(edge)
        for end in (edge.source, edge.target):
            _require_key(end, "an end of an edge")
        return self.vocabulary.in_order(edge)

    def _there(self, nodes: Sequence[Node], edges: Sequence[Edge], owner: str) -> dict[str, DatedNode]:
        """The nodes that are named, as they were last written, expired or not."""
        ids = {node.id for node in nodes} | {end for edge in edges for end in (edge.source, edge.target)}
        rows = self.storage.rows(sql.OPEN_NODES, {"owner": owner, "ids": sorted(ids)})
        return {dated.node.id: dated for dated in map(dated_node, rows)}

    def _ownership(self, nodes: Sequence[Node], edges: Sequence[Edge], there: Mapping[str, DatedNode], owner: str) -> Iterable[Fault]:
        prefix = owned_prefix(owner)
        for node in nodes:
            where = f"node {shortly(node.id)}"
            if not node.id.startswith(prefix) or (not owner and "/" in node.id):
                do = f"begin it with {shortly(prefix)}" if owner else "write it without / in its id, or give its owner"
                yield Fault("error", "its id does not say whose it is", where, do + "; investment_node makes such ids")
            elif node.id in there and node.labels != there[node.id].node.labels:
                do = "give the new one another id, or expire this one"
                yield Fault("error", f"it is there with the type {there[node.id].node.labels[0]}", where, do)

    def _keep_node(
        self, node: Node, there: DatedNode | None, owner: str, at: int, begin: Callable[[], None], given: Mapping[Any, int | None]
    ) -> str:
        """Open a new version of a node where anything is new; its id, or '' where nothing is."""
        expires = given[node.id] if node.id in given else node_expiry(node, at, self.lifetimes)
        if there is not None and node.id not in given:
            expires = later(expires, there.expires)
        if there is not None and there.node == node and there.expires == expires:
            return ""
        begin()
        self._put_node(node, owner, there.created if there else at, expires, at)
        return node.id

    def _put_node(self, node: Node, owner: str, created: int, expires: int | None, at: int) -> None:
        self.storage.rows(sql.CLOSE_NODE, {"id": node.id, "owner": owner, "at": at})
        type, properties = node.labels[0], node.properties
        values = {"owner": owner, "id": node.id, "type": type, "name": fold(shown_name(node)), "symbol": symbol_of(type, properties)}
        dates = {"created_at": created, "expires_at": expires, "at": at}
        self.storage.rows(sql.OPEN_NODE, values | dates | {"properties": _json(properties)})

    def _keep_edges(
        self,
        edges: Sequence[Edge],
        nodes: Mapping[str, Node],
        owner: str,
        at: int,
        begin: Callable[[], None],
        given: Mapping[Any, int | None],
    ) -> tuple[EdgeIds, ...]:
        there = self._open_edges([edge.source for edge in edges], owner)
        own = self._own_classes(edges, nodes, owner, at)
        changed: dict[EdgeIds, None] = {}
        for edge in edges:
            identity = _identity(edge)
            before = there.get(identity)
            edge = Edge(*identity, merged_properties(before.edge.properties if before else {}, edge.properties))
            classes = {each for end in (edge.source, edge.target) for each in own.get(end, ())}
            expires = edge_expiry(edge, nodes[edge.source], classes, at, self.lifetimes)
            if identity in given:
                expires = given[identity]
            elif before is not None:
                expires = later(expires, before.expires)
            if before is None or before.edge.properties != edge.properties or before.expires != expires:
                begin()
                created = before.created if before else at
                self._put_edge(edge, owner, created, expires, at)
                there[identity] = DatedEdge(owner, created, expires, at, None, edge)
                changed[identity] = None
        return tuple(changed)

    def _put_edge(self, edge: Edge, owner: str, created: int, expires: int | None, at: int) -> None:
        ends = {"owner": owner, "source": edge.source, "type": edge.type, "target": edge.target, "at": at}
        self.storage.rows(sql.CLOSE_EDGE, ends)
        dates = {"created_at": created, "expires_at": expires}
        self.storage.rows(sql.OPEN_EDGE, ends | dates | {"properties": _json(edge.properties)})

    def _open_edges(self, sources: Iterable[str], owner: str) -> dict[EdgeIds, DatedEdge]:
        rows = self.storage.rows(sql.OPEN_EDGES, {"owner": owner, "ids": sorted(set(sources))})
        return {_identity(dated.edge): dated for dated in map(dated_edge, rows)}

    def _own_classes(self, edges: Sequence[Edge], nodes: Mapping[str, Node], owner: str, at: int) -> dict[str, set[str]]:
        """The names of the classes that assets at the ends of edges belong to themselves, by the asset's id."""
        assets = {end for edge in edges for end in (edge.source, edge.target) if nodes[end].labels == ("Asset",)}
        view = InvestmentView(self.storage, owner, at, self.vocabulary)
        links = [(edge.source, edge.target) for edge in edges if edge.type == "belongs_to"]
        if assets:
            links += [(dated.edge.source, dated.edge.target) for dated in view.edges_from(assets, ["belongs_to"])]
        named = {id: node for id, node in nodes.items() if node.labels == ("AssetClass",)}
        if unnamed := {target for source, target in links if source in assets and target not in named}:
            named |= {dated.node.id: dated.node for dated in view.nodes_by_id(unnamed)}
        classes: dict[str, set[str]] = {}
        for source, target in links:
            if source in assets and target in named:
                classes.setdefault(source, set()).add(str(named[target].properties["name"]))
        return classes


def open_investment_graph(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    vocabulary: Vocabulary = INVESTMENT,
    lifetimes: Sequence[Lifetime] = LIFETIMES,
    now: Callable[[], datetime] = utc_now,
) -> InvestmentGraph:
    """An investment graph in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address, in the schema `namespace`."""
    storage = open_tables(sql.GRAPH_LAYOUT, place, namespace=namespace)
    return InvestmentGraph(storage, vocabulary=vocabulary, lifetimes=lifetimes, now=now)


def _identity(edge: Edge) -> EdgeIds:
    return edge.source, edge.type, edge.target


def _one_each(nodes: Iterable[Node]) -> list[Node]:
    """The nodes that were given, one for each id: what is said twice is joined."""
    found: dict[str, Node] = {}
    for node in nodes:
        node = fit_node(node)
        _require_key(node.id, "the id of a node")
        before = found.get(node.id)
        if before is not None and before.labels != node.labels:
            raise BadInput(f"node {shortly(node.id)} is given with two types: {before.labels} and {node.labels}")
        found[node.id] = Node(node.id, node.labels, dict(before.properties) | dict(node.properties) if before else node.properties)
    return list(found.values())


def _updated(there: DatedNode | None, node: Node) -> Node:
    """A node with its new properties over those it had."""
    return Node(node.id, node.labels, merged_properties(there.node.properties if there else {}, node.properties))


def _require_owner(owner: str) -> None:
    require(owner, str, "an owner is a text, '' for what all share")
    if owner:
        _require_key(owner, "an owner")
    if "/" in owner:
        raise BadInput("an owner is a text without /, which ends it in the ids of its nodes")


def _require_key(text: str, what: str) -> None:
    fit_text(text, what)
    if "\0" in text or len(text) > LONGEST_ID:
        raise BadInput(f"{what} is a text of at most {LONGEST_ID} letters without a NUL, not {shortly(text)}")


def _json(properties: Mapping[str, Json]) -> str:
    return json.dumps(dict(properties), sort_keys=True)
