"""How large a statement may be that is sent to an engine: engines read and plan by recursion, and some end
with all that they hold.

Bounds are counted over the words of a statement, so that one that breaks them is not parsed by anybody.
"""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_STATEMENT = 250_000
OPEN, CLOSE = "open", "close"
# OPEN, CLOSE, or how tightly an operator binds: 1 the least, and 0 for what ends all chains, as a comma does
Mark = str | int


class TooLarge(Exception):
    """A statement is larger than may be sent; the message says the limit."""


def require_length(statement: str) -> None:
    """Raise TooLarge for a statement of more characters than are looked at."""
    if len(statement) > LONGEST_STATEMENT:
        raise TooLarge(
            f"the statement has {len(statement):,} characters; {LONGEST_STATEMENT:,} is the most: write several smaller ones"
        )


def require_flat(marks: Iterable[Mark], *, brackets: int, depth: int) -> None:
    """Raise TooLarge where brackets are nested deeper than `brackets`, or where they and the links of the
    chains around them pass `depth`.

    Of a + b * c * d OR e, a parser makes a tree as deep as its chains are long: one OR, one +, two *. An
    operator that binds less ends the chains of those that bind more.
    """
    # of each open bracket, the links of its chains by how tightly they bind
    frames: list[dict[int, int]] = [{}]
    links = 0
    for mark in marks:
        if mark == OPEN:
            frames.append({})
        elif mark == CLOSE:
            links -= sum(frames.pop().values()) if len(frames) > 1 else 0
        elif isinstance(mark, int):
            ended = [level for level in frames[-1] if level > mark]
            links += bool(mark) - sum(frames[-1].pop(level) for level in ended)
            if mark:
                frames[-1][mark] = frames[-1].get(mark, 0) + 1
        if len(frames) - 1 > brackets:
            raise TooLarge(f"brackets are nested more than {brackets} deep, which is the most")
        if len(frames) - 1 + links > depth:
            raise TooLarge(
                f"operators and brackets follow each other more than {depth} deep, which is the most: write several statements"
            )


def require_few(parts: int, most: int, what: str) -> None:
    """Raise TooLarge for more of something than an engine can plan."""
    if parts > most:
        raise TooLarge(
            f"the statement has {parts:,} {what}; {most:,} is the most: write several smaller ones"
        )
