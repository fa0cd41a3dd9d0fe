"""HotpotQA with one small local model, three ways: closed book, RAG, and the KGoT loop. Receipts per question, resumable.

python benchmarks/question_answering.py --split test                 # run what is not yet on file, then print the table
python benchmarks/question_answering.py --split test --table         # only the table, from the receipts
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import numpy as np

from kgot_lab.evaluation.answers import exact_match, f1, holds
from kgot_lab.experiments.questions.hotpotqa import Question, hotpotqa, question_split
from kgot_lab.llm import connect
from kgot_lab.loop import prompts
from kgot_lab.loop.conclude import row_text
from kgot_lab.loop.cut import joined_lines
from kgot_lab.loop.events import Answered, Asked, Forced, Read, Voted
from kgot_lab.loop.limits import PRESETS
from kgot_lab.loop.trace import load_run, record
from kgot_lab.loop.walk import think
from kgot_lab.stores import open_store
from kgot_lab.tools.search import search
from kgot_lab.types import LLM, Prompt

RESULTS = Path(__file__).parent / "results"
TRACES = Path(__file__).parent.parent / "runs" / "question_answering"
SEARCHED = 8  # passages a search of the loop returns
RETRIEVED = 5  # passages RAG puts into its prompt


@dataclass(frozen=True)
class Outcome:
    """One question, one system."""

    id: str
    type: str
    answer: str
    gold: str
    em: float
    f1: float
    seconds: float
    calls: int
    prompt_tokens: int
    completion_tokens: int
    forced: bool | None = None  # loop: no read gave rows
    out_of_steps: bool | None = None  # loop: reading was forced because the steps ran out
    rows_hold_answer: bool | None = None
    steps: int | None = None
    agreement: float | None = None


def closed_book(llm: LLM) -> Callable[[Question], Outcome]:
    """Ask the model, nothing else."""

    def answer(question: Question) -> Outcome:
        text = f'Question: {question.text}\n{prompts.FORMATS["gaia"]}\nReply as JSON: {{"answer": "..."}}'
        return _one_call(llm, question, text)

    return answer


def rag(llm: LLM) -> Callable[[Question], Outcome]:
    """Ask the model over the five best passages of .7 embeddings + .3 BM25."""
    tool = search(hotpotqa().documents, k=RETRIEVED)

    def answer(question: Question) -> Outcome:
        began = time.perf_counter()
        passages = tool(query=question.text).text
        text = f'Passages:\n{passages}\n\nQuestion: {question.text}\n{prompts.FORMATS["gaia"]}\nReply as JSON: {{"answer": "..."}}'
        return _one_call(llm, question, text, began)

    return answer


def _one_call(llm: LLM, question: Question, text: str, began: float | None = None) -> Outcome:
    from kgot_lab.llm.structured import parse, schema_of
    from kgot_lab.loop.shapes import Answer

    began = began or time.perf_counter()
    reply = llm(Prompt(prompts._say(prompts.ANSWER, text), schema_of(Answer), 0.0, 0, 200))
    said = parse(reply.text, Answer).answer
    usage = reply.usage
    scores = exact_match(said, question.answer), f1(said, question.answer)
    seconds = time.perf_counter() - began
    return Outcome(question.id, question.type, said, question.answer, *scores, seconds, 1, usage.prompt_tokens, usage.completion_tokens)


def loop(llm: LLM, preset: str, folder: Path) -> Callable[[Question], Outcome]:
    """The KGoT loop over the same passages."""
    tool = search(hotpotqa().documents, k=SEARCHED)

    def answer(question: Question) -> Outcome:
        path = folder / f"{question.id}.jsonl"
        path.unlink(missing_ok=True)
        began = time.perf_counter()
        store = open_store("in_memory")
        for _ in record(think(question.text, llm, store, [tool], PRESETS[preset]), path):
            pass
        store.close()
        return outcome(question, path, time.perf_counter() - began)

    return answer


def outcome(question: Question, path: Path, seconds: float) -> Outcome:
    """What a trace says of a question."""
    events = load_run(path).events
    final = next(event for event in events if isinstance(event, Answered))
    asked = [event for event in events if isinstance(event, Asked)]
    rows = joined_lines(row_text(row) for event in events if isinstance(event, Read) for row in event.rows)
    votes = [event for event in events if isinstance(event, Voted) and event.asked]
    return Outcome(
        question.id, question.type, final.text, question.answer,
        exact_match(final.text, question.answer), f1(final.text, question.answer), seconds,
        len(asked), sum(event.usage.prompt_tokens for event in asked), sum(event.usage.completion_tokens for event in asked),
        final.forced, any(isinstance(event, Forced) for event in events), holds(rows, question.answer),
        final.step, sum(event.agreement for event in votes) / len(votes) if votes else None,
    )  # fmt: skip


def run(part: str, system: str, answer: Callable[[Question], Outcome], questions: Iterable[Question], facts: dict[str, object]) -> None:
    """Answer the questions not yet on file, a receipt line each."""
    path = receipt(part, system)
    if not path.exists():
        path.write_text(json.dumps({"system": system, "split": part, **facts}) + "\n")
    done = {row["id"] for row in rows(path)}
    for question in questions:
        if question.id not in done:
            result = answer(question)
            with path.open("a") as file:
                file.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
            said = f"{question.text[:70]!r} -> {result.answer[:40]!r} ({result.gold})"
            print(f"{system:12} f1 {result.f1:.2f} {result.seconds:6.1f} s  {said}", flush=True)


def receipt(part: str, system: str) -> Path:
    """The file with the results of a system."""
    return RESULTS / f"hotpotqa_{part}_{system}.jsonl"


def rows(path: Path) -> list[dict[str, object]]:
    """The results on file."""
    return [json.loads(line) for line in path.read_text().splitlines()[1:]]


def interval(values: list[float], rounds: int = 10_000, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of a mean."""
    draws = np.random.default_rng(seed).choice(values, (rounds, len(values))).mean(axis=1)
    return float(np.quantile(draws, 0.025)), float(np.quantile(draws, 0.975))


def table(part: str) -> str:
    """The results as Markdown, derived from the receipts alone."""
    columns = "| system | n | EM | F1 [95 % interval] | median s | calls | answers resting on rows | steps used up | rows hold the answer |"
    lines = [columns, "|" + "---|" * 9]
    for path in sorted(RESULTS.glob(f"hotpotqa_{part}_*.jsonl")):
        data = rows(path)
        if not data:
            continue
        scores = [float(row["f1"]) for row in data]
        low, high = interval(scores)
        cells = [path.stem.removeprefix(f"hotpotqa_{part}_"), len(data), f"{np.mean([row['em'] for row in data]):.3f}"]
        cells += [f"{np.mean(scores):.3f} [{low:.2f}, {high:.2f}]", f"{np.median([row['seconds'] for row in data]):.0f}"]
        cells += [f"{np.mean([row['calls'] for row in data]):.1f}"]
        if data[0]["forced"] is not None:
            cells += [f"{1 - np.mean([row['forced'] for row in data]):.2f}", f"{np.mean([row['out_of_steps'] for row in data]):.2f}"]
            cells += [f"{np.mean([row['rows_hold_answer'] for row in data]):.2f}"]
        lines.append("| " + " | ".join(map(str, cells + [""] * (9 - len(cells)))) + " |")
    return "\n".join([*lines, *paired(part)])


def paired(part: str) -> list[str]:
    """The loop's gain over RAG, question by question, with its bootstrap interval."""
    ours, theirs = receipt(part, "kgot_local"), receipt(part, "rag")
    if not (ours.exists() and theirs.exists()):
        return []
    base = {row["id"]: float(row["f1"]) for row in rows(theirs)}
    gains = [float(row["f1"]) - base[row["id"]] for row in rows(ours) if row["id"] in base]
    if not gains:
        return []
    low, high = interval(gains)
    wins, losses = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    counts = f"{wins} wins, {losses} losses, {len(gains)} questions"
    return ["", f"kgot_local minus rag, F1, paired: {np.mean(gains):+.3f} [{low:+.2f}, {high:+.2f}]; {counts}"]


def main() -> None:
    """Parse the arguments, run, print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--split", default="develop", choices=["develop", "test"])
    arguments.add_argument("--systems", default="closed_book,rag,kgot_local")
    arguments.add_argument("--limit", type=int, default=30)
    arguments.add_argument("--table", action="store_true")
    options = arguments.parse_args()
    if not options.table:
        llm = connect("local")
        ids = question_split()[options.split][: options.limit]
        by_id = {question.id: question for question in hotpotqa().questions}
        machine = f"{platform.machine()}, 2 shared cores"
        facts = {"model": llm.name, "date": str(date.today()), "machine": machine, "python": platform.python_version()}
        makers = {
            "closed_book": lambda: closed_book(llm),
            "rag": lambda: rag(llm),
            "kgot_local": lambda: loop(llm, "local", TRACES / options.split),
            "kgot_reference": lambda: loop(llm, "reference", TRACES / f"{options.split}_reference"),
        }
        for system in options.systems.split(","):
            run(options.split, system, makers[system](), [by_id[id] for id in ids], facts)
    print(table(options.split))


if __name__ == "__main__":
    main()
