"""Read and write graph files, in the format that the file's suffix names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from kgot_lab.errors import BadInput, UnknownName, require_known
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import NamedGraph, read_snapshot, use_names_as_ids, write_snapshot
from kgot_lab.io.files import read_file_as, read_regular_file, utf8_text, write_atomically
from kgot_lab.sandbox.sparql.rdf import PREFIXES
from kgot_lab.stores.files.graphml import read_graphml, read_graphml_with_notes, write_graphml
from kgot_lab.stores.files.node_links import read_edge_list, read_json_graph
from kgot_lab.stores.sparql.triples import convert_triple, graph_from_triples, import_oxigraph, to_triples

# Turtle files: any file can be read, and what was written is read back without loss.

_MAX_MESSAGE_LENGTH = 500  # characters of a parser's message, which may quote most of the file


def read_turtle(path: Path | str) -> PropertyGraph:
    """Read a graph from a Turtle file.

    Raises BadInput, naming file and line, if the file cannot be read, and NotInstalled if pyoxigraph is
    missing.
    """
    path, ox = Path(path), import_oxigraph()
    text = utf8_text(read_file_as("Turtle", path), path)
    try:
        quads = ox.parse(input=text, format=ox.RdfFormat.TURTLE, base_iri=f"file:///{quote(path.name)}")
        return graph_from_triples([convert_triple(quad) for quad in quads])
    except SyntaxError as error:
        location = f"{path}, line {error.lineno}" if error.lineno else str(path)
        raise BadInput(f"{location}: not Turtle: {str(error.msg)[:_MAX_MESSAGE_LENGTH]}") from None
    except ValueError as error:
        raise BadInput(f"{path}: cannot be read as Turtle: {str(error)[:_MAX_MESSAGE_LENGTH]}") from None
    except BadInput as error:
        raise BadInput(f"{path}: {str(error)[:_MAX_MESSAGE_LENGTH]}") from None


def write_turtle(graph: PropertyGraph, path: Path | str) -> None:
    """Write a graph as Turtle, with properties sorted by name.

    Raises BadInput if RDF cannot represent it, and NotInstalled if pyoxigraph is missing.
    """
    ox = import_oxigraph()
    nodes = [replace(element, properties=dict(sorted(element.properties.items()))) for element in graph.nodes]
    edges = [replace(edge, properties=dict(sorted(edge.properties.items()))) for edge in graph.edges]
    node = ox.NamedNode
    triples = (
        ox.Triple(
            node(s), node(p), node(o) if isinstance(o, str) else ox.Literal(o.text, datatype=node(o.datatype))
        )
        for s, p, o in to_triples(nodes, edges)
    )
    write_atomically(path, ox.serialize(triples, format=ox.RdfFormat.TURTLE, prefixes=PREFIXES), "the graph")


GraphWriter = Callable[[PropertyGraph, Path], None]
_READERS: dict[str, Callable[[Path], PropertyGraph]] = {
    ".json": read_json_graph,
    ".jsonl": read_snapshot,
    ".graphml": read_graphml,
    ".ttl": read_turtle,
    ".csv": read_edge_list,
    ".tsv": read_edge_list,
}
WRITERS: dict[str, GraphWriter] = {  # writers by format
    "apoc": partial(write_snapshot, variant="apoc"),
    "networkx": partial(write_snapshot, variant="networkx"),
    "graphml": write_graphml,
    "turtle": write_turtle,
}
_FORMAT_BY_SUFFIX = {".json": "apoc", ".jsonl": "apoc", ".graphml": "graphml", ".ttl": "turtle"}


def read_graph(path: Path | str) -> PropertyGraph:
    """Read a graph from a file, in the format that its suffix names.

    JSON (.json, .jsonl), GraphML (.graphml), Turtle (.ttl), or an edge list (.csv, .tsv). JSON is a KGoT
    snapshot, Neo4j's APOC lines, or (.json) one object with nodes and links. Raises UnknownName for another
    suffix, BadInput for a file that cannot be read.
    """
    return _READERS[_known_suffix(Path(path), _READERS)](Path(path))


def read_named_graph(path: Path | str) -> NamedGraph:
    """Read a graph from a file of any program, with names as ids where its ids are numbers or IRIs.

    The note says what was renamed, and what was read differently from the file. Raises as `read_graph`.
    """
    reader = _READERS[_known_suffix(Path(path), _READERS)]
    original = read_graphml_with_notes(path) if reader is read_graphml else NamedGraph(reader(Path(path)))
    named = use_names_as_ids(original.graph)
    return NamedGraph(named.graph, "; ".join(filter(None, (named.note, original.note))))


def check_graph_file(path: Path | str) -> None:
    """Check that `write_graph` supports the format of a file's suffix and has what it needs.

    Raises UnknownName or NotInstalled if not.
    """
    if _FORMAT_BY_SUFFIX[_known_suffix(Path(path), _FORMAT_BY_SUFFIX)] == "turtle":
        import_oxigraph()


def write_graph(graph: PropertyGraph, path: Path | str, form: str | None = None) -> None:
    """Write a graph without loss, in the format of the file's suffix or in a named one.

    `read_graph` then returns the same graph. The formats are apoc, networkx, graphml and turtle. Raises
    UnknownName if there is no such format, and BadInput if the format cannot represent the graph.
    """
    form = form or _FORMAT_BY_SUFFIX[_known_suffix(Path(path), _FORMAT_BY_SUFFIX)]
    require_known("form of a graph file", WRITERS, form)
    WRITERS[form](graph, Path(path))


def lossless_format(path: Path | str) -> str:
    """Return the format in which `write_graph` would reproduce a file, or "" if there is none.

    In that format rewriting the file loses nothing. The order of lines does not matter. Raises as
    `read_graph`.
    """
    path = Path(path)
    original = read_named_graph(path)
    if original.note:
        return ""
    lines = _sorted_lines(read_regular_file(path))
    default_format = _FORMAT_BY_SUFFIX.get(_known_suffix(path, _READERS), "")
    # a table of edges is read, and never written
    one = (default_format,) if default_format else ()
    formats = ("networkx", "apoc") if default_format == "apoc" else one
    with TemporaryDirectory() as folder:
        for form in formats:
            write_graph(original.graph, rewritten := Path(folder) / form, form)
            if _sorted_lines(rewritten.read_bytes()) == lines:
                return form
    return ""


def _sorted_lines(data: bytes) -> list[bytes]:
    """Return the lines in sorted order, without the line ends of Turtle, which depend on the order."""
    return sorted(line.rstrip(b" ;.") for line in data.splitlines())


def _known_suffix(path: Path, suffixes: dict[str, Callable[[Path], PropertyGraph]] | dict[str, str]) -> str:
    if path.suffix.lower() not in suffixes:
        raise UnknownName("ending of a graph file", path.suffix or str(path), suffixes)
    return path.suffix.lower()
