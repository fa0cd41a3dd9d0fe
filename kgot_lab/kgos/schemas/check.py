"""Check nodes and edges against a vocabulary: what is wrong, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from kgot_lab.errors import BadInput, UnknownName, describe_value, short_repr
from kgot_lab.graph.validation import ANY_TYPE, EdgeType, Ends, PropertyRule, Vocabulary
from kgot_lab.types import Edge, Json, Node


@dataclass(frozen=True)
class Fault:
    """A violation of a vocabulary or a rule: forbidden (error), unexpected (warning), discouraged (info)."""

    level: Literal["error", "warning", "info"]
    what: str
    where: str
    do: str

    def __str__(self) -> str:
        return f"{self.level} at {self.where}: {self.what}; {self.do}"


def _error(what: str, where: str, do: str) -> Fault:
    return Fault("error", what, where, do)


def edge_text(source: object, type: str, target: object) -> str:
    """Return how messages name an edge."""
    return f"edge {short_repr(source)} -{type}-> {short_repr(target)}"


def find_faults(
    vocabulary: Vocabulary,
    nodes: Iterable[Node] = (),
    edges: Iterable[Edge] = (),
    *,
    types: Mapping[str, str] | None = None,
) -> tuple[Fault, ...]:
    """Check nodes and edges against a vocabulary and return all faults.

    `types` maps the ids of existing nodes to their types.
    """
    known = dict(types or {})
    found: list[Fault] = []
    for node in nodes:
        found += check_node(vocabulary, node)
        if len(node.labels) == 1:
            known[node.id] = node.labels[0]
    for edge in edges:
        found += check_edge(vocabulary, edge, known)
    return tuple(found)


def refuse_errors(found: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults that are not errors.

    Raises BadInput, listing all errors, if there is one.
    """
    found = tuple(found)
    if errors := [str(each) for each in found if each.level == "error"]:
        raise BadInput("\n".join(errors))
    return found


def check_node(vocabulary: Vocabulary, node: Node) -> list[Fault]:
    """Check a node against a vocabulary."""
    where = f"node {short_repr(node.id)}"
    if len(node.labels) != 1:
        do = f"give it one type of {vocabulary.name} as its label"
        return [_error(f"it has {len(node.labels)} types", where, do)]
    try:
        rules = vocabulary.node_type(node.labels[0]).properties
    except UnknownName as error:
        return [_error(str(error), where, "give it one of these")]
    return list(_check_properties(rules, node.properties, where))


def check_edge(vocabulary: Vocabulary, edge: Edge, types: Mapping[str, str]) -> list[Fault]:
    """Check an edge against a vocabulary.

    `types` maps node ids to types.
    """
    where = edge_text(edge.source, edge.type, edge.target)
    if edge.type in vocabulary.instead:
        problem = f"{edge.type!r} is no edge type of {vocabulary.name}"
        return [_error(problem, where, vocabulary.instead[edge.type])]
    try:
        kind = vocabulary.edge_type(edge.type)
    except UnknownName as error:
        return [_error(str(error), where, "write one of these")]
    if missing := [end for end in (edge.source, edge.target) if end not in types]:
        do = "write the node first, or with the edge"
        return [_error(f"there is no node {short_repr(missing[0])}", where, do)]
    ends = _check_ends(kind, edge, types, where)
    found = [*ends, *_check_properties(kind.properties, edge.properties, where)]
    if kind.symmetric and edge.source >= edge.target:
        found.append(_direction_fault(edge, where))
    return found


def _direction_fault(edge: Edge, where: str) -> Fault:
    if edge.source == edge.target:
        return _error(f"{edge.type} joins a node with itself", where, "leave it out")
    swapped = f"{short_repr(edge.target)} -{edge.type}-> {short_repr(edge.source)}"
    problem = f"{edge.type} says the same both ways and is stored once, in the order of ids"
    return _error(problem, where, f"write {swapped}")


def _check_ends(kind: EdgeType, edge: Edge, types: Mapping[str, str], where: str) -> Iterator[Fault]:
    source, target = types[edge.source], types[edge.target]
    ends = next((end for end in kind.ends if _ends_match(end, source, target)), None)
    if ends is None:
        pairs = ", ".join(f"{end.source} to {end.target}" for end in kind.ends)
        allowed = pairs.replace(ANY_TYPE, "any node")
        yield _error(f"{kind.name} does not join {source} to {target}", where, f"it joins {allowed}")
        return
    for name, values in ends.only.items():
        value = edge.properties.get(name)
        if value is not None and value not in values:
            do = f"write {' or '.join(map(repr, values))}" if values else "leave it out"
            yield _error(f"{name} is {short_repr(value)} between {source} and {target}", where, do)


def _ends_match(ends: Ends, source: str, target: str) -> bool:
    return ends.source in (source, ANY_TYPE) and ends.target in (target, ANY_TYPE)


def _check_properties(
    rules: Iterable[PropertyRule], properties: Mapping[str, Json], where: str
) -> Iterator[Fault]:
    for rule in rules:
        value = properties.get(rule.name)
        if rule.goes_with is not None and (
            fault := _check_dependent_property(rule, rule.goes_with, properties, where)
        ):
            yield fault
        elif value is None or value == "":
            if rule.required:
                yield _error(f"it has no {rule.name}", where, f"give it {rule.name}")
        elif problem := _find_problem(rule, value):
            yield _error(f"{rule.name} is {describe_value(value)}", where, problem)


def _check_dependent_property(
    rule: PropertyRule, with_: tuple[str, Json], properties: Mapping[str, Json], where: str
) -> Fault | None:
    """Check a property that belongs to a value of another property."""
    other, wanted = with_
    applies = properties.get(other) == wanted
    if not applies and properties.get(rule.name) is not None:
        what = f"{rule.name} belongs to {other} {wanted!r}, and this is {other} {properties.get(other)!r}"
        return _error(what, where, f"leave {rule.name} out, or make it null")
    if applies and properties.get(rule.name) is None:
        problem = f"{other} is {wanted!r} and it has no {rule.name}"
        return Fault("warning", problem, where, f"give it {rule.name}")
    return None


def _find_problem(rule: PropertyRule, value: Json) -> str:
    """Return what a value should be if it breaks a rule, or ""."""
    if rule.kind == "text" and not isinstance(value, str):
        return "write a text"
    if rule.kind == "number" and (isinstance(value, bool) or not isinstance(value, int | float)):
        return "write a number"
    if rule.kind == "time" and parse_time(value) is None:
        return "write a date such as 2026-02-05, or a time with its zone such as 2026-02-05T14:00:00+00:00"
    if rule.values and value not in rule.values:
        return f"write one of {', '.join(rule.values)}"
    if rule.bounds is not None and not rule.bounds[0] <= value <= rule.bounds[1]:
        return f"write a number from {rule.bounds[0]:g} to {rule.bounds[1]:g}"
    return ""


def parse_time(value: Json) -> datetime | None:
    """Parse an ISO 8601 time, or return None.

    A date is its first moment in UTC. A time without a zone gives None.
    """
    if not isinstance(value, str):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    if time.tzinfo is not None:
        return time
    return time.replace(tzinfo=UTC) if len(value) <= len("2026-02-05") else None
