"""Other embedders on the standard sets: the tables follow from the receipts, each of which names the embedder
it was made with.
"""

import json
import re
from pathlib import Path

import pytest

from benchmarks.standard_sets.other_embedders import (
    embedder_tables,
    gap_between,
)
from kgot_lab.benchmark.recall.datasets import load_dataset
from kgot_lab.evaluation.reports import derive
from kgot_lab.evaluation.results import EMBEDDER_HASH, load_receipt
from kgot_lab.evaluation.tables import decimal, format_p_value, signed

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


def test_the_page_says_what_the_receipts_give(both):
    page = (RESULTS / "standard_sets" / "notes.md").read_text(encoding="utf-8")
    told = page.partition("Does a larger embedder help?")[2].partition("\n")[0]
    for system in set(both[1].scores) - {"embeddings", "follow, sentences"}:
        gap, p = gap_between(both[1], both[0], system, "locked")
        assert f"{signed(gap.mean)} [{signed(gap.low)}, {signed(gap.high)}]" in told
        if system == "convex":
            assert f"p {format_p_value(p)}" in told
        else:
            reached = (decimal(report.row(system, part="locked").mean) for report in both)
            assert all(share in told for share in reached)
