"""What a read statement in Cypher says by itself: columns that are literals, whatever the graph holds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kgot_lab.stores.protocol import OwnWords
from kgot_lab.stores.statements import LITERAL, blanked

_ALIAS = re.compile(rf"^{LITERAL}(?:\s+AS\s+`?(\w+)`?)?$", re.I | re.S)
_NAMED = re.compile(rf"(?:\bWITH\b|,)\s*{LITERAL}\s+AS\s+`?(\w+)`?", re.I | re.S)


def cypher_words(statement: str) -> OwnWords:
    """The columns that are literals, or names of literals, in every branch of a UNION."""
    for comment in reversed(list(re.finditer(r"//[^\n]*|/\*.*?\*/", blanked(statement), re.S))):
        statement = f"{statement[: comment.start()]} {statement[comment.end() :]}"
    plain = blanked(statement)
    looks = re.search(r"\b(MATCH|CALL)\b", plain, re.I) is not None
    unions = [found.span() for found in re.finditer(r"\bUNION\b(?:\s+ALL\b)?", plain, re.I)]
    bounds = zip([0, *(end for _, end in unions)], [*(start for start, _ in unions), len(plain)], strict=True)
    return OwnWords(
        looks,
        frozenset.intersection(
            *(_literal_columns(statement[start:end], plain[start:end]) for start, end in bounds)
        ),
    )


def _literal_columns(branch: str, plain: str) -> frozenset[str]:
    """The columns of the last RETURN of a statement that are literals; `plain` is the same text with all that
    is quoted blanked.
    """
    *_, start = [0, *(found.end() for found in re.finditer(r"\bRETURN\b(?:\s+DISTINCT\b)?", plain, re.I))]
    stop = re.search(r"\b(?:ORDER\s+BY|SKIP|OFFSET|LIMIT)\b|;|$", plain[start:], re.I)
    last = branch[start : start + stop.start() if stop else None]
    named = {found[1] for found in _NAMED.finditer(branch[:start])}
    columns = set()
    for item in map(str.strip, _items(last)):
        if literal := _ALIAS.match(item):
            columns.add(literal[1] or literal[0].strip())
        elif (alias := re.fullmatch(r"(\w+)(?:\s+AS\s+`?(\w+)`?)?", item, re.I)) and alias[1] in named:
            columns.add(alias[2] or alias[1])
    return frozenset(columns)


def _items(text: str) -> Iterator[str]:
    """The parts of a text between commas that stand in no brackets and no quotes."""
    depth, item = 0, ""
    for piece in re.findall(rf"{LITERAL}|.", text, re.S):
        depth += (piece in "([{") - (piece in ")]}") if len(piece) == 1 else 0
        if piece == "," and depth == 0:
            yield item
            item = ""
        else:
            item += piece
    yield item
