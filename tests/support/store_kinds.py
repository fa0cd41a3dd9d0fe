"""Every store there is, as the contract opens it: empty, in a home of its own, and the same few statements in
each language.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kgot_lab.graph import PropertyGraph
from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Diff, Edge, Node
from support.lent_engine import LentEngine

NUMBERS = itertools.count(1)
Act = Callable[[PropertyGraph], Diff]
NEIGHBOUR = Diff(  # somebody else's graph on the same server
    added_nodes=(
        *(
            Node(name, ("Person",), {"age": 99, "text": "fog, a city metal"})
            for name in ("Ada", "Charles", "Marie Curie", "Nobody")
        ),
        *(Node(name, ("City",)) for name in ("London", "Paris")),
    ),
    added_edges=(
        Edge("Ada", "born in", "Paris", {"year": 1}),
        Edge("Ada", "knows", "Nobody"),
        Edge("Nobody", "is", "Ada"),
        Edge("Marie Curie", "won", "London"),
    ),
)


@dataclass(frozen=True)
class Statements:
    """The same few acts in one language."""

    add: str | Act  # Ada --[born in {year: 1815}]--> London
    know: str | Act  # Ada --[knows]--> Charles
    change: str | Act  # Ada's property age becomes 36
    forget: str | Act  # the edge to London goes
    remove: str | Act  # Ada goes, with her edges
    where: str  # one row: where Ada was born
    nothing: str  # a read without rows
    broken: str  # not the language
    sneaky: str  # a write given as a read


PYTHON = Statements(
    add='add("Ada", "born in", "London", subject_label="Person", object_label="City", year=1815)',
    know='add("Ada", "knows", "Charles", subject_label="Person", object_label="Person")',
    change='G.nodes["Ada"]["age"] = 36',
    forget='G.remove_edge("Ada", "London", "born in")',
    remove='G.remove_node("Ada")',
    where='result = [fact["object"] for fact in facts("Ada", "born in")]',
    nothing='result = names("Nobody")',
    broken="add('Ada'",
    sneaky='add("Ada", "knows", "Eve")\nresult = [1]',
)
CYPHER = Statements(
    add='MERGE (a:Person {id: "Ada"}) MERGE (l:City {id: "London"}) MERGE (a)-[r:`born in`]->(l) SET r.year = 1815',
    know='MERGE (a:Person {id: "Ada"}) MERGE (c:Person {id: "Charles"}) MERGE (a)-[:knows]->(c)',
    change='MATCH (a {id: "Ada"}) SET a.age = 36',
    forget='MATCH (:Person {id: "Ada"})-[r:`born in`]->() DELETE r',
    remove='MATCH (a {id: "Ada"}) DETACH DELETE a',
    where='MATCH (:Person {id: "Ada"})-[:`born in`]->(l) RETURN l.id AS place',
    nothing='MATCH (n {id: "Nobody"}) RETURN n.id',
    broken="MERGE (a:Person",
    sneaky='MATCH (a {id: "Ada"}) SET a.age = 1 RETURN a.id',
)
SPARQL = Statements(
    add=(
        "INSERT DATA { :Ada a :Person ; :born_in :London . :London a :City . "
        "[] a rdf:Statement ; rdf:subject :Ada ; rdf:predicate :born_in ; rdf:object :London ; :year 1815 }"
    ),
    know="INSERT DATA { :Ada a :Person ; :knows :Charles . :Charles a :Person }",
    change="INSERT DATA { :Ada :age 36 }",
    forget="DELETE WHERE { :Ada :born_in ?where }",
    remove="DELETE WHERE { :Ada ?p ?o }",
    where="SELECT ?place WHERE { :Ada :born_in ?place }",
    nothing="SELECT ?x WHERE { :Nobody :is ?x }",
    broken="INSERT DATA { :Ada",
    sneaky="INSERT DATA { :Ada :knows :Eve }",
)


def _adds(edge: Edge) -> Act:
    def act(graph: PropertyGraph) -> Diff:
        ends = tuple(Node(end) for end in (edge.source, edge.target) if end not in graph.ids)
        return Diff(added_nodes=ends, added_edges=() if edge in graph.edges else (edge,))

    return act


def _changes(graph: PropertyGraph) -> Diff:
    ada = graph.node("Ada")
    return Diff(changed_nodes=((ada, Node("Ada", ada.labels, {**ada.properties, "age": 36})),))


def _forgets(graph: PropertyGraph) -> Diff:
    identity = ("Ada", "born in", "London", "")
    return Diff(removed_edges=tuple(edge for edge in graph.edges if edge.identity == identity))


def _removes(graph: PropertyGraph) -> Diff:
    edges = tuple(edge for edge in graph.edges if "Ada" in (edge.source, edge.target))
    return Diff(removed_nodes=(graph.node("Ada"),), removed_edges=edges)


SQL = Statements(  # which is read alone: a graph in SQL is changed by diffs
    add=_adds(Edge("Ada", "born in", "London", {"year": 1815})),
    know=_adds(Edge("Ada", "knows", "Charles")),
    change=_changes,
    forget=_forgets,
    remove=_removes,
    where="SELECT target FROM edges WHERE source = 'Ada' AND type = 'born in'",
    nothing="SELECT id FROM nodes WHERE id = 'Nobody'",
    broken="SELECT FROM WHERE",
    sneaky="WITH gone AS (DELETE FROM nodes RETURNING id) SELECT * FROM gone",
)


def write(store: Store, act: str | Act) -> Diff:
    """Run a statement, or apply the diff that stands for one."""
    if isinstance(act, str):
        return store.write(act)
    diff = act(store.graph())
    store.apply(diff)
    return diff


@dataclass(frozen=True)
class Kind:
    """A store of the list: how to open an empty one in a folder, and again what it left."""

    name: str
    statements: Statements
    # what it returns opens the same home each time
    open: Callable[[Path, pytest.FixtureRequest], Callable[[], Store]]

    def __str__(self) -> str:
        return self.name


def _here(kind: str, **where: str) -> Callable[[Path, pytest.FixtureRequest], Callable[[], Store]]:
    def home(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
        places = {name: folder / file for name, file in where.items()}
        return lambda: open_store(kind, **places)

    return home


def _cypher(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    return lambda: open_store("cypher_embedded", path=folder / "graph.log", open=LentEngine)


def _beside_a_neighbour(open: Callable[..., Store]) -> Callable[[], Store]:
    """Opens one namespace of a server whose other one holds things of the same names, which no test must
    meet.
    """
    namespace = f"contract {os.getpid()} {next(NUMBERS)}"
    with closing(open(namespace=f"beside {namespace}")) as neighbour:
        neighbour.apply(NEIGHBOUR)
    return lambda: open(namespace=namespace)


def _bolt(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    server = request.getfixturevalue("bolt_server")
    where = {
        "uri": server.uri,
        "user": server.user,
        "password": server.password,
        "database": server.database(f"contract{next(NUMBERS)}"),
    }
    return _beside_a_neighbour(partial(open_store, "cypher_server", **where))


def _neo4j(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    where = {"uri": os.environ["KGOT_NEO4J_URI"], "password": os.environ.get("KGOT_NEO4J_PASSWORD", "")}
    return _beside_a_neighbour(partial(open_store, "cypher_server", **where))


def _sparql(query: str, update: str) -> Callable[[], Store]:
    return _beside_a_neighbour(partial(open_store, "sparql_server", query_url=query, update_url=update))


def _oxigraph(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    server = request.getfixturevalue("oxigraph_server")
    return _sparql(server.query_url, server.update_url)


def _rdf4j(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    return _sparql(os.environ["KGOT_SPARQL_QUERY"], os.environ["KGOT_SPARQL_UPDATE"])


def _pgserver(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    url, namespace = request.getfixturevalue("postgres_url"), f"contract {next(NUMBERS)}"
    return lambda: open_store("postgres", url=url, namespace=namespace)


def _postgres(folder: Path, request: pytest.FixtureRequest) -> Callable[[], Store]:
    url, namespace = os.environ["KGOT_POSTGRES_URL"], f"contract {os.getpid()} {next(NUMBERS)}"
    return lambda: open_store("postgres", url=url, namespace=namespace)


HERE = (
    Kind("in_memory", PYTHON, _here("in_memory", path="graph.log")),
    Kind("cypher_embedded", CYPHER, _cypher),
    Kind("sparql_embedded", SPARQL, _here("sparql_embedded", path="graph.log")),
    Kind("sqlite", SQL, _here("sqlite", path="graph.db")),
    Kind("cypher_server", CYPHER, _bolt),  # ArcadeDB, which speaks Neo4j's protocol
    Kind("sparql_server", SPARQL, _oxigraph),
    Kind("postgres", SQL, _pgserver),
)
ELSEWHERE = (  # real servers, where `make servers` or you say where they are
    *((Kind("neo4j", CYPHER, _neo4j),) if os.environ.get("KGOT_NEO4J_URI") else ()),
    *((Kind("rdf4j", SPARQL, _rdf4j),) if os.environ.get("KGOT_SPARQL_QUERY") else ()),
    *((Kind("postgres_elsewhere", SQL, _postgres),) if os.environ.get("KGOT_POSTGRES_URL") else ()),
)
KINDS = (*HERE, *ELSEWHERE)


@contextmanager
def opened(home: Callable[[], Store]) -> Iterator[Store]:
    """The store of a home, closed at the end."""
    store = home()
    try:
        yield store
    finally:
        store.close()
