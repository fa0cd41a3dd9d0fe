"""The limits by which an alignment is vetoed, chosen on develop questions: a right choice is an analogy, a
wrong one is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.structure.analogies import choices
from kgot_lab.analogy.alignment import Aligner
from kgot_lab.analogy.verdict import Alignment, Cutoffs, judged

VERDICT_SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc basic", "parallelparc advanced")


@dataclass(frozen=True)
class LabelledAlignment:
    """A text beside one of its choices: the set it is from, how they align, and whether the choice is the
    right one.
    """

    data: str
    alignment: Alignment
    analogous: bool


def labelled_alignments(aligner: Aligner) -> Iterator[LabelledAlignment]:
    """Every choice of every develop question, aligned with its text."""
    for name in VERDICT_SETS:
        asked = choices(name).develop
        aligner.prepare(asked.texts)
        for question in asked.questions:
            for place, text in enumerate(question.choices):
                yield LabelledAlignment(name, aligner.align(question.source, text), place == question.answer)


def shares_kept(known: list[LabelledAlignment], cutoffs: Cutoffs) -> dict[str, tuple[float, float]]:
    """For each set the share of the analogies that some limits keep, and of the others that they veto."""
    shares = {}
    for name in VERDICT_SETS:
        vetoed: dict[bool, list[bool]] = {True: [], False: []}
        for one in known:
            if one.data == name:
                vetoed[one.analogous].append(bool(judged(one.alignment, cutoffs).veto))
        shares[name] = (1 - sum(vetoed[True]) / len(vetoed[True]), sum(vetoed[False]) / len(vetoed[False]))
    return shares
