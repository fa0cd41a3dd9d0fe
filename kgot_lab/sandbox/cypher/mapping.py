"""The mapping of a property graph to a Cypher database, which has no text ids and not all JSON values.

A node's id is its property `id`. An edge's own key, if it has one, is `_key`. Labels that are not in
alphabetical order are recorded in `_labels`. A value that Cypher cannot store (a map, a mixed or nested list,
null, a large integer) is stored as the text `json:` and its JSON, and so is a text that begins with `json:`.
On a server, `_run` is the namespace of the element, and `_kept` says that a node is known to the store. A
property with one of these names, or an empty name, which servers refuse, gets an underscore at its end. Also
runs inside the sandbox: imports the standard library and modules of the sandbox only.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection, Container, Mapping, Sequence
from itertools import count
from typing import Any

from kgot_lab.sandbox.worker.values import canonical_json, node_id

_NODE_NAMES = ("", "id", "_labels", "_run", "_kept")
_EDGE_NAMES = ("", "_key", "_run", "_kept")
ENCODED = "json:"


def to_stored_node(id: str, labels: Sequence[str], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a node as Cypher stores them."""
    recorded_labels = {} if list(labels) == sorted(set(labels)) else {"_labels": list(labels)}
    return {"id": id, **recorded_labels, **_escape_properties(properties, _NODE_NAMES)}


def to_stored_edge(key: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of an edge as Cypher stores them."""
    return {**({"_key": key} if key else {}), **_escape_properties(properties, _EDGE_NAMES)}


def ordered_labels(labels: Collection[str], stored: Mapping[str, Any]) -> list[str]:
    """Return a node's labels in their original order.

    Labels that a statement added come last, sorted by name.
    """
    recorded = stored.get("_labels")
    ordered = [label for label in recorded if label in labels] if isinstance(recorded, list) else []
    return ordered + sorted(set(labels) - set(ordered))


def node_properties(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Restore a node's own properties from the stored ones."""
    return _unescape_properties(stored, _NODE_NAMES)


def edge_properties(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Restore an edge's own properties from the stored ones."""
    return _unescape_properties(stored, _EDGE_NAMES)


def own_id(stored: Mapping[str, Any]) -> str:
    """Return the id stored in a node as text, or "" if there is none.

    Raises RefusedValue if the value is neither text nor a number that is one.
    """
    id = stored.get("id")
    return "" if id is None or (isinstance(id, str) and not id.strip()) else node_id(id)


def own_key(stored: Mapping[str, Any]) -> str:
    """Return the key stored in an edge as text, or "" if there is none."""
    key = stored.get("_key", "")
    return str(key) if isinstance(key, str | int | float) and not isinstance(key, bool) else ""


def unused_key(wanted: str, taken: Container[str]) -> str:
    """Return the wanted key of an edge, numbered if it is taken."""
    numbered = (f"{wanted}.{number}" if wanted else str(number) for number in count(2))
    return wanted if wanted not in taken else next(key for key in numbered if key not in taken)


def conflicting_property(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the name of a property with different values in two sets of properties, or ""."""
    common = sorted(one.keys() & other.keys())
    return next((name for name in common if canonical_json(one[name]) != canonical_json(other[name])), "")


def plain_value(value: Any) -> Any:
    """Convert a value that the engine returned to JSON.

    Encoded values are decoded, and dates and similar types become ISO text.
    """
    if isinstance(value, str):
        return _decode_text(value)
    if isinstance(value, Mapping):
        return {str(name): plain_value(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain_value(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)


def backticked(name: str) -> str:
    """Format a label, type or property name for Cypher, whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


def _escape_properties(properties: Mapping[str, Any], reserved: tuple[str, ...]) -> dict[str, Any]:
    encoded = ((name, _encode_value(value)) for name, value in properties.items())
    return {f"{name}_" if name.rstrip("_") in reserved else name: value for name, value in encoded}


def _unescape_properties(stored: Mapping[str, Any], reserved: tuple[str, ...]) -> dict[str, Any]:
    decoded = {name: plain_value(value) for name, value in stored.items() if name not in reserved}
    return {name[:-1] if name.rstrip("_") in reserved else name: value for name, value in decoded.items()}


def _encode_value(value: Any) -> Any:
    return value if _is_storable(value) else ENCODED + json.dumps(value, ensure_ascii=False)


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return not value.startswith(ENCODED)
    if isinstance(value, bool | float):
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, list | tuple):
        kinds = {type(item) for item in value}
        return len(kinds) <= 1 and kinds <= {str, bool, int, float} and all(map(_is_storable, value))
    return False


def _decode_text(text: str) -> Any:
    if not text.startswith(ENCODED):
        return text
    try:
        return json.loads(text[len(ENCODED) :])
    except ValueError:
        return text
