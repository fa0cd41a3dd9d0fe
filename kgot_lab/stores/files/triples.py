"""Graphs in RDF: Turtle, N-Triples, N-Quads, TriG, RDF/XML and JSON-LD."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.etree import ElementTree
from xml.parsers import expat

from kgot_lab.errors import BadInput, short_repr
from kgot_lab.graph.snapshots import is_iri, plain_name
from kgot_lab.sandbox.sparql import rdf
from kgot_lab.sandbox.sparql.rdf import NAMESPACE, RDFS_LABEL, RdfTriple, iri_of, predicate_name
from kgot_lab.stores.files.elements import Elements, RawEdge, reader_languages
from kgot_lab.stores.sparql.triples import convert_triple, graph_from_triples, import_oxigraph
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import Json

if TYPE_CHECKING:
    import pyoxigraph

_ALIASES = (
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "http://schema.org/alternateName",
    "https://schema.org/alternateName",
)
_OF_ENTITIES = {"labels": RDFS_LABEL, "descriptions": "description", "aliases": "aliases"}
_WIKIBASE = "http://wikiba.se/ontology#"
_PREDICATES = ("p", "predicate", "property", "prop", "relation", "rel")
_MAX_MESSAGE_LENGTH = 500  # characters of a parser's message, which may quote most of the file
_NOT_CLOSED = expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS]
_MAX_DEPTH = 1000  # of brackets and elements: pyoxigraph takes seconds for more, or ends the process
# outside texts, IRIs and comments
_BRACKET = re.compile(
    r"""(?P<quote>"{3}|'{3}|["'])(?:[^"'\\]++|\\.|(?!(?P=quote)).)*+(?P=quote)|<[^<>\s]*+>|#[^\n]*+|\\.|"""
    r"(<<|[\[({])|(>>|[\])}])",
    re.S,
)


def read_rdf(data: str | bytes, path: Path, *formats: str) -> Elements:
    """Read the elements of a graph in RDF, in the first of some formats of pyoxigraph in which it can be read.

    Raises BadInput, with the line, if it is in none, RecursionError if it is nested too deeply, and NotInstalled if
    pyoxigraph is missing.
    """
    ox, errors = import_oxigraph(), list[str]()
    is_cut = _check_nesting(data)
    for name in formats:
        try:
            form, base = getattr(ox.RdfFormat, name), f"file:///{quote(path.name)}"
            quads = list(ox.parse(input=data, format=form, base_iri=base))
            if is_cut:
                raise BadInput("the file ends before its last element does: restore the whole file")
            found = elements_of_quads(quads)
            if name == "JSON_LD":
                value = json.loads(data)
                found.left_out.update(_unmapped_keys(value, _terms(value)))
            return found
        except SyntaxError as error:
            if "LoadDocumentCallback" in str(error):
                raise BadInput(
                    f"{path}: its @context is the address of a file, and nothing is fetched: put the content of that "
                    "file in place of the address, or expand the JSON-LD, as pyld.jsonld.expand does"
                ) from None
            location = f"{path}, line {error.lineno}" if error.lineno else str(path)
            errors.append(f"{location}: not RDF: {str(error.msg)[:_MAX_MESSAGE_LENGTH]}")
        except (ValueError, BadInput) as error:
            errors.append(f"{path}: cannot be read as RDF: {str(error)[:_MAX_MESSAGE_LENGTH]}")
    raise BadInput(errors[0])


def _terms(value: Json) -> dict[str, Json]:
    """Return the terms that all contexts in JSON-LD define."""
    found: dict[str, Json] = {}
    for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        found |= _terms(inner)
    if isinstance(value, dict) and "@context" in value:
        contexts = value["@context"] if isinstance(value["@context"], list) else [value["@context"]]
        for context in contexts:
            found |= context if isinstance(context, dict) else {}
    return found


def _unmapped_keys(value: Json, terms: Mapping[str, Json]) -> Iterator[str]:
    """Name each key of JSON-LD that no context defines, whose value a reader drops."""
    if isinstance(value, list):
        for each in value:
            yield from _unmapped_keys(each, terms)
    for key, inner in value.items() if isinstance(value, dict) and "@vocab" not in terms else ():
        term = terms.get(key)
        if key not in terms and key[:1] != "@" and ":" not in key:
            yield f"value of the key {short_repr(key)}, which no context defines"
        elif key not in ("@context", "@value") and not (
            isinstance(term, dict) and {"@container", "@type"} & {*term}
        ):
            yield from _unmapped_keys(inner, terms)


def _check_nesting(data: str | bytes) -> bool:
    """Return whether elements of XML are open at the end.

    Raises RecursionError if brackets, or the elements of XML, are nested too deeply.
    """
    if isinstance(data, str):
        if sum(map(data.count, ("[", "(", "{", "<<"))) <= _MAX_DEPTH:
            return False
        steps = ({2: 1, 3: -1}.get(each.lastindex or 0, 0) for each in _BRACKET.finditer(data))
    else:
        parsed = ElementTree.iterparse(BytesIO(data), ("start", "end"))
        steps = (1 if event == "start" else -1 for event, _ in parsed)
    try:
        if any(depth > _MAX_DEPTH for depth in accumulate(steps)):
            raise RecursionError
    except ElementTree.ParseError as error:
        return error.code == _NOT_CLOSED
    except (ValueError, LookupError):  # the parser of RDF says what is wrong
        pass
    return False


def elements_of_quads(quads: Sequence[pyoxigraph.Quad | pyoxigraph.Triple], form: str = "RDF") -> Elements:
    """Return the elements that quads of RDF describe, and the labels of properties as names of relations."""
    found = Elements(form, is_ours=form == "RDF")
    labels: dict[str, dict[str, str]] = {}  # texts by language of what has a label
    claims: dict[str, str] = {}  # properties of Wikidata by the IRI of their direct claims
    quads = list(_without_triples_in_triples(quads, found.left_out))
    for quad in quads:
        subject, object = getattr(quad.subject, "value", ""), getattr(quad.object, "value", "")
        if quad.predicate.value == RDFS_LABEL:
            labels.setdefault(subject, {})[getattr(quad.object, "language", None) or ""] = object
        elif quad.predicate.value == f"{_WIKIBASE}directClaim":
            claims[object] = subject
    for predicate in {quad.predicate.value for quad in quads}:
        if texts := labels.get(predicate) or labels.get(claims.get(predicate, "")):
            found.words[predicate_name(predicate)] = texts[_shown_language(texts)]
    found.words |= dict.fromkeys(_ALIASES, "aliases")
    graph = graph_from_triples(_in_one_language(quads))
    found.nodes = {node.id: (node.labels, dict(node.properties)) for node in graph.nodes}
    for edge in graph.edges:
        found.edges.append(RawEdge(edge.source, edge.target, edge.type, dict(edge.properties), edge.key))
    if misfits := list(filter(rdf.is_misfit, (convert_triple(quad)[2] for quad in quads))):
        problem = f"{format_count(len(misfits), 'value')} kept as text, none of the datatype that they have"
        found.notes.append(f"{problem}: the first is {short_repr(misfits[0][0])} of <{misfits[0][1]}>")
    graphs = {str(getattr(quad, "graph_name", "DEFAULT")) for quad in quads} - {"DEFAULT"}
    found.left_out["name of a graph"] = len(graphs)
    return found


def _without_triples_in_triples(
    quads: Iterable[pyoxigraph.Quad | pyoxigraph.Triple], left_out: Counter[str]
) -> Iterator[pyoxigraph.Quad | pyoxigraph.Triple]:
    """Yield triples in which a statement about a triple between two things is described as in RDF 1.1.

    Other triples within triples are counted as left out.
    """
    ox, described = import_oxigraph(), set[Any]()
    for quad in quads:
        subject, inner = quad.subject, quad.object
        is_new = quad.predicate.value == f"{rdf.RDF}reifies" and subject not in described
        if not isinstance(inner, ox.Triple):
            yield quad
        elif is_new and not isinstance(inner.object, ox.Literal | ox.Triple):
            described.add(subject)
            parts = zip(rdf.DESCRIBING, inner, strict=True)
            yield from (ox.Triple(subject, ox.NamedNode(part), end) for part, end in parts)
        else:
            left_out["triple within a triple"] += 1


def _shown_language(languages: Iterable[str]) -> str:
    """Return which of some languages is shown to the reader of a file."""
    known = reader_languages()
    return min(languages, key=lambda each: ([*known, each[:2]].index(each[:2]), each))


def _in_one_language(quads: Iterable[pyoxigraph.Quad | pyoxigraph.Triple]) -> Iterable[RdfTriple]:
    """Yield triples in which of texts in several languages that of the reader has the name of the property.

    The others have it with their language, as in label@de, except aliases.
    """
    languages: dict[tuple[object, str], set[str]] = {}
    for quad in quads:
        if language := getattr(quad.object, "language", None):
            languages.setdefault((quad.subject, quad.predicate.value), set()).add(language)
    for quad in quads:
        triple, language = convert_triple(quad), getattr(quad.object, "language", None)
        several = languages.get((quad.subject, quad.predicate.value))
        if language is None or triple[1] in _ALIASES or not several or language == _shown_language(several):
            yield triple
        else:
            predicate = f"{NAMESPACE}label" if triple[1] == RDFS_LABEL else triple[1]
            yield triple[0], f"{predicate}@{language}", triple[2]


def read_query_results(text: str, source: str) -> Elements:
    """Read the elements of the results of a SPARQL query in JSON. Raises BadInput if they are none."""
    ox = import_oxigraph()
    _check_nesting(text)
    try:
        solutions = ox.parse_query_results(text, format=ox.QueryResultsFormat.JSON)
        names = [each.value for each in solutions.variables]
        rows = [{name: row[name] for name in names if row[name] is not None} for row in solutions]
    except (SyntaxError, ValueError, AttributeError) as error:  # also of a query that asks for yes or no
        raise BadInput(f"{source}: cannot be read as results of a SPARQL query: {error}") from None
    return read_bindings(names, rows, source)


def read_bindings(names: Sequence[str], rows: Iterable[Mapping[str, Any]], source: str) -> Elements:
    """Read the elements of the rows of a SPARQL query, whose variables name things, their labels and relations.

    A row of subject, predicate and object is a triple. Otherwise the first variable with a thing is related to the
    others, by their names. A variable such as cityLabel is the label of city. Values are terms of pyoxigraph, or
    texts and numbers. Raises BadInput for a row without a thing, and NotInstalled if pyoxigraph is missing.
    """
    ox = import_oxigraph()
    labels = {f"{name}Label": name for name in names if f"{name}Label" in names}
    by = next((name for name in names if plain_name(name) in _PREDICATES), "")
    quads: dict[Any, None] = {}

    def term(name: str, value: Any) -> Any:
        if isinstance(value, str) and (is_iri(value) or name in (by, *labels.values())):
            return ox.NamedNode(iri_of(value))
        return ox.Literal(value) if isinstance(value, str | int | float) else value

    for row in rows:
        terms = {name: term(name, row[name]) for name in names if row.get(name) not in (None, "")}
        subject = next((name for name in terms if name != by and not isinstance(terms[name], ox.Literal)), "")
        if not subject:
            raise BadInput(f"{source}: no value of a row of a query is an IRI: {short_repr(dict(row))}")
        for name, value in terms.items():
            if name in labels and labels[name] in terms:
                quads[ox.Triple(terms[labels[name]], ox.NamedNode(RDFS_LABEL), value)] = None
            elif name not in (subject, by):
                quads[ox.Triple(terms[subject], terms.get(by) or ox.NamedNode(iri_of(name)), value)] = None
    return elements_of_quads(list(quads), "rows of a SPARQL query")


def read_wikidata(entities: Iterable[Mapping[str, Any]]) -> Elements:
    """Read the elements of entities of Wikidata: labels, aliases, and the values of statements.

    Qualifiers, links to pages and statements that are deprecated are counted as left out. Raises NotInstalled if
    pyoxigraph is missing.
    """
    ox, left_out, quads = import_oxigraph(), Counter[str](), list[Any]()

    def add(id: str, predicate: str, value: Any) -> None:
        iri = predicate if predicate == RDFS_LABEL else iri_of(predicate)
        quads.append(ox.Triple(ox.NamedNode(iri_of(id)), ox.NamedNode(iri), value))

    for entity in entities:
        for field, predicate in _OF_ENTITIES.items():
            for texts in dict(entity.get(field) or {}).values():
                for text in texts if isinstance(texts, list) else [texts]:
                    language = None if field == "aliases" else text["language"]
                    add(entity["id"], predicate, ox.Literal(text["value"], language=language))
        for property, statements in dict(entity["claims"]).items():
            for statement in statements:
                value = statement.get("mainsnak", {}).get("datavalue", {}).get("value")
                if isinstance(value, dict) and "entity-type" in value:
                    value = ox.NamedNode(iri_of(value.get("id") or f"Q{value.get('numeric-id')}"))
                elif isinstance(value, dict):  # a quantity, a time, or a text in a language
                    known = [str(value[each]) for each in ("amount", "time", "text") if each in value]
                    value = next(iter(known), json.dumps(value))
                left_out["qualifier"] += sum(map(len, statement.get("qualifiers", {}).values()))
                if value is None or statement.get("rank") == "deprecated":
                    left_out["statement without a value or deprecated"] += 1
                else:
                    add(entity["id"], property, ox.Literal(value) if isinstance(value, str) else value)
        left_out["link to a page"] += len(entity.get("sitelinks") or ())
    found = elements_of_quads(quads, "entities of Wikidata")
    found.left_out += left_out
    return found
