"""A server of experts on loopback for tests: a real one, with models that say what they are told, and hold
back until they may go on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from kgot_lab.errors import LLMError
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.http.auth import GuardRules
from kgot_lab.experts.http.connections import ConnectionLimits, LimitedServer, listening_socket
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.http.tokens import TenantRole, new_token
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.llm.presets import FREE
from kgot_lab.llm.recorded import Scripted
from kgot_lab.types import LLM, Prompt, Reply, Usage
from support.waiting import AMPLE, until

COOK: Mapping[str, Any] = {
    "name": "Cookbook",
    "kg_db_id": "cookbook",
    "persona": {"name": "Cook", "instructions": "You help."},
}
COOK_ID = "expert_cook"
Event = dict[str, Any]


class HeldModel:
    """Writes w0, w1, …, each word only when it may; notes how many it was asked for, and that it was stopped.
    `tail` makes words long.
    """

    price = FREE

    def __init__(self, name: str = "held", tail: str = ""):
        self.name, self._tail = name, tail
        self.asked = 0  # how many words
        self.begun = 0  # how many replies
        self.stopped = 0
        self._may = threading.Semaphore(0)
        self._over = False

    def __call__(self, prompt: Prompt) -> Reply:
        raise LLMError("this model only streams")

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        self.begun += 1
        words = []
        try:
            while not self._over:
                self.asked += 1
                assert self._may.acquire(timeout=AMPLE)
                words.append(f"w{len(words)}{self._tail} ")
                yield words[-1]
        except GeneratorExit:
            self.stopped += 1
            raise
        yield Reply("".join(words).strip(), Usage(1, len(words)))

    def may_write(self, words: int) -> None:
        """So many words more."""
        self._may.release(words)

    def finish(self) -> None:
        """The next word is the last."""
        self._over = True
        self._may.release(10_000)


class FailingModel:
    """Says some words, and then fails with an error of the test's own."""

    price = FREE

    def __init__(self, error: Exception, said: str = "", name: str = "failing"):
        self.name, self._error, self._said = name, error, said

    def __call__(self, prompt: Prompt) -> Reply:
        raise self._error

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        if self._said:
            yield self._said
        raise self._error


@cache
def the_cookbook() -> PropertyGraph:
    """The curated graph, read once for all tests."""
    return cookbook()


def echoing(name: str = "echo") -> Scripted:
    """A model that says again what it was asked; asked what a message would change, it finds nothing."""
    return Scripted(
        lambda prompt: '{"changes": []}' if prompt.schema else f"You asked: {prompt.messages[-1].text}", name
    )


def expert_office(
    *models: LLM,
    place: Path | str = ":memory:",
    folder: Path | None = None,
    expert: Mapping[str, Any] | None = COOK,
) -> ExpertService:
    """An service with one expert on the cookbook; the first model is the usual one."""
    kept = models or (echoing(),)
    makers: dict[str, Callable[[], LLM]] = {each.name: lambda each=each: each for each in kept}  # type: ignore[misc]
    graphs = GraphFolder(folder, {"cookbook": the_cookbook})
    service = ExpertService(open_experts(place), graphs, ExpertModels(makers, kept[0].name))
    if expert is not None and not service.tables.experts():
        service.create(dict(expert))
    return service


@dataclass
class ServedExperts:
    """A server that runs: its address, its service, and a client of it."""

    url: str
    service: ExpertService
    client: httpx.Client

    def reset(self) -> None:
        """Forget all that is kept, but for the one expert on the cookbook."""
        tables, new = self.service.tables, open_experts()
        tables.storage.close()
        tables.storage, tables.now = new.storage, new.now
        self.service.create(dict(COOK))

    def token(self, tenant: str, role: TenantRole = "user") -> str:
        return new_token(self.service.tables, tenant, role)

    def ask(
        self, question: str, *, expert: str = COOK_ID, headers: Mapping[str, str] | None = None, **more: Any
    ) -> list[Event]:
        """The events of a chat, up to its end."""
        answer = self.client.post(
            f"/api/experts/{expert}/chat", json={"query": question, **more}, headers=headers
        )
        assert answer.status_code == 200, answer.text
        return events_of(answer.text)

    def stored(
        self, conversation: str, *, expert: str = COOK_ID, headers: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """The messages of a conversation, as the server shows them."""
        answer = self.client.get(f"/api/experts/{expert}/conversations/{conversation}", headers=headers)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["messages"])

    @property
    def chats(self) -> int:
        """How many chats are going on."""
        return int(self.client.get("/health").json()["chats"])


def events_of(text: str) -> list[Event]:
    """The events of a stream that has come whole."""
    blocks = text.split("\n\n")
    assert blocks[-1] == "" and all(block.startswith("data: ") for block in blocks[:-1]), text
    return [json.loads(block.removeprefix("data: ")) for block in blocks[:-1]]


def streamed_events(answer: httpx.Response) -> Iterator[Event]:
    """The events of a stream as they come."""
    for line in answer.iter_lines():
        if line:
            yield json.loads(line.removeprefix("data: "))


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token."""
    return {"authorization": f"Bearer {token}"}


def text_of(events: list[Event]) -> str:
    """The answer that some events tell."""
    return "".join(event["content"] for event in events if event["type"] == "token")


@contextmanager
def served(
    service: ExpertService,
    rules: GuardRules | None = None,
    learned: LearnedGraphs | None = None,
    limits: ConnectionLimits | None = None,
) -> Iterator[ServedExperts]:
    """A real server of an service on a free port of loopback, until the block ends."""
    listening = listening_socket("127.0.0.1", 0)
    server = LimitedServer(expert_app(service, rules or GuardRules(), learned), limits)
    server.config.timeout_graceful_shutdown = 1
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive(), "the server listens")
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with httpx.Client(base_url=url, timeout=AMPLE, trust_env=False) as client:
            yield ServedExperts(url, service, client)
    finally:
        server.should_exit = True
        thread.join(AMPLE)
        listening.close()
