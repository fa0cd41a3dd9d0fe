"""The picture of a simulated model's curves says that they are simulated, and what was measured."""

from __future__ import annotations

from benchmarks.competence.competence_plot import competence_curves
from benchmarks.competence.curves import CompetenceCurve, CurvePoint
from kgot_lab.evaluation.significance import share
from kgot_lab.loop.limits import LOCAL, REFERENCE

POINTS = (CurvePoint(0.0, share(10, 10), share(0, 10), 1.0), CurvePoint(0.5, share(5, 10), share(2, 10), 0.5))
CURVES = [
    CompetenceCurve("vote", "reference", REFERENCE, POINTS),
    CompetenceCurve(
        "read", "local", LOCAL, tuple(CurvePoint(point.rate, point.solved, point.wrong) for point in POINTS)
    ),
]


def test_each_kind_of_error_has_a_panel_that_says_simulated():
    drawn = competence_curves(CURVES)
    assert (
        drawn.alt.startswith("A simulated model")
        and "vote errors, reference: 1.00 at 0, 0.50 at 0.5" in drawn.alt
    )
    assert "vote (simulated)" in drawn.svg and "read (simulated)" in drawn.svg and "by formula" in drawn.svg
    assert [row["solved"] for row in drawn.numbers] == [1, 0.5, 1, 0.5]


def test_no_curve_is_no_picture():
    assert "nothing to draw" in competence_curves([]).alt.lower()
