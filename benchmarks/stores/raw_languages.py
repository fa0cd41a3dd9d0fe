"""Drivers of graph languages, as they are measured beside our stores: pyoxigraph, a SPARQL server, ArcadeDB
and Neo4j's driver.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kgot_lab.types import Diff, Edge

TOGETHER = 5_000  # rows in one request
DriverPlace = Mapping[str, Any]


def texts_of(properties: Mapping[str, Any]) -> str:
    return " ".join(map(str, properties.values()))


# --- SPARQL ---

BASE = "urn:raw:"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LINK = f"FILTER(isIRI(?end) && ?relation != <{_TYPE}>)"  # an edge, not a label


def _iri(name: str) -> str:
    return BASE + name.replace(" ", "_")


def _literal(text: Any) -> str:
    return json.dumps(str(text), ensure_ascii=False)  # which N-Triples spells alike


class Pyoxigraph:
    """A store in this process's memory."""

    def __init__(self, where: DriverPlace):
        import pyoxigraph

        self.ox: Any = pyoxigraph
        self.store: Any = pyoxigraph.Store()

    def _quads(self, diff: Diff) -> Iterable[Any]:
        ox, name = self.ox, self.ox.NamedNode
        kind = name(_TYPE)
        for node in diff.added_nodes:
            subject = name(_iri(node.id))
            yield ox.Quad(subject, kind, name(_iri(node.labels[0])))
            for key, value in node.properties.items():
                yield ox.Quad(subject, name(_iri(key)), ox.Literal(value))
        for edge in diff.added_edges:
            yield ox.Quad(name(_iri(edge.source)), name(_iri(edge.type)), name(_iri(edge.target)))

    def load(self, diff: Diff) -> object:
        return self.store.bulk_extend(self._quads(diff))

    def neighbours(self, id: str) -> object:
        return list(self._edges(id))

    def _edges(self, id: str) -> Iterable[tuple[str, str, str]]:
        node, name = self.ox.NamedNode(_iri(id)), self.ox.NamedNode
        for quad in chain(
            self.store.quads_for_pattern(node, None, None), self.store.quads_for_pattern(None, None, node)
        ):
            if isinstance(quad.object, name) and quad.predicate.value != _TYPE:
                yield quad.subject.value[len(BASE) :], quad.predicate.value, quad.object.value[len(BASE) :]

    def search(self, words: Sequence[str]) -> object:
        return list(self.store.query(_find(words)))

    def read(self, id: str) -> object:
        return list(self.store.query(_out(id)))

    def write(self, source: str, relation: str, target: str) -> object:
        return self.store.update(f"INSERT DATA {{ <{_iri(source)}> <{_iri(relation)}> <{_iri(target)}> }}")

    def everything(self) -> object:
        return list(self.store)

    def close(self) -> object:
        return None


def _out(id: str) -> str:
    return f"SELECT ?relation ?end WHERE {{ <{_iri(id)}> ?relation ?end {LINK} }}"


def _find(words: Sequence[str]) -> str:
    said = " || ".join(f"CONTAINS(LCASE(?text), {_literal(word.lower())})" for word in words)
    return (
        f"SELECT DISTINCT ?node WHERE {{ ?node ?name ?text FILTER(isLiteral(?text) && ({said})) }} LIMIT 10"
    )


class Httpx:
    """The SPARQL protocol over HTTP, with one request for each question; walks go level by level."""

    def __init__(self, where: DriverPlace):
        import httpx

        self.client: Any = httpx.Client(timeout=600)
        self.query_url, self.update_url = where["query_url"], where["update_url"]

    def _asked(self, query: str) -> list[dict[str, Any]]:
        told = {"Content-Type": "application/sparql-query", "Accept": "application/sparql-results+json"}
        answer = self.client.post(
            self.query_url, content=query, headers=told, params={"default-graph-uri": BASE}
        ).raise_for_status()
        found: list[dict[str, Any]] = answer.json()["results"]["bindings"]
        return found

    def load(self, diff: Diff) -> object:
        raw = Pyoxigraph({})
        text = raw.ox.serialize((quad.triple for quad in raw._quads(diff)), format=raw.ox.RdfFormat.N_TRIPLES)
        url = self.update_url.removesuffix("/update") + "/store"
        return self.client.post(
            url, params={"graph": BASE}, content=text, headers={"Content-Type": "application/n-triples"}
        ).raise_for_status()

    def neighbours(self, id: str) -> object:
        node = f"<{_iri(id)}>"
        return self._asked(
            f"SELECT ?relation ?end WHERE {{ {{ {node} ?relation ?end }} UNION {{ ?end ?relation {node} }} {LINK} }}"
        )

    def search(self, words: Sequence[str]) -> object:
        return self._asked(_find(words))

    def read(self, id: str) -> object:
        return self._asked(_out(id))

    def write(self, source: str, relation: str, target: str) -> object:
        update = (
            f"INSERT DATA {{ GRAPH <{BASE}> {{ <{_iri(source)}> <{_iri(relation)}> <{_iri(target)}> }} }}"
        )
        return self.client.post(
            self.update_url, content=update, headers={"Content-Type": "application/sparql-update"}
        ).raise_for_status()

    def everything(self) -> object:
        return self._asked("SELECT * WHERE { ?s ?p ?o }")

    def close(self) -> object:
        return self.client.close()


# --- Cypher ---

OUT = "MATCH (a:Thing {id: $id})-[r]->(b) RETURN type(r) AS relation, b.id AS object"
BOTH = "MATCH (a:Thing {id: $id})-[r]-(b) RETURN startNode(r).id AS source, type(r) AS type, endNode(r).id AS target"
FIND = "MATCH (n:Thing) WHERE any(word IN $words WHERE n.text CONTAINS word) RETURN n.id AS id LIMIT 10"
ADD = "MATCH (a:Thing {{id: $a}}) MERGE (b:Thing {{id: $b}}) MERGE (a)-[:`{}`]->(b)"
ALL_NODES, ALL_EDGES = "MATCH (n) RETURN n.id, properties(n)", "MATCH (a)-[r]->(b) RETURN a.id, type(r), b.id"


def _by_type(edges: Iterable[Edge]) -> dict[str, list[Edge]]:
    sorted_out: dict[str, list[Edge]] = {}
    for edge in edges:
        sorted_out.setdefault(edge.type, []).append(edge)
    return sorted_out


class Cypher:
    """What both Cypher drivers are asked; `ask` runs a statement, `tell` one that writes."""

    def ask(self, statement: str, parameters: DriverPlace) -> list[Any]:
        raise NotImplementedError

    tell = ask

    def neighbours(self, id: str) -> object:
        return self.ask(BOTH, {"id": id})

    def search(self, words: Sequence[str]) -> object:
        return self.ask(FIND, {"words": list(words)})

    def read(self, id: str) -> object:
        return self.ask(OUT, {"id": id})

    def write(self, source: str, relation: str, target: str) -> object:
        return self.tell(ADD.format(relation), {"a": source, "b": target})

    def everything(self) -> object:
        return self.ask(ALL_NODES, {}), self.ask(ALL_EDGES, {})


class ArcadeDB(Cypher):
    """The engine in this process, in a folder."""

    def __init__(self, where: DriverPlace):
        import arcadedb_embedded

        self.db = arcadedb_embedded.create_database(str(Path(str(where["path"])).with_suffix(".raw")))

    def load(self, diff: Diff) -> object:
        for statement in ("VERTEX TYPE Thing", "PROPERTY Thing.id STRING", "INDEX ON Thing (id) UNIQUE"):
            self.db.command("sql", f"CREATE {statement}")
        with self.db.graph_batch(expected_edge_count=len(diff.added_edges)) as batch:
            rows = [{"id": node.id, "text": texts_of(node.properties)} for node in diff.added_nodes]
            place = dict(
                zip((node.id for node in diff.added_nodes), batch.create_vertices("Thing", rows), strict=True)
            )
            for type, edges in _by_type(diff.added_edges).items():
                self.db.command("sql", f"CREATE EDGE TYPE `{type}`")
                batch.new_edges(
                    [place[edge.source] for edge in edges], type, [place[edge.target] for edge in edges]
                )
        return None

    def ask(self, statement: str, parameters: DriverPlace) -> list[Any]:
        return list(self.db.query("opencypher", statement, dict(parameters)).to_list())

    def tell(self, statement: str, parameters: DriverPlace) -> list[Any]:
        with self.db.transaction():
            self.db.command("opencypher", statement, dict(parameters))
        return []

    def close(self) -> object:
        return self.db.close()


class Neo4jDriver(Cypher):
    """Neo4j's driver, with a label, an index and UNWIND."""

    def __init__(self, where: DriverPlace):
        from neo4j import GraphDatabase

        self.driver: Any = GraphDatabase.driver(where["uri"], auth=(where["user"], where["password"]))
        self.database = where["raw"]

    def ask(self, statement: str, parameters: DriverPlace) -> list[Any]:
        return list(self.driver.execute_query(statement, dict(parameters), database_=self.database).records)

    tell = ask

    def load(self, diff: Diff) -> object:
        self.ask("CREATE INDEX thing_id FOR (n:Thing) ON (n.id)", {})
        nodes = [{"id": node.id, "text": texts_of(node.properties)} for node in diff.added_nodes]
        for start in range(0, len(nodes), TOGETHER):
            self.ask(
                "UNWIND $rows AS row CREATE (n:Thing {id: row.id, text: row.text})",
                {"rows": nodes[start : start + TOGETHER]},
            )
        for type, edges in _by_type(diff.added_edges).items():
            made = f"UNWIND $rows AS row MATCH (a:Thing {{id: row[0]}}), (b:Thing {{id: row[1]}}) CREATE (a)-[:`{type}`]->(b)"
            for start in range(0, len(edges), TOGETHER):
                self.ask(
                    made, {"rows": [[edge.source, edge.target] for edge in edges[start : start + TOGETHER]]}
                )
        return None

    def close(self) -> object:
        return self.driver.close()
