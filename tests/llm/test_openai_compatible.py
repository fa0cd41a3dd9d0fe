"""The client against a real server on the loopback that misbehaves on request."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from time import time

import pytest
from support.openai_server import Answer, Server, cut, openai_server, refuses, says
from support.waiting import AMPLE

from kgot_lab.errors import BadInput, LLMError, UnknownName
from kgot_lab.llm import connect
from kgot_lab.llm.openai_compatible import ENDPOINTS, OpenAICompatible, Patience, Price, server_at
from kgot_lab.llm.presets import FREE, PRICES, SERVER_KEY, price_of
from kgot_lab.types import Message, Prompt

CANARY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.7, seed=3, max_tokens=50)
SHAPE = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
SHAPED = Prompt(HELLO.messages, schema=SHAPE)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_KEY, CANARY)


class Waits(list[float]):
    """Sleeps nowhere, and remembers how long it would have."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@contextmanager
def asking(*answers: Answer, timeout: float = AMPLE, attempts: int = 6) -> Iterator[tuple[OpenAICompatible, Server, Waits]]:
    waits = Waits()
    with openai_server(*answers) as server:
        llm = OpenAICompatible(*server_at(f"{server.url}#tiny"), patience=Patience(attempts, timeout), sleep=waits, price=Price(1, 2))
        try:
            yield llm, server, waits
        finally:
            llm.close()


def test_a_prompt_arrives_whole_and_the_reply_comes_back_with_its_usage() -> None:
    with asking(says("Hi.")) as (llm, server, _):
        reply = llm(HELLO)
    sent = server.bodies[0]
    assert reply.text == "Hi."
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost) == (1000, 500, pytest.approx(0.002))
    assert reply.usage.seconds > 0
    assert sent["path"] == "/v1/chat/completions"
    assert sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
    assert (sent["model"], sent["temperature"], sent["seed"], sent["max_tokens"]) == ("tiny", 0.7, 3, 50)
    assert "response_format" not in sent
    assert server.headers[0]["authorization"] == f"Bearer {CANARY}"


def test_images_are_sent_beside_their_text_and_only_where_there_are_some() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    with asking(says("a cat")) as (llm, server, _):
        llm(Prompt((Message("system", "Look."), Message("user", "What is this?", (picture,)))))
        llm(Prompt((Message("user", "What is this?", (picture,)),), schema=SHAPE))
    first, asked = server.bodies[0]["messages"]
    assert first["content"] == "Look."
    assert asked["content"] == [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": picture}}]


def test_images_stay_where_the_schema_is_written_into_the_message() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("{}")) as (llm, server, _):
        llm(Prompt((Message("user", "What is this?", (picture,)),), schema=SHAPE))
    assert server.bodies[-1]["messages"][-1]["content"][1]["image_url"] == {"url": picture}


def test_a_model_that_takes_no_images_says_so() -> None:
    seen = Prompt((Message("user", "What is this?", ("data:image/png;base64,iVBORw0KGgo=",)),))
    with asking(refuses(400, "image_url is not supported by this model")) as (llm, _, _waits), pytest.raises(LLMError, match="no images"):
        llm(seen)


def test_a_reply_that_had_no_more_room_says_that_it_is_cut() -> None:
    with asking(cut("Once upon a"), says("The end.")) as (llm, _, _waits):
        assert llm(HELLO).cut
        assert not llm(HELLO).cut


def test_rate_limits_are_waited_for_as_long_as_the_server_asks() -> None:
    with asking(refuses(429, "slow down", {"Retry-After": "7"}), refuses(429, "slow down"), says("at last")) as (llm, server, waits):
        assert llm(HELLO).text == "at last"
    assert len(server.bodies) == 3
    assert waits[0] == 7
    assert 1 <= waits[1] <= 2


def test_a_date_in_retry_after_is_understood() -> None:
    with asking(refuses(503, "busy", {"Retry-After": formatdate(time() + 30, usegmt=True)}), says("ok")) as (llm, _, waits):
        llm(HELLO)
    assert 25 <= waits[0] <= 31


def test_a_wait_of_hours_is_not_waited_for() -> None:
    with asking(refuses(429, "come back tomorrow", {"Retry-After": "86400"})) as (llm, server, _), pytest.raises(LLMError, match="86400 s"):
        llm(HELLO)
    assert len(server.bodies) == 1


def test_a_used_up_quota_is_not_retried() -> None:
    spent = refuses(429, "no credit left", code="insufficient_quota")
    with asking(spent) as (llm, server, _), pytest.raises(LLMError, match="no credit left"):
        llm(HELLO)
    assert len(server.bodies) == 1


def test_server_faults_are_tried_six_times_with_growing_waits() -> None:
    told = "after 6 requests: HTTP 500: out of order"
    with asking(refuses(500, "out of order")) as (llm, server, waits), pytest.raises(LLMError, match=told):
        llm(HELLO)
    assert len(server.bodies) == 6
    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits))


def test_a_slow_answer_is_asked_for_again() -> None:
    with asking(Answer(sleep=60), says("quick"), timeout=AMPLE) as (llm, server, waits):
        patient, llm._client = llm._client, llm._client.with_options(timeout=1)
        llm._sleep = lambda seconds: (waits(seconds), setattr(llm, "_client", patient))
        assert llm(HELLO).text == "quick"
    assert (len(server.bodies), len(waits)) == (2, 1)


def test_a_dropped_connection_is_made_again() -> None:
    with asking(Answer(drop=True), says("there")) as (llm, server, waits):
        assert llm(HELLO).text == "there"
    assert (len(server.bodies), len(waits)) == (2, 1)


def test_a_server_that_is_not_there_is_named_in_the_error() -> None:
    with openai_server(says("")) as server:
        url = server.url
    llm = OpenAICompatible(*server_at(f"{url}#tiny"), patience=Patience(attempts=2), sleep=Waits())
    with pytest.raises(LLMError, match=f"no connection to {url}.*Is the server running"):
        llm(HELLO)
    assert llm.requests == 2
    llm.close()


ADVICE = [(401, SERVER_KEY), (404, "model name 'tiny'"), (400, "does not suit"), (403, "may not use")]


@pytest.mark.parametrize(("status", "advice"), ADVICE)
def test_what_waiting_cannot_mend_is_told_at_once(status: int, advice: str) -> None:
    with asking(refuses(status, "the server's own words")) as (llm, server, _), pytest.raises(LLMError, match=advice) as caught:
        llm(HELLO)
    assert "the server's own words" in str(caught.value)
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    "answer",
    [
        Answer("{not json"),
        Answer("<html>a proxy</html>", headers={"content-type": "text/html"}),
        Answer({"choices": []}),
        Answer({"choices": None}),
        Answer({"choices": [{"message": None}]}),
        Answer({"choices": [{"message": "hello"}]}),
        Answer("null"),
        Answer([]),
        Answer({}),
    ],
    ids=lambda answer: str(answer.body)[:40],
)
def test_an_answer_that_is_no_chat_completion_is_an_error_of_ours(answer: Answer) -> None:
    with asking(answer) as (llm, server, _), pytest.raises(LLMError, match="not a chat completion"):
        llm(HELLO)
    assert len(server.bodies) == 1


def test_odd_usage_figures_do_no_harm() -> None:
    with asking(says("ok", usage={"prompt_tokens": "many"})) as (llm, _, _waits):
        assert llm(HELLO).usage.prompt_tokens == 0


def test_a_schema_is_asked_for_as_json_schema() -> None:
    with asking(says("{}")) as (llm, server, _):
        llm(SHAPED)
    asked = server.bodies[0]["response_format"]
    assert asked == {"type": "json_schema", "json_schema": {"name": "reply", "schema": SHAPE, "strict": False}}


def test_a_server_without_response_format_is_asked_in_words_and_that_is_remembered() -> None:
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("{}")) as (llm, server, waits):
        llm(SHAPED)
        llm(SHAPED)
    assert [body.get("response_format", {}).get("type") for body in server.bodies] == ["json_schema", "json_object", None, None]
    assert '"answer"' in server.bodies[2]["messages"][-1]["content"]
    assert server.bodies[0]["messages"][-1]["content"] == "Hello?"
    assert not waits


def test_the_llama_cpp_server_that_fails_on_json_schema_is_asked_its_own_way() -> None:
    with asking(refuses(500, "boom"), refuses(500, "boom"), says("{}")) as (llm, server, _):
        llm(SHAPED)
    assert server.bodies[-1]["response_format"] == {"type": "json_object", "schema": SHAPE}


@pytest.mark.parametrize("name", ["temperature", "seed"])
def test_what_a_reasoning_model_refuses_is_left_out_from_then_on(name: str) -> None:
    with asking(refuses(400, f"Unsupported value: '{name}' does not support 0.7 with this model."), says("hm")) as (llm, server, _):
        llm(HELLO)
        llm(HELLO)
    assert [name in body for body in server.bodies] == [True, False, False]
    assert llm.left_out == [name]
    assert name in repr(llm)


def test_a_value_out_of_range_is_not_taken_for_an_unknown_parameter() -> None:
    with asking(refuses(400, "temperature must be at most 0.5")) as (llm, _, _waits), pytest.raises(LLMError, match="at most"):
        llm(HELLO)
    assert llm.left_out == []


def test_the_other_name_of_max_tokens_is_used_when_the_server_wants_it() -> None:
    no = refuses(400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
    with asking(no, says("hm")) as (llm, server, _):
        llm(HELLO)
        llm(HELLO)
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 50, 50]
    assert "max_tokens" not in server.bodies[1]


def test_a_server_that_refuses_everything_ends_in_an_error() -> None:
    words = "unsupported: max_tokens max_completion_tokens temperature seed response_format"
    with asking(refuses(400, words)) as (llm, server, _), pytest.raises(LLMError):
        llm(Prompt(HELLO.messages, schema=SHAPE, seed=1))
    assert len(server.bodies) < 10


def test_the_key_is_in_no_error_log_or_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echoes = [refuses(401, f"Incorrect API key provided: {CANARY}"), Answer(f"<html>{CANARY}</html>", 502), Answer(f"{{{CANARY}")]
    for answer in (*echoes, Answer({"choices": [{"message": {"content": "", "refusal": CANARY}}]}), Answer(drop=True)):
        with asking(answer, attempts=2) as (llm, server, _):
            with pytest.raises(LLMError) as caught:
                llm(HELLO)
            shown = [repr(llm), llm.name, repr(vars(llm)), repr(caught.value), *traceback.format_exception(caught.value)]
            assert CANARY not in " ".join(shown)
            assert caught.value.__context__ is None
        assert CANARY in server.headers[0]["authorization"]
    assert CANARY not in caplog.text


def test_retries_are_told() -> None:
    told: list[str] = []
    with asking(refuses(500, "hiccup"), says("ok")) as (llm, _, _waits):
        llm._say = told.append
        llm(HELLO)
    assert len(told) == 1 and "hiccup" in told[0]


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini", "openrouter"])
def test_a_missing_key_names_the_variable_to_set(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINTS[kind].key_variable, raising=False)
    with pytest.raises(LLMError, match=ENDPOINTS[kind].key_variable):
        connect(f"{kind}:some-model")


def test_a_server_by_address_never_gets_another_providers_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVER_KEY)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with openai_server(says("hi")) as server:
        llm = connect(f"{server.url}#tiny")
        assert llm(HELLO).text == "hi"
        assert isinstance(llm, OpenAICompatible)
        llm.close()
    assert CANARY not in str(server.headers)


def test_names_that_are_not_known_are_listed() -> None:
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        connect("opnai:gpt")
    with pytest.raises(UnknownName, match="Known: anthropic, gemini, http, https, local, ollama, openai, openrouter, recorded"):
        connect("elephant")
    for spec in ("openai:", "recorded:", "http://localhost:1/v1", "http://me:secret@localhost/v1#m"):
        with pytest.raises(BadInput) as caught:
            connect(spec)
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3", "openai:o3"),
        ("o4-mini", "openai:o4-mini"),
        ("claude-sonnet-5-5", "anthropic:claude-sonnet-5-5"),
        ("gemini-3.5-flash", "gemini:gemini-3.5-flash"),
        ("meta-llama/llama-3.3-70b-instruct", "openrouter:meta-llama/llama-3.3-70b-instruct"),
        ("models/Tiny.gguf", "local:models/Tiny.gguf"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("localhost:8000/v1#tiny", "http://localhost:8000/v1#tiny"),
    ],
)
def test_a_model_without_its_provider_is_told_its_likely_full_name(name: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"did you mean {meant!r}"):
        connect(name)


def test_prices_are_known_for_dated_names() -> None:
    assert price_of(ENDPOINTS["openai"], "gpt-4o-mini-2024-07-18") == PRICES["gpt-4o-mini"]
    assert price_of(ENDPOINTS["openai"], "gpt-4o-2024-05-13") == Price(5, 15)
    assert price_of(ENDPOINTS["openrouter"], "openai/gpt-4o-mini") == PRICES["gpt-4o-mini"]
    assert price_of(ENDPOINTS["openai"], "unheard-of") is None


@pytest.mark.parametrize(
    ("address", "price"),
    [
        ("http://localhost:8000/v1#gpt-4o", FREE),
        ("http://127.0.0.1:8000/v1#x", FREE),
        ("http://[::1]:8000/v1#x", FREE),
        ("http://192.168.1.7/v1#x", FREE),
        ("http://gpu-box:8000/v1#x", FREE),
        ("http://gpu.internal/v1#x", FREE),
        ("https://api.openai.com/v1#gpt-4o", PRICES["gpt-4o"]),
        ("https://API.OpenAI.com./v1#gpt-4o", PRICES["gpt-4o"]),
        ("https://api.openai.com/v1#ft:gpt-4o:lab::x", None),
        ("https://api.openai.com.example.org/v1#gpt-4o", None),
        ("https://llm.example.org/v1#gpt-4o", None),
        ("http://8.8.8.8/v1#gpt-4o", None),
    ],
)
def test_an_address_is_free_only_in_your_own_network_and_priced_only_at_a_host_that_is_known(address: str, price: Price | None) -> None:
    assert price_of(*server_at(address)) == price


def test_it_works_inside_a_running_event_loop() -> None:
    import asyncio

    async def cell() -> str:
        return llm(HELLO).text

    with asking(says("from a notebook")) as (llm, _, _waits):
        assert asyncio.run(cell()) == "from a notebook"
