"""Whether a graph holds a value, and which edges there are between some nodes: what the evidence for an
answer is checked against.

A store answers without reading all of its graph to this process where it can; one that cannot is asked by its
search and its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator

from kgot_lab.errors import BadInput, described_value
from kgot_lab.stores.protocol import Browsable, Holding, Scalar
from kgot_lab.types import Edge, Json, Node

_MOST = 50  # nodes that are looked at in a store that can only search


def holds_value(store: Browsable, value: Scalar) -> bool:
    """Whether a value is in a graph exactly: as a node's id or label, an edge's type, or a value or list item
    of a property.

    Texts are the same letter by letter, numbers as numbers (1 is 1.0), and true is no number. A store that
    can only search is looked at where its search leads, which may miss what is in the properties of edges
    alone. Raises BadInput for what is no text and no number.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInput(f"what a graph may hold is a text or a number, not {described_value(value)}")
    if isinstance(store, Holding):
        return store.holds(value)
    found = store.search(str(value), _MOST)
    return any(
        value in scalars_of(node) or any(value in scalars_of(edge) for edge in store.neighbours(node.id))
        for node in found
    )


def edges_between(store: Browsable, ids: Iterable[str]) -> tuple[Edge, ...]:
    """The edges whose two ends are both among some nodes."""
    wanted = list(dict.fromkeys(ids))
    return (
        store.edges_between(wanted) if isinstance(store, Holding) else edges_among(wanted, store.neighbours)
    )


def edges_among(ids: Collection[str], neighbours: Callable[[str], Iterable[Edge]]) -> tuple[Edge, ...]:
    """The edges whose two ends are both among some nodes, found by what surrounds each."""
    wanted = frozenset(ids)
    found = {
        edge.identity: edge
        for id in ids
        for edge in neighbours(id)
        if edge.source in wanted and edge.target in wanted
    }
    return tuple(found.values())


def scalars_of(element: Node | Edge) -> list[Scalar]:
    """The texts and numbers in a node (its id and labels too) or in an edge (its type too, but not the ids of
    its ends).
    """
    names = (element.id, *element.labels) if isinstance(element, Node) else (element.type,)
    return [*names, *scalars_in(element.properties)]


def scalars_in(value: Json) -> Iterator[Scalar]:
    """The texts and numbers in a value, however deep; the names in it are none."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from scalars_in(item)


class HeldValues:
    """The texts and numbers that a graph holds, kept up to date element by element."""

    def __init__(self, elements: Iterable[Node | Edge]):
        self._times = Counter(value for element in elements for value in scalars_of(element))

    def __contains__(self, value: Scalar) -> bool:
        return self._times[value] > 0

    def change(self, gone: Iterable[Node | Edge], came: Iterable[Node | Edge]) -> None:
        """Some elements went, and others came."""
        self._times.subtract(value for element in gone for value in scalars_of(element))
        self._times.update(value for element in came for value in scalars_of(element))
