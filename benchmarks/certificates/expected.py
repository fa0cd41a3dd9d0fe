"""How long the rest of a trial of certificates will take, from what its own answers took, or those of the
comparison of systems.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

from benchmarks.certificates.cases import CASE_CHANGES
from benchmarks.certificates.trial import CertificateTrial
from kgot_lab.benchmark.comparison.comparison_run import load_system_results
from kgot_lab.benchmark.questions.question_result import QuestionResult
from kgot_lab.evaluation.tables import Cell, Grid

_FEW = 3  # answers of a set below which those of the comparison say more


def expected_cases_grid(trial: CertificateTrial, comparison: Path) -> Grid:
    """What is missing of each set, with the mean seconds of a case; `comparison` is the folder of the
    comparison of systems.

    A question without one of its passages may be looked for longer than an untouched one, which the
    comparison cannot know.
    """
    rows, cases, hours = [], 0, 0.0
    for name in trial.sets:
        left = sum(case.set == name for case in trial.missing())
        own = [took for change in CASE_CHANGES for took in _seconds(trial.folder, name, change)]
        took, by = (
            (own, "of these cases")
            if len(own) >= _FEW
            else (_seconds(comparison, name, "paths"), "of the comparison, untouched")
        )
        seconds, cases = fmean(took) if took else None, cases + left
        hours += left * (seconds or 0) / 3600
        each = "not known" if seconds is None else f"{seconds:.1f}"
        rows.append((name, f"{left:,}", each, f"mean of {len(took)} {by}" if took else ""))
    told = tuple(
        tuple(map(Cell, row)) for row in (*rows, ("all", f"{cases:,}", f"{hours:.1f} h" if hours else "", ""))
    )
    return Grid("What is left", ("set", "cases", "seconds each", "from"), told)


def _seconds(folder: Path, name: str, system: str) -> list[float]:
    receipts: list[QuestionResult] = list(load_system_results(folder, name, system).values())
    return [receipt.seconds for receipt in receipts if receipt.seconds is not None and not receipt.error]
