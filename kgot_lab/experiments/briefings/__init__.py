"""A month of invented news, read with errors of known rates: who is told of what, who is not, and whether
that is right.
"""

from kgot_lab.experiments.briefings.curves import BriefingCurve
from kgot_lab.experiments.briefings.month import load_month
from kgot_lab.experiments.briefings.reader import ReadingErrors, SimulatedReader
from kgot_lab.experiments.briefings.scoring import score_month
from kgot_lab.experiments.briefings.telling import MonthPlay, tell_month

__all__ = [
    "BriefingCurve",
    "MonthPlay",
    "ReadingErrors",
    "SimulatedReader",
    "load_month",
    "score_month",
    "tell_month",
]
