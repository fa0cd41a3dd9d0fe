"""The door of OpenAI's protocol, asked by the official client, sync and async."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest
from support.expert_server import COOK_ID, FailingModel, ServedExperts, echoing, expert_office, served
from support.waiting import AMPLE

from kgot_lab.errors import LLMError
from kgot_lab.llm.recorded import Scripted

CITING = "Use it [Source: cookbook:Prompt caching] and not that [Source: cookbook:Prayer wheel]."
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture(scope="module")
def model() -> Scripted:
    return echoing()


@pytest.fixture(scope="module")
def server(model: Scripted) -> Iterator[ServedExperts]:
    broken = FailingModel(LLMError("/home/ada sk-key"), "It ", "broken")
    service = expert_office(model, Scripted(lambda prompt: CITING, "citing"), broken)
    for name in ("citing", "broken"):
        service.create(
            {"name": name, "kg_db_id": "cookbook", "persona": {"name": name}, "models": {"chat": name}}
        )
    with served(service) as running:
        yield running


def client_of(server: ServedExperts, key: str = "none") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=AMPLE)


@pytest.fixture
def client(server) -> Iterator[openai.OpenAI]:
    with client_of(server) as made:
        yield made


def user(text: object) -> dict:
    return {"role": "user", "content": text}


def test_experts_are_models(client):
    assert {COOK_ID, "expert_citing"} <= {each.id for each in client.models.list()}
    one = client.models.retrieve(COOK_ID)
    assert (one.id, one.object, one.owned_by) == (COOK_ID, "model", "kgot-lab") and one.created > 0


def test_an_answer_comes_whole_with_annotations_and_usage(client):
    answer = client.chat.completions.create(
        model="expert_citing", messages=[user("How do I use prompt caching?")]
    )
    (choice,) = answer.choices
    assert choice.finish_reason == "stop"
    assert answer.object == "chat.completion"
    assert answer.model == "expert_citing"
    assert "[Source: cookbook:Prayer wheel (not in the context)]" in choice.message.content
    (annotation,) = choice.message.annotations
    cited = annotation.url_citation
    assert choice.message.content[cited.start_index : cited.end_index] == "[Source: cookbook:Prompt caching]"
    assert cited.title == "Prompt caching"
    assert cited.url.endswith("pages/node.html#cookbook/technique%3Aprompt_caching")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.completion_tokens == len(CITING.split())


def test_an_answer_comes_in_pieces_that_make_the_whole(client):
    again = [user("Again, prompt caching?")]
    whole = client.chat.completions.create(model="expert_citing", messages=again).choices[0].message
    options = {"include_usage": True}
    how = {"stream": True, "stream_options": options}
    chunks = list(
        client.chat.completions.create(model="expert_citing", messages=[user("Prompt caching!")], **how)
    )
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.content
    *_, ended, used = chunks
    assert ended.choices[0].finish_reason == "stop"
    assert ended.choices[0].delta.annotations[0]["url_citation"]["title"] == "Prompt caching"
    assert ended.sources and used.choices == [] and used.usage.completion_tokens == len(CITING.split())
    plain = list(client.chat.completions.create(model=COOK_ID, messages=[user("No count")], stream=True))
    assert all(chunk.usage is None for chunk in plain)


def test_system_messages_are_wishes_and_not_the_instructions(client, model):
    rules = {"system": "Rhyme, please.", "developer": "In French."}
    told = [*({"role": role, "content": text} for role, text in rules.items()), user("Hello")]
    client.chat.completions.create(model=COOK_ID, messages=told)
    asked = model.asked[-1]
    system = asked.messages[0].text
    assert asked.messages[0].role == "system" and [message.role for message in asked.messages[1:]] == ["user"]
    assert "Rhyme, please." in system and "In French." in system
    assert system.index("You help.") < system.index("Rhyme, please.")


def test_a_picture_is_refused_and_nothing_is_kept(client, server):
    before = server.service.conversations(COOK_ID, "local")[1]
    for parts in ([IMAGE], [{"type": "text", "text": "What is this?"}, IMAGE]):
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            client.chat.completions.create(model=COOK_ID, messages=[user(parts)])
        assert "image_url" in refused.value.message and "AAAA" not in refused.value.message
    assert server.service.conversations(COOK_ID, "local")[1] == before


def test_a_text_may_come_in_parts(client, model):
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    answer = client.chat.completions.create(model=COOK_ID, messages=[user(parts)])
    assert answer.choices[0].message.content == "You asked: one\ntwo"


def test_a_turn_that_is_asked_again_is_another_conversation_with_the_same_beginning(client, server):
    first = client.chat.completions.create(model=COOK_ID, messages=[user("Fork here")])
    said = [user("Fork here"), {"role": "assistant", "content": first.choices[0].message.content}]
    ids = [
        client.chat.completions.create(model=COOK_ID, messages=[*said, user(f"way {number}")]).id
        for number in (1, 2)
    ]
    assert ids[0] == first.id != ids[1]
    kept = [each["content"] for each in server.stored(ids[1].removeprefix("chatcmpl-"))]
    assert kept == ["Fork here", "You asked: Fork here", "way 2", "You asked: way 2"]


def test_a_conversation_goes_on_by_what_was_said(client, server, model):
    before = server.service.conversations(COOK_ID, "local")[1]
    messages = [{"role": "system", "content": "Be kind."}]
    ids = set()
    for number in range(4):
        messages.append(user(f"turn {number} of a talk"))
        stream = number % 2 == 1
        answer = client.chat.completions.create(model=COOK_ID, messages=messages, stream=stream)
        if stream:
            chunks = list(answer)
            text, id = "".join(chunk.choices[0].delta.content or "" for chunk in chunks), chunks[0].id
        else:
            text, id = answer.choices[0].message.content, answer.id
        ids.add(id)
        messages.append({"role": "assistant", "content": text})
    assert len(ids) == 1 and server.service.conversations(COOK_ID, "local")[1] == before + 1
    kept = server.stored(ids.pop().removeprefix("chatcmpl-"))
    assert [each["content"] for each in kept] == [message["content"] for message in messages[1:]]
    assert [message.text for message in model.asked[-1].messages[1:]] == [
        message["content"] for message in messages[1:-1]
    ]


def test_errors_are_those_of_the_client(client, server):
    for wrong, kind in (
        ({"model": "nobody"}, openai.NotFoundError),
        ({"messages": []}, openai.UnprocessableEntityError),
        ({"messages": [{"role": "assistant", "content": "x"}]}, openai.UnprocessableEntityError),
        ({"messages": [user("  ")]}, openai.UnprocessableEntityError),
        ({"messages": [user("a\x00b")]}, openai.UnprocessableEntityError),
        ({"model": "a\x00b"}, openai.UnprocessableEntityError),
        ({"messages": [{"role": "critic", "content": "x"}, user("y")]}, openai.UnprocessableEntityError),
        ({"n": 2}, openai.UnprocessableEntityError),
    ):
        with pytest.raises(kind) as raised:
            client.chat.completions.create(**{"model": COOK_ID, "messages": [user("x")], **wrong})
        assert set(raised.value.body) == {"message", "type", "param", "code"}
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody")
    assert server.chats == 0


def test_a_model_that_fails_is_an_error_of_the_client_whole_and_in_the_stream(client):
    with pytest.raises(openai.InternalServerError) as whole:
        client.chat.completions.create(model="expert_broken", messages=[user("x")])
    assert whole.value.status_code == 503
    seen = []
    with pytest.raises(openai.APIError) as streamed:
        for chunk in client.chat.completions.create(model="expert_broken", messages=[user("x")], stream=True):
            seen.append(chunk.choices[0].delta.content)
    assert "It " in seen
    for error in (whole, streamed):
        assert "/home" not in str(error.value) and "sk-key" not in str(error.value)


def test_a_stream_that_broke_off_does_not_say_that_it_came_to_its_end(server):
    sent = {"model": "expert_broken", "messages": [user("x")], "stream": True}
    text = server.client.post("/v1/chat/completions", json=sent).text
    assert '"code": "model_away"' in text
    assert '"finish_reason": "stop"' not in text
    assert text.endswith("data: [DONE]\n\n")


WORDS = "One two three four five. Six seven eight nine ten."
TOOL = {"type": "function", "function": {"name": "look", "parameters": {}}}


@pytest.mark.parametrize("limit", ["max_tokens", "max_completion_tokens"])
def test_five_tokens_asked_are_five_words_at_most(client, limit):
    for text in ("Say again one two three four five six", "prompt caching"):
        for stream in (False, True):
            made = client.chat.completions.create(
                model=COOK_ID, messages=[user(f"{text} {limit} {stream}")], stream=stream, **{limit: 5}
            )
            if stream:
                pieces = list(made)
                said = "".join(piece.choices[0].delta.content or "" for piece in pieces)
                reason = pieces[-1].choices[0].finish_reason
            else:
                said, reason = made.choices[0].message.content, made.choices[0].finish_reason
            assert said.split() and len(said.split()) <= 5 and reason == "length"


def test_an_answer_ends_before_a_stop_sequence_also_one_that_comes_in_pieces(client, model):
    def said(question, stop):
        made = client.chat.completions.create(model=COOK_ID, messages=[user(question)], stop=stop)
        assert made.choices[0].finish_reason == "stop" and made.usage.prompt_tokens > 0
        return made.choices[0].message.content

    assert said("alpha END beta", "END") == "You asked: alpha "
    assert said("alpha beta gamma", ["a be", "gamma"]) == "You asked: alph"
    assert said("alpha beta", ["never"]) == "You asked: alpha beta"
    assert said("alpha bet", "beta") == "You asked: alpha bet"


def test_temperature_seed_and_limit_reach_the_model(client, model):
    sampling = {"temperature": 1.25, "seed": 7, "max_tokens": 90}
    client.chat.completions.create(model=COOK_ID, messages=[user("sampled")], **sampling)
    asked = model.asked[-1]
    assert (asked.temperature, asked.seed, asked.max_tokens) == (1.25, 7, 90)
    client.chat.completions.create(model=COOK_ID, messages=[user("usual")], temperature=None)
    assert (model.asked[-1].temperature, model.asked[-1].seed) == (0.0, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [TOOL]}, {"functions": [{"name": "look"}]}, {"tool_choice": "required"},
        {"response_format": {"type": "json_object"}}, {"logprobs": True}, {"top_p": 0.5}, {"logit_bias": {"5": 1}},
        {"presence_penalty": 1}, {"modalities": ["audio"]}, {"reasoning_effort": "high"}, {"extra_body": {"top_k": 5}},
        {"store": True}, {"temperature": 3}, {"seed": -1}, {"stop": list("abcde")}, {"stop": ""}, {"max_tokens": 0},
    ],
    ids=lambda wrong: next(iter(wrong)),
)  # fmt: skip
def test_what_is_not_honoured_is_refused_by_its_name(client, server, wrong):
    before = server.service.conversations(COOK_ID, "local")[1]
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        client.chat.completions.create(model=COOK_ID, messages=[user("x")], **wrong)
    name = next(iter(wrong.get("extra_body", wrong)))
    assert name in refused.value.message and "pydantic" not in refused.value.message
    assert server.service.conversations(COOK_ID, "local")[1] == before


def test_what_asks_for_nothing_is_accepted(client):
    nothing = {
        "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "top_p": 1, "presence_penalty": 0,
        "logprobs": False, "store": False, "metadata": {"chat": "1"}, "parallel_tool_calls": True, "logit_bias": {},
    }  # fmt: skip
    assert client.chat.completions.create(model=COOK_ID, messages=[user("x")], **nothing).choices


def test_messages_of_tools_are_refused(client):
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for message in (
        {"role": "tool", "content": "5", "tool_call_id": "1"},
        {"role": "assistant", "tool_calls": [call]},
    ):
        with pytest.raises(openai.UnprocessableEntityError, match="tools"):
            client.chat.completions.create(model=COOK_ID, messages=[message, user("x")])
