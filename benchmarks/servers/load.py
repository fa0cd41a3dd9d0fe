"""200 clients of `kgot-lab serve` and `kgot-lab mcp --http`: half ask as they should, half are slow, broken or vanish.

The healthy half first asks alone, for a fifth of the time, then beside the others. The table has the latencies
of both phases, the statuses, and both servers' memory. The model is a fake on loopback: it streams 20 words.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import httpx

from kgot_lab.experts.http.connections import listening_socket
from kgot_lab.experts.http.tokens import new_token
from kgot_lab.experts.repository import open_experts
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.stores.files import write_graph

REPORT = Path(__file__).parents[1] / "results" / "servers" / "load.md"
THINKING, PATIENCE = 6.0, 60.0  # seconds at most between two requests of a healthy client, and for an answer
CHAT, PAGE = "/api/experts/expert_cookbook/chat", "/pages/cytoscape.min.js"
QUESTION = {"query": "What is prompt caching?"}
_LINE = "|---|---:|---:|---:|---:|---:|"
ACCEPT = "application/json, text/event-stream"


def rpc(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


SEARCH = rpc("tools/call", name="search_expert", arguments={"expert": "expert_cookbook", **QUESTION})
STATS = rpc("tools/call", name="stats", arguments={})
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
ASKS = {  # method, server, path, body, and a word of a whole answer
    "experts": ("GET", "serve", "/api/experts", None, "cookbook"),
    "page": ("GET", "serve", PAGE, None, "cytoscape"),
    "search": ("POST", "serve", "/api/kgos/query/cookbook", QUESTION, "results"),
    "chat": ("POST", "serve", CHAT, QUESTION, "done"),
    "MCP, experts": ("POST", "serve", "/mcp", SEARCH, "caching"),
    "MCP, a graph": ("POST", "mcp", "/mcp", STATS, "rows"),
}


class Request:
    """A request to one of the servers as bytes, for clients that do not send it whole."""

    def __init__(self, server: str, port: int, token: str):
        self.serve = server == "serve"
        self._lines = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: {ACCEPT}\r\n"

    def head(self, path: str, length: int | None = None) -> bytes:
        body = "" if length is None else f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
        return f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\n{self._lines}{body}\r\n".encode()

    def post(self, path: str, body: object) -> bytes:
        return self.head(path, len(data := json.dumps(body).encode())) + data

    def junk(self, chance: random.Random) -> bytes:
        long, unnamed = self.head("/" + "x" * 70_000), self.head("/health").replace(b"Host", b"Ghost")
        odd = (self.head("/mcp", 20) + b"{" * 20, self.post("/mcp", {"method": 1}), self.head("/mcp", 10**12))
        return chance.choice((chance.randbytes(500), long, unnamed, *odd)) + b"\r\n\r\n"


# What harmful clients send at first. The first two then send a byte a second, as long as they may.
ATTACKS: dict[str, Callable[[Request, random.Random], bytes]] = {
    "unfinished head": lambda to, chance: to.head("/health")[:-20],
    "slow body": lambda to, chance: to.head("/mcp", 1000) + b"{",
    "connection only": lambda to, chance: b"",
    "vanish": lambda to, chance: to.post(CHAT, QUESTION) if to.serve else to.post("/mcp", STATS),
    "junk": lambda to, chance: to.junk(chance),
    "read nothing": lambda to, chance: (to.head(PAGE) if to.serve else to.post("/mcp", rpc("tools/list"))) * 200,
    "abandoned session": lambda to, chance: to.post("/mcp", rpc("initialize", **CLIENT)),
}  # fmt: skip


class Load:
    """The ports of the servers, the tokens of the clients, and what was seen."""

    def __init__(self, ports: dict[str, int], tokens: list[str]):
        self.ports, self.tokens, self.beside = ports, tokens, False
        self.seconds: dict[tuple[bool, str], list[float]] = defaultdict(list)  # by phase and request
        self.statuses: Counter[tuple[str, str]] = Counter()  # by kind of client
        self.attacks: Counter[str] = Counter()

    async def healthy(self, number: int, chance: random.Random) -> None:
        """Ask again and again as a client should, after some thought."""
        headers = {"authorization": f"Bearer {self.tokens[number]}", "accept": ACCEPT}
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False) as client:
            while True:
                await asyncio.sleep(chance.uniform(0, THINKING))
                name, (method, server, path, body, end) = chance.choice(list(ASKS.items()))
                beside, begun, url = self.beside, time.monotonic(), f"http://127.0.0.1:{self.ports[server]}"
                try:
                    answer = await client.request(method, url + path, json=body)
                except httpx.HTTPError as error:
                    self.statuses["healthy", type(error).__name__] += 1
                    continue
                self.statuses["healthy", f"{answer.status_code}{' cut' * (end not in answer.text)}"] += 1
                self.seconds[beside, name].append(time.monotonic() - begun)

    async def harmful(self, number: int, chance: random.Random) -> None:
        """Do again and again what no client should, to either server."""
        for name in itertools.islice(itertools.cycle(ATTACKS), number, None):
            self.attacks[name] += 1
            server = chance.choice(list(self.ports))
            with suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[server])
                answer = asyncio.create_task(reader.readline())
                if name == "read nothing":
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                try:
                    request = Request(server, self.ports[server], self.tokens[number])
                    writer.write(ATTACKS[name](request, chance))
                    async with asyncio.timeout(chance.uniform(0, 0.5) if name == "vanish" else PATIENCE):
                        while not (answer.done() or writer.transport.is_closing()):
                            writer.write(b"x" if name in ("unfinished head", "slow body") else b"")
                            await asyncio.wait({answer}, timeout=1)
                    if answer.done() and (line := answer.result()):
                        self.statuses["harmful", line[9:12].decode("latin-1")] += 1
                finally:
                    answer.cancel()
                    writer.transport.abort()
            await asyncio.sleep(chance.uniform(0, 1))


async def answer_as_model(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Stream twenty words to any request, as an endpoint of the OpenAI protocol would."""
    with closing(writer), suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0] or 0))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for delta, reason in [*(({"content": f"word{n} "}, None) for n in range(20)), ({}, "stop")]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            writer.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
            await writer.drain()
            await asyncio.sleep(0.02)
        writer.write(b"data: [DONE]\n\n")


def used(process: subprocess.Popen[bytes]) -> str:
    """The resident memory of a process in MB, and its file descriptors, as cells of a table."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    files = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    return f"{pages * os.sysconf('SC_PAGE_SIZE') / 2**20:.1f} | {files}"


def start(words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "kgot_lab", *words.split()], stderr=subprocess.DEVNULL)


async def until_loaded(ports: dict[str, int]) -> float:
    """Wait until the servers have read their graphs; returns the seconds until `serve` answered /health."""
    begun, first = time.monotonic(), 0.0
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        while True:
            with suppress(httpx.TransportError):
                health = (await client.get(f"http://127.0.0.1:{ports['serve']}/health")).json()
                first = first or time.monotonic() - begun
                if not health["loading"] and await client.get(f"http://127.0.0.1:{ports['mcp']}/mcp"):
                    return first
            await asyncio.sleep(0.05)


async def run(minutes: float, clients: int, folder: Path) -> str:
    """The tables of a run."""
    model = await asyncio.start_server(answer_as_model, "127.0.0.1", 0)
    store, graph = folder / "experts.db", folder / "graph.json"
    write_graph(cookbook(), graph)
    with closing(open_experts(store)) as tables:
        tokens = [new_token(tables, f"tenant{number}") for number in range(clients)]
    with listening_socket("127.0.0.1", 0) as one, listening_socket("127.0.0.1", 0) as other:  # free ports
        ports = {"serve": one.getsockname()[1], "mcp": other.getsockname()[1]}
    fake = f"http://127.0.0.1:{model.sockets[0].getsockname()[1]}/v1#fake"
    servers = {
        "serve": start(f"serve --tokens --store {store} --model {fake} --port {ports['serve']}"),
        "mcp": start(f"mcp {graph} --http {ports['mcp']}"),
    }
    load, tasks, warm = Load(ports, tokens), list[asyncio.Task[None]](), min(60.0, 12 * minutes)
    try:
        first = await until_loaded(ports)
        tasks += [asyncio.create_task(load.healthy(n, random.Random(n))) for n in range(clients // 2)]
        await asyncio.sleep(12 * minutes)
        load.beside = True
        others = range(clients // 2, clients)
        tasks += [asyncio.create_task(load.harmful(n, random.Random(n))) for n in others]
        await asyncio.sleep(warm)
        early = {name: used(process) for name, process in servers.items()}
        await asyncio.sleep(60 * minutes - warm)
        rows = [f"| {name} | {early[name]} | {used(process)} |" for name, process in servers.items()]
        assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
    finally:
        for process in servers.values():
            process.terminate()
            process.wait(20)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        model.close()
    head = "| server | MB after the first minute | file descriptors | MB at the end | file descriptors |"
    memory = "\n".join([head, _LINE[:-5], *rows])
    return f"{table(load)}\n\n{memory}\n\nFirst answer of /health after {first:.2f} s."


def table(load: Load) -> str:
    """The seconds for healthy clients by request, alone and beside the harmful ones; statuses and attacks."""
    rows = ["| request | median s, alone | beside the others | ratio | 95th percentile | answers |", _LINE]
    for shown, names in {**{name: [name] for name in ASKS}, "all": list(ASKS)}.items():
        alone, beside = ([s for name in names for s in load.seconds[later, name]] for later in (False, True))
        before, now = statistics.median(alone), statistics.median(beside)
        cells = f"{now / before:.2f} | {statistics.quantiles(beside, n=20)[-1]:.3f} | {len(beside):,}"
        rows.append(f"| {shown} | {before:.3f} | {now:.3f} | {cells} |")
    statuses = ", ".join(f"{who} {status} {n:,}" for (who, status), n in sorted(load.statuses.items()))
    failed = sum(count for (_, status), count in load.statuses.items() if status.startswith("5"))
    attacks = ", ".join(f"{name} {count:,}" for name, count in load.attacks.items())
    return "\n".join([*rows, f"\nStatuses: {statuses}; 5xx in all: {failed}. Attacks: {attacks}."])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of all clients, after the healthy alone")
    parser.add_argument("--clients", type=int, default=200, help="half of them healthy")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--note", default="", help="what else the computer did, for the report")
    asked, before = parser.parse_args(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        shown = asyncio.run(run(asked.minutes, asked.clients, Path(folder)))
    head = f"{asked.clients} clients, {asked.minutes:g} minutes, {os.cpu_count()} cores. Load average {before:.1f} "
    head += f"before, {os.getloadavg()[2]:.1f} in the last 15 minutes. {asked.note}".strip()
    text = f"# Servers under load\n\nThe model is a fake. {head}\n\n{shown}\n"
    print(text)
    asked.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
