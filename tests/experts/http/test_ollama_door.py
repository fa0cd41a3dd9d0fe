"""The protocol of Ollama, asked as its clients ask: lines of JSON, one object, options and errors."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.expert_server import COOK_ID, FailingModel, ServedExperts, echoing, expert_office, served

from kgot_lab.errors import LLMError
from kgot_lab.llm.recorded import Scripted


@pytest.fixture(scope="module")
def model() -> Scripted:
    return echoing()


@pytest.fixture(scope="module")
def server(model: Scripted) -> Iterator[ServedExperts]:
    service = expert_office(model, FailingModel(LLMError("/home/ada sk-key"), "It ", "broken"))
    broken = {
        "name": "broken",
        "kg_db_id": "cookbook",
        "persona": {"name": "broken"},
        "models": {"chat": "broken"},
    }
    service.create(broken)
    with served(service) as running:
        yield running


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def sent(server: ServedExperts, path: str, **body: object) -> list[dict]:
    """The lines of an answer of the expert."""
    response = server.client.post(f"/api/{path}", json={"model": COOK_ID, **body})
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_experts_are_listed_and_shown_as_models(server):
    (cook,) = [
        each
        for each in server.client.get("/api/tags").json()["models"]
        if each["name"] == f"{COOK_ID}:latest"
    ]
    assert cook["model"] == cook["name"] and len(cook["digest"]) == 16 and cook["details"]["families"]
    for name in (COOK_ID, f"{COOK_ID}:latest"):
        shown = server.client.post("/api/show", json={"model": name}).json()
        assert shown["capabilities"] == ["completion"] and shown["system"] == "You help."
    assert server.client.get("/api/version").json()["version"]


def test_a_chat_comes_in_lines_and_goes_on_by_what_was_said(server):
    *words, end = sent(server, "chat", messages=[user("Which cache?")])
    assert "".join(line["message"]["content"] for line in words) == "You asked: Which cache?"
    assert not any(line["done"] for line in words)
    assert (end["done"], end["done_reason"], end["model"]) == (True, "stop", COOK_ID) and end[
        "eval_count"
    ] > 0
    before = server.service.conversations(COOK_ID, "local")[1]
    talk = [
        user("Which cache?"),
        {"role": "assistant", "content": "You asked: Which cache?"},
        user("And then?"),
    ]
    (whole,) = sent(server, "chat", messages=talk, stream=False)
    assert whole["message"] == {"role": "assistant", "content": "You asked: And then?"} and whole["done"]
    assert server.service.conversations(COOK_ID, "local")[1] == before


def test_a_question_is_answered_with_the_options_of_the_client(server, model):
    options = {"num_predict": 3, "temperature": 0.5, "seed": 9, "stop": ["END"]}
    (whole,) = sent(server, "generate", prompt="a b c d e f", system="Rhyme.", stream=False, options=options)
    assert (whole["response"], whole["done_reason"]) == ("You asked: a", "length")
    asked = model.asked[-1]
    assert (asked.temperature, asked.seed, asked.max_tokens) == (0.5, 9, 3)
    assert "Rhyme." in asked.messages[0].text
    *_, end = sent(server, "generate", prompt="a END b", options={"stop": "END", "num_predict": -1})
    assert end["done_reason"] == "stop" and end["response"] == ""


def test_a_model_is_loaded_by_asking_nothing(server):
    for path, field in (("chat", "message"), ("generate", "response")):
        (loaded,) = sent(server, path, keep_alive=300)
        assert loaded["done_reason"] == "load" and field in loaded


@pytest.mark.parametrize(
    ("path", "wrong", "status", "words"),
    [
        ("chat", {"model": "nobody:latest"}, 404, "no"), ("chat", {"format": "json"}, 422, "format"),
        ("chat", {"tools": [{"type": "function"}]}, 422, "tools"), ("chat", {"think": True}, 422, "think"),
        ("chat", {"options": {"top_k": 5}}, 422, "top_k"), ("chat", {"options": {"temperature": 9}}, 422, "temperature"),
        ("chat", {"messages": [{**user("x"), "images": ["aGk="]}]}, 422, "images"),
        ("chat", {"messages": [{"role": "tool", "content": "5"}, user("x")]}, 422, "tools"),
        ("generate", {"prompt": "x", "context": [1, 2]}, 422, "context"), ("generate", {"prompt": "x", "raw": True}, 422, "raw"),
        ("generate", {"prompt": "x", "suffix": "y"}, 422, "suffix"), ("generate", {"prompt": "x", "images": ["a"]}, 422, "images"),
        ("show", {"model": "nobody"}, 404, "no"),
    ],
)  # fmt: skip
def test_what_is_not_honoured_is_refused_in_the_words_of_the_protocol(server, path, wrong, status, words):
    body = {"model": COOK_ID, **({"messages": [user("x")]} if path == "chat" else {}), **wrong}
    response = server.client.post(f"/api/{path}", json=body)
    assert response.status_code == status and list(response.json()) == ["error"]
    assert words in response.json()["error"] and "pydantic" not in response.text


def test_a_model_that_fails_is_an_error_and_no_end(server):
    body = {"model": "expert_broken", "messages": [user("x")]}
    *_, last = map(json.loads, server.client.post("/api/chat", json=body).text.splitlines())
    assert list(last) == ["error"] and "sk-key" not in last["error"] and "/home" not in last["error"]
    whole = server.client.post("/api/chat", json={**body, "stream": False})
    assert whole.status_code == 503 and list(whole.json()) == ["error"]
