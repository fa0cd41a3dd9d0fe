"""Alignment of two texts: their sentences and events are paired in order, regardless of topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kgot_lab.analogy.linguistic import Analysis, Sentence, analyse_texts
from kgot_lab.analogy.verdict import Alignment, Cutoffs, Match, judge_alignment
from kgot_lab.arguments import CheckedRecord, bounded, check_arguments
from kgot_lab.embedding.embedder import Embedder, Matrix, checked_embedder, checked_texts, normalise_rows
from kgot_lab.text.cleaning import replace_surrogates

_Indices = NDArray[np.int64]
Vector = NDArray[np.float64]
MAX_BLOCK_SIMILARITIES = 200_000  # similarities at a time; their forms take about 60 times as much, 50 MB


@dataclass(frozen=True)
class AlignmentWeights(CheckedRecord):
    """Weights of the parts of an alignment score.

    Chosen once for all data on dev splits, in the middle of the range where they hardly matter. The score is
    (1 - events) x sentences + events x events, both aligned in order. The similarity of two sentences is (1 -
    form) x cosine of their masked texts + form x cosine of their forms, reduced by the share `denial` if
    exactly one is negated.
    """

    form: float = bounded(0.3, 0, 1)
    denial: float = bounded(0.1, 0, 1)
    events: float = bounded(0.2, 0, 1)


@dataclass(frozen=True, eq=False)
class TextUnits:
    """The units of a text to compare: vectors and forms of masked sentences, and vectors of events."""

    sentences: Matrix  # (n, dimension)
    denied: NDArray[np.bool_]  # (n,)
    grams: _Indices  # the n-grams of all forms, sentence after sentence
    counts: Matrix  # the count of each, normalised so that the squares of a sentence sum to 1
    owners: _Indices  # the sentence of each n-gram
    events: Matrix  # (k, dimension)


@check_arguments
class Aligner:
    """Scores and shows how well the structure of two texts matches, regardless of topic.

    `similarity` is the fast score. `align` shows everything behind it, and whether an edge between the two
    texts holds. Without `ordered`, `similarity` matches units in any order, which measures the effect of
    order. `align` always keeps it. With `connectives`, words such as "then" and "finally" are kept, which
    measures the effect of removing them.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        weights: AlignmentWeights | None = None,
        limits: Cutoffs | None = None,
        ordered: bool = True,
        connectives: bool = False,
    ) -> None:
        checked_embedder(embedder)
        self.weights, self.limits, self.ordered = weights or AlignmentWeights(), limits or Cutoffs(), ordered
        self._embedder, self._connectives = embedder, connectives
        self._units: dict[str, TextUnits] = {}
        self._grams: dict[tuple[str, ...], int] = {}

    @property
    def usual(self) -> bool:
        """Whether all settings are the defaults."""
        return (self.weights, self.limits) == (AlignmentWeights(), Cutoffs()) and not self._connectives

    def prepare(self, texts: Sequence[str]) -> None:
        """Parse and embed texts in one batch. Other texts are processed when first needed.

        Raises NotInstalled without spaCy, and BadInput for a text of more than a million characters.
        """
        fresh = [text for text in dict.fromkeys(checked_texts(texts)) if text not in self._units]
        found = analyse_texts(fresh, connectives=self._connectives)
        masked = {sentence.masked for each in found for sentence in each.units}
        lines = sorted(masked.union(*map(_event_lines, found)))
        rows = {line: row for row, line in enumerate(lines)}
        vectors = np.zeros((0, self._embedder.dimension), np.float32)
        if lines:
            vectors = normalise_rows(self._embedder.embed(lines), self._embedder.name)
        for text, each in zip(fresh, found, strict=True):
            sentences = vectors[[rows[sentence.masked] for sentence in each.units]]
            denied = np.array([sentence.denied for sentence in each.units], bool)
            events = vectors[[rows[line] for line in _event_lines(each)]]
            self._units[text] = TextUnits(sentences, denied, *self._count_form_ngrams(each.units), events)

    def similarity(self, source: str, candidates: Sequence[str]) -> Vector:
        """Compute the alignment score of a text with each candidate.

        The scores have shape (len(candidates),) and are from 0 to 1. score = 2 x best / (n + k) for n units
        and k units, where best is the largest sum of similarities over pairs of units taken in order. This is
        the longest common subsequence (Wagner and Fischer 1974) with similarities for matches, or the global
        alignment of Needleman and Wunsch (1970) without a gap cost. Negative similarities count as 0. The
        score is symmetric. It is 0 if a text has no unit, and 1 for the same text.
        """
        source, candidates = replace_surrogates(source), checked_texts(candidates)
        self.prepare([source, *candidates])
        one, others = self._units[source], [self._units[text] for text in candidates]
        scores = np.zeros(len(candidates))
        for some in _batch_candidates(one, others):
            part = [others[index] for index in some]
            sentences = self._sentence_similarities(one, part)
            events = one.events @ np.concatenate([each.events for each in part]).T
            widths = [len(each.sentences) for each in part], [len(each.events) for each in part]
            scores[some] = self._combine_scores(sentences, events, *widths)
        same = [bool(text.strip()) and text.split() == source.split() for text in candidates]
        return np.where(same, 1.0, scores)

    def align(self, source: str, target: str) -> Alignment:
        """Align two texts and return the pairs of sentences and events, the implied roles and the verdict."""
        source, target = checked_texts([source, target])
        score = float(self.similarity(source, [target])[0])
        one, other = analyse_texts([source, target], connectives=self._connectives)
        ours, theirs = self._units[source], self._units[target]
        sentences, events = self._sentence_similarities(ours, [theirs]), ours.events @ theirs.events.T
        both_have_events = all(text.units and text.events for text in (one, other))
        widths = [len(theirs.sentences)], [len(theirs.events)]
        alignment = Alignment(
            one,
            other,
            _match_in_order(sentences),
            _match_in_order(events) if both_have_events else (),
            score,
            float(self._combine_scores(sentences[:, ::-1], events[:, ::-1], *widths)[0]),
            order_agreement(events if both_have_events and min(events.shape) > 1 else sentences),
        )
        return judge_alignment(alignment, self.limits)

    def _combine_scores(
        self, sentences: Matrix, events: Matrix, of_sentences: Sequence[int], of_events: Sequence[int]
    ) -> Vector:
        """Combine the scores of sentences and events of a text against others stored side by side."""
        scores = _ordered_scores if self.ordered else _unordered_scores
        event_part = self.weights.events * scores(events, of_events)
        return np.clip((1 - self.weights.events) * scores(sentences, of_sentences) + event_part, 0, 1)

    def _sentence_similarities(self, one: TextUnits, others: Sequence[TextUnits]) -> Matrix:
        """Compute the similarities of a text's sentences to those of others: (n, sum of theirs)."""
        meaning = one.sentences @ np.concatenate([other.sentences for other in others]).T
        clash = one.denied[:, None] != np.concatenate([other.denied for other in others])
        blend = (1 - self.weights.form) * meaning + self.weights.form * self._form_similarities(one, others)
        return np.asarray(blend * np.where(clash, 1 - self.weights.denial, 1), np.float32)

    def _form_similarities(self, one: TextUnits, others: Sequence[TextUnits]) -> Matrix:
        """Compute the cosines of n-gram counts between sentences, side by side: (n, sum of theirs)."""
        own = np.unique(one.grams)
        table = np.zeros((len(own), len(one.sentences)), np.float32)
        table[np.searchsorted(own, one.grams), one.owners] = one.counts
        starts = np.cumsum([0, *(len(other.sentences) for other in others)])
        owners = np.concatenate([each.owners + start for each, start in zip(others, starts, strict=False)])
        grams = np.concatenate([other.grams for other in others])
        counts = np.concatenate([other.counts for other in others])
        shared = np.isin(grams, own)
        grams, counts, owners = np.searchsorted(own, grams[shared]), counts[shared], owners[shared]
        cosines = np.zeros((starts[-1], len(one.sentences)), np.float32)
        if len(owners):
            firsts = np.flatnonzero(np.diff(owners, prepend=-1))
            cosines[owners[firsts]] = np.add.reduceat(table[grams] * counts[:, None], firsts)
        return cosines.T

    def _count_form_ngrams(self, sentences: Sequence[Sentence]) -> tuple[_Indices, Matrix, _Indices]:
        """Count the n-grams (1 to 3) in the forms of sentences.

        Three arrays: the n-gram, its count divided by the norm of the row, and its sentence.
        """
        grams: list[int] = []
        counts: list[float] = []
        owners: list[int] = []
        for owner, sentence in enumerate(sentences):
            form = sentence.form
            found = Counter(form[at : at + n] for n in (1, 2, 3) for at in range(len(form) - n + 1))
            length = sum(times**2 for times in found.values()) ** 0.5
            grams += [self._grams.setdefault(gram, len(self._grams)) for gram in found]
            counts += [times / length for times in found.values()]
            owners += [owner] * len(found)
        return np.array(grams, np.int64), np.array(counts, np.float32), np.array(owners, np.int64)

    def __repr__(self) -> str:
        return f"<Aligner on {self._embedder.name}: {len(self._units)} texts, {self.weights}>"


def best_ordered_sums(similarities: Matrix) -> Vector:
    """Compute the largest sum of similarities over pairs in order.

    The input is several matrices, (several, n, k), and the output (several,). D[i + 1] = cumulative maximum
    over j of max(D[i, j + 1], D[i, j] + m[i, j]), computed for a whole row and all matrices at once. Columns
    of zeros change nothing, so matrices of unequal width are padded with them.
    """
    several, rows, columns = similarities.shape
    best = np.zeros((several, columns + 1))
    for row in range(rows):
        paired = best[:, :-1] + np.maximum(similarities[:, row], 0)
        best[:, 1:] = np.maximum.accumulate(np.maximum(best[:, 1:], paired), axis=1)
    return np.asarray(best[:, -1])


def best_ordered_matches(similarities: Matrix) -> list[tuple[int, int]]:
    """Return the pairs (row, column) behind `in_order` for one matrix.

    Of equally good alignments, the one that pairs earlier units is returned.
    """
    rows, columns = similarities.shape
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows):
        paired = best[row, :-1] + np.maximum(similarities[row], 0)
        best[row + 1, 1:] = np.maximum.accumulate(np.maximum(best[row, 1:], paired))
    pairs = []
    while rows and columns:
        if best[rows, columns] == best[rows - 1, columns]:
            rows -= 1
        elif best[rows, columns] == best[rows, columns - 1]:
            columns -= 1
        else:
            rows, columns = rows - 1, columns - 1
            pairs.append((rows, columns))
    return pairs[::-1]


def _match_in_order(similarities: Matrix) -> tuple[Match, ...]:
    return tuple(Match(i, j, float(similarities[i, j])) for i, j in best_ordered_matches(similarities))


def order_agreement(similarities: Matrix) -> float:
    """Compute Kendall's tau between the order of the rows and that of their best columns.

    It is 1 in order and -1 reversed, and 1 for fewer than two rows. Two rows with the same best column count
    0 (tau-a).
    """
    if similarities.shape[0] < 2 or not similarities.shape[1]:
        return 1.0
    best = similarities.argmax(axis=1)
    later = np.triu_indices(len(best), 1)
    return float(np.sign(best[later[1]] - best[later[0]]).mean())


def _ordered_scores(similarities: Matrix, widths: Sequence[int]) -> Vector:
    """Compute 2 x best / (n + k) for matrices of n rows stored side by side, k wide each."""
    rows, owners = similarities.shape[0], np.repeat(np.arange(len(widths)), widths)
    starts = np.cumsum([0, *widths])[:-1]
    padded = np.zeros((len(widths), rows, max(widths, default=0)), np.float32)
    padded[owners, :, np.arange(len(owners)) - starts[owners]] = similarities.T
    return np.asarray(2 * best_ordered_sums(padded) / np.maximum(1, rows + np.asarray(widths)))


def _unordered_scores(similarities: Matrix, widths: Sequence[int]) -> Vector:
    """Compute the mean similarity of all units, of either text, to the most similar one in the other.

    Negative similarities count as 0.
    """
    rows, starts = similarities.shape[0], np.cumsum([0, *widths])
    parts = [np.maximum(similarities[:, start:end], 0) for start, end in pairwise(starts.tolist())]
    sums = [part.max(axis=1).sum() + part.max(axis=0).sum() if part.size else 0.0 for part in parts]
    return np.asarray(sums / np.maximum(1, rows + np.asarray(widths)))


def _batch_candidates(one: TextUnits, others: Sequence[TextUnits]) -> Iterator[list[int]]:
    """Batch candidates of similar length, to limit padding and the number of similarities in a block."""
    order = sorted(range(len(others)), key=lambda index: (len(others[index].events), index))
    rows = max(1, len(one.sentences), len(one.events))
    block: list[int] = []
    widest = 1
    for index in order:
        wide = max(widest, len(others[index].sentences), len(others[index].events))
        if block and rows * wide * (len(block) + 1) > MAX_BLOCK_SIMILARITIES:
            yield block
            block, wide = [], max(1, len(others[index].sentences), len(others[index].events))
        block.append(index)
        widest = wide
    if block:
        yield block


def _event_lines(each: Analysis) -> list[str]:
    """Return the events of a text without their nouns, or its masked sentences if it has no event."""
    return [event.line for event in each.events if each.units] or [sentence.masked for sentence in each.units]
