"""The tables of the KG-OS benchmark, derived from the results in a folder, and what they say in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.kgos.benchmark import half_report
from benchmarks.kgos.claims import EQUALITIES, KGOS_CLAIMS, LEVELS_SAID, Equality, level_said
from benchmarks.kgos.intent_results import intent_grids
from benchmarks.kgos.lenient import ANY_5, LENIENT_5, STRICT_5, TYPE_5, leniency
from benchmarks.kgos.passages import transfer_grid, transfers
from benchmarks.kgos.queries import QueryHalf, cookbook_queries
from benchmarks.kgos.systems import FOUR_WEIGHTS
from benchmarks.recall.claims import DOES_NOT, REPLICATES, UNDECIDED, Verdict, judge_claims
from kgot_lab.evaluation.reports import Report
from kgot_lab.evaluation.significance import Estimate, interval, intervals
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_signed
from kgot_lab.kgos.methods.intents import classify_intent
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.retrieval.lexical import INTENT_VERBS
from kgot_lab.text.words import searched_words

_ELSEWHERE = {  # claims of the recall benchmark, on public passages, that ask the same of other systems
    "weighted hybrid beats RRF over seven": "weighted hybrid beats RRF over many",
    "weighted hybrid beats RRF over seven, paths": "weighted hybrid beats RRF over many, paths",
    "few lanes beat seven, both weighted": "few lanes beat many, both weighted",
    "few lanes beat seven, both RRF": "few lanes beat many, both RRF",
}


def kgos_grids(folder: Path, half: QueryHalf, public: Mapping[str, str]) -> Iterator[Grid]:
    """All tables of a half, those first that decide; `public` are the verdicts on public passages by the text
    of a claim.
    """
    report = half_report(folder, half)
    yield claims_grid(report, public)
    yield equality_grid(report)
    yield levels_grid(report, half)
    yield reached_grid(report, half)
    yield from report.grids()[1:]
    yield order_grid(report)
    yield from intent_grids(folder, half)


def passage_grid(folder: Path, recall: Path) -> Grid:
    """What fusions that were learnt on one set of passages give on another; `recall` are the results of the
    recall benchmark.
    """
    return transfer_grid(transfers(folder, recall))


def kgos_verdicts(report: Report) -> tuple[Verdict, ...]:
    """The verdicts on the claims of pairs, in their order, p-values corrected over all of them."""
    return judge_claims([report], claims=KGOS_CLAIMS).rows


def claims_grid(report: Report, public: Mapping[str, str]) -> Grid:
    """Each claim about two systems: the difference in strict recall@5, what follows, and what follows on
    public passages.
    """
    lines = []
    for row in kgos_verdicts(report):
        elsewhere = public.get(_ELSEWHERE.get(row.claim.text, row.claim.text), "")
        cells = (
            row.claim.said,
            gap_told(row.difference),
            format_decimal(row.p_holm),
            format_decimal(row.detectable),
        )
        lines.append(
            (
                Cell(row.claim.text),
                *map(Cell, cells),
                Cell(row.verdict, row.verdict != UNDECIDED),
                Cell(elsewhere),
            )
        )
    title = f"Claims, {report.dataset.name}: strict recall@5 on {len(report.dataset.queries)} queries, one minus the other"
    return Grid(
        title,
        ("claim", "document", "difference", "p Holm", "detectable", "here", "public passages"),
        tuple(lines),
    )


def equalities(report: Report) -> list[Equality]:
    """The claims that two systems reach the same."""
    made = []
    for text, one, other in EQUALITIES:
        first, second = (report.scores[name].per_query("recall@5") for name in (one, other))
        made.append(Equality(text, one, other, interval([first[id] - second[id] for id in first])))
    return made


def equality_grid(report: Report) -> Grid:
    """Whether what should make no difference makes none, within .02."""
    lines = [
        (Cell(equality.text), Cell(gap_told(equality.difference)), Cell(equality.said))
        for equality in equalities(report)
    ]
    return Grid(
        "Claims of no difference in strict recall@5: replicated where the interval lies within .02",
        ("claim", "difference", "here"),
        tuple(lines),
    )


def levels_grid(report: Report, half: QueryHalf) -> Grid:
    """The document's own figures beside what was reached here, strict and lenient."""
    queries, graph, lines = cookbook_queries(half), cookbook(), []
    runs = {run.system: run for run in report.runs}
    for system, (strict, lenient) in LEVELS_SAID.items():
        scores = leniency(runs[system], queries, graph)
        cells = [Cell(system)]
        for figure, name in ((strict, STRICT_5), (lenient, LENIENT_5)):
            own = interval(list(scores.per_query(name).values()))
            cells += [Cell(format_decimal(figure)), Cell(mean_told(own)), Cell(level_said(figure, own))]
        lines.append(tuple(cells))
    columns = ("system", "document, strict", "here, strict", "", "document, lenient", "here, lenient", "")
    return Grid(
        "Levels of recall@5: theirs are of ten queries on another graph, so they need not agree",
        columns,
        tuple(lines),
    )


def reached_grid(report: Report, half: QueryHalf) -> Grid:
    """Every system: strict, lenient, what leniency gives at random, strict by level of query, and how long a
    query takes.
    """
    queries, graph, lines = cookbook_queries(half), cookbook(), []
    levels = sorted(set(report.dataset.types.values()), reverse=True)
    for run in report.runs:
        scores = leniency(run, queries, graph)
        names = (STRICT_5, LENIENT_5, ANY_5, TYPE_5)
        own = intervals(np.array([list(scores.per_query(name).values()) for name in names]))
        parts = [
            scores.only([id for id, level in report.dataset.types.items() if level == wanted]).mean(STRICT_5)
            for wanted in levels
        ]
        figures = [
            mean_told(own[0]),
            mean_told(own[1]),
            format_decimal(own[2].mean),
            format_decimal(own[3].mean),
            *map(format_decimal, parts),
        ]
        lines.append((Cell(run.system), *map(Cell, figures), Cell(f"{1000 * run.latency.median:.2f}")))
    columns = (
        "system",
        "strict",
        "lenient",
        "at random",
        "at random, same types",
        *(f"strict, {level}" for level in levels),
        "ms, median",
    )
    title = f"{report.dataset.name}, {len(report.dataset.queries)} queries: recall@5; lenient at random is what leniency alone gives"
    return Grid(title, columns, tuple(lines))


def order_grid(report: Report) -> Grid:
    """What the intent lane does to the order: differences from the same weights without it, and of the goal
    preset.
    """
    lines = []
    for one, other in (
        (FOUR_WEIGHTS, "4-weight, intent off"),
        ("goal preset", "4-weight, intent off"),
        ("goal preset", FOUR_WEIGHTS),
    ):
        cells = [Cell(f"{one} minus {other}")]
        for measure in ("recall@5", "recall@10", "ndcg@10", "mrr@10"):
            first, second = (report.scores[name].per_query(measure) for name in (one, other))
            cells.append(Cell(gap_told(interval([first[id] - second[id] for id in first]))))
        lines.append(tuple(cells))
    return Grid(
        "What intent adds (not corrected; the first is delta on and off)",
        ("", "recall@5", "recall@10", "ndcg@10", "mrr@10"),
        tuple(lines),
    )


def kgos_sentences(folder: Path, half: QueryHalf) -> list[str]:
    """Which of the document's claims hold, in plain words."""
    report = half_report(folder, half)
    rows = kgos_verdicts(report)
    said = []
    for verdict, what in ((REPLICATES, "Holds"), (DOES_NOT, "Is refuted"), (UNDECIDED, "Cannot be decided")):
        some = [f"{row.claim.text} ({gap_told(row.difference)})" for row in rows if row.verdict == verdict]
        some += [
            f"{equality.text} within .02 ({gap_told(equality.difference)})"
            for equality in equalities(report)
            if equality.said == verdict
        ]
        said.append(f"{what}, {len(some)}: {'; '.join(some) or 'none'}.")
    queries, graph, runs = cookbook_queries(half), cookbook(), {run.system: run for run in report.runs}
    levels = []
    for system in (FOUR_WEIGHTS, report.plan.baseline):
        scores = leniency(runs[system], queries, graph)
        strict, lenient, lot = (
            interval(list(scores.per_query(name).values())) for name in (STRICT_5, LENIENT_5, TYPE_5)
        )
        reached = level_said(LEVELS_SAID[system][0], strict), level_said(LEVELS_SAID[system][1], lenient)
        levels.append(
            f"{system} reaches {mean_told(strict)} strictly where the document has .885 ({reached[0]}), and {mean_told(lenient)} "
            f"leniently where it has 1.000 ({reached[1]}); accepted nodes of the same types at random would give {format_decimal(lot.mean)}"
        )
    verbs = sum(
        not INTENT_VERBS.keys().isdisjoint(searched_words(query.text)) for query in report.dataset.queries
    )
    notes = [
        f"Of the {len(report.dataset.queries)} queries {verbs} hold one of the eight verbs that weigh five times as much."
    ]
    aimed = sum(classify_intent(query.text).best is not None for query in report.dataset.queries)
    notes += [
        f"On {aimed} of them an intent is found at all; on the others the fourth weight goes to the other three."
    ]
    notes += [
        "The learned fusion and the probes were fitted on this half: what they reach here is no test of them."
    ] * (half == "tuning")
    return [*said, f"Levels: {'; '.join(levels)}.", *notes]


def mean_told(own: Estimate) -> str:
    """A mean and its interval."""
    return f"{format_decimal(own.mean)} [{format_decimal(own.low)}, {format_decimal(own.high)}]"


def gap_told(gap: Estimate) -> str:
    """A mean difference and its interval."""
    return f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]"


def markdown_of(title: str, lines: Sequence[str], grids: Sequence[Grid]) -> str:
    """A report: a title, sentences, and tables."""
    return "\n\n".join([f"# {title}", *lines, *(grid.markdown for grid in grids)]) + "\n"
