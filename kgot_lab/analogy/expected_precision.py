"""The expected precision of delta edges, which depends on the prevalence of analogous pairs and not only on the band."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgot_lab.errors import BadInput
from kgot_lab.similarity.delta import BANDS

PREVALENCE = 0.01  # the default; in the bundled sets .0002 (stories), .001 (processes) and .017 (sentences)
_PRIOR_PAIRS = 1_000  # the weight of the measured shares, in pairs


@dataclass(frozen=True)
class BandShares:
    """The shares of analogous and of other pairs that get an edge in each band, as measured for one rule."""

    analogous: Mapping[str, float]
    others: Mapping[str, float]


# the embedder and the maker of skeletons
MEASURED_CONFIGURATION = ("all-MiniLM-L6-v2", "linguistic (masked)")
# The means over three sets, on their dev splits, at the specified thresholds, without a verifier and with
# `Aligner`: benchmarks/structure/short_texts.py measures them, and tests/analogy/test_expected.py compares
# them with its results.
MEASURED_SHARES: Mapping[bool, BandShares] = {
    False: BandShares({"middle": 0.0728, "high": 0.4496}, {"middle": 0.0095, "high": 0.2405}),
    True: BandShares({"middle": 0.0655, "high": 0.4045}, {"middle": 0.0064, "high": 0.15}),
}


def expected_precision(
    kept: Mapping[str, int], pairs: int, *, prevalence: float = PREVALENCE, shares: BandShares | None = None
) -> dict[str, float]:
    """Estimate the precision of the edges in each non-empty band, for a prevalence of analogous pairs.

    By Bayes: P = p A / T. A is the share of analogous pairs that get an edge in the band. T is the share of
    all pairs that got one here, `kept` of `pairs`. Since T is uncertain for few pairs, the measured shares
    are added as `_PRIOR_PAIRS` further pairs. Without shares A is set to 1, and P is an upper bound. Raises
    BadInput unless the prevalence is between 0 and 1.
    """
    if not 0 < prevalence < 1:
        raise BadInput(f"a prevalence lies between 0 and 1, not at {prevalence}")
    found = {}
    for name in (name for name in BANDS if kept.get(name)):
        analogous, passing = 1.0, kept[name] / pairs
        if shares is not None:
            analogous, others = shares.analogous.get(name, 0.0), shares.others.get(name, 0.0)
            usual = prevalence * analogous + (1 - prevalence) * others
            passing = (kept[name] + _PRIOR_PAIRS * usual) / (pairs + _PRIOR_PAIRS)
        found[name] = min(1.0, prevalence * analogous / passing) if passing else 0.0
    return found
