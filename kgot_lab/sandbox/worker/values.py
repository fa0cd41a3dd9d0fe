"""The values of a statement that can be stored: plain JSON, with a few obvious conversions."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

MAX_DEPTH = 32  # no sensible property is nested deeper, and every JSON parser supports it
# the properties that may name a node without an id, in order of preference
_NAME_PROPERTIES = ("id", "name", "title", "label")
MAX_ITEMS = 100_000  # an endless generator is stopped here
MAX_DIGITS = 400  # of a whole number, more than those of any float: Python's time to convert more grows with their square
_LARGEST = 10**MAX_DIGITS
ElementChange = list[Any]  # the claim of a statement about one node or edge, as JSON


class RefusedValue(Exception):
    """A statement ran, but its result cannot be stored.

    Only the message is reported.
    """


def canonical_json(value: Any) -> str:
    """Serialize a value as canonical JSON.

    1, 1.0 and True stay distinct, and the order of keys does not matter.
    """
    return json.dumps(value, sort_keys=True)


def node_id(raw: Any) -> str:
    """Return a node's id as text.

    Numbers become text. Raises RefusedValue for anything else.
    """
    raw = python_number(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and is_storable_number(raw):
        raw = str(raw)
    if not isinstance(raw, str) or not raw.strip():
        given = f"{type(raw).__name__} {_short_repr(raw)}"
        raise RefusedValue(f"a node's id must be a text that is not blank, not {given}")
    return str.__str__(raw)


def python_number(value: Any) -> Any:
    """Return a NumPy scalar that is a number as Python's own, and any other value as it is."""
    dtype = getattr(value, "dtype", None)
    return value.item() if dtype is not None and dtype.kind in "iuf" and not value.ndim else value


def is_storable_number(value: int | float) -> bool:
    """Return whether a number is finite and has no more than MAX_DIGITS digits."""
    return -_LARGEST < value < _LARGEST if isinstance(value, int) else math.isfinite(value)


def json_value(value: Any, what: str, depth: int = 0, *, reading: bool = False) -> Any:
    """Convert a value to plain JSON: dates to ISO text, sets to sorted lists, tuples to lists, NumPy to
    Python.

    When reading, numbers that JSON lacks become the texts nan, inf and -inf. Raises RefusedValue, naming
    `what`, for a value that cannot be converted, and for keys that are the same as text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int | float):
        number = int(value) if isinstance(value, int) else float(value)
        if is_storable_number(number):
            return number
        if reading and isinstance(number, float):
            return str(number)
        limit = (
            f"a finite number, not {number}"
            if isinstance(number, float)
            else f"text if it has more than {MAX_DIGITS} digits"
        )
        raise RefusedValue(f"{what} must be {limit}")
    if depth >= MAX_DEPTH:
        raise RefusedValue(f"{what} is nested more than {MAX_DEPTH} levels deep")
    is_binary = isinstance(value, bytes | bytearray | memoryview)
    if hasattr(value, "tolist") and not is_binary:
        kind = value.dtype.kind if hasattr(value, "dtype") else ""
        if kind == "M" and (reading or not (value != value).any()):  # not a time
            kind, value = "U", value.astype(str)  # the list of times may be one of whole numbers
        if kind not in ("m", "M", "V"):
            return json_value(value.tolist(), what, depth + 1, reading=reading)
    if hasattr(value, "iterrows"):
        raise RefusedValue(f"{what} is a table of pandas: give table.reset_index().to_dict('records')")
    if isinstance(value, Mapping):
        named = text_keys(value, what)
        return {key: json_value(item, what, depth + 1, reading=reading) for key, item in named.items()}
    if isinstance(value, set | frozenset):
        items = (json_value(item, what, depth + 1, reading=reading) for item in limit_items(value))
        return sorted(items, key=canonical_json)
    if isinstance(value, list | tuple) or (reading and isinstance(value, Iterable) and not is_binary):
        return [json_value(item, what, depth + 1, reading=reading) for item in limit_items(value)]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    allowed = "text, a number, true, false, none, a list or a dict"
    raise RefusedValue(f"{what} must be {allowed}, not {type(value).__name__}")


def limit_items(items: Iterable[Any]) -> Iterable[Any]:
    """Yield the items of an iterable.

    Raises RefusedValue if there are more than MAX_ITEMS.
    """
    for number, item in enumerate(items):
        if number >= MAX_ITEMS:
            raise RefusedValue(f"more than {MAX_ITEMS:,} items")
        yield item


def text_keys(items: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """Return items with their keys as text. Raises RefusedValue for keys that are not, or the same, as text."""
    named: dict[str, Any] = {}
    for key, item in items.items():
        if not (key is None or isinstance(key, str | int | float)):
            raise RefusedValue(f"the keys of {what} must be text, not {type(key).__name__}")
        name = str.__str__(key) if isinstance(key, str) else str(key)
        if name in named:
            raise RefusedValue(f"two keys of {what} are {_short_repr(name)} as text, and one would be lost")
        named[name] = item
    return named


def _short_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def unused_id(
    labels: Sequence[str],
    stored: Mapping[str, Any],
    is_taken: Callable[[str], bool],
    numbers: dict[str, int],
) -> str:
    """Return an unused id for a node: its own, or else its name.

    A name that is taken gets the node's label or a number. `numbers` has the last number of each name, for the
    next call.
    """
    values = (stored.get(name) for name in _NAME_PROPERTIES)
    texts = [str(v) for v in values if isinstance(v, str | int | float) and not isinstance(v, bool)]
    name = next((text for text in texts if text.strip()), "")
    label = labels[0] if labels else "node"
    for text in (name, f"{name} ({label})") if name else ():
        if not is_taken(text):
            return text
    first = numbers.get(name or label, 2 if name else 1)
    number = next(number for number in count(first) if not is_taken(f"{name or label} {number}"))
    numbers[name or label] = number
    return f"{name or label} {number}"
