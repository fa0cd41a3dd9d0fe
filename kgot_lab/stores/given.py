"""What may be given to a store, checked before an engine sees it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from kgot_lab.errors import BadInput, described_value, require, shortly
from kgot_lab.types import Diff, Edge, Node


def require_statement(statement: object) -> None:
    """Raise BadInput unless a statement is a text."""
    require(statement, str, "a statement is a text")


def require_words(words: object) -> None:
    """Raise BadInput unless the words to search for are a text."""
    require(words, str, "a store is searched for the words of a text")


def require_diff(diff: object) -> None:
    """Raise BadInput unless a diff is one, of nodes and edges whose ids, types and names of properties are texts."""
    if not isinstance(diff, Diff):
        raise BadInput(f"what is applied to a store is a Diff, not {described_value(diff)}")
    pairs = chain(diff.changed_nodes, diff.changed_edges)
    for element in chain(diff.added_nodes, diff.removed_nodes, diff.added_edges, diff.removed_edges, chain.from_iterable(pairs)):
        if isinstance(element, Node):
            sound, said = isinstance(element.id, str), f"node {shortly(element.id)}"
        elif isinstance(element, Edge):
            sound, said = all(isinstance(part, str) for part in element.identity), f"edge {shortly(element.identity)}"
        else:
            raise BadInput(f"a diff holds Node(id, labels, properties) and Edge(source, type, target), not {described_value(element)}")
        if not sound:
            raise BadInput(f"the id of a node and the ends, the type and the key of an edge are texts, which those of {said} are not")
        if not isinstance(element.properties, Mapping):
            raise BadInput(f"the properties of {said} are a dictionary, not {described_value(element.properties)}")
        for name in element.properties:
            if not isinstance(name, str):
                raise BadInput(f"a property of {said} has the name {shortly(name)}, which is not text")
