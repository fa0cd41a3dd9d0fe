"""Check a Cypher statement without a parser: allowed clauses, functions and procedures, size, and constants.

In Cypher two operands are never adjacent, so a word after an operand is an operator or opens a clause: it
must be a known one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kgot_lab.errors import QueryFailed
from kgot_lab.stores import statements
from kgot_lab.stores.protocol import StatementConstants

# Cypher tokens: words, texts, numbers and signs, and which words open a clause.
#
# Words in strings, comments and backticks do not count. Text that servers read in different ways (escapes,
# line ends) is refused.

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<text>'(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*")
      | (?P<quoted>(?:`[^`]*`)+)
      | (?P<number>\d\w*)
      | (?P<word>\w+)
      | (?P<sign>\.\.|::|\+=|\S)""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"\d[\d_]*([eE]\d+)?[fFdD]?|\d[\d_]*[eE]|0[xX][\da-fA-F_]+|0[oO]?[0-7_]+")
# some servers resolve it before parsing, others do not
_ESCAPED = re.compile(r"\\u+([0-9a-fA-F]{4})")
_SIGNS = frozenset("\"'`\\/*\n\r\v\f\x85\u2028\u2029")  # characters that an escape must not produce
_LINE_ENDS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029](?!$)")

READS = frozenset("MATCH OPTIONAL WHERE WITH RETURN UNWIND ORDER SKIP OFFSET LIMIT UNION CALL YIELD".split())
WRITES = frozenset("CREATE MERGE ON SET REMOVE DELETE DETACH FOREACH".split())
CLAUSES = READS | WRITES


@dataclass(frozen=True)
class CypherToken:
    """A token of a statement, with its position."""

    kind: str  # text, quoted, number, word, sign
    text: str  # a word in upper case; empty for a text or a quoted name
    start: int = 0
    end: int = 0


class RefusedClause(Exception):
    """The statement contains something that is not allowed, which the message names."""


def cypher_tokens(statement: str) -> Iterator[CypherToken]:
    """Yield the tokens of a statement, without spaces and comments.

    Raises RefusedClause for text that servers read in different ways.
    """
    for found in _TOKEN.finditer(statement):
        kind, text = str(found.lastgroup), found[0]
        if text == "\\" or any(
            kind == "comment" or chr(int(code, 16)) in _SIGNS for code in _ESCAPED.findall(text)
        ):
            problem = "an escape \\uXXXX stands for a sign of the language, or outside of a text"
            raise RefusedClause(f"{problem}; write the character itself")
        if kind == "comment":
            if _LINE_ENDS.search(text) or "/*" in text[2:]:
                raise RefusedClause("a comment holds another comment or an odd line end: leave it out")
        elif kind == "word":
            yield CypherToken(kind, unicodedata.normalize("NFKC", text).upper(), *found.span())
        elif kind == "number" and not _NUMBER.fullmatch(text):
            raise RefusedClause(f"put a space after the number in {text[:40]!r}")
        # raised at the first, since searching the end of each other would be slow
        elif text == "/" and statement.startswith("/*", found.start()):
            raise RefusedClause("a comment that begins with /* has no end")
        elif text in ("'", '"', "`"):
            raise RefusedClause(f"a text that begins with {text} has no end")
        elif kind == "sign" and unicodedata.category(text[0]) in ("Cc", "Cf"):
            raise RefusedClause(f"the invisible character U+{ord(text):04X} stands outside of a text")
        else:
            yield CypherToken(kind, text if kind in ("sign", "number") else "", *found.span())


def is_name(before: CypherToken, previous: CypherToken, following: CypherToken) -> bool:
    """Return whether a word names a property, label, type, parameter or map key, and so opens no clause.

    Raises RefusedClause after a number that ends in a point.
    """
    if previous.text == "." and before.kind == "number":
        raise RefusedClause("put a space or a digit after a number's point")
    return previous.text in (".", ":", "$") or (previous.text in ("{", ",") and following.text == ":")


# Limits of the size of a Cypher statement: the depth of its expressions, and the number of its clauses and
# patterns.
#
# ArcadeDB drops the connection at about 2,000 patterns of one MATCH or 4,000 steps of one path, and needs
# seconds to parse 120 brackets.

_MAX_BRACKETS, _MAX_DEPTH, _MAX_PARTS = 50, 100, 750
_PRECEDENCE = {"OR": 1, "XOR": 2, "AND": 3, "NOT": 4, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, "^": 8}
_PRECEDENCE |= {".": 9, "[": 9} | dict.fromkeys(("=", "<", ">", "IN", "STARTS", "ENDS", "CONTAINS", "IS"), 5)
_CLOSING = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
_SEPARATORS = {",", "|", "AS", "WHEN", "THEN", "ELSE"}
_NO_TOKEN = CypherToken("sign", "")


def require_small_statement(tokens: Sequence[CypherToken]) -> None:
    """Raise TooLarge for a statement that may crash an engine."""
    significant = [
        CypherToken(token.kind, "") if token.kind == "word" and is_name(two_before, before, after) else token
        for two_before, (before, token, after) in zip(
            [_NO_TOKEN, _NO_TOKEN, *tokens], _with_neighbours(tokens), strict=False
        )
    ]
    statements.require_shallow(_nesting_marks(significant), brackets=_MAX_BRACKETS, depth=_MAX_DEPTH)
    statements.require_part_count(_count_parts(significant), _MAX_PARTS, "clauses and patterns")


def _nesting_marks(tokens: Sequence[CypherToken]) -> Iterator[statements.NestingMark]:
    opened: list[str] = []  # the closing sign of each open bracket; END may also name a variable
    for before, token, after in _with_neighbours(tokens):
        if token.text in _CLOSING:
            yield from [_PRECEDENCE[token.text]] if token.text in _PRECEDENCE else []
            yield statements.OPEN
            opened.append(_CLOSING[token.text])
        elif token.text in opened and (token.text != "END" or opened[-1] == "END"):
            yield statements.CLOSE
            while opened.pop() != token.text:
                yield statements.CLOSE
        elif token.text == "WITH" and before.text in ("STARTS", "ENDS"):
            continue
        elif token.text in CLAUSES | _SEPARATORS or _is_step(before, token, after):
            yield 0
        elif token.text in _PRECEDENCE:
            yield _PRECEDENCE[token.text]


def _count_parts(tokens: Sequence[CypherToken]) -> int:
    """Count the clauses, and the paths and steps in their patterns."""
    parts = 0
    clauses = [""]  # of each open bracket, the clause that is being read
    for before, token, after in _with_neighbours(tokens):
        if token.text in ("(", "[", "{"):
            clauses.append("")
        elif token.text in (")", "]", "}"):
            clauses = clauses[:-1] or [""]
        elif token.text in CLAUSES:
            clauses[-1] = token.text
            parts += 1
        else:
            is_path = token.text == "," and clauses[-1] == "MATCH"
            parts += is_path or (after.text in ("-", "[") and _is_step(before, token, after))
    return parts


def _is_step(before: CypherToken, token: CypherToken, after: CypherToken) -> bool:
    """Return whether a sign is part of a relationship's arrow, judged by its neighbours."""
    return token.text == "-" and (after.text in ("-", "[", ">") or before.text in ("-", "]", "<"))


def _with_neighbours(tokens: Sequence[CypherToken]) -> Iterator[tuple[CypherToken, CypherToken, CypherToken]]:
    return zip([_NO_TOKEN, *tokens], tokens, [*tokens[1:], _NO_TOKEN], strict=False)


_FORBIDDEN = frozenset("LOAD DROP ALTER GRANT DENY REVOKE INSERT NODETACH TRANSACTIONS".split())
_OPERATORS = frozenset(
    "AND OR XOR NOT IN IS STARTS ENDS CONTAINS AS BY ALL DISTINCT ASC ASCENDING DESC DESCENDING CASE WHEN THEN ELSE END SHORTEST".split()
)
# after these, as after an operand, a clause may begin
_OPERAND_ENDS = frozenset("END ASC ASCENDING DESC DESCENDING SHORTEST".split())
_FIRST_CLAUSES = frozenset("MATCH OPTIONAL WITH RETURN UNWIND CALL CREATE MERGE FOREACH".split())
_PROCEDURES = frozenset(("DB.LABELS", "DB.RELATIONSHIPTYPES", "DB.PROPERTYKEYS"))
_FUNCTIONS = frozenset(
    """ABS ACOS ALL ALLSHORTESTPATHS ANY ASIN ATAN ATAN2 AVG BTRIM CEIL CEILING CHAR_LENGTH CHARACTER_LENGTH COALESCE COLLECT COS COSH COT
    COTH COUNT DATE DATETIME DEGREES DISTANCE DURATION E ELEMENTID ENDNODE EXISTS EXP EXTRACT FILTER FLOOR HAVERSIN HEAD ID ISEMPTY ISNAN
    KEYS LABELS LAST LEFT LENGTH LN LOCALDATETIME LOCALTIME LOG LOG10 LOWER LTRIM MAX MIN NODES NONE NORMALIZE NULLIF PERCENTILECONT
    PERCENTILEDISC PI POINT PROPERTIES RADIANS RAND RANDOMUUID RANGE REDUCE RELATIONSHIPS RELS REPLACE REVERSE RIGHT ROUND RTRIM
    SHORTESTPATH SIGN SIN SINGLE SINH SIZE SPLIT SQRT STARTNODE STDEV STDEVP SUBSTRING SUM TAIL TAN TANH TIME TIMESTAMP TOBOOLEAN
    TOBOOLEANLIST TOBOOLEANORNULL TOFLOAT TOFLOATLIST TOFLOATORNULL TOINTEGER TOINTEGERLIST TOINTEGERORNULL TOINT TOLOWER TOSTRING
    TOSTRINGLIST TOSTRINGORNULL TOUPPER TRIM TYPE UPPER VALUETYPE""".split()
)
# date.truncate and the like
_FUNCTION_NAMESPACES = frozenset("DATE DATETIME DURATION LOCALDATETIME LOCALTIME POINT TIME".split())


def refuse_unless_cypher_read(statement: str) -> None:
    """Raise QueryFailed, naming the clause, unless a statement only reads the graph."""
    _check_statement(statement, "read", READS)


def refuse_unless_cypher_write(statement: str) -> None:
    """Raise QueryFailed, naming the clause, unless a statement only reads and changes the graph.

    Files, schema and servers are not allowed.
    """
    _check_statement(statement, "write", READS | WRITES)


def _check_statement(statement: str, kind: str, clauses: frozenset[str]) -> None:
    statements.require_statement(statement)
    try:
        statements.require_length(statement)
        tokens = list(cypher_tokens(statement))
        require_small_statement(tokens)
        _check_ends(tokens)
        _check_words(tokens, kind, clauses)
    except statements.TooLarge as refusal:
        raise QueryFailed(statement, str(refusal)) from None
    except RefusedClause as refusal:
        raise QueryFailed(statement, f"{refusal}. A {kind} may use {_list_clauses(clauses)}.") from None


def _check_ends(tokens: list[CypherToken]) -> None:
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise RefusedClause("the statement is empty")
    if any(token.text == ";" for token in tokens):
        raise RefusedClause("several statements in one; write one statement, without ;")
    if tokens[0].text not in _FIRST_CLAUSES:
        raise RefusedClause(f"a statement may not begin with {tokens[0].text or 'a text'}")


def _check_words(tokens: list[CypherToken], kind: str, clauses: frozenset[str]) -> None:
    known = clauses | _OPERATORS
    before, after = CypherToken("sign", "("), CypherToken("sign", "")
    previous = before
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else after
        if token.kind == "word" and not is_name(before, previous, following):
            if token.text in _FORBIDDEN | WRITES and token.text not in clauses:
                problem = f"a {kind} may not {_clause_text(token, following)}"
                raise RefusedClause(f"{problem}; put backticks around a name that looks like a clause")
            if _ends_operand(before, previous) and token.text not in known:
                raise RefusedClause(f"no clause or operator {_clause_text(token, following)} may stand here")
            if token.text == "CALL":
                _check_call(tokens[index + 1 :])
            if token.text == "CREATE":
                _check_create(tokens[index + 1 :])
        if following.text == "(" and token.kind in ("word", "quoted") and token.text not in known:
            _check_function(tokens[: index + 1])
        before, previous = previous, token


def _ends_operand(before: CypherToken, previous: CypherToken) -> bool:
    if previous.text == "*":  # all columns, or a multiplication
        return before.text in (",", "(") or (before.kind == "word" and before.text in READS | {"DISTINCT"})
    if previous.kind == "word":
        opens_operand = previous.text in READS | WRITES | _OPERATORS and previous.text not in _OPERAND_ENDS
        return before.text in (".", ":", "$") or not opens_operand
    return previous.kind != "sign" or previous.text in (")", "]", "}")


def _check_call(rest: list[CypherToken]) -> None:
    """Check a CALL: a subquery, or one of a few procedures that only list names.

    The clauses of a subquery are checked like all others. Raises RefusedClause for any other procedure.
    """
    if rest and rest[0].text in ("{", "("):
        return
    name = _dotted_name(rest)
    if name not in _PROCEDURES:
        raise RefusedClause(f"CALL of {name.lower() or 'this'} is not allowed, only CALL {{a subquery}}")


def _check_create(rest: list[CypherToken]) -> None:
    """Check that CREATE is followed by a pattern, or is the ON CREATE before SET.

    Raises RefusedClause for anything else, which belongs to the server: an index, a constraint, a user.
    """
    words = [token.text for token in rest[:2]]
    if words[:1] not in (["("], ["SET"]) and words[1:] != ["="]:
        raise RefusedClause(f"CREATE {' '.join(words)} is not allowed, only CREATE (a pattern)")


def _dotted_name(tokens: list[CypherToken]) -> str:
    parts = []
    for index, token in enumerate(tokens):
        if token.kind != ("sign" if index % 2 else "word") or (index % 2 and token.text != "."):
            break
        parts.append(token.text)
    return "".join(parts)


def _check_function(tokens: list[CypherToken]) -> None:
    """Check that the function whose name ends these tokens belongs to the language.

    Raises RefusedClause for one that a server or its plugins add.
    """
    parts = [tokens[-1]]
    while len(tokens) > 2 and tokens[-2].text == ".":
        tokens = tokens[:-2]
        parts.insert(0, tokens[-1])
    is_call = len(tokens) > 1 and tokens[-2].text == "CALL"
    names = [part.text for part in parts]
    is_known = names[0] in (_FUNCTIONS if len(names) == 1 else _FUNCTION_NAMESPACES)
    if not (is_call or is_known) or any(part.kind != "word" for part in parts):
        raise RefusedClause(f"there is no function {'.'.join(names).lower() or 'in backticks'} here")


def _clause_text(token: CypherToken, following: CypherToken) -> str:
    is_pair = following.kind == "word" and token.text in _FORBIDDEN
    return f"{token.text} {following.text}" if is_pair else token.text


def _list_clauses(clauses: frozenset[str]) -> str:
    order = "MATCH OPTIONAL WHERE WITH RETURN UNWIND ORDER SKIP LIMIT UNION CREATE MERGE SET REMOVE DELETE DETACH FOREACH".split()
    pairs = {"OPTIONAL": "OPTIONAL MATCH", "ORDER": "ORDER BY", "DETACH": "DETACH DELETE"}
    return ", ".join(pairs.get(clause, clause) for clause in order if clause in clauses)


# The constants of a read statement in Cypher: columns that are literals, whatever the graph contains.

_ALIAS = re.compile(rf"^{statements.LITERAL}(?:\s+AS\s+`?(\w+)`?)?$", re.I | re.S)
_NAMED = re.compile(rf"(?:\bWITH\b|,)\s*{statements.LITERAL}\s+AS\s+`?(\w+)`?", re.I | re.S)


def cypher_constants(statement: str) -> StatementConstants:
    """Return the columns that are literals, or names of literals, in every branch of a UNION."""
    comments = list(re.finditer(r"//[^\n]*|/\*.*?\*/", statements.blank_quoted(statement), re.S))
    for comment in reversed(comments):
        statement = f"{statement[: comment.start()]} {statement[comment.end() :]}"
    plain = statements.blank_quoted(statement)
    reads_graph = re.search(r"\b(MATCH|CALL)\b", plain, re.I) is not None
    unions = [match.span() for match in re.finditer(r"\bUNION\b(?:\s+ALL\b)?", plain, re.I)]
    bounds = zip([0, *(end for _, end in unions)], [*(start for start, _ in unions), len(plain)], strict=True)
    columns = (_literal_columns(statement[start:end], plain[start:end]) for start, end in bounds)
    return StatementConstants(reads_graph, frozenset.intersection(*columns))


def _literal_columns(branch: str, plain: str) -> frozenset[str]:
    """Return the columns of the last RETURN of a statement that are literals.

    `plain` is the same text with everything quoted blanked out.
    """
    *_, start = [0, *(match.end() for match in re.finditer(r"\bRETURN\b(?:\s+DISTINCT\b)?", plain, re.I))]
    stop = re.search(r"\b(?:ORDER\s+BY|SKIP|OFFSET|LIMIT)\b|;|$", plain[start:], re.I)
    last = branch[start : start + stop.start() if stop else None]
    literal_names = {match[1] for match in _NAMED.finditer(branch[:start])}
    columns = set()
    for item in map(str.strip, _items(last)):
        if literal := _ALIAS.match(item):
            columns.add(literal[1] or literal[0].strip())
            continue
        alias = re.fullmatch(r"(\w+)(?:\s+AS\s+`?(\w+)`?)?", item, re.I)
        if alias and alias[1] in literal_names:
            columns.add(alias[2] or alias[1])
    return frozenset(columns)


def _items(text: str) -> Iterator[str]:
    """Yield the comma-separated parts of a text, ignoring commas in brackets and quotes."""
    depth, item = 0, ""
    for piece in re.findall(rf"{statements.LITERAL}|.", text, re.S):
        depth += (piece in "([{") - (piece in ")]}") if len(piece) == 1 else 0
        if piece == "," and depth == 0:
            yield item
            item = ""
        else:
            item += piece
    yield item
