"""A month of invented news, read with errors of known rates: who is told of what, who is not, and whether
that is right.
"""

from .curves import BriefingCurve, briefing_curves
from .month import load_month
from .reader import ReadingErrors, SimulatedReader
from .scoring import score_month
from .telling import MonthPlay, tell_month

__all__ = [
    "BriefingCurve",
    "MonthPlay",
    "ReadingErrors",
    "SimulatedReader",
    "briefing_curves",
    "load_month",
    "score_month",
    "tell_month",
]
