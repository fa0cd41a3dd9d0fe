"""How large a SPARQL statement may be: the depth of its expressions and groups, and the number of patterns
that an engine has to join.

Oxigraph 0.5 ends, with all that it serves, at some 2,700 times BIND, MINUS, VALUES or AS, and at some 7,000
times +, || or UNION. Joining 100 patterns takes it seconds, and 200 minutes in which nothing stops it: the
time grows with the fourth power.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgot_lab.errors import QueryFailed
from kgot_lab.sandbox.sparql.statements import SparqlToken, checked_statement, readings
from kgot_lab.sandbox.worker.values import RefusedValue
from kgot_lab.stores.statements import (
    CLOSE,
    OPEN,
    Mark,
    TooLarge,
    require_few,
    require_flat,
    require_length,
    require_statement,
)

_BRACKETS, _DEPTH, _PARTS = 100, 250, 100
_BINDING = {
    "||": 2,
    "&&": 3,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "|": 6,
    "!": 7,
    "^": 7,
    "?": 7,
    **dict.fromkeys(("=", "!=", "<", ">", "<=", ">=", "IN", "NOT"), 4),
}
_TOLD = frozenset("DATA INSERT DELETE CONSTRUCT VALUES".split())  # words before braces that hold no pattern
_TOP, _PATTERN, _TELLING, _LIST, _EXPRESSION = "top", "pattern", "telling", "list or path", "expression"
# a piece, the kind of bracket that it stands in, and the kind that it opens, if it does
_Placed = tuple[str, str, str]


def refuse_unless_sparql(do: str, statement: str) -> list[SparqlToken]:
    """The pieces of a read or a write; raises QueryFailed for one that may not be run, or that an engine
    might not survive.
    """
    require_statement(statement)
    try:
        require_length(statement)
        found = checked_statement(do, statement)
        for reading in readings("".join(token.text for token in found)):
            placed = list(_placed([token for token in reading if token.kind != "space"]))
            require_flat(_marks(placed), brackets=_BRACKETS, depth=_DEPTH)
            require_few(_parts(placed), _PARTS, "patterns to join")
        return found
    except (TooLarge, RefusedValue) as refusal:
        raise QueryFailed(statement, str(refusal)) from None


def _placed(said: Sequence[SparqlToken]) -> Iterator[_Placed]:
    """The pieces in their places."""
    frames, words = [_TOP], [""]  # of each open bracket, its kind and the last word before another one
    before = SparqlToken("", "")
    for token in said:
        text = token.text.upper() if token.kind == "word" else token.text if token.kind == "sign" else ""
        if text in ("{", "(", "["):
            opened = _opened(text, frames[-1], words[-1], before)
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
        before = token


def _opened(bracket: str, inside: str, word: str, before: SparqlToken) -> str:
    """What kind of bracket opens here, after a word and a piece."""
    if inside == _TELLING or (bracket == "{" and word in _TOLD):
        return _TELLING
    if bracket != "(":
        return _PATTERN
    after_word = before.kind == "word" and before.text != "a"
    return _LIST if inside == _LIST or (inside == _PATTERN and not after_word) else _EXPRESSION


def _marks(placed: Sequence[_Placed]) -> Iterator[Mark]:
    for text, inside, opened in placed:
        if opened:
            yield from [1] if inside in (_TOP, _PATTERN) else []  # one more group, filter or column in a row
            yield OPEN
        elif text in ("}", ")", "]"):
            yield CLOSE
        elif (text == ";" and inside == _TOP) or (text in (",", ";") and inside == _EXPRESSION):
            yield 0
        elif text in _BINDING and inside != _TELLING:
            yield _BINDING[text]


def _parts(placed: Sequence[_Placed]) -> int:
    """How many triples, groups, steps of paths and items of lists stand in patterns."""
    return sum(
        (inside == _PATTERN and (text in (".", ";", ",", "{", "[")))
        or (text == "/" and inside != _TELLING)
        or (inside == _LIST and not opened)
        for text, inside, opened in placed
    )
