"""Write the results table of the README from the receipts in benchmarks/results: no number there is typed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

from question_answering import receipt, table
from where_lost import STAGES

from kgot_lab.evaluation.claims import verdicts
from kgot_lab.evaluation.reports import Report, derive
from kgot_lab.evaluation.tables import decimal, signed

RECALL = Path(__file__).parent / "results" / "recall"
WALKS = ("pagerank, triples", "pagerank, titles", "follow, sentences")
SHOWN = ("bm25", "embeddings", "convex", "rrf", "rrf of six", "kg-os hybrid", "gate", *WALKS)
README = Path(__file__).parent.parent / "README.md"
PART = re.compile(r"(<!-- results -->\n).*?(<!-- end results -->)", re.DOTALL)
RECALL_PART = re.compile(r"(<!-- recall -->\n).*?(<!-- end recall -->)", re.DOTALL)


def overhead() -> str:
    """What the loop and a statement cost besides the model, from their reports."""
    loop = json.loads((Path(__file__).parent / "results" / "loop_overhead.json").read_text())["rows"]
    lines = ["| nodes in the graph | the loop, ms a step | a write in the sandbox, ms |", "|---|---|---|"]
    lines += [f"| {row['nodes']:,} | {row['loop_ms']:.1f} | {row['statement_ms']:.1f} |" for row in loop]
    return "\n".join(lines)


def lost() -> str:
    """Where the loop's answers went, from the report of where_lost."""
    counts = Counter(json.loads((Path(__file__).parent / "results" / "where_lost_test.json").read_text()).values())
    return "Where the loop's answers went: " + ", ".join(f"{name} {counts[name]}" for name in STAGES) + "."


def recall(reports: list[Report]) -> str:
    """Recall@5 of some systems on the multi-hop sets: all questions with their interval, and the locked ones."""
    reports = [report for report in reports if report.dataset.name != "musique-steps"]
    sizes = [f"{report.dataset.name} ({len(report.dataset.documents):,} passages)" for report in reports]
    lines = ["| recall@5 | " + " | ".join(f"{size} | locked" for size in sizes) + " |", "|---|" + "---:|" * 2 * len(reports)]
    for system in SHOWN:
        cells = []
        for report in reports:
            if system not in report.scores:
                cells += ["", ""]
                continue
            row, shut = report.row(system), report.row(system, part="locked")
            cells += [f"{decimal(row.mean)} [{decimal(row.low)}, {decimal(row.high)}]", decimal(shut.mean)]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gains(reports: list[Report]) -> str:
    """What the system expected best gains over the baseline, on all questions and on the locked ones."""
    said = []
    for report in reports:
        if report.dataset.name == "musique-steps":
            continue
        whole, shut = (report.comparisons[part][report.plan.expected] for part in ("all", "locked"))
        gap = whole.difference
        p = "below .001" if whole.p_holm < 0.001 else decimal(whole.p_holm)
        locked = f"on the {shut.own.n} locked ones {signed(shut.difference.mean)}"
        said.append(f"{report.dataset.name} {signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}], p (Holm) {p}, {locked}")
    plan = reports[0].plan
    return f"`{plan.expected}` against `{plan.baseline}`, all questions: " + "; ".join(said) + "."


def claims(reports: list[Report]) -> str:
    """The claims of the KG-OS document on the three sets together."""
    rows = [row for row in verdicts([report for report in reports if report.dataset.name != "musique-steps"]).rows if row.dataset == "all"]
    lines = ["| claim of KG-OS, 301 questions together | recall@5, difference | verdict |", "|---|---:|---|"]
    for row in rows:
        gap = row.difference
        lines.append(f"| {row.claim.text} | {signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}] | {row.said} |")
    return "\n".join(lines)


def main() -> None:
    """Replace what stands between the marks."""
    head = json.loads(receipt("test", "rag").read_text().splitlines()[0])
    said = f"Model {head['model']}, {head['date']}, {head['machine']}. The 30 questions were drawn by seed before any prompt was written."
    text = f"{table('test')}\n\n{lost()}\n\n{said}\n\n{overhead()}\n"
    readme = README.read_text(encoding="utf-8")
    reports = derive(RECALL)
    found = f"{recall(reports)}\n\n{gains(reports)}\n\n{claims(reports)}\n"
    readme = PART.sub(lambda match: match[1] + text + match[2], readme)
    README.write_text(RECALL_PART.sub(lambda match: match[1] + found + match[2], readme), encoding="utf-8")


if __name__ == "__main__":
    main()
