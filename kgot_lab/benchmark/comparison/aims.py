"""What is compared with what, and what is aimed at: fixed before the run, so that no choice can follow the
results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kgot_lab.types import Json

ALL_SETS = "all sets"  # their questions together
SYSTEM_PAIRS: tuple[tuple[str, str], ...] = (
    ("paths", "rag"), ("paths", "rag-few"), ("paths", "follow-few"), ("paths", "local"), ("paths-fused", "paths"),
    ("follow-few", "rag"), ("rag-few", "rag"), ("long-context", "rag-few"), ("local", "rag"), ("closed-book", "rag"), ("gold", "paths"),
)  # fmt: skip
ANSWER_MEASURES: Mapping[str, str] = {  # what is measured of each answer, and how
    "em": "exact match after normalisation, with the right answer or an alias of it",
    "f1": "harmonic mean of precision and recall of the answer's words, the best over the aliases",
    "prompt tokens": "all that the model read, in all calls; the median",
    "evidence tokens": "of the facts that the answer was read from, about four letters each; the median",
    "seconds": "wall time of a question; the median",
    "calls": "of the model; the mean",
    "resting": "share of the answers but yes and no that stand in the facts as whole words",
    "destroyed": "of the questions that the model alone answers right (em), the share that the system does not",
    "calibration error": "expected calibration error of exp(logprob / tokens) of the answer against em, ten bins",
    "risk area": "mean share of wrong answers (em) over all coverages, the surest answers first",
}


@dataclass(frozen=True)
class Goal:
    """Something to reach: a value of a measure, or a difference between a system and another, on one set or
    on all.

    kind: "gain" (the mean difference is above `bound`, and p below .05 after Holm over all such aims), "not
    below" (the mean difference is at least `bound`), "at least" (the value), "at most" (the value; with
    `other`, as a share of the other's). `share`, where given, is the most evidence tokens the system may
    take, as a share of the other's.
    """

    said: str
    system: str
    kind: str
    bound: float
    on: str = ALL_SETS
    measure: str = "f1"
    other: str = ""
    share: float | None = None

    def as_json(self) -> dict[str, Json]:
        """The aim as plain values."""
        return asdict(self)


GOALS: tuple[Goal, ...] = (
    Goal("paths above RAG as it is on HotpotQA", "paths", "gain", 0.0, "hotpotqa", other="rag"),
    Goal("paths above RAG as it is on 2WikiMultiHopQA", "paths", "gain", 0.0, "2wiki", other="rag"),
    Goal(
        "paths not below RAG + follow by more than .03, at a quarter of its evidence tokens", "paths", "not below", -0.03,
        other="follow-few", share=0.25,
    ),
    Goal("paths above RAG + follow on MuSiQue", "paths", "gain", 0.0, "musique-498", other="follow-few"),
    Goal("F1 of paths on HotpotQA at least .60", "paths", "at least", 0.60, "hotpotqa"),
    Goal("paths in 15 seconds a question", "paths", "at most", 15.0, measure="seconds"),
    Goal("paths with at most half of the prompt tokens of RAG", "paths", "at most", 0.5, measure="prompt tokens", other="rag"),
)  # fmt: skip
