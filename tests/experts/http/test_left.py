"""A client that leaves in the middle of an answer: the model stops, the place is free, and what was said is
kept as stopped.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.expert_server import (
    COOK_ID,
    HeldModel,
    ServedExperts,
    echoing,
    expert_office,
    served,
    streamed_events,
)
from support.waiting import until

from kgot_lab.experts.http.auth import GuardLimits, GuardRules

# words that may be made before somebody reads them, and the one at which it is seen that nobody does
AHEAD = 34


@contextmanager
def holding(tail: str = "", **limits) -> Iterator[tuple[ServedExperts, HeldModel]]:
    model = HeldModel(tail=tail)
    with served(expert_office(model, echoing()), GuardRules(limits=GuardLimits(**limits))) as server:
        try:
            yield server, model
        finally:
            model.finish()


def answers(server: ServedExperts) -> list[dict]:
    found, _ = server.service.conversations(COOK_ID, "local")
    return [each for one in found for each in server.stored(one.id) if each["role"] == "assistant"]


@pytest.mark.parametrize("path", [f"/api/experts/{COOK_ID}/chat", "/v1/chat/completions"])
def test_a_reader_who_leaves_stops_the_model(path):
    body = {"query": "Go on"}
    if "chat/" in path:
        body = {"model": COOK_ID, "stream": True, "messages": [{"role": "user", "content": "Go on"}]}
    with holding() as (server, model):
        with server.client.stream("POST", path, json=body) as answer:
            model.may_write(3)
            lines = answer.iter_lines()  # kept, since the line is closed with what reads it
            while "w2" not in next(lines):
                pass
            assert server.chats == 1
        model.may_write(1000)
        until(lambda: model.stopped == 1, "the model is stopped")
        assert model.asked <= 3 + AHEAD
        until(lambda: server.chats == 0, "the place is free")
        (kept,) = answers(server)
        assert kept["content"].startswith("w0 w1 w2 ") and kept["metadata"]["stopped"] is True
        assert len(kept["content"].split()) <= model.asked


def test_a_reader_who_leaves_while_the_whole_answer_is_waited_for_stops_the_model():
    with holding() as (server, model):
        body = json.dumps({"model": COOK_ID, "messages": [{"role": "user", "content": "Go on"}]}).encode()
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as line:
            head = (
                "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            )
            line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            until(lambda: model.asked == 1, "the model is asked")
            model.may_write(2)
            until(lambda: model.asked == 3, "two words are written")
        # the server hears of it at some time after; one word a look, so that it can stop at any
        until(lambda: model.may_write(1) or model.stopped == 1, "the model is stopped")
        until(lambda: server.chats == 0, "the place is free")
        (kept,) = answers(server)
        assert kept["content"].startswith("w0 w1 ") and kept["metadata"]["stopped"] is True


@pytest.mark.extended
def test_a_slow_reader_holds_the_model_back():
    with holding(tail="." * 5000) as (server, model):
        body = json.dumps({"query": "Go on"}).encode()
        with socket.socket() as line:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
            head = f"POST /api/experts/{COOK_ID}/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            line.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            model.may_write(10**6)
            until(lambda: _stands_still(model), "the model waits for its reader")
        until(lambda: model.stopped == 1, "the model is stopped")
        until(lambda: server.chats == 0, "the place is free")


def _stands_still(model: HeldModel) -> bool:
    """Whether nothing was asked of it for a while: of that there is no other sign."""
    before = model.asked
    threading.Event().wait(1.0)
    return 0 < before == model.asked


def test_a_conversation_that_is_deleted_while_its_answer_is_written_frees_the_place_however_it_ends():
    with holding(streams=1) as (server, model):
        for leaves in (True, False):
            with server.client.stream(
                "POST", f"/api/experts/{COOK_ID}/chat", json={"query": "Go on"}
            ) as answer:
                events = streamed_events(answer)
                id = next(events)["conversation_id"]
                assert server.client.delete(f"/api/experts/{COOK_ID}/conversations/{id}").status_code == 200
                if not leaves:
                    model.finish()
                    assert [event["type"] for event in events][-2:] == ["error", "done"]
            model.may_write(100)
            until(lambda: server.chats == 0, "the place is free")


def test_an_answer_that_takes_too_long_is_ended_and_kept_as_stopped():
    with holding(answer_seconds=0.5) as (server, model):
        model.may_write(2)
        events = server.ask("Go on")
        assert [event["type"] for event in events][-2:] == ["error", "done"]
        assert "0.5 s" in events[-2]["content"]
        model.may_write(100)
        until(lambda: server.chats == 0, "the place is free")
        assert answers(server)[0]["metadata"]["stopped"] is True


def test_a_server_that_ends_stops_its_models():
    model = HeldModel()
    with served(expert_office(model)) as server:
        reading = threading.Thread(target=_read, args=(server.url,), daemon=True)
        reading.start()
        until(lambda: model.asked == 1, "the model is asked")
    model.may_write(100)
    until(lambda: model.stopped == 1, "the model is stopped")
    reading.join()


def _read(url: str) -> None:
    import httpx

    with httpx.Client(trust_env=False) as client, pytest.raises(httpx.HTTPError):
        client.post(f"{url}/api/experts/{COOK_ID}/chat", json={"query": "Go on"}, timeout=120)
