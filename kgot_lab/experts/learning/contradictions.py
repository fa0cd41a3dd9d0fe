"""Find dimension values of nodes that people contradict: extract their statements, and test for drift.

The test controls the false discovery rate, so a report is rarely non-empty if nothing has drifted.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from kgot_lab.errors import BadInput, require_count
from kgot_lab.experts.learning.ledger import GraphProposal, PropertyToChange
from kgot_lab.experts.service import ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.io.files import read_tables
from kgot_lab.kgos.editing import CURATED_PROPERTY
from kgot_lab.kgos.methods.index import graph_index
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS_BY_NAME
from kgot_lab.kgos.schemas.extracted_dimensions import text_stems
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import name_units, rough_sentences

# The nodes that a text names by their full names.

_NAMES_ATTRIBUTE = "_learning_names"


def nodes_with_name(graph: PropertyGraph, name: str) -> tuple[str, ...]:
    """Return the ids of the nodes with a name. The id of a node names that node alone."""
    if name in graph:
        return (name,)
    return tuple(graph.ids[row] for row in _rows_by_name(graph).get(name_units(name), ()))


def find_named_nodes(graph: PropertyGraph, text: str) -> tuple[int, ...]:
    """Return the rows of the nodes whose full names occur in a text, in the order of the text.

    Of overlapping names the longest counts.
    """
    found = _longest_matches(_rows_by_name(graph), name_units(text))
    return tuple(dict.fromkeys(row for _, rows in found for row in rows))


_Found = TypeVar("_Found")


def _longest_matches(
    known: Mapping[tuple[str, ...], _Found], words: tuple[str, ...]
) -> Iterator[tuple[frozenset[int], _Found]]:
    """Yield what is known of the phrases of a text, each with its positions; of overlapping ones the longest."""
    longest = max(map(len, known), default=0)
    start = 0
    while start < len(words):
        lengths = range(min(longest, len(words) - start), 0, -1)
        length = next((n for n in lengths if words[start : start + n] in known), 0)
        if length:
            yield frozenset(range(start, start + length)), known[words[start : start + length]]
        start += length or 1


def _rows_by_name(graph: PropertyGraph) -> dict[tuple[str, ...], list[int]]:
    rows_by_name: dict[tuple[str, ...], list[int]] | None = vars(graph).get(_NAMES_ATTRIBUTE)
    if rows_by_name is None:
        rows_by_name = {}
        for row, name in enumerate(graph_index(graph).names):
            if words := name_units(name):
                rows_by_name.setdefault(words, []).append(row)
        vars(graph)[_NAMES_ATTRIBUTE] = rows_by_name  # cached with the graph, as its index is
    return rows_by_name


# Statements about dimensions of nodes: sentences that name one node and use words for an end of a dimension.
#
# The words are those of the catalogue for both ends of each dimension, and for some also everyday words. A
# question, a wish and a sentence that names two nodes count as no statement. "not cheap" and "no longer
# cheap" support the other end.

DimensionEnd = Literal["low", "high"]
_NEGATED = frozenset({"not", "never", "no", "isn", "aren", "wasn", "hardly", "without"})
_UNSURE = frozenset(
    {"if", "would", "could", "should", "might", "may", "whether", "wish", "hope", "suppos", "were"}
)
_MONTH = re.compile(r"(?<=\w )May\b")  # "since May" is no "may"
_NEGATION_WINDOW = 4  # words before the end's own in which a negation counts


def _phrases_by_dimension() -> dict[str, dict[DimensionEnd, tuple[str, ...]]]:
    phrases: dict[str, dict[DimensionEnd, tuple[str, ...]]] = {
        name: {"low": (dimension.low,), "high": (dimension.high,)}
        for name, dimension in DIMENSIONS_BY_NAME.items()
    }
    for name, low, high in read_tables(Path(__file__).with_name("everyday_phrases.txt"))["phrases"]:
        phrases[name]["low"] += tuple(low.split(", "))
        phrases[name]["high"] += tuple(high.split(", "))
    return phrases


END_PHRASES: Mapping[str, Mapping[DimensionEnd, tuple[str, ...]]] = _phrases_by_dimension()


def _ends_by_stems() -> dict[tuple[str, ...], set[tuple[str, DimensionEnd]]]:
    ends_by_stems: dict[tuple[str, ...], set[tuple[str, DimensionEnd]]] = {}
    for name, ends in END_PHRASES.items():
        for end, phrases in ends.items():
            for phrase in phrases:
                ends_by_stems.setdefault(text_stems(phrase), set()).add((name, end))
    return ends_by_stems


_ENDS_BY_STEMS = _ends_by_stems()


@dataclass(frozen=True)
class DimensionEvidence:
    """A statement for one end of a node's dimension: by whom, with which words, in which message and when."""

    node: str
    dimension: str
    end: DimensionEnd
    by: str
    words: str
    message: str = ""
    at: datetime | None = None


def extract_statements(
    graph: PropertyGraph, text: str, *, by: str, message: str = "", at: datetime | None = None
) -> tuple[DimensionEvidence, ...]:
    """Extract what a message says about dimensions of nodes that have them, sentence by sentence."""
    statements, node_names = [], graph_index(graph).names
    for sentence in rough_sentences(text):
        stems = text_stems(sentence)
        if sentence.rstrip().endswith("?") or not _UNSURE.isdisjoint(text_stems(_MONTH.sub("", sentence))):
            continue
        phrases = list(_longest_matches(_ENDS_BY_STEMS, stems))
        named = find_named_nodes(graph, sentence)
        names = {row: _name_positions(text_stems(node_names[row]), stems) for row in named}
        # a name such as "public data" may overlap such a phrase
        rows = [row for row, own in names.items() if not any(own <= places for places, _ in phrases)]
        if len(rows) != 1:
            continue
        own, properties, node = names[rows[0]], graph.node_properties[rows[0]], graph.ids[rows[0]]
        ends = {
            (dimension, _opposite_end(end) if _is_negated(stems, places, own) else end)
            for places, spoken in phrases
            if own.isdisjoint(places)
            for dimension, end in spoken
            if isinstance(value := properties.get(dimension), int | float) and not isinstance(value, bool)
        }
        for dimension, end in sorted(ends):
            if (dimension, _opposite_end(end)) not in ends:
                statements.append(DimensionEvidence(node, dimension, end, by, sentence.strip(), message, at))
    return tuple(statements)


def _name_positions(name: tuple[str, ...], stems: tuple[str, ...]) -> frozenset[int]:
    """Return the positions of the words of a name in a sentence."""
    starts = [at for at in range(len(stems)) if name and stems[at : at + len(name)] == name]
    return frozenset(at + step for at in starts for step in range(len(name)))


def _is_negated(stems: tuple[str, ...], positions: frozenset[int], name: frozenset[int]) -> bool:
    """Return whether a word shortly before a phrase negates it. Words of the node's own name do not count."""
    first = min(positions)
    before = range(max(0, first - _NEGATION_WINDOW), first)
    return any(stems[at] in _NEGATED for at in before if at not in name)


def _opposite_end(end: DimensionEnd) -> DimensionEnd:
    return "low" if end == "high" else "high"


@dataclass(frozen=True)
class ContradictedDimension:
    """A value that people contradict: its direction, how many contradict or confirm it, and their words.

    `p` is the probability of so many contradictions if the value is right, corrected for all values
    mentioned.
    """

    node: str
    dimension: str
    value: float
    way: str  # "lower" or "higher"
    against: int
    agreeing: int
    p: float
    evidence: tuple[DimensionEvidence, ...]

    def __str__(self) -> str:
        said = f"{self.against} of {format_count(self.against + self.agreeing, 'person', 'people')}"
        finding = f"{self.dimension} of {self.node} is {self.value:g}"
        return f"{finding}: {said} say it is {self.way} (p {self.p:.2g})"


@dataclass(frozen=True)
class ContradictionReport:
    """Contradicted values, the most significant first.

    Also the number of values mentioned, and of messages older than their values.
    """

    found: tuple[ContradictedDimension, ...]
    watched: int
    stale: int

    def __str__(self) -> str:
        count = format_count(len(self.found), "value")
        head = f"{count} contradicted of {self.watched:,} that people spoke of"
        return "\n".join([head, *map(str, self.found)])


# how often a person errs, the false discovery rate, and how far a value near .5 is at neither end
_ERROR_RATE, _ALPHA, _MIDDLE = (0.2, 0.05, 0.1)


def find_contradictions(graph: PropertyGraph, evidence: Iterable[DimensionEvidence]) -> ContradictionReport:
    """Find the dimension values that more people contradict than errors explain.

    For each person and value only the last statement counts, and only if it is not older than the mark of the
    last manual change of the node. If a value is right, a person contradicts it with probability at most e =
    .2. The p-value is P(X >= against) for X ~ Bin(against + agreeing, e). It is corrected over all values
    mentioned, so that the false discovery rate is at most .05, and a report without any drift is empty with
    probability .95 (Benjamini and Hochberg 1995). A value within .1 of .5 is at neither end, so nothing
    contradicts it.
    """
    latest: dict[tuple[str, str], dict[str, DimensionEvidence]] = defaultdict(dict)
    stale = 0
    for statement in sorted(evidence, key=lambda one: one.at.timestamp() if one.at else -math.inf):
        value = None
        if statement.node in graph:
            value = graph.node(statement.node).properties.get(statement.dimension)
        if not isinstance(value, int | float) or isinstance(value, bool) or abs(value - 0.5) <= _MIDDLE:
            continue
        if _is_stale(graph, statement):
            stale += 1
            continue
        latest[statement.node, statement.dimension][statement.by] = statement
    tested = [
        _test_value(graph, node, dimension, list(statements.values()))
        for (node, dimension), statements in sorted(latest.items())
    ]
    corrected = benjamini_hochberg([statement.p for statement in tested])
    drifted = [(each, p) for each, p in zip(tested, corrected, strict=True) if p <= _ALPHA and each.against]
    contradicted = [ContradictedDimension(**{**vars(each), "p": p}) for each, p in drifted]
    contradicted.sort(key=lambda each: (each.p, each.node, each.dimension))
    return ContradictionReport(tuple(contradicted), len(tested), stale)


def contradiction_proposal(graph: str, contradicted: ContradictedDimension, value: float) -> GraphProposal:
    """Create the proposal to replace a contradicted value by one that a person gives.

    Raises BadInput if the new value is not from 0 to 1, or not in the direction that people state.
    """
    is_lower = value < contradicted.value
    if not 0 <= value <= 1 or value == contradicted.value or is_lower != (contradicted.way == "lower"):
        statement = f"{contradicted.dimension} is {contradicted.way} than {contradicted.value:g}"
        raise BadInput(f"people say that {statement}: give such a value, from 0 to 1")
    change = PropertyToChange(contradicted.node, contradicted.dimension, value, contradicted.value)
    return GraphProposal(graph, (change,))


def _test_value(
    graph: PropertyGraph, node: str, dimension: str, statements: list[DimensionEvidence]
) -> ContradictedDimension:
    value = float(graph.node(node).properties[dimension])
    wrong = "low" if value > 0.5 else "high"
    against = tuple(statement for statement in statements if statement.end == wrong)
    p = binomial_tail(len(against), len(statements), _ERROR_RATE)
    direction = "lower" if wrong == "low" else "higher"
    counts = len(against), len(statements) - len(against)
    return ContradictedDimension(node, dimension, value, direction, *counts, p, against)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for the false discovery rate (Benjamini-Hochberg), in the order given.

    The i-th smallest is multiplied by n / i, and the result is made monotone.
    """
    order = np.argsort(p_values)
    scaled = np.asarray(p_values)[order] * len(p_values) / np.arange(1, len(p_values) + 1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(max=1.0)
    return [float(p) for p in corrected]


def binomial_tail(minimum: int, trials: int, rate: float) -> float:
    """Return P(X >= least) for X ~ Bin(of, rate)."""
    tail = range(minimum, trials + 1)
    return min(1.0, math.fsum(math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in tail))


def _is_stale(graph: PropertyGraph, statement: DimensionEvidence) -> bool:
    """Return whether a statement is older than the last manual change of the node.

    A statement without a time is never stale.
    """
    if statement.at is None:
        return False
    mark = graph.node(statement.node).properties.get(CURATED_PROPERTY)
    try:
        changed = datetime.fromisoformat(str(mark["at"])) if isinstance(mark, dict) else None
    except (KeyError, ValueError):
        return False  # a mark by other tools has no time
    return changed is not None and changed.tzinfo is not None and statement.at < changed


# Contradicted dimensions of an expert's graphs, from the messages of all people who talk to it.

# the default and the maximal number of days to look back
DRIFT_DAYS, MOST_DRIFT_DAYS = (90, 3650)
_MAX_MESSAGES = 20_000  # messages that are read, the latest ones


def report_drift(
    service: ExpertService, id: str, *, days: int = DRIFT_DAYS
) -> dict[str, ContradictionReport]:
    """Report the dimension values that people contradicted in the last days, for each graph of an expert.

    A person is the owner of a conversation. On a server without tokens all people are therefore one, and one
    person is never enough. The reports hold everybody's words, which must be removed before others see them.
    Raises NotFound if there is no such expert, and BadInput if `days` is below 1.
    """
    require_count(days, 1, "days")
    expert = service.expert(id)
    since = service.tables.now() - timedelta(days=min(days, MOST_DRIFT_DAYS))
    messages = service.tables.user_messages(id, since, _MAX_MESSAGES)
    reports = {}
    for name in expert.graphs:
        graph = service.graphs.graph(name)
        evidence = chain.from_iterable(
            extract_statements(graph, text, by=owner, message=id, at=at) for owner, id, text, at in messages
        )
        reports[name] = find_contradictions(graph, evidence)
    return reports
