"""A model as judge of analogies: what its results come to."""

import json
from pathlib import Path

from benchmarks.structure.judge import JUDGE_RUBRICS, JUDGE_SETS, judge_table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def row(question, rubric, answer, right):
    return {
        "set": "s",
        "rubric": rubric,
        "question": question,
        "model": "m",
        "answer": answer,
        "span": "",
        "quoted": False,
        "right": right,
    }


def test_most_of_them_is_what_two_of_three_chose_and_else_each_counts_for_its_part():
    one, two, three = JUDGE_RUBRICS
    agreed = [row("a", one, "B", 1), row("a", two, "B", 1), row("a", three, "C", 0)]
    apart = [row("b", one, "A", 1), row("b", two, "B", 0), row("b", three, "C", 0)]
    *_, last = judge_table([*agreed, *apart]).rows
    assert [cell.text for cell in last][:4] == ["s", "most of them", "2", ".667"]


def test_the_page_says_what_the_results_of_the_judge_give():
    rows = [
        json.loads(line)
        for line in (RESULTS / "structure" / "judge.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    grid = judge_table(rows)
    shares = {(row[0].text, row[1].text): row[3].text for row in grid.rows}
    page = " ".join((RESULTS / "transfer" / "notes.md").read_text(encoding="utf-8").split())
    told = page.partition("**The same model as judge**")[2].partition("- **")[0]
    assert all(shares[name, r] in told for name in JUDGE_SETS for r in (*JUDGE_RUBRICS, "most of them"))
    assert f"{grid.rows[0][2].text} dev questions" in told
