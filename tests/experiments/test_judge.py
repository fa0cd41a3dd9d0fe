"""A model as judge of analogies: what it is asked, what counts as a quotation, and what is not asked twice."""

import json
from itertools import islice
from pathlib import Path

from benchmarks.structure.analogies import Choice
from benchmarks.structure.judging import (
    JUDGE_RUBRICS,
    JUDGE_SETS,
    judge_table,
    judged_choice,
    judged_rows,
)
from kgot_lab.types import Reply

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
CHOICES = (
    "The rust ate the bolt until it broke.",
    "He ate a sandwich at noon.",
    "They sang all night long.",
    "Lightning struck a bolt.",
)
QUESTION = Choice(
    "q", "Doubt gnawed at the pact until it fell apart.", CHOICES, 0, ("target", "other", "other", "other")
)


class Says:
    """Replies one after the other, the last again and again."""

    name = "says"

    def __init__(self, *replies):
        self.replies, self.asked = list(replies), []

    def __call__(self, prompt):
        self.asked.append(prompt)
        return Reply(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])


def said(span, answer):
    return json.dumps({"span": span, "answer": answer})


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


def test_words_of_the_chosen_text_are_a_quotation_also_with_the_letter_of_the_list_before_them():
    for span in ("ate the bolt until it broke", "A: The rust ate the bolt until it broke."):
        assert judged_choice(Says(said(span, "A")), QUESTION, "same lesson") | {"span": ""} == {
            "answer": "A", "span": "", "quoted": True, "right": 1
        }  # fmt: skip
    other = judged_choice(Says(said("He ate a sandwich at noon", "A")), QUESTION, "same lesson")
    assert not other["quoted"] and other["right"] == 1


def test_a_reply_without_a_choice_is_asked_again_once_and_then_counts_as_wrong_with_its_reason():
    model = Says("I like all of them.")
    verdict = judged_choice(model, QUESTION, "same steps")
    assert len(model.asked) == 2 and verdict["right"] == 0 and verdict["failed"]
    mended = judged_choice(Says("A", said("ate the bolt until it broke", "A")), QUESTION, "same steps")
    assert mended["right"] == 1 and "failed" not in mended


def test_all_sets_and_rubrics_come_in_turn_and_what_is_kept_is_not_asked_again():
    model = Says(said("words that decide it", "A"))
    first = list(islice(judged_rows(model, 2), len(JUDGE_SETS) * len(JUDGE_RUBRICS)))
    keys = [(row["set"], row["rubric"], row["question"]) for row in first]
    assert [(name, rubric) for name, rubric, _ in keys] == [
        (name, rubric) for name in JUDGE_SETS for rubric in JUDGE_RUBRICS
    ]
    later = list(judged_rows(model, 2, set(keys)))
    assert len(later) == len(first) and not {
        (row["set"], row["rubric"], row["question"]) for row in later
    } & set(keys)


def test_most_of_them_is_what_two_of_three_chose_and_else_each_counts_for_its_part():
    one, two, three = JUDGE_RUBRICS
    agreed = [row("a", one, "B", 1), row("a", two, "B", 1), row("a", three, "C", 0)]
    apart = [row("b", one, "A", 1), row("b", two, "B", 0), row("b", three, "C", 0)]
    *_, last = judge_table([*agreed, *apart]).rows
    assert [cell.text for cell in last][:4] == ["s", "most of them", "2", ".667"]


def test_the_page_says_what_the_receipts_of_the_judge_give():
    rows = [
        json.loads(line)
        for line in (RESULTS / "structure" / "judge.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    grid = judge_table(rows)
    shares = {(row[0].text, row[1].text): row[3].text for row in grid.rows}
    page = " ".join((RESULTS.parents[1] / "docs" / "structure.md").read_text(encoding="utf-8").split())
    told = page.partition("**A small model as judge.**")[2].partition("##")[0]
    assert all(
        shares[name, rubric] in told for name in JUDGE_SETS for rubric in (*JUDGE_RUBRICS, "most of them")
    )
    assert f"{grid.rows[0][2].text} develop questions" in told
