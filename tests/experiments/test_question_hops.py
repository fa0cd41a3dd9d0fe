"""Questions split into hops: what the receipts come to."""

import json
from pathlib import Path

from benchmarks.standard_sets.question_hops import SPLIT_BY_HAND, UNSPLIT, splits_grid
from kgot_lab.benchmark.recall.datasets import load_dataset

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_the_table_pairs_each_split_with_questions_that_are_not_split():
    ids = [query.id for query in load_dataset("musique").develop.queries[:8]]
    found = {
        "musique": {UNSPLIT: dict.fromkeys(ids, 0.5), SPLIT_BY_HAND: {**dict.fromkeys(ids, 0.5), ids[0]: 1.0}}
    }
    grid = splits_grid(found)
    assert [cell.text for cell in grid.rows[0]] == ["musique", UNSPLIT, "8", ".500", "", "", ""]
    assert [cell.text for cell in grid.rows[1]][:5] == ["musique", SPLIT_BY_HAND, "8", ".562", "+.062"]


def test_the_page_says_what_the_receipts_of_split_questions_give():
    found = json.loads((RESULTS / "standard_sets" / "split.json").read_text(encoding="utf-8"))
    page = (RESULTS / "standard_sets" / "notes.md").read_text(encoding="utf-8")
    told = page.partition("Does splitting the question help?")[2].partition("Does an LLM's graph help?")[0]
    for row in splits_grid({"musique-498": found["musique-498"]}).rows:
        _, _, _, reached, more, span, _ = (cell.text for cell in row)
        assert f"{more} [{span.replace(' to ', ', ')}]" in told if more else reached in told
