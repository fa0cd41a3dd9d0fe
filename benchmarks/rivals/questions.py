"""Select the four documents and 14 questions of the comparison, from data/ alone and always the same.

    python -m benchmarks.rivals.questions        # prints the plan's list of ids and its SHA-256

Two documents are runs of five paragraphs of the test articles of squad2-unanswerable, with 8 questions, half
of which they do not answer. Two merge passages of 2WikiMultiHopQA, with 6 questions of two hops.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.graph_pays.deciding import samples
from benchmarks.own_folders.run import load_rows
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.sets import read_packed_rows, twowiki
from kgot_lab.types import Document

SQUAD = "squad2-unanswerable"
SEEN_SQUAD = 140  # questions in the order of their hashes that earlier experiments may have asked
RUN_LENGTH, RUNS_EACH, SQUAD_FILES = 5, 2, 2  # paragraphs of a document, documents of an article, documents
HOP_FILES, HOP_QUESTIONS, HOP_PASSAGES = 2, 6, 20
HOP_TYPES = {"compositional", "inference"}
NAMED_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Asked:
    """A question, the answers that are accepted, whether a document says one, and which document was meant."""

    id: str
    text: str
    answers: tuple[str, ...]
    said: bool
    kind: str
    file: str = ""


@dataclass(frozen=True)
class Chosen:
    """The texts of the documents by the names of their files, and the questions."""

    texts: dict[str, str]
    questions: tuple[Asked, ...]

    @property
    def listing(self) -> str:
        """The ids of the questions and the names and hashes of the documents, a line each."""
        lines = [f"{name} {_hash(text)[:16]}" for name, text in self.texts.items()]
        return "\n".join([*lines, *(question.id for question in self.questions)]) + "\n"

    @property
    def sha256(self) -> str:
        """The SHA-256 of all documents and questions, answers included."""
        asked = [[q.id, q.text, q.answers, q.said, q.kind] for q in self.questions]
        return _hash(json.dumps([self.texts, asked], ensure_ascii=False))

    def write(self, folder: Path, ending: str = ".md") -> list[Path]:
        """Write the documents into a folder and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{name}{ending}" for name in self.texts]
        for path, text in zip(paths, self.texts.values(), strict=True):
            path.write_text(text, "utf-8")
        return paths


def choose() -> Chosen:
    """Return all documents and questions."""
    squad_texts, squad = choose_squad()
    hop_texts, hops = choose_hops()
    return Chosen({**squad_texts, **hop_texts}, (*squad, *hops))


def choose_squad() -> tuple[dict[str, str], list[Asked]]:
    """Return runs of five paragraphs, each with two questions that they answer and two that they do not.

    Runs and questions are taken in the order of the SHA-256 of their names and ids.
    """
    rows = load_rows(SQUAD, "test")[SEEN_SQUAD:]
    titles: dict[str, list[str]] = defaultdict(list)
    texts = {}
    for paragraph in read_packed_rows(SQUAD, "paragraphs.jsonl.gz"):
        titles[paragraph["title"]].append(paragraph["id"])
        texts[paragraph["id"]] = paragraph["text"]
    by_paragraph: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        by_paragraph[row["paragraph"]].append(row)
    runs = [
        (title, ids[start : start + RUN_LENGTH])
        for title, ids in titles.items()
        for start in range(0, len(ids) - RUN_LENGTH + 1, RUN_LENGTH)
        if any(by_paragraph[id] for id in ids)
    ]
    files: dict[str, str] = {}
    asked: list[Asked] = []
    used: Counter[str] = Counter()
    for title, ids in sorted(runs, key=lambda run: _hash(run[1][0])):
        found = _two_of_each([row for id in ids for row in by_paragraph[id]])
        if len(files) == SQUAD_FILES or used[title] == RUNS_EACH or not found:
            continue
        used[title] += 1
        name = f"{title} {used[title]}".replace(" ", "_")
        files[name] = "\n\n".join([f"# {title}", *(texts[id] for id in ids)]) + "\n"
        asked += [
            Asked(str(r["id"]), str(r["question"]), tuple(r["answers"]), bool(r["said"]), "squad2", name)  # type: ignore[arg-type]
            for r in found
        ]
    return files, asked


def _two_of_each(rows: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """Return two said and two unsaid questions, no two of them said by one paragraph, or nothing."""
    ordered = sorted(rows, key=lambda row: _hash(str(row["id"])))
    found: list[dict[str, object]] = []
    for said in (True, False):
        paragraphs: dict[object, dict[str, object]] = {}
        for row in ordered:
            if row["said"] is said:
                paragraphs.setdefault(row["paragraph"], row)
        found += list(paragraphs.values())[:2]
    return found if len(found) == 4 else []


def choose_hops() -> tuple[dict[str, str], list[Asked]]:
    """Return two documents of ten passages and six two-hop questions that no experiment here has asked.

    The passages are the gold ones and, for each question in turn, the most similar others. They are dealt out
    in the order of the SHA-256 of their ids, so the two passages of a question seldom share a document.
    """
    whole = twowiki()
    seen = {question.id for name, some in samples().items() if "2wiki" in name for question in some.questions}
    unseen = set((whole.parts or {})["test"]) - seen
    of_two = [q for q in whole.questions if q.id in unseen and q.type in HOP_TYPES and len(q.gold) == 2]
    questions = sorted(of_two, key=lambda question: _hash(question.id))[:HOP_QUESTIONS]
    passages = sorted(_passages(questions, whole.documents), key=lambda document: _hash(document.id))
    files = {}
    for number in range(HOP_FILES):
        parts = [f"## {document.title}\n\n{document.text}" for document in passages[number::HOP_FILES]]
        name = f"encyclopedia_{number + 1}"
        files[name] = "\n\n".join([f"# Encyclopedia, part {number + 1}", *parts]) + "\n"
    return files, [Asked(q.id, q.text, (q.answer, *q.aliases), True, "two hops") for q in questions]


def _passages(questions: Iterable[Question], documents: Sequence[Document]) -> list[Document]:
    """Return the gold passages, and others that share rare words with the questions, twenty in total.

    The score is the sum of log(passages / passages with the word), over the root of the number of words.
    """
    asked = list(questions)
    chosen = {id for question in asked for id in question.gold}
    words = {document.id: _words(f"{document.title} {document.text}") for document in documents}
    counts = Counter(word for some in words.values() for word in some)
    rankings = []
    for question in asked:
        rare = {word: math.log(len(words) / counts[word]) for word in _words(question.text) if counts[word]}
        scores = {
            id: sum(rare.get(word, 0.0) for word in sorted(some)) / math.sqrt(len(some))
            for id, some in words.items()
        }
        rankings.append(sorted(scores, key=lambda id, scores=scores: (-round(scores[id], 6), id)))  # type: ignore[misc]
    turn = 0
    while len(chosen) < HOP_PASSAGES:
        ranking = rankings[turn % len(rankings)]
        chosen.add(next(id for id in ranking if id not in chosen))
        turn += 1
    return [document for document in documents if document.id in chosen]


def _words(text: str) -> set[str]:
    return set(NAMED_WORD.findall(text.lower()))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    everything = choose()
    print(everything.listing + f"SHA-256 {everything.sha256}")
