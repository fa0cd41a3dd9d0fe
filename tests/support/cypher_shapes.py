"""Forty Cypher statements of the kinds that models write: derived from what the recorded runs wrote and read.

Those runs add facts with properties (a source, a sentence), several in one statement; they update a value,
correct a type, list what is around a name, follow two hops, count, and compare years. Each shape says what
must hold afterwards, so that "it ran" is not enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# the graph every shape begins with, one simple statement at a time
SHAPES_BEGIN_WITH = (
    'CREATE (:Person {id: "M. Ward", born: 1973})',
    'CREATE (:Person {id: "St. Vincent", born: 1982})',
    'CREATE (:Album {id: "Transfiguration of Vincent", year: 2003})',
    'CREATE (:Album {id: "Strange Mercy", year: 2011})',
    'CREATE (:State {id: "Oregon"})',
    'CREATE (:State {id: "Oklahoma"})',
    'MATCH (a:Album {id: "Transfiguration of Vincent"}), (b:Person {id: "M. Ward"}) CREATE (a)-[:BY {source: "p1"}]->(b)',
    'MATCH (a:Album {id: "Strange Mercy"}), (b:Person {id: "St. Vincent"}) CREATE (a)-[:BY {source: "p2"}]->(b)',
    'MATCH (a:Person {id: "M. Ward"}), (b:State {id: "Oregon"}) CREATE (a)-[:FROM {source: "p1"}]->(b)',
    'MATCH (a:Person {id: "St. Vincent"}), (b:State {id: "Oklahoma"}) CREATE (a)-[:FROM {source: "p3"}]->(b)',
)


@dataclass(frozen=True)
class Shape:
    """A statement, and the rows it must give, or the rows that a look at the graph must give after it."""

    name: str
    statement: str
    rows: tuple[tuple[Any, ...], ...]
    look: str = ""  # a read; with it the statement is a write
    parameters: Mapping[str, Any] = field(default_factory=dict)
    ordered: bool = False


_WRITES = (
    Shape("CREATE a node", 'CREATE (n:Person {id: "Vince O\'Brien", born: 1930})', (("Vince O'Brien", 1930),),
          'MATCH (n:Person) WHERE n.born < 1950 RETURN n.id, n.born'),
    Shape("CREATE with no value made up", 'CREATE (n:City {id: "Portland"})', ((["id"],),), 'MATCH (n:City) RETURN keys(n)'),
    Shape("CREATE several facts in one statement",
          'CREATE (a:Country {id: "Lesotho"})-[:LOCATED_IN {source: "p5", sentence: "It is there."}]->(b:Region {id: "Southern Africa"}), '
          '(a)-[:HAS_TYPE]->(:Type {id: "enclave"})',
          (("HAS_TYPE", "enclave", None), ("LOCATED_IN", "Southern Africa", "p5")),
          'MATCH (a:Country {id: "Lesotho"})-[r]->(b) RETURN type(r), b.id, r.source'),
    Shape("MERGE finds what is there", 'MERGE (a:Person {id: "M. Ward"}) MERGE (b:State {id: "Oregon"}) MERGE (a)-[r:FROM]->(b)',
          ((2, 1),), 'MATCH (p:Person) WITH count(p) AS people MATCH (:Person {id: "M. Ward"})-[r:FROM]->() RETURN people, count(r)'),
    Shape("MERGE makes what is not", 'MERGE (a:Person {id: "M. Ward"}) MERGE (b:City {id: "Portland"}) MERGE (a)-[r:LIVES_IN]->(b)',
          (("Portland",),), 'MATCH (:Person {id: "M. Ward"})-[:LIVES_IN]->(b:City) RETURN b.id'),
    Shape("MERGE ... ON CREATE SET", 'MERGE (a:Person {id: "Annie Clark"}) ON CREATE SET a.born = 1982 ON MATCH SET a.seen = true',
          ((1982, None),), 'MATCH (a:Person {id: "Annie Clark"}) RETURN a.born, a.seen'),
    Shape("MERGE ... ON MATCH SET", 'MERGE (a:Person {id: "M. Ward"}) ON CREATE SET a.new = true ON MATCH SET a.born = 1974',
          ((1974, None),), 'MATCH (a:Person {id: "M. Ward"}) RETURN a.born, a.new'),
    Shape("SET updates values", 'MATCH (a {id: "Strange Mercy"}) SET a.year = 2012, a.label = "4AD"', ((2012, "4AD"),),
          'MATCH (a {id: "Strange Mercy"}) RETURN a.year, a.label'),
    Shape("SET on a relation", 'MATCH (:Album {id: "Strange Mercy"})-[r:BY]->() SET r.role = "writer", r.year = 2011',
          (("p2", "writer", 2011),), 'MATCH (:Album {id: "Strange Mercy"})-[r:BY]->() RETURN r.source, r.role, r.year'),
    Shape("SET += adds a map", 'MATCH (a:Person {id: "M. Ward"}) SET a += {job: "singer", active: true}', ((1973, "singer", True),),
          'MATCH (a:Person {id: "M. Ward"}) RETURN a.born, a.job, a.active'),
    Shape("SET = replaces all properties", 'MATCH (a:Person {id: "M. Ward"}) SET a = {id: "M. Ward", job: "singer"}', ((None, "singer"),),
          'MATCH (a {id: "M. Ward"}) RETURN a.born, a.job'),
    Shape("SET to null removes", 'MATCH (a:Person {id: "M. Ward"}) SET a.born = null', ((None, 1),),
          'MATCH (a:Person {id: "M. Ward"}) RETURN a.born, size(keys(a))'),
    Shape("REMOVE a property", 'MATCH (a:Person {id: "M. Ward"}) REMOVE a.born', ((None,),),
          'MATCH (a:Person {id: "M. Ward"}) RETURN a.born'),
    Shape("SET a label", 'MATCH (a {id: "St. Vincent"}) SET a:Musician', ((["Musician", "Person"],),),
          'MATCH (a:Musician) UNWIND labels(a) AS l WITH l ORDER BY l RETURN collect(l)'),
    Shape("correct a type: REMOVE a label, SET another", 'MATCH (a {id: "Oregon"}) REMOVE a:State SET a:Region', ((["Region"], 1),),
          'MATCH (a {id: "Oregon"})<-[r:FROM]-() RETURN labels(a), count(r)'),
    Shape("several labels", 'CREATE (a:Person:Musician {id: "Paul Simon"})', (("Paul Simon",),),
          'MATCH (a:Person:Musician) RETURN a.id'),
    Shape("UNWIND maps into facts",
          'UNWIND [{s: "Botswana", o: "Africa", y: 1966}, {s: "Zambia", o: "Africa", y: 1964}] AS row '
          "MERGE (a:Country {id: row.s}) MERGE (b:Region {id: row.o}) MERGE (a)-[r:IN]->(b) SET r.since = row.y",
          (("Botswana", 1966, "Africa"), ("Zambia", 1964, "Africa")), "MATCH (a:Country)-[r:IN]->(b) RETURN a.id, r.since, b.id"),
    Shape("FOREACH", 'MATCH (a {id: "M. Ward"}) FOREACH (name IN ["folk", "rock"] | MERGE (g:Genre {id: name}) MERGE (a)-[:PLAYS]->(g))',
          (("folk",), ("rock",)), "MATCH (:Person)-[:PLAYS]->(g:Genre) RETURN g.id"),
    Shape("CASE in SET", 'MATCH (a:Album) SET a.decade = CASE WHEN a.year < 2010 THEN "2000s" ELSE "2010s" END',
          (("Strange Mercy", "2010s"), ("Transfiguration of Vincent", "2000s")), "MATCH (a:Album) RETURN a.id, a.decade"),
    Shape("DELETE a relation", 'MATCH (:Person {id: "M. Ward"})-[r:FROM]->() DELETE r', ((1,),), "MATCH ()-[r:FROM]->() RETURN count(r)"),
    Shape("DETACH DELETE", 'MATCH (a {id: "M. Ward"}) DETACH DELETE a', ((1, 2),),
          "MATCH (p:Person) WITH count(p) AS people MATCH ()-[r]->() RETURN people, count(r)"),
    Shape("a relation with spaces", 'MATCH (a {id: "M. Ward"}) MERGE (b:Date {id: "October 4, 1973"}) MERGE (a)-[:`born in`]->(b)',
          (("born in",),), 'MATCH (a {id: "M. Ward"})-[r]->(:Date) RETURN type(r)'),
    Shape("quotes, backslashes, newlines, unicode", 'CREATE (:Note {id: "n", text: "He said \\"La Niña\\" \\\\ 東京 😀\\nnext"})',
          (('He said "La Niña" \\ 東京 😀\nnext',),), "MATCH (n:Note) RETURN n.text"),
    Shape("1, 1.0, true and lists keep their kinds", 'CREATE (:Note {id: "n", a: 1, b: 1.0, c: true, d: ["x", "y"], e: [1, 2]})',
          ((1, 1.0, True, ["x", "y"], [1, 2]),), "MATCH (n:Note) RETURN n.a, n.b, n.c, n.d, n.e"),
    Shape("two relations of one type", 'MATCH (a {id: "M. Ward"}), (b {id: "Oregon"}) CREATE (a)-[:FROM {source: "p9"}]->(b)',
          (("p1",), ("p9",)), 'MATCH ({id: "M. Ward"})-[r:FROM]->() RETURN r.source'),
)  # fmt: skip

_READS = (
    Shape("what is around a name, either way", 'MATCH (a {id: "M. Ward"})-[r]-(b) RETURN type(r), b.id',
          (("BY", "Transfiguration of Vincent"), ("FROM", "Oregon"))),
    Shape("two hops", 'MATCH (a {id: "Strange Mercy"})-[*1..2]->(b) RETURN DISTINCT b.id', (("St. Vincent",), ("Oklahoma",))),
    Shape("shortestPath",
          'MATCH p = shortestPath((a {id: "Strange Mercy"})-[*..5]-(b {id: "Oklahoma"})) RETURN length(p), [n IN nodes(p) | n.id]',
          ((2, ["Strange Mercy", "St. Vincent", "Oklahoma"]),)),
    Shape("OPTIONAL MATCH", "MATCH (s:State) OPTIONAL MATCH (s)-[:CAPITAL]->(c) RETURN s.id, c.id", (("Oregon", None), ("Oklahoma", None))),
    Shape("count, ORDER BY, LIMIT", "MATCH (a)-[r]-() WITH a, count(r) AS n ORDER BY n DESC, a.id RETURN a.id, n LIMIT 2",
          (("M. Ward", 2), ("St. Vincent", 2)), ordered=True),
    Shape("collect, avg, max", "MATCH (p:Person) WITH p ORDER BY p.born RETURN collect(p.id), avg(p.born), max(p.born)",
          ((["M. Ward", "St. Vincent"], 1977.5, 1982),)),
    Shape("compare years",
          'MATCH (a {id: "M. Ward"}), (b {id: "St. Vincent"}) RETURN CASE WHEN a.born < b.born THEN a.id ELSE b.id END, b.born - a.born',
          (("M. Ward", 9),)),
    Shape("IN, STARTS WITH, CONTAINS, toLower, =~",
          'MATCH (n) WHERE n.id IN ["Oregon", "Strange Mercy"] OR n.id STARTS WITH "Trans" OR toLower(n.id) CONTAINS "m. w" '
          'OR n.id =~ "(?i)okla.*" RETURN n.id',
          (("Oregon",), ("Strange Mercy",), ("Transfiguration of Vincent",), ("M. Ward",), ("Oklahoma",))),
    Shape("EXISTS and COUNT subqueries",
          "MATCH (p:Person) WHERE EXISTS { (p)-[:FROM]->(s:State) WHERE s.id STARTS WITH 'Ore' } RETURN p.id, COUNT { (p)<-[:BY]-() }",
          (("M. Ward", 1),)),
    Shape("CALL subquery", "MATCH (p:Person) CALL { WITH p MATCH (a:Album)-[:BY]->(p) RETURN max(a.year) AS latest } RETURN p.id, latest",
          (("M. Ward", 2003), ("St. Vincent", 2011))),
    Shape("UNION", "MATCH (p:Person) RETURN p.id AS id UNION MATCH (s:State) RETURN s.id AS id",
          (("M. Ward",), ("St. Vincent",), ("Oregon",), ("Oklahoma",))),
    Shape("labels(), keys(), properties()", 'MATCH (a {id: "Strange Mercy"}) RETURN labels(a), size(keys(a)), properties(a)',
          ((["Album"], 2, {"id": "Strange Mercy", "year": 2011}),)),
    Shape("functions of text", 'MATCH (p:Person) RETURN split(p.id, " ")[1], replace(p.id, ". ", "_"), substring(p.id, 0, 2), size(p.id)',
          (("Ward", "M_Ward", "M.", 7), ("Vincent", "St_Vincent", "St", 11))),
    Shape("SKIP, parameters, coalesce",
          "MATCH (n) WHERE n.id <> $not RETURN n.id, coalesce(n.year, n.born, 0) ORDER BY n.id SKIP 1 LIMIT 2",
          (("Oklahoma", 0), ("Oregon", 0)), parameters={"not": "Nobody"}, ordered=True),
    Shape("date()", 'RETURN date("2011-09-13").year, date("1973-10-04") < date("1982-09-28")', ((2011, True),)),
)  # fmt: skip

CYPHER_SHAPES = _WRITES + _READS
assert len(CYPHER_SHAPES) == 40
