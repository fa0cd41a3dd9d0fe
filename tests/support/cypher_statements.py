"""Statements in Cypher that tests share: of every kind that models write, and such as would show or change
what others have.
"""

STATEMENTS = """
CREATE (:Person {id: "Ada", born: 1815})
CREATE (:Person {name: "Bob"})-[:KNOWS {since: 2.0}]->({name: "Bob"})
CREATE (:Person {id: "Ada"})
CREATE ()-[:R]->(), (:Place {title: "Rome"}), ({label: "x", name: "  "})
UNWIND range(1, 4) AS number CREATE (:Number {id: number})
MERGE (a:Person {id: "Ada"}) MERGE (b:Person {id: "Charles"}) MERGE (a)-[r:KNOWS]->(b) SET r.since = 1833
MERGE (a:Person {id: "Ada"}) MERGE (b:Person {id: "Charles"}) MERGE (a)-[:KNOWS]->(b)
MATCH (a {id: "Ada"}), (b {id: "Charles"}) CREATE (a)-[:KNOWS]->(b), (a)-[:KNOWS {n: 1}]->(b), (b)-[:IS]->(b)
MATCH (a {id: "Ada"}), (b {id: "Charles"}) CREATE (a)-[:MET]->(b) CREATE (b)-[:MET]->(a)
MATCH (a {id: "Ada"})-[r:KNOWS {n: 1}]->() SET r = {m: 2}
MATCH (a {id: "Ada"})-[r:KNOWS {m: 2}]->(b) DELETE r CREATE (a)-[:KNOWS {m: 3}]->(b)
MATCH (a {id: "Ada"}) SET a.age = 36, a:Countess:Author
MATCH (a {id: "Ada"}) SET a += {age: 36.0, tags: ["x", "y"], none: null}
MATCH (a {id: "Ada"}) SET a.age = 36.0
MATCH (a {id: "Ada"}) REMOVE a.tags, a:Author
MATCH (a {id: "Ada"}) SET a = {name: "Ada Lovelace", born: date("1815-12-10")}
MATCH (a {id: "Ada"}) CREATE (x:New {id: "x", k: 1}) SET x.k = null, a.k = 5
MATCH (a {id: "Ada"}) CREATE (z:Copy) SET z = properties(a), z.id = "z"
MATCH (a {id: "Ada"}) CREATE (z:Copy) SET z = properties(a)
MATCH (a {id: "Ada"})-[r]->(b) REMOVE a.id
MATCH (a {id: "Ada"}) SET a.id = 7
MATCH (a {id: "7"}) SET a.id = "Charles"
MATCH (a:Countess) SET a.id = "Ada"
MATCH (a {id: "Ada"}) DETACH DELETE a CREATE (:Person {id: "Ada", again: true})
MATCH (a {id: "Ada"}) FOREACH (n IN [1, 2] | CREATE (a)-[:COUNTED {n: n}]->(:Number {id: "new" + n}))
MATCH (a {id: "Ada"}) WITH a LIMIT 1 MERGE (a)-[:SAW]->(c:City {name: "Turin"}) ON CREATE SET c.seen = 1 ON MATCH SET c.seen = 2
MATCH (a {id: "Ada"}) WITH a LIMIT 1 MERGE (a)-[:SAW]->(c:City {name: "Turin"}) ON CREATE SET c.seen = 1 ON MATCH SET c.seen = 2
MATCH (n {id: "nobody"}) SET n.x = 1
MATCH (c:City)<-[r]-() DELETE r, c
MATCH (n:Number) DETACH DELETE n
MATCH ()-[r]->() DELETE r
MATCH (n) DETACH DELETE n
""".strip().splitlines()

HOSTILE = """
MATCH (n) RETURN n.id AS id ORDER BY id
MATCH (n) RETURN count(n) AS n
MATCH ()-[r]->() RETURN type(r) AS type, count(*) AS n ORDER BY type
MATCH ()-[r:knows]->() RETURN r
MATCH p = ({id: 'Ada'})-[*1..4]-(x) RETURN [n IN nodes(p) | n.id] AS ids ORDER BY size(ids)
MATCH p = shortestPath((a {id: 'Ada'})-[*..5]-(b {id: 'Paris'})) RETURN p
MATCH (n) WHERE (n)-->() RETURN n.id AS id ORDER BY id
MATCH (n) RETURN n.id AS id, [(n)--(m) | m.id] AS near ORDER BY id
RETURN EXISTS { (n {id: 'Nobody'}) } AS e, COUNT { (n) } AS c, COUNT { MATCH (a)-->(b) } AS d
RETURN size([(a)-->(b) | a]) AS n
CALL { MATCH (n) RETURN n } RETURN n.id AS id ORDER BY id
MATCH (n) CALL { WITH n MATCH (n)--(m) RETURN count(m) AS c } RETURN n.id AS id, c ORDER BY id
MATCH (n) RETURN n.id AS id UNION MATCH (m:Person) RETURN m.id AS id
UNWIND ['Ada', 'Nobody'] AS id MATCH (n {id: id}) RETURN n
MATCH (n) WHERE elementId(n) <> '' RETURN count(n) AS n
MERGE (n:Person) SET n.hacked = true
MERGE ()-[r:knows]->() SET r.hacked = true
MERGE (a {id: 'Nobody'}) SET a.hacked = true
MATCH (n) SET n.hacked = true
MATCH (n) SET n = {id: n.id, hacked: true}
MATCH (n) SET n += {hacked: true} REMOVE n.text
MATCH (a), (b) WHERE a.id < b.id MERGE (a)-[:LESS]->(b)
MATCH (n) WITH collect(n) AS all FOREACH (x IN all | CREATE (x)-[:GOT]->(:Mark))
OPTIONAL MATCH (x:None) CREATE (x)-[:Q]->(:New {id: 'new'})
MATCH ()-[r]->() DELETE r
MATCH (n:Person) DETACH DELETE n
MATCH (n) DETACH DELETE n
""".strip().splitlines()
