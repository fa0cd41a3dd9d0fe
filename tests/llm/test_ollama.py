"""Ollama's own protocol, since its OpenAI one ignores num_ctx: a real server on the loopback that speaks it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.openai_server import Answer, Server, ollama_refuses, ollama_says, openai_server

from kgot_lab.errors import LLMError
from kgot_lab.llm import connect
from kgot_lab.llm.openai_compatible import OpenAICompatible, Settings
from kgot_lab.llm.presets import FREE, ollama_address
from kgot_lab.types import Message, Prompt, Usage

HELLO = Prompt(
    (Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.7, seed=3, max_tokens=50
)
SHAPE = {"type": "object", "properties": {"answer": {"type": "string"}}}
_NONE = Settings()


@contextmanager
def asking(
    monkeypatch: pytest.MonkeyPatch, *answers: Answer, model: str = "tiny", settings: Settings = _NONE
) -> Iterator[tuple[OpenAICompatible, Server]]:
    with openai_server(*answers) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
        llm = connect(f"ollama:{model}", settings=settings, sleep=lambda _: None)
        assert isinstance(llm, OpenAICompatible)
        try:
            yield llm, server
        finally:
            llm.close()


def test_a_prompt_arrives_with_its_context_and_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(monkeypatch, ollama_says("Hi."), model="llama3.2:3b", settings=Settings(num_ctx=16384)) as (
        llm,
        server,
    ):
        reply = llm(HELLO)
    assert (reply.text, reply.usage, reply.cut) == ("Hi.", Usage(90, 40), False)
    sent = server.bodies[0]
    assert (sent["path"], sent["model"], sent["stream"]) == ("/api/chat", "llama3.2:3b", False)
    assert sent["options"] == {"num_predict": 50, "temperature": 0.7, "seed": 3, "num_ctx": 16384}
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
    ]
    assert not {"think", "format", "max_tokens"} & set(sent)
    assert llm.name == "ollama:llama3.2:3b [num_ctx=16384]" and llm.price == FREE


def test_a_context_that_nobody_named_is_left_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(monkeypatch, ollama_says("Hi.")) as (llm, server):
        llm(HELLO)
    assert "num_ctx" not in server.bodies[0]["options"]


def test_a_schema_is_the_format_and_where_that_is_refused_it_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shaped = Prompt(HELLO.messages, schema=SHAPE)
    with asking(
        monkeypatch,
        ollama_says("{}"),
        ollama_refuses(400, "invalid JSON schema in format"),
        ollama_says("{}"),
    ) as (llm, server):
        llm(shaped)
        llm(shaped)
    assert server.bodies[0]["format"] == SHAPE
    assert "format" not in server.bodies[2] and '"answer"' in server.bodies[2]["messages"][-1]["content"]


def test_images_are_sent_as_ollama_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(monkeypatch, ollama_says("a cat")) as (llm, server):
        llm(Prompt((Message("user", "What is this?", ("data:image/png;base64,iVBORw0KGgo=",)),)))
    assert server.bodies[0]["messages"] == [
        {"role": "user", "content": "What is this?", "images": ["iVBORw0KGgo="]}
    ]


def test_thoughts_come_apart_and_get_room(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(monkeypatch, ollama_says("42", thinking="let me see " * 3), model="qwen3:8b") as (
        llm,
        server,
    ):
        reply = llm(HELLO)
    assert server.bodies[0]["options"]["num_predict"] == 8050
    assert reply.text == "42" and 30 < reply.usage.reasoning_tokens < 40


@pytest.mark.parametrize(
    ("effort", "think"), [("none", False), ("low", "low"), ("high", "high"), ("xhigh", "high")]
)
def test_reasoning_effort_is_what_ollama_calls_think(
    monkeypatch: pytest.MonkeyPatch, effort: str, think: object
) -> None:
    with asking(monkeypatch, ollama_says("42"), settings=Settings(reasoning_effort=effort)) as (llm, server):
        llm(HELLO)
    assert server.bodies[0]["think"] == think
    assert "reasoning_effort" not in server.bodies[0]


def test_a_model_that_cannot_think_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    no = ollama_refuses(400, '"tiny" does not support thinking')
    with asking(monkeypatch, no, ollama_says("42"), settings=Settings(reasoning_effort="low")) as (
        llm,
        server,
    ):
        assert llm(HELLO).text == "42"
    assert ["think" in body for body in server.bodies] == [True, False]
    assert llm.left_out == ["reasoning_effort"]


def test_a_cut_reply_says_so_and_an_empty_one_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(
        monkeypatch, ollama_says("", thinking="hm", ended="length"), ollama_says("Once", ended="length")
    ) as (llm, server):
        reply = llm(HELLO)
    assert (reply.text, reply.cut, reply.usage.completion_tokens, len(server.bodies)) == ("Once", True, 80, 2)


def test_a_model_that_was_not_pulled_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    no = ollama_refuses(404, "model 'tiny' not found")
    with (
        asking(monkeypatch, no) as (llm, _),
        pytest.raises(LLMError, match=r"model 'tiny' not found.*Check the model name 'tiny'"),
    ):
        llm(HELLO)


@pytest.mark.parametrize("answer", [Answer({"choices": []}), Answer([]), Answer("{not json")])
def test_what_is_no_answer_of_ollama_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, answer: Answer
) -> None:
    with (
        asking(monkeypatch, answer) as (llm, server),
        pytest.raises(LLMError, match=r"not Ollama's|not a chat completion"),
    ):
        llm(HELLO)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("", "http://localhost:11434/v1"),
        ("0.0.0.0", "http://localhost:11434/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("gpu-box:8080", "http://gpu-box:8080/v1"),
        ("https://ollama.example.org", "https://ollama.example.org:443/v1"),
        ("http://[::1]:11434", "http://[::1]:11434/v1"),
    ],
)
def test_ollama_is_where_its_own_variable_says(
    monkeypatch: pytest.MonkeyPatch, told: str, address: str
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", told)
    assert ollama_address() == address
