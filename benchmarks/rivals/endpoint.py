"""One OpenAI-compatible endpoint on loopback for all systems: the local model, MiniLM's vectors, and a count.

llama.cpp's server, as xllamacpp runs it, listens on a port of its own. A small server in front of it checks the
key, limits the length of a reply, and notes every call: phase, tokens, seconds, how it ended. A stopped index
goes on without asking the model again: what was answered before is answered from the notes.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from kgot_lab.embedding.pretrained import MiniLM

CONTEXT = 16384  # tokens of a prompt and its reply
PROMPT_BUDGET = 2000  # tokens of what a system retrieves for one question, where it has such a limit
LONGEST_REPLY = 1024  # tokens; small models repeat themselves without an end
CALL_SECONDS = 1800  # a call that takes longer has failed
MODEL = "qwen2.5-coder-1.5b-instruct"  # the name that the systems ask for; the file decides what answers
EMBEDDER = "all-minilm-l6-v2"
DIMENSION = MiniLM.dimension
INDEX = "index"
Call = dict[str, Any]


class Endpoint:
    """The model's server and the counting server before it, as a context manager.

    `notes` is the file of all calls. `phase` is what calls are counted for: "index" or the id of a question.
    """

    def __init__(self, model: Path, notes: Path, threads: int = 2, longest: int = LONGEST_REPLY) -> None:
        self._longest = longest
        self.key, self.phase = secrets.token_urlsafe(16), ""
        self._notes, self._lock = notes, threading.Lock()
        self._turn, self._embedding = threading.Lock(), threading.Lock()
        self._engine, self._embedder = _start_engine(model, self.key, threads), MiniLM()
        self._known = self._replies_of_index()
        self._repeated: Counter[str] = Counter()
        self.replayed_seconds = 0.0  # what the calls took that were answered from the notes
        handler = type("Handler", (_Handler,), {"endpoint": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The address that an OpenAI client takes as its base."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stop both servers. A reply that is being written is left to the end of the program."""
        self._server.shutdown()
        self._server.server_close()
        if self._turn.acquire(timeout=5):
            self._engine.clear()  # the last reference: llama.cpp's server ends

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def chat(self, body: dict[str, Any]) -> tuple[int, bytes]:
        """Answer a request for a completion, and note it. One at a time, as the model has one context."""
        asked = min(
            x for x in (body.get("max_tokens"), body.get("max_completion_tokens"), self._longest) if x
        )
        body = {**body, "max_tokens": asked, "stream": False, "cache_prompt": True}
        body.pop("max_completion_tokens", None)
        with self._turn:
            key = self._key_of(body)
            if self.phase == INDEX and key in self._known:
                status, answer, seconds = self._known[key]
                self.replayed_seconds += seconds
                return status, answer
            began = time.perf_counter()
            status, answer = self._ask_engine(body)
            self._note(_chat_call(answer, status), key, began, status, answer)
        return status, answer

    def embed(self, body: Mapping[str, Any]) -> tuple[int, bytes]:
        """Return the vectors of texts, and note how many."""
        texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
        began = time.perf_counter()
        with self._embedding:
            vectors = self._embedder.embed(texts)
        data = [
            {"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        answer = {"object": "list", "model": EMBEDDER, "data": data, "usage": usage}
        self._note({"kind": "embed", "texts": len(texts)}, "", began, 200, b"")
        return 200, json.dumps(answer).encode()

    def _ask_engine(self, body: dict[str, Any]) -> tuple[int, bytes]:
        import httpx

        url = f"{self._engine[0].listening_address}/v1/chat/completions"
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            reply = httpx.post(url, json=body, headers=headers, timeout=CALL_SECONDS, trust_env=False)
        except httpx.HTTPError as error:
            return 504, json.dumps({"error": {"message": f"{type(error).__name__}: {error}"}}).encode()
        return reply.status_code, reply.content

    def _key_of(self, body: Mapping[str, Any]) -> str:
        """Return a key of a request, and of how often it has been asked since the start."""
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        self._repeated[digest] += 1
        return f"{digest} {self._repeated[digest]}"

    def _note(self, call: Call, key: str, began: float, status: int, answer: bytes) -> None:
        kept = (
            {"key": key, "status": status, "answer": answer.decode()} if self.phase == INDEX and key else {}
        )
        row = {"phase": self.phase, **call, "seconds": round(time.perf_counter() - began, 2), **kept}
        with self._lock, self._notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _replies_of_index(self) -> dict[str, tuple[int, bytes, float]]:
        rows = [row for row in read_rows(self._notes) if row["phase"] == INDEX and row.get("key")]
        return {
            row["key"]: (200, row["answer"].encode(), row["seconds"]) for row in rows if row["status"] == 200
        }


class _Handler(BaseHTTPRequestHandler):
    """Passes on what has the key, and answers the two addresses that the systems ask."""

    endpoint: Endpoint

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {self.endpoint.key}":
            return self._send(401, b'{"error": {"message": "wrong key"}}')
        if self.path.endswith("/chat/completions"):
            status, answer = self.endpoint.chat(body)
            if body.get("stream") and status == 200:
                return self._send_stream(json.loads(answer))
            return self._send(status, answer)
        if self.path.endswith("/embeddings"):
            return self._send(*self.endpoint.embed(body))
        return self._send(404, b'{"error": {"message": "no such address"}}')

    def _send(self, status: int, answer: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _send_stream(self, answer: dict[str, Any]) -> None:
        """Send a whole reply as the one event of a stream, for a client that streams."""
        choice = answer["choices"][0]
        delta = {"index": 0, "delta": choice["message"], "finish_reason": choice["finish_reason"]}
        event = {**answer, "object": "chat.completion.chunk", "choices": [delta]}
        self._send(200, f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def _chat_call(answer: bytes, status: int) -> Call:
    if status != 200:
        return {"kind": "chat", "read": 0, "written": 0, "end": f"error {status}"}
    reply = json.loads(answer)
    usage = reply["usage"]
    reused = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    end = reply["choices"][0]["finish_reason"]
    return {
        "kind": "chat", "read": usage["prompt_tokens"], "reused": reused,
        "written": usage["completion_tokens"], "end": end,
    }  # fmt: skip


def _start_engine(model: Path, key: str, threads: int) -> list[Any]:
    """Start llama.cpp's server on a free port of loopback, with one context."""
    import xllamacpp

    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.n_ctx, settings.n_parallel, settings.port = CONTEXT, 1, 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.cache_ram_mib, settings.n_ctx_checkpoints = 0, 0
    settings.fit_params = settings.warmup = settings.ui = settings.prefill_assistant = False
    settings.offline, settings.verbosity = True, -1
    settings.timeout_read = settings.timeout_write = CALL_SECONDS
    settings.hostnames, settings.api_keys = ["127.0.0.1"], [key]
    return [xllamacpp.Server(settings)]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines, without a last one that was cut off by a stop."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text("utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


def count_calls(notes: Path) -> dict[str, Counter[str]]:
    """Return the counts of each phase: calls, tokens read and written, replies cut off, errors, seconds."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read_rows(notes):
        counts = found[row["phase"]]
        if row["kind"] == "embed":
            counts.update({"texts": row["texts"], "embed_seconds": row["seconds"]})
            continue
        counts.update({key: row[key] for key in ("read", "reused", "written", "seconds") if key in row})
        counts.update({"calls": 1, "cut": row["end"] == "length", "refused": row["end"].startswith("error")})
    return found
