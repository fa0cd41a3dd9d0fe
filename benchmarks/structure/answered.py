"""What systems said of the choices of questions: kept in results, and judged."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.structure.analogies import Choice, Choices
from kgot_lab.errors import BadInput
from kgot_lab.evaluation.measures import Scores
from kgot_lab.io.files import write_atomically
from kgot_lab.types import Json

_FORMAT = "choice receipt 1"
_QUESTIONS = "choices 1"


@dataclass(frozen=True, repr=False)
class Answers:
    """The score a system gave each choice, by question id; higher is more analogous. `set` is the name of the
    questions.
    """

    system: str
    kind: str
    set: str
    scores: Mapping[str, tuple[float, ...]]

    def __repr__(self) -> str:
        return f"<{self.system} ({self.kind}) on {self.set}: {len(self.scores)} questions>"


def graded(answers: Answers, choices: Choices) -> Scores:
    """Judge every question: "accuracy" is 1 where the best score is that of the right choice, and 0
    elsewhere.

    Where m choices share the best score each counts 1/m. Where the choices have kinds, "taken K" is the same
    for the wrong choices of kind K, so that these and the accuracy sum up to 1. Raises BadInput for a
    question that was not answered.
    """
    kinds = sorted({kind for question in choices.questions for kind in question.kinds} - {"target"})
    values: dict[str, dict[str, float]] = {"accuracy": {}, **{f"taken {kind}": {} for kind in kinds}}
    for question in choices.questions:
        shares = _shares(question, answers)
        values["accuracy"][question.id] = shares[question.answer]
        for kind in kinds:
            wrong = (
                share
                for place, share in enumerate(shares)
                if question.kinds[place] == kind and place != question.answer
            )
            values[f"taken {kind}"][question.id] = math.fsum(wrong)
    return Scores(answers.system, choices.name, values)


def by_group(scores: Scores, choices: Choices) -> Scores:
    """The means over the questions of each group: for a test that does not take questions of one group for
    independent of each other.
    """
    group_of = {question.id: question.group or question.id for question in choices.questions}
    values: dict[str, dict[str, float]] = {}
    for measure, by in scores.values.items():
        members: dict[str, list[float]] = {}
        for id, value in by.items():
            members.setdefault(group_of[id], []).append(value)
        values[measure] = {group: fmean(some) for group, some in members.items()}
    return Scores(scores.system, scores.dataset, values)


def six(number: float) -> float:
    """A number with six digits: what a result keeps, so that a verdict is the same before and after."""
    return float(f"{number:.6g}")


def _shares(question: Choice, answers: Answers) -> list[float]:
    """How much of the answer each choice got: all for the best, or equal parts for those that are equally
    good.
    """
    if len(answers.scores.get(question.id, ())) != len(question.choices):
        raise BadInput(
            f"{answers.system} has no score for each choice of question {question.id!r}; it answered other questions"
        )
    scores = np.array(answers.scores[question.id])
    best = scores >= scores.max()
    return [float(share) for share in best / best.sum()]


# --- results ---


def save_answers(answers: Sequence[Answers], choices: Choices, path: Path) -> None:
    """Write what systems said of the same questions: a head, then a line for each system and question; the
    same answers, the same bytes.

    Raises BadInput for answers to other questions, or two systems of one name.
    """
    if len({answer.system for answer in answers}) < len(answers):
        raise BadInput("two systems have the same name; in a result each needs one of its own")
    for answer in answers:
        if set(answer.scores) != {question.id for question in choices.questions}:
            raise BadInput(f"{answer.system} did not answer exactly the questions of {choices.name}")
    head = {
        "format": _FORMAT,
        "set": choices.name,
        "questions": content_digest(choices),
        "kinds": {answer.system: answer.kind for answer in answers},
    }
    rows = [
        {"question": question.id, "system": answer.system, "scores": answer.scores[question.id]}
        for answer in answers
        for question in choices.questions
    ]
    _write(path, [head, *rows])


def load_answers(path: Path, choices: Choices) -> dict[str, Answers]:
    """Read what `save_answers` wrote, by system; raises BadInput for a file that is broken, cut short or of
    other questions.
    """
    head, *rows = _read(path, _FORMAT)
    if (head.get("set"), head.get("questions")) != (choices.name, content_digest(choices)):
        raise BadInput(
            f"{path.name} holds answers to other questions than those of {choices.name}; run it again"
        )
    found: dict[str, dict[str, tuple[float, ...]]] = {system: {} for system in head["kinds"]}
    for number, row in enumerate(rows, start=2):
        try:
            scores = tuple(float(score) for score in row["scores"])
            found[row["system"]][row["question"]] = scores
        except (KeyError, TypeError, ValueError):
            raise BadInput(
                f"{path.name}, line {number}: it must hold a question, a system of the head and scores"
            ) from None
        if not all(map(math.isfinite, scores)):
            raise BadInput(f"{path.name}, line {number}: a score is not a finite number")
    wanted = {question.id for question in choices.questions}
    for system, said in found.items():
        if set(said) != wanted:
            raise BadInput(
                f"{path.name} holds {len(said)} of the {len(wanted)} answers of {system}; run it again"
            )
    return {
        system: Answers(system, str(head["kinds"][system]), choices.name, said)
        for system, said in found.items()
    }


def save_choices(choices: Choices, path: Path) -> None:
    """Write questions that were drawn with models, so that a report can be made again without them."""
    head = {
        "format": _QUESTIONS,
        "name": choices.name,
        "locked": sorted(choices.test_ids),
        "count": len(choices.questions),
    }
    _write(path, [head, *map(asdict, choices.questions)])


def load_choices(path: Path) -> Choices:
    """Read what `save_choices` wrote; raises BadInput for a file that is broken or cut short."""
    head, *rows = _read(path, _QUESTIONS)
    try:
        questions = tuple(
            Choice(**row | {"choices": tuple(row["choices"]), "kinds": tuple(row["kinds"])}) for row in rows
        )
        if len(questions) == head["count"]:
            return Choices(head["name"], questions, frozenset(head["locked"]))
    except (KeyError, TypeError):
        pass
    raise BadInput(f"{path.name} does not hold all its questions; draw them again")


def content_digest(choices: Choices) -> str:
    """SHA-256 of the questions with their choices and answers, whatever order they are in."""
    content = sorted(
        (question.id, question.source, question.choices, question.answer, question.kinds)
        for question in choices.questions
    )
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


def _write(path: Path, rows: Iterable[Json]) -> None:
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    packed = io.BytesIO()
    with gzip.GzipFile(
        filename="", fileobj=packed, mode="wb", mtime=0
    ) as file:  # neither name nor time of writing, for equal bytes
        file.write(text.encode())
    write_atomically(path, packed.getvalue(), "the questions")


def _read(path: Path, form: str) -> list[Json]:
    try:
        rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise BadInput(f"{path.name} cannot be read ({error}); fetch it again or make it again") from error
    if not rows or not all(isinstance(row, dict) for row in rows) or rows[0].get("format") != form:
        raise BadInput(f"{path.name} does not begin as a {form!r} does; make it again")
    return rows
