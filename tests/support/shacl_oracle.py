"""The rules of a graph written as SHACL shapes, and what pyshacl says breaks them: an oracle that shares no
code with the rules.

Edges are things of their own here, since RDF keeps no two equal triples, and besides triples from node to
node, which paths follow. Rule 8 has no shape: RDF has no malformed JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from pyshacl import validate
from rdflib import RDF, XSD, Graph, Literal, Namespace, URIRef

from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.validation import Vocabulary

KG, NODES, EDGES, SH = map(Namespace, ("urn:kg:", "urn:node:", "urn:edge:", "http://www.w3.org/ns/shacl#"))
HEAD = """
@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . @prefix kg: <urn:kg:> .
kg:prefixes sh:declare [ sh:prefix "kg" ; sh:namespace "urn:kg:"^^xsd:anyURI ] .
"""
SHAPES = {  # the class that a rule is about, its severity, and what it asks
    1: (
        "Node",
        "Violation",
        'sh:property [ sh:path kg:name ; sh:minCount 1 ; sh:datatype xsd:string ; sh:pattern "\\\\S" %s ]',
    ),
    2: (
        "Node",
        "Violation",
        "sh:property [ sh:path kg:type ; sh:minCount 1 ; sh:maxCount 1 ; sh:in (NODE_TYPES) %s ]",
    ),
    3: (
        "Edge",
        "Violation",
        "sh:property [ sh:path kg:source ; sh:class kg:Node %s ] ; sh:property [ sh:path kg:target ; sh:class kg:Node %s ]",
    ),
    4: ("Edge", "Warning", "sh:property [ sh:path kg:source ; sh:disjoint kg:target %s ]"),
    5: (
        "Edge",
        "Warning",
        """sh:sparql [ sh:prefixes kg:prefixes %s ; sh:select '''SELECT $this WHERE {
            $this kg:source ?s ; kg:target ?t ; kg:type ?y ; kg:order ?n . ?other kg:source ?s ; kg:target ?t ; kg:type ?y ; kg:order ?m .
            FILTER (?m < ?n) }''' ]""",
    ),
    6: (
        "Node",
        "Warning",
        "sh:or ( [ sh:path [ sh:inversePath kg:source ] ; sh:minCount 1 ] [ sh:path [ sh:inversePath kg:target ] ; sh:minCount 1 ] ) %s",
    ),
    7: ("Edge", "Warning", "sh:property [ sh:path kg:type ; sh:in (EDGE_TYPES) %s ]"),
    9: (
        "Node",
        "Violation",
        "sh:sparql [ sh:prefixes kg:prefixes %s ; sh:select 'SELECT $this WHERE { $this kg:requires+ $this }' ]",
    ),
    10: (
        "Edge",
        "Warning",
        """sh:sparql [ sh:prefixes kg:prefixes %s ; sh:select '''SELECT $this WHERE { $this kg:type "has_workaround" ; kg:source ?s .
            FILTER NOT EXISTS { ?s kg:has_limitation ?l } FILTER NOT EXISTS { ?n kg:has_limitation ?s } }''' ]""",
    ),
    11: (
        "Node",
        "Violation",
        "sh:sparql [ sh:prefixes kg:prefixes %s ; sh:select 'SELECT $this WHERE { $this kg:feeds_into+ $this }' ]",
    ),
    12: (
        "Node",
        "Info",
        """sh:sparql [ sh:prefixes kg:prefixes %s ; sh:select '''SELECT DISTINCT $this WHERE { $this kg:has_limitation ?l .
            FILTER NOT EXISTS { $this kg:has_limitation?/kg:has_workaround ?w } FILTER NOT EXISTS { $this kg:no_workaround true } }''' ]""",
    ),
}


@dataclass
class Verdict:
    """The nodes and edges, by row or id, that break each rule, and the severity that each rule was found
    with.
    """

    broken: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    severity: dict[int, str] = field(default_factory=dict)


@cache
def shapes_of(vocabulary: Vocabulary) -> Graph:
    """A node shape for each rule, whose message is the rule's number."""
    nodes, edges = (
        " ".join(f'"{kind.name}"' for kind in kinds)
        for kinds in (vocabulary.node_types, vocabulary.edge_types)
    )
    text = HEAD
    for number, (of, severity, asked) in SHAPES.items():
        said = f'; sh:message "{number}" ; sh:severity sh:{severity}'
        direct = said.replace(";", "", 1) if number == 6 else said
        asked = asked.replace(
            "sh:prefixes kg:prefixes %s", f'sh:prefixes kg:prefixes ; sh:message "{number}"'
        )
        tail = f" ; sh:severity sh:{severity}" if "sh:sparql" in asked else ""
        asked = asked.replace(" %s", f" ; {direct}" if number == 6 else f" {said}")
        text += f"kg:rule{number} a sh:NodeShape ; sh:targetClass kg:{of} ; {asked}{tail} .\n"
    return Graph().parse(data=text.replace("NODE_TYPES", nodes).replace("EDGE_TYPES", edges), format="turtle")


def as_rdf(
    nodes: Iterable[tuple[str, tuple[str, ...], Mapping[str, object]]], edges: Iterable[tuple[str, str, str]]
) -> Graph:
    """Nodes (id, types, properties) and edges (source, type, target), whose ends need not be there, as RDF."""
    rdf = Graph()
    for id, types, properties in nodes:
        node = NODES[id]
        rdf.add((node, RDF.type, KG.Node))
        for type in types:
            rdf.add((node, KG.type, Literal(type)))
        if properties.get("name") is not None:
            name = properties["name"]
            term = Literal(name, datatype=XSD.string) if isinstance(name, str) else Literal(name)
            rdf.add((node, KG.name, term))
        if properties.get("no_workaround"):
            rdf.add((node, KG.no_workaround, Literal(True)))
    for order, (source, type, target) in enumerate(edges):
        edge = EDGES[str(order)]
        for predicate, value in (
            (RDF.type, KG.Edge),
            (KG.source, NODES[source]),
            (KG.target, NODES[target]),
            (KG.type, Literal(type)),
        ):
            rdf.add((edge, predicate, value))
        rdf.add((edge, KG.order, Literal(order)))
        rdf.add((NODES[source], KG[type], NODES[target]))
    return rdf


def verdict(rdf: Graph, vocabulary: Vocabulary) -> Verdict:
    """What pyshacl says of some RDF."""
    _, results, _ = validate(rdf, shacl_graph=shapes_of(vocabulary), inference="none", advanced=True)
    found = Verdict()
    for result in results.subjects(RDF.type, SH.ValidationResult):
        number = int(results.value(result, SH.resultMessage))
        focus = results.value(result, SH.focusNode)
        assert isinstance(focus, URIRef)
        found.broken[number].add(str(focus).rpartition(":")[2])
        found.severity[number] = str(results.value(result, SH.resultSeverity)).rpartition("#")[2]
    return found


def verdict_on(graph: PropertyGraph, vocabulary: Vocabulary) -> Verdict:
    """What pyshacl says of a graph: ids of nodes, rows of edges."""
    nodes = ((node.id, node.labels, node.properties) for node in graph.nodes)
    return verdict(as_rdf(nodes, ((edge.source, edge.type, edge.target) for edge in graph.edges)), vocabulary)
