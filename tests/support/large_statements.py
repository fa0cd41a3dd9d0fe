"""Statements of any size: one construct of a language that follows or holds itself so many times; each is
sound but for its size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

Make = Callable[[int], str]


def _row(sign: str, piece: str, before: str = "", after: str = "") -> Make:
    return lambda times: before + sign.join([piece] * times) + after


def _nested(before: str, opening: str, middle: str, closing: str, after: str) -> Make:
    return lambda times: f"{before}{opening * times}{middle}{closing * times}{after}"


def _numbered(before: str, piece: str, after: str, sign: str = " ") -> Make:
    return lambda times: (
        before + sign.join(piece.replace("#", str(number)) for number in range(times)) + after
    )


SPARQL_READS: Mapping[str, Make] = {
    "+": _row("+", "1", "SELECT (", " AS ?x) {}"),
    "-": _row(" - ", "1", "SELECT (", " AS ?x) {}"),
    "*": _row(" * ", "1", "SELECT (", " AS ?x) {}"),
    "division": _row(" / ", "1", "SELECT (", " AS ?x) {}"),
    "||": _row(" || ", "?x = 1", "ASK { FILTER(", ") }"),
    "&&": _row(" && ", "?x", "ASK { FILTER(", ") }"),
    "!": _nested("ASK { FILTER(", "!", "?x", "", ") }"),
    "mixed": _row(" + ", "1 * 2 || ?x && 3", "ASK { FILTER(", ") }"),
    "UNION": _row(" UNION ", "{ ?s ?p ?o }", "ASK { ", " }"),
    "OPTIONAL": _row(" ", "OPTIONAL { ?s ?p ?o }", "ASK { ", " }"),
    "MINUS": _row(" ", "MINUS { ?s ?p 1 }", "ASK { ?s ?p ?o ", " }"),
    "BIND": _numbered("ASK { ", "BIND(1 AS ?x#)", " }"),
    "FILTER": _row(" ", "FILTER(?s)", "ASK { ?s ?p ?o ", " }"),
    "FILTER EXISTS": _row(" ", "FILTER EXISTS { ?s ?p 1 }", "ASK { ?s ?p ?o ", " }"),
    "VALUES": _numbered("ASK { ", "VALUES ?x# { 1 }", " }"),
    "groups": _row(" ", "{ ?s ?p ?o }", "ASK { ", " }"),
    "AS": _numbered("SELECT ", "(1 AS ?x#)", " {}"),
    "COUNT": _numbered("SELECT ", "(COUNT(?a#) AS ?x#)", " {}"),
    "path /": _row("/", ":a", "ASK { ?s ", " ?o }"),
    "path |": _row("|", ":a", "ASK { ?s ", " ?o }"),
    "path in brackets": _row("/", ":a", "ASK { ?s (", ")* ?o }"),
    "path ^": _row("/^", ":a", "ASK { ?s ", " ?o }"),
    "triples": _numbered("ASK { ", "?x# :a ?y# .", " }"),
    "objects": _numbered("ASK { ?s :p ", "#", " }", ", "),
    "list": _numbered("ASK { ?s ?p (", "#", ") }"),
    "list of negative numbers": _numbered("ASK { ?s ?p (", "-#", ") }"),
    "brackets": _nested("ASK { FILTER(", "(", "?x", ")", ") }"),
    "braces": _nested("ASK ", "{", "", "}", ""),
    "IF": _nested("ASK { FILTER(", "IF(1,1,", "?x", ")", ") }"),
    "subselects": _nested("ASK ", "{ SELECT * ", "{}", "}", ""),
    "[ ]": _nested("ASK { ?s ?p ", "[ :b ", "1", "]", " }"),
    "escaped": _row(" + ", "1", 'SELECT ("\\u0022 + ', ' + \\u0022" AS ?x) {}'),
}
SPARQL_WRITES: Mapping[str, Make] = {
    "+": _row("+", "1", "INSERT { :a :b ?x } WHERE { BIND(", " AS ?x) }"),
    "UNION": _row(" UNION ", "{ ?s ?p ?x }", "INSERT { :a :b ?x } WHERE { ", " }"),
    "DELETE WHERE": _numbered("DELETE WHERE { ", ":a# :b ?x# .", " }"),
}
CYPHER_READS: Mapping[str, Make] = {
    "+": _row("+", "1", "RETURN ", " AS x"),
    "*": _row("*", "1", "RETURN ", " AS x"),
    "^": _row("^", "1", "RETURN ", " AS x"),
    "AND": _row(" AND ", "n.a = 1", "MATCH (n) WHERE ", " RETURN n"),
    "OR": _row(" OR ", "n.id STARTS WITH 'a'", "MATCH (n) WHERE ", " RETURN n"),
    "XOR": _row(" XOR ", "true", "RETURN ", " AS x"),
    "NOT": _nested("RETURN ", "NOT ", "true", "", " AS x"),
    "=": _row(" = ", "1", "RETURN ", " AS x"),
    "index": _nested("WITH [1] AS x RETURN x", "[0]", "", "", " AS y"),
    "property": _nested("WITH {a: 1} AS x RETURN x", ".a", "", "", " AS y"),
    "WITH": _row(" ", "WITH x", "WITH 1 AS x ", " RETURN x"),
    "MATCH": _numbered("", "MATCH (n#)", " RETURN 1 AS x"),
    "patterns": _numbered("MATCH ", "(n#)", " RETURN 1 AS x", ", "),
    "path": _nested("MATCH (a)", "-[:R]->()", "", "", " RETURN 1 AS x"),
    "UNION": _row(" UNION ", "RETURN 1 AS x"),
    "CALL": _numbered("", "CALL { RETURN 1 AS x# }", " RETURN 1 AS x"),
    "brackets": _nested("RETURN ", "(", "1", ")", " AS x"),
    "lists": _nested("RETURN ", "[", "1", "]", " AS x"),
    "maps": _nested("RETURN ", "{a: ", "1", "}", " AS x"),
    "CASE": _nested("RETURN ", "CASE WHEN false THEN 1 ELSE ", "1", " END", " AS x"),
    "functions": _nested("RETURN ", "abs(", "1", ")", " AS x"),
    "comprehensions": _nested("RETURN ", "[x IN ", "[1]", "]", " AS x"),
    "EXISTS": _nested("MATCH (n) WHERE ", "EXISTS { MATCH (n) WHERE ", "true", " }", " RETURN 1 AS x"),
}
CYPHER_WRITES: Mapping[str, Make] = {
    "FOREACH": _nested("CREATE (n {id: 'a'}) ", "FOREACH (x IN [1] | ", "SET n.a = 1", ")", ""),
    "CREATE": _numbered("", "CREATE (n# {id: '#'})", ""),
    "+": _row("+", "1", "CREATE (n {id: 'a', x: ", "})"),
    "path": _nested("CREATE (a {id: 'a'})", "-[:R]->()", "", "", ""),
}
