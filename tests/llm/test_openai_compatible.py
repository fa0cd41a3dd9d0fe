"""The client against a real server on the loopback that misbehaves on request."""

import asyncio
import http.server
import logging
import shutil
import ssl
import subprocess
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from time import time

import pytest
from support.every import every
from support.openai_server import Answer, asking, cut, openai_server, refuses, says
from support.waiting import AMPLE

from kgot_lab.errors import BadInput, LLMError, OverBudget, UnknownName
from kgot_lab.llm import connect
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.openai_compatible import OpenAICompatible
from kgot_lab.llm.presets import ENDPOINTS, FREE, PRICES, SERVER_KEY, Price, price_of, server_at
from kgot_lab.types import Message, Prompt

CANARY = "sk-canary-0123456789abcdef"
HELLO = Prompt(
    (Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.7, seed=3, max_tokens=50
)
SHAPE = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
SHAPED = Prompt(HELLO.messages, schema=SHAPE)
SEEN = Prompt((Message("user", "What is this?", ("data:image/png;base64,iVBORw0KGgo=",)),), schema=SHAPE)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_KEY, CANARY)


def test_a_prompt_arrives_whole_and_the_reply_comes_back_with_its_usage() -> None:
    with asking(says("Hi."), cut("Once upon a")) as (llm, server):
        reply = llm(HELLO)
        assert not reply.cut and llm(HELLO).cut
    sent, usage = server.bodies[0], reply.usage
    assert (reply.text, usage.prompt_tokens, usage.completion_tokens) == ("Hi.", 1000, 500)
    assert usage.cost == pytest.approx(0.002) and usage.seconds > 0
    assert sent["path"] == "/v1/chat/completions"
    assert sent["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello?"},
    ]
    assert (sent["model"], sent["temperature"], sent["seed"], sent["max_tokens"]) == ("tiny", 0.7, 3, 50)
    assert "response_format" not in sent
    assert server.headers[0]["authorization"] == f"Bearer {CANARY}"


def test_images_are_sent_beside_their_text_also_where_the_schema_is_written_into_the_message() -> None:
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("a cat")) as (llm, server):
        llm(SEEN)
    first, last = (body["messages"][-1]["content"] for body in (server.bodies[0], server.bodies[-1]))
    picture = {"type": "image_url", "image_url": {"url": SEEN.messages[0].images[0]}}
    assert first == [{"type": "text", "text": "What is this?"}, picture] and last[1] == picture


# --- faults: which are waited for, and what is said of the others


@every(
    ("refusal", "least", "most"),
    [
        (refuses(429, "slow down", {"Retry-After": "7"}), 7, 7),
        (lambda _: refuses(503, "busy", {"Retry-After": formatdate(time() + 30, usegmt=True)}), 25, 31),
        *(
            (refuses(429, "slow down", {"Retry-After": told}), 0.5, 1)
            for told in ("nan", "inf", "-1", "1e9", "soon", "Fri, 31 Dec 99999999999999999999 23:59:59 GMT")
        ),
        (refuses(500, "hiccup"), 0.5, 1),
        (Answer(drop=True), 0.5, 1),
        (Answer({"error": {"message": "Provider is overloaded", "code": 429}}), 0.5, 1),
    ],
)
def test_a_passing_fault_is_waited_for_as_long_as_the_server_asks(
    refusal: Answer, least: float, most: float
) -> None:
    with asking(refusal, says("at last")) as (llm, server):
        assert llm(HELLO).text == "at last"
    assert len(server.bodies) == 2 and least <= server.waits[0] <= most
    assert len(server.said) == 1 and "request 1 of 6" in server.said[0]


NO_COMPLETION: list[object] = ["{not json", {"choices": []}, {"choices": None}, "null", [], {}]
NO_COMPLETION += [{"choices": [{"message": message}]} for message in (None, "hello")]
HOURS = ["86400", "1000000000", "9" * 5_000, "Thu, 31 Dec 2099 23:59:59 GMT"]


@every(
    ("answer", "said"),
    [
        *((refuses(429, "come back", {"Retry-After": hours}), "it asks to wait") for hours in HOURS),
        (refuses(429, "no credit left", code="insufficient_quota"), "no credit left"),
        (refuses(401, "its own words"), rf"its own words\. Check .*{SERVER_KEY}"),
        (refuses(404, "its own words."), r"its own words\. Check the model name 'tiny'"),
        (refuses(400, "No!"), "No! .*does not suit"),
        (refuses(403, "Is it?"), r"Is it\? .*may not use"),
        *((Answer(body), "not a chat completion") for body in NO_COMPLETION),
        (Answer("<html>a proxy</html>", headers={"content-type": "text/html"}), "not a chat completion"),
        (
            Answer({"error": {"message": "No credentials", "code": 401}, "choices": []}),
            "HTTP 401, reported within an answer: No credentials.*Check the key",
        ),
        (
            Answer({"error": {"message": "Out of luck", "code": "luck"}}),
            "the answer is an error: Out of luck",
        ),
        (Answer({"error": "Out of luck"}), "the answer is an error: Out of luck"),
        (refuses(400, "temperature must be at most 0.5"), "at most"),
    ],
)
def test_what_waiting_cannot_repair_is_reported_at_once(answer: Answer, said: str) -> None:
    with asking(answer) as (llm, server), pytest.raises(LLMError, match=said) as caught:
        llm(HELLO)
    assert len(server.bodies) == 1 and server.waits == [] and llm.left_out == []
    assert "luck" not in said or "Is this the address" not in str(caught.value)


def test_server_faults_are_tried_six_times_with_growing_waits() -> None:
    with (
        asking(refuses(500, "out of order")) as (llm, server),
        pytest.raises(LLMError, match="after 6 requests: HTTP 500: out of order"),
    ):
        llm(HELLO)
    assert len(server.bodies) == 6
    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(server.waits))


def test_a_slow_answer_is_asked_for_again() -> None:
    with asking(Answer(sleep=60), says("quick")) as (llm, server):
        patient, llm._client = llm._client, llm._client.with_options(timeout=1)
        llm._sleep = lambda seconds: (server.waits.append(seconds), setattr(llm, "_client", patient))
        assert llm(HELLO).text == "quick"
    assert (len(server.bodies), len(server.waits)) == (2, 1)


def test_a_server_that_is_not_there_is_named_and_a_prompt_that_cannot_be_sent_is_not_blamed_on_it() -> None:
    with asking(says("hi"), attempts=2) as (llm, server):
        with pytest.raises(LLMError, match=r"the prompt cannot be sent: .* Nothing was sent"):
            llm(Prompt((Message("user", "half \ud800"),)))
        assert not server.bodies
    gone = OpenAICompatible(*server_at(f"{server.url}#tiny"), sleep=server.waits.append)
    with pytest.raises(LLMError, match=f"no connection to {server.url}.*Is the server running"):
        gone(HELLO)
    assert gone.requests == 6
    gone.close()


@every("figure", ["many", *map(float, ("inf", "-inf", "nan")), -1, 1e30, 10**400, True, None, [3]], ids=repr)
def test_odd_usage_figures_do_no_harm(figure: object) -> None:
    usage = {"prompt_tokens": figure, "completion_tokens": figure, "total_tokens": figure, "cost": figure}
    details = {"completion_tokens_details": {"reasoning_tokens": figure}}
    with asking(says("ok", usage=usage | details)) as (llm, _):
        told = llm(HELLO).usage
    assert (told.prompt_tokens, told.completion_tokens, told.reasoning_tokens, told.cost) == (0, 0, 0, 0.0)


# --- what a server refuses is left out from then on


def test_a_server_without_response_format_is_asked_in_words_and_that_is_remembered() -> None:
    no = refuses(400, "Unknown parameter: response_format")
    with asking(no, no, says("{}")) as (llm, server):
        llm(SHAPED)
        llm(SHAPED)
    formats = [body.get("response_format") for body in server.bodies]
    assert formats[0]["json_schema"] == {"name": "reply", "schema": SHAPE, "strict": False}
    assert [each and each["type"] for each in formats] == ["json_schema", "json_object", None, None]
    assert '"answer"' in server.bodies[2]["messages"][-1]["content"]
    assert server.bodies[0]["messages"][-1]["content"] == "Hello?" and not server.waits


def test_the_llama_cpp_server_that_fails_on_json_schema_is_asked_its_own_way() -> None:
    with asking(refuses(500, "boom"), refuses(500, "boom"), says("{}")) as (llm, server):
        llm(SHAPED)
    assert server.bodies[-1]["response_format"] == {"type": "json_object", "schema": SHAPE}


@every("name", ["temperature", "seed", "max_tokens"])
def test_what_a_reasoning_model_refuses_is_left_out_from_then_on(name: str) -> None:
    words = f"Unsupported value: '{name}' does not support 0.7 with this model. Use 'max_completion_tokens'."
    with asking(refuses(400, words if name == "max_tokens" else words[:-28]), says("hm")) as (llm, server):
        llm(HELLO)
        llm(HELLO)
    assert [name in body for body in server.bodies] == [True, False, False]
    if name == "max_tokens":
        assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 50, 50]
    else:
        assert llm.left_out == [name] and name in repr(llm)


def test_a_server_that_refuses_everything_or_images_ends_in_an_error() -> None:
    words = "unsupported: max_tokens max_completion_tokens temperature seed response_format"
    with asking(refuses(400, words)) as (llm, server), pytest.raises(LLMError):
        llm(Prompt(HELLO.messages, schema=SHAPE, seed=1))
    assert len(server.bodies) < 10
    blind = refuses(400, "image_url is not supported by this model")
    with asking(blind) as (llm, _), pytest.raises(LLMError, match="no images"):
        llm(Prompt(SEEN.messages))


def test_two_threads_that_meet_the_same_refusal_give_way_once() -> None:
    """Each answer to a schema is refused at first, and the way in words is still there for the second thread."""
    no = refuses(400, "Unknown parameter: response_format")
    with (
        asking(lambda body: no if "response_format" in body else says("{}")) as (llm, _),
        ThreadPoolExecutor(2) as pool,
    ):
        assert [reply.text for reply in pool.map(llm, [SHAPED, SHAPED])] == ["{}", "{}"]
    assert llm.left_out == ["json_schema", "json_object"]


# --- keys


def test_the_key_is_in_no_error_log_or_repr(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for answer in (
        refuses(401, f"Incorrect API key provided: {CANARY}"),
        Answer(f"<html>{CANARY}</html>", 502),
        Answer(f"{{{CANARY}"),
        Answer({"choices": [{"message": {"content": "", "refusal": CANARY}}]}),
        Answer(drop=True),
    ):
        with asking(answer, attempts=2) as (llm, server):
            with pytest.raises(LLMError) as caught:
                llm(HELLO)
            shown = [repr(llm), llm.name, repr(vars(llm)), repr(caught.value), *server.said]
            assert CANARY not in " ".join([*shown, *traceback.format_exception(caught.value)])
            assert caught.value.__context__ is None
        assert CANARY in server.headers[0]["authorization"]
    assert CANARY not in caplog.text


@every("kind", ["openai", "anthropic", "gemini", "openrouter"])
def test_a_missing_key_names_the_variable_to_set(kind: str) -> None:
    with pytest.MonkeyPatch.context() as context:
        context.delenv(ENDPOINTS[kind].key_variable, raising=False)
        with pytest.raises(LLMError, match=ENDPOINTS[kind].key_variable):
            connect(f"{kind}:some-model")


def test_a_server_by_address_never_gets_another_providers_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SERVER_KEY)
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with asking(says("hi")) as (llm, server):
        assert asyncio.run(_inside_a_running_event_loop(llm)) == "hi"
    assert CANARY not in str(server.headers)


async def _inside_a_running_event_loop(llm: OpenAICompatible) -> str:
    return llm(HELLO).text


# --- names, addresses, prices


def test_names_that_are_not_known_are_listed() -> None:
    with pytest.raises(UnknownName, match="did you mean 'openai'"):
        connect("opnai:gpt")
    known = "Known: anthropic, gemini, http, https, local, ollama, openai, openrouter, recorded"
    with pytest.raises(UnknownName, match=known):
        connect("elephant")
    for spec in ("openai:", "recorded:", "http://localhost:1/v1", "openai:gpt-4o [temperature=0.2]"):
        with pytest.raises(BadInput):
            connect(spec)


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


OWN_NETWORK = "localhost:8000 127.0.0.1:8000 [::1]:8000 192.168.1.7 gpu-box:8000 gpu.internal".split()


@every(
    ("address", "price"),
    [
        *((f"http://{host}/v1#gpt-4o", FREE) for host in OWN_NETWORK),
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


NO_HOSTS = "[::1 [v1.a] 127.0.0.1:abc 127.0.0.1:99999 a..b %zz \u200b".split()


@every(
    "address",
    [
        *(f"http://{host}/v1#ok" for host in (*NO_HOSTS, "a b", "exa\nmple.org", "a" * 300, "")),
        "http://localhost/v1\0#ok",
        "https:localhost#ok",
        *("http://me:s3cret@localhost:1/v1#m", "http://me:s3#cret@[::1/v1#m", "http://s3cret@localhost:abc/v1#m"),
        *("http://localhost/v1?key=s3cret#m", "http://localhost:abc?key=s3cret"),
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_asked_is_refused_when_it_is_named_without_a_password(address: str) -> None:
    with pytest.raises(BadInput) as caught:
        connect(address)
    said = str(caught.value)
    assert "s3" not in said and (caught.value.__cause__ is None or "s3" not in address)
    assert (
        "s3" in address
        or "is no address of a server: " in said
        or "is named by its address and a model" in said
    )


@every("address", ["[::1]:1/v1#m", "münchen.de/v1#m", "gpu_box:8000/v1#m", "h/v1#@cf/meta/my model"])
def test_an_address_that_is_one_stays_one(address: str) -> None:
    for scheme in ("http", "HTTP"):
        assert connect(f"{scheme}://{address}").name == address.replace("/v1#", ":")


def test_a_server_that_speaks_no_tls_is_asked_once() -> None:
    with openai_server(says("hi")) as server:
        llm = connect(f"{server.url.replace('http', 'https')}#tiny", sleep=server.waits.append)
        with pytest.raises(LLMError, match=r"SSL.* may speak no TLS: try the address with http://"):
            llm(HELLO)
    assert isinstance(llm, OpenAICompatible) and llm.requests == 1 and not server.waits


@pytest.mark.skipif(
    not shutil.which("openssl"), reason="openssl, which makes the certificate, is not installed"
)
def test_a_certificate_that_is_not_trusted_is_told_once(tmp_path: Path) -> None:
    made = "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -days 2 -keyout key -out cert"
    subprocess.run(made.split(), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # the client breaks off
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        llm = connect(f"https://127.0.0.1:{server.server_address[1]}/v1#tiny", sleep=lambda _: None)
        with pytest.raises(LLMError, match=r"certificate verify failed.*name its certificate.*SSL_CERT_FILE"):
            llm(HELLO)
        server.shutdown()
    assert isinstance(llm, OpenAICompatible) and llm.requests == 1


# --- what may be charged for. At a dollar for a million tokens read and two for those written, a request of
# HELLO may cost a little over $0.0001.

LOST = [
    Answer(drop=True),
    refuses(504, "gateway timeout"),
    refuses(524, "a timeout occurred"),
    Answer("{not json"),
    Answer({}),
]


@every("answer", LOST, ids=lambda answer: f"{answer.status} {answer.body}"[:20])
def test_a_request_that_the_server_may_charge_without_an_answer_is_counted_at_its_worst(
    answer: Answer,
) -> None:
    with asking(answer, says("there")) as (llm, _):
        kept = Budgeted(llm, Budget(dollars=1.0))
        try:
            told = kept(HELLO).usage.cost
        except LLMError:
            told = 0.0
    most = (llm.price or FREE).of(kept.worst(HELLO).prompt_tokens // llm.patience.empty, HELLO.max_tokens)
    assert kept.spending.unanswered == pytest.approx(most)
    assert kept.spending.spent.cost == kept.spent.cost == pytest.approx(most + told)


def test_a_request_that_timed_out_is_counted_at_its_worst() -> None:
    with asking(Answer(sleep=60), timeout=1, attempts=1) as (llm, _):
        kept = Budgeted(llm, Budget(dollars=1.0))
        with pytest.raises(LLMError, match="no answer within 1 s"):
            kept(HELLO)
    assert kept.spending.unanswered > 0


def test_a_request_that_was_never_sent_or_refused_is_not_counted() -> None:
    with openai_server(says("")) as server:
        url = server.url
    gone = Budgeted(connect(f"{url}#tiny", price=Price(1, 2), sleep=lambda _: None), Budget(dollars=1.0))
    with asking(refuses(500, "out of order")) as (llm, _):
        for kept in (gone, Budgeted(llm, Budget(dollars=1.0))):
            with pytest.raises(LLMError, match="after 6 requests"):
                kept(HELLO)
            assert kept.spending.spent.cost == kept.spending.unanswered == 0


@every(
    ("usage", "untold"),
    [
        ({"completion_tokens": 5}, "reads"),
        ({"prompt_tokens": -7, "completion_tokens": 5}, "reads"),
        ({"prompt_tokens": "1000", "completion_tokens": 5}, "reads"),
        ({"prompt_tokens": 5}, "writes"),
        ({"prompt_tokens": 5, "completion_tokens": -1}, "writes"),
        *((usage, "takes") for usage in (None, {}, {"prompt_tokens": -1, "completion_tokens": -5})),
    ],
)
def test_tokens_that_are_not_told_are_counted_at_their_worst_and_that_is_said_once(
    usage: object, untold: str
) -> None:
    with asking(says("hi", usage=usage), price=Price(1000, 2000)) as (llm, server):
        kept = Budgeted(llm, Budget(dollars=100.0))
        assert (kept(HELLO).usage.prompt_tokens, kept(HELLO).usage.cost)[0] in (0, 5)
    worst = {"reads": llm.worst(HELLO).prompt_tokens // llm.patience.empty * 1000, "writes": 100_000}
    assert kept.spending.unanswered == pytest.approx(2 * worst.get(untold, sum(worst.values())) / 1e6)
    assert len(server.said) == 1 and f"how many tokens a call {untold}" in server.said[0]


def test_a_budget_of_dollars_holds_against_a_server_that_does_not_tell_what_it_reads() -> None:
    long = Prompt((Message("user", "word " * 2000),), max_tokens=10)
    with asking(says("hi", usage={"completion_tokens": 5}), price=Price(1, 1)) as (llm, server):
        kept = Budgeted(llm, Budget(dollars=0.05))
        with pytest.raises(OverBudget):
            for _ in range(100):
                kept(long)
    assert len(server.bodies) < 20


def test_requests_without_an_answer_cannot_pass_a_budget_by_being_sent_again() -> None:
    with asking(Answer(drop=True), timeout=AMPLE) as (llm, server):
        kept = Budgeted(llm, Budget(dollars=0.0006))
        with pytest.raises(OverBudget, match="asking once more"):
            kept(HELLO)
    assert 1 <= len(server.bodies) < 6 and kept.spending.spent.cost <= 0.0006
