"""SPARQL for the prompts, statements built by rule, size limits, and the embedded store (Oxigraph).

`kgot_lab.sandbox.sparql.rdf` defines how a property graph is RDF. `kgot_lab.sandbox.sparql.statements` checks
statements, inside the sandbox and before a read is sent to a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox.python.helpers import FACT_SCORE, MENTIONS_NAME, PATH_COLUMNS, SAYS_SENTENCE
from kgot_lab.sandbox.sparql import rdf
from kgot_lab.sandbox.sparql.statements import FACT_VARIABLES, SparqlToken, check_statement, tokenize_readings
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores import statements
from kgot_lab.stores.embedded_store import EmbeddedStore
from kgot_lab.stores.protocol import DIALECT_TEXTS, Dialect, Fact, StatementConstants
from kgot_lab.stores.sparql.triples import format_term
from kgot_lab.types import Edge, Node

# The SPARQL query that reads paths of sentences.
#
# A path is found by names and scores alone. The texts of its sentences are looked up only for the paths that
# are returned.

NON_EDGE_PREDICATES = "rdf:type, rdf:subject, rdf:predicate, rdf:object"
_SAYS, _MENTIONS = format_term(rdf.iri_of(SAYS_SENTENCE)), format_term(rdf.iri_of(MENTIONS_NAME))
_VARIABLES = {"start": "from", "place_1": "one", "name": "joint", "end": "to", "place_2": "two"}
_VARIABLES |= {f"{text}_{step}": f"{text}{step}" for text in ("sentence", "source") for step in (1, 2)}
_COLUMN_EXPRESSIONS = {column: f'COALESCE(?{variable}, "")' for column, variable in _VARIABLES.items()}
_OF_EDGE = {"relation": "p", "subject": "s", "object": "o"}
_COLUMN_EXPRESSIONS |= {column: f'IF(?p = {_SAYS}, "", ?{each})' for column, each in _OF_EDGE.items()}
_COLUMN_EXPRESSIONS["worth"] = "?sum"
# Flat and with bound ends, because Oxigraph reads all edges for an OPTIONAL nested in another one.
_TEXT_PATTERNS = (
    "OPTIONAL { ?a rdf:object ?o ; rdf:predicate ?p ; rdf:subject ?s } "
    f"OPTIONAL {{ ?b rdf:object ?told ; rdf:predicate {_SAYS} ; rdf:subject ?to }}\n"
    "BIND(COALESCE(?a, rdf:nil) AS ?first) BIND(COALESCE(?b, rdf:nil) AS ?last)\n"
    "OPTIONAL { ?first :sentence ?sentence1 } OPTIONAL { ?first :source ?source1 }\n"
    "OPTIONAL { ?last :sentence ?sentence2 } OPTIONAL { ?last :source ?source2 }"
)


def _sort_key(variable: str) -> str:
    """Build an expression that sorts IRIs in the order of the names they encode.

    Characters other than letters and digits are replaced by their codes, each after a sign of its rank.
    """
    expression = (
        f'IF(STRSTARTS(STR({variable}), "{rdf.NAMESPACE}"), REPLACE(REPLACE(ENCODE_FOR_URI(STRAFTER(STR({variable}), "{rdf.NAMESPACE}")), '
        f'"%25", "%"), "_", "%20"), REPLACE(ENCODE_FOR_URI(STR({variable})), "_", "%5F"))'
    )
    for character, code in (("-", "%2D"), ("[.]", "%2E"), ("~", "%7E")):
        expression = f'REPLACE({expression}, "{character}", "{code}")'
    ranks = {"[012].": "!", "(?:3[A-F]|40)": ":", "(?:5[B-F]|60)": "[", "7[B-F]": "{", "[89A-F].": "~"}
    for codes, rank in ranks.items():
        expression = f'REPLACE({expression}, "%({codes})", "{rank}$1")'
    return expression


_SORT_NAMES = ("to", "joint", "p", "s", "o")
_SORT_KEYS = {name: f"BIND({_sort_key(f'?{name}')} AS ?{name}Key)" for name in _SORT_NAMES}
_ORDER = f"DESC(?sum) ?rank ?rank1 ?rank2 {' '.join(f'?{variable}Key' for variable in _SORT_KEYS)}"  # what the statement says itself has a rank


def sparql_path_query(names: Sequence[str], scores: Mapping[str, float], limit: int) -> str:
    """Build the SPARQL query that reads paths.

    The requested names and sentences are repeated at the start of each part, so that no engine starts from
    all triples.
    """
    query = statements.path_query(names, scores, limit)
    start = _values_clause("from rank", [[format_term(rdf.iri_of(name))] for name in query.names])
    scored_sentences = [
        [format_term(rdf.iri_of(sentence_id)), format_term(rdf.Literal(repr(score), rdf.DOUBLE))]
        for sentence_id, score in query.scores.items()
    ]
    first_part = f"{start} ?from {_SAYS} ?one {_values_clause('one worth1 rank1', scored_sentences)}"
    last_part = f"{_values_clause('two worth2 rank2', scored_sentences)} ?to {_SAYS} ?two"
    by_says = f"BIND(?from AS ?s) BIND({_SAYS} AS ?p) BIND(?one AS ?o)"
    by_fact = f"FILTER(?from != ?to && ?p NOT IN ({_SAYS}, {_MENTIONS}, {NON_EDGE_PREDICATES})) BIND({FACT_SCORE}e0 + ?worth2 AS ?sum)"
    keys = " ".join(_SORT_KEYS[variable] for variable in ("to", "p", "s", "o"))
    return (
        f"SELECT DISTINCT {' '.join(f'({_COLUMN_EXPRESSIONS[column]} AS ?{column})' for column in PATH_COLUMNS)} WHERE {{\n"
        "{ SELECT DISTINCT ?from ?one ?two ?to ?joint ?s ?p ?o ?sum ?rank ?rank1 ?rank2 ?told ?toKey ?jointKey ?pKey ?sKey ?oKey WHERE {\n"
        f"{{ {first_part} {by_says} BIND(?worth1 AS ?sum) }} UNION\n"
        f"{{ {{ SELECT * WHERE {{ {first_part} . ?one {_MENTIONS} ?joint }} }} {{ SELECT * WHERE {{ {last_part} .\n"
        f"  {{ ?two {_MENTIONS} ?joint BIND(true AS ?met) }} UNION {{ ?joint {_SAYS} ?two }} }} }}\n"
        f"  FILTER(?joint != ?from && ?to != ?from && ?two != ?one && (BOUND(?met) || ?joint = ?to))\n"
        f"  {by_says} BIND(?worth1 + ?worth2 AS ?sum) {_SORT_KEYS['to']} {_SORT_KEYS['joint']} }} UNION\n"
        f"{{ {start} ?from ?p ?to {{ SELECT * WHERE {{ {last_part} }} }} {by_fact} BIND(?from AS ?s) BIND(?to AS ?o) {keys} }} UNION\n"
        f"{{ {start} ?to ?p ?from {{ SELECT * WHERE {{ {last_part} }} }} {by_fact} BIND(?to AS ?s) BIND(?from AS ?o) {keys} }}\n"
        f"BIND(COALESCE(?two, rdf:nil) AS ?told) }} ORDER BY {_ORDER} LIMIT {limit} }}\n"
        f"{_TEXT_PATTERNS}\n"
        f"}} ORDER BY {_ORDER} ?sentence1 ?source1 ?sentence2 ?source2 LIMIT {limit}"
    )


def _values_clause(variables: str, rows: Sequence[Sequence[str]]) -> str:
    """Build a VALUES clause with the index of each row."""
    formatted_rows = " ".join(f"({' '.join(row)} {rank})" for rank, row in enumerate(rows))
    return f"VALUES ({' '.join(f'?{variable}' for variable in variables.split())}) {{ {formatted_rows} }}"


# Limits of the size of a SPARQL statement: the depth of its expressions and groups, and the number of
# patterns that an engine must join.
#
# Oxigraph 0.5 crashes, with everything that it serves, at about 2,700 BIND, MINUS, VALUES or AS, and at about
# 7,000 +, || or UNION. Joining 100 patterns takes it seconds, and 200 minutes during which nothing stops it:
# the time grows with the fourth power.

_MAX_BRACKETS, _MAX_DEPTH, _MAX_PARTS = 100, 250, 100
_PRECEDENCE = {"||": 2, "&&": 3, "+": 5, "-": 5, "*": 6, "/": 6, "|": 6, "!": 7, "^": 7, "?": 7}
_PRECEDENCE |= dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT"), 4)
# words before braces without a pattern
_DATA_WORDS = frozenset("DATA INSERT DELETE CONSTRUCT VALUES".split())
_TOP, _PATTERN, _DATA, _LIST, _EXPRESSION = "top", "pattern", "telling", "list or path", "expression"
# a piece, the kind of bracket that it stands in, and the kind that it opens, if it does
_NestedToken = tuple[str, str, str]


def refuse_unless_sparql(kind: str, statement: str) -> list[SparqlToken]:
    """Return the tokens of a read or write statement.

    Raises QueryFailed if it is not allowed, or so large that an engine might crash.
    """
    statements.require_statement(statement)
    try:
        statements.require_length(statement)
        tokens = check_statement(kind, statement)
        for reading in tokenize_readings("".join(token.text for token in tokens)):
            nested_tokens = list(_nest_tokens([token for token in reading if token.kind != "space"]))
            statements.require_shallow(
                _nesting_marks(nested_tokens), brackets=_MAX_BRACKETS, depth=_MAX_DEPTH
            )
            statements.require_part_count(_count_parts(nested_tokens), _MAX_PARTS, "patterns to join")
        return tokens
    except (statements.TooLarge, RefusedValue) as refusal:
        raise QueryFailed(statement, str(refusal)) from None


def _nest_tokens(tokens: Sequence[SparqlToken]) -> Iterator[_NestedToken]:
    """Yield the tokens with their positions in the nesting of brackets."""
    frames, words = [_TOP], [""]  # of each open bracket, its kind and the last word before another one
    previous = SparqlToken("", "")
    for token in tokens:
        text = token.text.upper() if token.kind == "word" else token.text if token.kind == "sign" else ""
        if text in ("{", "(", "["):
            opened = _bracket_kind(text, frames[-1], words[-1], previous)
            yield text, frames[-1], opened
            words[-1] = words[-1] if text == "(" else ""  # VALUES (?a ?b) {
            frames.append(opened)
            words.append("")
        else:
            yield text, frames[-1], ""
            if text in ("}", ")", "]") and len(frames) > 1:
                del frames[-1], words[-1]
            elif token.kind == "word":
                words[-1] = text
        previous = token


def _bracket_kind(bracket: str, outer: str, word: str, previous: SparqlToken) -> str:
    """Classify the bracket that opens after a word and a token."""
    if outer == _DATA or (bracket == "{" and word in _DATA_WORDS):
        return _DATA
    if bracket != "(":
        return _PATTERN
    after_word = previous.kind == "word" and previous.text != "a"
    return _LIST if outer == _LIST or (outer == _PATTERN and not after_word) else _EXPRESSION


def _nesting_marks(nested_tokens: Sequence[_NestedToken]) -> Iterator[statements.NestingMark]:
    for text, outer, opened in nested_tokens:
        if opened:
            yield from [1] if outer in (_TOP, _PATTERN) else []  # one more group, filter or column in a row
            yield statements.OPEN
        elif text in ("}", ")", "]"):
            yield statements.CLOSE
        elif (text == ";" and outer == _TOP) or (text in (",", ";") and outer == _EXPRESSION):
            yield 0
        elif text in _PRECEDENCE and outer != _DATA:
            yield _PRECEDENCE[text]


def _count_parts(nested_tokens: Sequence[_NestedToken]) -> int:
    """Count the triples, groups, path steps and list items in patterns."""
    return sum(
        (outer == _PATTERN and (text in (".", ";", ",", "{", "[")))
        or (text == "/" and outer != _DATA)
        or (outer == _LIST and not opened)
        for text, outer, opened in nested_tokens
    )


# The constants of a read statement in SPARQL: variables that are bound to constants, whatever the graph
# contains.

_BOUND_CONSTANT = re.compile(
    rf"\(\s*(?:{statements.LITERAL}|<[^<>\s]*>|\w*:[\w%.-]+)(?:@\w+|\^\^\S+?)?\s+AS\s+[?$](\w+)\s*\)",
    re.I | re.S,
)


def sparql_constants(statement: str) -> StatementConstants:
    """Return the variables that are bound to constants.

    A statement with nothing but BIND, VALUES and FILTER in its braces reads nothing from the graph.
    """
    text = re.sub(r"\bVALUES\b[^{]*\{[^}]*\}", " ", statements.blank_quoted(statement), flags=re.I)
    changed = 1
    while changed:  # from the innermost brackets outwards
        text, changed = re.subn(r"\b(?:BIND|FILTER)?\s*\([^()]*\)", " ", text, flags=re.I)
    braces = text[text.find("{") :] if "{" in text else ""
    body = re.sub(r"\b(?:BIND|FILTER|UNION|OPTIONAL|MINUS)\b", " ", braces, flags=re.I)
    reads_graph = re.search(r"[^\s{}.;]", body) is not None
    return StatementConstants(reads_graph, frozenset(m[1] for m in _BOUND_CONSTANT.finditer(statement)))


def _format_statement(triples: Iterable[rdf.RdfTriple], subject: str) -> str:
    """Format the triples of one subject as a single statement."""
    objects_by_predicate: dict[str, list[str]] = {}
    for _, predicate, object in triples:
        predicate_text = "a" if predicate == rdf.TYPE else format_term(predicate)
        objects_by_predicate.setdefault(predicate_text, []).append(format_term(object))
    return f"{subject} {' ; '.join(' '.join((predicate, ', '.join(objects))) for predicate, objects in objects_by_predicate.items())} ."


def _add_facts(facts: Sequence[Fact]) -> str:
    """Build the statement that adds plain triples, and descriptions of those with properties.

    New values of a property replace the old ones.
    """
    merged: dict[tuple[str, str, str], rdf.Values] = {}
    for triple, properties in facts:
        ends = triple.subject, triple.relation, triple.object
        merged[ends] = {**merged.get(ends, {}), **properties}
    lines, replaced = [], []
    for ends, properties in merged.items():
        resource = rdf.edge_iri((*ends, ""))
        plain, *described = rdf.edge_triples(*ends, {"": properties})
        lines.append(_format_statement([plain], format_term(plain[0])))
        if described:
            lines.append(_format_statement(described, format_term(resource)))
            values = dict.fromkeys(p for _, p, object in described if isinstance(object, rdf.Literal))
            replaced += [f"({format_term(resource)} {format_term(predicate)})" for predicate in values]
    deletion = f"DELETE {{ ?fact ?name ?old }} WHERE {{ VALUES (?fact ?name) {{ {' '.join(replaced)} }} ?fact ?name ?old }} ;\n"
    return (deletion if replaced else "") + "INSERT DATA {\n  " + "\n  ".join(lines) + "\n}"


def _label_nodes(nodes: Sequence[Node]) -> str:
    """Build the statement that adds the labels of nodes, and their properties in place of the old ones."""
    deletions, lines = [], []
    for node in nodes:
        triples = rdf.node_triples(node.id, node.labels, node.properties)
        subject = format_term(triples[0][0])
        lines.append(_format_statement(triples, subject))
        literals = (predicate for _, predicate, object in triples if isinstance(object, rdf.Literal))
        replaced = dict.fromkeys(literals)
        deletions += [f"({subject} {format_term(predicate)})" for predicate in replaced]
    deletion = f"DELETE {{ ?node ?name ?old }} WHERE {{ VALUES (?node ?name) {{ {' '.join(deletions)} }} ?node ?name ?old }} ;\n"
    return (deletion if deletions else "") + "INSERT DATA {\n  " + "\n  ".join(lines) + "\n}"


_NAME = f"""REPLACE(REPLACE(REPLACE(LCASE(REPLACE(STR(?node), "^{rdf.NAMESPACE}", "")), "%2e", "."), "(_|-|%5f)+", " "), "^ | $", "")"""
_NAMED = f"?node a ?kind FILTER(?kind != rdf:Statement) BIND({_NAME} AS ?name) VALUES ?wanted {{ WANTED }} FILTER(CONTAINS(?name, ?wanted))"


def _neighbourhood_query(names: Sequence[str], hops: int) -> str:
    """Build the query for the facts near some names.

    A name matches the things with that name, or else all whose name contains it, ignoring case, _ and -.
    """
    folded = filter(None, map(_normalize_name, names))
    wanted = " ".join(dict.fromkeys(format_term(rdf.Literal(name)) for name in folded))
    matches = _NAMED.replace("WANTED", wanted)
    nodes_query = (
        f"SELECT DISTINCT (?node AS ?n1) WHERE {{ {matches}\n"
        f"  {{ SELECT ?wanted (MIN(STRLEN(?name)) AS ?shortest) WHERE {{ {matches} }} GROUP BY ?wanted }}\n"
        "  FILTER(?name = ?wanted || ?shortest > STRLEN(?wanted)) }"
    )
    for number in range(2, max(1, int(hops)) + 1):
        # a third branch for no step at all, because a path (…)? takes seconds
        one, other = (f"?n{number - 1}", f"?n{number}")
        is_edge = f"FILTER(?p NOT IN ({NON_EDGE_PREDICATES}))"
        nodes_query = (
            f"SELECT DISTINCT {other} WHERE {{ {{ {nodes_query} }}\n"
            f"  {{ {one} ?p {other} {is_edge} }} UNION {{ {other} ?p {one} {is_edge} }} "
            f"UNION {{ {one} a ?kind BIND({one} AS {other}) }} FILTER(isIRI({other})) }}"
        )
    last = f"?n{max(1, int(hops))}"
    return (
        f"SELECT {' '.join(f'?{name}' for name in FACT_VARIABLES)} WHERE {{\n{{ {nodes_query} }}\n"
        f"{{ {last} ?relation ?to }} UNION {{ ?from ?relation {last} }}\n"
        f"BIND(COALESCE(?from, {last}) AS ?subject) BIND(COALESCE(?to, {last}) AS ?object)\n"
        f"FILTER(isIRI(?object) && ?relation NOT IN ({NON_EDGE_PREDICATES}))\n"
        "OPTIONAL { ?fact rdf:subject ?subject ; rdf:predicate ?relation ; rdf:object ?object .\n"
        f'  OPTIONAL {{ ?fact ?property ?value FILTER(isLiteral(?value) && !STRSTARTS(STR(?property), "{rdf.META}")) }} }}\n}}'
    )


def _normalize_name(name: str) -> str:
    """Normalize a name as `_NAME` does."""
    local = rdf.iri_of(name).removeprefix(rdf.NAMESPACE).lower().replace("%2e", ".")
    return re.sub("(_|-|%5f)+", " ", local).strip()


def _format_node(node: Node) -> str:
    triples = rdf.node_triples(node.id, node.labels, node.properties)
    subject = format_term(triples[0][0])
    return _format_statement((triple for triple in triples if not triple[1].startswith(rdf.META)), subject)


def _format_edge(edge: Edge) -> str:
    plain, *described = rdf.edge_triples(edge.source, edge.type, edge.target, {"": edge.properties})
    formatted = _format_statement([plain], format_term(plain[0]))
    if not described:
        return formatted
    shown = (each for each in described if each[1] != rdf.TYPE and not each[1].startswith(rdf.META))
    return f"{formatted} {_format_statement(shown, '[]')}".strip()


SPARQL = Dialect(
    **DIALECT_TEXTS["sparql"],
    add=_add_facts,
    about=_neighbourhood_query,
    paths=sparql_path_query,
    node=_format_node,
    edge=_format_edge,
    label=_label_nodes,
    constants=sparql_constants,
)


# The embedded SPARQL store: Oxigraph in the sandbox.


class SparqlEmbedded(EmbeddedStore):
    """An embedded store for SPARQL 1.1 queries and updates.

    `kgot_lab.sandbox.sparql.rdf` defines how a property graph is RDF. Raises BadInput for what RDF cannot
    represent, as for what does not fit.
    """

    dialect = SPARQL
    language = "sparql"

    def _check_statement(self, kind: str, statement: str) -> None:
        refuse_unless_sparql(kind, statement)
