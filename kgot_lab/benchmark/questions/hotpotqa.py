"""The questions and passages of HotpotQA that come with the package."""

from __future__ import annotations

from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.benchmark.questions.sets import packed_rows, split_of
from kgot_lab.evaluation.dataset import content_id
from kgot_lab.types import Document, Json

_HOTPOTQA = "hotpotqa-train-100"


def hotpotqa() -> QuestionSet:
    """100 multi-hop questions and 994 Wikipedia passages (Yang et al. 2018, as the HippoRAG project took
    them), CC BY-SA 4.0.

    Ids and order of the passages come from a hash of their content: the file has them in the order of the
    questions, which would tell a ranking that breaks ties by id where to look. Exact duplicates are dropped.
    """
    rows = {row["_id"]: row for row in packed_rows(_HOTPOTQA, "corpus.jsonl.gz")}
    ids = {old: content_id(row["title"], row["text"]) for old, row in rows.items()}
    documents = {ids[old]: Document(ids[old], row["text"], row["title"]) for old, row in rows.items()}
    questions = [_question(row, rows, ids) for row in packed_rows(_HOTPOTQA, "queries.jsonl.gz")]
    return QuestionSet(
        [documents[id] for id in sorted(documents)], questions, "hotpotqa", parts=question_split()
    )


def question_split() -> dict[str, tuple[str, ...]]:
    """Which question ids of hotpotqa() serve what: `locked` and `test` are for measuring, `develop` is for
    tuning.
    """
    return split_of(_HOTPOTQA, "locked", "test", "develop")


def demo_questions() -> list[Question]:
    """The three questions of the demo: of those for tuning, so that no measured question is shown off."""
    by_id = {question.id: question for question in hotpotqa().questions}
    develop = question_split()["develop"]
    return [by_id[develop[number]] for number in (1, 7, 4)]


def _question(row: Json, rows: dict[str, Json], ids: dict[str, str]) -> Question:
    support = row["supporting_facts"]
    gold = tuple(sorted({ids[document] for document, _ in support}))
    facts = tuple(rows[document]["sentences"][number].strip() for document, number in support)
    return Question(row["_id"], row["text"], row["answer"], row["type"], row["level"], gold, facts)
