"""The statement in SPARQL that reads paths of sentences.

A path is sought by names and worth alone; what its sentences say is looked up for those that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgot_lab.sandbox.python.helpers import FACT_WORTH, MENTIONS_NAME, PATH_COLUMNS, SAYS_SENTENCE
from kgot_lab.sandbox.sparql.rdf import DOUBLE, NAMESPACE, Literal, iri_of
from kgot_lab.stores.sparql.triples import spelled
from kgot_lab.stores.statements import path_query

NO_EDGE = "rdf:type, rdf:subject, rdf:predicate, rdf:object"
_SAYS, _MENTIONS = spelled(iri_of(SAYS_SENTENCE)), spelled(iri_of(MENTIONS_NAME))
_COLUMNS = {
    **{
        column: f'COALESCE(?{variable}, "")'
        for column, variable in (("start", "from"), ("place_1", "one"), ("name", "joint"))
    },
    **{column: f'COALESCE(?{variable}, "")' for column, variable in (("end", "to"), ("place_2", "two"))},
    **{
        column: f'IF(?p = {_SAYS}, "", ?{variable})'
        for column, variable in (("relation", "p"), ("subject", "s"), ("object", "o"))
    },
    **{
        f"{text}_{step}": f'COALESCE(?{text}{step}, "")' for text in ("sentence", "source") for step in (1, 2)
    },
    "worth": "?sum",
}
# Flat and with bound ends, since Oxigraph looks at all edges there are for an OPTIONAL within another one.
_TEXTS = (
    "OPTIONAL { ?a rdf:object ?o ; rdf:predicate ?p ; rdf:subject ?s } "
    f"OPTIONAL {{ ?b rdf:object ?told ; rdf:predicate {_SAYS} ; rdf:subject ?to }}\n"
    "BIND(COALESCE(?a, rdf:nil) AS ?first) BIND(COALESCE(?b, rdf:nil) AS ?last)\n"
    "OPTIONAL { ?first :sentence ?sentence1 } OPTIONAL { ?first :source ?source1 }\n"
    "OPTIONAL { ?last :sentence ?sentence2 } OPTIONAL { ?last :source ?source2 }"
)


def _in_order(variable: str) -> str:
    """What sorts as the name behind an IRI does: signs other than letters and digits as their codes, each
    after a sign of its rank.
    """
    coded = (
        f'IF(STRSTARTS(STR({variable}), "{NAMESPACE}"), REPLACE(REPLACE(ENCODE_FOR_URI(STRAFTER(STR({variable}), "{NAMESPACE}")), '
        f'"%25", "%"), "_", "%20"), REPLACE(ENCODE_FOR_URI(STR({variable})), "_", "%5F"))'
    )
    for sign, code in (("-", "%2D"), ("[.]", "%2E"), ("~", "%7E")):
        coded = f'REPLACE({coded}, "{sign}", "{code}")'
    for codes, rank in (
        ("[012].", "!"),
        ("(?:3[A-F]|40)", ":"),
        ("(?:5[B-F]|60)", "["),
        ("7[B-F]", "{"),
        ("[89A-F].", "~"),
    ):
        coded = f'REPLACE({coded}, "%({codes})", "{rank}$1")'
    return coded


_KEYS = {
    variable: f"BIND({_in_order(f'?{variable}')} AS ?{variable}Key)"
    for variable in ("to", "joint", "p", "s", "o")
}
_ORDER = f"DESC(?sum) ?rank ?rank1 ?rank2 {' '.join(f'?{variable}Key' for variable in _KEYS)}"  # what the statement says itself has a rank


def sparql_paths(names: Sequence[str], worth: Mapping[str, float], most: int) -> str:
    """The names and sentences that are asked for are said wherever a part begins, so that no engine begins
    with all there are.
    """
    asked = path_query(names, worth, most)
    start = _values("from rank", [[spelled(iri_of(name))] for name in asked.names])
    places = [
        [spelled(iri_of(place)), spelled(Literal(repr(value), DOUBLE))]
        for place, value in asked.worth.items()
    ]
    said = f"{start} ?from {_SAYS} ?one {_values('one worth1 rank1', places)}"
    last = f"{_values('two worth2 rank2', places)} ?to {_SAYS} ?two"
    by_says = f"BIND(?from AS ?s) BIND({_SAYS} AS ?p) BIND(?one AS ?o)"
    by_fact = f"FILTER(?from != ?to && ?p NOT IN ({_SAYS}, {_MENTIONS}, {NO_EDGE})) BIND({FACT_WORTH}e0 + ?worth2 AS ?sum)"
    keys = " ".join(_KEYS[variable] for variable in ("to", "p", "s", "o"))
    return (
        f"SELECT DISTINCT {' '.join(f'({_COLUMNS[column]} AS ?{column})' for column in PATH_COLUMNS)} WHERE {{\n"
        "{ SELECT DISTINCT ?from ?one ?two ?to ?joint ?s ?p ?o ?sum ?rank ?rank1 ?rank2 ?told ?toKey ?jointKey ?pKey ?sKey ?oKey WHERE {\n"
        f"{{ {said} {by_says} BIND(?worth1 AS ?sum) }} UNION\n"
        f"{{ {{ SELECT * WHERE {{ {said} . ?one {_MENTIONS} ?joint }} }} {{ SELECT * WHERE {{ {last} .\n"
        f"  {{ ?two {_MENTIONS} ?joint BIND(true AS ?met) }} UNION {{ ?joint {_SAYS} ?two }} }} }}\n"
        f"  FILTER(?joint != ?from && ?to != ?from && ?two != ?one && (BOUND(?met) || ?joint = ?to))\n"
        f"  {by_says} BIND(?worth1 + ?worth2 AS ?sum) {_KEYS['to']} {_KEYS['joint']} }} UNION\n"
        f"{{ {start} ?from ?p ?to {{ SELECT * WHERE {{ {last} }} }} {by_fact} BIND(?from AS ?s) BIND(?to AS ?o) {keys} }} UNION\n"
        f"{{ {start} ?to ?p ?from {{ SELECT * WHERE {{ {last} }} }} {by_fact} BIND(?to AS ?s) BIND(?from AS ?o) {keys} }}\n"
        f"BIND(COALESCE(?two, rdf:nil) AS ?told) }} ORDER BY {_ORDER} LIMIT {most} }}\n"
        f"{_TEXTS}\n"
        f"}} ORDER BY {_ORDER} ?sentence1 ?source1 ?sentence2 ?source2 LIMIT {most}"
    )


def _values(variables: str, rows: Sequence[Sequence[str]]) -> str:
    """Some rows, each with its place among them."""
    told = " ".join(f"({' '.join(row)} {rank})" for rank, row in enumerate(rows))
    return f"VALUES ({' '.join(f'?{variable}' for variable in variables.split())}) {{ {told} }}"
