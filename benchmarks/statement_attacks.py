"""Attacks the stores by statements, in each of their languages, the way a hostile or confused model would.

Run it: python benchmarks/statement_attacks.py [--stores sqlite …]. Every attack must be refused, or have no effect: the graph is as it was,
nothing of the host is in the rows, nobody connected to the host's server, and the next statement is right. The tests run the same attacks.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox import open_sandbox
from kgot_lab.stores import open_store
from kgot_lab.stores.protocol import Store
from kgot_lab.types import Diff, Edge, Node

SECRET = "the-secret-of-the-host"
SECONDS = 1.0  # an attack may take
AMPLE = 120.0  # and the statement after it, which must succeed on a busy computer too
PATIENCE = 12.0  # seconds until a runaway must be over, a new worker or connection included
GRAPH = Diff(
    added_nodes=(Node("Ada", ("Person",), {"age": 36}), Node("London", ("City",)), *(Node(f"n{n}") for n in range(60))),
    added_edges=(Edge("Ada", "livesIn", "London"), *(Edge(f"n{n}", "next", f"n{m}") for n in range(60) for m in range(n + 1, 60, 3))),
)


@dataclass(frozen=True)
class Attack:
    """A statement, given as a read or a write; SECRET_FILE, OUT_FILE and HOST_URL stand for places on the host."""

    kind: str
    name: str
    statement: str
    do: str = "read"


def several(kind: str, do: str = "read", **statements: str) -> list[Attack]:
    """Attacks of one kind, each by its name."""
    return [Attack(kind, name.replace("_", " "), statement, do) for name, statement in statements.items()]


HIDDEN, CALLS, PLACES, NESTED = "writes hidden in a read", "procedures", "files and network", "nested updates"
SCHEMA, RUNAWAY, TWO, TRICKS = "schema changes", "runaways", "several statements", "comments and unicode"

CYPHER = [
    *several(
        HIDDEN,
        set="MATCH (a {id: 'Ada'}) SET a.age = 1 RETURN a.id",
        set_after_with="MATCH (a {id: 'Ada'}) WITH a LIMIT 1 SET a += {age: 1} RETURN 1 AS n",
        merge="MATCH (a {id: 'Ada'}) MERGE (b:Evil {id: 'Eve'}) RETURN b.id",
        delete="MATCH (n) DETACH DELETE n RETURN count(n) AS n",
        remove="MATCH (a {id: 'Ada'}) REMOVE a.age RETURN a.id",
        create_in_lower_case="match (a {id: 'Ada'}) create (:evil {id: 'eve'}) return a.id",
        foreach="MATCH (a {id: 'Ada'}) FOREACH (x IN [1] | SET a.age = x) RETURN 1 AS n",
        a_name_that_looks_like_text="MATCH (a {id: 'Ada\\'s'}) RETURN 1 AS n UNION MATCH (a) SET a.age = 1 RETURN 1 AS n",
    ),
    *several(
        CALLS,
        list_of_procedures="CALL dbms.procedures() YIELD name RETURN name",
        configuration="CALL dbms.listConfig() YIELD name, value RETURN name, value",
        apoc_file="CALL apoc.load.json('file:///SECRET_FILE') YIELD value RETURN value",
        apoc_query="CALL apoc.cypher.runWrite('CREATE (:Evil)', {}) YIELD value RETURN value",
        apoc_export="CALL apoc.export.json.all('OUT_FILE', {})",
        sql_through_a_procedure="CALL db.sql('DELETE FROM V') YIELD value RETURN value",
        in_a_subquery="MATCH (a) CALL { CALL dbms.components() YIELD name RETURN name } RETURN name",
    ),
    *several(
        PLACES,
        load_csv="LOAD CSV FROM 'file:///SECRET_FILE' AS line RETURN line",
        load_csv_of_the_web="LOAD CSV FROM 'HOST_URL' AS line RETURN line",
        load_csv_in_a_union="RETURN 'x' AS line UNION LOAD CSV FROM 'file:///SECRET_FILE' AS l RETURN l[0] AS line",
        load_csv_with_headers="MATCH (a {id: 'Ada'}) LOAD CSV WITH HEADERS FROM 'file:///SECRET_FILE' AS line RETURN line",
        function_that_reads="RETURN apoc.util.sha1(apoc.load.csv('SECRET_FILE')) AS x",
    ),
    *several(
        PLACES, "write",
        load_csv_into_the_graph="LOAD CSV FROM 'file:///SECRET_FILE' AS line CREATE (:Evil {id: line[0]})",
        fetch_into_the_graph="LOAD CSV FROM 'HOST_URL' AS line MERGE (:Evil {id: line[0]})",
    ),
    *several(
        NESTED,
        subquery_that_creates="MATCH (a) CALL { CREATE (b:Evil {id: 'Eve'}) RETURN b } RETURN count(b) AS n",
        subquery_of_a_subquery="CALL { WITH 1 AS x CALL { MERGE (b:Evil {id: 'Eve'}) RETURN b } RETURN b } RETURN b.id",
        exists_with_a_write="MATCH (a) WHERE EXISTS { MATCH (a) SET a.age = 1 RETURN a } RETURN a.id",
        in_transactions="MATCH (a) CALL { WITH a SET a.age = 1 } IN TRANSACTIONS OF 1 ROW RETURN 1 AS n",
    ),
    *several(
        SCHEMA, "write",
        index="CREATE INDEX evil FOR (n:Person) ON (n.age)",
        constraint="CREATE CONSTRAINT evil FOR (n:Person) REQUIRE n.age IS UNIQUE",
        drop="DROP INDEX evil",
        database="CREATE DATABASE evil",
        user="CREATE USER evil SET PASSWORD 'evilevil'",
        show="SHOW DATABASES",
        other_database="USE system MATCH (n) RETURN n",
    ),
    *several(
        RUNAWAY,
        cross_product="MATCH (a), (b), (c), (d), (e) RETURN count(*) AS n",
        long_paths="MATCH p = (a)-[*1..30]-(b) RETURN count(p) AS n",
        big_range="UNWIND range(1, 2000000000) AS x RETURN sum(x) AS n",
        big_rows="UNWIND range(1, 300000) AS x RETURN x, 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' AS t",
    ),
    *several(
        RUNAWAY, "write",
        many_nodes="UNWIND range(1, 100000000) AS x CREATE (:Evil {id: toString(x)})",
    ),
    *several(
        TWO,
        delete_after_a_read="MATCH (n) RETURN count(n) AS n; MATCH (m) DETACH DELETE m",
        after_a_comment="RETURN 1 AS n; // done\nMATCH (m) DETACH DELETE m",
        commit="RETURN 1 AS n; COMMIT; CREATE (:Evil)",
    ),
    *several(
        TRICKS,
        comment_in_a_word="MATCH (a) SE/**/T a.age = 1 RETURN 1 AS n",
        line_comment="MATCH (a) // WHERE\nSET a.age = 1 RETURN 1 AS n",
        end_of_a_comment_in_a_text="MATCH (a) WHERE a.id <> '/*' SET a.age = 1 RETURN '*/' AS n",
        escaped_word="MATCH (a) \\u0053ET a.age = 1 RETURN 1 AS n",
        escaped_quote="MATCH (a {id: 'x\\u0027}) SET a.age = 1 RETURN '' AS n",
        backtick="MATCH (a) RETURN a.`x` AS `n` UNION MATCH (a) SET a.age = 1 RETURN '`' AS n",
        full_width="MATCH (a) ＳＥＴ a.age = 1 RETURN 1 AS n",
        no_break_space="MATCH (a)\u00a0SET\u00a0a.age = 1 RETURN 1 AS n",
    ),
]  # fmt: skip
SPARQL = [
    *several(
        HIDDEN,
        insert="INSERT DATA { :Ada :age 1 }",
        delete_where="DELETE WHERE { ?s ?p ?o }",
        modify="DELETE { ?s :age ?o } INSERT { ?s :age 1 } WHERE { ?s :age ?o }",
        after_a_prologue="PREFIX x: <urn:x>\nBASE <urn:y>\nINSERT DATA { :Ada :age 1 }",
        after_a_query="SELECT * WHERE { ?s ?p ?o } INSERT DATA { :Ada :age 1 }",
        lower_case="insert data { :Ada :age 1 }",
        clear="CLEAR ALL",
        drop="DROP SILENT ALL",
    ),
    *several(
        PLACES,
        service="SELECT * WHERE { SERVICE <HOST_URL> { ?s ?p ?o } }",
        silent_service="SELECT * WHERE { ?s ?p ?o SERVICE SILENT <HOST_URL> { ?a ?b ?c } }",
        service_by_variable="SELECT * WHERE { BIND(<HOST_URL> AS ?g) SERVICE ?g { ?s ?p ?o } }",
        from_the_web="SELECT * FROM <HOST_URL> WHERE { ?s ?p ?o }",
        from_a_file="SELECT * FROM <file:///SECRET_FILE> WHERE { ?s ?p ?o }",
        graph="SELECT * WHERE { GRAPH <file:///SECRET_FILE> { ?s ?p ?o } }",
    ),
    *several(
        PLACES, "write",
        load="LOAD <HOST_URL>",
        load_a_file="LOAD <file:///SECRET_FILE>",
        load_silently="LOAD SILENT <file:///SECRET_FILE> INTO GRAPH <urn:g>",
        service_in_an_update="INSERT { ?s ?p ?o } WHERE { SERVICE <HOST_URL> { ?s ?p ?o } }",
    ),
    *several(
        NESTED,
        update_in_a_subquery="SELECT * WHERE { { INSERT DATA { :Ada :age 1 } } }",
        update_in_exists="SELECT * WHERE { ?s ?p ?o FILTER EXISTS { DELETE WHERE { ?s ?p ?o } } }",
        service_in_optional="ASK { OPTIONAL { SERVICE <HOST_URL> { ?s ?p ?o } } }",
        service_in_a_subquery="SELECT * WHERE { { SELECT ?s WHERE { MINUS { SERVICE <HOST_URL> { ?s ?p ?o } } } } }",
    ),
    *several(
        SCHEMA, "write",
        create_graph="CREATE GRAPH <urn:evil>",
        copy="COPY DEFAULT TO GRAPH <urn:evil>",
        move="MOVE DEFAULT TO GRAPH <urn:evil>",
        other_graph="INSERT DATA { GRAPH <urn:evil> { :a :b :c } }",
        with_a_graph="WITH <urn:evil> DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    ),
    *several(
        RUNAWAY,
        cross_product="SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
        paths="SELECT (COUNT(*) AS ?n) WHERE { ?a (:next|^:next|:livesIn)* ?b . ?c (:next|^:next)* ?d . ?e (:next|^:next)+ ?f }",
        big_rows="SELECT * WHERE { ?a ?b ?c . ?d ?e ?f }",
    ),
    *several(
        RUNAWAY, "write",
        many_triples="INSERT { [] :evil ?a , ?d , ?g } WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }",
    ),
    *several(
        TWO,
        update_after_a_query="SELECT * WHERE { ?s ?p ?o } ; DELETE WHERE { ?s ?p ?o }",
        two_updates="INSERT DATA { :Ada :age 1 } ; DELETE WHERE { ?s ?p ?o }",
        two_queries="ASK {} SELECT * WHERE { ?s ?p ?o }",
    ),
    *several(
        TRICKS,
        escaped_word="\\u0049NSERT DATA { :Ada :age 1 }",
        escaped_service="SELECT * WHERE { \\u0053ERVICE <HOST_URL> { ?s ?p ?o } }",
        comment="# SELECT\nDELETE WHERE { ?s ?p ?o }",
        comment_in_a_name="SELECT * WHERE { ?s <urn:#> ?o . SERVICE#x\n<HOST_URL> { ?s ?p ?o } }",
        quotes='SELECT * WHERE { ?s ?p """ " \\""" . SERVICE <HOST_URL> { ?s ?p ?o } #""" }',
        carriage_return="# SELECT\rDELETE WHERE { ?s ?p ?o }",
        byte_order_mark="\ufeffINSERT DATA { :Ada :age 1 }",
    ),
]  # fmt: skip
SQL = [
    *several(
        HIDDEN,
        delete="DELETE FROM edges",
        cte="WITH gone AS (DELETE FROM edges RETURNING source) SELECT * FROM gone",
        cte_update="WITH x AS (UPDATE nodes SET properties = '{}' RETURNING id) SELECT id FROM x",
        insert_returning="INSERT INTO nodes (id, labels, properties) VALUES ('Eve', '[]', '{}') RETURNING id",
        select_into="SELECT * INTO evil FROM nodes",
        explain="EXPLAIN ANALYZE DELETE FROM edges",
        lower_case="with x as (delete from edges returning source) select * from x",
    ),
    *several(
        NESTED,
        delete_in_a_subquery="SELECT * FROM (DELETE FROM edges RETURNING source) AS gone",
        cte_of_a_cte="WITH a AS (SELECT 1), b AS (WITH c AS (DELETE FROM edges RETURNING source) SELECT * FROM c) SELECT * FROM b",
    ),
    *several(
        SCHEMA, "write",
        drop="DROP TABLE nodes",
        create="CREATE TABLE evil (x TEXT)",
        alter="ALTER TABLE nodes ADD COLUMN evil TEXT",
        trigger="CREATE TRIGGER evil AFTER INSERT ON nodes BEGIN DELETE FROM edges; END",
        index="CREATE INDEX evil ON nodes (labels)",
        begin="BEGIN",
        commit="COMMIT",
        vacuum="VACUUM",
    ),
    *several(
        RUNAWAY,
        recursion="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
        cross_product="SELECT count(*) FROM edges a, edges b, edges c, edges d, edges e",
        big_rows="WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3000000) SELECT n, 'xxxxxxxx' FROM r",
    ),
    *several(
        TWO,
        delete_after_a_read="SELECT 1; DELETE FROM edges",
        drop_after_a_comment="SELECT 1; -- done\nDROP TABLE edges",
    ),
    *several(TWO, "write", write_after_a_write="UPDATE nodes SET properties = '{}' WHERE 0 = 1; DROP TABLE edges"),
    *several(
        TRICKS,
        comment_in_a_word="DEL/**/ETE FROM edges",
        comment_first="/* SELECT */ DELETE FROM edges",
        line_comment="-- SELECT\nDELETE FROM edges",
        quote_in_a_comment="SELECT 1 /* ' */; DELETE FROM edges -- '",
        full_width="ＤＥＬＥＴＥ FROM edges",
        no_break_space="DELETE\u00a0FROM\u00a0edges",
    ),
]  # fmt: skip
SQLITE = [
    *SQL,
    *several(
        PLACES,
        attach="ATTACH DATABASE 'SECRET_FILE' AS evil",
        readfile="SELECT readfile('SECRET_FILE')",
        writefile="SELECT writefile('OUT_FILE', 'x')",
        vacuum_into="VACUUM INTO 'OUT_FILE'",
        load_extension="SELECT load_extension('SECRET_FILE')",
        pragma="PRAGMA writable_schema = 1",
        pragma_function="SELECT * FROM pragma_database_list",
        tokenizer="SELECT fts3_tokenizer('simple')",
        master="SELECT sql FROM sqlite_master",
    ),
    *several(
        RUNAWAY,
        big_blob="SELECT length(randomblob(1000000000)), hex(randomblob(900000000))",
        printf="SELECT printf('%.*c', 999999999, 'x')",
    ),
]  # fmt: skip
POSTGRES = [
    *SQL,
    *several(
        PLACES,
        pg_read_file="SELECT pg_read_file('SECRET_FILE')",
        pg_ls_dir="SELECT pg_ls_dir('/')",
        lo_import="SELECT lo_import('SECRET_FILE')",
        copy_to="COPY nodes TO 'OUT_FILE'",
        copy_program="COPY nodes TO PROGRAM 'touch OUT_FILE'",
        dblink="SELECT * FROM dblink('HOST_URL', 'SELECT 1') AS t(x int)",
        settings="SELECT current_setting('data_directory')",
        passwords="SELECT rolname, rolpassword FROM pg_authid",
        query_to_xml="SELECT query_to_xml('DELETE FROM edges RETURNING 1', true, true, '')",
        lo_export="SELECT lo_export(1, 'OUT_FILE')",
    ),
    *several(
        PLACES, "write",
        copy_from="COPY nodes FROM 'SECRET_FILE'",
        insert_a_file="INSERT INTO nodes (id, labels, properties) SELECT pg_read_file('SECRET_FILE'), '[]', '{}'",
    ),
    *several(
        CALLS,
        do_block="DO $$ BEGIN DELETE FROM edges; END $$",
        call="CALL evil()",
        set_role="SET ROLE postgres",
        reset_role="RESET ROLE",
        set_config="SELECT set_config('transaction_read_only', 'off', true)",
        sleep="SELECT pg_sleep(30)",
        terminate="SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        advisory_lock="SELECT pg_advisory_lock(1)",
        notify="SELECT pg_notify('x', 'y')",
        dollar_quotes="SELECT $x$ ' $x$; DELETE FROM edges --'",
    ),
]  # fmt: skip
ATTACKS = {
    "cypher_embedded": CYPHER,
    "cypher_server": CYPHER,
    "sparql_embedded": SPARQL,
    "sparql_server": SPARQL,
    "sqlite": SQLITE,
    "postgres": POSTGRES,
}
NEXT = {
    "cypher": "MATCH (:Person {id: 'Ada'})-[:livesIn]->(l) RETURN l.id AS place",
    "sparql": "SELECT ?place WHERE { :Ada :livesIn ?place }",
    "sqlite": "SELECT target AS place FROM edges WHERE source = 'Ada'",
    "postgres": "SELECT target AS place FROM edges WHERE source = 'Ada'",
}


@contextmanager
def host() -> Iterator[tuple[dict[str, str], list[object]]]:
    """Places that an attack should not reach: a file with a secret, one that is not there yet, and a server that counts who comes."""
    connected: list[object] = []
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:

        def count() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connected.append(connection)
                connection.close()

        threading.Thread(target=count, daemon=True).start()
        secret, out = Path(folder) / "secret.csv", Path(folder) / "out"
        secret.write_text(f"{SECRET},1\n")
        yield {"SECRET_FILE": str(secret), "OUT_FILE": str(out), "HOST_URL": f"http://127.0.0.1:{server.getsockname()[1]}/x"}, connected
        server.shutdown(socket.SHUT_RDWR)


def outcome(store: Store, attack: Attack, places: dict[str, str]) -> str:
    """What an attack got: refused and why, or its rows or its diff; the time it took is in the second word."""
    statement = attack.statement
    for name, place in places.items():
        statement = statement.replace(name, place)
    begun = time.monotonic()
    allow(store, SECONDS)
    try:
        got = store.read(statement) if attack.do == "read" else store.write(statement)
    except QueryFailed as error:
        return f"refused {time.monotonic() - begun:.1f} s: {error}"
    if isinstance(got, Diff):
        return f"wrote {time.monotonic() - begun:.1f} s: {got}"
    return f"read {time.monotonic() - begun:.1f} s: {json.dumps(got)[:2000]}"


def failings(store: Store, kind: str, got: str, places: dict[str, str], connected: list[object]) -> list[str]:
    """Everything that an attack should not have reached; the graph is put back if it changed."""
    found = []
    if SECRET in got:
        found.append("it read a file of the host")
    if Path(places["OUT_FILE"]).exists():
        found.append("it wrote a file on the host")
    if connected:
        found.append("it reached the host's server")
    allow(store, AMPLE)
    graph = store.graph()
    if difference := graph.diff(graph.of(GRAPH.added_nodes, GRAPH.added_edges)):
        found.append(f"the graph has changed: {difference}")
        store.apply(difference)
    rows = store.read(next(statement for language, statement in NEXT.items() if kind.startswith(language)))
    if rows != ({"place": "London"},):
        found.append(f"the next statement read {rows}")
    return found


def allow(store: Store, seconds: float) -> None:
    """Set a store's time limit for the statements to come."""
    runner = getattr(store, "_execute", None)
    for holder, name in ((store, "seconds"), (store, "_seconds"), (runner, "seconds")):
        if hasattr(holder, name):
            setattr(holder, name, seconds)


def open_to_attack(kind: str, **where: object) -> Store:
    """A store with the graph, and a short time limit."""
    if kind.endswith("embedded"):
        language = kind.split("_")[0]
        where = {"open": lambda: open_sandbox(language=language, seconds=SECONDS)}
    else:
        where = {**where, "seconds": SECONDS}
    store = open_store(kind, **where)
    store.apply(GRAPH)
    return store


@contextmanager
def servers(wanted: list[str]) -> Iterator[dict[str, dict[str, object]]]:
    """Where the wanted stores live; real servers on loopback are started for those that need one."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        where: dict[str, dict[str, object]] = {"sqlite": {"path": Path(folder) / "graph.db"}}
        if "cypher_server" in wanted:
            from support.bolt_server import BoltServer

            (Path(folder) / "bolt").mkdir()
            bolt = BoltServer(Path(folder) / "bolt")
            stack.callback(bolt.stop)
            where["cypher_server"] = {"uri": bolt.uri, "user": bolt.user, "password": bolt.password, "database": bolt.database("attacked")}
        if "sparql_server" in wanted:
            from support.oxigraph_server import OxigraphServer

            oxigraph = OxigraphServer(Path(folder) / "oxigraph")
            stack.callback(oxigraph.stop)
            where["sparql_server"] = {"query_url": oxigraph.query_url, "update_url": oxigraph.update_url}
        if "postgres" in wanted:
            where["postgres"] = {"path": Path(folder) / "postgres"}
        yield where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", nargs="*", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--all", action="store_true", help="print what every attack got")
    options = parser.parse_args()
    bad = 0
    with servers(options.stores) as where, host() as (places, connected):
        for kind in options.stores:
            store = open_to_attack(kind, **where.get(kind, {}))
            counts: Counter[str] = Counter()
            try:
                for attack in ATTACKS[kind]:
                    got = outcome(store, attack, places)
                    found = failings(store, kind, got, places, connected)
                    if float(got.split()[1]) > PATIENCE:
                        found.append("it was not stopped in time")
                    counts[attack.kind] += 1
                    bad += bool(found)
                    if found or options.all:
                        print(f"  {kind} | {attack.kind} | {attack.name}: {got[:160]} {'; '.join(found)}")
                    connected.clear()
            finally:
                store.close()
            print(f"{kind}: {sum(counts.values())} attacks: " + ", ".join(f"{name} {count}" for name, count in counts.items()), flush=True)
    print(
        f"{bad} attacks got what they should not" if bad else "every attack was refused or without effect, and the next statement was right"
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
