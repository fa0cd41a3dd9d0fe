"""A graph as a few lines of text: how much there is, what is used most, and the first facts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

from kgot_lab.text.cleaning import counted, harmless
from kgot_lab.types import Triple

if TYPE_CHECKING:
    from kgot_lab.graph.property_graph import PropertyGraph

_SHOWN = 5  # labels, relations and facts that are named
_LINE = 140  # characters of a line
_NAME = 40  # characters of a label or a relation


def summary(graph: PropertyGraph) -> str:
    """The counts, on one line."""
    counts = (
        (len(graph), "node"),
        (len(graph.edges), "edge"),
        (len(graph.labels()), "label"),
        (len(graph.types()), "relation"),
    )
    return f"<PropertyGraph: {', '.join(counted(count, noun) for count, noun in counts)}>"


def printed(graph: PropertyGraph) -> str:
    """The counts, the labels and relations used most, and the first facts; no text of the graph begins a line
    of its own.
    """
    most_used = [
        f"{what}: {_named(counts)}"
        for what, counts in (("labels", graph.labels()), ("relations", graph.types()))
        if counts
    ]
    facts = [str(Triple(edge.source, edge.type, edge.target)) for edge in islice(graph.edges, _SHOWN)]
    more = [f"… and {len(graph.edges) - _SHOWN:,} more"] if len(graph.edges) > _SHOWN else []
    return "\n".join([summary(graph), *(f"  {_short(line, _LINE)}" for line in (*most_used, *facts, *more))])


def _named(counts: Mapping[str, int]) -> str:
    more = [f"… and {len(counts) - _SHOWN:,} more"] if len(counts) > _SHOWN else []
    return ", ".join(
        [*(f"{_short(name, _NAME)} {count:,}" for name, count in islice(counts.items(), _SHOWN)), *more]
    )


def _short(text: str, most: int) -> str:
    """A text on one line that does nothing to a terminal, cut where it is too long."""
    line = harmless(text)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
