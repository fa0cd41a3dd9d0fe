"""A world on a server that speaks Bolt, such as Neo4j. It has no tables: entities are nodes that bear the
name of their world.

All that `statements` says in SQL is said in Cypher here, and no statement leaves the nodes of its world. What
a session says for a relationship is an edge of its own, so that it goes with either end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from kgot_lab.domains.npc.models import EntityFilter, RelationshipFilter, VisibleWorld
from kgot_lab.domains.npc.policy import VisibilityPolicy
from kgot_lab.domains.npc.rows import plain_column
from kgot_lab.domains.npc.storage import WorldRow, WorldStatements
from kgot_lab.domains.npc.visibility_python import visible_in_python
from kgot_lab.errors import BadInput, StoreUnavailable
from kgot_lab.graph.property_graph import Direction
from kgot_lab.io.fork_safety import tell_of_forks
from kgot_lab.stores.cypher.connection import BoltLink, Overtaken
from kgot_lab.stores.cypher.write_lock import Turns

if TYPE_CHECKING:
    from neo4j import Transaction

_TOGETHER = 500  # rows in one statement
_SECONDS = 60.0  # that a reading transaction may be open

# --- in Cypher
# --------------------------------------------------------------------------------------------------------

_ENTITY = "e.id, e.type, e.name, e.attributes, e.created_at, e.updated_at"
_RELATIONSHIP = "a.id, b.id, r.rel_type, r.attributes, r.provenance, r.standing, r.created_at, r.updated_at"
_SUPPORT = (
    "a.id, b.id, s.rel_type, s.session_id, s.said_at, s.confidence, s.source, s.dm_confirmed, s.standing"
)
_E, _A, _B = (f"({name}:KgotEntity {{world: $world}})" for name in "eab")
_ENDS = """UNWIND $rows AS row
  MATCH (a:KgotEntity {world: $world, id: row.source}) MATCH (b:KgotEntity {world: $world, id: row.target})"""
_TIES, _SAYINGS = f"MATCH {_A}-[r:KGOT_TIE]->{_B}", f"MATCH {_A}-[s:KGOT_SUPPORT]->{_B}"
_AMONG = "WHERE a.id IN $sources AND b.id IN $targets AND"
_OF = "WHERE a.id = $source AND b.id = $target AND"

_INDEX = "CREATE INDEX kgot_entities IF NOT EXISTS FOR (e:KgotEntity) ON (e.world, e.id)"
_ENTITIES = f"MATCH {_E} WHERE e.id IN $ids RETURN {_ENTITY}"
_RELATIONSHIPS_FROM = f"{_TIES} WHERE a.id IN $ids RETURN {_RELATIONSHIP}"
_RELATIONSHIPS_AMONG = f"{_TIES} {_AMONG} r.rel_type IN $types RETURN {_RELATIONSHIP}"
_SUPPORT_AMONG = f"{_SAYINGS} {_AMONG} s.rel_type IN $types RETURN {_SUPPORT}"
_SUPPORT_OF = f"{_SAYINGS} {_OF} s.rel_type = $type RETURN {_SUPPORT} ORDER BY s.session_id"
_SUPPORT_QUEUED = f"{_SAYINGS} WHERE s.standing = 'queued' RETURN {_SUPPORT}"

_PUT_ENTITY = """UNWIND $rows AS row MERGE (e:KgotEntity {world: $world, id: row.id}) ON CREATE SET e.created_at = row.at
  SET e.type = row.type, e.name = row.name, e.attributes = row.attributes, e.updated_at = row.at"""
_PUT_RELATIONSHIP = f"""{_ENDS} MERGE (a)-[r:KGOT_TIE {{rel_type: row.type}}]->(b) ON CREATE SET r.created_at = row.at
  SET r.attributes = row.attributes, r.provenance = row.provenance, r.standing = row.standing, r.updated_at = row.at"""
_PUT_SUPPORT = f"""{_ENDS} MERGE (a)-[s:KGOT_SUPPORT {{rel_type: row.type, session_id: row.session}}]->(b)
  SET s.said_at = row.said_at, s.confidence = row.confidence, s.source = row.kind, s.dm_confirmed = row.confirmed,
  s.standing = row.standing"""
_DELETE_ENTITY = f"MATCH {_E} WHERE e.id = $id DETACH DELETE e"
_DELETE_RELATIONSHIP = f"MATCH {_A}-[r:KGOT_TIE|KGOT_SUPPORT]->{_B} {_OF} r.rel_type = $type DELETE r"


def _entities_where(wanted: EntityFilter) -> str:
    """The statement that reads the entities of some types and a name; the rest of the filter is not in it."""
    parts = ["true", *["e.type IN $types"] * bool(wanted.types), *["e.name = $name"] * bool(wanted.name)]
    return f"MATCH {_E} WHERE {' AND '.join(parts)} RETURN {_ENTITY}"


def _relationships_where(wanted: RelationshipFilter) -> str:
    """The statement that reads the relationships of an entity, and a row of nothing where it is there; how
    sure they are is not in it.
    """
    parts = [
        "true",
        *["r.rel_type IN $types"] * bool(wanted.types),
        *["r.standing = $standing"] * bool(wanted.standing),
    ]
    where, nothing = " AND ".join(parts), f"MATCH {_E} WHERE e.id = $id RETURN {_columns(['null'] * 8)}"
    ends = {
        "out": ("a.id = $id",),
        "in": ("b.id = $id",),
        "both": ("a.id = $id", "b.id = $id AND a.id <> $id"),
    }
    found = _columns(_RELATIONSHIP.split(", "))
    return " UNION ALL ".join(
        [nothing, *(f"{_TIES} WHERE {end} AND {where} RETURN {found}" for end in ends[wanted.direction])]
    )


def _steps_from(direction: Direction, types: tuple[str, ...]) -> str:
    """The statement that reads who is one step from some entities: from, to, and so for every step."""
    typed = " AND r.rel_type IN $types" * bool(types)
    ways = {"out": [("a", "b")], "in": [("b", "a")], "both": [("a", "b"), ("b", "a")]}
    return " UNION ALL ".join(
        f"{_TIES} WHERE {here}.id IN $ids AND r.standing <> 'rejected'{typed} RETURN {here}.id AS here, {there}.id AS there"
        for here, there in ways[direction]
    )


def _columns(what: list[str]) -> str:
    """Columns with names, which have to be the same on both sides of a UNION."""
    return ", ".join(f"{each} AS column{number}" for number, each in enumerate(what))


IN_CYPHER = WorldStatements(
    entities=_ENTITIES,
    relationships_from=_RELATIONSHIPS_FROM,
    relationships_among=_RELATIONSHIPS_AMONG,
    support_among=_SUPPORT_AMONG,
    support_of=_SUPPORT_OF,
    support_queued=_SUPPORT_QUEUED,
    put_entity=_PUT_ENTITY,
    put_relationship=_PUT_RELATIONSHIP,
    put_support=_PUT_SUPPORT,
    delete_entity=_DELETE_ENTITY,
    delete_relationship=_DELETE_RELATIONSHIP,
    entities_where=_entities_where,
    relationships_where=_relationships_where,
    steps_from=_steps_from,
)


# --- the server
# -------------------------------------------------------------------------------------------------------


class BoltWorld:
    """A WorldStorage on a Bolt server, under a name; raises what a BoltLink does.

    Writers go one after the other (`Turns`). Where a server has no locks (ArcadeDB) a change that was
    overtaken is made again.
    """

    statements = IN_CYPHER

    def __init__(
        self,
        uri: str,
        *,
        namespace: str,
        user: str = "neo4j",
        password: str = "",
        database: str | None = None,
    ) -> None:
        if not namespace.strip():
            raise BadInput("a namespace is a text that is not blank")
        self.namespace = namespace
        self._link = BoltLink(uri, user, password, database)
        self._turns = Turns(self._link, f"world {namespace}")  # so that no store of that name is meant
        self._lock = threading.RLock()
        self._within: Transaction | None = None
        tell_of_forks(self)
        try:
            with self._told():
                self._link.reach()
            self._make_index()
        except BaseException:
            self._link.close()
            raise

    def __repr__(self) -> str:
        return f"<BoltWorld {self.namespace!r} on {self._link.name}>"

    def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[WorldRow]:
        given = {name: plain_column(value) for name, value in (values or {}).items()} | {
            "world": self.namespace
        }
        with self._lock:
            if self._within is not None:  # whoever began it tells of errors
                return [tuple(row) for row in self._within.run(statement, given).values()]
            with self._told():
                return [tuple(row) for row in self._link.ask(statement, given)]

    def put(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), _TOGETHER):
            some = rows[start : start + _TOGETHER]
            self.rows(
                statement,
                {"rows": [{name: plain_column(value) for name, value in row.items()} for row in some]},
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One transaction, between whose questions a server may let others write; `visible` looks out for
        that.
        """
        with self._lock:
            if self._within is not None:
                yield
                return
            with self._told(), self._link.reading(_SECONDS) as transaction, self._inside(transaction):
                yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        with self._lock:
            if self._within is not None:
                yield
                return
            with self._told(), self._changing():
                yield

    def changed(self, act: Callable[[], None]) -> None:
        def once() -> None:
            with self._changing():
                act()

        with self._lock:
            if self._within is not None:
                act()
                return
            with self._told():
                self._link.again(once)

    def visible(self, npc_id: str, policy: VisibilityPolicy) -> VisibleWorld | None:
        def unchanging() -> VisibleWorld | None:
            before = self._turns.written()
            seen = visible_in_python(self, npc_id, policy)
            if self._turns.written() != before:
                raise Overtaken
            return seen

        with self._lock:
            if self._within is not None:
                return visible_in_python(self, npc_id, policy)
            with self._told():
                return self._link.again(unchanging)

    def close(self) -> None:
        self._link.close()

    def forked(self) -> None:
        """In a child: the connections are the parent's."""
        self._lock, self._within = threading.RLock(), None

    # --- inside
    # -------------------------------------------------------------------------------------------------------

    def _make_index(self) -> None:
        from neo4j.exceptions import Neo4jError

        with (
            suppress(Neo4jError),
            self._link.writing() as transaction,
        ):  # a server that makes none in Cypher looks through all entities
            transaction.run(_INDEX).consume()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._turns.taken() as turn, self._inside(turn.transaction):
            yield

    @contextmanager
    def _inside(self, transaction: Transaction) -> Iterator[None]:
        self._within = transaction
        try:
            yield
        finally:
            self._within = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """In the place of the driver's errors, ours, which say what to do."""
        try:
            with self._link.explained(
                lambda reason: StoreUnavailable(f"{self!r} does not let it work: {reason}")
            ):
                yield
        except Overtaken:
            raise StoreUnavailable(
                f"another writer of {self!r} was faster; nothing was changed, so do it again"
            ) from None
