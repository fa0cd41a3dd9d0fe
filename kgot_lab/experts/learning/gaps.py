"""Why answers failed: a graph that lacks something, a search that is set so that it does not find it, and what failed questions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadInput
from kgot_lab.experts.learning.failed import AskedQuestion
from kgot_lab.experts.learning.matches import NodeMatches
from kgot_lab.experts.learning.patterns import FailurePattern, failure_patterns
from kgot_lab.experts.learning.regions import ProposedRegion, joined_regions, proposed_region
from kgot_lab.graph import PropertyGraph
from kgot_lab.methods.search.configuration import RetrievalConfig
from kgot_lab.methods.search.intent_search import intent_search
from kgot_lab.text.counted import counted

_USUAL = RetrievalConfig()


@dataclass(frozen=True)
class KnowledgeGap:
    """A failed question for which the graph holds nothing better than what was told; `match` is that of the best node, from 0 to 1."""

    asked: AskedQuestion
    match: float


@dataclass(frozen=True)
class Misconfiguration:
    """A failed question that a node of the graph matches clearly better than all that was told, and which setting keeps it out.

    `setting` is "filters", "weights", "edge types", "methods", "limit", or "ranking" where no other setting brings the node.
    """

    asked: AskedQuestion
    setting: str
    node: str
    match: float
    told_match: float

    def __str__(self) -> str:
        told = f"{self.node} matches {self.match:.2f} and was not told, what was told {self.told_match:.2f}"
        return f"{self.asked.question[:80]!r}: {told}; at fault: {self.setting}"


@dataclass(frozen=True)
class GapReport:
    """What is to be learnt from failed answers; `unexplained` are failures of the model, whose answer cites what is not there."""

    asked: int
    failed: int
    gaps: tuple[KnowledgeGap, ...]
    misconfigured: tuple[Misconfiguration, ...]
    patterns: tuple[FailurePattern, ...]
    regions: tuple[ProposedRegion, ...]
    unexplained: tuple[AskedQuestion, ...]

    def __str__(self) -> str:
        head = f"{self.failed} of {counted(self.asked, 'answer')} failed: {counted(len(self.gaps), 'gap')}, "
        head += f"{len(self.misconfigured)} by settings, {len(self.unexplained)} unexplained"
        return "\n".join([head, *map(str, self.patterns), *map(str, self.misconfigured), *map(str, self.regions)])


@dataclass(frozen=True)
class GapSettings:
    """When a node matches clearly better: by at least `margin` more than all that was told, and at least `least`.

    Defaults are for cosines of MiniLM, set on the tuning half of the queries of the bundled graph.
    """

    margin: float = 0.1
    least: float = 0.4

    def __post_init__(self) -> None:
        if not 0 < self.margin < 1 or not 0 <= self.least < 1:
            raise BadInput("margin and least lie between 0 and 1")


def gap_report(
    graph: PropertyGraph,
    asked: Sequence[AskedQuestion],
    *,
    config: RetrievalConfig | None = None,
    embedder: Embedder | None = None,
    settings: GapSettings | None = None,
    matches: NodeMatches | None = None,
) -> GapReport:
    """Why the failed of some questions failed, and what to add to the graph; `config` is how the expert searches.

    A failed question is one of a misconfiguration where a node matches it clearly better than what was told, one of a gap where none does,
    and unexplained where its citations alone were false. A gap proposes a node next to what was told; gaps that share ends or words are
    one. Patterns are told of all failed questions.
    """
    settings, config = settings or GapSettings(), config or _USUAL
    matches = matches or NodeMatches(graph, embedder)
    failed = [each for each in asked if each.failures]
    gaps, misconfigured, unexplained, regions = [], [], [], []
    for each in failed:
        strengths = matches.of(each.question)
        told = max((float(strengths[graph.row(id)]) for id in each.told if id in graph), default=0.0)
        best = int(strengths.argmax())
        if float(strengths[best]) >= max(settings.least, told + settings.margin):
            setting = at_fault(graph, each.question, graph.ids[best], config, embedder)
            misconfigured.append(Misconfiguration(each, setting, graph.ids[best], float(strengths[best]), told))
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


def at_fault(graph: PropertyGraph, question: str, node: str, config: RetrievalConfig, embedder: Embedder | None = None) -> str:
    """Which setting keeps a node out of what a question finds: the first whose usual value brings it in; "ranking" where none does."""
    for name, other in _variants(config):
        if any(node in each.sources for each in intent_search(graph, question, config=other, embedder=embedder).nodes):
            return name
    return "ranking"


def _variants(config: RetrievalConfig) -> Iterator[tuple[str, RetrievalConfig]]:
    """The configurations that differ from one in a setting that is not as usual."""
    if config.dimension_filters:
        yield "filters", replace(config, dimension_filters={})
    if config.boost_types is not None:
        yield "edge types", replace(config, boost_types=None)
    if config.methods != _USUAL.methods:
        yield "methods", replace(config, methods=_USUAL.methods)
    if config.weights != _USUAL.weights:
        yield "weights", replace(config, weights=_USUAL.weights)
    if config.limit < _USUAL.limit:
        yield "limit", replace(config, limit=_USUAL.limit)
