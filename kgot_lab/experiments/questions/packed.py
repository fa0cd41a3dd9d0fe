"""The other question sets that come with the package: MuSiQue with its passages, SimpleQA and FRAMES without any."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator

from kgot_lab.bundled import bundled
from kgot_lab.experiments.questions.question import Question, QuestionSet
from kgot_lab.types import Document, Json

_MUSIQUE = "musique-train-100"


def musique() -> QuestionSet:
    """100 questions of two to four hops and 1,890 Wikipedia passages (Trivedi et al. 2022, as the HippoRAG project took them), CC BY 4.0.

    The level of a question is its number of hops.
    """
    documents = [Document(row["_id"], row["text"], row["title"]) for row in _rows(_MUSIQUE, "corpus.jsonl.gz")]
    split = json.loads(bundled(f"{_MUSIQUE}/split.json").read_text(encoding="utf-8"))
    parts = {name: tuple(split[name]) for name in ("locked", "develop")}
    return QuestionSet(documents, [_of_hops(row) for row in _rows(_MUSIQUE, "queries.jsonl.gz")], "musique", parts=parts)


def simpleqa() -> QuestionSet:
    """4,326 short factual questions (Wei et al. 2024), MIT; the type of a question is its topic, `links` are where its answer was found."""
    questions = [
        Question(row["_id"], row["question"], row["answer"], row["topic"], links=tuple(row["urls"]))
        for row in _rows("simpleqa", "simpleqa.jsonl.gz")
    ]
    return QuestionSet([], questions, "simpleqa", "grader")


def frames() -> QuestionSet:
    """824 questions over several Wikipedia pages each (Krishna et al. 2024), Apache-2.0; the pages are not here, only their addresses."""
    questions = [
        Question(row["_id"], row["question"].strip(), row["answer"], ", ".join(row["reasoning_types"]), links=tuple(row["wiki_links"]))
        for row in _rows("frames", "frames.jsonl.gz")
    ]
    return QuestionSet([], questions, "frames", "grader")


def _of_hops(row: Json) -> Question:
    gold = tuple(sorted({step["doc_id"] for step in row["decomposition"]}))
    aliases = tuple(row["answer_aliases"])
    return Question(row["_id"], row["text"], row["answer"], row["hop_type"], f"{row['hops']} hops", gold, aliases=aliases)


def _rows(folder: str, name: str) -> Iterator[Json]:
    with gzip.open(bundled(f"{folder}/{name}"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
