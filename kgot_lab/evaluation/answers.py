"""Scores of a short answer against a gold one, as SQuAD and HotpotQA count them (Rajpurkar et al. 2016; Yang
et al. 2018).
"""

from __future__ import annotations

import re
import string
from collections import Counter


def normal(answer: str) -> str:
    """An answer in lower case, without punctuation and articles, single spaces."""
    text = "".join(letter for letter in answer.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact_match(answer: str, gold: str) -> float:
    """1 when the answers are the same after normalisation, else 0."""
    return float(normal(answer) == normal(gold))


def f1(answer: str, gold: str) -> float:
    """The harmonic mean of precision and recall of the answer's words; yes, no and "noanswer" count only when
    exact.
    """
    ours, theirs = normal(answer), normal(gold)
    if {ours, theirs} & {"yes", "no", "noanswer"} and ours != theirs:
        return 0.0
    shared = sum((Counter(ours.split()) & Counter(theirs.split())).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(ours.split()), shared / len(theirs.split())
    return 2 * precision * recall / (precision + recall)


def holds(text: str, gold: str) -> bool:
    """Whether a text contains the gold answer as whole words, after normalisation."""
    return f" {normal(gold)} " in f" {normal(text)} "
