"""Servers and models as they are: what a real HTTP server on the loopback sends, what must come out of it, and how
many requests that takes.
"""

from __future__ import annotations

import base64
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field, model_validator
from support.every import every
from support.openai_server import (
    Answer,
    Server,
    asking,
    cut,
    delta,
    ending,
    event,
    ollama_says,
    openai_server,
    refuses,
    says,
    tells,
)

from kgot_lab.embedding.api import API
from kgot_lab.errors import BadReply, LLMError, OverBudget
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.openai_compatible import OpenAICompatible
from kgot_lab.llm.presets import SERVER_KEY
from kgot_lab.llm.recorded import Recorded, Recorder
from kgot_lab.llm.streaming import stream_reply
from kgot_lab.llm.structured import parse, structured
from kgot_lab.tools.calls import ChosenCalls
from kgot_lab.types import Message, Prompt, Reply

HELLO = Prompt((Message("system", "Be brief."), Message("user", "Hello?")), max_tokens=50)
LONG = Prompt((Message("user", "word " * 4_000),), max_tokens=50)
KEY = "sk-canary-0123456789abcdef"


class Note(BaseModel):
    answer: str
    parts: list[str] = Field(default_factory=list)
    sure: bool = False


def message(content: object = None, ended: str = "stop", **more: object) -> Answer:
    return says("", choices=[{"index": 0, "message": {"content": content, **more}, "finish_reason": ended}])


def calls(arguments: object) -> dict[str, object]:
    return {"tool_calls": [{"type": "function", "function": {"name": "reply", "arguments": arguments}}]}


TWO_CALLS = [
    {"id": name, "function": {"name": name, "arguments": f'{{"query": "{name}"}}'}} for name in ("one", "two")
]
TWO_CALLS_SAID = (
    '{"name": "one", "arguments": {"query": "one"}}\n{"name": "two", "arguments": {"query": "two"}}'
)
Shared = tuple[OpenAICompatible, Server]


@pytest.fixture
def shared() -> Iterator[Shared]:
    """One client and one server for all cases of a test that change neither."""
    with asking(says("")) as (llm, server):
        yield llm, server


def given(shared: Shared, *answers: Answer) -> Shared:
    """The client and its server, which gives these answers from now on."""
    shared[1].answers[:] = answers
    shared[1].bodies.clear()
    return shared


# --- structured replies

X, PARTS = Note(answer="x"), Note(answer="x", parts=["one"])
MENDED: list[tuple[str, Note]] = [
    ('{"answer": "x", "parts": ["one",],}', PARTS),
    ("{'answer': 'x', 'parts': ['one'], 'sure': False}", PARTS),
    ("{'answer': 'It\\'s \"x\"', 'sure': True}", Note(answer='It\'s "x"', sure=True)),
    ("Here's what I'd say: {'answer': 'It's x'}. That's it.", Note(answer="It's x")),
    ('{"answer": "http://x", // a comment\n "sure": true # and, another\n}', Note(answer="http://x", sure=True)),
    ('{"answer": /* a comment */ "x", "parts": ["one", /* the last */]}', PARTS),
    ('{answer: "x", parts: ["one"]}', PARTS),
    ('{"answer": "two\nlines\tand a tab"}', Note(answer="two\nlines\tand a tab")),
    ('{"answer": “x”, “parts”: ["one"]}', PARTS),
    ('{"answer": "a “quoted” word"}', Note(answer="a “quoted” word")),
    ('{"answer": "\\d+ and \\_"}', Note(answer="\\d+ and \\_")),
    (json.dumps('{"answer": "x"}'), X),
    (f"```json\n{json.dumps(X.model_dump_json())}\n```", X),
    ('[{"answer": "x"}]', X),
    ('{"result": {"answer": "x", "parts": ["one"]}}', PARTS),
    ('{"type": "object", "properties": {"answer": "x"}}', X),
    ('{"answer": "x", "parts": "one"}', PARTS),
    ('{"answer": "x", "parts": "[\\"one\\"]"}', PARTS),
    ('{"answer": 4.5, "parts": [1]}', Note(answer="4.5", parts=["1"])),
    ('{"answer": "x", "parts": null}', X),
    ('{"answer": null}', Note(answer="")),
    ('<tool_call>\n{"name": "reply", "arguments": {"answer": "x"}}\n</tool_call>', X),
    ('{"name": "reply", "parameters": "{\\"answer\\": \\"x\\"}"}', X),
    ('reply({"answer": "x"})', X),
    ('Draft: <think>{"answer": "a draft"}</think>{"answer": "x"}', X),
    ('Maybe {"answer": "a draft"}? No: {"answer": "x"}', X),
    ('{"answer": "..."}\n{"answer": "x"}', X),
    ('{"answer": "x"}, as asked for: {"answer": "..."}', X),
    ('See [a] and [1]. {"result": {"answer": "x"}}', X),
    ('{"answer": true, "sure": "yes"}', Note(answer="true", sure=True)),
    ('{"answer": ["a", "b", 3]}', Note(answer="a, b, 3")),
    ('{"Answer": "x", "PARTS": ["one"]}', PARTS),
    ('{"answer": "x"', X),
    ('```json\n{"result": {"answer": "x", "sure": true\n```', Note(answer="x", sure=True)),
    ('{„answer“: „x“, ”parts”: [”one”]}', PARTS),
    ("{'parts': ('one',), 'answer': 'x'}", PARTS),
    ("{'answer': 'two ' \"words\"}", Note(answer="two words")),
    ("{'answer': '''two\nlines'''}".replace("'''", "'''"), Note(answer="two\nlines")),
    ("Note(answer='x', parts=['one'])", PARTS),
    ("answer: It is: x\nparts: [one]\nsure: yes", Note(answer="It is: x", parts=["one"], sure=True)),
    ("```yaml\n**Answer**: x\nparts:\n- one\n```", PARTS),
    ('[TOOL_CALLS][{"name": "reply", "arguments": {"answer": "x"}}]', X),
    ('[TOOL_CALLS]reply[ARGS]{"answer": "x"}', X),
    ('As told in [1]:\n<tool_call>{"name": "reply", "arguments": {"answer": "x"}\n</tool_call>', X),
    ("<function=reply>\n<parameter=answer>\nx\n</parameter>\n<parameter=parts>[\"one\"]</parameter>\n</function>", PARTS),
]  # fmt: skip


@every("text, value", MENDED)
def test_what_a_model_writes_in_place_of_json_is_read_without_a_second_request(
    shared: Shared, text: str, value: Note
) -> None:
    llm, server = given(shared, says(text), says('{"answer": "asked again"}'))
    assert structured(llm, HELLO, Note) == value
    assert len(server.bodies) == 1


BRIDGE, TOWN = {"query": "bridge"}, {"query": "town", "k": 3}
CALLS: list[tuple[Any, list[tuple[str, Any]]]] = [
    ({"calls": [{"tool": "search", "arguments": BRIDGE}]}, [("search", BRIDGE)]),
    ({"tool": "search", "arguments": BRIDGE}, [("search", BRIDGE)]),
    ([{"name": "search", "parameters": BRIDGE}, {"function": "read", "args": TOWN}], [("search", BRIDGE), ("read", TOWN)]),
    ({"calls": {"Tool": "search", "Arguments": json.dumps(BRIDGE)}}, [("search", BRIDGE)]),
    ({"result": {"calls": [{"tool": "search", "query": "bridge"}]}}, [("search", BRIDGE)]),
    ({"tool_calls": [{"id": "1", "type": "function", "function": {"name": "search", "arguments": json.dumps(TOWN)}}]}, [("search", TOWN)]),
    ({"calls": [{"tool": "functions.now", "arguments": None}]}, [("now", {})]),
    ({"calls": []}, []),
    ('<tool_call>\n{"name": "search", "arguments": {"query": "bridge"}}\n</tool_call>', [("search", BRIDGE)]),
    ('{"name": "a", "arguments": {}}\n{"name": "b", "arguments": {}}', [("a", {}), ("b", {})]),
    ('{"calls": [{"tool": "a", "arguments": {}}]} or rather {"calls": [{"tool": "b", "arguments": {}}]}', [("b", {})]),
    ('{"calls": [{"tool": "...", "arguments": {...}}]}\n{"calls": [{"tool": "b", "arguments": {}}]}', [("b", {})]),
    ("<tool_call>\n<function=search>\n<parameter=query>\ntown\n</parameter>\n<parameter=k>3</parameter>\n</function>", [("search", TOWN)]),
    ('<function=search>{"query": "bridge"}</function>', [("search", BRIDGE)]),
    ('[TOOL_CALLS][{"name": "search", "arguments": {"query": "bridge"}}]', [("search", BRIDGE)]),
    ('[TOOL_CALLS]search[ARGS]{"query": "bridge"}[TOOL_CALLS]now{}', [("search", BRIDGE), ("now", {})]),
    ('commentary to=functions.search <|constrain|>json<|message|>{"query": "bridge"}', [("search", BRIDGE)]),
    ("search(query='bridge')", [("search", BRIDGE)]),
    ("I will call [search(query='bridge'), tools.search(query=\"town\", k=3)] now.", [("search", BRIDGE), ("search", TOWN)]),
    ("search('bridge')", [("search", {"0": "bridge"})]),
    ('Thought: who: I see\nAction: search\nAction Input: {"query": "bridge"}\nObservation: none', [("search", BRIDGE)]),
    ("**Action:** search\n**Action Input:** bridge\nAction: now\nAction Input:", [("search", {"0": "bridge"}), ("now", {"0": ""})]),
    ("calls:\n- tool: search\n  arguments:\n    query: bridge", [("search", BRIDGE)]),
]  # fmt: skip


@every("reply, calls", CALLS)
def test_a_choice_of_calls_is_read_in_the_notation_of_any_model(
    shared: Shared, reply: Any, calls: list[tuple[str, Any]]
) -> None:
    llm, server = given(shared, says(reply if isinstance(reply, str) else json.dumps(reply)))
    assert [(call.tool, call.arguments) for call in structured(llm, HELLO, ChosenCalls).calls] == calls
    assert len(server.bodies) == 1


@every(
    "text",
    [
        '{"calls": [{"tool": "a", "arguments": {}}, {"tool": "b", "argum',
        '<tool_call>{"name": "a", "arguments": {}}</tool_call>\n<tool_call>{"name": "b", "arg',
    ],
)
def test_the_first_of_calls_that_were_cut_is_not_taken_for_all(shared: Shared, text: str) -> None:
    llm, server = given(shared, cut(text), says('{"calls": []}'))
    assert structured(llm, HELLO, ChosenCalls).calls == [] and len(server.bodies) == 2


@every("text", ["I would search for it (in the documents).", '{"query": "bridge"}', "null", "[]"])
def test_what_names_no_tool_is_no_call_and_the_error_says_who_replied_to_what(
    shared: Shared, text: str
) -> None:
    llm, _ = given(shared, says(text))
    with pytest.raises(BadReply, match=r"tiny, asked for ChosenCalls: .*; ask again, or"):
        structured(llm, HELLO, ChosenCalls)


@every(
    "text",
    [
        "f(" * 30_000,
        "{" * 30_000,
        "answer: " + "[" * 9_000,
        "[TOOL_CALLS]a{" * 3_000,
        "{'''" * 20_000,
        "\n" * 200_000,
    ],
    ids=["calls", "braces", "yaml", "named calls", "quotes", "lines"],
)
def test_a_reply_of_nothing_but_beginnings_is_refused_in_time(text: str) -> None:
    began = time.process_time()
    with pytest.raises(BadReply):
        parse(text, Note)
    assert time.process_time() - began < 5


class Choice(BaseModel):
    choice: Literal["INSERT", "RETRIEVE"]


@every("text", ['{"choice": "retrieve"}', '{"Choice": "Retrieve."}', "choice: RETRIEVE"])
def test_the_letter_case_of_a_word_to_choose_does_not_matter(shared: Shared, text: str) -> None:
    llm, server = given(shared, says(text))
    assert structured(llm, HELLO, Choice).choice == "RETRIEVE" and len(server.bodies) == 1


class Notes(BaseModel):
    """A shape that takes the list in it alone."""

    notes: list[Note]

    @model_validator(mode="before")
    @classmethod
    def _wrap(cls, value: Any) -> Any:
        return {"notes": value} if isinstance(value, list) else value


@every("count", [0, 1, 2])
def test_a_list_that_a_shape_takes_as_it_is_is_not_unwrapped(shared: Shared, count: int) -> None:
    llm, server = given(shared, says(json.dumps([X.model_dump()] * count)))
    assert structured(llm, HELLO, Notes).notes == [X] * count and len(server.bodies) == 1


@every(
    ("text", "reason"),
    [
        ('{"answer": "x", "parts": ["one", "tw', "breaks at character"),
        ('{"things": [{"answer": "of something else"}], "parts": ["tw', "valid dictionary"),
        ('{"answer": }', "Expecting value"),
        ('{"answer": "x" "parts": []}', "Expecting ',' delimiter"),
        ("I cannot answer [sorry].", "breaks at character 17"),
        ("null", "it is null"),
        ('{"parts": []}', "answer: Field required"),
        ('{"answer": {"text": "x"}}', "answer: Input should be a valid string"),
        ('{"answer": "x', "Unterminated string"),
        ('{"answer": 19', "breaks at character"),
        ('{"answer": "x", "parts": ["one"', "breaks at character"),
        ('{"answer": "x", "parts": ["one" "two"]}', "Expecting ',' delimiter"),
        ("The answer: perhaps x", "there is no JSON in it"),
    ],
)
def test_what_is_missing_in_a_reply_is_not_invented_but_asked_for_once_more(
    shared: Shared, text: str, reason: str
) -> None:
    llm, server = given(shared, says(text))
    with pytest.raises(BadReply, match=reason):
        structured(llm, HELLO, Note)
    assert len(server.bodies) == 2 and reason in server.bodies[1]["messages"][-1]["content"]


# --- thoughts, and answers in odd places

READ: list[tuple[Answer, str]] = [
    (says("Okay. <think>no</think>42"), "Okay. 42"),
    (says("42 <think>no</think>"), "42"),
    (says("<think>no</think>4<think>no</think>2"), "42"),
    (says("no, no</think>42"), "42"),
    (says("<THINK effort='high'>no</THINK >42"), "42"),
    (says("[THINK]no[/THINK]42"), "42"),
    (says("◁think▷no◁/think▷42"), "42"),
    (says("<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>42"), "42"),
    (says("<|channel>thought\nno<channel|>42"), "42"),
    (says("**Reasoning:** no\n\n**Final answer:** 42"), "42"),
    (cut("Let me see.\n<think>no"), "Let me see."),
    (says("Use the <think> tag."), "Use the <think> tag."),
    (says('{"tag": "a <think> or </think>"}'), '{"tag": "a <think> or </think>"}'),
    (message("42", reasoning_content="no"), "42"),
    (message("", reasoning_content="42"), "42"),
    (message(None, reasoning="no</think>42"), "42"),
    (message(None, "tool_calls", **calls('{"answer": "x"}')), '{"answer": "x"}'),
    (message(None, "tool_calls", **calls({"answer": "x"})), '{"answer": "x"}'),
    (message("I look.", "tool_calls", tool_calls=TWO_CALLS), f"I look.\n{TWO_CALLS_SAID}"),
    (message({"answer": "x"}), '{"answer": "x"}'),
    (message({"choice": "INSERT", "text": "x"}), '{"choice": "INSERT", "text": "x"}'),
    (message({"type": "text", "text": "42"}), "42"),
    (message([{"text": "42"}]), "42"),
    (message([{"type": "text", "text": "4"}, "2"]), "42"),
    (says("", choices=[{"text": "42", "finish_reason": "stop"}]), "42"),
    (Answer(json.dumps(says("42").body), headers={"content-type": "text/html; charset=utf-8"}), "42"),
    (message(None, function_call={"arguments": "42"}), "42"),
    (tells([delta("4"), delta("2"), *ending()]), "42"),
    (tells([delta(None, reasoning_content="no"), delta("42"), *ending(usage=False)]), "42"),
    (tells(["event: message\n", delta("42"), *ending()]), "42"),
    (Answer(json.dumps(says("42").body, indent=1), headers={"content-type": "text/plain"}), "42"),
    (Answer("\ufeff\n" + json.dumps(says("42").body), headers={"content-type": ""}), "42"),
    (Answer("".join([delta("4"), delta("2"), *ending()])), "42"),  # called application/json
    (Answer("\ufeff" + "".join([delta("4"), delta("2"), *ending()]).replace("\n", "\r\n")), "42"),
    (tells(['data:{"choices": [{"delta": {"content": "42"}}]}\n', "id: 1\n", *ending()]), "42"),
    (says("half \ud83d of it"), "half ? of it"),
]  # fmt: skip


@every("answer, text", READ)
def test_the_answer_is_read_wherever_it_is_and_no_thought_is_taken_for_it(
    shared: Shared, answer: Answer, text: str
) -> None:
    llm, server = given(shared, answer)
    assert llm(HELLO).text == text
    assert len(server.bodies) == 1


def delta_of_call(number: int) -> str:
    name, part = (("search", '{"query": '), (None, '"bridge"}'))[number]
    return delta(None, tool_calls=[{"index": 0, "id": name, "function": {"name": name, "arguments": part}}])


STREAMED: list[tuple[Answer, str]] = [
    (tells([*map(delta, ("Okay. <thi", "nk>no</th", "ink>42")), *ending()]), "Okay. 42"),
    (tells([*map(delta, ("<|chan", "nel>thought no<chan", "nel|>42")), *ending()]), "42"),
    (tells([delta(None, reasoning_content="4"), delta(None, reasoning_content="2"), *ending()]), "42"),
    (tells([delta(None, **calls("4")), delta(None, **calls("2")), *ending()]), "42"),
    (tells([delta("half \ud83d"), delta("\ude00, "), delta("\ud83d of it"), *ending()]), "half 😀, � of it"),
    (message("", reasoning_content="42"), "42"),
    (tells([delta("I look."), delta(None, tool_calls=TWO_CALLS), *ending()]), f"I look.\n{TWO_CALLS_SAID}"),
    (
        tells([*map(delta_of_call, range(2)), *ending()]),
        '{"name": "search", "arguments": {"query": "bridge"}}',
    ),
]


@every(
    "said",
    [
        'maybe {"answer": "no"}</think>{"answer": "x"}',
        "**Reasoning:** no\n\n**Answer:** x",
        "a <think>no</think> b",
    ],
)
def test_a_reply_is_the_same_whether_it_is_streamed_or_not(shared: Shared, said: str) -> None:
    llm, _ = given(shared, says(said), tells([*map(delta, said), *ending()]))
    plain = llm(HELLO).text
    *pieces, reply = stream_reply(llm, HELLO)
    assert isinstance(reply, Reply) and reply.text == plain and "".join(map(str, pieces)).endswith(plain)


@every("answer, text", STREAMED)
def test_a_streamed_answer_is_read_in_the_same_way(answer: Answer, text: str) -> None:
    with asking(answer) as (llm, server):
        *pieces, reply = stream_reply(llm, HELLO)
    assert isinstance(reply, Reply) and "".join(map(str, pieces)) == reply.text == text
    assert len(server.bodies) == 1


@every(
    ("answer", "reason", "requests"),
    [
        (message("", "length", reasoning_content="no"), "the reply is empty", 2),
        (Answer("<html>Please sign in</html>", headers={"content-type": "text/html"}), "not a chat completion", 1),
        (tells([delta("4")]), "the answer ends before its end", 6),
        (tells([delta("4"), event({"error": {"message": "no memory"}})]), "no memory", 1),
        (tells([delta("4"), "event: error\n", event({"message": "engine died", "code": 5})]), "engine died", 1),
        (tells([delta("4"), event({"message": "engine died"})]), "engine died", 1),
        (tells([delta("4"), "event: error\n", "data: engine died\n\n"]), "engine died", 1),
        (tells([delta("4"), event({"choices": [{"error": {"message": "engine died"}}]})]), "engine died", 1),
        (tells([delta("4"), event({"error": "CUDA out of memory"})]), "CUDA out of memory", 6),
        (tells([delta("4"), event({"detail": "gone", "status_code": 503})]), "HTTP 503.*gone", 6),
        (Answer({"detail": [{"loc": ["body", "model"], "msg": "no such model"}]}), "no such model", 1),
        (message(None, tool_calls=[None, 3, {"function": None}]), "the reply is empty", 2),
        (Answer('{"choices": ', headers={"content-type": "text/plain"}), "not a chat completion", 1),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_with_its_reason(answer: Answer, reason: str, requests: int) -> None:
    with asking(answer) as (llm, server), pytest.raises(LLMError, match=reason):
        llm(HELLO)
    assert len(server.bodies) == requests


def test_half_a_character_of_a_reply_does_not_keep_it_from_a_recording(tmp_path: Path) -> None:
    recording = tmp_path / "recording.jsonl"
    with asking(says("half \ud83d of it")) as (llm, _):
        assert Recorder(llm, recording)(HELLO) == Recorded(recording)(HELLO)


# --- requests that a server does not take as they are


@every(
    ("status", "words"),
    [
        (400, "System role not supported"),
        (500, "Jinja exception: Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "Only user and assistant roles are supported!"),
        (422, "messages.0.role: 'system' is not one of ['user', 'assistant']"),
        (400, "Developer instruction is not enabled for models/gemma-3"),
        (422, [{"loc": ["body", "messages", 0, "role"], "msg": "permitted: 'user', 'assistant'"}]),
        (422, "messages.0.role: Input should be 'user' or 'assistant'"),
        (400, "Conversation must start with a user message"),
    ],
)
def test_a_system_message_that_is_refused_is_said_by_the_user_from_then_on(status: int, words: Any) -> None:
    refusal = refuses(status, words) if isinstance(words, str) else Answer({"detail": words}, status)
    with asking(refusal, says("Hi.")) as (llm, server):
        assert llm(HELLO).text == llm(HELLO).text == "Hi."
    sent = [{"role": "user", "content": "Be brief.\n\nHello?"}]
    assert [body["messages"] == sent for body in server.bodies] == [False, True, True]
    assert server.waits == [] and llm.left_out == ["system role"] and "without system role" in server.said[0]


def test_ollama_is_asked_for_a_context_that_holds_the_prompt_and_one_that_reads_less_is_told_once() -> None:
    with asking(ollama_says("Hi."), model="ollama:tiny") as (llm, server):
        for prompt in (HELLO, LONG, LONG):
            llm(prompt)
    assert [body["options"].get("num_ctx") for body in server.bodies] == [None, 8192, 8192]
    (told,) = server.said
    assert "read 90 tokens of a prompt of about 6,674" in told and "num_ctx" in told


@every("host, refused", [("localhost", True), ("127.0.0.1", False)])
def test_a_redirect_to_another_server_is_refused_and_the_key_stays(host: str, refused: bool) -> None:
    with openai_server(says("Hi.")) as other, pytest.MonkeyPatch.context() as context:
        context.setenv(SERVER_KEY, KEY)
        moved = Answer(
            status=307, headers={"location": f"{other.url.replace('127.0.0.1', host)}/chat/completions"}
        )
        if refused:
            with asking(moved) as (llm, server), pytest.raises(LLMError, match=f"redirects to http://{host}"):
                llm(HELLO)
            assert not other.bodies and len(server.bodies) == 1
        else:
            moved = Answer(status=307, headers={"location": "/v2/chat/completions"})
            with asking(moved, says("Hi.")) as (llm, server):
                assert llm(HELLO).text == "Hi."
            assert server.headers[1]["authorization"] == f"Bearer {KEY}"


SPELLINGS: list[Callable[[str], str]] = [
    str.upper,
    lambda key: key[::-1],
    " ".join,
    lambda key: " ".join(key[start : start + 4] for start in range(0, len(key), 4)),
    lambda key: base64.b32encode(f"Bearer {key}".encode()).decode(),
    lambda key: base64.b64encode(key.encode()).decode(),
    lambda key: "".join(f"%{ord(letter):02X}" for letter in key),
    lambda key: key.encode().hex(" "),
]


@every("spelt", SPELLINGS, ids=[str(number) for number in range(len(SPELLINGS))])
def test_a_key_is_masked_however_a_server_spells_it(spelt: Callable[[str], str]) -> None:
    shown = spelt(KEY)
    parts = shown[10:19], shown[-9:].strip("=")
    with pytest.MonkeyPatch.context() as context:
        context.setenv(SERVER_KEY, KEY)
        with asking(says(f"It is {shown}!"), refuses(401, f"wrong: {shown}!")) as (llm, _):
            said = llm(HELLO).text
            with pytest.raises(LLMError) as caught:
                llm(HELLO)
        pieces = [delta(f"It is {shown}!"[at : at + 3]) for at in range(0, len(shown) + 7, 3)]
        with asking(tells([*pieces, *ending()])) as (llm, _):
            streamed = [*stream_reply(llm, HELLO)][-1]
        with openai_server(refuses(400, f"wrong: {shown}!")) as server, pytest.raises(LLMError) as embedding:
            API(f"{server.url}#tiny", retries=0).embed(["a"])
    assert isinstance(streamed, Reply)
    for told in (said, str(caught.value), streamed.text, str(embedding.value)):
        assert "…" in told and not any(part in told for part in parts)
    assert said.startswith("It is ") and said.endswith("!")


# --- budgets


@every(
    "usage",
    [None, {}, *({"prompt_tokens": count, "completion_tokens": count} for count in (0, -5, "many"))],
)
def test_a_budget_of_tokens_holds_where_a_server_tells_none(usage: object) -> None:
    prompt = Prompt((Message("user", "word " * 600),), max_tokens=50)
    with asking(says("word " * 30, usage=usage)) as (llm, server):
        kept = Budgeted(llm, Budget(tokens=9_000))
        with pytest.raises(OverBudget, match="of 9,000 tokens are spent"):
            for _ in range(100):
                kept(prompt)
        assert kept.spending.spent.prompt_tokens + kept.spending.spent.completion_tokens <= 9_000
    assert 2 <= len(server.bodies) <= 9


def test_a_budget_of_seconds_does_not_stop_after_a_call_that_took_a_part_of_it() -> None:
    prompt = Prompt(HELLO.messages, max_tokens=80_000_000)
    usage = {"prompt_tokens": 20, "completion_tokens": 2}
    with asking(says("Hi.", usage=usage)) as (llm, server):
        kept = Budgeted(llm, Budget(seconds=600))
        for _ in range(5):
            kept(prompt)
        kept.spending.charge(kept.spent.__class__(seconds=600.0), calls=0)
        with pytest.raises(OverBudget, match="of 600 seconds are spent"):
            kept(prompt)
    assert len(server.bodies) == 5


# --- embeddings


def embeds(refusal: Callable[[list[str]], Answer | None]) -> Callable[[dict[str, Any]], Answer]:
    """Embed texts by their lengths, unless they are refused."""

    def answer(body: dict[str, Any]) -> Answer:
        rows = [{"index": place, "embedding": [len(text), 1]} for place, text in enumerate(body["input"])]
        return refusal(body["input"]) or Answer({"data": rows})

    return answer


def at_most(limit: int, status: int, words: str) -> Callable[[list[str]], Answer | None]:
    return lambda texts: refuses(status, words.format(len(texts))) if len(texts) > limit else None


@every(
    ("refusal", "most"),
    [
        (at_most(10, 400, "batch size is invalid, it should not be larger than 10."), 14),
        (at_most(32, 422, "batch size {} > maximum allowed batch size 32"), 5),
        (at_most(32, 413, "Payload too large"), 8),
        (lambda texts: refuses(400, "too many inputs") if len(texts) > 7 else None, 28),
        # one of the texts takes up most of a request
        (lambda texts: refuses(400, "maximum context length") if sum(map(len, texts)) > 2_500 else None, 20),
    ],
)  # fmt: skip
def test_texts_are_sent_in_batches_that_the_server_takes(
    refusal: Callable[[list[str]], Answer | None], most: int
) -> None:
    texts = ["x" * (2_000 if row == 40 else 1 + row % 7) for row in range(100)]
    with openai_server(embeds(refusal)) as server:
        vectors = API(f"{server.url}#tiny", retries=0, batch=128).embed(texts)
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts])
    assert len(server.bodies) <= most
    sizes = [len(body["input"]) for body in server.bodies]
    assert sizes[0] == 100 and max(sizes[-3:]) > 1


def test_a_text_that_is_too_long_alone_is_cut_and_that_is_told() -> None:
    def too_long(texts: list[str]) -> Answer | None:
        return (
            refuses(400, "This model's maximum context length is 512 tokens")
            if max(map(len, texts)) > 900
            else None
        )

    with openai_server(embeds(too_long)) as server:
        model = API(f"{server.url}#tiny", retries=0)
        with pytest.warns(UserWarning, match=r"takes no text of 1,600 characters .*512 tokens.* first 800"):
            vectors = model.embed(["short", "x" * 1_600, "also short"])
    assert vectors[1, 0] / vectors[1, 1] == pytest.approx(800) and len(server.bodies) <= 6


@every(
    ("answer", "reason"),
    [
        (refuses(400, "this model embeds no texts"), "HTTP 400: this model embeds no texts"),
        (Answer({"detail": "a limit of nothing"}, 422), "HTTP 422: a limit of nothing"),
        (Answer({"error": {"message": "no memory"}}), "no memory"),
    ],
)
def test_why_a_server_does_not_embed_is_in_the_error(answer: Answer, reason: str) -> None:
    with openai_server(answer) as server, warnings.catch_warnings(), pytest.raises(LLMError, match=reason):
        warnings.simplefilter("error")
        API(f"{server.url}#tiny", retries=0).embed(["a", "b"])
    assert len(server.bodies) <= 2
