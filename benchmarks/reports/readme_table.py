"""Write the table of results and the table of notebooks of the README, and the reports of the topics: no
number there is typed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.graph_pays import best_sentences
from benchmarks.kgos.benchmark import half_report
from benchmarks.kgos.results import kgos_verdicts
from benchmarks.kgos.systems import THREE_WEIGHTS
from benchmarks.reports import topic_reports
from benchmarks.standard_sets.standard import NO_LINKS, STANDARD_SYSTEMS, TRAIL
from benchmarks.structure.answered import graded
from benchmarks.structure.tables import FITTED, AnswersOfSystems, best_control, gaps, kept
from kgot_lab.benchmark.comparison.aims import ALL_SETS
from kgot_lab.benchmark.comparison.results import Findings
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import receipt
from kgot_lab.benchmark.recall.systems import BASELINE
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.results import load_receipt
from kgot_lab.evaluation.significance import Estimate, compare, grouped_interval, interval
from kgot_lab.evaluation.tables import decimal, signed

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
STRUCTURE = ROOT / "benchmarks" / "results" / "structure"
HEAD = (
    "does it help to …",
    "measured on",
    "without",
    "with",
    "difference [95 %]",
    "on locked questions",
    "says",
)


@dataclass(frozen=True)
class Result:
    """One comparison: what is asked, on which questions, the two means, and their paired difference, also on
    locked questions alone.
    """

    asked: str
    data: str
    without: float
    with_it: float
    gain: Estimate
    locked: Estimate | None = None
    so_far: bool = False  # some of the planned questions are not answered yet, and who looks before the end may see what chance shows
    corrected: float = 0.0  # its p after Holm's correction, where it is one of many comparisons of a plan

    @property
    def said(self) -> str:
        """What the interval of all questions says, and p where it was corrected."""
        says = "yes" if self.gain.low > 0 else "no" if self.gain.high < 0 else "not shown"
        says = says if self.corrected < 0.05 else "not shown"
        return f"{says}, so far" if self.so_far else f"**{says}**"

    def __str__(self) -> str:
        locked = "" if self.locked is None else span(self.locked)
        cells = (
            self.asked,
            self.data,
            decimal(self.without),
            decimal(self.with_it),
            span(self.gain),
            locked,
            self.said,
        )
        return f"| {' | '.join(cells)} |"


def span(gap: Estimate) -> str:
    """A mean and its interval."""
    return f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]"


def answers(asked: str, system: str, rival: str, findings: Findings | None = None) -> Result:
    """A system of the comparison against another, on the questions of three sets that it is to answer, as far
    as both have.
    """
    findings = findings or pays()
    ours, theirs = findings.on(system, ALL_SETS), findings.on(rival, ALL_SETS)
    both = [key for key in ours if key in theirs]
    groups = [f"{key[0]} {ours[key].group or key[1]}" for key in both]
    gain = grouped_interval([ours[key].f1 - theirs[key].f1 for key in both], groups, **findings.chance)
    most = findings.plan["systems"][system]["questions"]
    planned = sum(
        min(each["questions"], most or each["questions"]) for each in findings.plan["sets"].values()
    )
    told = f"{len(both)} of {planned}" if len(both) < planned else str(planned)
    means = (mean([some[key].f1 for key in both]) for some in (theirs, ours))
    paired = [
        pair.p_holm
        for pair in findings.pairs
        if (pair.system, pair.other, pair.on) == (system, rival, ALL_SETS)
    ]
    return Result(
        asked,
        f"three sets, {told} questions: F1",
        *means,
        gain,
        so_far=len(both) < planned,
        corrected=max(paired, default=0.0),
    )


@cache
def pays() -> Findings:
    """The receipts of the comparison of systems with and without a graph."""
    return Findings.of(ROOT / "benchmarks" / "results" / "graph_pays")


def found(asked: str, name: str, told: str, other: str = BASELINE) -> Result:
    """The trail against another system, on the locked questions of a standard set; p is corrected over the
    systems that ran there.
    """
    folder, dataset = ROOT / "benchmarks" / "results" / "standard_sets", load_dataset(name)
    runs = {system: load_receipt(receipt(folder, dataset, system)) for system in STANDARD_SYSTEMS}
    scores = {
        system: score(run, dataset.qrels, ["recall@5"]).only(dataset.locked) for system, run in runs.items()
    }
    row = compare(scores, other, groups=dataset.groups)[TRAIL]
    data = f"{told}, {row.own.n} locked questions: recall@5"
    return Result(
        asked, data, scores[other].mean("recall@5"), row.own.mean, row.difference, corrected=row.p_holm
    )


@cache
def structure_sets() -> list[AnswersOfSystems]:
    """The answers of all systems on every set of the structure benchmark."""
    return kept(STRUCTURE)


def searched(asked: str, system: str, rival: str) -> Result:
    """Two systems on the locked queries of the curated graph; p is corrected over all claims that are tested
    there.
    """
    report = half_report(ROOT / "benchmarks" / "results" / "kgos", "locked")
    (row,) = (row for row in kgos_verdicts(report) if (row.claim.better, row.claim.worse) == (system, rival))
    data = f"curated graph, {len(report.dataset.queries)} locked queries: recall@5"
    return Result(
        asked, data, report.row(rival).mean, report.row(system).mean, row.difference, corrected=row.p_holm
    )


def likened(asked: str, name: str, told: str) -> Result:
    """The alignment of two texts against the best control without structure, on one set."""
    some, said = next(pair for pair in structure_sets() if pair[0].name == name)
    ours, rival = f"{FITTED} surface + aligned", best_control(some, said, fitted=True)
    found = gaps(some, graded(said[ours], some), graded(said[rival], some))
    means = (graded(said[system], some).mean("accuracy") for system in (rival, ours))
    return Result(
        asked,
        f"{told}, {len(some.questions)} questions: accuracy",
        *means,
        interval(found["all"]),
        interval(found["locked"]),
    )


def results() -> str:
    """Sixteen comparisons, those that failed among them."""
    lines = [
        answers("answer along paths, against no documents at all", "paths", "closed-book"),
        answers("… against five passages in the prompt (RAG)", "paths", "rag"),
        answers("… against RAG with the same short prompt", "paths", "rag-few"),
        answers("… against that with passages found by names (`follow`)", "paths", "follow-few"),
        answers(
            "… against one read of the best sentences, as many tokens",
            "paths",
            best_sentences.SYSTEM,
            best_sentences.beside(pays()),
        ),
        answers("answer from a graph that the model writes (`local`), against RAG", "local", "rag"),
        found(
            "find the passages, by names (`trail`), against words and meaning",
            "2wiki-1000",
            "2WikiMultiHopQA",
        ),
        found("the same, where passages have no titles", "2wiki-1000-untitled", "2WikiMultiHopQA"),
        found("find the passages of longer chains", "musique-498", "MuSiQue"),
        found("the same, where passages have no titles", "musique-498-untitled", "MuSiQue"),
        found(
            "… against the same network learnt without names (a control)", "musique-498", "MuSiQue", NO_LINKS
        ),
        found("find the passage of a single question", "musique-498-steps", "MuSiQue's steps"),
        searched(
            "find nodes of a graph, by edges too, not by words and meaning alone",
            THREE_WEIGHTS,
            "two, weighted",
        ),
        searched("the same, against shuffled edges (a control)", THREE_WEIGHTS, "control: edges shuffled"),
        likened("tell which short story is analogous, by its events", "storyanalogy-mc", "StoryAnalogy"),
        likened("the same with stories of thirty sentences", "analobench T1 S30", "AnaloBench"),
    ]
    return "\n".join([f"| {' | '.join(HEAD)} |", "|---|---|---:|---:|---|---|---|", *map(str, lines)])


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def notebooks() -> str:
    """The notebooks in their order, each with the question that is its title."""
    lines = ["| notebook | question |", "|---|---|"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        lines.append(
            f"| [{path.stem}](notebooks/{path.name}) | {first.splitlines()[0].lstrip('# ').strip()} |"
        )
    return "\n".join(lines)


def written(text: str, name: str, part: str) -> str:
    """A text with a part put between the marks of its name."""
    return re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)",
        lambda match: f"{match[1]}{part}\n{match[2]}",
        text,
        flags=re.DOTALL,
    )


def main() -> None:
    """Replace what stands between the marks, and write the reports."""
    topic_reports.main()
    readme = written(README.read_text(encoding="utf-8"), "results", results())
    README.write_text(written(readme, "notebooks", notebooks()), encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
