"""Read a graph from a file of any program by what is in it, and write one in the format of the file's suffix."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.documents.archives import unpacked
from kgot_lab.documents.encodings import guess_encoding
from kgot_lab.errors import BadInput, UnknownName, require_known, short_repr
from kgot_lab.graph import PropertyGraph
from kgot_lab.graph.snapshots import NamedGraph, plain_name, write_snapshot
from kgot_lab.io.files import (
    detect_wide_encoding,
    read_file_as,
    read_regular_file,
    refuse_wide_encoding,
    require_folder_of,
    write_atomically,
)
from kgot_lab.sandbox.sparql.rdf import PREFIXES
from kgot_lab.stores.files.elements import NUMBER, Elements, build_graph
from kgot_lab.stores.files.graphml import format_for_programs, write_graphml
from kgot_lab.stores.files.json_forms import read_json
from kgot_lab.stores.files.markup import OUR_GRAPHML, read_gml, read_pajek, read_xml
from kgot_lab.stores.files.tabular import HEADER, Options, read_parquet, read_table
from kgot_lab.stores.files.triples import read_rdf
from kgot_lab.stores.sparql.triples import import_oxigraph, oxigraph_triples
from kgot_lab.text.cleaning import format_count

_RDF_SUFFIXES = (".ttl", ".nt", ".nq", ".trig", ".n3")
_XML = re.compile(r"\s*(<\?xml|<!|<(\w+:)?(graphml|gexf|rdf|html)\b|<graph\s)", re.I)
_RDF_XML = re.compile(r"(<[?!][^>]*>|[^<])*<(\w+:)?RDF\b")
_RDF_TEXT = re.compile(
    r"(\s*#[^\n]*\n)*\s*(@prefix\b|@base\b|(prefix|base)\b[^,;\t]*<|(<[^>\s]*>|_:\S+)\s+(<|a\b|\w*:))", re.I
)
# letters of cp1250 as cp1252 shows them, where no western language has them together
_CENTRAL_EUROPEAN = re.compile(r"[a-z][³¹¿]|[øæèìòï].*[áíýšž]|[áíýšž].*[øæèìòï]", re.I | re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_GML = re.compile(r"(?m)^\s*graph\s*\[")
_PAJEK = re.compile(r"\A(\s*%[^\n]*\n)*\s*\*(network|arcs|edges|vertices)\b|^\s*\*vertices\s+\d", re.I | re.M)
_PACKERS = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma}
_OTHERS = {  # beginnings of files that hold no graph, what they are, and what to do
    b"SQLite format 3\0": ("an SQLite file", "kgot_lab.read_graph reads its tables"),
    b"%PDF-": ("a PDF", "read_documents reads its text"),
    b"PK\x03\x04": ("a zip, or a file of Office", "unpack it, or save its tables as CSV"),
    b"\xd0\xcf\x11\xe0": ("a file of an older Office", "save its tables as CSV"),
    **dict.fromkeys((b"\x89PNG", b"\xff\xd8\xff", b"GIF8"), ("a picture", "name a graph file")),
}
_NEVER_EMPTY = (".graphml", ".gexf", ".xgmml", ".gml", ".rdf")
_HIDDEN = re.compile(r"/(\.|__MACOSX)")
_TABLES = ("JSON", "a table", "a Parquet table", "rows of a SPARQL query")
_HEAD = 4000  # characters that show the form of a file


@check_arguments
def read_named_graph(
    path: Path | str | Sequence[Path | str],
    *,
    names: str = "",
    types: str = "",
    relation: str = "",
    source: str | int = "",
    target: str | int = "",
    encoding: str = "",
    rename: bool = True,
) -> NamedGraph:
    """Read a graph from a file of any program, with names as ids where its ids are numbers or IRIs.

    The form is found in the content: JSON and JSON lines, GraphML, GEXF, XGMML, GML, Pajek, tables, Parquet and
    RDF, also compressed. Several files, such as a table of nodes and one of edges, in a list, a folder or a zip,
    are one graph. `names`, `types` and `relation` are the fields of names, types and relations, where the evidence
    misleads (the names "id" rename no node); `source` and `target` are the columns of the ends of edges. The result
    says how the fields were understood and what was left out. Raises BadInput for a file that cannot be read.
    """
    source, target = str(source), str(target)
    if bool(source) != bool(target) or (source and source == target):
        raise BadInput("the ends of edges are two columns: give different source= and target=, or neither")
    with TemporaryDirectory() as folder:
        found = _read_files(path, Path(folder) / "unpacked", Options((source, target), encoding))
    return build_graph(found, names=names, types=types, relation=relation, rename=rename)


def read_graph(path: Path | str) -> PropertyGraph:
    """Read a graph from a file as `read_named_graph` does, with the ids that it has there.

    What `write_graph` wrote comes back without loss. Raises BadInput for a file that cannot be read.
    """
    return read_named_graph(path, rename=False).graph


def _read_files(path: Path | str | Sequence[Path | str], folder: Path, options: Options) -> Elements:
    """Read a file, or those in a list, a folder or a zip, which is unpacked into `folder`, as one graph.

    Of a folder or a zip, files without a graph are left out and told, if others have edges. Raises BadInput if none
    has, and for a file of a list that cannot be read.
    """
    files = [Path(path)] if isinstance(path, str | Path) else [Path(each) for each in path]
    if not files or len({*files}) < len(files):
        problem = "names a file twice: leave one out" if files else "is empty, so there is no graph to read"
        raise BadInput(f"the list of files {problem}")
    is_list = not isinstance(path, str | Path)
    if not is_list and files[0].is_dir():
        files = sorted(files[0].iterdir())
    elif not is_list and files[0].is_file() and read_file_as("a graph", files[0])[:4] == b"PK\x03\x04":
        files = list(unpacked(files[0], folder))
    elif not is_list and files[0].is_file() and files[0].suffix.lower() == ".zip":
        is_empty = zipfile.is_zipfile(files[0])
        no_zip = "is no zip, whatever its name says: name it by what it is, or download it again"
        raise BadInput(f"{path} {'is a zip of no files: pack it again' if is_empty else no_zip}")
    elif not is_list:
        return _read_elements(files[0], options)
    if (folder / "xl" / "workbook.xml").exists():
        raise BadInput(f"{path} is a workbook of Excel: save its sheets as CSV")
    if not is_list:
        start = len(str(folder))
        files = [each for each in files if each.is_file() and not _HIDDEN.search(str(each)[start:])]
    if not files:
        raise BadInput(f"{path} holds no file, so there is no graph to read")
    heads = _find_heads(files)
    files = [each for each in files if heads.get(each) != ""]
    read, errors = list[Elements](), list[BadInput]()
    for each in files:
        try:
            known = options._replace(is_part=len(files) > 1, head=heads.get(each, ""))
            read.append(_read_elements(each, known))
        except BadInput as error:
            errors.append(BadInput(str(error).replace(str(folder), str(path))))
    if errors and (is_list or not any(part.edges for part in read)):
        raise errors[0]
    ends = "edges are from {} to {}".format(*options.ends)
    if options.ends[0] and not any(ends in part.notes or part.form == "JSON" for part in read):
        raise BadInput(f"no table of {path} has the columns {' and '.join(map(repr, options.ends))}")
    forms = ", ".join(dict.fromkeys(part.form for part in read))
    found = Elements(f"{format_count(len(read), 'file')} ({forms})")
    has_edges = any(part.edges for part in read)
    for part in read:
        shared = sorted(filter(NUMBER.fullmatch, found.nodes.keys() & part.nodes.keys()))
        if shared and not has_edges:
            problem = f"{path}: several tables have a node {shared[0]}, and none has edges: are they different things?"
            raise BadInput(f"{problem} Put the tables into SQLite, whose references are read")
        found.merge(part)
    found.notes += [f"left out: {error}" for error in errors]
    return found


def _find_heads(files: Sequence[Path]) -> dict[Path, str]:
    """Return the first line of each table of neo4j-admin that has it in another file, and "" for that file.

    The tables for persons-header.csv are called persons.csv or persons-part1.csv. Raises BadInput if there are none.
    """
    names = {each: plain_name(each.name.partition(".")[0]) for each in files if each.is_file()}
    is_due = any("header" in name for name in names.values())
    read = {each: read_file_as("a graph", each)[:_HEAD] for each in names if is_due}
    starts = {each: data.decode("utf-8-sig", "replace") for each, data in read.items()}
    heads = dict[Path, str]()
    for each in sorted(names, key=lambda each: len(names[each])):  # so that the longest name is the last
        if "header" in names[each] and HEADER.fullmatch(starts[each]):
            name = names[each].replace("header", "")
            found = [o for o in names if names[o].startswith(name) and not HEADER.match(starts[o])]
            if not found:
                problem = f"{each} is the head of a table of neo4j-admin, and no file is called as its rows"
                raise BadInput(f"{problem}: {name or 'data'}.csv")
            heads |= {each: "", **dict.fromkeys(found, starts[each].strip())}
    return heads


def _read_elements(path: Path, options: Options) -> Elements:
    data, suffix = read_file_as("a graph", path), path.suffix.lower()
    for magic, packer in _PACKERS.items():
        if data.startswith(magic):
            suffix = Path(path.stem).suffix.lower()
            try:
                data = packer.decompress(data)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
                raise BadInput(f"{path}: cannot be unpacked: {error}") from None
            break
    for magic, (kind, advice) in _OTHERS.items():
        if data.startswith(magic):
            raise BadInput(f"{path} is {kind}, which is no graph file: {advice}")
    try:
        return _read_data(data, suffix, path, options)
    except RecursionError:
        raise BadInput(f"{path}: its values are nested too deeply to be read") from None


def _read_data(data: bytes, suffix: str, path: Path, options: Options) -> Elements:
    if data.startswith(b"PAR1"):
        return read_parquet(data, str(path), options)
    if suffix in _NEVER_EMPTY and not data.strip():
        raise BadInput(f"{path} is empty, and an empty graph in {suffix} is not: see whether it was written")
    encoding = options.encoding or detect_wide_encoding(data)
    try:
        head = data[:_HEAD].decode(encoding or "utf-8", "replace").removeprefix("\ufeff")
    except (LookupError, ValueError):
        problem = f"{path}: Python knows no text encoding {short_repr(encoding)}"
        raise BadInput(f"{problem}; as in encoding='cp1254'") from None
    if _XML.match(head) or (suffix in (".graphml", ".gexf", ".xgmml") and not head.lstrip().startswith("{")):
        if encoding.startswith("utf-32"):  # every XML parser recognizes UTF-16
            refuse_wide_encoding(data, path)
        is_rdf = _RDF_XML.match(_COMMENT.sub("", head))
        return read_rdf(data, path, "RDF_XML") if is_rdf else read_xml(data, str(path))
    text, remark = _decode(data, encoding, path)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput(f"{path}, line {line}: a NUL, which no text holds: it is damaged, or no graph file")
    found = _read_text(text, suffix, path, options)
    if options.ends[0] and found.form not in _TABLES:
        problem = f"{path} is {found.form}, which says what the ends are"
        raise BadInput(f"{problem}: source= and target= are for tables and JSON")
    found.notes += [remark] if remark else []
    return found


def _read_text(text: str, suffix: str, path: Path, options: Options) -> Elements:
    head = text[:_HEAD]
    if suffix in _RDF_SUFFIXES or _RDF_TEXT.match(head):
        return read_rdf(text, path, "TRIG", "N_QUADS")
    if suffix in (".json", ".jsonl") or head.lstrip()[:1] in ("{", "["):
        is_rdf = suffix == ".jsonld" or re.search(r'"@(context|graph|id)"\s*:', head)
        return read_rdf(text, path, "JSON_LD") if is_rdf else read_json(text, str(path), options)
    if _PAJEK.search(head):
        return read_pajek(text, str(path))
    if suffix == ".gml" or _GML.search(head):
        return read_gml(text, str(path))
    return read_table(text, str(path), suffix, options)


def _decode(data: bytes, encoding: str, path: Path) -> tuple[str, str]:
    """Return the text of a file, and a remark if it is not UTF-8. Raises BadInput if its encoding is unclear."""
    try:
        text = data.decode(encoding or "utf-8-sig").removeprefix("\ufeff")
        also = ", though it is UTF-8 too" if not text.isascii() and _is_utf8(data) else ""
        return text, f"read as {encoding}{also}" if encoding else ""
    except UnicodeDecodeError:
        text, likely = guess_encoding(data)
        western = data.decode("cp1252", "replace")
        is_turkish = re.search("[ðþý]", western, re.I) and not re.search("[æáéíóú]", western, re.I)
        name = "cp1254" if is_turkish else "cp1250" if _CENTRAL_EUROPEAN.search(western) else "cp1252"
        is_text = not likely and not re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", data)
        if not text and (name in likely or is_text):  # a short one
            text, likely = data.decode(name, "replace"), [name, *(other for other in likely if other != name)]
        if encoding and _is_utf8(data):
            raise BadInput(f"{path} is not {encoding} but UTF-8: leave the encoding out") from None
        if not (text or likely):
            raise BadInput(f"{path} is no text, nor another form of a graph: name a graph file") from None
        if encoding or not text:
            others = f"perhaps {' or '.join(likely)}: name it, as in encoding={likely[0]!r}"
            raise BadInput(f"{path} is not {encoding or 'UTF-8'}; {others}, or save it as UTF-8") from None
        guess = f"; a guess: encoding={likely[1]!r} may be right" if likely[1:] else ""
        return text, f"read as {likely[0]}, since it is not UTF-8{guess}"


def _is_utf8(data: bytes) -> bool:
    return data.decode(errors="replace").encode() == data


def _write_rdf(graph: PropertyGraph, path: Path, form: str) -> None:
    """Write a graph as RDF in a format of pyoxigraph, with properties sorted by name.

    Raises BadInput if RDF cannot represent it, and NotInstalled if pyoxigraph is missing.
    """
    triples, ox = oxigraph_triples(graph), import_oxigraph()
    options = {"format": getattr(ox.RdfFormat, form), "prefixes": PREFIXES}
    try:
        data = ox.serialize(triples, **options)
    except ValueError as error:  # RDF/XML, of a relation that is no XML name
        raise BadInput(f"{form} cannot hold the graph: {error}; write .ttl") from None
    write_atomically(path, data, "the graph")


def _write_checked(graph: PropertyGraph, path: Path, form: str) -> None:
    """Write a graph in a form of other programs that has no place for everything.

    Raises BadInput, which says what would not be kept, unless reading it back gives the same graph.
    """
    import networkx as nx

    converters: dict[str, Callable[[], str]] = {
        "csv": lambda: graph.to_pandas()[1].to_csv(index=False),
        "node_link": lambda: json.dumps(nx.node_link_data(graph.to_networkx(), edges="links")),
        "adjacency": lambda: json.dumps(nx.adjacency_data(graph.to_networkx())),
        **{each: partial(format_for_programs, graph, each) for each in ("gexf", "gml")},
    }
    try:
        text = converters[form]()
        found = _read_data(text.encode("utf-8", "surrogatepass"), "", Path(form), Options())
        lost = graph.diff(build_graph(found).graph)
    except (TypeError, ValueError, nx.NetworkXError, BadInput) as error:
        raise BadInput(f"{form} cannot hold the graph: {error}; write .jsonl, .graphml or .ttl") from None
    if lost:
        changed: Iterable[tuple[Any, Any]] = (*lost.changed_nodes, *lost.changed_edges)
        pairs = [(one.properties, other.properties) for one, other in changed]
        fields = {n for one, other in pairs for n in {**one, **other} if one.get(n) != other.get(n)}
        problem = f"read back from {form} the graph would differ ({lost}) {'in ' * bool(fields)}{', '.join(sorted(fields))}"
        raise BadInput(f"{problem}; write .jsonl, .graphml or .ttl")
    write_atomically(path, text, "the graph")


GraphWriter = Callable[[PropertyGraph, Path], None]
_RDF_FORMS = {".ttl": "turtle", ".nt": "n_triples", ".nq": "n_quads", ".trig": "trig", ".jsonld": "json_ld"}
WRITERS: dict[str, GraphWriter] = {  # writers by format
    "apoc": partial(write_snapshot, variant="apoc"),
    "networkx": partial(write_snapshot, variant="networkx"),
    "graphml": write_graphml,
    **{form: partial(_write_rdf, form=form.upper()) for form in (*_RDF_FORMS.values(), "rdf_xml")},
    **{form: partial(_write_checked, form=form) for form in ("csv", "gexf", "gml", "node_link", "adjacency")},
}
_FORMAT_BY_SUFFIX = {".json": "apoc", ".jsonl": "apoc", ".graphml": "graphml", **_RDF_FORMS}
_FORMAT_OF_SOME = {".csv": "csv", ".rdf": "rdf_xml", ".gexf": "gexf", ".gml": "gml"}  # not of every graph


def check_graph_file(path: Path | str, *, of_any: bool = True) -> None:
    """Check that `write_graph` can write to a file, by its suffix, and has what it needs.

    `of_any` if the format must be one of any graph, so that no command ends with a refusal. Raises UnknownName,
    NotInstalled, or BadInput for a missing folder.
    """
    if _find_form(Path(path), of_any=of_any) in (*_RDF_FORMS.values(), "rdf_xml"):
        import_oxigraph()


@check_arguments
def write_graph(graph: PropertyGraph, path: Path | str, form: str | None = None) -> None:
    """Write a graph without loss, in the format of the file's suffix or in a named one, compressed if it ends with .gz.

    `read_graph` then returns the same graph. WRITERS has the formats. Raises UnknownName if there is no such
    format, and BadInput, before anything is written, if there is no such folder or the format cannot represent the
    graph.
    """
    path = Path(path)
    form = _find_form(path, form)
    if path.suffix.lower() != ".gz":
        return WRITERS[form](graph, path)
    with TemporaryDirectory() as folder:
        WRITERS[form](graph, draft := Path(folder, path.stem))
        write_atomically(path, gzip.compress(draft.read_bytes(), mtime=0), "the graph")


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
    usual = _FORMAT_BY_SUFFIX.get(path.suffix.lower(), "")  # none for a table, which holds edges only
    formats = {"": (), "apoc": ("networkx", "apoc")}.get(usual, (usual,))
    with TemporaryDirectory() as folder:
        for form in formats:
            write_graph(original.graph, rewritten := Path(folder) / form, form)
            if _sorted_lines(rewritten.read_bytes()) == lines:
                return form
    return ""


def _sorted_lines(data: bytes) -> list[bytes]:
    """Return the lines in sorted order, without the line ends of Turtle, which depend on the order."""
    return sorted(line.rstrip(b" ;.") for line in data.splitlines() if line != OUR_GRAPHML)


def _find_form(path: Path, form: str | None = None, *, of_any: bool = False) -> str:
    require_folder_of(path)
    suffix = Path(path.stem if path.suffix.lower() == ".gz" else path.name).suffix.lower()
    known = _FORMAT_BY_SUFFIX | ({} if of_any else _FORMAT_OF_SOME)
    if form is None and suffix not in known:
        raise UnknownName("ending of a graph file", path.suffix or str(path), known)
    require_known("form of a graph file", WRITERS, form := form or known[suffix])
    return form
