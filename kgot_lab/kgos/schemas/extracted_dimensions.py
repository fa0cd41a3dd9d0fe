"""Dimensions that are computed from the edges and texts of a graph; all others are listed as not extractable.

From edges, both as in the document: `relationship_richness` is degree centrality, counted in distinct
neighbours so that parallel edges do not raise it, and `implementation_complexity` is the number of `requires`
edges. Each is divided by the maximum in the graph, as the document divides scores. Edge counts for four more
dimensions were left out, since they did not agree with the ratings of the cookbook
(benchmarks/results/dimension_extraction.json). From text: `knowledge_density` is the share of different words
that are not stop words. The others compare words for the high end with words for the low end (see CUES) by
the rule of succession, (high + 1) / (high + low + 2), so that one word alone has little effect. Without any
such word there is no value.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from kgot_lab.arguments import check_arguments
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_tables
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS, to_number
from kgot_lab.kgos.schemas.rules import edge_rows_of_types
from kgot_lab.retrieval.neighbours import Links
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import SEARCH_STOP_WORDS, casefold_words, name_tokens, stem
from kgot_lab.types import Json

# Words that indicate the low and the high end of a dimension in a text.
#
# The document gives one of these, `pricing_tier` from "cost" and "price". The others are ours, and were
# written before they were compared with any rating. Dimensions of quality (how well code is written, how much
# is overlooked) have none, since praise in a description is not a measure. A dash means that there is no
# common word for the low end.


def text_stems(text: str) -> tuple[str, ...]:
    """Return the stems of the words of a text, with underscores and hyphens read as spaces."""
    return tuple(map(stem, name_tokens(text)))


def _stem_phrases(phrases: str) -> frozenset[tuple[str, ...]]:
    return frozenset(text_stems(phrase) for phrase in phrases.split(",") if phrase != "-")


CUES: Mapping[str, tuple[frozenset[tuple[str, ...]], frozenset[tuple[str, ...]]]] = MappingProxyType(
    {
        name: (_stem_phrases(low), _stem_phrases(high))
        for name, low, high in read_tables(Path(__file__).with_name("cues.txt"))["cues"]
    }
)
MAX_CUE_WORDS = max(len(phrase) for ends in CUES.values() for end in ends for phrase in end)


_Values = NDArray[np.float64]
_MIN_WORDS = 5  # words of a text from which on density is meaningful
_DIGITS = 6  # kept of a computed value: more would be noise in a diff
_PRICE_STEMS = set(text_stems("price cost"))
_TEXT_PROPERTIES = ("name", "description", "text")
EXTRACTABLE = ("relationship_richness", "implementation_complexity", "knowledge_density", *CUES)
NOT_EXTRACTABLE = tuple(dimension.name for dimension in DIMENSIONS if dimension.name not in EXTRACTABLE)


@dataclass(frozen=True, eq=False, repr=False)
class ExtractedDimensions:
    """Computed values by dimension, shape (nodes,), NaN if nothing indicates one."""

    graph: PropertyGraph
    values: Mapping[str, _Values]

    def of(self, id: str) -> dict[str, float]:
        """Return the computed dimensions of a node.

        Raises UnknownName if there is no such node.
        """
        row = self.graph.row(id)
        of_row = {name: float(values[row]) for name, values in self.values.items()}
        return {name: value for name, value in of_row.items() if not math.isnan(value)}

    def __repr__(self) -> str:
        filled = {name: int(np.count_nonzero(~np.isnan(values))) for name, values in self.values.items()}
        present = ", ".join(f"{name} {count:,}" for name, count in filled.items() if count)
        silent = [name for name, count in filled.items() if not count]
        lines = [f"{format_count(len(self.graph), 'node')}; computed: {present or 'nothing'}"]
        lines += [f"nothing in this graph speaks for: {', '.join(silent)}"] if silent else []
        return "\n".join([*lines, f"not extractable: {', '.join(NOT_EXTRACTABLE)}"])


@check_arguments
def extract_dimensions(graph: PropertyGraph) -> ExtractedDimensions:
    """Compute the dimensions that the edges and texts of a graph determine.

    Values that nodes already have are ignored.
    """
    stems = [text_stems(text) for text in _node_texts(graph)]
    indptr = Links.of(graph).distinct_neighbours.indptr if len(graph) else np.zeros(1)
    requires = edge_rows_of_types(graph, "requires")
    required = np.bincount(graph.sources[requires], minlength=len(graph)).astype(np.float64)
    values = {"relationship_richness": _divide_by_max(np.diff(indptr).astype(np.float64))}
    values["implementation_complexity"] = _divide_by_max(
        required if len(requires) else np.full(len(graph), math.nan)
    )
    densities = [_knowledge_density(text) for text in _node_texts(graph)]
    values["knowledge_density"] = np.array(densities, dtype=np.float64)
    values |= _score_cues(stems)
    prices = np.array([_find_price(properties) for properties in graph.node_properties], dtype=np.float64)
    values["pricing_tier"] = np.where(np.isnan(prices), values["pricing_tier"], _divide_by_max(prices))
    return ExtractedDimensions(graph, {name: np.round(values[name], _DIGITS) for name in EXTRACTABLE})


def _node_texts(graph: PropertyGraph) -> Iterator[str]:
    for properties in graph.node_properties:
        yield ". ".join(text for key in _TEXT_PROPERTIES if isinstance(text := properties.get(key), str))


def _divide_by_max(counts: _Values) -> _Values:
    """Divide counts by their maximum, keeping NaN.

    All are 0 if the maximum is 0.
    """
    greatest = np.nanmax(counts) if np.any(~np.isnan(counts)) else 0.0
    return counts / greatest if greatest > 0 else counts


def _knowledge_density(text: str) -> float:
    words = casefold_words(text)
    return len(set(words) - SEARCH_STOP_WORDS) / len(words) if len(words) >= _MIN_WORDS else math.nan


def _score_cues(texts: list[tuple[str, ...]]) -> dict[str, _Values]:
    """Score each text on each dimension that has cues, from its words for the low and the high end.

    The score is NaN if a text has no cue.
    """
    found = {name: np.full(len(texts), math.nan) for name in CUES}
    for row, stems in enumerate(texts):
        sizes = range(1, MAX_CUE_WORDS + 1)
        phrases = Counter(stems[at : at + size] for size in sizes for at in range(len(stems) - size + 1))
        for name, (low, high) in CUES.items():
            against, for_ = sum(phrases[cue] for cue in low), sum(phrases[cue] for cue in high)
            if against or for_:
                found[name][row] = (for_ + 1) / (for_ + against + 2)
    return found


def _find_price(properties: Mapping[str, Json]) -> float:
    """Return the first non-negative number under a name with price or cost, or NaN."""
    named = (to_number(value) for name, value in properties.items() if _PRICE_STEMS & set(text_stems(name)))
    return next((number for number in named if number >= 0), math.nan)
