"""Which clauses, functions and procedures of Cypher a statement may use: an allow-list over its words,
without a parser.

Two operands never stand side by side in Cypher, so a word that follows an operand is an operator or opens a
clause: it must be one we know.
"""

from __future__ import annotations

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.cypher.statements import (
    READS,
    WRITES,
    CypherToken,
    RefusedClause,
    cypher_tokens,
    is_name,
    require_small,
)
from kgot_lab.stores.statements import TooLarge, require_length, require_statement

_NEVER = frozenset("LOAD DROP ALTER GRANT DENY REVOKE INSERT NODETACH TRANSACTIONS".split())
_OPERATORS = frozenset(
    "AND OR XOR NOT IN IS STARTS ENDS CONTAINS AS BY ALL DISTINCT ASC ASCENDING DESC DESCENDING CASE WHEN THEN ELSE END SHORTEST".split()
)
# after these, as after an operand, a clause may begin
_ENDS = frozenset("END ASC ASCENDING DESC DESCENDING SHORTEST".split())
_FIRST = frozenset("MATCH OPTIONAL WITH RETURN UNWIND CALL CREATE MERGE FOREACH".split())
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
_SPACES = frozenset("DATE DATETIME DURATION LOCALDATETIME LOCALTIME POINT TIME".split())


def refuse_unless_cypher_read(statement: str) -> None:
    """Raise QueryFailed, naming the clause, unless a statement only reads the graph."""
    _check(statement, "read", READS)


def refuse_unless_cypher_write(statement: str) -> None:
    """Raise QueryFailed, naming the clause, unless a statement only reads and changes the graph: no files, no
    schema, no servers.
    """
    _check(statement, "write", READS | WRITES)


def _check(statement: str, what: str, clauses: frozenset[str]) -> None:
    require_statement(statement)
    try:
        require_length(statement)
        tokens = list(cypher_tokens(statement))
        require_small(tokens)
        _check_ends(tokens)
        _check_words(tokens, what, clauses)
    except TooLarge as refusal:
        raise QueryFailed(statement, str(refusal)) from None
    except RefusedClause as refusal:
        raise QueryFailed(statement, f"{refusal}. A {what} may use {_listed(clauses)}.") from None


def _check_ends(tokens: list[CypherToken]) -> None:
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        raise RefusedClause("the statement is empty")
    if any(token.text == ";" for token in tokens):
        raise RefusedClause("several statements in one; write one statement, without ;")
    if tokens[0].text not in _FIRST:
        raise RefusedClause(f"a statement may not begin with {tokens[0].text or 'a text'}")


def _check_words(tokens: list[CypherToken], what: str, clauses: frozenset[str]) -> None:
    known = clauses | _OPERATORS
    before, after = CypherToken("sign", "("), CypherToken("sign", "")
    previous = before
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else after
        if token.kind == "word" and not is_name(before, previous, following):
            if token.text in _NEVER | WRITES and token.text not in clauses:
                raise RefusedClause(
                    f"a {what} may not {_clause(token, following)}; put backticks around a name that looks like a clause"
                )
            if _ends_operand(before, previous) and token.text not in known:
                raise RefusedClause(f"no clause or operator {_clause(token, following)} may stand here")
            if token.text == "CALL":
                _check_call(tokens[at + 1 :])
            if token.text == "CREATE":
                _check_create(tokens[at + 1 :])
        if following.text == "(" and token.kind in ("word", "quoted") and token.text not in known:
            _check_function(tokens[: at + 1])
        before, previous = previous, token


def _ends_operand(before: CypherToken, previous: CypherToken) -> bool:
    if previous.text == "*":  # all columns, or a multiplication
        return before.text in (",", "(") or (before.kind == "word" and before.text in READS | {"DISTINCT"})
    if previous.kind == "word":
        return (
            before.text in (".", ":", "$")
            or previous.text not in READS | WRITES | _OPERATORS
            or previous.text in _ENDS
        )
    return previous.kind != "sign" or previous.text in (")", "]", "}")


def _check_call(rest: list[CypherToken]) -> None:
    """A subquery, whose clauses are checked like all others, or one of a few procedures that only name what
    there is.
    """
    if rest and rest[0].text in ("{", "("):
        return
    name = _dotted(rest)
    if name not in _PROCEDURES:
        raise RefusedClause(f"CALL of {name.lower() or 'this'} is not allowed, only CALL {{a subquery}}")


def _check_create(rest: list[CypherToken]) -> None:
    """A pattern, or the SET of ON CREATE; anything else belongs to the server: an index, a constraint, a
    user.
    """
    words = [token.text for token in rest[:2]]
    if words[:1] not in (["("], ["SET"]) and words[1:] != ["="]:
        raise RefusedClause(f"CREATE {' '.join(words)} is not allowed, only CREATE (a pattern)")


def _dotted(tokens: list[CypherToken]) -> str:
    parts = []
    for at, token in enumerate(tokens):
        if token.kind != ("sign" if at % 2 else "word") or (at % 2 and token.text != "."):
            break
        parts.append(token.text)
    return "".join(parts)


def _check_function(tokens: list[CypherToken]) -> None:
    """The function whose name ends these tokens is one of the language, not one that a server or its plugins
    add.
    """
    parts = [tokens[-1]]
    while len(tokens) > 2 and tokens[-2].text == ".":
        tokens = tokens[:-2]
        parts.insert(0, tokens[-1])
    called = len(tokens) > 1 and tokens[-2].text == "CALL"
    names = [part.text for part in parts]
    harmless = names[0] in (_FUNCTIONS if len(names) == 1 else _SPACES)
    if not (called or harmless) or any(part.kind != "word" for part in parts):
        raise RefusedClause(f"there is no function {'.'.join(names).lower() or 'in backticks'} here")


def _clause(token: CypherToken, following: CypherToken) -> str:
    return (
        f"{token.text} {following.text}" if following.kind == "word" and token.text in _NEVER else token.text
    )


def _listed(clauses: frozenset[str]) -> str:
    order = "MATCH OPTIONAL WHERE WITH RETURN UNWIND ORDER SKIP LIMIT UNION CREATE MERGE SET REMOVE DELETE DETACH FOREACH".split()
    return ", ".join(
        {"OPTIONAL": "OPTIONAL MATCH", "ORDER": "ORDER BY", "DETACH": "DETACH DELETE"}.get(each, each)
        for each in order
        if each in clauses
    )
