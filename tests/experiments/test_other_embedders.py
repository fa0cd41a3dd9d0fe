"""Other embedders on the standard sets: the tables follow from the receipts, each of which names the embedder
it was made with.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.searching import Letters

from benchmarks.standard_sets.fitting import FIRST_WEIGHTS
from benchmarks.standard_sets.other_embedders import (
    ANEW,
    embedder_of,
    embedder_tables,
    gap_between,
    learn_anew,
    measure_embedder,
)
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.embedding.minilm import MiniLM
from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.evaluation.dataset import Dataset
from kgot_lab.evaluation.measures import score
from kgot_lab.evaluation.reports import derive
from kgot_lab.evaluation.results import EMBEDDER_HASH, load_receipt
from kgot_lab.evaluation.significance import grouped_interval, grouped_p
from kgot_lab.evaluation.tables import decimal, format_p_value, signed
from kgot_lab.retrieval.multihop.scorer import Scorer
from kgot_lab.types import Document, Query

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
FOLDER = RESULTS / "embedders"
OURS, OTHER = FOLDER / "all-MiniLM-L6-v2-int8", FOLDER / "all-mpnet-base-v2"


@pytest.fixture(scope="module")
def both():
    return [
        next(report for report in derive(folder, load_dataset) if report.dataset.name == "musique-498")
        for folder in (OURS, OTHER)
    ]


def test_the_summary_says_what_the_receipts_give():
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
def test_every_receipt_and_all_weights_name_the_embedder_of_the_folder_by_one_hash(folder):
    runs = [load_receipt(path) for path in sorted(folder.glob("*/*.jsonl.gz"))]
    named = {run.about[EMBEDDER_HASH] for run in runs}
    named |= {
        json.loads(path.read_text(encoding="utf-8"))["embedder"] for path in folder.glob("weights*.json")
    }
    assert len(named) == 1 and re.fullmatch(rf"{folder.name} [0-9a-f]{{64}}", named.pop())


def test_the_questions_counted_as_locked_are_those_of_the_data(both):
    locked = load_dataset("musique-498").locked
    for report in both:
        assert (
            report.row("convex", part="locked").n == len(locked) == 338
            and report.row("convex", part="develop").n == 160
        )
    assert f"{len(locked)} locked and 160 develop" in (FOLDER / "summary.md").read_text(encoding="utf-8")


def test_the_bundled_embedder_reaches_here_what_it_reaches_on_the_standard_sets(both):
    for run in both[0].runs:
        path = RESULTS / "standard_sets" / "musique-498" / f"{run.system.replace(', ', '-')}.jsonl.gz"
        if not run.system.startswith(ANEW):
            before = score(load_receipt(path), both[0].dataset.qrels, ["recall@5"]).per_query("recall@5")
            assert before == both[0].scores[run.system].per_query("recall@5")


def test_a_gain_is_tested_in_pairs_and_by_groups(both):
    ours, other = both
    ids = [query.id for query in ours.dataset.queries if query.id in ours.dataset.locked]
    own, theirs = (
        [report.scores["convex"].per_query("recall@5")[id] for id in ids] for report in (other, ours)
    )
    gaps, groups = np.subtract(own, theirs), [ours.dataset.groups[id] for id in ids]
    assert gap_between(other, ours, "convex", "locked") == (
        grouped_interval(gaps, groups),
        grouped_p(gaps, groups),
    )


def test_the_page_on_recall_says_what_the_receipts_give(both):
    page = (
        (RESULTS.parents[1] / "docs" / "recall.md")
        .read_text(encoding="utf-8")
        .partition("### A stronger embedder")[2]
        .partition("\n## ")[0]
    )
    for system in both[1].scores:
        gap, p = gap_between(both[1], both[0], system, "locked")
        assert f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}], p {format_p_value(p)}" in page
    for report in both:
        assert embedder_of(report).partition(" (")[0] in page
        for system in report.scores:
            row = next(line for line in page.splitlines() if line.startswith(f"| {system} |"))
            assert (
                decimal(report.row(system, part="locked").mean) in row
                and decimal(report.row(system, part="develop").mean) in row
            )


# --- on four questions
# ----------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny(monkeypatch):
    """A data set of four questions, two of them locked, which every name stands for."""
    texts = {
        "Ada": "Ada met Bob.",
        "Bob": "Bob was born in Rome.",
        "Cat": "Cats sleep.",
        "Dan": "Dan saw Ada.",
        "Eve": "Eve met Dan.",
    }
    documents = tuple(Document(title.lower(), text, title) for title, text in texts.items())
    queries = tuple(Query(f"Whom did {name} meet?", name) for name in ("Ada", "Dan", "Eve", "Bob"))
    qrels = {query.id: {query.id.lower(): 1} for query in queries}
    data = Dataset("tiny", documents, queries, qrels, locked=frozenset({"Ada", "Eve"}))
    monkeypatch.setattr("benchmarks.standard_sets.other_embedders.load_dataset", lambda name: data)
    return data


class Bundled(Letters):
    """Letters under the name of the bundled embedder."""

    name = MiniLM.name


def weights(folder, embedder, whose):
    told = {"system": ANEW, "embedder": whose, "weights": FIRST_WEIGHTS.as_json()}
    (folder / embedder.name).mkdir(exist_ok=True)
    (folder / embedder.name / "weights-trail-learnt-anew.json").write_text(json.dumps(told))


def test_an_embedder_has_a_folder_of_its_own_and_trails_that_were_learnt_with_it_are_measured_too(
    tiny, tmp_path
):
    for embedder in (Bundled(), Letters()):
        weights(tmp_path, embedder, f"{embedder.name} {embedder.digest}")
        counted = []
        measure_embedder(
            tmp_path,
            embedder,
            lambda done, total, what, told=counted: told.append((done, total)),
            names=["tiny"],
        )
        assert counted == [(done, 5) for done in range(5)]
    (grid,) = embedder_tables(tmp_path)
    assert [row[1].text for row in grid.rows] == 2 * [
        "embeddings",
        "convex",
        "follow, sentences",
        "trail",
        ANEW,
    ]
    assert "2 locked and 2 develop" in grid.title and [row[6].text for row in grid.rows[5:]] == 5 * [".000"]
    (run,) = (load_receipt(path) for path in tmp_path.glob(f"{MiniLM.name}/tiny/trail-learnt-anew.jsonl.gz"))
    assert Scorer.of_json(FIRST_WEIGHTS.as_json()).mark in run.description


def test_without_the_bundled_one_there_is_nothing_to_compare_with(tiny, tmp_path):
    measure_embedder(tmp_path, Letters(), names=["tiny"], chosen=["convex"])
    with pytest.raises(BadInput, match="run it with --embedder minilm first"):
        embedder_tables(tmp_path)


def test_weights_of_another_embedder_of_that_name_are_refused(tiny, tmp_path):
    weights(tmp_path, Letters(), f"{Letters().name} another")
    with pytest.raises(BadInput, match="another embedder than this; delete it, or learn it anew"):
        measure_embedder(tmp_path, Letters(), names=["tiny"])
    with pytest.raises(UnknownName, match="set to learn on"):
        learn_anew(tmp_path, Letters(), ["none"], lambda *_: None)
    with pytest.raises(UnknownName, match="system"):
        measure_embedder(tmp_path, Letters(), names=["tiny"], chosen=["none"])
