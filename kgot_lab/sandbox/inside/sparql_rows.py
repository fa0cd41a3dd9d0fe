"""What a SPARQL query found, as rows of JSON.

A solution is a dictionary: names of things by their ids, literals by their values; a variable without a value
is left out, and a solution without any is no row. ASK gives one row, true or false. A graph gives a row for
each triple: subject, relation, object. A query whose variables are those of FACT gives one row for each fact,
with the fact's properties in it by name. Runs inside the sandbox too: imports the standard library and its
sisters only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgot_lab.sandbox.sparql.rdf import RDF, RDFS, RdfTriple, Term, predicate_name, value_of
from kgot_lab.sandbox.worker.values import limited

FACT = ("subject", "relation", "object", "fact", "property", "value")


def value(term: Term) -> Any:
    """A term as a reader takes it."""
    if not isinstance(term, str):
        return value_of(term)
    name = predicate_name(term)
    for prefix, namespace in (("rdf:", RDF), ("rdfs:", RDFS)):
        name = name.replace(namespace, prefix, 1) if name.startswith(namespace) else name
    return name


def solution_rows(
    variables: Sequence[str], solutions: Iterable[Mapping[str, Term]], *, in_order: bool
) -> list[Any]:
    """Solutions as rows, in one order however the engine keeps its graph, unless the query gave them an order
    of its own.
    """
    found = ({name: value(term) for name, term in solution.items()} for solution in limited(solutions))
    rows = [row for row in found if row]
    facts = tuple(variables) == FACT
    if not in_order:
        rows.sort(key=(lambda row: [_text(row.get(name)) for name in FACT]) if facts else _text)
    return _facts(rows) if facts else rows


def rows_of_triples(triples: Iterable[RdfTriple]) -> list[Any]:
    """The triples of a graph as rows."""
    rows = ({"subject": value(s), "relation": value(p), "object": value(o)} for s, p, o in limited(triples))
    return sorted(rows, key=_text)


def _facts(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """One row for each fact, with its properties."""
    facts: dict[str, dict[str, Any]] = {}
    for row in rows:
        ends = {name: row.get(name, "") for name in FACT[:3]}
        fact = facts.setdefault(_text([ends, row.get("fact")]), ends)
        if "property" not in row or row["property"] in FACT[:3]:
            continue
        name, new = row["property"], row.get("value")
        old = fact.get(name, new)
        several = old if isinstance(old, list) else [old]
        fact[name] = old if new == old or new in several else [*several, new]
    return list(facts.values())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
