"""Reports on one data set: the scores of all systems against the baseline, from stored results."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.dataset import Dataset, query_splits
from kgot_lab.evaluation.measures import Scores, score
from kgot_lab.evaluation.results import EMBEDDER_HASH, RESUMED, Plan, fingerprints, load_results
from kgot_lab.evaluation.runs import Run
from kgot_lab.evaluation.significance import Comparisons, Estimate, compare, intervals
from kgot_lab.evaluation.tables import Cell, Grid, escape_formula, escaped_cell, format_decimal, format_signed
from kgot_lab.text.cleaning import format_count, printable_line
from kgot_lab.types import Json

PLAN = "plan.json"  # its name in a folder of results
_DIGEST = re.compile(r" \([0-9a-f]{8}\)")  # after the name of an embedder
LENIENT = " lenient"  # suffix of a measure that counts classes


@dataclass(frozen=True)
class ReportRow:
    """A row of a report: the mean of a measure over n queries, and its 95 % bootstrap interval."""

    dataset: str
    system: str
    part: str  # all, dev or test
    measure: str
    mean: float
    low: float
    high: float
    n: int


@check_arguments
@dataclass(frozen=True, repr=False)
class Report:
    """The scores of systems on one data set, printed as tables.

    `comparisons` with the baseline are by part of the queries. `left_out` are systems that could not be built
    for these data, and `again` those that were run again although they had stored results, each with the
    reason. `notes` are further remarks.
    """

    dataset: Dataset
    plan: Plan
    runs: tuple[Run, ...]  # best first
    scores: Mapping[str, Scores]
    rows: tuple[ReportRow, ...]
    comparisons: Mapping[str, Comparisons]
    left_out: Mapping[str, str] = field(default_factory=dict)
    again: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the queries that are reported separately."""
        return tuple(self.comparisons)

    def row(self, system: str, measure: str = "", part: str = "") -> ReportRow:
        """Return the row of a system, by default for the primary measure and the first part.

        Raises BadInput if the report has no such row.
        """
        wanted = system, measure or self.plan.primary, part or self.parts[0]
        for row in self.rows:
            if (row.system, row.measure, row.part) == wanted:
                return row
        raise BadInput(f"the report on {self.dataset.name} has no row for {', '.join(wanted)}")

    def grids(self) -> list[Grid]:
        """Return the tables of the report: for each part the scores and the comparison with the baseline."""
        made = []
        for number, part in enumerate(self.parts):
            made.append(self._scores_grid(part, self.plan.measures, timed=number == 0))
            if self.dataset.classes:
                lenient = [measure + LENIENT for measure in self.plan.measures]
                made.append(self._scores_grid(part, lenient, timed=False))
            gaps = self.comparisons[part]
            title = f"{self.dataset.name}, {part}: {gaps.measure} against {gaps.baseline}"
            made.append(gaps.grid(f"{title}{self._embedder_note}"))
        return made

    def _scores_grid(self, part: str, measures: Sequence[str], *, timed: bool) -> Grid:
        rows = {(row.system, row.measure): row for row in self.rows if row.part == part}
        means = [(row.measure, row.mean) for row in rows.values()]
        best = {measure: max(mean for named, mean in means if named == measure) for measure in measures}
        columns = ["system"]
        for measure in measures:
            columns += [measure, "95 %"] if measure.removesuffix(LENIENT) == self.plan.primary else [measure]
        lines = []
        for run in self.runs:
            cells = [Cell(run.system)]
            for measure in measures:
                row = rows[run.system, measure]
                cells.append(Cell(format_decimal(row.mean), math.isclose(row.mean, best[measure])))
                if measure.removesuffix(LENIENT) == self.plan.primary:
                    cells.append(Cell(f"{format_decimal(row.low)} to {format_decimal(row.high)}"))
            lines.append((*cells, *(_latency_cells(run) if timed else ())))
        n = next(iter(rows.values())).n
        documents = format_count(len(self.dataset.documents), "document")
        title = f"{self.dataset.name}, {part}: {format_count(n, 'query', 'queries')}, {documents}{self._embedder_note}"
        return Grid(title, (*columns, *(("ms", "ms 95 %") if timed else ())), tuple(lines))

    # --- exports ---

    def markdown(self) -> str:
        """Render the tables as Markdown."""
        tables = [grid.markdown for grid in self.grids()]
        return "\n\n".join([*tables, f"{self._plan_and_remarks} {self._method_note}"]) + "\n"

    def latex(self) -> str:
        """Render the tables as LaTeX, for the booktabs package."""
        tables = [grid.latex for grid in self.grids()]
        return "\n\n".join([*tables, f"% {printable_line(self._plan_and_remarks)}"]) + "\n"

    def csv(self) -> str:
        """Render the rows as CSV, with columns for the embedder of each system and for the plan.

        The embedder is empty if the system's results name none. A leading ' is added to a text that a
        spreadsheet would read as a formula.
        """
        plan = {name: value for name, value in self.plan.as_json().items() if name != "measures"}
        named = {run.system: {"embedder": _embedder_name(run) or ""} for run in self.runs}
        cells = [_round_numbers(asdict(row)) | named[row.system] | plan for row in self.rows]
        rows = [{name: escape_formula(value) for name, value in cell.items()} for cell in cells]
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()

    def json(self) -> str:
        """Render the report as JSON: plan, data, systems, rows and comparisons."""
        systems = {
            run.system: {"description": run.description, **_round_numbers(run.latency._asdict()), **run.about}
            for run in self.runs
        }
        gaps = {
            part: [_round_numbers(asdict(row)) for row in own.rows] for part, own in self.comparisons.items()
        }
        whole = {"dataset": self.dataset.name, "documents": len(self.dataset.documents)}
        whole |= {"plan": self.plan.as_json(), "systems": systems}
        whole |= {"rows": [_round_numbers(asdict(row)) for row in self.rows], "comparisons": gaps}
        return json.dumps(whole, indent=1) + "\n"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for readers: missing systems, rankings older than the last run, and the embedders."""
        lacking = [f"Left out is {system}: {why}." for system, why in self.left_out.items()]
        resumed = [run for run in self.runs if RESUMED in run.about]
        older = [f"{run.about[RESUMED]} of {len(run.hits)} of {run.system}" for run in resumed]
        stopped = [f"Rankings taken from a run that was stopped: {', '.join(older)}."] if older else []
        return (*lacking, *stopped, *self._embedder_remarks, *self.notes)

    @property
    def embedders(self) -> dict[str, tuple[str, ...]]:
        """The systems by their embedder, that of the baseline first, else that of most systems.

        Systems without an embedder, or whose results do not name one, are omitted.
        """
        systems: dict[str, tuple[str, ...]] = {}
        for run in self.runs:
            if name := _embedder_name(run):
                systems[name] = (*systems.get(name, ()), run.system)

        def rank(each: tuple[str, tuple[str, ...]]) -> tuple[bool, int, str]:
            return self.plan.baseline not in each[1], -len(each[1]), each[0]

        return dict(sorted(systems.items(), key=rank))

    @property
    def _embedder_note(self) -> str:
        """The embedder of the systems in a table, for its title."""
        first = next(iter(self.embedders), "")
        return f", vectors by {_DIGEST.sub('', first)}" if first else ""

    @property
    def _embedder_remarks(self) -> list[str]:
        first, *others = self.embedders or [""]
        # names of systems have commas in them
        further = [f"By {name}: {'; '.join(self.embedders[name])}." for name in others]
        return [" ".join([f"Vectors by {first}.", *further])] if first else []

    @property
    def _plan_and_remarks(self) -> str:
        return " ".join([f"{self.plan}.", *self.remarks])

    @property
    def _method_note(self) -> str:
        count = len(self.runs) - 1
        family = f"p by paired randomisation, corrected by Holm over the {format_count(count, 'system')} of a table"
        return f"Intervals are BCa bootstrap, 95 %; {family}. Bold: the best of a column, and p below .05. ms: median time of a query."

    def _repr_markdown_(self) -> str:
        return self.markdown()

    def _repr_html_(self) -> str:
        tables = "".join(grid.html for grid in self.grids())
        return f"{tables}<p>{escaped_cell(f'{self._plan_and_remarks} {self._method_note}')}</p>"

    def __repr__(self) -> str:
        return "\n\n".join([*(grid.text for grid in self.grids()), self._plan_and_remarks])


def report(runs: Iterable[Run], dataset: Dataset, plan: Plan) -> Report:
    """Score the runs of systems on one data set and compare them with the plan's baseline.

    The held-out queries are also reported separately if there are others too. Raises BadInput if two runs
    have the same name, or a run lacks a query, since counting it 0 would make an unfinished system look bad.
    """
    runs = tuple(runs)
    if odd := set(dataset.qrels) ^ {query.id for query in dataset.queries}:
        counted = format_count(len(odd), "query", "queries")
        problem = f"{counted} of {dataset.name} without qrels, or with qrels alone"
        raise BadInput(f"{problem}, for example {min(odd)!r}; leave them out")
    if len({run.system for run in runs}) < len(runs):
        raise BadInput("two runs of this report have the same system name; give each its own")
    for run in runs:
        if missing := [query.id for query in dataset.queries if query.id not in run.hits]:
            problem = f"the run of {run.system} lacks {format_count(len(missing), 'query', 'queries')} of {dataset.name}"
            raise BadInput(f"{problem}, for example {missing[0]!r}")
    scores = {run.system: _score_run(run, dataset, plan) for run in runs}
    parts = query_splits(dataset)
    first = next(iter(parts.values()))
    means = {system: own.only(first).mean(plan.primary) for system, own in scores.items()}
    ordered = sorted(runs, key=lambda run: (-means[run.system], run.system))
    scores = {run.system: scores[run.system] for run in ordered}
    rows: list[ReportRow] = []
    comparisons = {}
    for part, ids in parts.items():
        some = {system: own.only(ids) for system, own in scores.items()}
        rows += _rows(dataset, part, some, plan)
        chance = {"rounds": plan.rounds, "seed": plan.seed}
        comparisons[part] = compare(some, plan.baseline, plan.primary, **chance, groups=dataset.groups)
    return Report(dataset, plan, tuple(ordered), scores, tuple(rows), comparisons)


def derive_reports(folder: Path, load: Callable[[str], Dataset]) -> list[Report]:
    """Recompute every report from a folder of stored results, without a model or network.

    The folder holds plan.json and one folder for each data set, with a results file for each system. `load`
    returns a data set by name. Raises BadInput for a broken results file, or one of other documents or qrels.
    """
    plan = Plan.load(folder / PLAN)
    groups = (sorted(inner.glob("*.jsonl.gz")) for inner in sorted(folder.iterdir()) if inner.is_dir())
    reports = []
    for paths in groups:
        if not paths:
            continue
        first = load_results(paths[0])
        dataset = load(first.dataset).only(first.hits)
        reports.append(report(load_runs(paths, dataset), dataset, plan))
    if not reports:
        raise BadInput(f"there are no results below {folder.name}/; run the benchmark first")
    return reports


def load_runs(paths: Iterable[Path], dataset: Dataset) -> list[Run]:
    """Load the stored results of a data set.

    Raises BadInput for a file that is broken or was made on other queries, documents or qrels.
    """
    now, asked, runs = fingerprints(dataset), {query.id for query in dataset.queries}, []
    for path in paths:
        made = load_results(path)
        other = [what for what, digest in now.items() if made.about.get(what) != digest]
        if other or set(made.hits) != asked:
            was = f"{path} was made on other {', '.join(other) or 'questions'} than {dataset.name} has now"
            remedy = "name another folder, or delete the results there, whose figures are of the data before"
            raise BadInput(f"{was}; {remedy}")
        runs.append(made)
    return runs


# --- parts ---


def _score_run(run: Run, dataset: Dataset, plan: Plan) -> Scores:
    """Score a run, and add class-level scores if the data set has classes."""
    # the bootstrap depends on this order
    qrels = {query.id: dataset.qrels[query.id] for query in dataset.queries}
    strict = score(run, qrels, plan.measures)
    if not dataset.classes:
        return strict
    lenient = score(run, qrels, plan.measures, classes=dataset.classes)
    named = {measure + LENIENT: values for measure, values in lenient.values.items()}
    return Scores(run.system, run.dataset, {**strict.values, **named})


def _rows(dataset: Dataset, part: str, scores: Mapping[str, Scores], plan: Plan) -> list[ReportRow]:
    named = [(system, measure) for system, own in scores.items() for measure in own.values]
    values = np.array([list(scores[system].per_query(measure).values()) for system, measure in named])
    asked = scores[named[0][0]].per_query(named[0][1])
    together = [dataset.groups[query] for query in asked] if dataset.groups else None
    estimates: list[Estimate] = intervals(values, together, rounds=plan.rounds, seed=plan.seed)
    return [
        ReportRow(dataset.name, system, part, measure, own.mean, own.low, own.high, own.n)
        for (system, measure), own in zip(named, estimates, strict=True)
    ]


def _embedder_name(run: Run) -> str:
    """Return the name and short digest of the embedder that a run records, or an empty text."""
    named = [each.rpartition(" ") for each in run.about.get(EMBEDDER_HASH, "").split("; ")]
    return " and ".join(f"{name} ({digest[:8]})" for name, _, digest in named if name)


def _latency_cells(run: Run) -> tuple[Cell, Cell]:
    median, p95 = (f"{1000 * seconds:.1f}" if math.isfinite(seconds) else "–" for seconds in run.latency)
    return Cell(median), Cell(p95)


def _round_numbers(value: Json) -> Json:
    """Round the numbers in a JSON value to six decimals, so that all machines agree.

    A number that is not finite becomes null.
    """
    if isinstance(value, dict):
        return {name: _round_numbers(inner) for name, inner in value.items()}
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


# Figures in sentences.


def span(estimate: Estimate) -> str:
    """Format an interval with signs."""
    return f"{format_signed(estimate.low)} to {format_signed(estimate.high)}"


def format_p(p: float) -> str:
    """Format a p-value with three decimals, or as "below .001"."""
    return "below .001" if p < 0.001 else format_decimal(p)


@dataclass(frozen=True, repr=False)
class Sentences:
    """Sentences generated from figures, shown in a notebook as one paragraph each."""

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{escaped_cell(line)}</p>" for line in self.lines)


# A ranking game: guess which system comes first in each round.


@dataclass(frozen=True)
class ContestRound:
    """The winner of a round, or several if equal, the lead over the next, and a sentence about it.

    It is undecided, without a winner, until two systems have completed it. `n` is how many questions all
    participants have answered.
    """

    on: str
    first: tuple[str, ...]
    ahead: float | None
    n: int
    told: str


@dataclass(frozen=True)
class Contest:
    """The systems in a ranking game, each with a description, and the rounds.

    `asks` is the question, if it is not which system has the best measure.
    """

    systems: Mapping[str, str]
    rounds: tuple[ContestRound, ...]
    measure: str = "F1"
    asks: str = ""

    @property
    def outcomes(self) -> Sentences:
        """The outcome of each round, as a sentence."""
        return Sentences(tuple(f"{each.on}: {each.told}" for each in self.rounds))

    def __repr__(self) -> str:
        return repr(self.outcomes)
