"""The standard sets: the tables follow from the results, and say whose figure is whose."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.standard_sets.standard import (
    NO_LINKS,
    RIVAL,
    STANDARD_PLAN,
    STANDARD_SYSTEMS,
    TRAIL,
    standard_tables,
)
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.evaluation.dataset import query_splits
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import derive_reports, report
from kgot_lab.evaluation.results import Plan, load_results
from kgot_lab.evaluation.significance import compare, interval, sign_flip_p
from kgot_lab.evaluation.tables import format_decimal, format_signed

FOLDER = Path(__file__).parents[2] / "benchmarks" / "results" / "standard_sets"


def results(name):
    return [load_results(path) for path in sorted((FOLDER / name).glob("*.jsonl.gz"))]


def test_the_plan_was_written_down_and_every_system_ran_on_every_set():
    assert Plan.load(FOLDER / "plan.json") == STANDARD_PLAN
    for inner in (path for path in FOLDER.iterdir() if path.is_dir()):
        assert {run.system for run in results(inner.name)} - {RIVAL} == set(STANDARD_SYSTEMS)


@pytest.mark.parametrize("name", ["2wiki-1000", "musique-498"])
def test_the_summary_says_what_the_results_give(name):
    dataset = load_dataset(name)
    told = (FOLDER / "summary.md").read_text(encoding="utf-8")
    test_ids = query_splits(dataset)["test"]
    for run in results(name):
        mean = score(run, dataset.qrels, ["recall@5"]).only(test_ids).mean("recall@5")
        if run.system != RIVAL:
            (line,) = (line for line in told.splitlines() if line.startswith(f"| {name} | {len(test_ids)} |"))
            assert f"{mean:.3f}".removeprefix("0") in line


def test_the_page_of_results_says_what_the_results_give():
    whole = (FOLDER.parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
    page = whole.partition("## 2. ")[2].partition("\n## ")[0]
    for name in ("2wiki-1000", "musique-498", "2wiki-1000-untitled", "musique-498-untitled"):
        dataset = load_dataset(name)
        for run in results(name):
            if run.system == TRAIL:
                mean = score(run, dataset.qrels, ["recall@5"]).only(dataset.test_ids).mean("recall@5")
                assert format_decimal(mean) in page, (name, run.system)


def test_dev_questions_crossed_are_all_that_are_held_out_nowhere_and_the_page_tells_the_difference_on_both():
    dataset = load_dataset("2wiki-1000")
    crossed = json.loads((FOLDER / "crossed.json").read_text(encoding="utf-8"))["2wiki-1000"]
    test_ids = dataset.test_ids | load_dataset("2wiki").test_ids
    assert set(crossed) == {query.id for query in dataset.queries} - test_ids
    runs = {
        run.system: score(run, dataset.qrels, ["recall@5"]).per_query("recall@5")
        for run in results("2wiki-1000")
    }
    own = crossed | {query: runs[TRAIL][query] for query in dataset.test_ids}
    some = [query.id for query in dataset.queries if query.id in own]
    gap = interval(
        [own[query] - runs[RIVAL][query] for query in some],
        [dataset.groups.get(query, query) for query in some],
    )
    told = f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}] on {len(own)}"
    assert told in (FOLDER.parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


def test_what_links_gain_is_above_the_control_that_looks_at_no_names():
    dataset = load_dataset("musique-498")
    runs = {run.system: run for run in results("musique-498")}
    test_ids = query_splits(dataset)["test"]
    scores = {
        name: score(runs[name], dataset.qrels, ["recall@5"]).only(test_ids) for name in (TRAIL, NO_LINKS)
    }
    row = compare(scores, NO_LINKS, groups=dataset.groups)[TRAIL]
    assert row.difference.low > 0 and row.p < 0.05


@pytest.mark.extended
def test_published_figures_are_marked_as_published_and_ours_as_ours(tmp_path):
    # intervals are not what is looked at here
    replace(STANDARD_PLAN, rounds=200).save(tmp_path / "plan.json")
    for name in ("musique-498", "2wiki-1000"):
        (tmp_path / name).symlink_to(FOLDER / name)
    beside = next(
        grid
        for grid in standard_tables(derive_reports(tmp_path, load_dataset))
        if "published figures" in grid.title
    )
    whose = {row[1].text.partition(" (")[2].rstrip(")") for row in beside.rows}
    assert whose == {"published", "ours", "their run, our scoring"}


@pytest.mark.extended
def test_queries_of_a_group_are_drawn_and_flipped_together_in_a_report():
    dataset = load_dataset("musique-498")
    made = report(
        [run for run in results("musique-498") if run.system in ("convex", TRAIL)], dataset, STANDARD_PLAN
    )
    row = made.comparisons["test"][TRAIL]
    ids = [query.id for query in dataset.queries if query.id in dataset.test_ids]
    own, theirs = (
        [made.scores[system].per_query("recall@5")[id] for id in ids] for system in (TRAIL, "convex")
    )
    gaps, groups = np.subtract(own, theirs), [dataset.groups[id] for id in ids]
    assert row.difference == interval(gaps, groups) and row.p == sign_flip_p(gaps, groups)
    assert row.difference.low < row.difference.mean < row.difference.high
