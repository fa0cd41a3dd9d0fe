"""A month of invented news, read with errors of known rates: who is told of what, who is not, and whether
that is right.
"""

from benchmarks.news.curves import BriefingCurve
from benchmarks.news.month import load_month
from benchmarks.news.reader import ReadingErrors, SimulatedReader
from benchmarks.news.scoring import score_month
from benchmarks.news.telling import MonthPlay, tell_month

__all__ = [
    "BriefingCurve",
    "MonthPlay",
    "ReadingErrors",
    "SimulatedReader",
    "load_month",
    "score_month",
    "tell_month",
]
