"""Parse the untrusted output of the sandbox, checking shapes, sizes and texts before creating values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kgot_lab.errors import QueryFailed
from kgot_lab.graph.changes import Identity
from kgot_lab.sandbox.worker.values import MAX_DEPTH, MAX_DIGITS, MAX_ITEMS
from kgot_lab.types import Edge, Json, Node

_CHANGE_LEVELS = 4  # in which a property lies: the reply, the nodes, a node, its properties
_MAX_MESSAGE = 2_000
MAX_VALUES = 1_000_000  # values in one reply: their cost to this process is known before they are created
MAX_CHANGED = 50_000  # nodes and edges that one statement may change
# in one pass and in no memory of its own, also where the last has no end
_JSON_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class MalformedReply(Exception):
    """A reply that no correct worker sends."""


def parse_reply(payload: bytes) -> dict[str, Json]:
    """Parse the JSON object in a reply.

    Raises Malformed if it is invalid, too large or nested too deeply.
    """
    _require(_count_values(payload) <= MAX_VALUES, f"more than {MAX_VALUES:,} values")
    try:
        value = json.loads(
            payload.decode(),
            parse_constant=_refuse_constant,
            parse_float=_parse_finite,
            parse_int=_parse_short,
        )
        if b"\\u" in payload:
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # half a surrogate pair can be escaped into JSON, but not written to a file
    except (ValueError, RecursionError) as error:
        raise MalformedReply(f"not JSON: {type(error).__name__}") from None
    _require(isinstance(value, dict), "not an object")
    _require_storable(value)
    result: dict[str, Json] = value
    return result


def parse_part(payload: bytes, name: str, kind: type, statement: str) -> Any:
    """Return one part of a reply.

    Raises QueryFailed with the error that ended the statement, or Malformed.
    """
    return _require_part(parse_reply(payload), name, kind, statement)


def _require_part(reply: Mapping[str, Json], name: str, kind: type, statement: str) -> Any:
    if isinstance(reply.get("error"), str):
        raise QueryFailed(statement, reply["error"][:_MAX_MESSAGE])
    _require(isinstance(reply.get(name), kind), f"no {name}")
    return reply[name]


def parse_changes(
    payload: bytes, statement: str
) -> tuple[dict[str, Node | None], dict[Identity, Edge | None]]:
    """Parse the changes of a write, by id and by identity, with None for each removed element.

    Raises QueryFailed if the statement failed or changes too much, or Malformed.
    """
    reply = parse_reply(payload)
    nodes, edges = (_require_part(reply, name, list, statement) for name in ("nodes", "edges"))
    if len(nodes) + len(edges) > MAX_CHANGED:
        why = f"the statement changes {len(nodes) + len(edges):,} nodes and edges; one may change at most {MAX_CHANGED:,}: divide it"
        raise QueryFailed(statement, why)
    return dict(map(_parse_node, nodes)), dict(map(_parse_edge, edges))


def _parse_node(change: Json) -> tuple[str, Node | None]:
    has_shape = isinstance(change, list) and len(change) in (1, 3)
    _require(has_shape and _is_text(change[0]), "a node out of shape")
    if len(change) == 1:
        return change[0], None
    id, labels, properties = change
    has_labels = isinstance(labels, list) and all(map(_is_text, labels))
    _require(has_labels and isinstance(properties, dict), "a node out of shape")
    return id, Node(id, tuple(labels), properties)


def _parse_edge(change: Json) -> tuple[Identity, Edge | None]:
    _require(isinstance(change, list) and len(change) in (4, 5), "an edge out of shape")
    _require(all(map(_is_text, change[:3])) and isinstance(change[3], str), "an edge out of shape")
    source, type, target, key = change[:4]
    if len(change) == 4:
        return (source, type, target, key), None
    _require(isinstance(change[4], dict), "an edge out of shape")
    return (source, type, target, key), Edge(source, type, target, change[4], key)


def encode_element(element: Node | Edge) -> list[Json]:
    """Encode an element for the worker."""
    if isinstance(element, Node):
        return [element.id, list(element.labels), _plain_dict(element.properties)]
    return [element.source, element.type, element.target, element.key, _plain_dict(element.properties)]


def encode_removal(element: Node | Edge) -> list[Json]:
    """Encode an element's removal for the worker."""
    return [element.id] if isinstance(element, Node) else list(element.identity)


def _plain_dict(properties: Mapping[str, Json]) -> dict[str, Json]:
    return properties if isinstance(properties, dict) else dict(properties)


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _require_storable(value: Json) -> None:
    """Raise Malformed for lists that are longer, or nested deeper, than a worker can send or could read again."""
    level = [value]
    for depth in range(_CHANGE_LEVELS + MAX_DEPTH):
        is_long = depth > 1 and any(isinstance(item, list) and len(item) > MAX_ITEMS for item in level)
        _require(not is_long, f"a list of more than {MAX_ITEMS:,} items")
        contents = (container.values() if isinstance(container, dict) else container for container in level)
        level = [item for items in contents for item in items if isinstance(item, dict | list)]
    _require(not level, "nested too deeply")


def _count_values(payload: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text.

    Its strings are excluded only if they could exceed the limit.
    """
    marks = (b",", b"[", b"{")
    if sum(map(payload.count, marks)) > MAX_VALUES:
        payload = _JSON_STRING.sub(b"", payload)
    return sum(map(payload.count, marks))


def _parse_finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        _refuse_constant(written)
    return number


def _parse_short(written: str) -> int:
    _require(len(written) <= MAX_DIGITS + 1, f"a number of more than {MAX_DIGITS} digits")
    return int(written)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise MalformedReply(message)
