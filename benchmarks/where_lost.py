"""Where the loop lost the answers it got wrong: not found, not written, not read, or misread. Reads the traces of question_answering.

python benchmarks/where_lost.py --split test
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from question_answering import RESULTS, TRACES, receipt, rows

from kgot_lab.evaluation.answers import holds
from kgot_lab.experiments.questions.hotpotqa import Question, hotpotqa
from kgot_lab.loop.conclude import row_text
from kgot_lab.loop.cut import joined_lines
from kgot_lab.loop.events import Event, Read, ToolReturned, Wrote
from kgot_lab.loop.trace import load_run

STAGES = ("right", "nearly right", "a yes or no", "passages not all found", "not written", "not read", "misread")


def stage(question: Question, events: tuple[Event, ...], f1: float, em: float) -> str:
    """The first stage at which an answer was lost; a yes-or-no answer cannot be looked for in texts."""
    if em:
        return "right"
    if f1 >= 0.5:
        return "nearly right"
    found = {document.id for event in events if isinstance(event, ToolReturned) for document in event.sources}
    if not set(question.gold) <= found:
        return "passages not all found"
    if question.answer.lower() in {"yes", "no"}:
        return "a yes or no"
    edges = [edge for event in events if isinstance(event, Wrote) for edge in event.diff.added_edges]
    written = joined_lines(f"{edge.source} {edge.target} {edge.properties.get('sentence', '')}" for edge in edges)
    if not holds(written, question.answer):
        return "not written"
    read = joined_lines(row_text(row) for event in events if isinstance(event, Read) for row in event.rows)
    return "misread" if holds(read, question.answer) else "not read"


def main() -> None:
    """Count, print, keep."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--split", default="test", choices=["develop", "test"])
    part = arguments.parse_args().split
    by_id = {question.id: question for question in hotpotqa().questions}
    stages = {}
    for row in rows(receipt(part, "kgot_local")):
        path: Path = TRACES / part / f"{row['id']}.jsonl"
        stages[str(row["id"])] = stage(by_id[str(row["id"])], load_run(path).events, float(str(row["f1"])), float(str(row["em"])))
    counts = Counter(stages.values())
    print(f"{'where the loop lost the answer':32} questions")
    for name in STAGES:
        print(f"{name:32} {counts[name]:9}")
    (RESULTS / f"where_lost_{part}.json").write_text(json.dumps(stages, indent=1) + "\n")


if __name__ == "__main__":
    main()
