"""Which nodes a text names: by their whole name, word for word."""

from __future__ import annotations

from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.text.words import content_stems

_KEPT = "_learning_names"


def named_node(graph: PropertyGraph, name: str) -> tuple[str, ...]:
    """The ids of the nodes that are called so; an id itself names its node."""
    if name in graph:
        return (name,)
    return tuple(graph.ids[row] for row in _names(graph).get(content_stems(name), ()))


def nodes_named_in(graph: PropertyGraph, text: str) -> tuple[int, ...]:
    """The rows of the nodes whose whole name stands in a text, in the order of the text; of names within
    names the longest.
    """
    names, words = _names(graph), content_stems(text)
    longest = max((len(name) for name in names), default=0)
    found: dict[int, None] = {}
    start = 0
    while start < len(words):
        for length in range(min(longest, len(words) - start), 0, -1):
            if rows := names.get(words[start : start + length]):
                found.update(dict.fromkeys(rows))
                start += length - 1
                break
        start += 1
    return tuple(found)


def _names(graph: PropertyGraph) -> dict[tuple[str, ...], list[int]]:
    kept: dict[tuple[str, ...], list[int]] | None = vars(graph).get(_KEPT)
    if kept is None:
        kept = {}
        for row, name in enumerate(index_of(graph).names):
            if words := content_stems(name):
                kept.setdefault(words, []).append(row)
        vars(graph)[_KEPT] = kept  # with the graph, as its index is, so that both go together
    return kept
