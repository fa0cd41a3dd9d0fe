"""Servers of this computer are asked straight, others through the proxy that the environment names."""

from __future__ import annotations

import wave
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.loopback import free_port
from support.openai_server import Server, openai_server, refuses, says

from kgot_lab.embedding.api import API
from kgot_lab.errors import BadInput, LabError, LLMError, StoreUnavailable, ToolFailed
from kgot_lab.io.http_client import is_loopback, proxy_options, proxy_variable
from kgot_lab.llm import connect
from kgot_lab.llm.presets import RetryPolicy
from kgot_lab.stores.sparql.connection import SparqlLink
from kgot_lab.tools.media import Transcriber
from kgot_lab.tools.web.engines import JsonApi
from kgot_lab.types import Message, Prompt

HELLO = Prompt((Message("user", "Hello?"),))
ELSEWHERE = "http://models.example/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A proxy that passes nothing on and says 403; what it was asked, it has seen."""
    with openai_server(refuses(403, "not through here")) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
        yield server


def ask_a_model(address: str) -> None:
    with closing(connect(f"{address}#m", patience=RetryPolicy(attempts=1))) as llm:  # type: ignore[type-var]
        llm(HELLO)


def embed(address: str) -> None:
    with closing(API(f"{address}#m", retries=0)) as api:
        api.embed(["word"])


def ask_a_service(address: str) -> None:
    JsonApi("the service", address).post({"query": "word"})


def transcribe(address: str) -> None:
    with wave.open("said.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(1)
        file.setframerate(8000)
        file.writeframes(bytes(8000))
    Transcriber("key", address=address)(Path("said.wav"))


def query(address: str) -> None:
    with closing(SparqlLink.connect(f"{address}/query", None, None)) as link:
        link.query("ASK {}")


CLIENTS = [ask_a_model, embed, ask_a_service, transcribe, query]


@pytest.mark.parametrize("ask", CLIENTS)
def test_no_client_asks_this_computer_through_a_proxy(
    ask: Callable[[str], None], proxy: Server, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    closed = f"http://127.0.0.1:{free_port()}/v1"  # nothing listens: a request that bypasses the proxy fails
    with pytest.raises(LabError) as caught:
        ask(closed)
    told = str(caught.value)
    assert proxy.bodies == [] and "not through here" not in told and "HTTP_PROXY" not in told


@pytest.mark.parametrize("ask", CLIENTS)
def test_a_proxy_that_is_not_there_is_named(ask: Callable[[str], None], tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    errors = (LLMError, ToolFailed, StoreUnavailable)
    with pytest.raises(errors, match="through the proxy that HTTP_PROXY names"):
        ask(ELSEWHERE)


@pytest.mark.skipif(find_spec("socksio") is not None, reason="here SOCKS proxies can be used")
@pytest.mark.parametrize("ask", CLIENTS)
def test_a_proxy_that_cannot_be_used_is_named_with_what_to_do(ask, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    reason = r"the environment variable ALL_PROXY names a SOCKS proxy: pip install 'httpx\[socks\]'"
    with pytest.raises(LabError, match=reason):
        ask(ELSEWHERE)
    monkeypatch.setenv("ALL_PROXY", "ftp://127.0.0.1:1")
    reason = r"the environment variable ALL_PROXY names a proxy of the kind ftp://"
    with pytest.raises(LabError, match=reason):
        ask(ELSEWHERE)


@pytest.mark.parametrize("proxy_address", ["socks5://127.0.0.1:1", "http://127.0.0.1:1"])
def test_a_server_of_this_computer_answers_whatever_the_proxy(proxy_address: str, monkeypatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy_address)
    with openai_server(says("Hi.")) as server, closing(connect(f"{server.url}#m")) as llm:  # type: ignore[type-var]
        assert llm(HELLO).text == "Hi."


def test_a_refusal_that_may_be_the_proxys_names_it(proxy: Server) -> None:
    with pytest.raises(LLMError, match="or the proxy that HTTP_PROXY names refused to pass it on"):
        ask_a_model(ELSEWHERE)
    assert [body["path"] for body in proxy.bodies] == [f"{ELSEWHERE}/chat/completions"]


def test_a_proxy_that_will_not_connect_is_asked_once(proxy: Server, monkeypatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url.removesuffix("/v1"))  # it knows no CONNECT, which is a 501
    with pytest.raises(LLMError, match="through the proxy that HTTPS_PROXY names"):
        ask_a_model("https://models.example/v1")


def test_which_addresses_are_asked_straight(monkeypatch) -> None:
    here = ["http://localhost:1/v1", "http://127.0.0.2", "http://[::1]:80/", "https://a.localhost."]
    assert all(map(is_loopback, here))
    assert not any(map(is_loopback, ["http://10.0.0.1", "http://localhost.example", "http://model"]))
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.example")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    asked = ["https://x.example", "http://x.example", "http://inside.example:80/v1", "http://localhost"]
    assert [proxy_variable(address) for address in asked] == ["https_proxy", "ALL_PROXY", "", ""]


def test_an_address_for_the_client_of_openai_that_is_not_followed_is_noted(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    said: list[str] = []
    for address in ("http://localhost:1/v1", "https://api.openai.com/v1/"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        connect("openai:gpt-4o", say=said.append).close()  # type: ignore[attr-defined]
    assert len(said) == 1 and "OPENAI_BASE_URL (http://localhost:1/v1) is not followed" in said[0]


def test_a_proxy_is_a_bad_input_before_anything_is_asked(monkeypatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://x")
    with pytest.raises(BadInput, match="HTTP_PROXY"):
        connect(f"{ELSEWHERE}#m")


def test_a_proxy_that_no_server_is_asked_through_is_not_refused(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "localhost, *")
    assert proxy_options("https://example.com") == {} and proxy_variable("https://example.com") == ""
