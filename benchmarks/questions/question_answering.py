"""HotpotQA with one small local model, three ways: closed book, RAG, and the KGoT loop. Results per
question, resumable.

python -m benchmarks.questions.question_answering --split test                 # run what is not yet on file,
then print the table python -m benchmarks.questions.question_answering --split test --table         # only the
table, from the results
"""

from __future__ import annotations

import argparse
import platform
from datetime import date
from pathlib import Path

from benchmarks.questions.answering import answer_missing, closed_book, kgot_loop, rag
from benchmarks.questions.answers_on_file import answers_file, answers_table
from benchmarks.requirements import require_embeddings, require_local_model, require_sandbox
from kgot_lab.benchmark.questions.sets import hotpotqa, hotpotqa_split
from kgot_lab.llm import connect

RESULTS = Path(__file__).parents[1] / "results"
TRACES = Path(__file__).parents[2] / "runs" / "question_answering"


def results_path(part: str, system: str) -> Path:
    """The file with the results of a system."""
    return answers_file(RESULTS, part, system)


def table(part: str) -> str:
    """The results as Markdown, derived from the per-question results alone."""
    return answers_table(RESULTS, part)


def run(part: str, systems: list[str], limit: int) -> None:
    """Answer what is not yet on file, and say how it goes."""
    require_local_model()
    require_embeddings()
    require_sandbox()
    llm = connect("local")
    by_id = {question.id: question for question in hotpotqa().questions}
    machine = f"{platform.machine()}, 2 shared cores"
    facts = {
        "model": llm.name,
        "date": str(date.today()),
        "machine": machine,
        "python": platform.python_version(),
    }
    makers = {
        "closed_book": lambda: closed_book(llm),
        "rag": lambda: rag(llm),
        "kgot_local": lambda: kgot_loop(llm, "local", TRACES / part),
        "kgot_reference": lambda: kgot_loop(llm, "reference", TRACES / f"{part}_reference"),
    }
    for system in systems:
        head = {"system": system, "split": part, **facts}
        questions = [by_id[id] for id in hotpotqa_split()[part][:limit]]
        for result in answer_missing(results_path(part, system), makers[system](), questions, head):
            said = f"{by_id[result.id].text[:70]!r} -> {result.answer[:40]!r} ({result.gold})"
            print(f"{system:12} f1 {result.f1:.2f} {result.seconds:6.1f} s  {said}", flush=True)


def main() -> None:
    """Parse the arguments, run, print the table."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--split", default="dev", choices=["dev", "test"])
    arguments.add_argument("--systems", default="closed_book,rag,kgot_local")
    arguments.add_argument("--limit", type=int, default=30)
    arguments.add_argument("--table", action="store_true")
    options = arguments.parse_args()
    if not options.table:
        run(options.split, options.systems.split(","), options.limit)
    print(table(options.split))


if __name__ == "__main__":
    main()
