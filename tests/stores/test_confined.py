"""A statement in a database that others use too: it meets the nodes of its namespace, and where that is not
plain it is refused.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from support.cypher_shapes import CYPHER_SHAPES
from support.cypher_statements import HOSTILE, STATEMENTS
from support.every import every
from support.store_kinds import NEIGHBOUR

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.cypher.namespaces import confine_statement
from kgot_lab.stores.cypher.server import CypherServer
from kgot_lab.types import Diff, Edge, Node

M = "_run: 'm'"

MARKED = {
    "MATCH (n) RETURN n": f"MATCH (n {{{M}}}) RETURN n",
    "MATCH ()-[r]->(:City) RETURN r": f"MATCH ( {{{M}}})-[r]->(:City {{{M}}}) RETURN r",
    "MATCH (n:A|B {id: 1} WHERE n.x > 1) RETURN n": f"MATCH (n:A|B {{{M}, id: 1}} WHERE n.x > 1) RETURN n",
    "MERGE (a:P {}) MERGE (a)-[:R]->(b)": f"MERGE (a:P {{{M}}}) MERGE (a)-[:R]->(b {{{M}}})",
    "MATCH (a) WHERE NOT (a)--() RETURN a": f"MATCH (a {{{M}}}) WHERE NOT (a {{{M}}})--( {{{M}}}) RETURN a",
    "RETURN COUNT { (n:Person) } AS c": f"RETURN COUNT {{ (n:Person {{{M}}}) }} AS c",
    "RETURN [(a)-->(b) | b.id] AS ids": f"RETURN [(a {{{M}}})-->(b {{{M}}}) | b.id] AS ids",
    "MATCH (a) SET a = {x: 1} RETURN a": f"MATCH (a {{{M}}}) SET a = {{x: 1}}, a._run = 'm' RETURN a",
    "MATCH (a) RETURN (1) - (2) AS n, '(b)-->(c)' AS t": f"MATCH (a {{{M}}}) RETURN (1) - (2) AS n, '(b)-->(c)' AS t",
    "MATCH (WHERE {a: true}) RETURN 1": f"MATCH ( {{{M}}}WHERE {{a: true}}) RETURN 1",  # an anonymous node, not one of that name
    "MATCH (a) // (b)\nRETURN a": f"MATCH (a {{{M}}}) // (b)\nRETURN a",
}


@every("statement", MARKED)
def test_every_node_that_a_statement_may_find_or_make_is_marked(statement):
    assert confine_statement(statement, "'m'").text == MARKED[statement]


UNBOUND = (
    "MATCH (a) WITH 1 AS x MERGE (a) SET a.x = 1",
    "MATCH (a) WITH [(q)-->(b) | b.id] AS ids MERGE (q) SET q.x = 1",
    "MATCH (n) WITH n.as AS y MERGE (AS) SET AS.x = 1",
    "MATCH ()-[IS T]->() MERGE (IS) SET IS.x = 1",
    "MATCH (a) RETURN a UNION MATCH (b) MERGE (a) RETURN a",
    "CALL { MATCH (a) RETURN 1 AS x } MERGE (a) SET a.x = 1",
    "MATCH (a) CALL { MERGE (a) RETURN a AS b } RETURN b",
    "MATCH (n) WHERE EXISTS { (a) } MERGE (a) SET a.x = 1",
    "CALL { RETURN true } MERGE (true)",
)


@every("statement", UNBOUND)
def test_a_variable_that_is_bound_no_longer_is_marked_again(statement):
    merged = confine_statement(statement, "'m'").text.partition("MERGE (")[2]
    assert merged.partition(")")[0].endswith(f" {{{M}}}")


NOT_PLAIN = (
    "MATCH (n $properties) RETURN n",
    "MATCH (n:$(label)) RETURN n",
    "MATCH (n) WHERE n._run = 'other' RETURN n",
    "MATCH (n {`_run`: 'other'}) RETURN n",
    "MATCH (n {`\\u005frun`: 'other'}) RETURN n",
    "MATCH (n) SET n._kept = null",
    "MATCH (n) SET n['_run'] = 'other'",
    "MATCH (n) REMOVE n['_run']",
    "MATCH (n) SET (n)._run = 'other'",
    "CALL db.labels() YIELD label RETURN label",
    "CALL { USE other MATCH (n) RETURN n } RETURN n",
    "MATCH (a)\u2013\u2013(b) RETURN b",
    "MATCH (a)-[r\u3009(b) RETURN b",
    "MATCH REPEATABLE ELEMENTS (a)-->(b) RETURN b",
    "MATCH (a)-->{MATCH (b)}(c) RETURN c",
    "CREATE ((a)-[:R]->(b))",
    "MATCH (a RETURN a",
    "MATCH (n) RETURN " + "(" * 150 + "1" + ")" * 150,
)


@every("statement", NOT_PLAIN, ids=lambda statement: statement[:40])
def test_what_cannot_be_confined_is_refused_and_told_why(statement):
    with pytest.raises(QueryFailed, match="each node of a statement must be plain to see") as refused:
        confine_statement(statement, "'m'")
    assert refused.value.statement == statement


def test_the_mark_of_a_namespace_cannot_end_a_text(bolt_server):
    with CypherServer(bolt_server.uri, user=bolt_server.user, password=bolt_server.password, database=bolt_server.database("quoted"),
                      namespace="it's \"{}\" \\ `x` \\u0027 //") as store:  # fmt: skip
        store.write("CREATE (:A {id: 'a'})-[:R]->(:B {id: 'b'})")
        assert store.read("MATCH (a:A)-->(b) RETURN b.id AS id") == ({"id": "b"},)
        assert len(store.graph()) == 2


# --- on a server, beside others ---

nodes = (Node("Ada", ("Person",), {"born": 1815}), Node("London", ("City",)), Node("Zoe", ("Person",)))
OWN = Diff(added_nodes=nodes, added_edges=(Edge("Ada", "born in", "London"), Edge("Zoe", "knows", "Ada")))
EVERYTHING = (
    "MATCH (n) WHERE (n._run IS NULL OR n._run <> 'me') AND NOT (n:KgotLabWriters AND n.of = 'me') "  # what our writers take turns by
    "RETURN elementId(n), labels(n), properties(n), "
    "[(n)-[r]-(m) | [type(r), properties(r), m.id]]"
)


@pytest.fixture
def both(bolt_server):
    """The same graph in a database of its own, and in one where others have things of the same names; and
    what others have there.
    """
    import neo4j

    where = {"user": bolt_server.user, "password": bolt_server.password}
    alone, shared = bolt_server.database("alone"), bolt_server.database("shared")
    driver = neo4j.GraphDatabase.driver(bolt_server.uri, auth=tuple(where.values()))
    with driver, driver.session(database=shared) as session:
        session.run("CREATE (:Person {id: 'Ada', born: 1})-[:knows]->(:City {id: 'Paris'})").consume()
        with CypherServer(bolt_server.uri, database=shared, namespace="beside", **where) as neighbour:
            neighbour.apply(NEIGHBOUR)

        def others():
            return Counter(map(repr, session.run(EVERYTHING).values()))

        open_it = partial(CypherServer, bolt_server.uri, namespace="me", wipe=True, **where)
        with open_it(database=alone) as one, open_it(database=shared) as other:
            yield one, other, others


def outcome(store, statement):
    """What a statement gives, in an order of its own, whether as a read or as a write."""
    found = []
    for act in (store.read, store.write):
        try:
            result = act(statement)
            found.append(
                sorted(map(repr, result))
                if isinstance(result, tuple)
                else [sorted(map(repr, part)) for part in parts(result)]
            )
        except QueryFailed:
            found.append("refused")
    return found


def parts(diff):
    kinds = ("added_nodes", "removed_nodes", "changed_nodes", "added_edges", "removed_edges", "changed_edges")
    return [getattr(diff, kind) for kind in kinds]


@pytest.mark.extended
def test_every_statement_does_the_same_beside_others_as_alone_and_leaves_theirs_as_it_was(both):
    alone, shared, others = both
    theirs = others()
    shapes = [shape.statement for shape in CYPHER_SHAPES if not shape.parameters]
    for statement in (*HOSTILE, *STATEMENTS, *shapes):
        for store in (alone, shared):
            graph = store.graph()
            store.apply(graph.diff(graph.of()))
            store.apply(OWN)
        if 'name: "Bob"' not in statement:  # of two new nodes with one name either may be named first
            assert outcome(alone, statement) == outcome(shared, statement), statement
            assert alone.graph() == shared.graph(), statement
        assert others() == theirs, statement
