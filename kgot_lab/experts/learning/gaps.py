"""Explain failed answers: missing nodes, search settings that hide nodes, and common patterns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.significance import holm
from kgot_lab.experts.learning.growth_regions import (
    NodeMatches,
    ProposedRegion,
    merge_regions,
    propose_region,
)
from kgot_lab.experts.repository import ChatMessage, ExpertTables
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.methods.search.configuration import RetrievalConfig
from kgot_lab.kgos.methods.search.intent_search import intent_search
from kgot_lab.retrieval.fusion import normalised_weights
from kgot_lab.text.cleaning import format_count
from kgot_lab.text.words import searched_words, stem

# Questions to an expert and their outcomes: which answers failed, and the evidence for it.

FAILURES = ("thumbs down", "does not know", "false citations", "nothing retrieved")
_DOES_NOT_KNOW = re.compile(
    r"\b(i|we) (do not|don['’]?t|cannot|can['’]?t|could not|couldn['’]?t|am unable to|['’]m unable to) (know|say|tell|answer|find)\b"
    r"|\bi have no (information|knowledge|data)\b"
    r"|\b(graph|context|sources?|material)\b[^.!?\n]{0,40}\b(does|do|did) ?(not|n['’]t) "
    r"(say|tell|know|hold|contain|cover|mention|include|answer)\b"
    r"|\b(graph|context)\b[^.!?\n]{0,30}\b(holds|contains|has|says|knows) nothing\b"
    r"|\bnothing (in|of) the (knowledge )?(graph|context)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QuestionRecord:
    """A question and its outcome.

    It has the nodes of one graph in the prompt and the cited ones, best first, the false citations, and the
    thumb or None.
    """

    message: str  # the id of the answer
    question: str
    answer: str = ""
    told: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    thumb: int | None = None
    intent: str = ""

    @property
    def failures(self) -> tuple[str, ...]:
        """The ways, of four, in which the answer failed. A thumb up means that it did not, whatever else."""
        if self.thumb == 1:
            return ()
        signs = (self.thumb == -1, admits_not_knowing(self.answer), bool(self.false), not self.told)
        return tuple(name for name, failed in zip(FAILURES, signs, strict=True) if failed)


def admits_not_knowing(answer: str) -> bool:
    """Return whether an answer says, in English, that it does not know or that the graph does not say it."""
    return _DOES_NOT_KNOW.search(answer) is not None


def question_records(
    messages: Sequence[ChatMessage], thumbs: Mapping[str, int], graph: str
) -> tuple[QuestionRecord, ...]:
    """Return the questions of a conversation with their outcomes, as seen by one graph of the expert.

    `thumbs` are by the id of the answer. An answer that was stopped or that failed says nothing about the
    graph and is left out.
    """
    records = []
    for question, answer in pairwise(messages):
        metadata = answer.metadata
        is_exchange = (question.role, answer.role) == ("user", "assistant") and "trace" in metadata
        if not is_exchange or metadata.get("failed") or metadata.get("stopped"):
            continue
        nodes = [each["id"] for each in metadata["trace"]["nodes"] if each["told"] and each["graph"] == graph]
        cited = tuple(each["id"] for each in metadata.get("citations", ()) if each["graph"] == graph)
        false = tuple(metadata.get("false_citations", ()))
        thumb, intent = thumbs.get(answer.id), str(metadata.get("intent") or "")
        texts = answer.id, question.content, answer.content
        records.append(QuestionRecord(*texts, tuple(nodes), cited, false, thumb, intent))
    return tuple(records)


def owner_questions(tables: ExpertTables, expert: str, owner: str, graph: str) -> tuple[QuestionRecord, ...]:
    """Return the questions of an owner to an expert, from the latest 200 conversations, the latest first.

    The questions of several people are the union of these. Joining them shows the words of one person to
    everyone who reads the report.
    """
    thumbs = {
        answer.message: answer.thumb for answer in tables.judged_answers(expert) if answer.thumb is not None
    }
    conversations, _ = tables.conversations(expert, owner, limit=200)
    records = (question_records(tables.messages(talk.id), thumbs, graph) for talk in conversations)
    return tuple(chain.from_iterable(records))


# Patterns of failed questions: an intent or a word whose questions fail more often than the others.


@dataclass(frozen=True)
class FailurePattern:
    """An intent or word whose questions fail more often.

    It has the number of questions asked and failed, and the p-value corrected for all kinds.
    """

    kind: str  # "intent" or "word"
    name: str
    asked: int
    failed: int
    p: float
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.failed} of {self.asked} failed (p {self.p:.2g})"


_ALPHA, _MIN_FAILURES = 0.05, 3


def failure_patterns(questions: Sequence[QuestionRecord]) -> tuple[FailurePattern, ...]:
    """Find the intents and question words with more failures than chance explains.

    The most significant come first. At least three of their questions must have failed. The test is Fisher's
    exact test, one-sided: the chance that of k questions so many are among the f failed of n, drawn without
    replacement. It is corrected by Holm over every intent and word that at least three questions have.
    """
    by_kind: dict[tuple[str, str], list[QuestionRecord]] = defaultdict(list)
    spelled: dict[str, str] = {}
    for question in questions:
        if question.intent:
            by_kind["intent", question.intent].append(question)
        for word in dict.fromkeys(searched_words(question.question)):
            spelled.setdefault(stem(word), word)
        for root in {stem(word) for word in searched_words(question.question)}:
            by_kind["word", root].append(question)
    tested = {kind: records for kind, records in sorted(by_kind.items()) if len(records) >= _MIN_FAILURES}
    failed = sum(bool(question.failures) for question in questions)
    counts = {kind: sum(bool(record.failures) for record in records) for kind, records in tested.items()}
    size = len(questions)
    corrected = holm(
        [hypergeometric_tail(counts[kind], len(records), failed, size) for kind, records in tested.items()]
    )
    patterns = []
    for ((kind, name), records), p in zip(tested.items(), corrected, strict=True):
        if p <= _ALPHA and counts[kind, name] >= _MIN_FAILURES:
            shown, sizes = spelled[name] if kind == "word" else name, (len(records), counts[kind, name])
            failed_ids = tuple(record.message for record in records if record.failures)
            patterns.append(FailurePattern(kind, shown, *sizes, p, failed_ids))
    return tuple(sorted(patterns, key=lambda pattern: (pattern.p, pattern.kind, pattern.name)))


def hypergeometric_tail(minimum: int, drawn: int, marked: int, population: int) -> float:
    """Return the upper tail of the hypergeometric distribution.

    This is P(at least so many of the drawn are marked), drawn without replacement.
    """
    ways, tail = comb(population, drawn), range(minimum, min(drawn, marked) + 1)
    return sum(comb(marked, k) * comb(population - marked, drawn - k) for k in tail) / ways


_DEFAULT_CONFIG = RetrievalConfig()
_TOP_RESULTS = 3  # nodes of the default search that are considered
# A node matches clearly better if it matches better by the margin than all nodes in the prompt, and at least so
# much. For cosines of MiniLM, set on the tuning half of the queries of the bundled graph.
_MARGIN, _MIN_MATCH = 0.1, 0.4


@dataclass(frozen=True)
class KnowledgeGap:
    """A failed question for which the graph has nothing better than the nodes in the prompt.

    `match` is that of the best node, from 0 to 1.
    """

    asked: QuestionRecord
    match: float

    def __str__(self) -> str:
        best = f"the best node matches {self.match:.2f}"
        return f"{self.asked.question[:80]!r}: {best}; the graph holds nothing better than the nodes in the prompt"


@dataclass(frozen=True)
class Misconfiguration:
    """A failed question whose answer may be a node that was not in the prompt, because of a setting.

    `setting` is "filters", "weights", "edge types", "methods", "limit", or "ranking" if none of them is the
    cause.
    """

    asked: QuestionRecord
    setting: str
    node: str
    match: float
    told_match: float

    def __str__(self) -> str:
        missed = f"{self.node} matches {self.match:.2f} and was not in the prompt, whose best node matches {self.told_match:.2f}"
        return f"{self.asked.question[:80]!r}: {missed}; at fault: {self.setting}"


@dataclass(frozen=True)
class GapReport:
    """What can be learned from failed answers. `unexplained` are failures of the model, with false citations.

    As long as a setting is wrong, most failures are attributed to it, even of questions that the graph cannot
    answer. Correct it and repeat the report.
    """

    asked: int
    failed: int
    gaps: tuple[KnowledgeGap, ...]
    misconfigured: tuple[Misconfiguration, ...]
    patterns: tuple[FailurePattern, ...]
    regions: tuple[ProposedRegion, ...]
    unexplained: tuple[QuestionRecord, ...]

    def __str__(self) -> str:
        head = f"{self.failed} of {format_count(self.asked, 'answer')} failed: {format_count(len(self.gaps), 'gap')}, "
        head += f"{len(self.misconfigured)} by settings, {len(self.unexplained)} unexplained"
        return "\n".join([head, *map(str, (*self.patterns, *self.misconfigured, *self.regions))])


def gap_report(
    graph: PropertyGraph,
    questions: Sequence[QuestionRecord],
    *,
    config: RetrievalConfig | None = None,
    embedder: Embedder | None = None,
) -> GapReport:
    """Explain why questions failed, and propose what to add to the graph.

    `config` is how the expert searches. A failed question is attributed to a misconfiguration if changing one
    setting to its default puts a node that was not in the prompt among the first three results, where it is
    first or matches as well as the nodes in the prompt. The same holds if any node matches clearly better
    than those. Otherwise it is unexplained if only its citations were false, and else a gap. A gap proposes a
    node next to those in the prompt. Gaps that share ends or words are merged. Patterns cover all failed
    questions.
    """
    config, matches = config or _DEFAULT_CONFIG, NodeMatches(graph, embedder)
    failed = [question for question in questions if question.failures]
    gaps, misconfigured, unexplained, regions = [], [], [], []
    for question in failed:
        scores = matches.scores(question.question)
        prompt_score = max((float(scores[graph.row(id)]) for id in question.told if id in graph), default=0.0)
        best = int(scores.argmax())
        setting, node = _find_misconfiguration(graph, question, config, embedder, scores, prompt_score)
        if not setting and float(scores[best]) >= max(_MIN_MATCH, prompt_score + _MARGIN):
            setting, node = "ranking", graph.ids[best]
        if setting:
            score = float(scores[graph.row(node)])
            misconfigured.append(Misconfiguration(question, setting, node, score, prompt_score))
        elif question.failures == ("false citations",):
            unexplained.append(question)
        else:
            gaps.append(KnowledgeGap(question, float(scores[best])))
            regions.append(propose_region(matches, question.question, question.message, question.told))
    patterns, merged = failure_patterns(questions), merge_regions(regions)
    found = tuple(gaps), tuple(misconfigured), patterns, merged, tuple(unexplained)
    return GapReport(len(questions), len(failed), *found)


def _find_misconfiguration(
    graph: PropertyGraph,
    question: QuestionRecord,
    config: RetrievalConfig,
    embedder: Embedder | None,
    scores: NDArray[np.float64],
    prompt_score: float,
) -> tuple[str, str]:
    """Return the first setting whose default would have found a node that may be the answer, and the node.

    Returns two empty strings if there is none.
    """
    prompt_nodes = frozenset(question.told)
    for name, other in _default_variants(config):
        nodes = intent_search(graph, question.question, config=other, embedder=embedder).nodes[:_TOP_RESULTS]
        for rank, node in enumerate(nodes):
            is_likely = rank == 0 or scores[graph.row(node.id)] >= prompt_score
            if is_likely and prompt_nodes.isdisjoint(node.sources):
                return name, node.id
    return "", ""


def _default_variants(config: RetrievalConfig) -> Iterator[tuple[str, RetrievalConfig]]:
    """Yield configurations in which one non-default setting is replaced by its default, with its name."""
    if config.dimension_filters:
        yield "filters", replace(config, dimension_filters={})
    if config.boost_types is not None:
        yield "edge types", replace(config, boost_types=None)
    if set(config.methods) != set(_DEFAULT_CONFIG.methods):
        yield "methods", replace(config, methods=_DEFAULT_CONFIG.methods)
    default_weights = normalised_weights(_DEFAULT_CONFIG.weights, *config.retrievers)
    if normalised_weights(config.weights, *config.retrievers) != default_weights:
        yield "weights", replace(config, weights=_DEFAULT_CONFIG.weights)
    if config.limit < _DEFAULT_CONFIG.limit:
        yield "limit", replace(config, limit=_DEFAULT_CONFIG.limit)
