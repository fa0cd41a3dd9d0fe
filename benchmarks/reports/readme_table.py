"""Write the tables of README.md, benchmarks/results/README.md and notebooks/README.md, and the reports of the topics: no
number there is typed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from kgot_lab.benchmark.comparison.plan import ALL_SETS
from kgot_lab.benchmark.comparison.results import ComparisonResults
from kgot_lab.benchmark.questions.sets import read_split
from kgot_lab.benchmark.recall.bench import family_table
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.benchmark.recall.filling import results_path
from kgot_lab.benchmark.recall.systems import BASELINE
from kgot_lab.evaluation.measures import Scores, score
from kgot_lab.evaluation.reports import Report, derive_reports
from kgot_lab.evaluation.results import load_results
from kgot_lab.evaluation.significance import Estimate, compare, interval
from kgot_lab.evaluation.tables import format_decimal, format_signed

ROOT = Path(__file__).parents[2]
PAGES = tuple(ROOT / name for name in ("README.md", "benchmarks/results/README.md", "notebooks/README.md"))
ABLATIONS = ROOT / "benchmarks" / "results" / "graph_pays_ablations"
FAMILIES = ROOT / "benchmarks" / "results" / "families"
STRUCTURE = ROOT / "benchmarks" / "results" / "structure"
HEAD = (
    "does it help to …",
    "measured on",
    "without",
    "with",
    "difference [95 %]",
    "on the test split",
    "says",
)


@dataclass(frozen=True)
class Result:
    """One comparison: what is asked, on which questions, the two means, and their paired difference, also on
    test questions alone.
    """

    asked: str
    data: str
    without: float
    with_it: float
    gain: Estimate
    test: Estimate | None = None
    so_far: bool = False  # some of the planned questions are not answered yet, and who looks before the end may see what chance shows
    corrected: float = 0.0  # its p after Holm's correction, where it is one of many comparisons of a plan
    refuted: str = ""  # what was found on questions that nothing was fitted on

    @property
    def said(self) -> str:
        """What the interval of all questions says, and p where it was corrected."""
        if self.refuted:
            return f"**no**: {self.refuted}"
        says = "yes" if self.gain.low > 0 else "no" if self.gain.high < 0 else "not shown"
        says = says if self.corrected < 0.05 else "not shown"
        return f"{says}, so far" if self.so_far else f"**{says}**"

    def __str__(self) -> str:
        test = "" if self.test is None else span(self.test)
        cells = (
            self.asked,
            self.data,
            format_decimal(self.without),
            format_decimal(self.with_it),
            span(self.gain),
            test,
            self.said,
        )
        return f"| {' | '.join(cells)} |"


def span(gap: Estimate) -> str:
    """A mean and its interval."""
    return f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]"


def answers(asked: str, system: str, rival: str, findings: ComparisonResults | None = None) -> Result:
    """A system of the comparison against another, on the questions of three sets that it is to answer, as far
    as both have.
    """
    findings = findings or pays()
    ours, theirs = findings.results_on(system, ALL_SETS), findings.results_on(rival, ALL_SETS)
    both = [key for key in ours if key in theirs]
    groups = [f"{key[0]} {ours[key].group or key[1]}" for key in both]
    gain = interval([ours[key].f1 - theirs[key].f1 for key in both], groups, **findings.test_settings)
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
def deciding() -> ComparisonResults:
    """The per-query results of the experiment with equal decomposition, code and calls."""
    return ComparisonResults.load(ROOT / "benchmarks" / "results" / "deciding" / "open")


@cache
def pays() -> ComparisonResults:
    """The results of the comparison of systems with and without a graph."""
    return ComparisonResults.load(ROOT / "benchmarks" / "results" / "graph_pays")


def found(asked: str, name: str, told: str, other: str = BASELINE) -> Result:
    """The trail against another system, on the test questions of a standard set; p is corrected over the
    systems that ran there.
    """
    scores, groups = standard_scores(name)
    row = compare(scores, other, groups=groups)[TRAIL]
    data = f"{told}, {row.own.n} test questions: recall@5"
    return Result(
        asked, data, scores[other].mean("recall@5"), row.own.mean, row.difference, corrected=row.p_holm
    )


@cache
def standard_scores(name: str) -> tuple[dict[str, Scores], Mapping[str, str]]:
    """Score every system on the test split of a standard set, and return the groups of its questions."""
    folder, dataset = ROOT / "benchmarks" / "results" / "standard_sets", load_dataset(name)
    runs = {system: load_results(results_path(folder, dataset, system)) for system in STANDARD_SYSTEMS}
    scores = {
        system: score(run, dataset.qrels, ["recall@5"]).only(dataset.test_ids) for system, run in runs.items()
    }
    return scores, dataset.groups


@cache
def structure_sets() -> list[AnswersOfSystems]:
    """The answers of all systems on every set of the structure benchmark."""
    return kept(STRUCTURE)


def searched(asked: str, system: str, rival: str) -> Result:
    """Two systems on the test queries of the curated graph; p is corrected over all claims that are tested
    there.
    """
    report = half_report(ROOT / "benchmarks" / "results" / "kgos", "test")
    (row,) = (row for row in kgos_verdicts(report) if (row.claim.better, row.claim.worse) == (system, rival))
    data = f"curated graph, {len(report.dataset.queries)} test queries: recall@5"
    return Result(
        asked, data, report.row(rival).mean, report.row(system).mean, row.difference, corrected=row.p_holm
    )


def likened(asked: str, name: str, told: str) -> Result:
    """The alignment of two texts against the best control without structure, on the test split of one set."""
    some, said = next(pair for pair in structure_sets() if pair[0].name == name)
    ours, rival = f"{FITTED} surface + aligned", best_control(some, said, fitted=True)
    found = gaps(some, graded(said[ours], some), graded(said[rival], some))
    means = (graded(said[system], some).only(some.test_ids).mean("accuracy") for system in (rival, ours))
    return Result(
        asked,
        f"{told}, {len(some.test_ids)} test questions: accuracy",
        *means,
        interval(found["test"]),
        refuted="[not on pairs that nothing was fitted on](structure/story_pairs.md)",
    )


def results() -> str:
    """Sixteen comparisons, those that failed among them."""
    lines = [
        answers("answer along paths, against no documents at all", "paths", "closed-book"),
        answers("… against five passages in the prompt (RAG)", "paths", "rag"),
        answers("… against RAG with the same short prompt", "paths", "rag-few"),
        answers("… against that with entity-linked passages (`follow`)", "paths", "follow-few"),
        answers(
            "… against one read of the best sentences, as many tokens",
            "paths",
            best_sentences.SYSTEM,
            best_sentences.beside(pays()),
        ),
        answers("answer from a graph that the model writes (`local`), against RAG", "local", "rag"),
        found(
            "find the passages, multi-hop (`trail`), against hybrid retrieval",
            "2wiki-1000",
            "2WikiMultiHopQA",
        ),
        found("the same, where passages have no titles", "2wiki-1000-untitled", "2WikiMultiHopQA"),
        found("find the passages of longer chains", "musique-498", "MuSiQue"),
        found("the same, where passages have no titles", "musique-498-untitled", "MuSiQue"),
        found(
            "… against the same scorer learned without links (a control)", "musique-498", "MuSiQue", NO_LINKS
        ),
        found("find the passage of a single question", "musique-498-steps", "MuSiQue's steps"),
        searched(
            "find nodes of a graph, by edges too, against lexical and dense retrieval",
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


_PLAIN = str.maketrans("", "", "\\")  # brackets of an interval need no escape


@cache
def family_reports() -> list[Report]:
    """The reports of the five retrieval families, derived from their run files."""
    return derive_reports(FAMILIES, load_dataset)


def families() -> str:
    """The five retrieval families on the test splits, as README shows them: without the columns of controls."""
    grid = family_table(family_reports())
    chosen = [row for row, name in enumerate(grid.columns) if name not in ("documents", "shuffled edges add")]
    rows = tuple(tuple(row[column] for column in chosen) for row in grid.rows)
    return replace(
        grid, title="", columns=tuple(grid.columns[column] for column in chosen), rows=rows
    ).markdown.translate(_PLAIN)


def all_families() -> str:
    """The same with every column, and once more at recall@10."""
    return "\n\n".join(
        family_table(family_reports(), measure).markdown for measure in ("recall@5", "recall@10")
    )


def verdict() -> str:
    """Whether the graph helps to answer once decomposition and code are equal: the plan in results/deciding."""
    findings = deciding()
    gaps = {pair.other: pair for pair in findings.pairs if pair.aimed and pair.on == ALL_SETS}
    scores = {row.system: row.f1.mean for row in findings.system_scores if row.on == ALL_SETS}
    control, no_links, shuffled = (gaps[name] for name in ("rag-split", "paths-no-links", "paths-shuffled"))
    helps = all(gap.difference.mean > 0 and gap.p_holm < 0.05 for gap in (control, no_links))
    says = "the graph with its search helps" if helps else "**no help of the graph is shown**"
    new, count = unseen_gap(findings, "rag-split")
    planned = {name: told["questions"] for name, told in findings.plan["sets"].items()}
    on = {
        pair.on: pair.difference.mean
        for pair in findings.pairs
        if pair.other == "rag-split" and pair.system == "paths"
    }
    mixture = sum(count * on[name] for name, count in planned.items()) / sum(planned.values())
    return (
        f"With the same decomposition, code and limits on calls {says}: "
        f"on {control.difference.n} open questions of three collections, a 1.5B model reading short graph paths, then the best sentences, "
        f"reaches F1 {format_decimal(scores['paths'])}, without a graph "
        f"{format_decimal(scores['rag-split'])}: {span(control.difference)} ({format_signed(mixture)} in the planned "
        f"mixture of sets); on the {count} never answered before, {new}. "
        f"Without links, even in the search, it loses {format_decimal(no_links.difference.mean)}, "
        f"with shuffled ones {format_decimal(shuffled.difference.mean)} "
        f"([results and limits](docs/results.md))."
    )


def unseen_gap(findings: ComparisonResults, other: str) -> tuple[str, int]:
    """Return the difference of `paths` to another system on the sets never answered before, and how many questions."""
    gaps, groups = [], []
    for name in (name for name in findings.plan["sets"] if name.endswith("-unseen")):
        ours, theirs = (findings.results_on(system, name) for system in ("paths", other))
        for key in (key for key in ours if key in theirs):
            gaps.append(ours[key].f1 - theirs[key].f1)
            groups.append(f"{name} {ours[key].group or ours[key].id}")
    return span(interval(gaps, groups, **findings.test_settings)), len(gaps)


def match_gap(other: str, sets: str) -> str:
    """Return the difference in exact match of `paths` to another system on the sets whose names begin so."""
    findings, gaps, groups = deciding(), [], []
    for name in (name for name in findings.plan["sets"] if name.startswith(sets)):
        ours, theirs = (findings.results_on(system, name) for system in ("paths", other))
        for key in (key for key in ours if key in theirs):
            gaps.append(ours[key].em - theirs[key].em)
            groups.append(f"{name} {ours[key].group or ours[key].id}")
    return span(interval(gaps, groups, **findings.test_settings))


def answering() -> str:
    """The verdict on the graph, a sentence on answers and one on passages."""
    one, best = answers("", "paths", "rag"), answers("", "paths", "follow-few")
    two, simple = (
        found("", "2wiki-1000", "2WikiMultiHopQA", other) for other in (BASELINE, "follow, sentences")
    )
    return (
        f"{verdict()}\nAnswers: on {one.data.partition(':')[0]} (174 also in the 290), paths reach F1 "
        f"{format_decimal(one.with_it)}, plain RAG {format_decimal(one.without)}: {span(one.gain)}; RAG over `follow` "
        f"{format_decimal(best.without)}: {span(best.gain)}.\nPassages: the learned multi-hop retriever (`trail`) "
        f"reaches recall@5 {format_decimal(two.with_it)} on {two.data.partition(':')[0]}, hand-weighted `follow` "
        f"{format_decimal(simple.without)}, hybrid retrieval {format_decimal(two.without)}."
    )


def doubts() -> str:
    """What a sceptic would say, with its numbers."""
    found = ComparisonResults.load(ABLATIONS)
    linked, unlinked = (found.results_on(system, ALL_SETS) for system in ("paths", "no-links"))
    both = [key for key in linked if key in unlinked]
    groups = [f"{key[0]} {linked[key].group or key[1]}" for key in both]
    links = interval([linked[key].f1 - unlinked[key].f1 for key in both], groups, **found.test_settings)
    gaps = {pair.on: pair for pair in deciding().pairs if (pair.system, pair.other) == ("paths", "rag-split")}
    chains = span(gaps["musique-498"].difference)
    exact = match_gap("rag-split", "musique")
    told = likened("", "storyanalogy-mc", "StoryAnalogy")
    story = f"{format_decimal(told.without)} to {format_decimal(told.with_it)}"
    (two, seen_two, of_two), (chain, seen_chain, of_chain) = map(untouched, ("2wiki-1000", "musique-498"))
    return "\n".join(
        [
            f"- Whether links help beyond finding passages is open: same passages {span(links)}, {len(both)} "
            f"questions. On MuSiQue no gain is shown: F1 {chains}, exact match on both its parts {exact}.",
            f"- {seen_two} of {of_two} (2Wiki) and {seen_chain} of {of_chain} (MuSiQue) test questions had been answered "
            f"before the split. Recall@5 on the rest: {two}, {chain}.",
            f"- Weights fitted on StoryAnalogy (accuracy {story}) did not transfer.",
        ]
    )


def untouched(name: str) -> tuple[str, int, int]:
    """Recall@5 of the trail on test questions that were not answered before the split, and how many were."""
    folder, dataset = ROOT / "benchmarks" / "results" / "standard_sets", load_dataset(name)
    asked = read_split(name, "held_out")["held_out"]
    seen = dataset.test_ids & set(asked)
    scores = score(load_results(results_path(folder, dataset, TRAIL)), dataset.qrels, ["recall@5"])
    return (
        format_decimal(scores.only(dataset.test_ids - seen).mean("recall@5")),
        len(seen),
        len(dataset.test_ids),
    )


def notebooks() -> str:
    """The notebooks in their order, each with the question that is its title."""
    lines = ["| notebook | question |", "|---|---|"]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        lines.append(f"| [{path.stem}]({path.name}) | {first.splitlines()[0].lstrip('# ').strip()} |")
    return "\n".join(lines)


def written(text: str, name: str, part: str) -> str:
    """A text with a part put between the marks of its name."""
    return re.sub(
        rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)",
        lambda match: f"{match[1]}{part}\n{match[2]}",
        text,
        flags=re.DOTALL,
    )


PARTS = {
    "families": families,
    "all families": all_families,
    "answering": answering,
    "doubts": doubts,
    "results": results,
    "notebooks": notebooks,
}


def main() -> None:
    """Replace what stands between the marks of each page, and write the reports."""
    topic_reports.main()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, part in PARTS.items():
            text = written(text, name, part()) if f"<!-- {name} -->" in text else text
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
