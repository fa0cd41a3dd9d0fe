"""Models that think before they speak, empty replies and cut ones, and Ollama's own protocol, which alone sets
num_ctx: real servers on the loopback.
"""

from typing import Any

import pytest
from support.every import every
from support.openai_server import Answer, asking, cut, ollama_refuses, ollama_says, refuses, says, thinks

from kgot_lab.errors import BadInput, LLMError, OverBudget, UnknownName
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.openai_compatible import OpenAICompatible
from kgot_lab.llm.presets import FREE, Settings, ollama_address, server_at
from kgot_lab.llm.structured import is_reasoning_model, split_reasoning
from kgot_lab.types import Message, Prompt, Usage

HELLO = Prompt(
    (Message("system", "Be brief."), Message("user", "Hello?")), temperature=0.7, seed=3, max_tokens=50
)
SHAPED = Prompt(HELLO.messages, schema={"type": "object", "properties": {"answer": {"type": "string"}}})


def message(content: object = "42", ended: str = "stop", **more: object) -> Answer:
    return says("", choices=[{"message": {"content": content, **more}, "finish_reason": ended}])


# --- empty replies


@every(
    ("empty", "room", "thought"),
    [(says(""), [50, 100], 0), (thinks(None, 500, ended="length"), [50, 100], 500), (cut("<think>hm"), [50, 100], 500)],
)  # fmt: skip
def test_an_empty_reply_is_asked_for_again_with_twice_the_room_and_its_tokens_are_counted(
    empty: Answer, room: list[int], thought: int
) -> None:
    with asking(empty, says("Hi.")) as (llm, server):
        reply = llm(HELLO)
    assert reply.text == "Hi." and [body["max_tokens"] for body in server.bodies] == room
    assert reply.usage == Usage(2000, 1000, reply.usage.seconds, pytest.approx(0.004), thought)


@every("answer", [message(""), message("  \n"), message([{"type": "text"}])])
def test_a_reply_that_stays_empty_is_an_error_that_says_what_was_spent(answer: Answer) -> None:
    told = r"after 2 requests: the reply is empty.*max_tokens"
    with asking(answer) as (llm, server), pytest.raises(LLMError, match=told) as caught:
        llm(HELLO)
    assert len(server.bodies) == 2 and caught.value.spent.seconds > 0
    assert (caught.value.spent.completion_tokens, caught.value.spent.cost) == (1000, pytest.approx(0.004))
    assert [line.partition(";")[2].partition(",")[0] for line in server.said] == [" request 1 of 2"]


@every("patience, replies", [({"empty": 3}, 2), ({"empty": 1}, 0), ({"attempts": 1}, 0)])
def test_how_often_an_empty_reply_is_asked_for_again_is_a_setting(
    patience: dict[str, int], replies: int
) -> None:
    with asking(*[says("")] * max(replies, 1), says("there"), **patience) as (llm, _):
        if replies:
            assert llm(HELLO).text == "there"
        else:
            with pytest.raises(LLMError, match="the reply is empty"):
                llm(HELLO)


def test_thoughts_that_took_all_the_room_are_told_with_their_counts_and_what_to_raise() -> None:
    with (
        asking(thinks("", 500, ended="length"), model="o3") as (llm, server),
        pytest.raises(LLMError) as caught,
    ):
        llm(HELLO)
    told = "500 of its 500 tokens were thought", "allowance", "now 8,000", "max_tokens", "reasoning_effort"
    assert all(part in str(caught.value) for part in told)
    assert caught.value.spent == Usage(2000, 1000, cost=pytest.approx(0.004), reasoning_tokens=1000)
    assert [body["max_tokens"] for body in server.bodies] == [8050, 16100]


@every(
    "answer",
    [message(None, refusal="I will not."), message("", "content_filter"), message("Half", "content_filter")],
)
def test_a_model_that_declines_is_not_asked_again(answer: Answer) -> None:
    told = r"I will not|a filter withheld it"
    with asking(answer) as (llm, server), pytest.raises(LLMError, match=told) as caught:
        llm(HELLO)
    assert len(server.bodies) == 1 and "Ask in other words, or another model." in str(caught.value)
    assert caught.value.spent.completion_tokens == 500


def test_what_an_empty_reply_cost_is_in_the_error_though_another_fault_ended_the_call() -> None:
    with (
        asking(says(""), refuses(401, "the key was withdrawn")) as (llm, _),
        pytest.raises(LLMError, match="withdrawn") as caught,
    ):
        llm(HELLO)
    assert caught.value.spent.completion_tokens == 500


def test_a_budget_reckons_with_the_requests_that_may_come_back_empty_and_counts_them() -> None:
    with asking(says("")) as (llm, server):
        assert llm.worst(HELLO).completion_tokens == 50 + 100
        with pytest.raises(OverBudget):
            Budgeted(llm, Budget(dollars=0.00001))(HELLO)
        assert not server.bodies
        budgeted = Budgeted(llm, Budget(dollars=1))
        with pytest.raises(LLMError, match="empty"):
            budgeted(HELLO)
    assert budgeted.spending.spent.cost == pytest.approx(0.004)


# --- thoughts


@every(
    ("answer", "least", "most"),
    [
        (thinks("42", 450), 450, 450),
        # counted only in the total, and paid for
        (says("42", usage={"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1500}), 490, 490),
        (says("<think>\nlet me see\n</think>\n\n42"), 351, 499),
        (message(reasoning_content="let me see"), 351, 499),
        (message(reasoning="let me see"), 351, 499),
        (
            message(
                [{"type": "thinking", "thinking": [{"text": "let me see"}]}, {"type": "text", "text": "42"}]
            ),
            351,
            499,
        ),
    ],
)
def test_what_a_model_thinks_is_taken_off_counted_and_paid_for(answer: Answer, least: int, most: int) -> None:
    with asking(answer) as (llm, _):
        reply = llm(HELLO)
    assert reply.text == "42" and least <= reply.usage.reasoning_tokens <= most
    assert (reply.usage.completion_tokens, reply.usage.cost) == (500, pytest.approx(0.002))


@every(
    ("text", "thinks", "said"),
    [
        ("<think>a</think>b", False, "b"),
        ("<thinking>a</thinking>b", False, "b"),
        ("a</think>b", True, "b"),
        ("write </think> here", False, "write </think> here"),
        ("b <think>a</think>", False, "b"),
        ("<think>a</think> b </think>", False, "b </think>"),
        ("b", True, "b"),
    ],
)
def test_thoughts_are_taken_off_wherever_they_are_in_a_reply(text: str, thinks: bool, said: str) -> None:
    assert split_reasoning(text, thinks=thinks)[0] == said


# --- settings


@every(
    ("model", "settings", "room"),
    [
        ("gpt-4o", {}, 50),
        ("o3-mini", {}, 8050),
        ("openai/gpt-5-mini", {}, 8050),
        ("gpt-5-mini", {"reasoning_effort": "low"}, 4050),
        ("gpt-5.1", {"reasoning_effort": "none"}, 50),
        ("house-model", {"reasoning_effort": "high"}, 25050),
        ("house-model", {"allowance": 700}, 750),
        ("o3", {"allowance": 0}, 50),
        ("gpt-4o", {"max_tokens": 900}, 900),
    ],
)
def test_a_model_that_thinks_gets_room_for_it(model: str, settings: dict[str, Any], room: int) -> None:
    with asking(says("ok"), model=model, settings=Settings(**settings)) as (llm, server):
        llm(HELLO)
    assert server.bodies[0]["max_tokens"] == room
    assert server.bodies[0].get("reasoning_effort", "") == settings.get("reasoning_effort", "")


def test_models_that_think_are_known_by_name() -> None:
    known = "o1 o3-mini o4-mini gpt-5 gpt-5.4-nano gpt-6-sol claude-sonnet-5-5 gemini-2.5-flash deepseek-r1:8b qwen3:8b qwq gpt-oss:20b"
    assert [model for model in known.split() if not is_reasoning_model(model)] == []
    plain = "gpt-4o gpt-4.1-mini claude-haiku-4-5 gemini-2.0-flash llama3.3 qwen2.5-coder-1.5b-instruct-q4_k_m qwen3-4b-instruct-2507"
    assert [model for model in plain.split() if is_reasoning_model(model)] == []


@every(
    ("words", "settings", "model", "sent", "left_out"),
    [
        (
            "Unrecognized request argument supplied: reasoning_effort",
            {"reasoning_effort": "low"},
            "tiny",
            [("low", 4050), (None, 4050)],
            "reasoning_effort",
        ),
        (
            "max_tokens is too large: 8050. This model supports at most 4096 completion tokens.",
            {},
            "o3",
            [(None, 8050), (None, 50)],
            "allowance",
        ),
    ],
)
def test_what_a_model_cannot_have_is_left_out_from_then_on_and_that_is_told(
    words: str, settings: dict[str, Any], model: str, sent: list[object], left_out: str
) -> None:
    with asking(refuses(400, words), says("hm"), model=model, settings=Settings(**settings)) as (llm, server):
        assert llm(HELLO).text == llm(HELLO).text == "hm"
    told = [(body.get("reasoning_effort"), body["max_tokens"]) for body in server.bodies]
    assert told == [*sent, sent[-1]] and llm.left_out == [left_out]
    assert f"without {left_out}" in server.said[0]


@every(
    ("settings", "sent"),
    [({}, 0.7), ({"temperature": 0.2}, 0.2), ({"temperature_scale": 0.5}, 0.35), ({"temperature": 0}, 0)],
)
def test_a_temperature_of_the_model_or_a_scale_takes_the_place_of_the_prompts(
    settings: dict[str, Any], sent: float
) -> None:
    with asking(says("ok"), settings=Settings(**settings)) as (llm, server):
        llm(HELLO)
    assert server.bodies[0]["temperature"] == pytest.approx(sent)


@every(
    ("wrong", "told"),
    [
        ({"reasoning_effort": "hig"}, "did you mean 'high'"),
        ({"temperature": 3}, "between 0 and 2"),
        ({"temperature_scale": -1}, "between 0 and 2"),
        ({"allowance": -1}, "allowance must be a number, 0 or more"),
        ({"num_ctx": 0}, "num_ctx must be a number, 1 or more"),
        ({"num_ctx": 4096}, "num_ctx is for Ollama"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=told):
        OpenAICompatible(*server_at("http://localhost:1/v1#m"), settings=Settings(**wrong))


# --- Ollama


def test_a_prompt_arrives_at_ollama_with_its_context_and_its_limit() -> None:
    named, plain = (
        asking(ollama_says("Hi."), model="ollama:llama3.2:3b", settings=settings)
        for settings in (Settings(num_ctx=16384), Settings())
    )
    with named as (llm, server):
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
    with plain as (llm, server):
        llm(HELLO)
    assert "num_ctx" not in server.bodies[0]["options"]


def test_a_schema_is_ollamas_format_and_where_that_is_refused_it_is_said_in_words() -> None:
    no = ollama_refuses(400, "invalid JSON schema in format")
    with asking(ollama_says("{}"), no, ollama_says("{}"), model="ollama:tiny") as (llm, server):
        llm(SHAPED)
        llm(SHAPED)
    assert server.bodies[0]["format"] == SHAPED.schema
    assert "format" not in server.bodies[2] and '"answer"' in server.bodies[2]["messages"][-1]["content"]


def test_images_are_sent_as_ollama_takes_them() -> None:
    with asking(ollama_says("a cat"), model="ollama:tiny") as (llm, server):
        llm(Prompt((Message("user", "What is this?", ("data:image/png;base64,iVBORw0KGgo=",)),)))
    assert server.bodies[0]["messages"] == [
        {"role": "user", "content": "What is this?", "images": ["iVBORw0KGgo="]}
    ]


def test_thoughts_come_apart_from_ollama_and_get_room() -> None:
    with asking(ollama_says("42", thinking="let me see " * 3), model="ollama:qwen3:8b") as (llm, server):
        reply = llm(HELLO)
    assert server.bodies[0]["options"]["num_predict"] == 8050
    assert reply.text == "42" and 30 < reply.usage.reasoning_tokens < 40


@every("effort, think", [("none", False), ("low", "low"), ("high", "high"), ("xhigh", "high")])
def test_reasoning_effort_is_what_ollama_calls_think_and_is_left_out_where_it_is_refused(
    effort: str, think: object
) -> None:
    no = ollama_refuses(400, '"tiny" does not support thinking')
    effort_set = Settings(reasoning_effort=effort)
    with asking(no, ollama_says("42"), model="ollama:tiny", settings=effort_set) as (llm, server):
        assert llm(HELLO).text == "42"
    assert [body.get("think") for body in server.bodies] == [think, None]
    assert "reasoning_effort" not in server.bodies[0] and llm.left_out == ["reasoning_effort"]


def test_a_cut_reply_of_ollama_says_so_and_an_empty_one_is_asked_for_again() -> None:
    empty, begun = (ollama_says(text, thinking="hm", ended="length") for text in ("", "Once"))
    with asking(empty, begun, model="ollama:tiny") as (llm, server):
        reply = llm(HELLO)
    assert (reply.text, reply.cut, reply.usage.completion_tokens, len(server.bodies)) == ("Once", True, 80, 2)


@every(
    ("answer", "said"),
    [
        (ollama_refuses(404, "model 'tiny' not found"), r"'tiny' not found.*Check the model name 'tiny'"),
        *(
            (Answer(body), "not Ollama's|not a chat completion")
            for body in ({"choices": []}, [], "{not json")
        ),
    ],
)
def test_what_is_no_answer_of_ollama_is_an_error_of_ours(answer: Answer, said: str) -> None:
    with asking(answer, model="ollama:tiny") as (llm, server), pytest.raises(LLMError, match=said):
        llm(HELLO)
    assert len(server.bodies) == 1


@every(
    ("told", "address"),
    [
        ("", "http://localhost:11434/v1"),
        ("0.0.0.0", "http://localhost:11434/v1"),
        ("gpu-box", "http://gpu-box:11434/v1"),
        ("gpu-box:8080", "http://gpu-box:8080/v1"),
        ("https://ollama.example.org", "https://ollama.example.org:443/v1"),
        ("http://[::1]:11434", "http://[::1]:11434/v1"),
        *((wrong, None) for wrong in ("127.0.0.1:abc", "[::1", "a b", "http://127.0.0.1:99999")),
    ],
)
def test_ollama_is_where_its_own_variable_says(told: str, address: str | None) -> None:
    with pytest.MonkeyPatch.context() as context:
        context.setenv("OLLAMA_HOST", told)
        if address:
            assert ollama_address() == address
        else:
            with pytest.raises(BadInput, match=r"variable OLLAMA_HOST: .* is no address of a server"):
                ollama_address()
