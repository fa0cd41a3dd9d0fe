"""Another embedder on the standard sets, beside the bundled one: what the results say, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.standard_sets.standard import TRAIL
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import file_name
from kgot_lab.benchmark.recall.systems import BASELINE
from kgot_lab.embedding.pretrained import MiniLM
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import query_splits
from kgot_lab.evaluation.reports import PLAN, Report, derive_reports
from kgot_lab.evaluation.results import EMBEDDER_HASH
from kgot_lab.evaluation.significance import Estimate, interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed

# a trail with the weights of the package
EMBEDDER_SYSTEMS = ("embeddings", BASELINE, "follow, sentences", TRAIL)
_MEASURE, _TEST, _DEV = "recall@5", "test", "dev"


def embedder_tables(folder: Path) -> list[Grid]:
    """What each embedder in a folder of results reached, beside the bundled one, and by kind of question;
    without a model.

    Raises BadInput where the folder has no results of the bundled embedder, or a result is broken.
    """
    bundled_one = folder / file_name(MiniLM.name)
    if not (bundled_one / PLAN).exists():
        raise BadInput(f"{folder.name} has no results of the bundled embedder to compare with")
    others = sorted(inner for inner in folder.iterdir() if (inner / PLAN).exists() and inner != bundled_one)
    found = [
        {report.dataset.name: report for report in derive_reports(inner, load_dataset)}
        for inner in (bundled_one, *others)
    ]
    grids = []
    for name in sorted({name for reports in found for name in reports}):
        reports = [each[name] for each in found if name in each]
        grids.append(_reached_by(reports))
        if len(set(reports[0].dataset.types.values())) > 1:
            grids.append(_kinds_by(reports))
    return grids


def gap_between(one: Report, other: Report, system: str, part: str) -> tuple[Estimate, float]:
    """The mean paired difference in recall@5 of a system in two reports on a data set, with its interval over
    groups, and p.
    """
    groups = one.dataset.groups
    own, theirs = (report.scores[system].per_query(_MEASURE) for report in (one, other))
    asked = [query.id for query in one.dataset.queries if query.id in query_splits(one.dataset)[part]]
    gaps = [own[query] - theirs[query] for query in asked]
    together = [groups.get(query, query) for query in asked]
    return interval(gaps, together), sign_flip_p(gaps, together)


def embedder_of(report: Report) -> str:
    """The embedder that the baseline's result names, with the first characters of its SHA-256."""
    (run,) = (run for run in report.runs if run.system == report.plan.baseline)
    name, _, digest = run.about[EMBEDDER_HASH].rpartition(" ")
    return f"{name} ({digest[:8]})"


def _reached_by(reports: Sequence[Report]) -> Grid:
    rows = []
    first = reports[0]
    for report in reports:
        for system in _ordered(report):
            cells = [embedder_of(report), system]
            for part in (_TEST, _DEV):
                row = report.row(system, _MEASURE, part)
                cells += [
                    format_decimal(row.mean),
                    f"{format_decimal(row.low)} to {format_decimal(row.high)}",
                ]
            gained = ["", "", ""]
            if report is not first and system in first.scores:
                gap, p = gap_between(report, first, system, _TEST)
                gained = [
                    format_signed(gap.mean),
                    f"{format_signed(gap.low)} to {format_signed(gap.high)}",
                    format_p_value(p),
                ]
            rows.append(tuple(map(Cell, [*cells, *gained])))
    counted = {part: first.row(BASELINE, _MEASURE, part).n for part in (_TEST, _DEV)}
    columns = (
        "embedder",
        "system",
        "test",
        "95 %",
        "dev",
        "95 %",
        "test, minus the bundled embedder's",
        "95 %",
        "p",
    )
    told = f"{counted[_TEST]} test and {counted[_DEV]} dev questions; what was learnt has seen the dev ones"
    return Grid(f"{first.dataset.name}: recall@5, {told}", columns, tuple(rows))


def _kinds_by(reports: Sequence[Report]) -> Grid:
    dataset = reports[0].dataset
    test_ids = query_splits(dataset)[_TEST]
    kinds = {
        kind: [id for id in test_ids if dataset.types[id] == kind]
        for kind in sorted(set(dataset.types.values()))
    }
    rows = []
    for report in reports:
        for system in _ordered(report):
            means = [report.scores[system].only(ids).mean(_MEASURE) for ids in kinds.values()]
            rows.append(tuple(map(Cell, [embedder_of(report), system, *map(format_decimal, means)])))
    columns = ("embedder", "system", *(f"{kind} ({len(ids)})" for kind, ids in kinds.items()))
    return Grid(f"{dataset.name}: recall@5 by kind of question, test split", columns, tuple(rows))


def _ordered(report: Report) -> list[str]:
    """The systems as they were measured, those that were learnt anew last."""
    return [
        *(system for system in EMBEDDER_SYSTEMS if system in report.scores),
        *sorted(set(report.scores) - set(EMBEDDER_SYSTEMS)),
    ]
