"""The statement in Cypher that reads paths of sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgot_lab.sandbox.cypher.mapping import backticked
from kgot_lab.sandbox.python.helpers import FACT_WORTH, MENTIONS_NAME, PATH_COLUMNS, PATH_ORDER, SAYS_SENTENCE
from kgot_lab.stores.cypher.dialect import cypher_literal
from kgot_lab.stores.statements import path_query

_VALUES = (  # of the columns, in their order
    *(
        "first.start",
        "first.place",
        "first.sentence",
        "first.source",
        "first.relation",
        "first.subject",
        "first.object",
    ),
    *("joint", "last.start", "last.place", "last.sentence", "last.source", "first.worth + last.worth"),
)
_REST = f"""
MATCH (title)-[said:{SAYS_SENTENCE}]->(place)
OPTIONAL MATCH (place)-[:{MENTIONS_NAME}]->(thing)
WITH starts, given, title, place, said, collect(DISTINCT thing.id) AS names
OPTIONAL MATCH (title)-[fact]-(other)
  WHERE other.id IN starts AND other.id <> title.id AND NOT type(fact) IN ["{SAYS_SENTENCE}", "{MENTIONS_NAME}"]
WITH starts, given, title, place, said, names, collect(CASE WHEN fact IS NULL THEN null ELSE {{start: other.id, place: "",
  sentence: coalesce(fact.sentence, ""), source: coalesce(fact.source, ""), relation: type(fact),
  subject: startNode(fact).id, object: endNode(fact).id, worth: {FACT_WORTH}}} END) AS facts
WITH starts, collect({{start: title.id, place: place.id, sentence: coalesce(said.sentence, ""), source: coalesce(said.source, ""),
  relation: "", subject: "", object: "", names: names, facts: facts,
  worth: head([each IN given WHERE each[0] = place.id | each[1]])}}) AS told
UNWIND told + [{{start: "", place: "", sentence: "", source: "", worth: 0.0, facts: []}}] AS last
UNWIND [each IN told WHERE each.start IN starts] + last.facts AS first
WITH first, last, CASE WHEN last.start = "" OR first.relation <> "" THEN [""]
  WHEN last.start = first.start OR last.place = first.place THEN []
  ELSE [each IN first.names WHERE each <> first.start AND (each = last.start OR each IN last.names)] END AS joints
UNWIND joints AS joint
RETURN DISTINCT {", ".join(f"{value} AS {backticked(column)}" for column, value in zip(PATH_COLUMNS, _VALUES, strict=True))}
ORDER BY worth DESC, {", ".join(map(backticked, PATH_ORDER))} LIMIT """


def cypher_paths(names: Sequence[str], worth: Mapping[str, float], most: int) -> str:
    """One look at all nodes for the sentences, since nodes without labels have no index; `known` is a map,
    which is quicker than a list.
    """
    asked = path_query(names, worth, most)
    # some servers resolve \\uXXXX in the names of a map
    odd = [place for place in asked.worth if "\\" in place]
    known = ", ".join(f"{backticked(place)}: true" for place in asked.worth if place not in odd)
    return (
        f"WITH {cypher_literal(asked.names)} AS starts, {cypher_literal(list(asked.worth.items()))} AS given, {{{known}}} AS known\n"
        f"MATCH (place) WHERE known[place.id] OR place.id IN {cypher_literal(odd)}{_REST}{most}"
    )
