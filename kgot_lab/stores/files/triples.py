"""Graphs in RDF: Turtle, N-Triples, N-Quads, TriG, RDF/XML and JSON-LD."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from kgot_lab.errors import BadInput
from kgot_lab.sandbox.sparql.rdf import NAMESPACE, RDFS_LABEL, RdfTriple
from kgot_lab.stores.files.elements import Elements, RawEdge
from kgot_lab.stores.sparql.triples import convert_triple, graph_from_triples, import_oxigraph

if TYPE_CHECKING:
    import pyoxigraph

_MAX_MESSAGE_LENGTH = 500  # characters of a parser's message, which may quote most of the file


def read_rdf(data: str | bytes, path: Path, *formats: str) -> Elements:
    """Read the elements of a graph in RDF, in the first of some formats of pyoxigraph in which it can be read.

    Raises BadInput, with the line, if it is in none, and NotInstalled if pyoxigraph is missing.
    """
    ox, errors = import_oxigraph(), list[str]()
    for name in formats:
        try:
            quads = list(
                ox.parse(
                    input=data, format=getattr(ox.RdfFormat, name), base_iri=f"file:///{quote(path.name)}"
                )
            )
            return _elements(quads)
        except SyntaxError as error:
            location = f"{path}, line {error.lineno}" if error.lineno else str(path)
            errors.append(f"{location}: not RDF: {str(error.msg)[:_MAX_MESSAGE_LENGTH]}")
        except (ValueError, BadInput) as error:
            errors.append(f"{path}: cannot be read as RDF: {str(error)[:_MAX_MESSAGE_LENGTH]}")
    raise BadInput(errors[0])


def _elements(quads: list[pyoxigraph.Quad]) -> Elements:
    found = Elements("RDF", is_ours=True)
    graph = graph_from_triples(_in_one_language(quads))
    found.nodes = {node.id: (node.labels, dict(node.properties)) for node in graph.nodes}
    for edge in graph.edges:
        found.edges.append(RawEdge(edge.source, edge.target, edge.type, dict(edge.properties), edge.key))
    if named := len({str(quad.graph_name) for quad in quads if str(quad.graph_name) != "DEFAULT"}):
        found.left_out["name of a graph"] = named
    return found


def _in_one_language(quads: Iterable[pyoxigraph.Quad]) -> Iterable[RdfTriple]:
    """Yield triples in which of texts in several languages that of the reader has the name of the property.

    The others have it with their language, as in label@de.
    """
    languages: dict[tuple[object, str], list[str]] = {}
    for quad in quads:
        if language := getattr(quad.object, "language", None):
            languages.setdefault((quad.subject, quad.predicate.value), []).append(language)
    own = [os.environ.get(name, "")[:2].lower() for name in ("LC_ALL", "LANG")]
    for quad in quads:
        triple, language = convert_triple(quad), getattr(quad.object, "language", None)
        several = languages.get((quad.subject, quad.predicate.value), [])
        shown = (
            min(several, key=lambda each: ([*own, "en", each[:2]].index(each[:2]), each)) if several else None
        )
        if language in (None, shown):
            yield triple
        else:
            predicate = f"{NAMESPACE}label" if triple[1] == RDFS_LABEL else triple[1]
            yield triple[0], f"{predicate}@{language}", triple[2]
