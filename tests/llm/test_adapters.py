"""A model is whatever answers: a client of openai, a function, a chat model of LangChain. Nothing here is imported
from LangChain, whose chat models are known by their `invoke`.
"""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from support.every import every
from support.openai_server import openai_server, refuses, says, says_on

import kgot_lab as lab
from kgot_lab.errors import BadInput, LLMError, OverBudget
from kgot_lab.llm import connect
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.presets import Price, RetryPolicy
from kgot_lab.llm.recorded import Recorded, Scripted
from kgot_lab.llm.streaming import stream_reply
from kgot_lab.llm.structured import checked_reply, structured
from kgot_lab.types import Message, Prompt, Reply, Usage

HELLO = Prompt((Message("system", "Be brief."), Message("user", "Hello?")), max_tokens=50)
PICTURE = Prompt((Message("user", "What is it?", ("data:image/png;base64,AAAA",)),))
KEY = "sk-canary-0123456789abcdef"


class Note(BaseModel):
    answer: str


# --- clients of openai


@pytest.mark.parametrize("client", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_client_of_openai_is_a_model_with_its_address_key_and_headers(client: Any) -> None:
    with openai_server(says("Hi."), says_on("Hi", " there")) as server:
        own = client(api_key=KEY, base_url=server.url, default_headers={"x-team": "red"}, max_retries=5)
        llm = connect(own, model="tiny")
        assert llm(HELLO).text == "Hi." and "".join(map(str, [*stream_reply(llm, HELLO)][:-1])) == "Hi there"
        assert llm.name == f"{server.url.removeprefix('http://').removesuffix('/v1')}:tiny"
    assert server.bodies[0]["model"] == "tiny" and server.bodies[0]["messages"][1]["content"] == "Hello?"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}" and server.headers[0]["x-team"] == "red"


def test_what_a_server_refuses_a_client_is_retried_adapted_and_told_without_its_key() -> None:
    with openai_server(
        refuses(400, "temperature is not supported"), says("Hi."), refuses(401, f"wrong: {KEY}")
    ) as server:
        told: list[str] = []
        llm = connect(
            openai.OpenAI(api_key=KEY, base_url=server.url, timeout=9), model="tiny", say=told.append
        )
        assert llm(HELLO).text == "Hi." and "without temperature" in told[0]
        with pytest.raises(LLMError, match=r"wrong: … Check the key of the client\.") as caught:
            llm(HELLO)
    assert KEY not in str(caught.value) and len(server.bodies) == 3


def test_an_azure_client_keeps_its_deployment_and_a_client_without_a_model_says_so() -> None:
    with openai_server(says("Hi.")) as server:
        azure = openai.AzureOpenAI(api_key="a", azure_endpoint=server.url, api_version="1")
        assert connect(azure, model="mine")(HELLO).text == "Hi."
    with pytest.raises(BadInput, match=r"serves many models: say which, as in connect\(client, model="):
        lab.ask("Who?", [lab.Document("1", "Ada was born.")], azure)


# --- functions


def test_a_function_from_a_text_to_a_text_is_a_model_named_as_it_is() -> None:
    asked = []

    def shout(text: str) -> str:
        asked.append(text)
        return f"<think>hm</think>{text.upper()}"

    assert connect(shout).name == "shout" and connect(shout)(HELLO).text == "BE BRIEF.\n\nHELLO?"
    assert connect(shout, name="loud").name == "loud" and asked == ["Be brief.\n\nHello?"]


def test_a_schema_and_a_bad_reply_are_written_in_the_prompt_of_a_function() -> None:
    replies = iter(["nothing", '{"answer": "x"}'])
    asked = []

    def speak(text: str) -> str:
        asked.append(text)
        return next(replies)

    assert structured(connect(speak), HELLO, Note) == Note(answer="x")
    assert '"answer"' in asked[0] and "Your reply was:\nnothing" in asked[1]


async def later(text: str) -> str:
    await asyncio.sleep(0)
    return "later"


class Twice:
    def __call__(self, text: str) -> str:
        return text * 2


@every(
    "function, name", [(later, "later"), (partial(later), "later"), (Twice(), "Twice"), (str.upper, "upper")]
)
def test_coroutine_functions_partials_and_callable_objects_are_functions(function: Any, name: str) -> None:
    llm = connect(function)
    assert llm.name == name and llm(HELLO).text


def crashes(text: str) -> str:
    raise ValueError("no weights")


@every(
    ("function", "prompt", "problem"),
    [
        (crashes, HELLO, "crashes did not answer: ValueError: no weights"),
        (lambda text: {"answer": text}, HELLO, "answered with a dict: a model returns a text"),
        (lambda: "x", HELLO, "did not answer: TypeError.*takes 0 positional"),
        (crashes, PICTURE, "reads no images"),
    ],
)
def test_what_goes_wrong_in_a_function_is_an_error_of_the_model(
    function: Any, prompt: Prompt, problem: str
) -> None:
    with pytest.raises(LLMError, match=problem):
        connect(function)(prompt)


class Named:
    """A callable object that has a name and says that it takes a text."""

    name = "named"

    def __call__(self, text: str) -> str:
        return text.upper()


def with_a_name(function: Any) -> Any:
    function.name = "named"
    return function


@every(
    "function",
    [
        Named(),
        with_a_name(partial(lambda style, text: text.upper(), "plain")),
        with_a_name(lambda text: text.upper()),
    ],
)
def test_what_takes_a_text_is_given_one_though_it_has_a_name(function: Any) -> None:
    llm = connect(function)
    assert (llm.name, llm(HELLO).text) == ("named", "BE BRIEF.\n\nHELLO?")


def test_a_function_with_a_name_may_take_a_prompt_as_a_model_does() -> None:
    answer = Reply("Hi.", Usage(9, 1))
    assert connect(with_a_name(lambda prompt: answer if prompt.messages else None))(HELLO) == answer

    class Untold(Named):
        def __call__(self, text):  # type: ignore[no-untyped-def]
            return "a text"

    with pytest.raises(LLMError, match=r"named replied with .*, and what takes and returns a text says so"):
        checked_reply(connect(Untold()), HELLO)


class Leaks:
    """A model of a package of its own, whose errors show its key."""

    name = "leaks"

    def __init__(self, problem: Exception):
        self._problem = problem

    def __call__(self, prompt: Prompt) -> Reply:
        try:
            raise KeyError(KEY)
        except KeyError:
            raise self._problem from None

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        yield "Hi"
        raise self._problem

    def invoke(self, messages: Any) -> Any:
        raise self._problem


@every(
    "problem",
    [
        RuntimeError(f"401 for {KEY}"),
        LLMError(f"wrong: {KEY}"),
        OSError(5, f"at {KEY}"),
        ValueError("known by its form: Bearer sk-proj-0aB1canary-xyz"),
    ],
)
@every("ask", [checked_reply, lambda llm, prompt: [*stream_reply(llm, prompt)]])
@every("adapted", [False, True])
def test_no_key_is_in_an_error_of_a_model_or_what_caused_it(
    problem: Exception, ask: Any, adapted: bool
) -> None:
    leaking = Leaks(type(problem)(*problem.args))
    with pytest.MonkeyPatch.context() as context, pytest.raises(Exception) as caught:
        context.setenv("OTHER_API_KEY", KEY)
        ask(connect(leaking.invoke if adapted else leaking), HELLO)
    shown = "".join(traceback.format_exception(caught.value))
    assert "canary" not in shown.replace(__file__, "") and "…" in str(caught.value)


@every("written, shown", [
    ("key sk-proj-0123456789abcdef.", "key …."), ("AIzaSyA0123456789abcdefg", "…"), ("ghp_0123456789abcdef0123", "…"),
    ("Authorization: Bearer abc.123-xyz/456789", "Authorization: Bearer …"), ("hf_abcdefghij0123456789", "…"),
    ("sk-canaries sing", "sk-canaries sing"), ("risk-0123456789abcdef", "risk-0123456789abcdef"),
    ("the bearer of the ring", "the bearer of the ring"),
])  # fmt: skip
def test_a_key_is_known_by_its_form_in_any_error_of_the_package(written: str, shown: str) -> None:
    assert str(BadInput(written)) == shown


def test_what_a_server_makes_wait_for_is_logged_once_where_nobody_is_to_hear_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with openai_server(refuses(503, "down"), refuses(503, "down"), says("Hi.")) as server:
        patience = RetryPolicy(first_wait=0.001, longest_wait=0.001)
        assert connect(f"{server.url}#tiny", patience=patience)(HELLO).text == "Hi."
    (told,) = caplog.messages
    assert "HTTP 503: down" in told and "request 1 of" in told


def test_a_time_out_says_how_to_allow_more_not_to_look_for_the_server() -> None:
    def late(body: Any) -> Any:
        time.sleep(0.6)
        return says("Hi.")

    with (
        openai_server(late) as server,
        pytest.raises(LLMError, match=r"no answer within 0.2 s. Allow it more with patience") as caught,
    ):
        connect(f"{server.url}#tiny", patience=RetryPolicy(attempts=1, timeout=0.2))(HELLO)
    assert "running" not in str(caught.value)


def test_budgets_and_recordings_hold_for_a_function(tmp_path: Any) -> None:
    kept = Budgeted(connect(str.upper), Budget(tokens=200))
    with pytest.raises(OverBudget):
        for _ in range(50):
            kept(HELLO)
    assert Budgeted(connect(str.upper, price=Price(1, 1)), Budget(dollars=1))(HELLO).text
    taped = connect(str.upper, recording=tmp_path / "recording")(HELLO)
    assert Recorded(tmp_path / "recording")(HELLO).text == taped.text


# --- chat models of LangChain


class Chat:
    """What a chat model of LangChain has: its `invoke`, and the message that it returns."""

    name = None
    model_name = "chat-1"

    def __init__(self, content: Any, **more: Any):
        self.reply, self.asked = SimpleNamespace(content=content, **more), list[Any]()

    def invoke(self, messages: Any) -> Any:
        self.asked.append(messages)
        return self.reply


def test_a_chat_model_of_langchain_is_asked_by_messages_and_tells_its_usage() -> None:
    usage = {"input_tokens": 9, "output_tokens": 4, "output_token_details": {"reasoning": 1}}
    chat = Chat("Hi.", usage_metadata=usage, response_metadata={"finish_reason": "length"})
    reply = connect(chat)(HELLO)
    assert (reply.text, reply.usage, reply.cut) == ("Hi.", Usage(9, 4, reasoning_tokens=1), True)
    assert chat.asked == [[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]]
    connect(chat)(PICTURE)
    assert connect(chat).name == "chat-1" and chat.asked[1][0]["content"][1]["type"] == "image_url"


@every(
    ("content", "text"),
    [
        ([{"type": "reasoning", "reasoning": "no"}, {"type": "text", "text": "Hi."}], "Hi."),
        (["Hi", "."], "Hi."),
        ("<think>no</think>Hi.", "Hi."),
    ],
)
def test_the_text_of_a_message_of_langchain_is_read_wherever_it_is(content: Any, text: str) -> None:
    assert connect(Chat(content))(HELLO).text == text


class Later:
    """A chat model that is asked by a coroutine alone."""

    def __init__(self, content: Any, **more: Any):
        self.reply = SimpleNamespace(content=content, **more)

    async def ainvoke(self, messages: Any) -> Any:
        await asyncio.sleep(0)
        return self.reply


def test_a_chat_model_may_be_asynchronous_and_may_answer_by_tool_calls() -> None:
    call = {"id": "1", "name": "search", "args": {"query": "x"}, "type": "tool_call"}
    assert connect(Later("Hi."))(HELLO).text == "Hi."
    said = connect(Later("", tool_calls=[call, {**call, "name": "read"}]))(HELLO).text
    assert [json.loads(line)["name"] for line in said.splitlines()] == ["search", "read"]
    assert (
        connect(Later("", tool_calls=[{**call, "name": "reply"}]))(HELLO).text
        == '{"name": "reply", "arguments": {"query": "x"}}'
    )


def test_a_chat_model_that_returns_no_text_is_named() -> None:
    with pytest.raises(LLMError, match="chat-1 answered with None: a model returns a text"):
        connect(Chat(None))(HELLO)


# --- temperature and seed

VOTE = Prompt(HELLO.messages, temperature=0.7, seed=3, max_tokens=50)
Taken = dict[str, Any]


def keeping(taken: Taken) -> list[Any]:
    """Functions and chat models that take one of the two, both, or any option."""

    def both(text: str, temperature: float = 1.0, seed: int = 9) -> str:
        taken.update(temperature=temperature, seed=seed)
        return "x"

    def seeded(text: str, *, seed: int) -> str:
        taken.update(seed=seed)
        return "x"

    async def later(text: str, **options: Any) -> str:
        taken.update(options)
        return "x"

    class Options(Chat):
        def invoke(self, messages: Any, config: Any = None, *, stop: Any = None, **options: Any) -> Any:
            taken.update(options)
            return super().invoke(messages)

    class Picky(Options):
        def invoke(self, messages: Any, config: Any = None, **options: Any) -> Any:
            if "seed" in options:
                raise TypeError("chat() got an unexpected keyword argument 'seed'")
            return super().invoke(messages, **options)

    class Bound(Options):
        kwargs = {"temperature": 0.1}  # noqa: RUF012  # as bind() keeps it

    models = [
        both,
        seeded,
        later,
        partial(both, temperature=0.1),
        Options("x"),
        Picky("x"),
        Bound("x"),
        str.upper,
        Chat("x"),
    ]
    return models


@every(
    ("number", "expected", "own"),
    [
        (0, {"temperature": 0.7, "seed": 3}, ""),
        (1, {"seed": 3}, "seeded answers with its own temperature"),
        (2, {"temperature": 0.7, "seed": 3}, ""),
        (3, {"temperature": 0.1, "seed": 3}, "both answers with its own temperature"),
        (4, {"temperature": 0.7, "seed": 3}, ""),
        (5, {"temperature": 0.7}, "chat-1 answers with its own seed"),
        (6, {"seed": 3}, "chat-1 answers with its own temperature"),
        (7, {}, "upper answers with its own temperature and seed"),
        (8, {}, "chat-1 answers with its own temperature and seed"),
    ],
)
def test_temperature_and_seed_are_passed_where_they_are_taken_and_else_told_once(
    number: int, expected: Taken, own: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.clear()
    taken: Taken = {}
    llm = connect(keeping(taken)[number])
    assert llm(VOTE).text and llm(VOTE).text and taken == expected
    assert [record.getMessage() for record in caplog.records] == [own] * bool(own)


def test_nothing_is_told_where_neither_matters(caplog: pytest.LogCaptureFixture) -> None:
    assert connect(str.upper)(HELLO).text and not caplog.records


# --- doors


@every(
    ("given", "options", "problem"),
    [
        (3, {}, "a model is named by a text such as local or openai:MODEL, .*LangChain chat model, or a function.* not 3"),
        (None, {}, "not None"),
        ([], {}, "not a list"),
        (openai.OpenAI, {}, "not a type"),
        (str.upper, {"model": "x"}, "has no option 'model'; it knows name, price"),
        (Scripted(["x"]), {"name": "x"}, "options are for a model that is yet to be made"),
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused_with_what_is_taken(given: Any, options: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        connect(given, **options)


def test_wherever_a_model_is_taken_a_function_or_a_chat_model_may_be_given() -> None:
    assert lab.ask_model(str.upper)(query="hi").text == "HI"
    store = lab.open_store("in_memory")
    events = lab.think("Who?", Chat("x"), store, [lab.ask_model(str.upper)], execution=str.upper)
    start: Any = next(iter(events))
    assert (start.planning, start.execution) == ("chat-1", "upper")
    resources = lab.Resources([], Chat("x"))
    assert resources.planning is not None and resources.planning(HELLO).text == "x"
    assert connect(llm := Scripted(["x"])) is llm
