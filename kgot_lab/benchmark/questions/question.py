"""What a question is, and a set of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.types import Document, Json


@dataclass(frozen=True)
class Question:
    """A question with its answer, the ids of the documents that hold it (`gold`) and the very sentences that
    do (`facts`), where known.

    `documents` are its own, beside those of its set; `steps` and `tools` are what a person took to answer it.
    Questions of one `group` share a part, so they are not independent of each other; "" is a group of its
    own.
    """

    id: str
    text: str
    answer: str
    type: str = ""
    level: str = ""
    gold: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other answers that are right
    documents: tuple[Document, ...] = ()
    attachments: tuple[Path, ...] = ()
    links: tuple[str, ...] = ()  # web pages that hold the answer
    steps: int | None = None
    tools: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class QuestionSet:
    """Passages to search and questions to ask; `parts` are the ids that serve what, and `scored_by` how an
    answer is found right.

    Of a `private` set, which may not be passed on, answers stay out of what is written.
    """

    documents: list[Document]
    questions: list[Question]
    name: str = "own"
    scored_by: str = (
        "match"  # match: exact match after normalisation; gaia: GAIA's rules; grader: a language model
    )
    parts: Mapping[str, tuple[str, ...]] | None = None
    private: bool = False

    @property
    def sha256(self) -> str:
        """A hash of all questions, answers, documents and attached files."""
        digest = hashlib.sha256()
        for question in sorted(self.questions, key=lambda each: each.id):
            files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in question.attachments]
            told = [
                question.id,
                question.text,
                question.answer,
                question.aliases,
                files,
                _plain(question.documents),
            ]
            digest.update(json.dumps(told).encode())
        digest.update(json.dumps(_plain(sorted(self.documents, key=lambda each: each.id))).encode())
        return digest.hexdigest()

    def only(self, ids: Iterable[str]) -> QuestionSet:
        """The same with these questions, in this order."""
        by_id = {question.id: question for question in self.questions}
        return replace(self, questions=[by_id[id] for id in ids])


def _plain(documents: Iterable[Document]) -> list[Json]:
    return [[document.id, document.title, document.text] for document in documents]
