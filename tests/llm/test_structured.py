"""Shapes of replies: the schema that goes out, what is read back, and the one repair."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from enum import StrEnum
from threading import Barrier
from typing import Literal

import pytest
from pydantic import BaseModel, Field
from support.every import every

from kgot_lab.errors import BadInput, BadReply, LLMError
from kgot_lab.llm.budget import Budget, Budgeted, Spending
from kgot_lab.llm.recorded import Scripted
from kgot_lab.llm.structured import (
    RecordedCall,
    checked_reply,
    compact_schema,
    parse,
    record_calls,
    structured,
    write_schema_in_prompt,
)
from kgot_lab.types import Message, Prompt, Reply, Usage


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Thing(BaseModel):
    title: str  # a property that has the name of a schema keyword
    colour: Colour


class Vote(BaseModel):
    """A vote."""

    reason: str
    choice: Literal["INSERT", "RETRIEVE"]
    things: list[Thing] = Field(default_factory=list)
    note: str | None = None


PROMPT = Prompt((Message("user", "Vote."),), temperature=0.7, seed=4)
GOOD = '{"reason": "enough", "choice": "RETRIEVE", "things": [{"title": "a", "colour": "red"}]}'


def test_a_schema_is_small_and_written_out() -> None:
    schema = compact_schema(Vote)
    text = json.dumps(schema)
    assert "$ref" not in text and "$defs" not in text and '"default"' not in text
    # the order is the order of writing
    assert list(schema["properties"]) == ["reason", "choice", "things", "note"]
    assert schema["properties"]["things"]["items"]["properties"]["title"] == {"type": "string"}
    assert schema["additionalProperties"] is False
    assert len(text) < len(json.dumps(Vote.model_json_schema()))


class Tree(BaseModel):
    branches: list["Tree"]


def test_a_shape_without_end_is_refused() -> None:
    with pytest.raises(BadInput, match="Tree contains itself"):
        compact_schema(Tree)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure! Here is the [JSON] you {{asked}} for:\n\n{GOOD}\n\nI hope this helps {{}}.",
        f"\ufeff  {GOOD}",
        f'See [1] and {{"note": "not this"}}: {GOOD}',
    ],
    ids=["bare", "fenced", "prose around it", "byte order mark", "other JSON before it"],
)
def test_a_reply_is_read_however_it_is_wrapped(text: str) -> None:
    vote = parse(text, Vote)
    assert (vote.choice, vote.things[0].colour) == ("RETRIEVE", Colour.RED)


@every(
    ("text", "reason"),
    [
        ("I would retrieve.", "no JSON"),
        ('{"reason": "because", "choice": "RETR', "breaks at character"),
        ('{"reason": "because", "things": [{"title": "a", "colour": "red"}], "cho', "breaks at character"),
        ("[" * 100_000, "breaks at character"),
        ('{"reason": ' + "1" * 1_000_000 + "}", "breaks at character 0 of 1000012: too many digits"),
        ('{"reason": "because", "things": [' + "{}," * 100_000 + "{}]}", "more than 100,000 brackets"),
        ('{"reason": "because"}', "choice: Field required"),
        ('{"reason": "because", "choice": "MAYBE"}', "choice: Input should be"),
        ("[1, 2]", "valid dictionary"),
        ("", "no JSON"),
    ],
)
def test_a_reply_in_another_shape_is_refused_with_a_short_reason(text: str, reason: str) -> None:
    with pytest.raises(BadReply, match=reason) as caught:
        parse(text, Vote)
    assert len(caught.value.reason) <= 200
    assert caught.value.text == text


def test_a_bad_reply_is_repaired_once_in_the_same_conversation() -> None:
    llm = Scripted(["RETRIEVE, I think", GOOD])
    assert structured(llm, PROMPT, Vote).choice == "RETRIEVE"
    first, second = llm.asked
    assert first.schema == compact_schema(Vote)
    assert second.messages[: len(first.messages)] == first.messages
    assert [message.role for message in second.messages] == ["user", "assistant", "user"]
    assert second.messages[1].text == "RETRIEVE, I think"
    assert "no JSON" in second.messages[2].text
    assert (second.temperature, second.seed, second.schema) == (first.temperature, first.seed, first.schema)


def test_two_bad_replies_are_an_error() -> None:
    llm = Scripted(["no", "still no", GOOD])
    with pytest.raises(BadReply):
        structured(llm, PROMPT, Vote)
    assert len(llm.asked) == 2


def test_a_schema_can_be_asked_for_in_words() -> None:
    words = write_schema_in_prompt(
        Prompt((Message("system", "s"), Message("user", "u")), schema={"type": "object"})
    )
    assert words.schema is None
    assert words.messages[0].text == "s"
    assert words.messages[1].text.startswith("u\n") and '{"type": "object"}' in words.messages[1].text
    assert write_schema_in_prompt(PROMPT) is PROMPT


def test_a_scripted_model_counts_words_and_runs_out() -> None:
    llm = Scripted(["one two three"])
    reply = llm(PROMPT)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (1, 3)
    with pytest.raises(LLMError, match="no reply left"):
        llm(PROMPT)


class Own:
    """A model of somebody's own, which returns what it was given."""

    def __init__(self, reply: object, name: object = "my own"):
        self.reply, self.name, self.asked = reply, name, 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.asked += 1
        return self.reply  # type: ignore[return-value]


@every(
    ("reply", "told"),
    [
        ("hello", r"a str \('hello'\): a model returns Reply\("),
        (None, "None: a model"),
        ({"text": "hello"}, "a dict"),
        (Reply, "a type"),
        (Reply(None), "a Reply whose text is None"),  # type: ignore[arg-type]
        (Reply(b"x"), r"a Reply whose text is a bytes \(b'x'\)"),  # type: ignore[arg-type]
        (Reply("x", None), "a Reply whose usage is None"),  # type: ignore[arg-type]
        (Reply("x", {"prompt_tokens": 3}), "a Reply whose usage is a dict"),  # type: ignore[arg-type]
        (Reply("x", model=None), "a Reply whose model is None"),  # type: ignore[arg-type]
        (Reply("x", cut="yes"), "a Reply whose cut is a str"),  # type: ignore[arg-type]
        (Reply("x", Usage(-1)), "usage.prompt_tokens is -1"),
        (Reply("x", Usage(1, 2.5)), "usage.completion_tokens is 2.5"),  # type: ignore[arg-type]
        (Reply("x", Usage(True)), "usage.prompt_tokens is True"),
        (Reply("x", Usage(reasoning_tokens=None)), "usage.reasoning_tokens is None"),  # type: ignore[arg-type]
        (Reply("x", Usage(cost=float("nan"))), "usage.cost is nan"),
        (Reply("x", Usage(seconds=float("inf"))), "usage.seconds is inf"),
        (Reply("x", Usage(cost="free")), "usage.cost is a str"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_a_model_that_does_not_return_a_reply_is_named_with_what_came(reply: object, told: str) -> None:
    with pytest.raises(LLMError, match=f"^my own replied with .*{told}"):
        checked_reply(Own(reply), PROMPT)
    with pytest.raises(LLMError, match=r"^my own replied with"):
        structured(Own(reply), PROMPT, Vote)


@pytest.mark.parametrize("name", [None, "", 3, b"x"])
def test_a_model_without_a_name_is_told_before_it_is_asked(name: object) -> None:
    llm = Own(Reply("hello"), name)
    with pytest.raises(LLMError, match=r"a model of the class Own has the name .* Nothing was sent"):
        checked_reply(llm, PROMPT)
    assert llm.asked == 0


def test_calls_in_threads_of_one_tool_are_all_noted():
    all_at_once = Barrier(3)

    class Model:
        name = "model"

        def __call__(self, prompt):
            all_at_once.wait(timeout=30)
            return Reply("x", Usage(1, int(prompt.messages[0].text)))

    spending = Spending(Budget())
    for model, accounts in ((Model(), {None}), (Budgeted(Model(), spending), {None, spending})):
        noted = list[RecordedCall]()
        with record_calls(noted), ThreadPoolExecutor(3) as pool:
            prompts = [Prompt((Message("user", str(number)),)) for number in (1, 2, 3)]
            for call in [pool.submit(copy_context().run, checked_reply, model, prompt) for prompt in prompts]:
                call.result()
        assert sorted(call.usage.completion_tokens for call in noted) == [1, 2, 3]
        assert all(set(call.accounts) == accounts for call in noted)
