"""Check the words of a SPARQL statement against an allow-list, before an engine sees it.

The list is the first of two barriers. The second is where a statement runs: a fork without network or files
and with little time, or a server's query endpoint. SPARQL resolves escapes (backslash, u, four digits) before
anything else, but not every engine does, so both readings of a statement must pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from kgot_lab.sandbox.sparql.rdf import (
    NAMESPACE,
    PREFIXES,
    RDF,
    RDFS,
    RDFS_LABEL,
    XSD,
    RdfTriple,
    Term,
    iri_of,
    predicate_name,
    value_of,
)
from kgot_lab.sandbox.worker.values import RefusedValue, limit_items

_NAME_LETTERS = (  # of the names of SPARQL's grammar
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME_CHARS = f"{_NAME_LETTERS}_0-9\u00b7\u0300-\u036f\u203f-\u2040"
_PREFIX = rf"(?:[{_NAME_LETTERS}](?:[{_NAME_CHARS}.\-]*[{_NAME_CHARS}\-])?)?:"
_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\x00-\x20]+|\#[^\n\r]*)
  | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
  | (?P<text>\"\"\"(?:"{{0,2}}(?:[^"\\]|\\.))*\"\"\"|'''(?:'{{0,2}}(?:[^'\\]|\\.))*'''|"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
  | (?P<variable>[?$][{_NAME_LETTERS}_0-9][{_NAME_CHARS}]*)
  | (?P<blank>_:[{_NAME_LETTERS}_0-9](?:[{_NAME_CHARS}.\-]*[{_NAME_CHARS}\-])?)
  | (?P<name>{_PREFIX}(?:(?:[{_NAME_LETTERS}_:0-9]|{_ESCAPED})(?:(?:[{_NAME_CHARS}:.\-]|{_ESCAPED})*(?:[{_NAME_CHARS}:\-]|{_ESCAPED}))?)?)
  | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*)
  | (?P<number>[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<word>[A-Za-z][A-Za-z0-9_]*)
  | (?P<sign><<|>>|\{{\||\|\}}|\^\^|&&|\|\||<=|>=|!=|[{{}}()\[\].,;=<>!+\-*/|^?])
    """,
    re.VERBOSE | re.DOTALL,
)
_AFTER_QUOTE = re.compile(rf"'((?:[{_NAME_LETTERS}])(?:[{_NAME_CHARS}.\-]*[{_NAME_CHARS}\-])?)")
_ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")

_DECIMAL = re.compile(r"[0-9]*\.[0-9]+")

_READ_WORDS = {"SELECT", "ASK", "CONSTRUCT", "DESCRIBE"}
_WRITE_WORDS = {"INSERT", "DELETE", "CLEAR", "DROP"}
_COMMON_WORDS = {
    *"BASE PREFIX SELECT WHERE A TRUE FALSE DISTINCT REDUCED AS GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET VALUES OPTIONAL".split(),
    *"UNION MINUS FILTER BIND UNDEF EXISTS NOT IN COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT SEPARATOR STR".split(),
    *"DATATYPE BOUND IRI URI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN UCASE LCASE ENCODE_FOR_URI CONTAINS STRSTARTS".split(),
    *"STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW UUID STRUUID MD5 SHA1 SHA256 SHA384".split(),
    *"SHA512 COALESCE IF STRDT SAMETERM ISIRI ISURI ISBLANK ISLITERAL ISNUMERIC REGEX SUBSTR REPLACE".split(),
}
_ALLOWED_WORDS = {
    "read": _COMMON_WORDS | _READ_WORDS,
    "write": _COMMON_WORDS | _WRITE_WORDS | {"DATA", "DEFAULT", "ALL", "SILENT"},
}
_REFUSED_WORDS = {
    **dict.fromkeys(
        "GRAPH FROM NAMED USING WITH CREATE COPY MOVE ADD INTO TO".split(),
        "there is one graph, without a name: leave {} out",
    ),
    **dict.fromkeys("STRLANG LANG LANGMATCHES".split(), "texts have no language here: leave {} out"),
    **dict.fromkeys("SERVICE LOAD".split(), "{} would fetch something from elsewhere, which is impossible"),
}
_BRACKET_DEPTH = {**dict.fromkeys("([{", 1), **dict.fromkeys(")]}", -1)}
_MAX_DEPTH = 100  # engines parse brackets by recursion: some thousands of them crash the process
_MAX_MESSAGE_LENGTH = 400  # Oxigraph's messages go on with every character that a name may have
# GRAPHex:g can be read as GRAPH ex:g
_RESERVED_PREFIXES = tuple("GRAPH FROM USING WITH SERVICE LOAD DESCRIBE".split())


class SparqlToken(NamedTuple):
    """A token of a statement: kind and text."""

    kind: str
    text: str


def check_statement(operation: str, statement: str) -> list[SparqlToken]:
    """Return the tokens of a read or a write, spaces and comments included.

    Models write :O'Hara for :O%27Hara. A statement that is not allowed as it is written is read that way.
    Raises RefusedValue, with what to do instead, if it is not allowed.
    """
    try:
        return _check_readings(operation, statement)
    except RefusedValue as refusal:
        try:
            tokens = _tokenize(statement, repair=True)
            return _check_readings(operation, "".join(token.text for token in tokens))
        except RefusedValue:
            raise refusal from None


def _check_readings(operation: str, statement: str) -> list[SparqlToken]:
    found = tokenize_readings(statement)
    for reading in found:
        _check_tokens(operation, reading)
    return found[0]


def tokenize_readings(statement: str) -> list[list[SparqlToken]]:
    """Return the tokens of a statement as it is written and, if different, with its escapes resolved.

    Raises RefusedValue if it cannot be split into tokens.
    """
    resolved = _ESCAPE.sub(lambda match: _character_of(match[1] or match[2]), statement)
    return [_tokenize(reading) for reading in dict.fromkeys((statement, resolved))]


def _tokenize(text: str, *, repair: bool = False) -> list[SparqlToken]:
    """Split a text into tokens.

    `repair` treats a quote between two letters of a name as part of the name. Raises RefusedValue if the
    text is not SPARQL.
    """
    tokens, position = list[SparqlToken](), 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if repair and tokens and tokens[-1].kind == "name" and (rest := _AFTER_QUOTE.match(text, position)):
            tokens[-1] = SparqlToken("name", f"{tokens[-1].text}%27{rest[1]}")
            position = rest.end()
            continue
        if match is None:
            quote = text[position] in "\"'"
            reason = (
                "a text is not closed, or a name holds a quote, %27 in names"
                if quote
                else "in names, other signs are percent-encoded"
            )
            raise RefusedValue(
                f"{text[position : position + 40]!r} in line {text.count(chr(10), 0, position) + 1} is not SPARQL: {reason}"
            )
        tokens.append(SparqlToken(str(match.lastgroup), match[0]))
        position = match.end()
    return tokens


def _character_of(hex_digits: str) -> str:
    number = int(hex_digits, 16)
    if number > 0x10FFFF or 0xD800 <= number < 0xE000:
        raise RefusedValue(f"the escape for {hex_digits} is no character")
    return chr(number)


def _check_tokens(operation: str, found: Iterable[SparqlToken]) -> None:
    tokens = [token for token in found if token.kind != "space"]
    words = [token.text for token in tokens if token.kind == "word"]
    for word in words:
        if word.upper() not in _ALLOWED_WORDS[operation]:
            raise RefusedValue(_refusal_reason(operation, word))
    if not {word.upper() for word in words} & (_READ_WORDS if operation == "read" else _WRITE_WORDS):
        raise RefusedValue(
            "a read begins with SELECT or ASK"
            if operation == "read"
            else "a write begins with INSERT DATA, INSERT or DELETE"
        )
    deepest = max(accumulate(_BRACKET_DEPTH.get(token.text, 0) for token in tokens), default=0)
    if deepest > _MAX_DEPTH:
        raise RefusedValue(f"brackets are nested {deepest:,} deep; {_MAX_DEPTH} is the most")
    declared = declared_prefixes(tokens)
    for prefix in declared:
        if prefix.upper().startswith(_RESERVED_PREFIXES):
            raise RefusedValue(f"a prefix may not begin with a word of SPARQL: {prefix}")
    for token, following in zip(tokens, [*tokens[1:], SparqlToken("end", "")], strict=True):
        _check_token(operation, token, following, declared)


def _check_token(
    operation: str, token: SparqlToken, following: SparqlToken, declared: Mapping[str, str]
) -> None:
    prefix, _, local = token.text.partition(":")
    if token.kind == "name" and prefix not in PREFIXES and prefix not in declared:
        raise RefusedValue(f"the prefix {prefix}: is not declared; a name is written :{local or 'name'}")
    if token.kind == "text" and following.kind == "language":
        raise RefusedValue(f"texts have no language here: leave {following.text} of {token.text} out")
    if token.text in ("<<", ">>", "{|", "|}"):
        raise RefusedValue(
            f"{token.text} is not understood here: values of a fact are told with rdf:subject, rdf:predicate and rdf:object"
        )
    if (
        operation == "read"
        and following.text == "("
        and token.kind in ("iri", "name")
        and not _expand_iri(token, declared).startswith(XSD)
    ):
        raise RefusedValue(f"{token.text}(…) is no function of SPARQL")


def _refusal_reason(operation: str, word: str) -> str:
    name = word.upper()
    if name in _REFUSED_WORDS:
        return _REFUSED_WORDS[name].format(word)
    if name in _ALLOWED_WORDS["write"]:
        return f"a read may not change the graph: {word} belongs into a write"
    if name in _ALLOWED_WORDS["read"]:
        return f"{word} reads and changes nothing; a write begins with INSERT DATA, INSERT or DELETE"
    return f"{word!r} is no word of SPARQL; a name is written :{word}, and a text stands in quotes"


def declared_prefixes(found: Iterable[SparqlToken]) -> dict[str, str]:
    """Return the prefixes that a statement declares."""
    tokens = [token for token in found if token.kind != "space"]
    return {
        name.text[:-1]: iri.text[1:-1]
        for word, name, iri in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word.text.upper() == "PREFIX"
        and name.kind == "name"
        and name.text.endswith(":")
        and iri.kind == "iri"
    }


def _expand_iri(token: SparqlToken, declared: Mapping[str, str]) -> str:
    if token.kind == "iri":
        return token.text[1:-1]
    prefix, _, local = token.text.partition(":")
    return {**PREFIXES, **declared}[prefix] + re.sub(r"\\(.)", r"\1", local)


def respell_names(found: Iterable[SparqlToken]) -> str:
    """Return a statement with its names as the mapping spells them.

    :Marie%20Curie then finds :Marie_Curie, and rdfs:label finds :label.
    """
    found = list(found)
    declared, texts, in_declaration = declared_prefixes(found), [], False
    for token in found:
        text = token.text
        if token.kind in ("iri", "name") and not in_declaration:
            iri = _expand_iri(token, declared)
            is_own = iri.startswith(NAMESPACE) or iri == RDFS_LABEL
            canonical_iri = iri_of(predicate_name(iri)) if is_own else iri
            if canonical_iri != iri or text.count(".") > 1:  # Oxigraph cannot read :J.R.R._Tolkien
                text = f"<{canonical_iri}>"
        if token.kind == "number" and _DECIMAL.fullmatch(text):
            text += "e0"  # the mapping keeps a number with a point as a double, and 1.5 as SPARQL reads it is another term
        starts_declaration = token.kind == "word" and text.upper() in ("PREFIX", "BASE")
        in_declaration = starts_declaration or (in_declaration and token.kind in ("space", "name"))
        texts.append(text)
    return "".join(texts)


def add_prefixes(found: Iterable[SparqlToken]) -> str:
    """Return a respelled statement preceded by declarations of the prefixes it lacks.

    For an engine that does not take prefixes as an argument.
    """
    found = list(found)
    declared = declared_prefixes(found)
    missing = (f"PREFIX {prefix}: <{iri}>" for prefix, iri in PREFIXES.items() if prefix not in declared)
    return f"{' '.join(missing)}\n{respell_names(found)}"


def has_word(found: Iterable[SparqlToken], word: str) -> bool:
    """Return whether a word is among the tokens of a statement."""
    return any(token.kind == "word" and token.text.upper() == word for token in found)


def only_adds(found: Iterable[SparqlToken]) -> bool:
    """Return whether a write consists of INSERT DATA alone, and so does not depend on the graph."""
    words = {token.text.upper() for token in found if token.kind == "word"}
    return words <= {"INSERT", "DATA", "A", "TRUE", "FALSE", "PREFIX", "BASE"}


def format_engine_error(message: str, statement: str) -> str:
    """Format an engine's message on one line, with the part of the statement it points at.

    A long message is truncated.
    """
    shortened, lines = " ".join(message.split()), statement.splitlines()
    shortened = shortened if len(shortened) <= _MAX_MESSAGE_LENGTH else f"{shortened[:_MAX_MESSAGE_LENGTH]}…"
    position = re.search(r"\b(?:at|line) (\d+)(?::|, column )(\d+)", shortened)
    if position is None or not 0 < int(position[1]) <= len(lines):
        return shortened
    line, column = lines[int(position[1]) - 1], int(position[2]) - 1
    return f"{shortened} (near {line[max(0, column - 20) : column + 30].strip()!r})"


# The results of a SPARQL query as rows of JSON.
#
# A solution is a dictionary: names of things by their ids, literals by their values. A variable without a
# value is left out, and a solution without any is no row. ASK gives one row, true or false. A graph gives a
# row for each triple: subject, relation, object. A query whose variables are those of FACT gives one row for
# each fact, with the fact's properties in it by name.

FACT_VARIABLES = ("subject", "relation", "object", "fact", "property", "value")


def term_value(term: Term) -> Any:
    """Return a term as a reader sees it."""
    if not isinstance(term, str):
        return value_of(term)
    name = predicate_name(term)
    for prefix, namespace in (("rdf:", RDF), ("rdfs:", RDFS)):
        name = name.replace(namespace, prefix, 1) if name.startswith(namespace) else name
    return name


def solution_rows(
    variables: Sequence[str], solutions: Iterable[Mapping[str, Term]], *, in_order: bool
) -> list[Any]:
    """Return solutions as rows.

    Their order does not depend on the engine, unless the query has an order of its own.
    """
    limited = limit_items(solutions)
    converted = ({name: term_value(term) for name, term in solution.items()} for solution in limited)
    rows = [row for row in converted if row]
    facts = tuple(variables) == FACT_VARIABLES
    if not in_order:
        rows.sort(
            key=(lambda row: [_sort_text(row.get(name)) for name in FACT_VARIABLES]) if facts else _sort_text
        )
    return _rows_by_fact(rows) if facts else rows


def rows_of_triples(triples: Iterable[RdfTriple]) -> list[Any]:
    """Return the triples of a graph as rows."""
    values = (map(term_value, triple) for triple in limit_items(triples))
    rows = (dict(zip(FACT_VARIABLES[:3], triple, strict=True)) for triple in values)
    return sorted(rows, key=_sort_text)


def _rows_by_fact(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """Return one row for each fact, with its properties."""
    facts: dict[str, dict[str, Any]] = {}
    for row in rows:
        ends = {name: row.get(name, "") for name in FACT_VARIABLES[:3]}
        fact = facts.setdefault(_sort_text([ends, row.get("fact")]), ends)
        if "property" not in row or row["property"] in FACT_VARIABLES[:3]:
            continue
        name, new = row["property"], row.get("value")
        old = fact.get(name, new)
        several = old if isinstance(old, list) else [old]
        fact[name] = old if new == old or new in several else [*several, new]
    return list(facts.values())


def _sort_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
