"""What people say of a dimension of a node: sentences that name one node and use words that speak for an end
of a dimension.

The words are those of the catalogue for both ends of each dimension, and for some what people say every day.
A question, a wish and a sentence that names two nodes say nothing; "not cheap" and "no longer cheap" speak
for the other end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kgot_lab.errors import UnknownName
from kgot_lab.experts.learning.contradictions import nodes_named_in
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.dimension_filter import Filters, bounds_of
from kgot_lab.kgos.methods.index import index_of
from kgot_lab.kgos.schemas.dimensions.catalogue import BY_NAME
from kgot_lab.kgos.schemas.dimensions.cues import in_stems
from kgot_lab.text.sentences import rough_sentences

DimensionEnd = Literal["low", "high"]
_EVERY_DAY = """
    pricing_tier | cheap, cheaper, free, inexpensive, affordable | expensive, costly, overpriced, pricey
    learning_curve | easy to learn, easy to understand | hard to learn, hard to understand
    implementation_complexity | easy to build, easy to implement, simple to build | hard to build, hard to implement, complicated to build
    configuration_depth | easy to set up | hard to set up, hard to configure
    debugging_difficulty | easy to debug | hard to debug
    maintenance_burden | easy to maintain | hard to maintain
    compute_intensity | lightweight | heavy on hardware
    error_handling_need | reliable, dependable | unreliable, fails often
    batch_suitability | useless for batches | good for batches
    multilingual_support | english only | multilingual
    multimodal_support | text only | multimodal
    data_sensitivity_level | public | confidential
    schema_strictness | free of any schema | strict about its schema"""
_NEGATED = frozenset({"not", "never", "no", "isn", "aren", "wasn", "hardly", "without"})
_UNSURE = frozenset(
    {"if", "would", "could", "should", "might", "may", "whether", "wish", "hope", "suppos", "were"}
)
_MONTH = re.compile(r"(?<=\w )May\b")  # since May, which is no "may"
_BEFORE = 4  # words before the end's own in which a negation counts


def _phrases() -> dict[str, dict[DimensionEnd, tuple[str, ...]]]:
    made: dict[str, dict[DimensionEnd, tuple[str, ...]]] = {
        name: {"low": (each.low,), "high": (each.high,)} for name, each in BY_NAME.items()
    }
    for line in _EVERY_DAY.strip().splitlines():
        name, low, high = (part.strip() for part in line.split(" | "))
        made[name]["low"] += tuple(low.split(", "))
        made[name]["high"] += tuple(high.split(", "))
    return made


END_PHRASES: Mapping[str, Mapping[DimensionEnd, tuple[str, ...]]] = _phrases()


def _by_stems() -> dict[tuple[str, ...], set[tuple[str, DimensionEnd]]]:
    made: dict[tuple[str, ...], set[tuple[str, DimensionEnd]]] = {}
    for name, ends in END_PHRASES.items():
        for end, phrases in ends.items():
            for phrase in phrases:
                made.setdefault(in_stems(phrase), set()).add((name, end))
    return made


_BY_STEMS = _by_stems()
_LONGEST = max(map(len, _BY_STEMS))


@dataclass(frozen=True)
class DimensionEvidence:
    """That somebody speaks for an end of a dimension of a node: by whom, with which words, in which message
    and when.
    """

    node: str
    dimension: str
    end: DimensionEnd
    by: str
    words: str
    message: str = ""
    at: datetime | None = None


def stated_dimensions(
    graph: PropertyGraph, text: str, *, by: str, message: str = "", at: datetime | None = None
) -> tuple[DimensionEvidence, ...]:
    """What a message says of dimensions of nodes that have them, sentence by sentence."""
    found = []
    for sentence in rough_sentences(text):
        stems = in_stems(sentence)
        if sentence.rstrip().endswith("?") or not _UNSURE.isdisjoint(in_stems(_MONTH.sub("", sentence))):
            continue
        said = list(_phrases_in(stems))
        names = {
            row: _places(in_stems(index_of(graph).names[row]), stems)
            for row in nodes_named_in(graph, sentence)
        }
        # "public data" may be in such a phrase
        rows = [row for row, own in names.items() if not any(own <= places for places, _ in said)]
        if len(rows) != 1:
            continue
        own, known = names[rows[0]], graph.node_properties[rows[0]]
        ends = {
            (dimension, _other(end) if _is_negated(stems, places, own) else end)
            for places, spoken in said
            if own.isdisjoint(places)
            for dimension, end in spoken
            if _number(known.get(dimension)) is not None
        }
        for dimension, end in sorted(ends):
            if (dimension, _other(end)) not in ends:
                found.append(
                    DimensionEvidence(graph.ids[rows[0]], dimension, end, by, sentence.strip(), message, at)
                )
    return tuple(found)


def filter_evidence(
    graph: PropertyGraph, right: str, filters: Filters, said: DimensionEvidence
) -> tuple[DimensionEvidence, ...]:
    """What it says that filters of an expert exclude the right answer: for each that does, evidence that the
    value belongs inside.

    `said` tells who asked, with which words and when; its node, dimension and end are not looked at. Such
    evidence only ever speaks against a value: a wrong answer that many take for right is told as drift, so
    its words are to be read. Raises UnknownName for a node that is not there, BadInput for filters that make
    no sense.
    """
    if right not in graph:
        raise UnknownName("node", right, ())
    found = []
    for name, (least, most) in bounds_of(filters).items():
        value = _number(graph.node(right).properties.get(name))
        if value is not None and (
            (most is not None and value > most) or (least is not None and value < least)
        ):
            end: DimensionEnd = "low" if most is not None and value > most else "high"
            found.append(DimensionEvidence(right, name, end, said.by, said.words, said.message, said.at))
    return tuple(found)


def _phrases_in(stems: tuple[str, ...]) -> Iterator[tuple[frozenset[int], set[tuple[str, DimensionEnd]]]]:
    """The phrases for ends of dimensions in a sentence, of phrases within phrases the longest: their places,
    and the ends.
    """
    at = 0
    while at < len(stems):
        length = next(
            (n for n in range(min(_LONGEST, len(stems) - at), 0, -1) if stems[at : at + n] in _BY_STEMS), 0
        )
        if length:
            yield frozenset(range(at, at + length)), _BY_STEMS[stems[at : at + length]]
        at += length or 1


def _places(name: tuple[str, ...], stems: tuple[str, ...]) -> frozenset[int]:
    """Where the words of a name stand in a sentence."""
    starts = [at for at in range(len(stems)) if name and stems[at : at + len(name)] == name]
    return frozenset(at + step for at in starts for step in range(len(name)))


def _is_negated(stems: tuple[str, ...], places: frozenset[int], name: frozenset[int]) -> bool:
    """Whether one of the words shortly before a phrase negates it; those of the node's own name do not."""
    first = min(places)
    return any(stems[at] in _NEGATED for at in range(max(0, first - _BEFORE), first) if at not in name)


def _other(end: DimensionEnd) -> DimensionEnd:
    return "low" if end == "high" else "high"


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
