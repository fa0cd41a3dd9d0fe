"""A persistent graph. Writes are validated, dated and given an expiry.

Nothing is deleted, so the state at any time can be viewed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.investment import statements as sql
from kgot_lab.domains.investment import versions
from kgot_lab.domains.investment.view import InvestmentView, owned_prefix
from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph.changes import merged_properties
from kgot_lab.graph.validation import Vocabulary
from kgot_lab.io.times import to_micros, to_micros_or_none, utc_now
from kgot_lab.kgos.schemas.check import Fault, find_faults, refuse_errors
from kgot_lab.kgos.schemas.vocabularies import INVESTMENT
from kgot_lab.stores.tables.history import LAST_CHANGE, Change, RecordedTables, VersionKeys, erase_versions
from kgot_lab.stores.tables.layout import TableStorage
from kgot_lab.stores.tables.opening import open_tables
from kgot_lab.types import Edge, Node, Triple


@dataclass(frozen=True)
class GraphUpdate:
    """The result of a write: ids of new or changed nodes, such edges, the number unchanged, and warnings.

    `change` undoes it, and is None if nothing was changed.
    """

    nodes: tuple[str, ...] = ()
    edges: tuple[versions.EdgeKey, ...] = ()
    unchanged: int = 0
    warnings: tuple[Fault, ...] = ()
    change: int | None = None

    def __bool__(self) -> bool:
        return bool(self.nodes or self.edges)


class InvestmentGraph(RecordedTables):
    """An investment graph in tables.

    `now` is its clock, `lifetimes` set how long facts stay fresh, and `vocabulary` the allowed types. Time
    never goes back: if the clock does, a write is dated by the last change before it. Views of times before an
    undo stay as they were.
    """

    _part = "node"

    def __init__(
        self,
        storage: TableStorage,
        *,
        vocabulary: Vocabulary = INVESTMENT,
        lifetimes: Sequence[versions.Lifetime] = versions.LIFETIMES,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(storage, now=now)
        self.vocabulary, self.lifetimes = vocabulary, tuple(lifetimes)

    # --- reading ---

    def view(self, owner: str = "", *, at: datetime | None = None) -> InvestmentView:
        """Return the graph as an owner sees it at a time, or now.

        It has the shared and the owner's nodes and edges that were live then.
        """
        versions.check_owner(owner)
        time = self._current_time() if at is None else to_micros(at, "the time of a view")
        return InvestmentView(self.storage, owner, time, self.vocabulary)

    def _current_time(self) -> int:
        """Return the current time, or that of the last change if the clock is behind it.

        So the last write is always visible.
        """
        last = (int(at) for _, at in self.storage.rows(LAST_CHANGE))
        return max([to_micros(self.now(), "now"), *last])

    # --- writing ---

    def write(
        self,
        nodes: Iterable[Node] = (),
        edges: Iterable[Edge] = (),
        *,
        owner: str = "",
        by: str = "",
        expires_at: Mapping[Any, datetime | None] | None = None,
    ) -> GraphUpdate:
        """Write new nodes and edges, or new properties of existing ones (None removes one), all or none.

        `expires_at` maps an id, or (source, type, target), to an expiry (None: never). All others live as
        `lifetimes` say, and writing something again never makes it expire earlier. Writing what exists
        changes nothing. Raises BadInput with all faults that the vocabulary finds.
        """
        nodes = versions.merge_nodes_by_id(nodes)
        edges = [versions.normalize_edge(edge, self.vocabulary) for edge in edges]
        versions.check_owner(owner)
        times = (expires_at or {}).items()
        explicit = {key: to_micros_or_none(time, "the time something expires") for key, time in times}
        written_keys = {node.id for node in nodes} | set(map(versions.edge_key, edges))
        if unknown := sorted(map(str, explicit.keys() - written_keys)):
            problem = f"expires_at names {short_repr(unknown[0])}, which is not among what is written"
            raise BadInput(f"{problem}; give its id, or (source, type, target)")
        with self.change("write", by) as recorded:
            change = versions.GraphChange(recorded, owner, self.lifetimes, explicit)
            ends = {end for edge in edges for end in (edge.source, edge.target)}
            existing = change.last_nodes({node.id for node in nodes} | ends)
            earlier = {id: dated.node.properties for id, dated in existing.items()}
            merged = (merged_properties(earlier.get(node.id, {}), node.properties) for node in nodes)
            written = {node.id: replace(node, properties=p) for node, p in zip(nodes, merged, strict=True)}
            known = {id: dated.node for id, dated in existing.items()} | written
            types = {id: node.labels[0] for id, node in known.items() if len(node.labels) == 1}
            owner_faults = versions.ownership_faults(nodes, existing, owner)
            faults = find_faults(self.vocabulary, written.values(), edges, types=types)
            warnings = refuse_errors([*owner_faults, *faults])
            changed_nodes = tuple(id for id, e in written.items() if change.write_node(e, existing.get(id)))
            changed_edges = change.write_edges(edges, known, self.vocabulary)
        given = len(written) + len(set(map(versions.edge_key, edges)))
        unchanged = given - len(changed_nodes) - len(changed_edges)
        return GraphUpdate(changed_nodes, changed_edges, unchanged, warnings, recorded.number)

    def expire(self, *targets: str | versions.EdgeKey, owner: str = "", by: str = "") -> GraphUpdate:
        """Expire nodes (by id) and edges (by source, type and target) now. They stay in the history.

        Those that have already ended are not changed.
        """
        versions.check_owner(owner)
        for target in targets:
            for part in target if isinstance(target, tuple) and len(target) == 3 else [target]:
                versions.check_storable_key(part, "what is to end")
        with self.change("expire", by) as recorded:
            change = versions.GraphChange(recorded, owner, (), {})
            nodes = change.last_nodes(target for target in targets if isinstance(target, str))
            edges = change.last_edges(target[0] for target in targets if not isinstance(target, str))
            own = {id: node for id, node in nodes.items() if node.owner == owner} | edges
            if unknown := [target for target in targets if target not in own]:
                kind = "node" if isinstance(unknown[0], str) else "edge"
                problem = f"there is no {kind} {short_repr(unknown[0])} of this owner"
                raise BadInput(f"{problem}; look at those of view().{kind}s()")
            ended = [target for target in dict.fromkeys(targets) if change.expire(own[target])]
        ended_nodes = tuple(target for target in ended if isinstance(target, str))
        ended_edges = tuple(target for target in ended if not isinstance(target, str))
        return GraphUpdate(ended_nodes, ended_edges, change=recorded.number)

    def erase_owner(self, owner: str, *, by: str = "") -> int | None:
        """Erase all nodes and edges of an owner with their history, which nothing brings back.

        Returns the number of the change, or None if there was nothing. Raises BadInput for what all share.
        """
        versions.check_owner(owner)
        if not owner:
            raise BadInput("what all share is of no owner: expire() ends it, and undo() takes it back")
        with self.change("erase", by) as change:
            if self.storage.rows(sql.ALL_OF_OWNER, {"owner": owner}):
                change.begin()
                prefix, ending = owned_prefix(owner), f", {json.dumps(owner)}]"
                values = {"prefix": prefix, "length": len(prefix), "ending": ending}
                erase_versions(self.storage, sql.VERSIONS_OF_OWNER, values)
                for statement in sql.ERASE_OWNER:
                    self.storage.rows(statement, {"owner": owner})
            return change.number

    def _restore(self, change: Change, keys: VersionKeys) -> None:
        versions.restore_versions(change, keys)

    def _facts_of(self, keys: VersionKeys) -> set[Triple]:
        """Return what is live of some nodes and edges."""
        at, states = self._current_time(), versions.current_states(self.storage, keys)
        facts = (versions.live_fact(kind, key, state, at) for (kind, key), state in states.items())
        return {fact for fact in facts if fact is not None}


@check_arguments
def open_investment_graph(
    place: Path | str = ":memory:",
    *,
    namespace: str | None = None,
    vocabulary: Vocabulary = INVESTMENT,
    lifetimes: Sequence[versions.Lifetime] = versions.LIFETIMES,
    now: Callable[[], datetime] = utc_now,
) -> InvestmentGraph:
    """Open an investment graph in an SQLite file, in memory (":memory:"), or in PostgreSQL by its address.

    `namespace` is its schema in PostgreSQL.
    """
    storage = open_tables(sql.GRAPH_LAYOUT, place, namespace=namespace)
    return InvestmentGraph(storage, vocabulary=vocabulary, lifetimes=lifetimes, now=now)
