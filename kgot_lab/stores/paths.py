"""What every language is asked for when paths of sentences are read, so that all give the same rows in the
same order.

`PATH_COLUMNS` are the columns of a row, "" where a path has no such part; the best come first, ties by
`PATH_ORDER`. A path that begins with a fact has no `place_1`: its first sentence and source are the fact's
own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kgot_lab.errors import BadInput, described_value, require_count

_DIGITS = 6  # of a worth behind the point: every engine reads so short a number exactly


class PathQuery(NamedTuple):
    """From which names, over which sentences (what each is worth by its node), and how many rows; all in
    alphabetical order.
    """

    names: tuple[str, ...]
    worth: Mapping[str, float]
    most: int


def path_query(names: Sequence[str], worth: Mapping[str, float], most: int) -> PathQuery:
    """What is asked, without the names that no node can have: those with half a surrogate pair. Raises
    BadInput for what is no number.
    """
    require_count(most, 1, "the number of paths")
    if isinstance(names, str) or not all(isinstance(name, str) for name in (*names, *worth)):
        raise BadInput(
            "paths are read from a list of names, as texts, over sentences by the ids of their nodes"
        )
    for place, value in worth.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadInput(
                f"what the sentence {place!r} is worth must be a number, not {described_value(value)}"
            )
    numbers = {
        place: round(float(worth[place]), _DIGITS) + 0.0 for place in sorted(filter(_is_writable, worth))
    }  # + 0.0: no -0.0
    return PathQuery(tuple(sorted(set(filter(_is_writable, names)))), numbers, most)


def python_paths(names: Sequence[str], worth: Mapping[str, float], most: int) -> str:
    """The statement in Python that reads paths."""
    asked = path_query(names, worth, most)
    return f"result = paths({list(asked.names)!r}, {asked.worth!r}, {most})"


def _is_writable(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False
