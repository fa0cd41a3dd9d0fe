"""Which node somebody means who types: its id, its name, or the end of either."""

from __future__ import annotations

from collections.abc import Callable

from kgot_lab.errors import BadInput
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.index import index_of

_TOLD = 8  # ids that an error names


def meant_node(graph: PropertyGraph, said: str) -> str:
    """The id of the node that is meant: by its id, by its name, or by the end of its id behind a dot, a
    slash, a colon or a #.

    Capitals do not matter where one node is meant without them. Raises BadInput where several are meant,
    naming some, and UnknownName with near ids where none is.
    """
    if said in graph:
        return said
    index = index_of(graph)
    low = said.casefold().removesuffix("()")
    plain = said.removesuffix("()")
    if plain in graph:
        return plain
    ends = tuple(f"{mark}{low}" for mark in ".:/#")
    ways: tuple[Callable[[str, str], bool], ...] = (
        lambda _, name: name == said,
        lambda _, name: name.casefold() == low,
        lambda id, _: id.casefold().removesuffix("()").endswith(ends),
    )
    for way in ways if said.strip() else ():
        found = [id for id, name in zip(graph.ids, index.names, strict=True) if way(id, name)]
        if len(found) == 1:
            return found[0]
        if found:
            more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
            raise BadInput(
                f"{said!r} may mean {', '.join(found[:_TOLD])}{more}: say its id, or more of its end"
            )
    return graph.ids[index.row(said)]
