"""The four sets of which each is held out once, with the questions that each gives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from benchmarks.structure.analogies import CHOICES, Choice, Choices, choices, hashed
from benchmarks.structure.system_pairs import SystemPair, system_pairs

WORDS_IN_SYSTEMS = "scan words"
HELD_SETS: Mapping[str, tuple[str, ...]] = {
    "storyanalogy": ("storyanalogy-mc",),
    "parallelparc": ("parallelparc basic", "parallelparc advanced"),
    "analobench": ("analobench T1 S1", "analobench T1 S10"),
    "scan": (WORDS_IN_SYSTEMS,),
}
# by the set that is held out for it: answered, and nothing is learnt on it
ANSWERED_TOO = {"analobench T1 S30": "analobench"}
# of cells and matched
DRAWN_FROM = {
    "storyanalogy": "storyanalogy-mc",
    "parallelparc": "parallelparc",
    "analobench": "analobench S1",
}


@cache
def held_questions(name: str) -> Choices:
    """A set of questions by its name, those of SCAN included; raises UnknownName."""
    return choices(name) if name in CHOICES or name != WORDS_IN_SYSTEMS else scan_questions()


def scan_questions() -> Choices:
    """SCAN as questions: which word of the source system stands for this word of the target system? Each is
    told as a part of its system.

    Of the other words of the source system three are drawn by hash, none that people accepted; a system with
    fewer gives no question.
    """
    every = system_pairs()
    questions = [question for pair in every.pairs for question in _of_pair(pair)]
    return Choices(
        WORDS_IN_SYSTEMS,
        tuple(questions),
        frozenset(each.id for each in questions if each.group in every.locked),
    )


def _of_pair(pair: SystemPair) -> list[Choice]:
    words = dict.fromkeys(term.source for term in pair.terms)
    found = []
    for number, term in enumerate(pair.terms):
        id = f"{pair.id} {number}"
        others = [word for word in words if word not in {term.source, *term.alternatives}]
        wrong = sorted(others, key=lambda word: hashed("draw", id, word))[:3]
        if len(wrong) == 3:
            order = sorted((term.source, *wrong), key=lambda word: hashed("order", id, word))
            texts = tuple(f"{word} of a {pair.source}" for word in order)
            kinds = tuple("target" if word == term.source else "other" for word in order)
            found.append(
                Choice(
                    id,
                    f"{term.target} of a {pair.target}",
                    texts,
                    order.index(term.source),
                    kinds,
                    group=pair.id,
                )
            )
    return found
