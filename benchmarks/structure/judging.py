"""A language model as judge of analogies: it names the words it goes by, then the text it takes for
analogous.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, Field

from benchmarks.structure.analogies import Choice, choices, hashed
from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.tables import Cell, Grid, decimal
from kgot_lab.llm.structured import structured
from kgot_lab.types import LLM, Json, Message, Prompt

JudgeKey = tuple[str, str, str]  # set, rubric, question
JUDGE_SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc advanced")
JUDGE_RUBRICS = {
    "same lesson": "Which candidate has the same point or lesson as the text, although it tells of others?",
    "same steps": "In which candidate do the same kinds of events happen in the same order as in the text, with others in the roles?",
    "parts in place": "Pair each person or thing of the text with one of a candidate that plays the same part. Where does that work best?",
}
_SPAN, _LONGEST_SPAN = 15, 120  # characters: a shorter span stands in many texts
_LETTER = re.compile(r"^\s*[A-D]:\s*")  # of the list, copied as well
_SYSTEM = "You judge analogies. Candidates that only share words or topic with it are wrong. Quote the words that decide, then answer."


class Judgement(BaseModel):
    """What the model goes by, and its choice."""

    span: str = Field(
        description="five to fifteen words copied from the chosen candidate",
        min_length=_SPAN,
        max_length=_LONGEST_SPAN,
    )
    answer: Literal["A", "B", "C", "D"]


def judged_choice(model: LLM, question: Choice, rubric: str) -> dict[str, Json]:
    """What the model chooses, and the span it rests on; a reply that holds no choice counts as wrong."""
    listed = "\n".join(f"{letter}: {text}" for letter, text in zip("ABCD", question.choices, strict=True))
    asked = Prompt(
        (
            Message("system", f"{_SYSTEM} {JUDGE_RUBRICS[rubric]}"),
            Message("user", f"Text: {question.source}\n\n{listed}"),
        ),
        max_tokens=120,
    )
    try:
        verdict = structured(model, asked, Judgement)
    except BadReply as error:
        return {"answer": "", "span": "", "quoted": False, "right": 0, "failed": error.reason}
    place = "ABCD".index(verdict.answer)
    span = _LETTER.sub("", verdict.span)
    quoted = span.casefold().strip(" .\"'") in question.choices[place].casefold()
    return {"answer": verdict.answer, "span": span, "quoted": quoted, "right": int(place == question.answer)}


def judge_table(rows: Sequence[Mapping[str, Json]]) -> Grid:
    """For each set and rubric: accuracy with interval, the letters chosen, and how often the span stands in
    the chosen text.

    `most of them`: what most rubrics chose, where all three were asked; where they differ, each counts for
    its part.
    """
    lines = []
    for name in dict.fromkeys(str(row["set"]) for row in rows):
        some = [row for row in rows if row["set"] == name]
        for rubric in JUDGE_RUBRICS:
            own = [row for row in some if row["rubric"] == rubric]
            letters = " ".join(f"{letter} {sum(row['answer'] == letter for row in own)}" for letter in "ABCD")
            right = [float(bool(row["right"])) for row in own]
            lines.append((name, rubric, *_reached(right), letters, _share(row["quoted"] for row in own)))
        asked: dict[str, list[Mapping[str, Json]]] = {}
        for row in some:
            asked.setdefault(str(row["question"]), []).append(row)
        whole = [rows for rows in asked.values() if len(rows) == len(JUDGE_RUBRICS)]
        lines.append((name, "most of them", *_reached(list(map(_most, whole))), "", ""))
    columns = ("set", "rubric", "questions", "right", "95 %", "chosen", "span quoted")
    title = f"The judge, {', '.join(dict.fromkeys(str(row['model']) for row in rows))}; chance is .25"
    return Grid(title, columns, tuple(tuple(map(Cell, line)) for line in lines))


def _reached(right: Sequence[float]) -> tuple[str, str, str]:
    if not right:
        return "0", "", ""
    own = interval(right)
    return str(own.n), decimal(own.mean), f"{decimal(own.low)} to {decimal(own.high)}"


def _share(flags: Iterable[Json]) -> str:
    values = [bool(flag) for flag in flags]
    return f"{sum(values) / len(values):.0%}" if values else ""


def _most(rows: Sequence[Mapping[str, Json]]) -> float:
    answers = [str(row["answer"]) for row in rows if row["answer"]]
    most = max((answers.count(answer) for answer in answers), default=0)
    chosen = {answer for answer in answers if answers.count(answer) == most}
    right = {str(row["answer"]) for row in rows if row["right"]}
    return len(chosen & right) / len(chosen) if chosen else 0.0


def judged_rows(model: LLM, questions: int, kept: Collection[JudgeKey] = ()) -> Iterator[dict[str, Json]]:
    """What the model chooses in each set by each rubric, of the first so many develop questions in the order
    of a hash, one by one.

    All sets and rubrics come in turn, so that a stop leaves them alike; what is `kept` is not asked again.
    """
    asked = {
        name: sorted(choices(name).develop.questions, key=lambda question: hashed("judge", question.id))
        for name in JUDGE_SETS
    }
    for number in range(questions):
        for name, some in asked.items():
            for rubric in JUDGE_RUBRICS:
                if number < len(some) and (key := (name, rubric, some[number].id)) not in kept:
                    about: dict[str, Json] = dict(zip(("set", "rubric", "question"), key, strict=True))
                    yield {**about, "model": model.name, **judged_choice(model, some[number], rubric)}
