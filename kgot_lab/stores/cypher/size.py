"""How large a Cypher statement may be: the depth of its expressions, and the number of its clauses and
patterns.

ArcadeDB drops the connection at some 2,000 patterns of one MATCH or 4,000 steps of one path, and needs
seconds to read 120 brackets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgot_lab.stores.cypher.statements import CLAUSES, CypherToken, is_name
from kgot_lab.stores.statements import CLOSE, OPEN, Mark, require_few, require_flat

_BRACKETS, _DEPTH, _PARTS = 50, 100, 750
_BINDING = {
    "OR": 1,
    "XOR": 2,
    "AND": 3,
    "NOT": 4,
    "+": 6,
    "-": 6,
    "*": 7,
    "/": 7,
    "%": 7,
    "^": 8,
    ".": 9,
    "[": 9,
    **dict.fromkeys(("=", "<", ">", "IN", "STARTS", "ENDS", "CONTAINS", "IS"), 5),
}
_CLOSING = {"(": ")", "[": "]", "{": "}", "CASE": "END"}
_NONE = CypherToken("sign", "")


def require_small(tokens: Sequence[CypherToken]) -> None:
    """Raise TooLarge for a statement that an engine might not survive."""
    read = [
        CypherToken(token.kind, "") if token.kind == "word" and is_name(two_before, before, after) else token
        for two_before, before, token, after in zip(
            [_NONE, _NONE, *tokens], [_NONE, *tokens], tokens, [*tokens[1:], _NONE], strict=False
        )
    ]
    require_flat(_marks(read), brackets=_BRACKETS, depth=_DEPTH)
    require_few(_parts(read), _PARTS, "clauses and patterns")


def _marks(tokens: Sequence[CypherToken]) -> Iterator[Mark]:
    opened: list[str] = []  # what closes each open bracket; END may be the name of a variable, too
    for before, token, after in _around(tokens):
        if token.text in _CLOSING:
            yield from [_BINDING[token.text]] if token.text in _BINDING else []
            yield OPEN
            opened.append(_CLOSING[token.text])
        elif (
            token.text in _CLOSING.values()
            and token.text in opened
            and (token.text != "END" or opened[-1] == "END")
        ):
            yield CLOSE
            while opened.pop() != token.text:
                yield CLOSE
        elif token.text == "WITH" and before.text in ("STARTS", "ENDS"):
            continue
        elif (
            token.text in CLAUSES
            or token.text in (",", "|", "AS", "WHEN", "THEN", "ELSE")
            or _is_step(before, token, after)
        ):
            yield 0
        elif token.text in _BINDING:
            yield _BINDING[token.text]


def _parts(tokens: Sequence[CypherToken]) -> int:
    """How many clauses there are, and paths and steps in their patterns."""
    parts = 0
    clauses = [""]  # of each open bracket, the clause that is being read
    for before, token, after in _around(tokens):
        if token.text in ("(", "[", "{"):
            clauses.append("")
        elif token.text in (")", "]", "}"):
            clauses = clauses[:-1] or [""]
        elif token.text in CLAUSES:
            clauses[-1] = token.text
            parts += 1
        elif (token.text == "," and clauses[-1] == "MATCH") or (
            _is_step(before, token, after) and after.text in ("-", "[")
        ):
            parts += 1
    return parts


def _is_step(before: CypherToken, token: CypherToken, after: CypherToken) -> bool:
    """Whether a sign is, by its neighbours, a part of a relationship's arrow."""
    return token.text == "-" and (after.text in ("-", "[", ">") or before.text in ("-", "]", "<"))


def _around(tokens: Sequence[CypherToken]) -> Iterator[tuple[CypherToken, CypherToken, CypherToken]]:
    return zip([_NONE, *tokens], tokens, [*tokens[1:], _NONE], strict=False)
