"""Parse the untrusted output of the sandbox, checking shapes, sizes and texts before creating values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from kgot_lab.errors import QueryFailed
from kgot_lab.graph.changes import Identity
from kgot_lab.types import Edge, Json, Node

_MAX_DEPTH = 64
_MAX_MESSAGE = 2_000
MOST_VALUES = 1_000_000  # values in one reply: their cost to this process is known before they are created
MOST_CHANGED = 50_000  # nodes and edges that one statement may change
# in one pass and in no memory of its own, also where the last has no end
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class Malformed(Exception):
    """A reply that no correct worker sends."""


def parsed(payload: bytes) -> dict[str, Json]:
    """Parse the JSON object in a reply.

    Raises Malformed if it is invalid, too large or nested too deeply.
    """
    _require(_values(payload) <= MOST_VALUES, f"more than {MOST_VALUES:,} values")
    try:
        value = json.loads(payload.decode(), parse_constant=_refuse, parse_float=_finite)
        if b"\\u" in payload:
            json.dumps(
                value, ensure_ascii=False
            ).encode()  # half a surrogate pair can be escaped into JSON, but not written to a file
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {type(error).__name__}") from None
    _require(isinstance(value, dict), "not an object")
    _require(_shallow(value), "nested too deeply")
    result: dict[str, Json] = value
    return result


def part(payload: bytes, name: str, kind: type, statement: str) -> Any:
    """Return one part of a reply.

    Raises QueryFailed with the error that ended the statement, or Malformed.
    """
    return _part_of(parsed(payload), name, kind, statement)


def _part_of(reply: Mapping[str, Json], name: str, kind: type, statement: str) -> Any:
    if isinstance(reply.get("error"), str):
        raise QueryFailed(statement, reply["error"][:_MAX_MESSAGE])
    _require(isinstance(reply.get(name), kind), f"no {name}")
    return reply[name]


def accounts(payload: bytes, statement: str) -> tuple[dict[str, Node | None], dict[Identity, Edge | None]]:
    """Parse the changes of a write, by id and by identity, with None for each removed element.

    Raises QueryFailed if the statement failed or changes too much, or Malformed.
    """
    reply = parsed(payload)
    nodes, edges = (_part_of(reply, name, list, statement) for name in ("nodes", "edges"))
    if len(nodes) + len(edges) > MOST_CHANGED:
        why = f"the statement changes {len(nodes) + len(edges):,} nodes and edges; one may change at most {MOST_CHANGED:,}: divide it"
        raise QueryFailed(statement, why)
    return dict(map(_node, nodes)), dict(map(_edge, edges))


def _node(claim: Json) -> tuple[str, Node | None]:
    _require(isinstance(claim, list) and len(claim) in (1, 3) and _text(claim[0]), "a node out of shape")
    if len(claim) == 1:
        return claim[0], None
    id, labels, properties = claim
    _require(
        isinstance(labels, list) and all(map(_text, labels)) and isinstance(properties, dict),
        "a node out of shape",
    )
    return id, Node(id, tuple(labels), properties)


def _edge(claim: Json) -> tuple[Identity, Edge | None]:
    _require(isinstance(claim, list) and len(claim) in (4, 5), "an edge out of shape")
    _require(all(map(_text, claim[:3])) and isinstance(claim[3], str), "an edge out of shape")
    source, type, target, key = claim[:4]
    if len(claim) == 4:
        return (source, type, target, key), None
    _require(isinstance(claim[4], dict), "an edge out of shape")
    return (source, type, target, key), Edge(source, type, target, claim[4], key)


def account_of(element: Node | Edge) -> list[Json]:
    """Encode an element for the worker."""
    if isinstance(element, Node):
        return [element.id, list(element.labels), _object(element.properties)]
    return [element.source, element.type, element.target, element.key, _object(element.properties)]


def removal_of(element: Node | Edge) -> list[Json]:
    """Encode an element's removal for the worker."""
    return [element.id] if isinstance(element, Node) else list(element.identity)


def _object(properties: Mapping[str, Json]) -> dict[str, Json]:
    return properties if isinstance(properties, dict) else dict(properties)


def _text(value: Json) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _shallow(value: Json) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        inside = (holder.values() if isinstance(holder, dict) else holder for holder in level)
        level = [item for items in inside for item in items if isinstance(item, dict | list)]
        if not level:
            return True
    return False


def _values(payload: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text.

    Its strings are excluded only if they could exceed the limit.
    """
    marks = (b",", b"[", b"{")
    if sum(map(payload.count, marks)) > MOST_VALUES:
        payload = _STRING.sub(b"", payload)
    return sum(map(payload.count, marks))


def _finite(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        _refuse(written)
    return number


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Malformed(otherwise)
