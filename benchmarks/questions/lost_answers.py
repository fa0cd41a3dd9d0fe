"""Where the loop lost the answers it got wrong: not found, not written, not read, or misread."""

from __future__ import annotations

from pathlib import Path

from benchmarks.graph_pays.losses import MISREAD, NEARLY, NOT_FOUND, RIGHT, stage_before_reading
from benchmarks.questions.answers_on_file import rows_on_file
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.benchmark.questions.sets import hotpotqa
from kgot_lab.evaluation.grading import contains_answer
from kgot_lab.graph.changes import latest_sentence
from kgot_lab.loop.events import Event, Read, Wrote
from kgot_lab.loop.render import join_lines, row_text
from kgot_lab.loop.trace import load_run

STAGES = (RIGHT, NEARLY, "a yes or no", NOT_FOUND, "not written", "not read", MISREAD)


def stage_of_loss(question: Question, events: tuple[Event, ...], f1: float, em: float) -> str:
    """The first stage at which an answer of the loop was lost; a yes-or-no answer cannot be looked for in
    texts.
    """
    if stage := stage_before_reading(question, events, f1, em):
        return stage
    if question.answer.lower() in {"yes", "no"}:
        return "a yes or no"
    edges = [edge for event in events if isinstance(event, Wrote) for edge in event.diff.added_edges]
    written = join_lines(f"{edge.source} {edge.target} {latest_sentence(edge.properties)}" for edge in edges)
    if not contains_answer(written, question.answer):
        return "not written"
    read = join_lines(row_text(row) for event in events if isinstance(event, Read) for row in event.rows)
    return MISREAD if contains_answer(read, question.answer) else "not read"


def lost_answers(answers: Path, traces: Path) -> dict[str, str]:
    """The stage of each question on file, by its id; its trace is ID.jsonl in the folder."""
    by_id = {question.id: question for question in hotpotqa().questions}
    stages = {}
    for row in rows_on_file(answers):
        events = load_run(traces / f"{row['id']}.jsonl").events
        stages[row["id"]] = stage_of_loss(by_id[row["id"]], events, row["f1"], row["em"])
    return stages
