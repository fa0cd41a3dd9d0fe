"""Can the local model say which text is analogous? It is asked in three ways, and must name the words it goes by.

Writes results/structure/judge.jsonl. Asked are the first so many develop questions, in the order of a hash, of StoryAnalogy, AnaloBench
(one sentence) and ParallelPARC (advanced). Each rubric names one ground of judgement; the reply holds the words of the chosen text it
rests on (the span), then a letter. Chance is .25. `--table` prints the receipts again. Written down before the run: this is one model of
1.5 billion parameters, and no choice follows from it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.tables import decimal
from kgot_lab.experiments.structure.analogies import Choice, choices, hashed
from kgot_lab.llm.local import Local
from kgot_lab.llm.structured import structured
from kgot_lab.types import Message, Prompt

RESULT = Path(__file__).parent / "results" / "structure" / "judge.jsonl"
SETS = ("storyanalogy-mc", "analobench T1 S1", "parallelparc advanced")
RUBRICS = {
    "same lesson": "Which candidate has the same point or lesson as the text, although it tells of others?",
    "same steps": "In which candidate do the same kinds of events happen in the same order as in the text, with others in the roles?",
    "parts in place": "Pair each person or thing of the text with one of a candidate that plays the same part. Where does that work best?",
}
SYSTEM = "You judge analogies. Candidates that only share words or topic with it are wrong. Quote the words that decide, then answer."


class Verdict(BaseModel):
    """What the model goes by, and its choice."""

    span: str
    answer: Literal["A", "B", "C", "D"]


def judged(model: Local, question: Choice, rubric: str) -> dict[str, object]:
    """What the model chooses, and the span it rests on; a reply that holds no choice counts as wrong."""
    listed = "\n".join(f"{letter}: {text}" for letter, text in zip("ABCD", question.choices, strict=True))
    asked = Prompt(
        (Message("system", f"{SYSTEM} {RUBRICS[rubric]}"), Message("user", f"Text: {question.source}\n\n{listed}")), max_tokens=120
    )
    try:
        verdict = structured(model, asked, Verdict)
    except BadReply as error:
        return {"answer": "", "span": "", "quoted": False, "right": 0, "failed": error.reason}
    place = "ABCD".index(verdict.answer)
    quoted = verdict.span.casefold().strip(" .") in question.choices[place].casefold()
    return {"answer": verdict.answer, "span": verdict.span[:200], "quoted": quoted, "right": int(place == question.answer)}


def table() -> str:
    """For each set and rubric: accuracy with interval, the letters chosen, and how often the span stands in the chosen text."""
    rows = [json.loads(line) for line in RESULT.read_text(encoding="utf-8").splitlines()]
    lines = []
    for key in dict.fromkeys((row["set"], row["rubric"]) for row in rows):
        some = [row for row in rows if (row["set"], row["rubric"]) == key]
        own = interval([row["right"] for row in some])
        letters = " ".join(f"{letter} {sum(row['answer'] == letter for row in some)}" for letter in "ABCD")
        quoted = sum(row["quoted"] for row in some)
        told = f"{decimal(own.mean)} [{decimal(own.low)}, {decimal(own.high)}]"
        lines.append(f"{key[0]:24} {key[1]:16} {own.n:3} {told:22} chosen {letters}; span quoted {quoted}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30, help="how many of each set")
    parser.add_argument("--table", action="store_true", help="print the receipts, without the model")
    wanted = parser.parse_args()
    if not wanted.table:
        model, rows = Local(context=4096), []
        for name in SETS:
            asked = sorted(choices(name).develop.questions, key=lambda question: hashed("judge", question.id))[: wanted.questions]
            for rubric in RUBRICS:
                began = time.perf_counter()
                about = {"set": name, "rubric": rubric, "model": model.name}
                rows += [{**about, "question": question.id, **judged(model, question, rubric)} for question in asked]
                print(f"{time.perf_counter() - began:5.0f} s  {name}, {rubric}", flush=True)
                RESULT.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(table())


if __name__ == "__main__":
    main()
