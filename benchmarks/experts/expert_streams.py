"""A hundred readers of one server of experts at once, and what a kill in the middle of their streams leaves.

    python -m benchmarks.experts.expert_streams [--streams 100] [--turns 3] [--kills 50] [--table]

The server is a process of its own on loopback with an SQLite file; its model says again what it was asked, a
word every few milliseconds. Each reader asks a question with a word of its own and must read that word and no
other. With --kills the server is killed with SIGKILL in the middle of eight streams, and started again on the
same file, so many times; then every conversation that was told to have begun must hold its question, every
answer that was told to be done must be there whole, and the file must be sound. Results go to
benchmarks/results/expert_streams.json; anything lost or mixed up ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from kgot_lab.cli.requirements import need

RESULTS = Path(__file__).parents[1] / "results" / "expert_streams.json"
EXPERT = "expert_cook"
SERVER = """
import logging, sys, time
import uvicorn
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.llm.presets import FREE
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Reply, Usage

logging.disable(logging.INFO)
place, port, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

class Slowly:
    name, price = "slowly", FREE
    def __call__(self, prompt):
        raise NotImplementedError
    def stream(self, prompt):
        words = [prompt.messages[-1].text.split()[0] + " "] * 20
        for word in words:
            time.sleep(pause)
            yield word
        yield Reply("".join(words).strip(), Usage(1, len(words)))

service = ExpertService(open_experts(place), GraphFolder(None, {"cookbook": cookbook}), ExpertModels({"slowly": Slowly}, "slowly"))
if not service.tables.experts():
    service.create({"name": "Cookbook", "kg_db_id": "cookbook", "persona": {"name": "Cook"}})
service.graphs.graph("cookbook")
app = expert_app(service, GuardRules(limits=GuardLimits(requests_a_minute=10**6)))
uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", access_log=False)
"""
WORDS = 20  # of an answer


class Server:
    """A server in a process of its own."""

    def __init__(self, place: Path, pause: float):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(place), str(self.port), str(pause)]
        )
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            if self.process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.02)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


async def read_one(client: Any, word: str, seen: dict[str, Any], conversation: str | None = None) -> None:
    """Ask a question that begins with a word, and note what comes, as it comes."""
    body = {"query": f"{word} is the word; how do I use prompt caching?", "conversation_id": conversation}
    begun = time.perf_counter()
    async with client.stream("POST", f"/api/experts/{EXPERT}/chat", json=body) as answer:
        seen["status"] = answer.status_code
        async for line in answer.aiter_lines():
            event = json.loads(line.removeprefix("data: ")) if line else {"type": ""}
            match event["type"]:
                case "conversation_start":
                    seen["conversation"] = event["conversation_id"]
                case "token":
                    seen.setdefault("first", time.perf_counter() - begun)
                    seen["text"] = seen.get("text", "") + event["content"]
                case "done":
                    seen["done"], seen["whole"] = event["message_id"], time.perf_counter() - begun
                case "error":
                    seen["error"] = event["content"]


async def many(url: str, streams: int, turns: int) -> list[dict[str, Any]]:
    """What all readers saw, each of `turns` questions in a conversation of its own."""
    import httpx

    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits, trust_env=False) as client:

        async def reader() -> list[dict[str, Any]]:
            mine: list[dict[str, Any]] = []
            for _ in range(turns):
                seen: dict[str, Any] = {"word": f"w{secrets.token_hex(6)}"}
                mine.append(seen)
                await read_one(client, seen["word"], seen, mine[0].get("conversation"))
            return mine

        return [seen for mine in await asyncio.gather(*(reader() for _ in range(streams))) for seen in mine]


def mixed_up(seen: dict[str, Any]) -> bool:
    """Whether a reader read a word that is not its own."""
    return bool(set(seen.get("text", "").split()) - {seen["word"]})


def streams_measured(streams: int, turns: int, pause: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "experts.db", pause)
        try:
            asyncio.run(many(server.url, 4, 1))  # so that nothing is read for the first time
            begun = time.perf_counter()
            seen = asyncio.run(many(server.url, streams, turns))
            seconds = time.perf_counter() - begun
        finally:
            server.kill()
    first = sorted(each["first"] for each in seen if "first" in each)
    return {
        "streams": streams,
        "turns": turns,
        "ms_a_word": 1000 * pause,
        "answers": len(seen),
        "lost": sum(
            each.get("text", "").split() != [each["word"]] * WORDS or "done" not in each for each in seen
        ),
        "mixed_up": sum(map(mixed_up, seen)),
        "p50_first_ms": round(1000 * statistics.median(first), 1),
        "p95_first_ms": round(1000 * first[int(0.95 * (len(first) - 1))], 1),
        "p50_whole_ms": round(1000 * statistics.median(each["whole"] for each in seen if "whole" in each), 1),
        "seconds": round(seconds, 2),
        "load_before": [round(each, 2) for each in os.getloadavg()],
        "cores": os.cpu_count(),
    }


async def until_killed(server: Server, after: int, pause: float) -> list[dict[str, Any]]:
    """What readers saw of a server that is killed once `after` answers are done, at a random moment of those
    that go on.
    """
    import httpx

    seen: list[dict[str, Any]] = []
    async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:

        async def reader() -> None:
            with suppress(
                httpx.HTTPError, json.JSONDecodeError
            ):  # the last line of a stream may be half of one
                while True:
                    mine: dict[str, Any] = {"word": f"w{secrets.token_hex(6)}"}
                    seen.append(mine)
                    await read_one(client, mine["word"], mine)

        readers = [asyncio.create_task(reader()) for _ in range(8)]
        while sum("done" in each for each in seen) < after and not all(each.done() for each in readers):
            await asyncio.sleep(0.005)
        await asyncio.sleep(random.uniform(0, WORDS * pause))
        server.kill()
        await asyncio.gather(*readers)
    return seen


def looked_at(place: Path, seen: list[dict[str, Any]]) -> dict[str, int]:
    """What the file lacks of what readers were told."""
    with closing(sqlite3.connect(f"file:{place}?mode=ro", uri=True)) as file:
        said: dict[str, list[tuple[str, str, str]]] = {}
        for conversation, role, id, content in file.execute(
            "SELECT conversation, role, id, content FROM messages ORDER BY number"
        ):
            said.setdefault(conversation, []).append((role, id, content))
        sound = file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    began = [each for each in seen if "conversation" in each]
    done = [each for each in seen if "done" in each]
    lost = sum(
        not any(
            role == "user" and each["word"] in content
            for role, _, content in said.get(each["conversation"], ())
        )
        for each in began
    )
    cut = sum(
        ("assistant", each["done"], f"{each['word']} " * WORDS) not in said.get(each["conversation"], ())
        for each in done
    )
    return {
        "questions_lost": lost,
        "answers_lost": cut,
        "damaged": int(not sound),
        "begun": len(began),
        "done": len(done),
    }


def kills_survived(kills: int, pause: float) -> dict[str, Any]:
    seen: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        place, damaged, amid = Path(folder) / "experts.db", 0, 0
        for _ in range(kills):
            server = Server(place, pause)
            try:
                told = asyncio.run(until_killed(server, random.randint(1, 12), pause))
            finally:
                server.kill()
            amid += sum("conversation" in each and "done" not in each for each in told)
            seen += told
            damaged += looked_at(place, told)["damaged"]
        server = Server(place, pause)  # it opens, and answers
        try:
            after = asyncio.run(many(server.url, 4, 2))
        finally:
            server.kill()
        found = looked_at(place, [*seen, *after])
    answered = sum("done" in each for each in after) == len(after)
    return {
        "kills": kills,
        **found,
        "damaged": damaged + found["damaged"],
        "amid_an_answer": amid,
        "mixed_up": sum(map(mixed_up, seen)),
        "answers_after": answered,
    }


def table(results: dict[str, Any]) -> str:
    one, two = results["streams"], results.get("kills")
    lines = [
        "| readers at once | answers | lost | mixed up | first word p50 | p95 | whole p50 |",
        "|---|---|---|---|---|---|---|",
        "| "
        + " | ".join(str(one[name]) for name in ("streams", "answers", "lost", "mixed_up"))
        + "".join(f" | {one[name]:g} ms" for name in ("p50_first_ms", "p95_first_ms", "p50_whole_ms"))
        + " |",
        "",
        f"{one['cores']} cores, load of the machine before: {one['load_before'][0]:g}; {WORDS} words, one every {one['ms_a_word']:g} ms.",
    ]
    if two:
        lines += [
            "",
            f"{two['kills']} kills, {two['amid_an_answer']} answers cut by them: of {two['begun']} conversations told to have begun "
            f"{two['questions_lost']} lost their question, of {two['done']} answers told to be done {two['answers_lost']} are not whole, "
            f"{two['damaged']} files damaged.",
        ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--turns", type=int, default=3, help="questions of each reader, in one conversation")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.02, help="seconds a word")
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    need(sys.platform != "win32", "this needs SIGKILL, which Windows does not have: run it on Linux or macOS")
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results["streams"] = streams_measured(options.streams, options.turns, options.pause)
    if options.kills:
        results["kills"] = kills_survived(options.kills, options.pause)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    bad = results["streams"]["lost"] + results["streams"]["mixed_up"]
    if options.kills:
        kills = results["kills"]
        bad += sum(kills[name] for name in ("questions_lost", "answers_lost", "damaged", "mixed_up")) + (
            not kills["answers_after"]
        )
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
