"""Questions split into hops: what the results come to."""

import json
from pathlib import Path

from benchmarks.standard_sets.question_hops import splits_grid

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def test_the_page_says_what_the_results_of_split_questions_give():
    found = json.loads((RESULTS / "standard_sets" / "split.json").read_text(encoding="utf-8"))
    page = (RESULTS / "standard_sets" / "notes.md").read_text(encoding="utf-8")
    told = page.partition("Does splitting the question help?")[2].partition("Does an LLM's graph help?")[0]
    for row in splits_grid({"musique-498": found["musique-498"]}).rows:
        _, _, _, reached, more, span, _ = (cell.text for cell in row)
        assert f"{more} [{span.replace(' to ', ', ')}]" in told if more else reached in told
