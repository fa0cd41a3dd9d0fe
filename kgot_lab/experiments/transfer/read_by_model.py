"""Two verifiers that let a language model read: causal frames of all texts, and whether a choice is a case of
the source's statement.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

from kgot_lab.analogy.vocabulary_leaks import LeakCheck
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import Numbers, share
from kgot_lab.evaluation.tables import Cell, Grid, decimal
from kgot_lab.experiments.structure.analogies import Choice, choices, hashed
from kgot_lab.experiments.structure.judge import JUDGE_SETS
from kgot_lab.experiments.transfer.causal_frames import CausalFrame, FrameLikeness, causal_frame
from kgot_lab.experiments.transfer.compared import HeldOut
from kgot_lab.experiments.transfer.entailment import abstract_statement, entailed, log_odds, steps_of
from kgot_lab.experiments.transfer.systems import ALIGNED, ENCODING, right_share, standardised
from kgot_lab.types import LLM, Json

ReadKey = tuple[str, str, str]  # model, set, question


def read_rows(model: LLM, questions: int, kept: Collection[ReadKey] = ()) -> Iterator[dict[str, Json]]:
    """What a model reads in the first so many develop questions of each set that the judge is asked, in the
    same order, one by one.

    The sets come in turn, so that a stop leaves them alike; what is `kept` is not asked again. `seconds` are
    those of the whole question. Raises LLMError, also for a model that does not tell how likely its reply is.
    """
    every = {name: choices(name) for name in JUDGE_SETS}
    asked = {
        name: sorted(some.develop.questions, key=lambda question: hashed("judge", question.id))
        for name, some in every.items()
    }
    for number in range(questions):
        for name, some in asked.items():
            if number < len(some) and (model.name, name, some[number].id) not in kept:
                began = time.perf_counter()
                found = _read(model, some[number], _leak_check(name))
                seconds = round(time.perf_counter() - began, 1)
                yield {
                    "set": name,
                    "question": some[number].id,
                    "model": model.name,
                    **found,
                    "seconds": seconds,
                }


@cache
def _leak_check(name: str) -> LeakCheck:
    return LeakCheck.of(choices(name).develop.texts)


def _read(model: LLM, question: Choice, leaks: LeakCheck) -> Mapping[str, Json]:
    """The frame of the source and of each choice, the source's statement with its steps, and how sure each
    step is of each choice.
    """
    frames = [_frame(model, text) for text in (question.source, *question.choices)]
    try:
        statement = abstract_statement(model, question.source, leaks)
        holds = [[round(step, 4) for step in steps] for steps in entailed(model, statement, question.choices)]
    except BadReply as error:
        return {"frames": frames, "failed": error.reason}
    return {"frames": frames, "statement": statement, "steps": list(steps_of(statement)), "holds": holds}


def _frame(model: LLM, text: str) -> Json:
    try:
        return causal_frame(model, text).model_dump()
    except BadReply:  # outside of the vocabulary twice: it has no frame
        return None


def read_grid(rows: Sequence[Mapping[str, Json]], held: Sequence[HeldOut], embedder: Embedder) -> Grid:
    """How many of the questions that a model read each verifier answers, beside what learnt elsewhere, and
    beside the hardest control.

    Where a reading failed, that verifier is right by chance. `leaking` counts statements that hold words of
    their text's field after all. Intervals are those of a share (Wilson 1927), of the nearest whole count; no
    difference is tested, the questions being few.
    """
    likeness, lines = FrameLikeness(embedder), []
    for model, each in product(dict.fromkeys(str(row["model"]) for row in rows), held):
        own = {
            str(row["question"]): row
            for row in rows
            if (row["model"], row["set"]) == (model, each.questions.name)
        }
        if own:
            lines += [(model, *line) for line in _read_lines(own, each, likeness)]
    columns = (
        "model",
        "set",
        "questions",
        "verifier",
        "right",
        "95 %",
        "failed",
        "leaking",
        "aligned",
        "encoded",
        "hardest control",
    )
    return Grid(
        "What a model reads; develop questions, chance is .25",
        columns,
        tuple(tuple(map(Cell, line)) for line in lines),
    )


def _read_lines(
    own: Mapping[str, Mapping[str, Json]], each: HeldOut, likeness: FrameLikeness
) -> Iterator[tuple[str, ...]]:
    """A line for each verifier, of the questions of a set that were read."""
    asked = each.questions.only(own).questions
    said = {"causal frames": _frames_said(asked, own, likeness), "entailment": _entailment_said(asked, own)}
    said["both"] = [one + other for one, other in zip(*said.values(), strict=True)]
    without = [
        sum(not all(row["frames"]) for row in own.values()),
        sum("holds" not in row for row in own.values()),
    ]
    leaking = sum(_leaks(each.questions.name, question, own[question.id]) for question in asked)
    there = np.array([question.id in own for question in each.questions.questions])
    rival = each.best_control()
    aligned, encoded, control = (
        decimal(each.elsewhere[name][there].mean()) for name in (ALIGNED, ENCODING, rival)
    )
    for (name, scores), failed in zip(said.items(), (*without, sum(without)), strict=True):
        right = sum(right_share(row, question.answer) for row, question in zip(scores, asked, strict=True))
        reached = share(round(right), len(asked))
        interval = f"{decimal(reached.low)} to {decimal(reached.high)}"
        counts = (str(failed), str(leaking) if name == "entailment" else "")
        beside = (aligned, encoded, f"{rival} {control}")
        yield (
            each.questions.name,
            str(len(asked)),
            name,
            decimal(right / len(asked)),
            interval,
            *counts,
            *beside,
        )


def _leaks(name: str, question: Choice, row: Mapping[str, Json]) -> bool:
    return "statement" in row and bool(_leak_check(name).check(question.source, str(row["statement"])))


def _frames_said(
    questions: Sequence[Choice], rows: Mapping[str, Mapping[str, Json]], likeness: FrameLikeness
) -> list[Numbers]:
    """The likeness of each choice's frame to the source's, standardised; 0 for all choices where one of them
    has no frame.
    """
    said = []
    for question in questions:
        frames = [frame and CausalFrame.model_validate(frame) for frame in rows[question.id]["frames"]]
        alike = likeness.of(frames[0], frames[1:]) if all(frames) else np.zeros(len(question.choices))
        said.append(standardised(alike[None])[0])
    return said


def _entailment_said(questions: Sequence[Choice], rows: Mapping[str, Mapping[str, Json]]) -> list[Numbers]:
    """The mean log-odds that the steps of the source's statement hold of each choice, standardised; 0 where
    none was made.
    """
    holds = [rows[question.id].get("holds", [[0.5]] * len(question.choices)) for question in questions]
    return [standardised(np.array([[log_odds(steps) for steps in of_choices]]))[0] for of_choices in holds]
