"""A language model as judge of analogies: it names the words it goes by, then the text it takes for analogous."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.tables import decimal
from kgot_lab.experiments.structure.analogies import Choice, choices, hashed
from kgot_lab.llm.structured import structured
from kgot_lab.types import LLM, Json, Message, Prompt

JUDGE_SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc advanced")
JUDGE_RUBRICS = {
    "same lesson": "Which candidate has the same point or lesson as the text, although it tells of others?",
    "same steps": "In which candidate do the same kinds of events happen in the same order as in the text, with others in the roles?",
    "parts in place": "Pair each person or thing of the text with one of a candidate that plays the same part. Where does that work best?",
}
_SYSTEM = "You judge analogies. Candidates that only share words or topic with it are wrong. Quote the words that decide, then answer."


class Judgement(BaseModel):
    """What the model goes by, and its choice."""

    span: str
    answer: Literal["A", "B", "C", "D"]


def judged_choice(model: LLM, question: Choice, rubric: str) -> dict[str, Json]:
    """What the model chooses, and the span it rests on; a reply that holds no choice counts as wrong."""
    listed = "\n".join(f"{letter}: {text}" for letter, text in zip("ABCD", question.choices, strict=True))
    asked = Prompt(
        (Message("system", f"{_SYSTEM} {JUDGE_RUBRICS[rubric]}"), Message("user", f"Text: {question.source}\n\n{listed}")), max_tokens=120
    )
    try:
        verdict = structured(model, asked, Judgement)
    except BadReply as error:
        return {"answer": "", "span": "", "quoted": False, "right": 0, "failed": error.reason}
    place = "ABCD".index(verdict.answer)
    quoted = verdict.span.casefold().strip(" .") in question.choices[place].casefold()
    return {"answer": verdict.answer, "span": verdict.span[:200], "quoted": quoted, "right": int(place == question.answer)}


def judge_table(path: Path) -> str:
    """For each set and rubric: accuracy with interval, the letters chosen, and how often the span stands in the chosen text."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    lines = []
    for key in dict.fromkeys((row["set"], row["rubric"]) for row in rows):
        some = [row for row in rows if (row["set"], row["rubric"]) == key]
        own = interval([row["right"] for row in some])
        letters = " ".join(f"{letter} {sum(row['answer'] == letter for row in some)}" for letter in "ABCD")
        quoted = sum(row["quoted"] for row in some)
        told = f"{decimal(own.mean)} [{decimal(own.low)}, {decimal(own.high)}]"
        lines.append(f"{key[0]:24} {key[1]:16} {own.n:3} {told:22} chosen {letters}; span quoted {quoted}")
    return "\n".join(lines)


def judged_sets(model: LLM, questions: int) -> Iterator[tuple[str, list[dict[str, Json]]]]:
    """What the model chooses in each set by each rubric, of the first so many develop questions in the order of a hash."""
    for name in JUDGE_SETS:
        asked = sorted(choices(name).develop.questions, key=lambda question: hashed("judge", question.id))[:questions]
        for rubric in JUDGE_RUBRICS:
            about = {"set": name, "rubric": rubric, "model": model.name}
            yield f"{name}, {rubric}", [{**about, "question": each.id, **judged_choice(model, each, rubric)} for each in asked]
