"""How many of some delta edges to expect right: the band of a delta does not say, the share of analogous
pairs in a graph does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.errors import BadInput
from kgot_lab.similarity.delta import BANDS

PREVALENCE = 0.01  # assumed unless one says otherwise; in the bundled sets .0002 (stories), .001 (processes) and .017 (sentences)
_AS_PAIRS = 1_000  # for how many pairs looked at the measured shares count


@dataclass(frozen=True)
class BandShares:
    """The share of analogous pairs, and that of other pairs, that gets an edge in each band: measured for one
    rule of edges.
    """

    analogous: Mapping[str, float]
    others: Mapping[str, float]


MEASURED_WITH = ("all-MiniLM-L6-v2", "linguistic (masked)")  # the embedder and the maker of skeletons
# The means over three sets, on their develop parts, at the specified thresholds, without a verifier and with
# `Aligner`: benchmarks/structure/short_texts.py measures them, and tests/analogy/test_expected.py holds them
# against its receipt.
MEASURED_SHARES: Mapping[bool, BandShares] = {
    False: BandShares({"middle": 0.0728, "high": 0.4496}, {"middle": 0.0095, "high": 0.2405}),
    True: BandShares({"middle": 0.0655, "high": 0.4045}, {"middle": 0.0064, "high": 0.15}),
}


def expected_precision(
    kept: Mapping[str, int], pairs: int, *, prevalence: float = PREVALENCE, shares: BandShares | None = None
) -> dict[str, float]:
    """The share of the edges in each band that holds any to expect right, where a share `prevalence` of all
    pairs is analogous.

    By Bayes: P = p A / T, A being the share of analogous pairs that gets an edge in the band, and T the share
    of all pairs that got one here, `kept` of `pairs`. Of few pairs T is uncertain, so that the measured
    shares count as `_AS_PAIRS` pairs more. Without shares A is taken for 1, and P is the most it can be.
    Raises BadInput for a prevalence that does not lie between 0 and 1.
    """
    if not 0 < prevalence < 1:
        raise BadInput(f"a prevalence lies between 0 and 1, not at {prevalence}")
    found = {}
    for name in (name for name in BANDS if kept.get(name)):
        analogous, passing = 1.0, kept[name] / pairs
        if shares is not None:
            analogous, others = shares.analogous.get(name, 0.0), shares.others.get(name, 0.0)
            usual = prevalence * analogous + (1 - prevalence) * others
            passing = (kept[name] + _AS_PAIRS * usual) / (pairs + _AS_PAIRS)
        found[name] = min(1.0, prevalence * analogous / passing) if passing else 0.0
    return found
