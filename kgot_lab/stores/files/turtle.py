"""Graphs in Turtle files: any file can be read, and what was written is read back without loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_regular, utf8_text, write_whole
from kgot_lab.sandbox.sparql.rdf import PREFIXES
from kgot_lab.stores.sparql.triples import graph_of, oxigraph, triple_of, triples_of

_MOST_SAID = 500  # characters of what a parser says, which may be most of the file


def read_turtle(path: Path | str) -> PropertyGraph:
    """The graph in a Turtle file; raises BadInput, naming file and line, or NotInstalled."""
    path, ox = Path(path), oxigraph()
    try:
        data = read_regular(path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read as Turtle: {error}") from None
    text = utf8_text(data, path)
    try:
        quads = ox.parse(input=text, format=ox.RdfFormat.TURTLE, base_iri=f"file:///{quote(path.name)}")
        return graph_of([triple_of(quad) for quad in quads])
    except SyntaxError as error:
        place = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise BadInput(f"{place}: not Turtle: {str(error.msg)[:_MOST_SAID]}") from None
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read as Turtle: {str(error)[:_MOST_SAID]}") from None
    except BadInput as error:
        raise BadInput(f"{path}: {str(error)[:_MOST_SAID]}") from None


def write_turtle(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as Turtle, properties in the order of their names; raises BadInput for what RDF cannot
    hold, or NotInstalled.
    """
    ox = oxigraph()
    nodes = [replace(each, properties=dict(sorted(each.properties.items()))) for each in graph.nodes]
    edges = [replace(each, properties=dict(sorted(each.properties.items()))) for each in graph.edges]
    node = ox.NamedNode
    triples = (
        ox.Triple(
            node(s), node(p), node(o) if isinstance(o, str) else ox.Literal(o.text, datatype=node(o.datatype))
        )
        for s, p, o in triples_of(nodes, edges)
    )
    write_whole(path, ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES), "the graph")
