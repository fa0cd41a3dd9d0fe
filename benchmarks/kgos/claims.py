"""What the KG-OS document claims of its benchmark: of pairs of systems, of levels that are reached, of what
makes no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.kgos.systems import FOUR_WEIGHTS, LEARNED_FUSION, THREE_WEIGHTS
from benchmarks.recall.claims import DOES_NOT, REPLICATES, UNDECIDED, PublishedClaim
from kgot_lab.evaluation.significance import Estimate

KGOS_CLAIMS = (
    PublishedClaim("hybrid beats embeddings alone", THREE_WEIGHTS, "embedding only", ".885 and about .50"),
    PublishedClaim("hybrid beats BM25 alone", THREE_WEIGHTS, "bm25 only", ".885 and about .60"),
    PublishedClaim("hybrid beats FTS5 alone", THREE_WEIGHTS, "fts5 only", ".885 and about .55"),
    PublishedClaim("BM25 alone beats embeddings alone", "bm25 only", "embedding only", "about .60 and .50"),
    PublishedClaim("BM25 alone beats FTS5 alone", "bm25 only", "fts5 only", "about .60 and .55"),
    PublishedClaim(
        "embeddings alone beat the graph boost alone",
        "embedding only",
        "graph boost only",
        "about .50 and .30",
    ),
    PublishedClaim(
        "weighted hybrid beats RRF over seven", THREE_WEIGHTS, "rrf of seven", ".885 and .667 (with LIKE)"
    ),
    PublishedClaim(
        "weighted hybrid beats RRF over seven, paths",
        THREE_WEIGHTS,
        "rrf of seven, paths",
        ".885 and .667 (with paths)",
    ),
    PublishedClaim("two beat seven", "two, weighted", "rrf of seven", "two strategies beat seven"),
    PublishedClaim(
        "two beat seven, paths", "two, weighted", "rrf of seven, paths", "two strategies beat seven"
    ),
    PublishedClaim(
        "few lanes beat seven, both weighted", THREE_WEIGHTS, "seven, weighted", "two strategies beat seven"
    ),
    PublishedClaim(
        "few lanes beat seven, both RRF", "rrf of three", "rrf of seven", "two strategies beat seven"
    ),
    PublishedClaim(
        "a weighted sum beats RRF, same three lanes", THREE_WEIGHTS, "rrf of three", "weights instead of RRF"
    ),
    PublishedClaim(
        "the graph lane adds to meaning and words",
        THREE_WEIGHTS,
        "two, weighted",
        "graph boost added to reach .885",
    ),
    PublishedClaim(
        "right edges beat shuffled ones", THREE_WEIGHTS, "control: edges shuffled", "structure > training"
    ),
    PublishedClaim(
        "intent verbs at 5x beat equal words", "goal words, verbs x5", "goal words", "dramatically improves"
    ),
    PublishedClaim(
        "a learned fusion beats the hybrid (ours)", LEARNED_FUSION, THREE_WEIGHTS, "not in the document"
    ),
)

# recall@5, strict and lenient, as Appendix C has it, from ten queries on a graph that is not public
LEVELS_SAID: Mapping[str, tuple[float, float]] = {
    "embedding only": (0.50, 0.60),
    "bm25 only": (0.60, 0.70),
    "fts5 only": (0.55, 0.65),
    "graph boost only": (0.30, 0.40),
    THREE_WEIGHTS: (0.885, 1.0),
    "rrf of seven": (0.667, 0.80),
    FOUR_WEIGHTS: (0.885, 1.0),
}
AS_GOOD = 0.02  # a difference in recall@5 that is as good as none, the margin of the plan


@dataclass(frozen=True)
class Equality:
    """A claim that two systems reach the same, and the interval of their difference: one minus other."""

    text: str
    one: str
    other: str
    difference: Estimate

    @property
    def said(self) -> str:
        """Whether the interval lies within the margin, outside of it, or over its edge."""
        gap = self.difference
        if gap.low >= -AS_GOOD and gap.high <= AS_GOOD:
            return REPLICATES
        return DOES_NOT if gap.low > AS_GOOD or gap.high < -AS_GOOD else UNDECIDED


EQUALITIES = (
    ("4 weights keep the recall of 3", FOUR_WEIGHTS, THREE_WEIGHTS),
    ("the intent lane keeps recall", FOUR_WEIGHTS, "4-weight, intent off"),
)


def level_said(figure: float, reached: Estimate) -> str:
    """Whether a level that the document reports lies in the interval of what was reached."""
    if reached.low <= figure <= reached.high:
        return "within the interval"
    return "not reached" if figure > reached.high else "exceeded"
