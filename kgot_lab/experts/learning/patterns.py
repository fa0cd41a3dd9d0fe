"""What failed questions have in common: an intent or a word whose questions fail more often than the others
do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

from kgot_lab.errors import BadInput, require_count
from kgot_lab.evaluation.significance import holm
from kgot_lab.experts.learning.gaps import QuestionRecord
from kgot_lab.text.stems import stem
from kgot_lab.text.words import searched_words


@dataclass(frozen=True)
class FailurePattern:
    """Questions of one kind that fail more often: an intent or a word, how many were asked and failed, and p,
    corrected for all kinds.
    """

    kind: str  # "intent" or "word"
    name: str
    asked: int
    failed: int
    p: float
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.failed} of {self.asked} failed (p {self.p:.2g})"


def failure_patterns(
    asked: Sequence[QuestionRecord], *, alpha: float = 0.05, least: int = 3
) -> tuple[FailurePattern, ...]:
    """The intents, and words of questions, of which at least `least` failed, and more than chance explains;
    the surest first.

    Fisher's exact test, one-sided: the chance that of k questions so many are among the failed f of n, drawn
    without replacement, corrected by Holm over every intent and word that at least `least` questions have.
    Raises BadInput.
    """
    require_count(least, 1, "least")
    if not 0 < alpha < 1:
        raise BadInput("alpha lies between 0 and 1")
    of_kind: dict[tuple[str, str], list[QuestionRecord]] = defaultdict(list)
    spelled: dict[str, str] = {}
    for each in asked:
        if each.intent:
            of_kind["intent", each.intent].append(each)
        for word in dict.fromkeys(searched_words(each.question)):
            spelled.setdefault(stem(word), word)
        for root in {stem(word) for word in searched_words(each.question)}:
            of_kind["word", root].append(each)
    tried = {kind: those for kind, those in sorted(of_kind.items()) if len(those) >= least}
    failed = sum(bool(each.failures) for each in asked)
    counts = {kind: sum(bool(each.failures) for each in those) for kind, those in tried.items()}
    corrected = holm(
        [drawn_tail(counts[kind], len(those), failed, len(asked)) for kind, those in tried.items()]
    )
    found = [
        FailurePattern(
            kind,
            spelled[name] if kind == "word" else name,
            len(those),
            counts[kind, name],
            p,
            _failed_ids(those),
        )
        for ((kind, name), those), p in zip(tried.items(), corrected, strict=True)
        if p <= alpha and counts[kind, name] >= least
    ]
    return tuple(sorted(found, key=lambda each: (each.p, each.kind, each.name)))


def drawn_tail(least: int, drawn: int, marked: int, of: int) -> float:
    """P(at least so many of the drawn are marked), drawn without replacement: the upper tail of the
    hypergeometric distribution.
    """
    whole = comb(of, drawn)
    return (
        sum(comb(marked, k) * comb(of - marked, drawn - k) for k in range(least, min(drawn, marked) + 1))
        / whole
    )


def _failed_ids(those: Sequence[QuestionRecord]) -> tuple[str, ...]:
    return tuple(each.message for each in those if each.failures)
