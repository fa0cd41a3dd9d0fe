"""Cypher, as the prompts describe it, and the clauses that a statement written by a model may use.

The list of clauses is the first of two fences: the engine's or the driver's read mode is the second, and
neither alone suffices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgot_lab.sandbox.cypher.mapping import backticked, stored_edge, stored_node
from kgot_lab.stores.cypher.dialect import cypher_literal, cypher_paths, name
from kgot_lab.stores.cypher.statements import (
    cypher_words,
    refuse_unless_cypher_read,
    refuse_unless_cypher_write,
)
from kgot_lab.stores.protocol import Dialect, Fact
from kgot_lab.types import Edge, Json, Node


def _map(properties: Mapping[str, Json]) -> str:
    return "{" + ", ".join(f"{name(key)}: {cypher_literal(value)}" for key, value in properties.items()) + "}"


def _add(facts: Sequence[Fact]) -> str:
    """Nodes are found or made by id; an edge of that type between them is found or made, and its properties
    are added to.
    """
    ids = list(dict.fromkeys(id for triple, _ in facts for id in (triple.subject, triple.object)))
    variables = {id: f"n{number}" for number, id in enumerate(ids, start=1)}
    lines = [f"MERGE ({variable} {{id: {cypher_literal(id)}}})" for id, variable in variables.items()]
    for number, (triple, properties) in enumerate(facts, start=1):
        subject, object = variables[triple.subject], variables[triple.object]
        lines.append(f"MERGE ({subject})-[r{number}:{backticked(triple.relation)}]->({object})")
        lines += [f"SET r{number} += {_map(stored_edge('', properties))}"] if properties else []
    return "\n".join(lines)


def _about(names: Sequence[str], hops: int) -> str:
    """Names are compared without case; a name that no node has stands for all that contain it. One row per
    edge, nearest first.
    """
    wanted = cypher_literal([each.lower() for each in names])
    return (
        f"UNWIND {wanted} AS name\n"
        "MATCH (n) WHERE toLower(n.id) CONTAINS name\n"
        "WITH name, collect(n) AS found\n"
        "WITH found, [n IN found WHERE toLower(n.id) = name] AS same\n"
        "UNWIND CASE WHEN size(same) > 0 THEN same ELSE found END AS start\n"
        f"MATCH path = (start)-[*0..{max(1, hops) - 1}]-(near)\n"
        "WITH near, min(length(path)) AS far\n"
        "MATCH (near)-[r]-()\n"
        "WITH r, min(far) AS far ORDER BY far\n"
        "RETURN startNode(r).id AS subject, type(r) AS relation, endNode(r).id AS object, properties(r) AS properties"
    )


def _node(node: Node) -> str:
    labels = "".join(f":{name(label)}" for label in node.labels)
    return f"({labels}{' ' if labels else ''}{_map({**stored_node(node.id, (), node.properties), 'id': node.id})})"


def _edge(edge: Edge) -> str:
    properties = stored_edge(edge.key, edge.properties)
    source, target = cypher_literal(edge.source), cypher_literal(edge.target)
    return f"({source})-[:{name(edge.type)}{' ' + _map(properties) if properties else ''}]->({target})"


CYPHER = Dialect(
    name="Cypher",
    how_to_write=(
        "One statement for each fact: MERGE its two nodes by their id, which is the thing's name, then MERGE the relation between them.\n"
        "Every node has a label. SET r.property = value; values are text, numbers, true, false, lists of these. Quote text with '.\n"
        "To remove: MATCH, then DELETE r, DETACH DELETE n or REMOVE n.property. A name with spaces stands between backticks."
    ),
    how_to_read=(
        "Begin with MATCH, find nodes by their id, and RETURN what answers the question. No sentences. It must not change the graph.\n"
        "Use only ids, labels, relation types and properties that the graph has, spelled as there; a name with spaces stands between "
        "backticks. Quote text with '."
    ),
    # in single quotes, since a model puts statements into JSON, where it forgets to escape double ones
    write_example=(
        "MERGE (a:Person {id: 'Marie Curie'}) MERGE (b:Prize {id: 'Nobel Prize in Physics'}) MERGE (a)-[r:WON]->(b) SET r.year = 1903"
    ),
    read_example="MATCH (a {id: 'Marie Curie'})-[r]->(b) RETURN type(r) AS relation, b.id AS thing",
    add=_add,
    about=_about,
    paths=cypher_paths,
    node=_node,
    edge=_edge,
    own_words=cypher_words,
)

__all__ = ["CYPHER", "cypher_literal", "name", "refuse_unless_cypher_read", "refuse_unless_cypher_write"]
