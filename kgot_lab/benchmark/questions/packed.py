"""The other question sets that come with the package: MuSiQue and 2WikiMultiHopQA with their passages,
SimpleQA and FRAMES without any.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence

from kgot_lab.benchmark.questions.question import Question, QuestionSet
from kgot_lab.evaluation.answers import holds
from kgot_lab.evaluation.dataset import content_id, linked_by, musique_steps
from kgot_lab.io.files import bundled
from kgot_lab.text.sentences import sentences
from kgot_lab.types import Document, Json

_MUSIQUE, _MUSIQUE_DEV = "musique-train-100", "musique-498"
_TWOWIKI, _TWOWIKI_PASSAGES = "2wiki-1000", "2wiki-fastgraphrag-101"


def musique() -> QuestionSet:
    """100 questions of two to four hops and 1,890 Wikipedia passages (Trivedi et al. 2022, as the HippoRAG
    project took them), CC BY 4.0.

    The level of a question is its number of hops; facts and groups are those of musique_dev().
    """
    return _of_hops("musique", _MUSIQUE, "locked", "develop")


def musique_dev() -> QuestionSet:
    """498 questions of two, three and four hops, as many of each, and 5,966 passages, from MuSiQue's own
    development part, CC BY 4.0.

    `facts`: of each step's passage, the sentences that hold the step's answer as whole words; the whole
    passage where none does. A group is all questions that are linked by shared steps: 196 of them. `locked`
    are 150 for the last measurement, 50 of each number of hops in turn; all are `test`, none may be tuned on.
    """
    return _of_hops("musique-498", _MUSIQUE_DEV, "locked", "test")


def twowiki() -> QuestionSet:
    """989 questions over two or four of 6,119 Wikipedia passages (Ho et al. 2020), Apache-2.0; texts CC
    BY-SA.

    `facts`: of each gold passage, the first sentence that holds the object of an evidence triple, for each
    triple whose object is there; its first sentence where none is. `develop` are those to tune on, `locked`
    150 for the last measurement, and `test` the others like them: none of their gold passages is gold for any
    of the first 101 questions, which other experiments have used.
    """
    passages = _passages(_TWOWIKI_PASSAGES)
    gold: dict[str, list[str]] = {}
    for line in bundled(f"{_TWOWIKI}/qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, document, _ = line.split("\t")
        gold.setdefault(question, []).append(document)
    questions = [
        _of_triples(row, [passages[old] for old in gold[row["_id"]]])
        for row in packed_rows(_TWOWIKI, "queries.jsonl.gz")
    ]
    return QuestionSet(
        _by_id(passages.values()), questions, "2wiki", parts=split_of(_TWOWIKI, "locked", "test", "develop")
    )


def simpleqa() -> QuestionSet:
    """4,326 short factual questions (Wei et al. 2024), MIT; the type of a question is its topic, `links` are
    where its answer was found.
    """
    questions = [
        Question(row["_id"], row["question"], row["answer"], row["topic"], links=tuple(row["urls"]))
        for row in packed_rows("simpleqa", "simpleqa.jsonl.gz")
    ]
    return QuestionSet([], questions, "simpleqa", "grader")


def frames() -> QuestionSet:
    """824 questions over several Wikipedia pages each (Krishna et al. 2024), Apache-2.0; the pages are not
    here, only their addresses.
    """
    questions = [
        Question(
            row["_id"],
            row["question"].strip(),
            row["answer"],
            ", ".join(row["reasoning_types"]),
            links=tuple(row["wiki_links"]),
        )
        for row in packed_rows("frames", "frames.jsonl.gz")
    ]
    return QuestionSet([], questions, "frames", "grader")


# --- packed files
# -----------------------------------------------------------------------------------------------------


def packed_rows(folder: str, name: str) -> Iterator[Json]:
    """The rows of a packed file of JSON lines in a bundled folder."""
    with gzip.open(bundled(f"{folder}/{name}"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def split_of(folder: str, *names: str) -> dict[str, tuple[str, ...]]:
    """Which questions of a bundled folder serve what."""
    split = json.loads(bundled(f"{folder}/split.json").read_text(encoding="utf-8"))
    return {name: tuple(split[name]) for name in names}


def _passages(folder: str) -> dict[str, Document]:
    """The passages of a folder by their ids in its files, each with an id that does not follow the order of
    the questions.
    """
    rows = packed_rows(folder, "corpus.jsonl.gz")
    return {
        row["_id"]: Document(content_id(row["title"], row["text"]), row["text"], row["title"]) for row in rows
    }


def _by_id(documents: Iterable[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: document.id)


# --- questions and the sentences that hold their answers
# --------------------------------------------------------------


def _of_hops(name: str, folder: str, *parts: str) -> QuestionSet:
    passages, rows = _passages(folder), list(packed_rows(folder, "queries.jsonl.gz"))
    groups = linked_by({row["_id"]: musique_steps(row["_id"]) for row in rows})
    questions = [_composed(row, passages, groups[row["_id"]]) for row in rows]
    return QuestionSet(_by_id(passages.values()), questions, name, parts=split_of(folder, *parts))


def _composed(row: Json, passages: dict[str, Document], group: str) -> Question:
    steps = [(passages[step["doc_id"]], step["answer"]) for step in row["decomposition"]]
    gold = tuple(sorted({passage.id for passage, _ in steps}))
    facts = [
        sentence for passage, answer in steps for sentence in _holding(passage.text, answer) or [passage.text]
    ]
    level, aliases = f"{row['hops']} hops", tuple(row["answer_aliases"])
    return Question(
        row["_id"],
        row["text"],
        row["answer"],
        row["hop_type"],
        level,
        gold,
        _once(facts),
        aliases,
        group=group,
    )


def _of_triples(row: Json, gold: Sequence[Document]) -> Question:
    facts: list[str] = []
    for passage in gold:
        first = [
            sentence for _, _, value in row["evidences"] for sentence in _holding(passage.text, value)[:1]
        ]
        facts += first or sentences(passage.text)[:1]
    ids = tuple(sorted(document.id for document in gold))
    return Question(row["_id"], row["text"], row["answer"], row["type"], gold=ids, facts=_once(facts))


def _holding(text: str, answer: str) -> list[str]:
    """The sentences of a text that hold an answer."""
    return [sentence for sentence in sentences(text) if holds(sentence, answer)]


def _once(facts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(facts))
