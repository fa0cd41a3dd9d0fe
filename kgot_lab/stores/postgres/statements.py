"""Which statements may be sent to PostgreSQL, beyond what the role they run as is denied, and what the
server's errors say of them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kgot_lab.errors import QueryFailed
from kgot_lab.stores.sql import refuse_unless_sql_read, refuse_unless_sql_write
from kgot_lab.stores.statements import require_statement

if TYPE_CHECKING:
    import psycopg

_TOKEN = re.compile(
    r"""'(?:[^']|'')*'|--[^\n]*|/\*.*?\*/|(?P<name>"(?:[^"]|"")*"|[^\W\d][\w$]*)|(?P<sign>\S)""", re.DOTALL
)
WRITABLE = ("nodes", "edges", "facts")
# Volatile functions read and write files, sleep, lock, signal, notify, change settings and run text as SQL;
# these few do not.
HARMLESS = ("random", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7", "clock_timestamp", "timeofday")


def checked_read(statement: str) -> str:
    """A single statement that reads, without its semicolon; raises QueryFailed."""
    _refuse_unsendable(statement)
    refuse_unless_sql_read(statement)
    _refuse_escaped_names(statement)
    for token in _TOKEN.finditer(statement):
        if token["sign"] == ";":
            return f"{statement[: token.start()]} {statement[token.end() :]}"
    return statement


def checked_write(statement: str) -> str:
    """A single statement that writes to our tables alone; raises QueryFailed."""
    _refuse_unsendable(statement)
    refuse_unless_sql_write(statement)
    _refuse_escaped_names(statement)
    tokens = _tokens(statement)
    for number, token in enumerate(tokens):
        before, after = tokens[max(0, number - 1) : number], tokens[number + 1 : number + 4]
        # FOR UPDATE, FOR NO KEY UPDATE, ON CONFLICT … DO UPDATE
        updates = token == "update" and before not in (["for"], ["key"], ["do"])
        if updates or (token, before) in (("from", ["delete"]), ("into", ["insert"])):
            _refuse_other_table(statement, after)
        elif token in ("merge", "into"):
            raise QueryFailed(
                statement, f"{token.upper()} cannot be used here: write INSERT INTO, UPDATE or DELETE FROM"
            )
    return statement


def functions_called(statement: str) -> list[str]:
    """The functions that a statement could call, and whatever else stands before a bracket."""
    tokens = _tokens(statement)
    return sorted({name for name, sign in pairwise(tokens) if sign == "("})


def refuse_calls(connection: psycopg.Connection[Any], statement: str) -> None:
    """Raise QueryFailed where a statement calls a function that may do more than compute: one the server
    calls volatile.
    """
    names = functions_called(statement)
    found = (
        names
        and connection.execute(
            "SELECT proname FROM pg_catalog.pg_proc WHERE proname = ANY(%s) AND provolatile = 'v' AND proname <> ALL(%s) LIMIT 1",
            (names, list(HARMLESS)),
        ).fetchone()
    )
    if found:
        raise QueryFailed(statement, f"a statement cannot call {found[0]}: it may do more than compute")


def postgres_reason(error: psycopg.Error, statement: str, *, offset: int = 0, seconds: float) -> str:
    """What the server says is wrong, and where in the statement, `offset` characters into what was sent (pass
    '' to leave that out).
    """
    if error.sqlstate == "57014":
        return f"the statement took longer than {seconds:g} seconds"
    told = error.diag
    parts = [told.message_primary or str(error)]
    place = int(told.statement_position or 0) - offset
    if 0 < place <= len(statement):
        line = statement.count("\n", 0, place - 1) + 1
        parts.append(f"at character {place}, line {line}: {statement[place - 1 : place + 39]!r}")
    parts += [
        f"{kind}: {text}"
        for kind, text in (("detail", told.message_detail), ("hint", told.message_hint))
        if text
    ]
    return "\n".join(parts)


def _refuse_unsendable(statement: str) -> None:
    require_statement(statement)
    try:
        statement.encode()
    except UnicodeEncodeError:
        raise QueryFailed(statement, "the statement holds half a surrogate pair, which is no text") from None
    if "\0" in statement:
        raise QueryFailed(statement, "the statement holds a null byte, which PostgreSQL cannot read or keep")


def _refuse_escaped_names(statement: str) -> None:
    tokens = _tokens(statement, quotes=True)
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if one == "u" and two == "&" and three[0] in "\"'":
            raise QueryFailed(
                statement,
                "texts and names with escapes (U&) cannot be used here: write the characters themselves",
            )


def _refuse_other_table(statement: str, after: list[str]) -> None:
    name, *then = [token for token in after if token != "only"] or [""]
    if name not in WRITABLE or then[:1] == ["."]:
        raise QueryFailed(
            statement,
            f"a statement writes to nodes, edges or facts, named so, and not to {name or 'nothing'}",
        )


def _tokens(statement: str, *, quotes: bool = False) -> list[str]:
    """Names and signs, names as the server compares them; with `quotes` as they are written, texts too."""
    found = []
    for token in _TOKEN.finditer(statement):
        if token["sign"] or (quotes and token[0][0] in "\"'"):
            found.append(token[0])
        elif name := token["name"]:
            found.append(name[1:-1].replace('""', '"') if name[0] == '"' else name.lower())
    return found
