"""SPARQL, as the prompts describe it to a model; `kgot_lab.sandbox.sparql.rdf` says how a property graph is
RDF.

What a statement may say is checked by `kgot_lab.sandbox.sparql.statements`, inside the sandbox and before a
read goes to a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kgot_lab.sandbox.sparql.rdf import (
    META,
    NAMESPACE,
    TYPE,
    Literal,
    RdfTriple,
    Values,
    edge_iri,
    edge_triples,
    iri_of,
    node_triples,
)
from kgot_lab.sandbox.sparql.statements import FACT
from kgot_lab.stores.protocol import Dialect, Fact
from kgot_lab.stores.sparql.dialect import NO_EDGE, sparql_paths, sparql_words
from kgot_lab.stores.sparql.triples import spelled
from kgot_lab.types import Edge, Node


def _sentence(triples: Iterable[RdfTriple], subject: str) -> str:
    """What triples say of one subject, in one sentence."""
    said: dict[str, list[str]] = {}
    for _, predicate, object in triples:
        said.setdefault("a" if predicate == TYPE else spelled(predicate), []).append(spelled(object))
    return f"{subject} {' ; '.join(' '.join((predicate, ', '.join(objects))) for predicate, objects in said.items())} ."


def _add(facts: Sequence[Fact]) -> str:
    """The plain triples, and descriptions of those with properties; new values of a property take the place
    of the old ones.
    """
    merged: dict[tuple[str, str, str], Values] = {}
    for triple, properties in facts:
        ends = triple.subject, triple.relation, triple.object
        merged[ends] = {**merged.get(ends, {}), **properties}
    lines, renewed = [], []
    for ends, properties in merged.items():
        resource = edge_iri((*ends, ""))
        plain, *described = edge_triples(*ends, {"": properties})
        lines.append(_sentence([plain], spelled(plain[0])))
        if described:
            lines.append(_sentence(described, spelled(resource)))
            values = dict.fromkeys(
                predicate for _, predicate, object in described if isinstance(object, Literal)
            )
            renewed += [f"({spelled(resource)} {spelled(predicate)})" for predicate in values]
    forget = f"DELETE {{ ?fact ?name ?old }} WHERE {{ VALUES (?fact ?name) {{ {' '.join(renewed)} }} ?fact ?name ?old }} ;\n"
    return (forget if renewed else "") + "INSERT DATA {\n  " + "\n  ".join(lines) + "\n}"


_NAME = f"""REPLACE(REPLACE(REPLACE(LCASE(REPLACE(STR(?node), "^{NAMESPACE}", "")), "%2e", "."), "(_|-|%5f)+", " "), "^ | $", "")"""
_NAMED = f"?node a ?kind FILTER(?kind != rdf:Statement) BIND({_NAME} AS ?name) VALUES ?wanted {{ WANTED }} FILTER(CONTAINS(?name, ?wanted))"


def _about(names: Sequence[str], hops: int) -> str:
    """The facts near some names; each means the things called so, or else all whose name contains it, without
    case, _ and -.
    """
    wanted = " ".join(dict.fromkeys(spelled(Literal(folded)) for folded in map(_folded, names) if folded))
    found = _NAMED.replace("WANTED", wanted)
    near = (
        f"SELECT DISTINCT (?node AS ?n1) WHERE {{ {found}\n"
        f"  {{ SELECT ?wanted (MIN(STRLEN(?name)) AS ?shortest) WHERE {{ {found} }} GROUP BY ?wanted }}\n"
        "  FILTER(?name = ?wanted || ?shortest > STRLEN(?wanted)) }"
    )
    for number in range(2, max(1, int(hops)) + 1):
        # a third branch for no step at all, because a path (…)? takes seconds
        one, other = (f"?n{number - 1}", f"?n{number}")
        near = (
            f"SELECT DISTINCT {other} WHERE {{ {{ {near} }}\n"
            f"  {{ {one} ?p {other} FILTER(?p NOT IN ({NO_EDGE})) }} UNION {{ {other} ?p {one} FILTER(?p NOT IN ({NO_EDGE})) }} "
            f"UNION {{ {one} a ?kind BIND({one} AS {other}) }} FILTER(isIRI({other})) }}"
        )
    last = f"?n{max(1, int(hops))}"
    return (
        f"SELECT {' '.join(f'?{name}' for name in FACT)} WHERE {{\n{{ {near} }}\n"
        f"{{ {last} ?relation ?to }} UNION {{ ?from ?relation {last} }}\n"
        f"BIND(COALESCE(?from, {last}) AS ?subject) BIND(COALESCE(?to, {last}) AS ?object)\n"
        f"FILTER(isIRI(?object) && ?relation NOT IN ({NO_EDGE}))\n"
        "OPTIONAL { ?fact rdf:subject ?subject ; rdf:predicate ?relation ; rdf:object ?object .\n"
        f'  OPTIONAL {{ ?fact ?property ?value FILTER(isLiteral(?value) && !STRSTARTS(STR(?property), "{META}")) }} }}\n}}'
    )


def _folded(name: str) -> str:
    """A name as `_NAME` makes it."""
    local = iri_of(name).removeprefix(NAMESPACE).lower().replace("%2e", ".")
    return re.sub("(_|-|%5f)+", " ", local).strip()


def _node(node: Node) -> str:
    triples = node_triples(node.id, node.labels, node.properties)
    return _sentence((triple for triple in triples if not triple[1].startswith(META)), spelled(triples[0][0]))


def _edge(edge: Edge) -> str:
    plain, *described = edge_triples(edge.source, edge.type, edge.target, {"": edge.properties})
    about = (
        _sentence(
            (triple for triple in described if triple[1] != TYPE and not triple[1].startswith(META)), "[]"
        )
        if described
        else ""
    )
    return f"{_sentence([plain], spelled(plain[0]))} {about}".strip()


SPARQL = Dialect(
    name="SPARQL",
    how_to_write=(
        "One INSERT DATA { ... } for each fact. Everything but a value is a colon and its name, with _ for spaces and %XX for other signs: "
        ":Marie_Curie, :O%27Hara, :won. a gives a label.\n"
        "Values: 'text', numbers, true, false. Values of a fact go into its description: [] rdf:subject, rdf:predicate, rdf:object.\n"
        "To change: DELETE { ... } INSERT { ... } WHERE { ... }. The prefixes :, rdf:, rdfs: and xsd: are declared; no GRAPH, no SERVICE."
    ),
    how_to_read=(
        "Begin with SELECT and use the names of the graph, each with its colon, spelled as there; ?x stands for what is asked. "
        "No sentences. It must not change the graph. The prefixes :, rdf:, rdfs: and xsd: are declared; no GRAPH, no SERVICE."
    ),
    write_example=(
        "INSERT DATA { :Marie_Curie a :Person . :Nobel_Prize_in_Physics a :Prize . :Marie_Curie :won :Nobel_Prize_in_Physics . "
        "[] rdf:subject :Marie_Curie ; rdf:predicate :won ; rdf:object :Nobel_Prize_in_Physics ; :year 1903 }"
    ),
    read_example="SELECT ?relation ?x WHERE { :Marie_Curie ?relation ?x }",
    add=_add,
    about=_about,
    paths=sparql_paths,
    node=_node,
    edge=_edge,
    own_words=sparql_words,
)
