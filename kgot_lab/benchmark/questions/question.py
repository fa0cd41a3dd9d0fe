"""Questions and question sets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kgot_lab.arguments import parse_json
from kgot_lab.documents.folder import read_documents
from kgot_lab.errors import BadInput, short_repr
from kgot_lab.io.files import read_regular_file, utf8_text
from kgot_lab.types import Document, Json


# wide: one field a key of a line in a question file
@dataclass(frozen=True)
class Question:
    """A question with its answer, the ids of the relevant documents (`gold`) and sentences (`facts`), if
    known.

    `documents` are its own, in addition to those of its set. `steps` and `tools` are what a person needed to
    answer it. Questions of one `group` share a part, so they are not independent of each other. "" means a
    group of its own.
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
    steps: int | None = None
    tools: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True)
class QuestionSet:
    """Passages to search and questions to ask.

    `parts` are the question ids of each split, and `scored_by` is the rule for a right answer. Answers of a
    `private` set, which may not be redistributed, are not written to results.
    """

    documents: list[Document]
    questions: list[Question]
    name: str = "own"
    # match: exact match after normalisation; gaia: GAIA's rules; grader: a language model
    scored_by: str = "match"
    parts: Mapping[str, tuple[str, ...]] | None = None
    private: bool = False

    @property
    def sha256(self) -> str:
        """A hash of all questions, answers, documents and attached files."""
        digest = hashlib.sha256()
        for question in sorted(self.questions, key=lambda question: question.id):
            files = [hashlib.sha256(path.read_bytes()).hexdigest() for path in question.attachments]
            documents = _document_rows(question.documents)
            content = [question.id, question.text, question.answer, question.aliases, files, documents]
            digest.update(json.dumps(content).encode())
        digest.update(
            json.dumps(_document_rows(sorted(self.documents, key=lambda document: document.id))).encode()
        )
        return digest.hexdigest()

    def only(self, ids: Iterable[str]) -> QuestionSet:
        """Return the set with only these questions, in this order."""
        by_id = {question.id: question for question in self.questions}
        return replace(self, questions=[by_id[id] for id in ids])


def _document_rows(documents: Iterable[Document]) -> list[Json]:
    return [[document.id, document.title, document.text] for document in documents]


# Question sets from a JSON lines file.

_LISTS = ("aliases", "attachments", "documents", "tools")
_TEXTS = ("id", "type", "level")
_KNOWN = ("question", "answer", *_TEXTS, *_LISTS, "steps")


def load_questions(path: Path) -> QuestionSet:
    """Read questions from a JSON lines file.

    Each line has question and answer, and optionally id, type, level, aliases, documents, attachments. A
    document is an object with title and text, or the path of a file or folder. Attachments are paths too.
    Paths are relative to the file. `steps` and `tools` record what a person needed. The set is named after
    the file. Raises BadInput, naming the line.
    """
    try:
        # at no other separator, since JSON allows those in strings
        lines = utf8_text(read_regular_file(path), path).split("\n")
    except OSError as error:
        raise BadInput(f"the questions {path} cannot be read: {error}") from None
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    questions = [_parse_question(path, number, line) for number, line in numbered]
    if not questions:
        example = '{"question": "…", "answer": "…"}'
        raise BadInput(f"{path} holds no question: a line is an object such as {example}")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise BadInput(f"two questions of {path} have the id {question.id!r}")
        seen.add(question.id)
    return QuestionSet([], questions, path.stem)


def _parse_question(path: Path, number: int, line: str) -> Question:
    where = f"{path}, line {number}"
    try:
        row = parse_json(line)
    except ValueError as error:
        raise BadInput(f"{where}, is not JSON ({error}): {short_repr(line)}") from None
    _check_row(where, row)
    files = tuple(path.parent / name for name in row.get("attachments", ()))
    for file in files:
        if not file.is_file():
            raise BadInput(f"{where}: there is no attachment {file}")
    documents: list[Document] = []
    for position, item in enumerate(row.get("documents", ()), 1):
        documents += _read_documents(where, path.parent, item, position)
    return Question(
        id=str(row.get("id", number)), text=row["question"].strip(), answer=str(row["answer"]), type=str(row.get("type", "")),
        level=str(row.get("level", "")), aliases=tuple(map(str, row.get("aliases", ()))), documents=tuple(documents), attachments=files,
        steps=row.get("steps"), tools=tuple(row.get("tools", ())),
    )  # fmt: skip


def _check_row(where: str, row: Json) -> None:
    if not isinstance(row, Mapping):
        raise BadInput(f"{where}: a question is an object with question and answer, not {short_repr(row)}")
    if unknown := sorted(set(row) - set(_KNOWN)):
        raise BadInput(f"{where}: there is no field {unknown[0]!r}; known are {', '.join(_KNOWN)}")
    question, answer = row.get("question"), row.get("answer")
    if not isinstance(question, str) or not question.strip():
        raise BadInput(f'{where}: a question is a text under "question", not {short_repr(question)}')
    if isinstance(answer, list):
        others = 'what else is right stands under "aliases", a list of texts'
        raise BadInput(f"{where}: the right answer is one text; {others}")
    if not isinstance(answer, str | int | float) or not str(answer).strip():
        expected = 'the right answer is a text or a number under "answer"'
        raise BadInput(f"{where}: {expected}, not {short_repr(answer)}")
    for name in _LISTS:
        if not isinstance(row.get(name, []), list):
            items = " of objects with title and text, or of paths of files and folders"
            expected = f"{name} are a list{items if name == 'documents' else ''}"
            raise BadInput(f"{where}: {expected}, not {short_repr(row[name])}")


def _read_documents(where: str, folder: Path, item: Json, place: int) -> list[Document]:
    """Return the passages that an item of `documents` refers to."""
    if isinstance(item, Mapping) and isinstance(item.get("text"), str):
        return [Document(str(item.get("id", f"d{place}")), item["text"], str(item.get("title", "")))]
    expected = f"{where}: a document is an object with title and text, or the path of a file or folder"
    if not isinstance(item, str):
        raise BadInput(f"{expected}, not {short_repr(item)}")
    if not (folder / item).exists():
        missing = f"there is no {short_repr(item)} in {folder.resolve()}"
        raise BadInput(f"{expected}, from where the file of questions stands; {missing}")
    found = read_documents(folder / item)
    if (folder / item).is_dir():
        return [replace(document, id=f"{item}/{document.id}") for document in found]
    return [replace(document, id=f"{item}#{document.id.rpartition('#')[2]}") for document in found]
