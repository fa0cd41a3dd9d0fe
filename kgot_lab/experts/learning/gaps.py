"""Why answers failed: a graph that lacks something, a search that is set so that it does not find it, and
what failed questions share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.experts.learning.gaps import FailurePattern, QuestionRecord, failure_patterns
from kgot_lab.experts.learning.growth_regions import (
    NodeMatches,
    ProposedRegion,
    joined_regions,
    proposed_region,
)
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.retrieval.presets import lane_weights
from kgot_lab.text.counted import counted

_USUAL = RetrievalConfig()
_FIRST = 3  # nodes of the usual search that are looked at


@dataclass(frozen=True)
class KnowledgeGap:
    """A failed question for which the graph holds nothing better than what was told; `match` is that of the
    best node, from 0 to 1.
    """

    asked: QuestionRecord
    match: float

    def __str__(self) -> str:
        return f"{self.asked.question[:80]!r}: the best node matches {self.match:.2f}; the graph holds nothing better than what was told"


@dataclass(frozen=True)
class Misconfiguration:
    """A failed question whose answer may be a node of the graph that was not told, and which setting keeps
    that out.

    `setting` is "filters", "weights", "edge types", "methods", "limit", or "ranking" where none of them is at
    fault.
    """

    asked: QuestionRecord
    setting: str
    node: str
    match: float
    told_match: float

    def __str__(self) -> str:
        told = f"{self.node} matches {self.match:.2f} and was not told, what was told {self.told_match:.2f}"
        return f"{self.asked.question[:80]!r}: {told}; at fault: {self.setting}"


@dataclass(frozen=True)
class GapReport:
    """What is to be learnt from failed answers; `unexplained` are failures of the model, whose answer cites
    what is not there.

    While a setting is at fault most failures are put down to it, also of questions that the graph cannot
    answer: mend it and ask again.
    """

    asked: int
    failed: int
    gaps: tuple[KnowledgeGap, ...]
    misconfigured: tuple[Misconfiguration, ...]
    patterns: tuple[FailurePattern, ...]
    regions: tuple[ProposedRegion, ...]
    unexplained: tuple[QuestionRecord, ...]

    def __str__(self) -> str:
        head = f"{self.failed} of {counted(self.asked, 'answer')} failed: {counted(len(self.gaps), 'gap')}, "
        head += f"{len(self.misconfigured)} by settings, {len(self.unexplained)} unexplained"
        return "\n".join(
            [head, *map(str, self.patterns), *map(str, self.misconfigured), *map(str, self.regions)]
        )


@dataclass(frozen=True)
class GapSettings:
    """When a node matches clearly better: by at least `margin` more than all that was told, and at least
    `least`.

    Defaults are for cosines of MiniLM, set on the tuning half of the queries of the bundled graph.
    """

    margin: float = 0.1
    least: float = 0.4

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1 or not 0 <= self.least < 1:
            raise BadInput("margin and least lie between 0 and 1")


def gap_report(
    graph: PropertyGraph,
    asked: Sequence[QuestionRecord],
    *,
    config: RetrievalConfig | None = None,
    embedder: Embedder | None = None,
    settings: GapSettings | None = None,
    matches: NodeMatches | None = None,
) -> GapReport:
    """Why the failed of some questions failed, and what to add to the graph; `config` is how the expert
    searches.

    A failed question is one of a misconfiguration where another setting, the usual one, puts a node among its
    first three that was not told and is the first or matches as well as what was told; or where any node
    matches clearly better than what was told. Else it is unexplained where its citations alone were false,
    and a gap where they were not. A gap proposes a node next to what was told; gaps that share ends or words
    are one. Patterns are told of all failed questions.
    """
    settings, config = settings or GapSettings(), config or _USUAL
    matches = matches or NodeMatches(graph, embedder)
    failed = [each for each in asked if each.failures]
    gaps, misconfigured, unexplained, regions = [], [], [], []
    for each in failed:
        strengths = matches.of(each.question)
        told = max((float(strengths[graph.row(id)]) for id in each.told if id in graph), default=0.0)
        best = int(strengths.argmax())
        setting, node = _filtered_nodes(graph, each, config, embedder, strengths, told)
        if not setting and float(strengths[best]) >= max(settings.least, told + settings.margin):
            setting, node = "ranking", graph.ids[best]
        if setting:
            misconfigured.append(
                Misconfiguration(each, setting, node, float(strengths[graph.row(node)]), told)
            )
        elif each.failures == ("false citations",):
            unexplained.append(each)
        else:
            gaps.append(KnowledgeGap(each, float(strengths[best])))
            regions.append(proposed_region(matches, each.question, each.message, each.told))
    return GapReport(
        len(asked),
        len(failed),
        tuple(gaps),
        tuple(misconfigured),
        failure_patterns(asked),
        joined_regions(regions),
        tuple(unexplained),
    )


def _filtered_nodes(
    graph: PropertyGraph,
    asked: QuestionRecord,
    config: RetrievalConfig,
    embedder: Embedder | None,
    strengths: NDArray[np.float64],
    told_match: float,
) -> tuple[str, str]:
    """The first setting whose usual value would have told a node that may be the answer, and the node; two
    empty texts where none would.
    """
    told = frozenset(asked.told)
    for name, other in _variants(config):
        nodes = intent_search(graph, asked.question, config=other, embedder=embedder).nodes[:_FIRST]
        for place, node in enumerate(nodes):
            if told.isdisjoint(node.sources) and (place == 0 or strengths[graph.row(node.id)] >= told_match):
                return name, node.id
    return "", ""


def _variants(config: RetrievalConfig) -> Iterator[tuple[str, RetrievalConfig]]:
    """The configurations that differ from one in a setting that is not as usual."""
    if config.dimension_filters:
        yield "filters", replace(config, dimension_filters={})
    if config.boost_types is not None:
        yield "edge types", replace(config, boost_types=None)
    if set(config.methods) != set(_USUAL.methods):
        yield "methods", replace(config, methods=_USUAL.methods)
    if lane_weights(config.weights, *config.lanes) != lane_weights(_USUAL.weights, *config.lanes):
        yield "weights", replace(config, weights=_USUAL.weights)
    if config.limit < _USUAL.limit:
        yield "limit", replace(config, limit=_USUAL.limit)
