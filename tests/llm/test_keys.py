"""No key is shown, however it is spelt, and none goes where it does not belong."""

import base64
import html
import json
from urllib.parse import quote

import pytest
from support.every import every
from support.openai_server import Answer, asking, refuses, says

from kgot_lab.errors import LLMError
from kgot_lab.llm import connect
from kgot_lab.llm.keys import authorization_headers, mask_known_keys, remove_key
from kgot_lab.llm.presets import ENDPOINTS, SERVER_KEY, server_at
from kgot_lab.types import Message, Prompt

HELLO = Prompt((Message("user", "Hello?"),), max_tokens=50)
KEY = "Very<secret>/key+\\'1234567890"
SPELLINGS = [
    KEY,
    KEY.upper(),
    repr(KEY),
    repr(f"Bearer {KEY}".encode()),
    json.dumps({"key": KEY}),
    html.escape(KEY),
    quote(KEY),
    quote(KEY, safe=""),
    KEY.encode().hex(),
    *(
        base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
        for before in ("", ":", "me:")
        for after in ("", "!", "!!")
    ),
    base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
    KEY[:12],
    f"{KEY[:10]}***{KEY[-9:]}",
]


def held(key: str, text: str) -> list[str]:
    """The pieces of eight letters that a text shows of a key, as it is or in base64."""
    coded = [base64.b64encode(b"\0" * before + key.encode()).decode()[4:-4] for before in range(3)]
    return [
        form[start : start + 8]
        for form in (key, *coded)
        for start in range(len(form) - 7)
        if form[start : start + 8] in text
    ]


@every("spelt", SPELLINGS)
def test_a_key_is_taken_out_of_a_text_however_it_is_spelt(spelt: str) -> None:
    told = remove_key(f"wrong key: {spelt}, try again", KEY)
    assert told.startswith("wrong key: ") and told.endswith("try again") and "…" in told
    assert not held(KEY, told) and not held(KEY.lower(), told.lower())
    assert KEY.encode().hex()[8:16] not in told


@every("key", ["a", "ab", "x1", "abc", "abcd", "abcde", "1234567", "a b", "(((("])
def test_a_short_key_is_taken_out_too_and_words_that_have_its_letters_stay(key: str) -> None:
    assert (
        remove_key(f"the key {key!r} is wrong: about max_tokens", key)
        == "the key '…' is wrong: about max_tokens"
    )
    assert remove_key(f"Bearer {key}", key) == "Bearer …"


def test_a_text_without_the_key_stays_as_it_is() -> None:
    text = "HTTP 404: there is no model of that name; İt was moved"
    assert remove_key(text, KEY) == remove_key(text, "none") == text


UNSENDABLE = [
    "my-very-secret-key-1234567\nsecond-line",
    "my-very-secret\r-1234567",
    "schlüssel-1234567",
    "key\x7f-1234567",
]


@every("key", UNSENDABLE)
def test_a_key_that_no_request_can_carry_is_refused_at_once_and_not_shown(key: str) -> None:
    told = f"the key in the environment variable {SERVER_KEY} holds a line break or"
    with pytest.MonkeyPatch.context() as context, pytest.raises(LLMError, match=told) as caught:
        context.setenv(SERVER_KEY, key)
        connect("http://127.0.0.1:1/v1#m")
    assert not held(key, str(caught.value)) and "second" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_line_break_at_its_end_is_no_part_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_KEY, "abcd-1234567\r\n")
    with asking(says("hi")) as (llm, server):
        llm(HELLO)
    assert server.headers[0]["authorization"] == "Bearer abcd-1234567"


@pytest.mark.parametrize("key", ["abcd", "x", KEY])
def test_what_a_server_echoes_of_a_key_is_neither_in_the_error_nor_told_while_waiting(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SERVER_KEY, key)
    shown = ""
    echo = f"no: {key} {f'Bearer {key}'.encode()!r} {quote(key, safe='')}"
    for answer in (
        *(refuses(status, echo) for status in (401, 500)),
        *(Answer(f"<html>{echo}</html>", 502), Answer(f'"{key}"')),
    ):
        with asking(answer, attempts=2) as (llm, server), pytest.raises(LLMError) as caught:
            llm(HELLO)
        shown += " ".join([*server.said, str(caught.value)])
    assert remove_key(shown, key) == shown


def test_what_is_set_for_openai_is_sent_to_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {
        "OPENAI_API_KEY": "sk-of-openai-1234",
        "OPENAI_ADMIN_KEY": "admin-1234",
        "OPENAI_ORG_ID": "org-1234",
        "OPENAI_PROJECT_ID": "proj-1234",
        "OPENAI_CUSTOM_HEADERS": "X-Lab: lab-1234\nopenai-organization: org-5678\nauthorization: Bearer other-1234",
        "OPENAI_WEBHOOK_SECRET": "hook-1234",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(SERVER_KEY, "own-key")
    with asking(says("hi")) as (llm, server):
        llm(HELLO)
    sent = server.headers[0]
    assert sent["authorization"] == "Bearer own-key"
    assert not [value for value in sent.values() if "1234" in value or "5678" in value]
    assert not {"x-lab", "openai-organization", "openai-project"} & set(sent)


@every(
    ("address", "openai"),
    [
        ("https://api.openai.com/v1#m", True),
        ("https://EU.api.OpenAI.com./v1#m", True),
        ("https://api.openai.com.example.org/v1#m", False),
        ("https://notopenai.com/v1#m", False),
        ("https://me.openai.azure.com/v1#m", False),
    ],
)
def test_openais_own_addresses_get_its_organization(address: str, openai: bool) -> None:
    assert ("OpenAI-Organization" not in authorization_headers(server_at(address)[0], "key")) is openai
    assert list(authorization_headers(ENDPOINTS["openai"], "key")) == ["Authorization"]


def test_a_key_that_a_server_repeats_in_its_reply_is_masked_and_the_rest_of_a_long_reply_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(SERVER_KEY, KEY)
    long = "a word " * 2_000
    spelt = f"{KEY} {json.dumps(KEY)} {f'Bearer {KEY}'.encode().hex()} {quote(KEY)}"
    with asking(says(f"{long}{spelt} the end")) as (llm, _):
        said = llm(HELLO).text
    assert said.startswith(long) and said.endswith(" the end") and said.count("…") == 4
    assert not held(KEY, said)


def test_a_word_that_is_somebodys_password_is_left_in_texts():
    words = {"POSTGRES_PASSWORD": "postgres", "NEO4J_PASSWORD": "Password", "A_TOKEN": "tr0ub4dor"}
    assert (
        mask_known_keys("postgresql.org wants a password, tr0ub4dor", words)
        == "postgresql.org wants a password, …"
    )
