"""Two verifiers that let a language model read: causal frames of all texts, and whether a choice is a case of the source's statement."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from kgot_lab.analogy.leaks import LeakCheck
from kgot_lab.embedding.embedder import Embedder
from kgot_lab.errors import BadReply
from kgot_lab.evaluation.significance import Numbers, grouped_interval, interval
from kgot_lab.evaluation.tables import Cell, Grid, decimal
from kgot_lab.experiments.structure.analogies import Choice, choices, hashed
from kgot_lab.experiments.structure.judge import JUDGE_SETS
from kgot_lab.experiments.transfer.causal_frames import FrameLikeness, causal_frame, frame_of
from kgot_lab.experiments.transfer.compared import HeldOut, gap_spoken
from kgot_lab.experiments.transfer.entailment import abstract_statement, entailed, log_odds, steps_of
from kgot_lab.experiments.transfer.systems import ALIGNED, ENCODING, right_shares, standardised
from kgot_lab.types import LLM, Json

ReadKey = tuple[str, str]  # set, question


def read_rows(model: LLM, questions: int, kept: Collection[ReadKey] = ()) -> Iterator[dict[str, Json]]:
    """What a model reads in the first so many develop questions of each set that the judge is asked, in the same order, one by one.

    The sets come in turn, so that a stop leaves them alike; what is `kept` is not asked again.
    """
    every = {name: choices(name) for name in JUDGE_SETS}
    asked = {name: sorted(some.develop.questions, key=lambda question: hashed("judge", question.id)) for name, some in every.items()}
    leaks = {name: LeakCheck.of(some.develop.texts) for name, some in every.items()}
    for number in range(questions):
        for name, some in asked.items():
            if number < len(some) and (name, some[number].id) not in kept:
                yield {"set": name, "question": some[number].id, "model": model.name, **_read(model, some[number], leaks[name])}


def _read(model: LLM, question: Choice, leaks: LeakCheck) -> Mapping[str, Json]:
    """The frame of the source and of each choice, the source's statement with its steps, and how sure each step is of each choice."""
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
    except BadReply:  # outside of the vocabulary twice: it has no frame, and its likeness is the least
        return None


def read_grid(rows: Sequence[Mapping[str, Json]], held: Sequence[HeldOut], embedder: Embedder) -> Grid:
    """How many of the questions that were read each verifier answers, beside what learnt elsewhere, and beside the hardest control.

    A question of which a reading failed counts as answered by chance.
    """
    likeness, lines = FrameLikeness(embedder), []
    for each in held:
        own = {str(row["question"]): row for row in rows if row["set"] == each.questions.name}
        some = each.questions.only(own)
        if not own:
            continue
        said = {"causal frames": _frames_said(some.questions, own, likeness), "entailment": _entailment_said(some.questions, own)}
        said["both"] = said["causal frames"] + said["entailment"]
        there = np.array([question.id in own for question in each.questions.questions])
        rival, groups = each.best_control(), [question.group or question.id for question in some.questions]
        for name, table in said.items():
            right = right_shares(table, some)
            gap = grouped_interval((right - each.elsewhere[rival][there]).tolist(), groups)
            beside = [decimal(each.elsewhere[other][there].mean()) for other in (ALIGNED, ENCODING, rival)]
            share = interval(right.tolist())
            reached = f"{decimal(share.mean)} [{decimal(share.low)}, {decimal(share.high)}]"
            lines.append((f"{each.questions.name} ({len(own)})", name, reached, *beside[:2], f"{rival} {beside[2]}", gap_spoken(gap)))
    columns = ("set", "verifier", "right", "aligned", "encoded", "hardest control", "gain over it")
    models = ", ".join(dict.fromkeys(str(row["model"]) for row in rows))
    return Grid(f"What {models} reads; develop questions, chance is .25", columns, tuple(tuple(map(Cell, line)) for line in lines))


def _frames_said(questions: Sequence[Choice], rows: Mapping[str, Mapping[str, Json]], likeness: FrameLikeness) -> Numbers:
    """The likeness of each choice's frame to the source's, standardised; 0 for all choices where one of them has no frame."""
    said = np.zeros((len(questions), 4))
    for number, question in enumerate(questions):
        frames = [frame and frame_of(frame) for frame in rows[question.id]["frames"]]
        if all(frames):
            said[number] = likeness.of(frames[0], frames[1:])
    return standardised(said)


def _entailment_said(questions: Sequence[Choice], rows: Mapping[str, Mapping[str, Json]]) -> Numbers:
    """The mean log-odds that the steps of the source's statement hold of each choice, standardised; 0 where none was made."""
    said = [[log_odds(steps) for steps in rows[question.id].get("holds", [[0.5]] * 4)] for question in questions]
    return standardised(np.array(said))
