"""What a Bolt server returns, as JSON: nodes, relationships and paths as dicts and lists, times as ISO text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kgot_lab.sandbox.cypher.mapping import edge_properties, labels_of, node_properties, plain_value
from kgot_lab.types import Json

if TYPE_CHECKING:
    from neo4j import Result, Transaction

_MOST_ROWS = 10_000
MOST_CHARACTERS = 1_000_000
_HIDDEN = frozenset(("_run", "_kept", "_labels", "_key"))
_SCALARS = (str, bool, int, float, type(None))
_NAMES = "UNWIND $places AS place MATCH (n) WHERE elementId(n) = place RETURN place, n.id"


class TooMuch(Exception):
    """A statement returns more than anyone will read."""


class NotOurs(Exception):
    """A statement returns a node or a relationship of another namespace; the last fence, which nothing should
    reach.
    """


def bolt_rows(transaction: Transaction, statement: str, namespace: str) -> Iterator[dict[str, Json]]:
    """The rows of a statement, one dict each; raises TooMuch before more than a million characters are held,
    and NotOurs.
    """
    result = transaction.run(statement)
    records = list(_limited(result))
    ends = {node.element_id for record in records for node in _ends(record.values())}
    names = dict(transaction.run(_NAMES, places=sorted(ends)).values()) if ends else {}
    _refuse_others([value for record in records for value in record.values()], namespace)
    for record in records:
        yield {name: _json(value, names) for name, value in record.items()}


def timeless(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored properties with times and points as text."""
    return {name: value if isinstance(value, _SCALARS) else _iso(value) for name, value in stored.items()}


def _limited(result: Result) -> Iterator[Any]:
    size = 0
    for number, record in enumerate(result, start=1):
        size += len(str(record.values()))
        if number > _MOST_ROWS or size > MOST_CHARACTERS:
            raise TooMuch(
                f"more than {_MOST_ROWS:,} rows or {MOST_CHARACTERS:,} characters; return less, for example with LIMIT"
            )
        yield record


def _ends(values: Iterable[Any]) -> Iterator[Any]:
    """The ends of all relationships, wherever they stand: a server sends them bare."""
    from neo4j.graph import Path, Relationship

    for value in values:
        if isinstance(value, Relationship):
            yield from (node for node in value.nodes if node is not None and "id" not in node)
        elif isinstance(value, Path):
            yield from _ends(value.relationships)
        elif isinstance(value, list):
            yield from _ends(value)
        elif isinstance(value, dict):
            yield from _ends(value.values())


def _refuse_others(values: Iterable[Any], namespace: str) -> None:
    from neo4j.graph import Node, Path, Relationship

    for value in values:
        if isinstance(value, Node | Relationship) and value.get("_run") != namespace:
            raise NotOurs("the statement reaches what is not in the namespace of this store")
        if isinstance(value, Path):
            _refuse_others((*value.nodes, *value.relationships), namespace)
        elif isinstance(value, list | dict):
            _refuse_others(value.values() if isinstance(value, dict) else value, namespace)


def _json(value: Any, names: Mapping[str, str]) -> Json:
    from neo4j.graph import Node, Path, Relationship

    if isinstance(value, Node):
        stored = timeless(dict(value))
        return {
            "id": stored.get("id"),
            "labels": labels_of(value.labels, stored),
            **_finite(_but(node_properties(stored), "id", "labels")),
        }
    if isinstance(value, Relationship):
        source, target = (_name(end, names) for end in value.nodes)
        own = _but(edge_properties(timeless(dict(value))), "subject", "relation", "object")
        return {"subject": source, "relation": value.type, "object": target, **_finite(own)}
    if isinstance(value, Path):
        links = [
            [relationship, node]
            for relationship, node in zip(value.relationships, value.nodes[1:], strict=True)
        ]
        return [_json(part, names) for part in (value.nodes[0], *(part for link in links for part in link))]
    if isinstance(value, list):
        kept = [each for each in value if each not in _HIDDEN] if _is_keys(value) else value
        return [_json(each, names) for each in kept]
    if isinstance(value, dict):
        return {str(name): _json(each, names) for name, each in value.items() if name not in _HIDDEN}
    return _finite(plain_value(_iso(value)))


def _is_keys(values: list[Any]) -> bool:
    """Whether a list is, by all appearance, what keys(n) gives."""
    return all(isinstance(each, str) for each in values) and "_run" in values


def _name(node: Any, names: Mapping[str, str]) -> Json:
    return None if node is None else node.get("id", names.get(node.element_id))


def _but(properties: dict[str, Json], *names: str) -> dict[str, Json]:
    return {name: value for name, value in properties.items() if name not in names}


def _finite(value: Json) -> Json:
    """A value whose numbers are all of JSON; the others become the texts nan, inf and -inf."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _iso(value: Any) -> Any:
    """A time as ISO text, a point as the server writes it; what JSON has stays."""
    if isinstance(value, _SCALARS):
        return value
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [_iso(each) for each in value]
    if getattr(value, "nanosecond", 0) % 1000 == 0 and hasattr(value, "to_native"):
        value = value.to_native()
    return (
        value.isoformat()
        if hasattr(value, "isoformat")
        else value.iso_format()
        if hasattr(value, "iso_format")
        else str(value)
    )
