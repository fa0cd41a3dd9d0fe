"""Which rows of a read rest on the graph, and which hold only what the statement itself says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from kgot_lab.stores.lookup import holds_value
from kgot_lab.stores.protocol import OwnWords, Scalar, Store
from kgot_lab.text.words import named_words
from kgot_lab.types import Json, Rows

_TRUTHS = frozenset(("yes", "no", "true", "false"))


def constants(store: Store, statement: str, rows: Rows) -> tuple[int, ...]:
    """The numbers of the rows that nothing was read for: the graph is empty, the statement looks at nothing
    in it, or it says them itself.

    A text that the statement says counts as read where the graph holds it and the statement does not give it
    out as a constant; one that it does not say was read, or worked out from what was. Numbers, truth values,
    yes and no are worked out, unless they are given out as they stand. What a statement pieces together on
    purpose is not seen.
    """
    if not rows:
        return ()
    own = store.dialect.own_words(statement)
    if not store.schema().nodes or not own.looks:
        return tuple(range(len(rows)))
    said = f" {' '.join(named_words(unquote(statement)))} "
    held: dict[Scalar, bool] = {}

    def is_read(value: Scalar) -> bool:
        if not isinstance(value, str) or value.casefold() in _TRUTHS:
            return True
        if not (words := named_words(value)):
            return False
        if f" {' '.join(words)} " not in said:
            return True
        if value not in held:
            held[value] = holds_value(store, value)
        return held[value]

    return tuple(number for number, row in enumerate(rows) if not any(map(is_read, _values(row, own))))


def scalars(row: Json) -> Iterator[Scalar]:
    """The texts, numbers and truth values of a row, whatever it is nested in."""
    if isinstance(row, Mapping):
        for value in row.values():
            yield from scalars(value)
    elif isinstance(row, list | tuple):
        for value in row:
            yield from scalars(value)
    elif row is not None:
        yield row


def _values(row: Json, own: OwnWords) -> Iterator[Scalar]:
    """The values of a row, without those that the statement gives out as constants."""
    if isinstance(row, Mapping):
        row = {name: value for name, value in row.items() if name not in own.columns}
    return (value for value in scalars(row) if (type(value), value) not in own.values)
