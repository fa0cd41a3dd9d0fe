"""Other embedders on the standard sets: the tables follow from the results, each of which names the embedder
it was made with.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.standard_sets.other_embedders import (
    embedder_tables,
    gap_between,
)
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import derive_reports
from kgot_lab.evaluation.results import EMBEDDER_HASH, load_results
from kgot_lab.evaluation.significance import interval, sign_flip_p
from kgot_lab.evaluation.tables import format_decimal, format_p_value, format_signed

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
FOLDER = RESULTS / "embedders"
OURS, OTHER = FOLDER / "all-MiniLM-L6-v2-int8", FOLDER / "all-mpnet-base-v2"


@pytest.fixture(scope="module")
def both():
    return [
        next(
            report for report in derive_reports(folder, load_dataset) if report.dataset.name == "musique-498"
        )
        for folder in (OURS, OTHER)
    ]


def test_the_summary_says_what_the_results_give():
    derived = (
        "\n\n".join(
            ["# Other embedders on the standard sets", *(grid.markdown for grid in embedder_tables(FOLDER))]
        )
        + "\n"
    )
    assert derived == (FOLDER / "summary.md").read_text(encoding="utf-8"), (
        "run python -m benchmarks.standard_sets.embedders --table"
    )


@pytest.mark.parametrize("folder", [OURS, OTHER], ids=lambda folder: folder.name)
def test_every_result_and_all_weights_name_the_embedder_of_the_folder_by_one_hash(folder):
    runs = [load_results(path) for path in sorted(folder.glob("*/*.jsonl.gz"))]
    named = {run.about[EMBEDDER_HASH] for run in runs}
    named |= {
        json.loads(path.read_text(encoding="utf-8"))["embedder"] for path in folder.glob("weights*.json")
    }
    assert len(named) == 1 and re.fullmatch(rf"{folder.name} [0-9a-f]{{64}}", named.pop())


def test_the_page_says_what_the_results_give(both):
    page = (RESULTS / "standard_sets" / "notes.md").read_text(encoding="utf-8")
    told = page.partition("Does a larger embedder help?")[2].partition("\n")[0]
    for system in set(both[1].scores) - {"embeddings", "follow, sentences"}:
        gap, p = gap_between(both[1], both[0], system, "test")
        assert f"{format_signed(gap.mean)} [{format_signed(gap.low)}, {format_signed(gap.high)}]" in told
        if system == "convex":
            assert f"p {format_p_value(p)}" in told
        else:
            reached = (format_decimal(report.row(system, part="test").mean) for report in both)
            assert all(share in told for share in reached)


@pytest.mark.extended
def test_a_gain_is_tested_in_pairs_and_by_groups(both):
    ours, other = both
    ids = [query.id for query in ours.dataset.queries if query.id in ours.dataset.test_ids]
    own, theirs = (
        [report.scores["convex"].per_query("recall@5")[id] for id in ids] for report in (other, ours)
    )
    gaps, groups = np.subtract(own, theirs), [ours.dataset.groups[id] for id in ids]
    found = gap_between(other, ours, "convex", "test")
    assert found == (interval(gaps, groups), sign_flip_p(gaps, groups))


@pytest.mark.extended
def test_the_bundled_embedder_reaches_here_what_it_reaches_on_the_standard_sets(both):
    for run in both[0].runs:
        path = RESULTS / "standard_sets" / "musique-498" / f"{run.system.replace(', ', '-')}.jsonl.gz"
        if not run.system.startswith("trail, learnt anew"):
            before = score(load_results(path), both[0].dataset.qrels, ["recall@5"]).per_query("recall@5")
            assert before == both[0].scores[run.system].per_query("recall@5")


@pytest.mark.extended
def test_the_questions_counted_as_test_are_those_of_the_data(both):
    test_ids = load_dataset("musique-498").test_ids
    for report in both:
        assert report.row("convex", part="test").n == len(test_ids) == 338
        assert report.row("convex", part="dev").n == 160
    assert f"{len(test_ids)} test and 160 dev" in (FOLDER / "summary.md").read_text(encoding="utf-8")


def test_without_the_bundled_one_there_is_nothing_to_compare_with(tmp_path):
    with pytest.raises(BadInput, match="no results of the bundled embedder"):
        embedder_tables(tmp_path)
