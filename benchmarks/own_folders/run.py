"""Answer the questions of data/own-folders and data/squad2-unanswerable, each with a trace, and score the runs.

    python -m benchmarks.own_folders.run own-folders dev paths --model local
    python -m benchmarks.own_folders.score own-folders dev

Systems: `paths` (the loop as `kgot-lab ask` runs it), `paths-unchecked` (the same without its check, with the
sentences and prompts of before), `rag` (the best passages of the same search and one call) and `rag-unknown`
(the same, and the model may reply "unknown"). A stopped run goes on where it was.
Of squad2-unanswerable, each paragraph is a folder of its own; `--limit` takes the first questions in the
order of the hashes of their ids.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.competence.simulated import UNCHECKED
from kgot_lab.benchmark.questions.attempt import OneCall, plain_rag, read_events
from kgot_lab.benchmark.questions.question import Question
from kgot_lab.documents.folder import read_documents
from kgot_lab.io.files import bundled_path
from kgot_lab.llm import connect
from kgot_lab.loop.controller import think
from kgot_lab.loop.events import Answered, Event
from kgot_lab.loop.limits import PATHS
from kgot_lab.loop.modes.paths.reading import answer_prompt, format_passages, parse_answer
from kgot_lab.loop.trace import record
from kgot_lab.stores import empty_store
from kgot_lab.tools.search import search
from kgot_lab.tools.tool import Result
from kgot_lab.types import LLM, Document, Prompt

RUNS = Path("runs/own_folders")
SYSTEMS = ("paths", "paths-unchecked", "rag", "rag-unknown")
Row = dict[str, Any]


def load_rows(data: str, part: str) -> list[Row]:
    """Load the questions of a part, with the key `folder` of what they are asked about."""
    root = bundled_path(data)
    if data == "own-folders":
        return [json.loads(line) for line in (root / f"{part}.jsonl").read_text("utf-8").splitlines()]
    titles = set(json.loads((root / "split.json").read_text())[part])
    paragraphs = {row["id"]: row for row in _read_gz(root / "paragraphs.jsonl.gz")}
    rows = [
        row
        for row in _read_gz(root / "questions.jsonl.gz")
        if paragraphs[row["paragraph"]]["title"] in titles
    ]
    rows.sort(key=lambda row: hashlib.sha256(row["id"].encode()).hexdigest())
    return [{**row, "folder": row["paragraph"], "kind": "squad2", "language": "en"} for row in rows]


def _read_gz(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load_folder(data: str, folder: str) -> Sequence[Document]:
    """Return the passages of a folder, or the paragraph with this id."""
    root = bundled_path(data)
    if data == "own-folders":
        return read_documents(root / folder).documents
    row = next(row for row in _read_gz(root / "paragraphs.jsonl.gz") if row["id"] == folder)
    return [Document(row["id"], row["text"], row["title"])]


def _rag_prompt(question: str, found: Result | None, *, may_abstain: bool = False) -> Prompt:
    passages = format_passages(found.sources if found else ())
    return replace(answer_prompt(question, passages, may_abstain=may_abstain), likelihood=True)


def answer(system: str, row: Row, documents: Sequence[Document], llm: LLM) -> Iterator[Event]:
    """Run a system on a question."""
    question = Question(row["id"], row["question"], "")
    if system.startswith("paths"):
        limits = PATHS if system == "paths" else UNCHECKED
        tool = search(documents, k=min(limits.search_passages, len(documents)))
        with closing(empty_store("in_memory")) as store:
            yield from think(question.text, llm, store, [tool], limits)
        return
    prompt = partial(_rag_prompt, may_abstain=system == "rag-unknown")
    tool = search(documents, k=min(5, len(documents)))
    yield from plain_rag(question, llm, tool, OneCall(prompt, parse_answer), name=system)


def run(data: str, part: str, system: str, llm: LLM, rows: Sequence[Row]) -> None:
    """Answer the questions that have no complete trace yet, folder by folder."""
    by_folder = defaultdict(list)
    for row in rows:
        by_folder[row["folder"]].append(row)
    done = 0
    for folder, asked in by_folder.items():
        documents: Sequence[Document] | None = None
        for row in asked:
            path = RUNS / data / part / system / f"{row['id'].replace('/', '_')}.jsonl"
            done += 1
            if any(isinstance(event, Answered) for event in read_events(path)):
                continue
            documents = documents or load_folder(data, folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            began = time.perf_counter()
            for _ in record(answer(system, row, documents, llm), path, metadata={"question": row["id"]}):
                pass
            print(f"{done} of {len(rows)}: {row['id']}, {time.perf_counter() - began:.1f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", choices=("own-folders", "squad2-unanswerable"))
    parser.add_argument("part", choices=("dev", "test"))
    parser.add_argument("system", choices=SYSTEMS)
    parser.add_argument("--model", default="local")
    parser.add_argument("--language", default="en")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--said", action="store_true", help="only questions that the documents answer")
    parser.add_argument("--every", type=int, default=1, help="only each n-th question")
    parser.add_argument("--first", type=int, default=0, help="begin with this question, counted from 0")
    given = parser.parse_args()
    rows = [row for row in load_rows(given.data, given.part) if row["language"] == given.language]
    rows = [row for row in rows if row["said"] or not given.said]
    run(
        given.data,
        given.part,
        given.system,
        connect(given.model),
        rows[given.first :: given.every][: given.limit],
    )


if __name__ == "__main__":
    main()
