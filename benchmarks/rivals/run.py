"""Index the documents with one system, ask it all questions, and keep what it said and what it cost.

    python -m benchmarks.rivals.run paths
    python -m benchmarks.rivals.run lightrag --minutes 120

A stopped run goes on: questions that have a row are not asked again, and an index that was not finished is
built again from the replies that the model has already given. After `--minutes` it stops by itself. Rows are
in benchmarks/results/rivals/SYSTEM.jsonl, everything else in runs/rivals. `--smoke MODEL.gguf` tries a system on
one paragraph and two questions, in runs/rivals/smoke.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from benchmarks.rivals.endpoint import (
    CALL_SECONDS,
    CONTEXT,
    DIMENSION,
    EMBEDDER,
    INDEX,
    LONGEST_REPLY,
    MODEL,
    PROMPT_BUDGET,
    Endpoint,
    count_calls,
    read_rows,
)
from benchmarks.rivals.process import Reply, SystemProcess
from benchmarks.rivals.questions import Chosen, choose
from benchmarks.rivals.systems import SYSTEMS, WORK, command, tokenizers
from kgot_lab.llm.model_file import find_model

RESULTS = Path(__file__).parents[1] / "results" / "rivals"
QUESTION_SECONDS = 3600
DONE, STOPPED, AGAIN = "done", "stopped", "again"
Row = dict[str, Any]


@dataclass
class Run:
    """A run of one system: its folders, its time, and what it is asked."""

    name: str
    chosen: Chosen
    work: Path
    results: Path
    deadline: float
    longest: int = LONGEST_REPLY

    @property
    def rows_file(self) -> Path:
        """The file of the rows."""
        return self.results / f"{self.name}.jsonl"

    @property
    def notes(self) -> Path:
        """The file of the model's calls."""
        return self.work / "calls.jsonl"

    def go_on(self, model: Path, threads: int) -> bool:
        """Do what is missing, and return whether everything is done."""
        while (state := self._go_on(model, threads)) == AGAIN:
            pass
        return state == DONE

    def _go_on(self, model: Path, threads: int) -> str:
        """Start the endpoint and the system, and do what is missing until a new start is needed."""
        self.work.mkdir(parents=True, exist_ok=True)
        self.results.mkdir(parents=True, exist_ok=True)
        rows = read_rows(self.rows_file)
        indexed = next((row for row in rows if row["id"] == INDEX), None)
        done = {row["id"] for row in rows}
        due = [question for question in self.chosen.questions if question.id not in done]
        if indexed and (indexed["error"] or not due):
            return DONE
        paths = self.chosen.write(self.work / "documents")
        if indexed is None:
            shutil.rmtree(self.work / "store", ignore_errors=True)
            shutil.rmtree(self.work / "cache", ignore_errors=True)
        with ExitStack() as stack:
            endpoint = stack.enter_context(Endpoint(model, self.notes, threads, self.longest))
            log = stack.enter_context((self.work / "log.txt").open("a", encoding="utf-8"))
            process = stack.enter_context(self._start(endpoint, log, indexed is not None))
            if "error" in process.began and indexed is None:
                self._keep({"id": INDEX, "made": None, **self._costs(INDEX, process.began, 0.0, process)})
                return DONE
            if indexed is None:  # then asks in a new process, as after any other start
                return AGAIN if self._index(endpoint, process, paths) else STOPPED
            for question in due:
                if time.monotonic() > self.deadline:
                    return STOPPED
                try:
                    self._ask(endpoint, process, question.id, question.text)
                except TimeoutError as error:
                    costs = self._costs(question.id, {"error": str(error)}, QUESTION_SECONDS, process)
                    self._keep({"id": question.id, "answer": "", **costs})
                    return AGAIN
        return DONE

    def _start(self, endpoint: Endpoint, log: TextIO, indexed: bool) -> SystemProcess:
        store = self.work.absolute() / "store"
        store.mkdir(exist_ok=True)
        settings = {
            "system": self.name, "url": endpoint.url, "key": endpoint.key, "model": MODEL, "embedder": EMBEDDER,
            "dimension": DIMENSION, "folder": str(store), "documents": str(self.work.absolute() / "documents"),
            "budget": PROMPT_BUDGET, "context": CONTEXT, "seconds": CALL_SECONDS,
            "indexed": indexed,
        }  # fmt: skip
        env = {**os.environ, "OPENAI_API_KEY": endpoint.key, "OPENAI_BASE_URL": endpoint.url}
        env |= {"XDG_CACHE_HOME": str(self.work.absolute() / "cache"), "NO_PROXY": "127.0.0.1"}
        env |= {"PYTHONUNBUFFERED": "1", "PYTHONPATH": "." if not SYSTEMS[self.name].packages else ""}
        if files := tokenizers(self.name):
            env["TIKTOKEN_CACHE_DIR"] = str(files)
        return SystemProcess(command(self.name), settings, env, log)

    def _index(self, endpoint: Endpoint, process: SystemProcess, paths: Sequence[Path]) -> bool:
        """Build the index, and return whether it was finished before the deadline."""
        endpoint.phase = INDEX
        began = time.perf_counter()
        files = [str(path.absolute()) for path in paths]
        try:
            reply = process.ask("index", files, self.deadline - time.monotonic())
        except TimeoutError:
            return False
        seconds = time.perf_counter() - began + endpoint.replayed_seconds
        row = {"id": INDEX, "made": reply.get("result"), **self._costs(INDEX, reply, seconds, process)}
        self._keep(row)
        return True

    def _ask(self, endpoint: Endpoint, process: SystemProcess, id: str, text: str) -> None:
        endpoint.phase = id
        before = count_calls(self.notes)[id]  # of a try that was stopped
        began = time.perf_counter()
        reply = process.ask("ask", text, QUESTION_SECONDS)
        seconds = time.perf_counter() - began
        result = reply.get("result")
        said = result if isinstance(result, dict) else {"answer": "" if result is None else str(result)}
        self._keep({"id": id, **said, **self._costs(id, reply, seconds, process, before)})

    def _costs(
        self,
        phase: str,
        reply: Reply,
        seconds: float,
        process: SystemProcess,
        before: Counter[str] | None = None,
    ) -> Row:
        counts = count_calls(self.notes)[phase]
        counts.subtract(before or Counter())
        names = ("calls", "read", "reused", "written", "cut", "refused", "texts")
        costs: Row = {name: counts[name] for name in names}
        model_seconds = round(counts["seconds"], 1)
        costs |= {"seconds": round(seconds, 1), "model_seconds": model_seconds, "peak": process.take_peak()}
        return {**costs, "error": reply.get("error", "")}

    def _keep(self, row: Row) -> None:
        with self.rows_file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        shown = {key: row.get(key) for key in ("id", "seconds", "calls", "read", "written", "error")}
        print(f"{self.name}: {shown}", flush=True)


def smoke(chosen: Chosen) -> Chosen:
    """Return one paragraph, a question that it answers, and one that it does not."""
    name, text = next(iter(chosen.texts.items()))
    of_file = [question for question in chosen.questions if question.file == name]
    start = "\n\n".join(text.split("\n\n")[:2]) + "\n"
    two = [next(question for question in of_file if question.said is said) for said in (True, False)]
    return replace(chosen, texts={name: start}, questions=tuple(two))


def main() -> None:
    """Run one system."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", choices=tuple(SYSTEMS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    parser.add_argument("--threads", type=int, default=2, help="threads of the model")
    parser.add_argument("--longest", type=int, default=LONGEST_REPLY, help="tokens of the longest reply")
    parser.add_argument("--smoke", type=Path, metavar="MODEL", help="try it with another model file")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    deadline = time.monotonic() + min(given.minutes * 60, 1e6)
    chosen, name = choose(), given.system
    if given.smoke:
        folder = WORK / "smoke"
        run = Run(name, smoke(chosen), folder / name, folder, deadline, given.longest)
    else:
        run = Run(name, chosen, WORK / name, RESULTS, deadline, given.longest)
    finished = False
    try:
        finished = run.go_on(given.smoke or find_model(), given.threads)
    except Exception:
        traceback.print_exc()
    finally:
        print(f"{name}: {'done' if finished else 'stopped; the same command goes on'}", flush=True)
        os._exit(0 if finished else 1)  # a reply that is still being written would hold the program up


if __name__ == "__main__":
    main()
