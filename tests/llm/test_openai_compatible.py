"""The client against a real server on the loopback that misbehaves on request."""

import http.server
import logging
import shutil
import ssl
import subprocess
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from time import time

import pytest
from support.every import every
from support.openai_server import Answer, Server, cut, openai_server, refuses, says
from support.waiting import AMPLE

from kgot_lab.errors import BadInput, LLMError, OverBudget, UnknownName
from kgot_lab.llm import connect
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.openai_compatible import ENDPOINTS, OpenAICompatible, Patience, Price, server_at
from kgot_lab.llm.presets import FREE, PRICES, SERVER_KEY, price_of
from kgot_lab.types import Message, Prompt

CANARY = "sk-canary-0123456789abcdef"
HELLO = Prompt(
    (Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.7, seed=3, max_tokens=50
)
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
def asking(
    *answers: Answer, timeout: float = AMPLE, attempts: int = 6
) -> Iterator[tuple[OpenAICompatible, Server, Waits]]:
    waits = Waits()
    with openai_server(*answers) as server:
        llm = OpenAICompatible(
            *server_at(f"{server.url}#tiny"),
            patience=Patience(attempts, timeout),
            sleep=waits,
            price=Price(1, 2),
        )
        try:
            yield llm, server, waits
        finally:
            llm.close()


def test_a_prompt_arrives_whole_and_the_reply_comes_back_with_its_usage() -> None:
    with asking(says("Hi.")) as (llm, server, _):
        reply = llm(HELLO)
    sent = server.bodies[0]
    assert reply.text == "Hi."
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost) == (
        1000,
        500,
        pytest.approx(0.002),
    )
    assert reply.usage.seconds > 0
    assert sent["path"] == "/v1/chat/completions"
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
    ]
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
    assert asked["content"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": picture}},
    ]


def test_images_stay_where_the_schema_is_written_into_the_message() -> None:
    picture = "data:image/png;base64,iVBORw0KGgo="
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("{}")) as (llm, server, _):
        llm(Prompt((Message("user", "What is this?", (picture,)),), schema=SHAPE))
    assert server.bodies[-1]["messages"][-1]["content"][1]["image_url"] == {"url": picture}


def test_a_model_that_takes_no_images_says_so() -> None:
    seen = Prompt((Message("user", "What is this?", ("data:image/png;base64,iVBORw0KGgo=",)),))
    with (
        asking(refuses(400, "image_url is not supported by this model")) as (llm, _, _waits),
        pytest.raises(LLMError, match="no images"),
    ):
        llm(seen)


def test_a_reply_that_had_no_more_room_says_that_it_is_cut() -> None:
    with asking(cut("Once upon a"), says("The end.")) as (llm, _, _waits):
        assert llm(HELLO).cut
        assert not llm(HELLO).cut


def test_rate_limits_are_waited_for_as_long_as_the_server_asks() -> None:
    with asking(
        refuses(429, "slow down", {"Retry-After": "7"}), refuses(429, "slow down"), says("at last")
    ) as (llm, server, waits):
        assert llm(HELLO).text == "at last"
    assert len(server.bodies) == 3
    assert waits[0] == 7
    assert 1 <= waits[1] <= 2


def test_a_date_in_retry_after_is_understood() -> None:
    with asking(refuses(503, "busy", {"Retry-After": formatdate(time() + 30, usegmt=True)}), says("ok")) as (
        llm,
        _,
        waits,
    ):
        llm(HELLO)
    assert 25 <= waits[0] <= 31


def test_a_wait_of_hours_is_not_waited_for() -> None:
    with (
        asking(refuses(429, "come back tomorrow", {"Retry-After": "86400"})) as (llm, server, _),
        pytest.raises(LLMError, match="86400 s"),
    ):
        llm(HELLO)
    assert len(server.bodies) == 1


@every("told", ["nan", "inf", "-1", "1e9", "soon", "Fri, 31 Dec 99999999999999999999 23:59:59 GMT"])
def test_a_wait_that_is_none_is_as_if_nothing_were_said(told: str) -> None:
    with asking(refuses(429, "slow down", {"Retry-After": told}), says("ok")) as (llm, _, waits):
        assert llm(HELLO).text == "ok"
    assert 0.5 <= waits[0] <= 1


@pytest.mark.parametrize("told", ["1000000000", "9" * 5_000, "Thu, 31 Dec 2099 23:59:59 GMT"])
def test_a_wait_of_years_is_not_waited_for(told: str) -> None:
    with (
        asking(refuses(429, "come back", {"Retry-After": told})) as (llm, _, waits),
        pytest.raises(LLMError, match="it asks to wait"),
    ):
        llm(HELLO)
    assert waits == []


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
    with (
        asking(refuses(status, "the server's own words")) as (llm, server, _),
        pytest.raises(LLMError, match=advice) as caught,
    ):
        llm(HELLO)
    assert "the server's own words" in str(caught.value)
    assert len(server.bodies) == 1


@every(
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


ODD = ["many", float("inf"), float("-inf"), float("nan"), -1, 1e30, 10**400, True, None, [3]]


@every("figure", ODD, ids=lambda figure: str(figure)[:9])
def test_odd_usage_figures_do_no_harm(figure: object) -> None:
    usage = {"prompt_tokens": figure, "completion_tokens": figure, "total_tokens": figure, "cost": figure}
    details = {"completion_tokens_details": {"reasoning_tokens": figure}}
    with asking(says("ok", usage=usage | details)) as (llm, _, _waits):
        told = llm(HELLO).usage
    assert (told.prompt_tokens, told.completion_tokens, told.reasoning_tokens, told.cost) == (0, 0, 0, 0.0)


def test_a_schema_is_asked_for_as_json_schema() -> None:
    with asking(says("{}")) as (llm, server, _):
        llm(SHAPED)
    asked = server.bodies[0]["response_format"]
    assert asked == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SHAPE, "strict": False},
    }


def test_a_server_without_response_format_is_asked_in_words_and_that_is_remembered() -> None:
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("{}")) as (llm, server, waits):
        llm(SHAPED)
        llm(SHAPED)
    assert [body.get("response_format", {}).get("type") for body in server.bodies] == [
        "json_schema",
        "json_object",
        None,
        None,
    ]
    assert '"answer"' in server.bodies[2]["messages"][-1]["content"]
    assert server.bodies[0]["messages"][-1]["content"] == "Hello?"
    assert not waits


def test_the_llama_cpp_server_that_fails_on_json_schema_is_asked_its_own_way() -> None:
    with asking(refuses(500, "boom"), refuses(500, "boom"), says("{}")) as (llm, server, _):
        llm(SHAPED)
    assert server.bodies[-1]["response_format"] == {"type": "json_object", "schema": SHAPE}


@pytest.mark.parametrize("name", ["temperature", "seed"])
def test_what_a_reasoning_model_refuses_is_left_out_from_then_on(name: str) -> None:
    with asking(
        refuses(400, f"Unsupported value: '{name}' does not support 0.7 with this model."), says("hm")
    ) as (llm, server, _):
        llm(HELLO)
        llm(HELLO)
    assert [name in body for body in server.bodies] == [True, False, False]
    assert llm.left_out == [name]
    assert name in repr(llm)


def test_a_value_out_of_range_is_not_taken_for_an_unknown_parameter() -> None:
    with (
        asking(refuses(400, "temperature must be at most 0.5")) as (llm, _, _waits),
        pytest.raises(LLMError, match="at most"),
    ):
        llm(HELLO)
    assert llm.left_out == []


def test_the_other_name_of_max_tokens_is_used_when_the_server_wants_it() -> None:
    no = refuses(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    )
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
    echoes = [
        refuses(401, f"Incorrect API key provided: {CANARY}"),
        Answer(f"<html>{CANARY}</html>", 502),
        Answer(f"{{{CANARY}"),
    ]
    for answer in (
        *echoes,
        Answer({"choices": [{"message": {"content": "", "refusal": CANARY}}]}),
        Answer(drop=True),
    ):
        with asking(answer, attempts=2) as (llm, server, _):
            with pytest.raises(LLMError) as caught:
                llm(HELLO)
            shown = [
                repr(llm),
                llm.name,
                repr(vars(llm)),
                repr(caught.value),
                *traceback.format_exception(caught.value),
            ]
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
    with pytest.raises(
        UnknownName,
        match="Known: anthropic, gemini, http, https, local, ollama, openai, openrouter, recorded",
    ):
        connect("elephant")
    for spec in ("openai:", "recorded:", "http://localhost:1/v1", "http://me:secret@localhost/v1#m"):
        with pytest.raises(BadInput) as caught:
            connect(spec)
        assert "secret" not in str(caught.value)


@every(
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


@every(
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
def test_an_address_is_free_only_in_your_own_network_and_priced_only_at_a_host_that_is_known(
    address: str, price: Price | None
) -> None:
    assert price_of(*server_at(address)) == price


def test_it_works_inside_a_running_event_loop() -> None:
    import asyncio

    async def cell() -> str:
        return llm(HELLO).text

    with asking(says("from a notebook")) as (llm, _, _waits):
        assert asyncio.run(cell()) == "from a notebook"


@every(
    "address",
    [
        "http://[::1/v1#ok",
        "http://[v1.a]/v1#ok",
        "http://127.0.0.1:abc/v1#ok",
        "http://127.0.0.1:99999/v1#ok",
        "http://a b/v1#ok",
        "http://a..b/v1#ok",
        "http://%zz/v1#ok",
        "http://\u200b/v1#ok",
        "http://localhost/v1\0#ok",
        "http://exa\nmple.org/v1#ok",
        f"http://{'a' * 300}/v1#ok",
        "http:///v1#ok",
        "https:localhost#ok",
    ],
)
def test_an_address_that_cannot_be_asked_is_refused_when_it_is_named(address: str) -> None:
    with pytest.raises(
        BadInput, match=r"is no address of a server: |a server is named by its address and a model"
    ):
        connect(address)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:s3cret@localhost:1/v1#m",
        "http://me:s3#cret@[::1/v1#m",
        "http://s3cret@localhost:abc/v1#m",
        "http://localhost/v1?key=s3cret#m",
        "http://localhost:abc?key=s3cret",
    ],
)
def test_what_may_be_a_password_in_an_address_is_not_shown(address: str) -> None:
    with pytest.raises(BadInput) as caught:
        connect(address)
    assert "s3" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1]:1/v1#m",
        "http://münchen.de/v1#m",
        "http://gpu_box:8000/v1#m",
        "http://h/v1#@cf/meta/my model",
    ],
)
def test_an_address_that_is_one_stays_one(address: str) -> None:
    assert connect(address).name == address.removeprefix("http://").replace("/v1#", ":")


@pytest.mark.parametrize("host", ["127.0.0.1:abc", "[::1", "a b", "http://127.0.0.1:99999"])
def test_an_address_of_ollama_that_cannot_be_asked_names_its_variable(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(BadInput, match=r"the environment variable OLLAMA_HOST: .* is no address of a server"):
        connect("ollama:m")


def test_an_address_may_begin_in_capitals() -> None:
    with openai_server(says("hi")) as server:
        llm = connect(f"HTTP{server.url.removeprefix('http')}#Tiny")
        assert llm(HELLO).text == "hi"
    assert server.bodies[0]["model"] == "Tiny"


def test_a_server_that_speaks_no_tls_is_asked_once() -> None:
    with openai_server(says("hi")) as server:
        waits = Waits()
        llm = connect(f"{server.url.replace('http', 'https')}#tiny", sleep=waits)
        with pytest.raises(LLMError, match=r"SSL.* may speak no TLS: try the address with http://"):
            llm(HELLO)
    assert isinstance(llm, OpenAICompatible) and llm.requests == 1
    assert not waits


@pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl, which makes the certificate, is not installed"
)
def test_a_certificate_that_is_not_trusted_is_told_once(tmp_path: Path) -> None:
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    ]
    subprocess.run(
        [*made, "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the client breaks off
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        llm = connect(f"https://127.0.0.1:{server.server_address[1]}/v1#tiny", sleep=Waits())
        with pytest.raises(LLMError, match=r"certificate verify failed.*name its certificate.*SSL_CERT_FILE"):
            llm(HELLO)
        server.shutdown()
    assert isinstance(llm, OpenAICompatible) and llm.requests == 1


@pytest.mark.parametrize(
    ("told", "shown"),
    [("Wrong.", "Wrong. Check"), ("Wrong", "Wrong. Check"), ("Is it?", "Is it? Check"), ("No!", "No! Check")],
)
def test_the_servers_words_end_once(told: str, shown: str) -> None:
    with asking(refuses(401, told)) as (llm, _, _waits), pytest.raises(LLMError) as caught:
        llm(HELLO)
    assert shown in str(caught.value)


def test_a_prompt_that_cannot_be_sent_is_not_blamed_on_the_server() -> None:
    with (
        asking(says("hi")) as (llm, server, _),
        pytest.raises(LLMError, match=r"the prompt cannot be sent: .* Nothing was sent"),
    ):
        llm(Prompt((Message("user", "half \ud800"),)))
    assert not server.bodies


# At a dollar for a million tokens read and two for those written, a request of HELLO may cost a little over
# $0.0001.
LOST = [
    Answer(drop=True),
    refuses(504, "gateway timeout"),
    refuses(524, "a timeout occurred"),
    Answer("{not json"),
    Answer({}),
]


@pytest.mark.parametrize("answer", LOST, ids=lambda answer: f"{answer.status} {answer.body}"[:20])
def test_a_request_that_the_server_may_charge_without_an_answer_is_counted_at_its_worst(
    answer: Answer,
) -> None:
    with asking(answer, says("there")) as (llm, _, _waits):
        kept = Budgeted(llm, Budget(dollars=1.0))
        try:
            told = kept(HELLO).usage.cost
        except LLMError:
            told = 0.0
    most = (llm.price or FREE).of(kept.worst(HELLO).prompt_tokens // llm.patience.empty, HELLO.max_tokens)
    assert kept.spending.unanswered == pytest.approx(most)
    assert kept.spending.spent.cost == kept.spent.cost == pytest.approx(most + told)


def test_a_request_that_timed_out_is_counted_at_its_worst() -> None:
    with asking(Answer(sleep=60), timeout=1, attempts=1) as (llm, _, _waits):
        kept = Budgeted(llm, Budget(dollars=1.0))
        with pytest.raises(LLMError, match="no answer within 1 s"):
            kept(HELLO)
    assert kept.spending.unanswered > 0


def test_a_request_that_was_never_sent_or_refused_is_not_counted() -> None:
    with openai_server(says("")) as server:
        url = server.url
    gone = Budgeted(connect(f"{url}#tiny", price=Price(1, 2), sleep=Waits()), Budget(dollars=1.0))
    with asking(refuses(500, "out of order")) as (llm, _, _waits):
        for kept in (gone, Budgeted(llm, Budget(dollars=1.0))):
            with pytest.raises(LLMError, match="after 6 requests"):
                kept(HELLO)
            assert kept.spending.spent.cost == kept.spending.unanswered == 0


def test_a_reply_whose_server_does_not_tell_its_tokens_is_not_taken_for_free() -> None:
    with asking(says("hi", usage=None)) as (llm, _, _waits):
        kept = Budgeted(llm, Budget(dollars=1.0))
        assert kept(HELLO).usage.cost == 0
    assert kept.spending.unanswered > 0


HALF = [
    ({"completion_tokens": 5}, "reads"),
    ({"prompt_tokens": -7, "completion_tokens": 5}, "reads"),
    ({"prompt_tokens": "1000", "completion_tokens": 5}, "reads"),
    ({"prompt_tokens": 5}, "writes"),
    ({"prompt_tokens": 5, "completion_tokens": -1}, "writes"),
]


@pytest.mark.parametrize(("usage", "untold"), HALF, ids=lambda each: str(each)[:50])
def test_tokens_told_only_in_part_are_counted_at_their_worst_and_that_is_said(
    usage: object, untold: str
) -> None:
    told: list[str] = []
    with openai_server(says("hi", usage=usage)) as server:
        llm = OpenAICompatible(*server_at(f"{server.url}#tiny"), price=Price(1000, 2000), say=told.append)
        kept = Budgeted(llm, Budget(dollars=100.0))
        kept(HELLO)
        kept(HELLO)
        llm.close()
    worst = (
        llm.worst(HELLO).prompt_tokens // llm.patience.empty * 1000
        if untold == "reads"
        else HELLO.max_tokens * 2000
    )
    assert kept.spending.unanswered == pytest.approx(2 * worst / 1e6)
    assert len(told) == 1 and f"how many tokens a call {untold}" in told[0]


def test_a_budget_of_dollars_holds_against_a_server_that_does_not_tell_what_it_reads() -> None:
    long = Prompt((Message("user", "word " * 2000),), max_tokens=10)
    with openai_server(says("hi", usage={"completion_tokens": 5})) as server:
        llm = OpenAICompatible(*server_at(f"{server.url}#tiny"), price=Price(1, 1))
        kept = Budgeted(llm, Budget(dollars=0.05))
        with pytest.raises(OverBudget):
            for _ in range(100):
                kept(long)
        llm.close()
    assert len(server.bodies) < 20


def test_requests_without_an_answer_cannot_pass_a_budget_by_being_sent_again() -> None:
    with asking(Answer(drop=True)) as (llm, server, _):
        kept = Budgeted(llm, Budget(dollars=0.0006))
        with pytest.raises(OverBudget, match="asking once more"):
            kept(HELLO)
    assert 1 <= len(server.bodies) < 6
    assert kept.spending.spent.cost <= 0.0006


# --- odd answers
# ----------------------------------------------------------------------------------------------------------------


def test_an_error_told_in_an_answer_with_the_status_200_is_that_error() -> None:
    busy = Answer({"error": {"message": "Provider is overloaded", "code": 429}})
    with asking(busy, says("Hi.")) as (llm, server, waits):
        assert llm(HELLO).text == "Hi." and len(server.bodies) == 2 and len(waits) == 1
    keyless = Answer({"error": {"message": "No credentials", "code": 401}, "choices": []})
    with (
        asking(keyless) as (llm, server, _),
        pytest.raises(LLMError, match=r"HTTP 401, told within an answer: No credentials.*Check the key"),
    ):
        llm(HELLO)
    assert len(server.bodies) == 1


@pytest.mark.parametrize("error", [{"message": "Out of luck", "code": "luck"}, "Out of luck"])
def test_an_error_without_a_status_is_told_in_its_own_words(error: object) -> None:
    with (
        asking(Answer({"error": error})) as (llm, server, _),
        pytest.raises(LLMError, match="the answer is an error: Out of luck") as caught,
    ):
        llm(HELLO)
    assert len(server.bodies) == 1 and "Is this the address" not in str(caught.value)


def test_empty_replies_are_counted_by_the_limit_that_is_at_work() -> None:
    said: list[str] = []
    with openai_server(says("")) as server:
        llm = OpenAICompatible(
            *server_at(f"{server.url}#tiny"),
            patience=Patience(6, empty=2),
            sleep=lambda _: None,
            say=said.append,
        )
        with pytest.raises(LLMError, match="after 2 requests"):
            llm(HELLO)
        llm.close()
    assert [line.partition(";")[2].partition(",")[0] for line in said] == [" request 1 of 2"]


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": -1, "completion_tokens": -5}, {"prompt_tokens": None}]
)
def test_a_server_that_tells_no_tokens_is_named_once(usage: object) -> None:
    said: list[str] = []
    with openai_server(says("Hi.", usage=usage)) as server:
        llm = OpenAICompatible(*server_at(f"{server.url}#tiny"), say=said.append)
        assert llm(HELLO).usage.prompt_tokens == llm(HELLO).usage.prompt_tokens == 0
        llm.close()
    assert len(said) == 1 and "does not tell how many tokens" in said[0]
