"""Is one path read better when the model first says in a sentence or two what it holds? Three reads of it, on
questions to tune on.

path: the answer from the sentences, as the mode `paths` reads them; summary: from what the model wrote of
them; both: from the two.

python -m benchmarks.graph_pays.walk_summary --limit 20    # asks the local model for the first 20 questions
of each set, goes on after a stop python -m benchmarks.graph_pays.walk_summary --table       # counts what is
on file
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import fmean

from kgot_lab.benchmark.comparison.ablations import ABLATIONS
from kgot_lab.benchmark.comparison.comparison_run import ComparisonRun, Slice
from kgot_lab.benchmark.comparison.plan import Design
from kgot_lab.benchmark.comparison.samples import develop_samples
from kgot_lab.benchmark.questions.batch import TRACES, trace_name
from kgot_lab.cli.requirements import need_embeddings, need_files, need_local_model
from kgot_lab.evaluation.answers import f1
from kgot_lab.evaluation.significance import interval
from kgot_lab.evaluation.summary import span
from kgot_lab.evaluation.tables import signed
from kgot_lab.loop.events import Asked, Event
from kgot_lab.loop.modes.paths.reader_prompt import answer_in, few_prompt
from kgot_lab.loop.trace import load_run
from kgot_lab.types import LLM, Message, Prompt

FOLDER = Path(__file__).parents[1] / "results" / "walk_summary"
ROWS, SYSTEM, READS = "rows.jsonl", "one-path", ("path", "summary", "both")
TASK = "Say in one or two short sentences what the text says that helps to answer the question. Add nothing that the text does not say."


def main() -> None:
    """Ask, keep, print."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument(
        "--limit", type=int, default=20, help="the first so many questions of each set (%(default)s)"
    )
    arguments.add_argument("--table", action="store_true", help="ask nothing")
    options = arguments.parse_args()
    if options.table:
        need_files("python -m benchmarks.graph_pays.walk_summary makes it", FOLDER / ROWS)
    else:
        from kgot_lab.llm import connect

        need_local_model()
        need_embeddings()
        ask(connect("local"), options.limit)
    figures = report([json.loads(line) for line in (FOLDER / ROWS).read_text(encoding="utf-8").splitlines()])
    (FOLDER / "report.json").write_text(
        json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    print((FOLDER / "report.json").read_text(encoding="utf-8"))


def ask(llm: LLM, limit: int) -> None:
    """Read one path for each question, then a summary of it; a line for each question, as it is answered."""
    design = Design(
        develop_samples(),
        {SYSTEM: replace(ABLATIONS[SYSTEM], questions=None)},
        pairs=(),
        aims=(),
        develop=True,
    )
    for due, receipt in ComparisonRun(design, FOLDER, llm).answers(Slice(limit=limit)):
        print(f"{due.set:10} {receipt.id} {receipt.f1:.2f}", flush=True)
    rows = FOLDER / ROWS
    known = (
        {json.loads(line)["id"] for line in rows.read_text(encoding="utf-8").splitlines()}
        if rows.exists()
        else set()
    )
    for name, questions in design.samples.items():
        for question in questions.questions:
            trace = FOLDER / name / SYSTEM / TRACES / trace_name(question.id)
            if (
                question.id in known
                or not trace.exists()
                or not (facts := shown_facts(load_run(trace).events))
            ):
                continue
            summary = llm(summary_prompt(question.text, facts)).text.strip()
            read = {
                "path": answer_in(llm(few_prompt(question.text, facts)).text),
                "summary": answer_in(llm(few_prompt(question.text, summary)).text),
                "both": answer_in(llm(few_prompt(question.text, f"{summary}\n{facts}")).text),
            }
            row = {"id": question.id, "set": name, "gold": question.answer, "summary": summary, "read": read}
            with rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{name:10} {question.id} {read} gold {question.answer!r}", flush=True)


def shown_facts(events: tuple[Event, ...]) -> str:
    """The sentences of the path that a run asked about; "" where it asked about none."""
    asked = next(
        (event for event in events if isinstance(event, Asked) and event.role.partition(",")[0] == "path"),
        None,
    )
    return asked.prompt.messages[-1].text.rpartition("\n\nQuestion: ")[0] if asked is not None else ""


def summary_prompt(question: str, facts: str) -> Prompt:
    """Ask for what some sentences say to a question."""
    return Prompt(
        (Message("system", TASK), Message("user", f"{facts}\n\nQuestion: {question}")), None, 0.0, 0, 100
    )


def report(rows: list[dict]) -> dict[str, object]:
    """F1 by set and read, and each other read less that of the path, paired."""
    ordered = sorted(rows, key=lambda row: row["set"])
    parts = {name: list(those) for name, those in groupby(ordered, key=lambda row: row["set"])} | {
        "all": ordered
    }
    return {name: {"n": len(those), **dict(_read(those))} for name, those in parts.items()}


def _read(rows: list[dict]) -> Iterator[tuple[str, object]]:
    scores = {read: [f1(row["read"][read], row["gold"]) for row in rows] for read in READS}
    for read, values in scores.items():
        yield read, round(fmean(values), 3)
    for read in READS[1:] if len(rows) > 1 else ():
        less = interval([one - other for one, other in zip(scores[read], scores["path"], strict=True)])
        yield f"{read} less path", f"{signed(less.mean)} ({span(less)})"


if __name__ == "__main__":
    main()
