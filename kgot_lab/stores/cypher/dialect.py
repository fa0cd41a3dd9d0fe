"""Describe Cypher for the prompts, build statements by rule, and open the embedded store (ArcadeDB).

The list of clauses is the first of two barriers. The read mode of the engine or driver is the second, and
neither is sufficient alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from kgot_lab.sandbox.cypher.mapping import backticked, to_stored_edge, to_stored_node
from kgot_lab.sandbox.python.helpers import FACT_SCORE, MENTIONS_NAME, PATH_COLUMNS, PATH_ORDER, SAYS_SENTENCE
from kgot_lab.stores.cypher.statements import (
    cypher_constants,
    refuse_unless_cypher_read,
    refuse_unless_cypher_write,
)
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.protocol import DIALECT_TEXTS, Dialect, Fact
from kgot_lab.stores.statements import path_query
from kgot_lab.types import Edge, Json, Node

# Values and names in Cypher notation.

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
)
_MIN_INTEGER = -(2**63)


def cypher_literal(value: Json) -> str:
    """Format a value that a Cypher database can store as a Cypher literal."""
    if isinstance(value, str):
        return _text_literal(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(cypher_literal, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if value == _MIN_INTEGER and isinstance(value, int):
        return f"({_MIN_INTEGER + 1} - 1)"  # its digits alone exceed the largest integer
    if isinstance(value, float) and not math.isfinite(value):
        return f"({'-' if value < 0 else ''}{0 if math.isnan(value) else 1}.0 / 0.0)"
    return repr(value)


def _text_literal(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    # some servers resolve \uXXXX wherever they see it
    return '"' + escaped.replace("\\\\u", '\\\\" + "u') + '"'


def cypher_name(text: str) -> str:
    """Format a label, type or property name, in backticks if it needs them."""
    return text if _PLAIN.fullmatch(text) else backticked(text)


# The statement in Cypher that reads paths of sentences. It collects, in this order: each sentence that may be
# read with its title and the names in it; the facts that join a start name to its title; the sentences, with
# their scores, as `told`; and, for each two of them, the names that both mention, as `joints`.

_COLUMN_VALUES = (  # of the columns, in their order
    *(f"first.{name}" for name in "start place sentence source relation subject object".split()),
    *("joint", "last.start", "last.place", "last.sentence", "last.source", "first.worth + last.worth"),
)
_PATH_QUERY_BODY = (
    Template(Path(__file__).with_name("paths.cypher").read_text(encoding="utf-8"))
    .substitute(
        says=SAYS_SENTENCE,
        mentions=MENTIONS_NAME,
        fact_score=FACT_SCORE,
        columns=", ".join(
            f"{value} AS {backticked(column)}"
            for column, value in zip(PATH_COLUMNS, _COLUMN_VALUES, strict=True)
        ),
        order=", ".join(map(backticked, PATH_ORDER)),
    )
    .rstrip()
)


def cypher_path_query(names: Sequence[str], scores: Mapping[str, float], limit: int) -> str:
    """Build the Cypher query that reads paths.

    It scans all nodes once for the sentences, because nodes without labels have no index. The map `known`
    makes each test of membership constant-time.
    """
    query = path_query(names, scores, limit)
    # some servers resolve \\uXXXX in the names of a map
    escaped_ids = [sentence_id for sentence_id in query.scores if "\\" in sentence_id]
    known = ", ".join(f"{backticked(id)}: true" for id in query.scores if id not in escaped_ids)
    return (
        f"WITH {cypher_literal(query.names)} AS starts, {cypher_literal(list(query.scores.items()))} AS given, {{{known}}} AS known\n"
        f"MATCH (place) WHERE known[place.id] OR place.id IN {cypher_literal(escaped_ids)}\n{_PATH_QUERY_BODY} {limit}"
    )


def _map_literal(properties: Mapping[str, Json]) -> str:
    pairs = (f"{cypher_name(key)}: {cypher_literal(value)}" for key, value in properties.items())
    return "{" + ", ".join(pairs) + "}"


def _add_facts(facts: Sequence[Fact]) -> str:
    """Build the statement that merges nodes by id and the edges between them by type.

    The properties of an edge that exists are added to.
    """
    ids = list(dict.fromkeys(id for triple, _ in facts for id in (triple.subject, triple.object)))
    variables = {id: f"n{number}" for number, id in enumerate(ids, start=1)}
    lines = [f"MERGE ({variable} {{id: {cypher_literal(id)}}})" for id, variable in variables.items()]
    for number, (triple, properties) in enumerate(facts, start=1):
        subject, object = variables[triple.subject], variables[triple.object]
        lines.append(f"MERGE ({subject})-[r{number}:{backticked(triple.relation)}]->({object})")
        lines += [f"SET r{number} += {_map_literal(to_stored_edge('', properties))}"] if properties else []
    return "\n".join(lines)


def _label_nodes(nodes: Sequence[Node]) -> str:
    """Build the statement that merges nodes by id and adds their labels and properties."""
    lines = []
    for number, node in enumerate(nodes, start=1):
        lines.append(f"MERGE (n{number} {{id: {cypher_literal(node.id)}}})")
        labels = "".join(f":{cypher_name(label)}" for label in node.labels)
        lines += [f"SET n{number}{labels}"] if labels else []
        stored = to_stored_node(node.id, (), node.properties)
        lines += [f"SET n{number} += {_map_literal(stored)}"] if node.properties else []
    return "\n".join(lines)


def _neighbourhood_query(names: Sequence[str], hops: int) -> str:
    """Build the query for the edges around some names, one row per edge, nearest first.

    Names are compared without case. A name that no node has matches all nodes whose id contains it.
    """
    wanted = cypher_literal([name.lower() for name in names])
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


def _format_node(node: Node) -> str:
    labels = "".join(f":{cypher_name(label)}" for label in node.labels)
    return f"({labels}{' ' if labels else ''}{_map_literal({**to_stored_node(node.id, (), node.properties), 'id': node.id})})"


def _format_edge(edge: Edge) -> str:
    properties = to_stored_edge(edge.key, edge.properties)
    source, target = cypher_literal(edge.source), cypher_literal(edge.target)
    return f"({source})-[:{cypher_name(edge.type)}{' ' + _map_literal(properties) if properties else ''}]->({target})"


CYPHER = Dialect(
    **DIALECT_TEXTS["cypher"],
    add=_add_facts,
    about=_neighbourhood_query,
    paths=cypher_path_query,
    node=_format_node,
    edge=_format_edge,
    label=_label_nodes,
    constants=cypher_constants,
)

# The embedded Cypher store: ArcadeDB in the sandbox.


class CypherEmbedded(EmbeddedStore):
    """An embedded store for Cypher statements.

    `kgot_lab.sandbox.cypher.mapping` defines how ids and values are stored. A statement is checked against a
    list of allowed clauses and then by the engine, which has its own mode for reads.
    """

    dialect = CYPHER
    language = "cypher"

    def _check_statement(self, kind: str, statement: str) -> None:
        refuse = refuse_unless_cypher_write if kind == "write" else refuse_unless_cypher_read
        refuse(statement)


__all__ = ["CYPHER", "cypher_literal", "cypher_name"]
__all__ += ["refuse_unless_cypher_read", "refuse_unless_cypher_write"]
