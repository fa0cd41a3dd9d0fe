"""The plot of what review teaches."""

import pytest
from support.saying import said

from kgot_lab.errors import BadInput
from kgot_lab.memory.claims import ClaimReview, Claims, SQLiteClaims
from kgot_lab.viz.plots import plot_named


def test_the_curve_shows_the_share_that_was_accepted_and_rises():
    with Claims(SQLiteClaims()) as claims:
        ledger = ClaimReview(claims)
        assert "no claim is decided on yet" in plot_named("review_reliability", ledger).alt
        for number in range(8):
            for confidence, good in ((0.25, number < 1), (0.45, number < 6), (0.65, number < 4)):
                claim = said(f"p{number} is c{confidence}", confidence=confidence)
                claims.learn(claim)
                (ledger.accept if good else ledger.reject)(claim.id)
        drawn = plot_named("review_reliability", ledger)
        rows = [
            (row["confidence"], row["share accepted"], row["isotonic"], row["n"]) for row in drawn.numbers
        ]
        assert rows == [(0.25, 0.125, 0.125, 8), (0.45, 0.75, 0.625, 8), (0.65, 0.5, 0.625, 8)]
        assert "24 in all: 12% of 8 at about 0.25" in drawn.alt
        with pytest.raises(BadInput, match="relation"):
            plot_named("review_reliability", ledger, verb="is")
        assert "of knows is decided" in plot_named("review_reliability", ledger, relation="knows").alt
