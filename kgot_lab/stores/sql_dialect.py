"""SQL, as the prompts describe it, and the statements that are written by rule; `kgot_lab.stores.sql` says
which tables there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from kgot_lab.sandbox.python.helpers import FACT_WORTH, MENTIONS_NAME, PATH_COLUMNS, PATH_ORDER, SAYS_SENTENCE
from kgot_lab.stores.protocol import Dialect, Fact
from kgot_lab.stores.sql import edge_row, node_row
from kgot_lab.stores.statements import path_query
from kgot_lab.types import Edge

LONGEST_PART = 60  # characters of a name that other names may contain
_QUOTED = ", ".join(f'"{column}"' for column in PATH_COLUMNS)  # since end is a word of the language


def sql_literal(text: str) -> str:
    """A text as SQL spells it."""
    return "'" + text.replace("'", "''") + "'"


def sql_dialect(name: str, *, collation: str = "BINARY") -> Dialect:
    """SQL as a prompt describes it, for an engine whose statements are these and that calls the comparison of
    texts by bytes so.
    """
    return Dialect(
        name=name,
        how_to_write=(
            "Write one SQL statement: INSERT, UPDATE or DELETE on nodes(id, labels, properties), edges(source, type, target, key,"
            " properties) or facts(subject, relation, object, key, properties).\n"
            "A row inserted into facts adds an edge and the nodes it lacks. A node's id is its name. labels is a JSON list of texts,"
            " properties a JSON object.\n"
            "Deleting a node deletes its edges. Texts stand between single quotes, and a quote within one is doubled."
        ),
        how_to_read=(
            "Write one SQL SELECT over nodes(id, labels, properties), edges(source, type, target, key, properties) or"
            " facts(subject, relation, object, key, properties). It must not change the graph.\n"
            "properties->>'name' is one property. Give every column a name of its own with AS."
        ),
        write_example=(
            "INSERT INTO facts (subject, relation, object, properties)"
            " VALUES ('Marie Curie', 'won', 'Nobel Prize in Physics', '{\"year\": 1903}')"
        ),
        read_example=(
            "SELECT object FROM facts WHERE subject = 'Marie Curie' AND relation = 'won' AND CAST(properties->>'year' AS integer) < 1910"
        ),
        add=_add,
        about=_about,
        paths=partial(sql_paths, collation=collation),
        node=lambda node: _tuple(node_row(node)),
        edge=lambda edge: _tuple(edge_row(edge)),
    )


def _tuple(texts: Iterable[str]) -> str:
    return f"({', '.join(map(sql_literal, texts))})"


def _add(facts: Sequence[Fact]) -> str:
    rows = (
        edge_row(Edge(triple.subject, triple.relation, triple.object, properties))
        for triple, properties in facts
    )
    values = ",\n".join(
        _tuple((source, type, target, properties)) for source, type, target, _, properties in rows
    )
    return f"INSERT INTO facts (subject, relation, object, properties) VALUES\n{values}"


def _about(names: Sequence[str], hops: int) -> str:
    """Names are compared without case; a name that no node has stands for all that contain it. One row per
    edge, nearest first.
    """
    wanted = (
        ", ".join(f"({sql_literal(name)}, {sql_literal(_pattern(name))})" for name in names) or "(NULL, NULL)"
    )
    return (
        f"WITH RECURSIVE wanted(name, pattern) AS (VALUES {wanted}),\n"
        "same(name, id) AS (SELECT wanted.name, nodes.id FROM wanted JOIN nodes ON lower(nodes.id) = lower(wanted.name)),\n"
        "found(id) AS (SELECT id FROM same UNION SELECT nodes.id FROM wanted JOIN nodes\n"
        "  ON lower(nodes.id) LIKE lower(wanted.pattern) ESCAPE '!' WHERE wanted.name NOT IN (SELECT name FROM same)),\n"
        "near(id, hop) AS (SELECT id, 0 FROM found UNION\n"
        "  SELECT CASE WHEN edges.source = near.id THEN edges.target ELSE edges.source END, near.hop + 1\n"
        f"  FROM near JOIN edges ON edges.source = near.id OR edges.target = near.id WHERE near.hop < {max(1, hops) - 1})\n"
        "SELECT edges.source AS subject, edges.type AS relation, edges.target AS object, edges.properties\n"
        "FROM near JOIN edges ON edges.source = near.id OR edges.target = near.id\n"
        "GROUP BY edges.source, edges.type, edges.target, edges.key ORDER BY min(near.hop)"
    )


def _pattern(name: str) -> str:
    """What contains a name; nothing does when it is long, for engines bound their patterns."""
    return "%" + re.sub(r"([!%_])", r"!\1", name) + "%" if len(name) <= LONGEST_PART else ""


def sql_paths(names: Sequence[str], worth: Mapping[str, float], most: int, *, collation: str) -> str:
    """From the sentences that are worth something: `touch` holds what each mentions, and the name that says
    it.
    """
    asked = path_query(names, worth, most)
    starts = ", ".join(f"({sql_literal(name)})" for name in asked.names if "\0" not in name) or "(NULL)"
    places = (
        ", ".join(
            f"({sql_literal(place)}, {worth!r})" for place, worth in asked.worth.items() if "\0" not in place
        )
        or "(NULL, NULL)"
    )
    order = ", ".join(f'"{column}" COLLATE "{collation}"' for column in PATH_ORDER)
    return f"""WITH starts(id) AS (VALUES {starts}),
given(place, worth) AS (VALUES {places}),
told(title, place, sentence, origin, worth) AS MATERIALIZED (
  SELECT edges.source, given.place, {_texts("edges")}, CAST(given.worth AS double precision)
  FROM given JOIN edges ON edges.target = given.place AND edges.type = '{SAYS_SENTENCE}'),
mention(place, name) AS MATERIALIZED (
  SELECT edges.source, edges.target FROM given JOIN edges ON edges.source = given.place AND edges.type = '{MENTIONS_NAME}'),
touch(place, title, name) AS MATERIALIZED (
  SELECT told.place, told.title, mention.name FROM told JOIN mention ON mention.place = told.place
  UNION SELECT place, title, title FROM told),
paths({_QUOTED}) AS (
  SELECT a.title, a.place, a.sentence, a.origin, '', '', '', '', '', '', '', '', a.worth
  FROM starts JOIN told a ON a.title = starts.id
  UNION SELECT a.title, a.place, a.sentence, a.origin, '', '', '', touch.name, b.title, b.place, b.sentence, b.origin, a.worth + b.worth
  FROM starts JOIN told a ON a.title = starts.id JOIN mention ON mention.place = a.place AND mention.name <> a.title
  JOIN touch ON touch.name = mention.name JOIN told b ON b.place = touch.place AND b.title = touch.title
  WHERE b.title <> a.title AND b.place <> a.place
  UNION {_fact_paths("source", "target")}
  UNION {_fact_paths("target", "source")})
SELECT {_QUOTED} FROM paths ORDER BY worth DESC, {order} LIMIT {most}"""


def _fact_paths(near: str, far: str) -> str:
    """The paths that go by a fact from the one of its ends to the other."""
    return f"""SELECT starts.id, '', {_texts("fact")}, fact.type, fact.source, fact.target, '',
  b.title, b.place, b.sentence, b.origin, {FACT_WORTH} + b.worth
  FROM starts JOIN edges fact ON fact.{near} = starts.id JOIN told b ON b.title = fact.{far}
  WHERE fact.type NOT IN ('{SAYS_SENTENCE}', '{MENTIONS_NAME}') AND b.title <> starts.id"""


def _texts(edge: str) -> str:
    return ", ".join(
        f"coalesce(CAST({edge}.properties->>'{name}' AS text), '')" for name in ("sentence", "source")
    )
