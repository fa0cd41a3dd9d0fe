"""The standard sets: questions that others have answered too, beside what they published, by kind of
question, and without titles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.recall.published import published_thousand
from kgot_lab.benchmark.recall.bench import BenchmarkProgress
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import results_path, run_missing
from kgot_lab.benchmark.recall.systems import BASELINE, systems
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.evaluation.dataset import Dataset, query_splits
from kgot_lab.evaluation.reports import PLAN, Report, derive_reports
from kgot_lab.evaluation.results import Plan, fingerprints, save_results
from kgot_lab.evaluation.runs import Latency, Run
from kgot_lab.evaluation.significance import Estimate, compare, interval, sign_flip_p
from kgot_lab.evaluation.tables import Cell, Grid, format_decimal, format_p_value, format_signed
from kgot_lab.retrieval.entity_linking import title_graph

WITH_TITLES = ("2wiki-1000", "musique-498", "hotpotqa", "musique")
TRAIL, NO_LINKS, RIVAL = "trail", "control: trail, no links", "Psi-RAG"
STANDARD = (
    *("2wiki-1000", "2wiki-1000-untitled", "2wiki-1000-mixed"),
    *("musique-498", "musique-498-untitled", "musique-498-mixed", "musique-498-steps"),
    *("hotpotqa", "hotpotqa-untitled", "musique", "musique-untitled"),
)
STANDARD_SYSTEMS = (
    "bm25",
    "embeddings",
    BASELINE,
    "pagerank, titles",
    "follow, names only",
    "follow, sentences",
    TRAIL,
    NO_LINKS,
)
STANDARD_PLAN = Plan(BASELINE, measures=("recall@1", "recall@2", "recall@5", "all@5"), expected=TRAIL)
_DEEP = 10  # hits kept
_TEST = "test"


@dataclass(frozen=True)
class PublishedFigure:
    """What a paper, or a repository, reports on the standard questions; not measured here."""

    dataset: str
    system: str
    recall: float  # at 5
    models: str
    over: str  # which passages


# HippoRAG 2 (Gutiérrez et al. 2025) with its baselines, PropRAG and BridgeRAG as these report them for the
# same thousand questions.
FIGURES = (
    PublishedFigure("2wiki-1000", "BM25", 0.653, "none", "6,119"),
    PublishedFigure("2wiki-1000", "NV-Embed-v2", 0.765, "7B embedder", "6,119"),
    PublishedFigure("2wiki-1000", "HippoRAG 2", 0.904, "7B embedder, 70B model", "6,119"),
    PublishedFigure("2wiki-1000", "PropRAG", 0.941, "7B embedder, 70B model", "6,119"),
    PublishedFigure("2wiki-1000", "BridgeRAG", 0.953, "7B embedder, 70B model", "6,119"),
    PublishedFigure("musique-498", "BM25", 0.435, "none", "11,656"),
    PublishedFigure("musique-498", "NV-Embed-v2", 0.697, "7B embedder", "11,656"),
    PublishedFigure("musique-498", "HippoRAG 2", 0.747, "7B embedder, 70B model", "11,656"),
    PublishedFigure("musique-498", "PropRAG", 0.783, "7B embedder, 70B model", "11,656"),
    PublishedFigure("musique-498", "BridgeRAG", 0.815, "7B embedder, 70B model", "11,656"),
)


def measure_standard(
    folder: Path,
    embedder: Embedder,
    progress: BenchmarkProgress = lambda done, total, what: None,
    names: Sequence[str] = STANDARD,
) -> list[Report]:
    """Run STANDARD_SYSTEMS on the standard sets into results, with the published rival beside them, and
    report what the folder holds.

    `progress(done, total, what)` counts systems. Raises what `run_missing` raises.
    """
    STANDARD_PLAN.write_down(folder / PLAN)
    total, done = len(names) * len(STANDARD_SYSTEMS), 0
    for name in names:
        dataset = load_dataset(name)
        made = systems(dataset, embedder)
        for system in STANDARD_SYSTEMS:
            progress(done, total, f"{system} on {name}")
            run_missing(folder, dataset, {system: made[system]}, STANDARD_PLAN, keep=_DEEP)
            done += 1
        if name == "2wiki-1000":
            unknown = Latency(float("nan"), float("nan"))
            said = "published by Newiz430/Psi-RAG, five deep"
            run = Run(RIVAL, said, name, 5, dict(published_thousand()), unknown, {}, fingerprints(dataset))
            save_results(run, results_path(folder, dataset, RIVAL))
    return derive_reports(folder, load_dataset)


def standard_tables(
    reports: Sequence[Report], crossed: Mapping[str, Mapping[str, float]] | None = None
) -> list[Grid]:
    """The tables: recall of each system by set, by kind of question, paired differences, and published
    figures.

    `crossed`: recall@5 of dev questions by scorers that were not learnt on them, by data set.
    """
    by_name = {report.dataset.name: report for report in reports}
    grids = [_reached(by_name, _TEST), _differences(by_name)]
    if crossed and "2wiki-1000" in by_name:
        grids.append(_beside_rival(by_name["2wiki-1000"], crossed["2wiki-1000"]))
    grids += [_by_kind(by_name[name]) for name in ("2wiki-1000", "musique-498") if name in by_name]
    return [
        *grids,
        _beside(by_name),
        _given_away([by_name[name].dataset for name in WITH_TITLES if name in by_name]),
    ]


def _reached(reports: Mapping[str, Report], part: str) -> Grid:
    rows = []
    for name, report in reports.items():
        cells = [
            Cell(name),
            Cell(str(report.row(BASELINE, part=part).n)),
            Cell(f"{len(report.dataset.documents):,}"),
        ]
        means = {system: report.row(system, part=part).mean for system in STANDARD_SYSTEMS}
        cells += [Cell(format_decimal(mean), mean == max(means.values())) for mean in means.values()]
        row = report.row(TRAIL, part=part)
        cells += [
            Cell(f"{format_decimal(row.low)} to {format_decimal(row.high)}"),
            Cell(format_decimal(report.row(TRAIL, "all@5", part).mean)),
        ]
        rows.append(tuple(cells))
    what = "questions that nothing was tuned or learnt on" if part == _TEST else f"{part} questions"
    columns = ("set", "questions", "passages", *STANDARD_SYSTEMS, f"95 % of {TRAIL}", f"{TRAIL}, all@5")
    return Grid(f"recall@5, {what}", columns, tuple(rows))


def _differences(reports: Mapping[str, Report]) -> Grid:
    rows = []
    for name, report in reports.items():
        others = [BASELINE, "follow, sentences", NO_LINKS, *[RIVAL] * (RIVAL in report.scores)]
        for measure in ("recall@1", "recall@5"):
            for other in others:
                gap, p, (wins, ties, losses) = paired(report, TRAIL, other, measure, _TEST)
                span = f"{format_signed(gap.low)} to {format_signed(gap.high)}"
                cells = (
                    name,
                    measure,
                    other,
                    format_signed(gap.mean),
                    span,
                    format_p_value(p),
                    f"{wins}/{ties}/{losses}",
                )
                rows.append(tuple(map(Cell, cells)))
    columns = ("set", "measure", "minus", "difference", "95 %", "p", "wins/ties/losses")
    return Grid(f"{TRAIL} minus others, test questions", columns, tuple(rows))


def paired(
    report: Report, system: str, other: str, measure: str, part: str
) -> tuple[Estimate, float, tuple[int, int, int]]:
    """The mean paired difference of two systems, with its interval over groups, p, and wins, ties and losses;
    p is not corrected.
    """
    ids = query_splits(report.dataset)[part]
    scores = {name: report.scores[name].only(ids) for name in (other, system)}
    row = compare(scores, other, measure, groups=report.dataset.groups)[system]
    return row.difference, row.p, (row.wins, row.ties, row.losses)


def _beside_rival(report: Report, crossed: Mapping[str, float]) -> Grid:
    """The paired difference to the published rival on test questions, on dev questions crossed, and on
    both, also by kind.
    """
    rival = report.scores[RIVAL].per_query("recall@5")
    reached = report.scores[TRAIL].per_query("recall@5")
    test = {query: reached[query] for query in query_splits(report.dataset)[_TEST]}
    rows = []
    for what, own in (("test", test), ("dev, crossed", crossed), ("both", {**test, **crossed})):
        kinds = {report.dataset.types[query] for query in own} if what == "both" else set()
        for kind in ("", *sorted(kinds)):
            some = [
                query.id
                for query in report.dataset.queries
                if query.id in own and kind in ("", report.dataset.types[query.id])
            ]
            gaps = [own[query] - rival[query] for query in some]
            groups = [report.dataset.groups.get(query, query) for query in some]
            gap = interval(gaps, groups)
            means = (
                format_decimal(float(np.mean([values[query] for query in some]))) for values in (own, rival)
            )
            spans = (
                format_signed(gap.mean),
                f"{format_signed(gap.low)} to {format_signed(gap.high)}",
                format_p_value(sign_flip_p(gaps, groups)),
            )
            rows.append(tuple(map(Cell, (what + f": {kind}" * bool(kind), str(len(some)), *means, *spans))))
    columns = ("questions", "number", TRAIL, RIVAL, "difference", "95 %", "p")
    return Grid(
        f"{TRAIL} minus {RIVAL} on 2wiki-1000, recall@5; crossed: learnt on one half, measured on the other",
        columns,
        tuple(rows),
    )


def _by_kind(report: Report) -> Grid:
    ids = query_splits(report.dataset)[_TEST]
    kinds = sorted({report.dataset.types[id] for id in ids})
    columns, rows = ["system"], []
    for kind in kinds:
        columns += [f"{kind} ({sum(report.dataset.types[id] == kind for id in ids)})", "all@5"]
    for run in report.runs:
        cells = [Cell(run.system)]
        for kind in kinds:
            some = report.scores[run.system].only([id for id in ids if report.dataset.types[id] == kind])
            cells += [Cell(format_decimal(some.mean("recall@5"))), Cell(format_decimal(some.mean("all@5")))]
        rows.append(tuple(cells))
    return Grid(
        f"{report.dataset.name}: recall@5 by kind of question, test split", tuple(columns), tuple(rows)
    )


def _beside(reports: Mapping[str, Report]) -> Grid:
    rows = [
        (
            figure.dataset,
            f"{figure.system} (published)",
            format_decimal(figure.recall),
            "",
            figure.models,
            figure.over,
        )
        for figure in FIGURES
    ]
    for name in ("2wiki-1000", "musique-498"):
        for system in (BASELINE, "follow, sentences", TRAIL, RIVAL):
            if name in reports and system in reports[name].scores:
                row = reports[name].row(system, part=_TEST)
                whose = "their run, our scoring" if system == RIVAL else "ours"
                models = "7B embedder, 70B model, 8B reranker" if system == RIVAL else "22M embedder"
                span = f"{format_decimal(row.low)} to {format_decimal(row.high)}"
                rows.append(
                    (
                        name,
                        f"{system} ({whose})",
                        format_decimal(row.mean),
                        span,
                        models,
                        f"{len(reports[name].dataset.documents):,}",
                    )
                )
    rows.sort(key=lambda row: (row[0], row[2]))
    columns = ("set", "system", "recall@5", "95 %", "models", "passages")
    return Grid(
        "recall@5 beside published figures: theirs over all questions, ours over the test split",
        columns,
        tuple(tuple(map(Cell, row)) for row in rows),
    )


def _given_away(datasets: Sequence[Dataset]) -> Grid:
    """How much the making of a set gives away: gold passages and the others that no other mentions by its
    title and that mention none.
    """
    rows = []
    for dataset in datasets:
        graph = title_graph(dataset.documents)
        linked = {
            graph.ids[row] for row in np.unique(np.concatenate([graph.sources, graph.targets])).tolist()
        }
        gold = {id for grades in dataset.qrels.values() for id, grade in grades.items() if grade > 0}
        others = [document.id for document in dataset.documents if document.id not in gold]
        isolated = [sum(id not in linked for id in some) / len(some) for some in (sorted(gold), others)]
        rows.append(
            (dataset.name, f"{len(gold):,}", f"{isolated[0]:.0%}", f"{len(others):,}", f"{isolated[1]:.0%}")
        )
    columns = ("set", "gold passages", "isolated", "other passages", "isolated")
    return Grid(
        "passages that name no other by its title and are named by none",
        columns,
        tuple(tuple(map(Cell, row)) for row in rows),
    )
