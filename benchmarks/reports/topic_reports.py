"""Write the reports of the topics, benchmarks/results/<topic>/report.md, from the results beside them: no
number there is typed.

Recall and structure have a report of all tables, which their own commands write; what a reader looks at first
is their summary.md.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

from benchmarks.beam.results import chat_grids, chat_report
from benchmarks.questions.lost_answers import STAGES
from benchmarks.questions.question_answering import results_path, table
from benchmarks.recall.claims import judge_claims
from benchmarks.stores.tables import store_bars, store_tables
from benchmarks.structure.report import structure_summary as accuracies
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.evaluation.reports import Report, derive_reports
from kgot_lab.evaluation.significance import Estimate, holm, interval
from kgot_lab.evaluation.tables import format_decimal, format_p_value, format_signed

RESULTS = Path(__file__).parents[1] / "results"
WALKS = (
    "neighbours, turns",
    "neighbours, turns + delta",
    "pagerank, triples",
    "pagerank, titles",
    "follow, sentences",
)
SHOWN = ("bm25", "embeddings", "convex", "rrf", "rrf of six", "kg-os hybrid", "gate", *WALKS, "trail")


@cache
def recall_reports() -> list[Report]:
    """The reports of the recall benchmark, derived from its run files."""
    return derive_reports(RESULTS / "recall", load_dataset)


# --- the reports ---


def questions_report() -> str:
    """The same questions answered three ways, where the loop lost, and what it costs besides the model."""
    head = json.loads(results_path("test", "rag").read_text().splitlines()[0])
    said = f"Model {head['model']}, {head['date']}, {head['machine']}. The 30 questions were drawn by seed before any prompt was written."
    return "\n\n".join(
        [
            "# The loop, RAG and no documents",
            table("test"),
            lost(),
            said,
            "## What the loop costs besides the model",
            overhead(),
        ]
    )


def recall_summary() -> str:
    """Recall@5 of the systems a reader asks for first."""
    table, *found = (part(recall_reports()) for part in (recall, gains, gates, speed, claims))
    learnt = (
        "`trail` was learnt on the other questions of these sets: it was added, and the rule of `gate` was "
        "changed, when the test questions were open."
    )
    return "\n\n".join(
        ["# Recall: the summary", "All systems and measures: [report.md](report.md).", table, learnt, *found]
    )


def structure_summary() -> str:
    """Accuracy on the analogy sets, the worst cells, and what delta edges give a walk."""
    return "\n\n".join(
        [
            "# Structure: the summary",
            "All tables: [report.md](report.md).",
            accuracies(RESULTS / "structure"),
            walks(),
        ]
    )


def views_report() -> str:
    """How long live views take."""
    return "\n\n".join(["# Live views in a browser", views()])


def stores_report() -> str:
    """How fast the stores are, and what kills during writes left."""
    rows = [json.loads(line) for line in (RESULTS / "stores.jsonl").read_text(encoding="utf-8").splitlines()]
    return "\n\n".join(
        [
            "# The stores",
            store_tables(rows).strip(),
            "## Aims",
            store_bars(rows),
            "## After kill -9 in the middle of writes",
            kills(),
        ]
    )


def beam_report() -> str:
    """Which turns of long chats are found, by ability."""
    return chat_report(chat_grids(RESULTS / "beam"))


PAGES: dict[str, Callable[[], str]] = {
    "questions/report.md": questions_report,
    "recall/summary.md": recall_summary,
    "structure/summary.md": structure_summary,
    "views/report.md": views_report,
    "beam/report.md": beam_report,
    "stores/report.md": stores_report,
}


# --- their tables ---


def kills() -> str:
    """What fifty kills of a writer left in each store."""
    rows = json.loads((RESULTS / "durability.json").read_text(encoding="utf-8"))
    columns = ("store", "kills", "inside", "kept whole", "acknowledged", "lost", "invented", "unopened")
    lines = [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    lines += [f"| {' | '.join(str(row[column.replace(' ', '_')]) for column in columns)} |" for row in rows]
    return "\n".join(lines)


def overhead() -> str:
    """What the loop and a statement cost besides the model, from their reports."""
    loop = json.loads((RESULTS / "loop_overhead.json").read_text())["rows"]
    lines = ["| nodes in the graph | the loop, ms a step | a write in the sandbox, ms |", "|---|---|---|"]
    lines += [f"| {row['nodes']:,} | {row['loop_ms']:.1f} | {row['statement_ms']:.1f} |" for row in loop]
    return "\n".join(lines)


def lost() -> str:
    """Where the loop's answers went, from the report of where_lost."""
    counts = Counter(json.loads((RESULTS / "where_lost_test.json").read_text()).values())
    return "Where the loop's answers went: " + ", ".join(f"{name} {counts[name]}" for name in STAGES) + "."


def recall(reports: list[Report]) -> str:
    """Recall@5 of some systems on the test split of the multi-hop sets, with intervals."""
    reports = multi_hop(reports)
    sizes = [f"{report.dataset.name} ({len(report.dataset.documents):,} passages)" for report in reports]
    lines = [
        "| recall@5, test split | " + " | ".join(sizes) + " |",
        "|---|" + "---:|" * len(reports),
    ]
    for system in SHOWN:
        cells = []
        for report in reports:
            if system not in report.scores:
                cells.append("")
                continue
            row = report.row(system, part="test")
            cells.append(
                f"{format_decimal(row.mean)} [{format_decimal(row.low)}, {format_decimal(row.high)}]"
            )
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gains(reports: list[Report]) -> str:
    """What the system expected best gains over the baseline, on the test split."""
    reports = multi_hop(reports)
    plan = reports[0].plan
    planned = holm([report.comparisons["test"][plan.expected].p for report in reports])
    head = (
        f"`{plan.expected}` minus `{plan.baseline}`",
        "the 40 test questions",
    )
    lines = [
        f"| {' | '.join(head)} | p, Holm over all systems | p, Holm over the three sets |",
        "|---|---:|---:|---:|",
    ]
    for report, p in zip(reports, planned, strict=True):
        shut = report.comparisons["test"][plan.expected]
        cells = (
            span(shut.difference),
            format_p_value(shut.p_holm),
            format_p_value(p),
        )
        lines.append(f"| {report.dataset.name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def claims(reports: list[Report]) -> str:
    """The claims of the KG-OS document on the three sets together, and where one set says something else."""
    rows = judge_claims(multi_hop(reports)).rows
    lines = [
        "| claim of KG-OS, 301 questions together | recall@5, difference | p (Holm) | verdict | sets apart |",
        "|---|---:|---:|---|---|",
    ]
    for row in (row for row in rows if row.dataset == "all"):
        same = [one for one in rows if one.claim == row.claim and one.dataset != "all"]
        apart = [f"{one.dataset} {one.verdict}" for one in same if one.verdict != row.verdict]
        lines.append(
            f"| {row.claim.text} | {span(row.difference)} | {format_p_value(row.p_holm)} | {row.verdict} | {'; '.join(apart)} |"
        )
    return "\n".join(lines)


def gates(reports: list[Report]) -> str:
    """What the gate let in, and what it gained over the best of its lanes."""
    decisions = json.loads((RESULTS / "recall_gate.json").read_text(encoding="utf-8"))
    counted = []
    for said, names in (
        ("on the three sets", [report.dataset.name for report in multi_hop(reports)]),
        ("on MuSiQue's steps", ["musique-steps"]),
    ):
        some = [one for name in names for one in decisions[name]]
        counted.append(f"{sum(len(one['admitted']) > 1 for one in some)} of {len(some)} times {said}")
    told = []
    for report in multi_hop(reports):
        gate, lane = (report.scores[system].per_query("recall@5") for system in ("gate", "pagerank, titles"))
        told.append(f"{report.dataset.name} {span(interval([gate[query] - lane[query] for query in gate]))}")
    return f"The gate let in two lanes or more {' and '.join(counted)}. Against its best lane there, `pagerank, titles`: {', '.join(told)}."


def speed(reports: list[Report]) -> str:
    """How long a query takes over the largest set."""
    (largest,) = (report for report in reports if report.dataset.name == "2wiki")
    slow = max(largest.runs, key=lambda run: run.latency.median)
    tails = sum(run.latency.p95 > 0.020 for run in largest.runs)
    (own,) = (run for run in largest.runs if run.system == largest.plan.expected)
    return (
        f"Over 6,119 passages a query takes {1000 * own.latency.median:.1f} ms with `{own.system}` and at most "
        f"{1000 * slow.latency.median:.1f} (`{slow.system}`): medians, the vector of the query apart. "
        f"With {tails} systems one query in twenty takes more than 20 ms."
    )


def multi_hop(reports: list[Report]) -> list[Report]:
    """The reports without that of the single-hop steps."""
    return [report for report in reports if report.dataset.name != "musique-steps"]


def span(gap: Estimate) -> str:
    """A mean and its interval."""
    return f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]"


def walks() -> str:
    """What delta edges give a walk over the stories of each set, all queries and test ones."""
    found = json.loads((RESULTS / "delta_recall.json").read_text(encoding="utf-8"))
    names = (
        "entry only",
        "traverse",
        "traverse + delta, calibrated, verified",
        "control: delta shuffled",
        "delta alone, calibrated, verified",
    )
    values: dict[tuple[str, str], list[float]] = {}
    for row in found["systems"]:
        if row["measure"] == "recall@10":  # the dev and the test queries
            values.setdefault((row["dataset"], row["system"]), []).extend(row["questions"])
    means = {key: sum(some) / len(some) for key, some in values.items()}
    lines = [
        f"| recall@10 | {' | '.join(names)} | gain by delta edges | on test ones |",
        "|---|" + "---:|" * (len(names) + 2),
    ]
    gains = {(row["dataset"], row["part"]): row for row in found["primary"]}
    for name in dict.fromkeys(row["dataset"] for row in found["primary"]):
        shown = [
            f"{format_signed(row['mean'])} [{format_signed(row['low'])}, {format_signed(row['high'])}]"
            for row in (gains[name, "all"], gains[name, "locked"])
        ]
        cells = [*(format_decimal(means[name, system]) for system in names), *shown]
        lines.append(f"| {name} ({gains[name, 'all']['n']}) | {' | '.join(cells)} |")
    return "\n".join(lines)


def views() -> str:
    """How long live views take in a notebook in a real browser: large graphs to open, a moved slider to
    change the ranking.
    """
    large = json.loads((RESULTS / "graph_view.json").read_text(encoding="utf-8"))["browser"]
    moved = json.loads((RESULTS / "explorer.json").read_text(encoding="utf-8"))
    sizes = {
        row["graph"]: row
        for row in json.loads((RESULTS / "graph_view.json").read_text(encoding="utf-8"))["python"]["rows"]
    }
    lines = ["| in a notebook, in a real browser | median | slowest |", "|---|---:|---:|"]
    for row in large["rows"]:
        size = f"{sizes[row['graph']]['nodes']:,} nodes and {sizes[row['graph']]['edges']:,} edges"
        what = f"open a graph of {size} ({row['graph']}; {row['drawn']:,} nodes and {row['lines']:,} lines drawn)"
        lines.append(f"| {what} | {row['median_s']:.2f} s | {max(row['seconds']):.2f} s |")
    kinds = {"single": "move a weight with a key", "drag": "drag a weight"}
    for row in moved["rows"]:
        if row["kind"] in kinds:
            times, what = row["updated_ms"], f"{kinds[row['kind']]}: the ranking of {row['k']} hits follows"
            lines.append(f"| {what} | {times['median']:.0f} ms | {times['most']:.0f} ms |")
    goal = moved["about"]["goal_ms"]
    kept = [row for row in moved["rows"] if row["updated_ms"]["median"] < goal]
    met = "; ".join(f"{kinds[row['kind']]}, {row['k']} hits" for row in kept)
    way = "The browser ranks by itself; Python hears of it when the slider rests"
    lines += [
        "",
        f"The goals are 5 s to open and {goal} ms to follow. Under {goal} ms in the median: {met or 'none'}. {way}.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write all of them."""
    for name, page in PAGES.items():
        path = RESULTS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(page() + "\n", encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
