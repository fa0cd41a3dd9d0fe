"""Random statements: of Cypher and of SPARQL by small grammars, and acts that mean the same in every
language.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from kgot_lab.stores.protocol import Dialect
from kgot_lab.types import Triple

IDS, LABELS, RELATIONS = ("a", "b", "d e", "o'c"), ("P", "Big City"), ("knows", "born in")
PROPERTIES = ("x", "y", "label", "relation", "z z")
TEXTS = ("", "x", "a b", "é'\"", "\\", "1", "json:1")
NUMBERS = (0, 1, -1, 2, 2.5, -0.5, 10**12)


class Statement(NamedTuple):
    """A statement, and whether it is to be written."""

    text: str
    writes: bool


def _joined(*parts: st.SearchStrategy[str] | str) -> st.SearchStrategy[str]:
    return st.tuples(*(st.just(part) if isinstance(part, str) else part for part in parts)).map("".join)


def _one(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


def _chain(piece: st.SearchStrategy[str], signs: tuple[str, ...], most: int = 4) -> st.SearchStrategy[str]:
    """Some pieces in a row; now and then a row that no engine should see."""
    lengths = st.one_of(st.integers(1, most), st.sampled_from([1] * 30 + [300, 3000]))
    return st.tuples(lengths, piece, _one(*signs)).map(lambda told: told[2].join([told[1]] * told[0]))


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


# --- Cypher ---


def _names(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    return _one(*(f"`{name}`" for name in names))


_VALUE = _one(*map(_quoted, TEXTS), *map(str, NUMBERS), "true", "false", "null", "[1, 2]", "['x']", "[]")
_ID = _one(*map(_quoted, IDS))
_LABEL = _names(LABELS)
_RELATION = _names(RELATIONS)
_PROPERTY = _names(PROPERTIES)
# values that may be a property
_KEPT = _one(*map(_quoted, TEXTS), *map(str, NUMBERS), "true", "[1, 2]", "['x', 'y']")
_ENTRY = _joined(_PROPERTY, ": ", _KEPT)
_MADE = (
    _joined("(:", _LABEL, " {id: ", _ID, ", ", _ENTRY, "})")
    | _joined("({id: ", _ID, "})")
    | _joined("(:", _LABEL, ")")
)
_LINK = (
    _joined("-[:", _RELATION, "]->")
    | _joined("-[:", _RELATION, " {", _ENTRY, "}]->")
    | _joined("<-[:", _RELATION, "]-")
)
_MATCHED = _joined("MATCH (n {id: ", _ID, "})") | _joined("MATCH (n:", _LABEL, ")") | st.just("MATCH (n)")
_LINKED = _joined("MATCH (n {id: ", _ID, "})-[r:", _RELATION, "]->(m)") | st.just("MATCH (n)-[r]->(m)")
_ATOM = _VALUE | _joined("n.", _PROPERTY) | _one("n.id", "labels(n)", "size(n.id)", "n.id IS NULL")
_TERM = st.recursive(
    _ATOM,
    lambda inner: st.one_of(
        _joined(
            "(",
            inner,
            _one(" + ", " = ", " <> ", " < ", " AND ", " OR ", " IN ", " STARTS WITH "),
            inner,
            ")",
        ),
        _joined(_one("NOT ", "toString", "size", "coalesce"), "(", inner, ")"),
        _joined("CASE WHEN ", inner, " THEN ", inner, " ELSE ", inner, " END"),
        _joined("[", inner, ", ", inner, "]"),
        _joined("[i IN [1, 2] WHERE ", inner, " | ", inner, "]"),
    ),
    max_leaves=5,
)
_CYPHER_WRITE = st.one_of(
    _joined("CREATE ", _MADE),
    _joined("CREATE ", _MADE, ", ", _MADE),
    _joined("CREATE ", _MADE, _LINK, _MADE),
    _joined("MERGE (n {id: ", _ID, "}) SET n.", _PROPERTY, " = ", _VALUE),
    _joined(
        "MERGE (n {id: ",
        _ID,
        "}) MERGE (m {id: ",
        _ID,
        "}) MERGE (n)-[r:",
        _RELATION,
        "]->(m) SET r.",
        _PROPERTY,
        " = ",
        _KEPT,
    ),
    _joined(
        "MATCH (n {id: ", _ID, "}), (m {id: ", _ID, "}) CREATE (n)-[:", _RELATION, " {", _ENTRY, "}]->(m)"
    ),
    _joined(_MATCHED, " SET n.", _PROPERTY, " = ", _VALUE),
    _joined(_MATCHED, " SET n += {", _ENTRY, ", ", _ENTRY, "}"),
    _joined(_MATCHED, " SET n = {", _ENTRY, "}"),
    _joined(_MATCHED, " SET n:", _LABEL),
    _joined(_MATCHED, " REMOVE n:", _LABEL),
    _joined(_MATCHED, " REMOVE n.", _PROPERTY),
    _joined("MATCH (n {id: ", _ID, "}) SET n.id = ", _VALUE),
    _joined(_LINKED, " SET r.", _PROPERTY, " = ", _VALUE),
    _joined(_LINKED, " SET r = {", _ENTRY, "}"),
    _joined(_LINKED, " SET r._key = ", _one("'k'", "5", "null", "''")),
    _joined(_LINKED, " DELETE r"),
    _joined(_MATCHED, " DETACH DELETE n"),
    _joined(_MATCHED, " DELETE n"),
    _joined(_MATCHED, " FOREACH (i IN [1, 2] | SET n.", _PROPERTY, " = i)"),
    _chain(_joined("CREATE ", _MADE), (" ",)),
)
_CYPHER_READ = st.one_of(
    _joined(_MATCHED, " RETURN ", _TERM, " AS found"),
    _joined(_MATCHED, " WHERE ", _TERM, " RETURN n.id AS id"),
    _joined(_MATCHED, " RETURN n"),
    _joined(_LINKED, " RETURN r, m.id AS id"),
    _joined(
        "MATCH (n) OPTIONAL MATCH (n)-[r:",
        _RELATION,
        "]-(m) RETURN n.id AS id, type(r) AS type, m.id AS other",
    ),
    _joined("MATCH (n) WITH ", _TERM, " AS found RETURN found, count(*) AS times"),
    _joined("UNWIND [1, 'x', null] AS i ", _MATCHED, " RETURN i, ", _TERM, " AS found"),
    _joined(_MATCHED, " RETURN n.id AS id UNION ", _MATCHED, " RETURN n.id AS id"),
    _joined("MATCH p = (n {id: ", _ID, "})-[*1..2]-(m) RETURN m.id AS id, length(p) AS far"),
    _joined("RETURN ", _chain(_one("1", "(2)", "size('x')"), ("+", " * ", " = ")), " AS found"),
    _CYPHER_WRITE,  # which a read must not do
)
CYPHER = st.builds(Statement, _CYPHER_WRITE, st.just(True)) | st.builds(
    Statement, _CYPHER_READ, st.just(False)
)


# --- SPARQL ---

_THING = _one(":a", ":b", ":d_e", ":o%27c")
_VERB = _one(":knows", ":born_in")
_NAME = _one(":x", ":y", ":label", ":relation")
_KIND = _one(":P", ":Big_City")
_LITERAL = _one(*map(_quoted, TEXTS), *map(str, NUMBERS), "true", "'5'^^xsd:integer", "1.50")
_FACT = st.one_of(
    _joined(_THING, " ", _VERB, " ", _THING, " . "),
    _joined(_THING, " a ", _KIND, " . "),
    _joined(_THING, " a ", _KIND, " ; ", _NAME, " ", _LITERAL, " . "),
    _joined(
        "[] rdf:subject ",
        _THING,
        " ; rdf:predicate ",
        _VERB,
        " ; rdf:object ",
        _THING,
        " ; ",
        _NAME,
        " ",
        _LITERAL,
        " . ",
    ),
)
_SIMPLE = st.one_of(
    _joined("?s ", _VERB, " ?o . "),
    _joined("?s ", _NAME, " ?o . "),
    _joined(_THING, " ?p ?o . "),
    _one("?s ?p ?o . ", "?s a ?o . "),
)
_CALL = st.recursive(
    _LITERAL | _one("?s", "?o", "?none"),
    lambda inner: st.one_of(
        _joined("(", inner, _one(" + ", " = ", " != ", " < ", " && ", " || ", " - "), inner, ")"),
        _joined(_one("!", "STR", "BOUND", "isIRI", "STRLEN", "ABS", "LCASE"), "(", inner, ")"),
        _joined("IF(", inner, ", ", inner, ", ", inner, ")"),
        _joined("COALESCE(", inner, ", ", inner, ")"),
        _joined("(", inner, " IN (", inner, ", ", inner, "))"),
    ),
    max_leaves=5,
)
_GROUP = st.recursive(
    _SIMPLE,
    lambda inner: st.one_of(
        _joined(inner, "FILTER(", _CALL, ") "),
        _joined(inner, "OPTIONAL { ", inner, "} "),
        _joined("{ ", inner, "} UNION { ", inner, "} "),
        _joined(inner, "MINUS { ", inner, "} "),
        _joined(inner, "BIND(", _CALL, " AS ?v) "),
        _joined(
            inner,
            "?s ",
            _one(":knows+", ":knows/:knows", "^:knows", ":knows|:born_in", "!:knows", ":knows*"),
            " ?q . ",
        ),
        _joined(inner, "FILTER EXISTS { ", inner, "} "),
        _joined("VALUES ?s { ", _THING, " } ", inner),
    ),
    max_leaves=4,
)
_SPARQL_WRITE = st.one_of(
    _joined("INSERT DATA { ", _FACT, "}"),
    _joined("INSERT DATA { ", _FACT, _FACT, "}"),
    _joined("DELETE DATA { ", _THING, " ", _VERB, " ", _THING, " }"),
    _joined("DELETE WHERE { ", _SIMPLE, "}"),
    _joined("DELETE { ?s ", _NAME, " ?o } INSERT { ?s ", _NAME, " ", _LITERAL, " } WHERE { ", _GROUP, "}"),
    _joined("INSERT { ?s ", _VERB, " ", _THING, " } WHERE { ", _GROUP, "}"),
    _joined("INSERT DATA { ", _FACT, "} ; DELETE WHERE { ", _SIMPLE, "}"),
    _chain(_joined("INSERT DATA { ", _FACT, "}"), (" ; ",)),
    _one("CLEAR ALL", "DROP DEFAULT"),
)
_SPARQL_READ = st.one_of(
    _joined("SELECT * { ", _GROUP, "}"),
    _joined("SELECT ?s (COUNT(*) AS ?n) { ", _GROUP, "} GROUP BY ?s"),
    _joined("SELECT (", _CALL, " AS ?c) { ", _GROUP, "}"),
    _joined("ASK { ", _GROUP, "}"),
    _joined("CONSTRUCT { ?s :r ?o } WHERE { ", _GROUP, "}"),
    _joined("SELECT (", _chain(_one("1", "(2)", "STRLEN('x')"), (" + ", " * ", " || ")), " AS ?c) {}"),
    _joined("ASK { ", _chain(_joined("{ ", _SIMPLE, "}"), (" UNION ",)), " }"),
    _SPARQL_WRITE,
)
SPARQL = st.builds(Statement, _SPARQL_WRITE, st.just(True)) | st.builds(
    Statement, _SPARQL_READ, st.just(False)
)


# --- acts that mean the same everywhere ---


class Act(NamedTuple):
    """A fact that is told, or forgotten, with the value of one of its properties."""

    fact: Triple
    name: str
    value: str | int | float | bool
    forgets: bool = False

    def said(self, dialect: Dialect) -> str:
        """The act in a language."""
        if not self.forgets:
            return dialect.add([(self.fact, {self.name: self.value})])
        source, relation, target = self.fact.subject, self.fact.relation, self.fact.object
        if dialect.name == "Cypher":
            return f"MATCH (a {{id: {_quoted(source)}}})-[r:`{relation}`]->(b {{id: {_quoted(target)}}}) DELETE r"
        return f"if G.has_edge({source!r}, {target!r}, {relation!r}):\n    G.remove_edge({source!r}, {target!r}, {relation!r})"


_FACTS = st.builds(Triple, st.sampled_from(IDS), st.sampled_from(RELATIONS), st.sampled_from(IDS))
values = st.sampled_from((*TEXTS, *NUMBERS, True))
ACTS = st.builds(Act, _FACTS, st.sampled_from(PROPERTIES), values, st.sampled_from((False, False, True)))
