"""Two server processes behind one address, on one PostgreSQL: one is killed under load, and no acknowledged
message is lost.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress

import httpx
import pytest
from support.claim_places import InPostgres
from support.waiting import AMPLE, until

from kgot_lab.errors import BadInput
from kgot_lab.experts.http.connections import listening_socket
from kgot_lab.experts.repository import open_experts

pytestmark = pytest.mark.extended

EXPERT = "expert_cook"
SERVER = """
import sys, time
from kgot_lab.experts.http.connections import LimitedServer
from kgot_lab.experts.http.connections import listening_socket
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.graph_folder import GraphFolder
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertModels, ExpertService
from kgot_lab.kgos.schemas.vocabularies import cookbook
from kgot_lab.types import Reply

url, namespace, port = sys.argv[1], sys.argv[2], int(sys.argv[3])

class Slowly:
    name = "slowly"
    def __call__(self, prompt):
        raise NotImplementedError
    def stream(self, prompt):
        word = prompt.messages[-1].text.split()[0]
        for _ in range(10):
            time.sleep(0.02)
            yield word + " "
        yield Reply(" ".join([word] * 10))

service = ExpertService(open_experts(url, namespace=namespace), GraphFolder(more={"cookbook": cookbook}), ExpertModels({"m": Slowly}, "m"))
LimitedServer(expert_app(service)).run([listening_socket("127.0.0.1", port, shared=True)])
"""


class Reader(threading.Thread):
    """Asks again and again until it may stop; notes what was acknowledged: which question began, which answer
    was done.
    """

    def __init__(self, address: str, name: str):
        super().__init__(name=name, daemon=True)
        self.address, self.begun, self.done, self.stop = address, {}, {}, False

    def run(self) -> None:
        number = 0
        while not self.stop:
            number += 1
            with suppress(httpx.HTTPError):
                self._ask(f"{self.name}x{number} tell me of caching")

    def _ask(self, question: str) -> None:
        body, text, conversation = {"query": question}, "", ""
        with httpx.stream(
            "POST", f"{self.address}/api/experts/{EXPERT}/chat", json=body, timeout=AMPLE, trust_env=False
        ) as answer:
            for line in answer.iter_lines():
                event = json.loads(line[6:]) if line.startswith("data: ") else {}
                if event.get("type") == "conversation_start":
                    conversation = event["conversation_id"]
                    self.begun[conversation] = question
                elif event.get("type") == "token":
                    text += event["content"]
                elif event.get("type") == "done":
                    self.done[conversation] = text


def test_one_of_two_servers_is_killed_under_load_and_nothing_acknowledged_is_lost(postgres_url):
    at = InPostgres(postgres_url, "two servers")
    tables = open_experts(at.url, namespace=at.namespace)
    from kgot_lab.experts.expert import expert_config

    tables.add_expert(
        expert_config({"name": "Cook", "kg_db_id": "cookbook", "persona": {"name": "Cook"}}), id=EXPERT
    )
    with listening_socket(
        "127.0.0.1", 0, shared=True
    ) as kept:  # so that the port stays ours until both listen
        port = kept.getsockname()[1]
        words = [sys.executable, "-c", SERVER, at.url, at.namespace, str(port)]
        servers = [subprocess.Popen(words, stderr=subprocess.PIPE) for _ in range(2)]
    address = f"http://127.0.0.1:{port}"
    readers = [Reader(address, f"reader{number}") for number in range(6)]

    def up() -> bool:
        with suppress(httpx.HTTPError):
            return httpx.get(f"{address}/health", trust_env=False).status_code == 200
        return False

    try:
        until(up, "a server answers")
        for reader in readers:
            reader.start()
        until(lambda: all(len(reader.done) >= 2 for reader in readers), "every reader has two answers")
        servers[0].send_signal(signal.SIGKILL)
        servers[0].wait(AMPLE)
        before = {reader.name: len(reader.done) for reader in readers}
        until(
            lambda: all(len(reader.done) >= before[reader.name] + 2 for reader in readers),
            "the other server goes on for all",
        )
        for reader in readers:
            reader.stop = True
        for reader in readers:
            reader.join(AMPLE)
        assert servers[1].poll() is None
        for reader in readers:
            for conversation, question in reader.begun.items():
                said = tables.messages(conversation)
                assert said[0].content == question
                if conversation in reader.done:
                    assert said[1].content == reader.done[conversation] == f"{question.split()[0]} " * 10
    finally:
        for server in servers:
            server.kill()
            server.communicate()
        tables.close()


def test_a_port_that_is_taken_is_said():
    with listening_socket("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(BadInput, match="choose another --port"):
            listening_socket("127.0.0.1", first.getsockname()[1])
