"""Models that think before they speak, empty replies and cut ones, against a real server on the loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.every import every
from support.openai_server import Answer, Server, cut, openai_server, refuses, says, thinks

from kgot_lab.errors import BadInput, LLMError, OverBudget, UnknownName
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.openai_compatible import OpenAICompatible, Patience, Price, Settings, server_at
from kgot_lab.llm.structured import reasons, split_thought
from kgot_lab.types import Message, Prompt, Usage

HELLO = Prompt((Message("user", "Hello?"),), temperature=0.7, seed=3, max_tokens=50)
_NONE = Settings()


@contextmanager
def asking(
    *answers: Answer, model: str = "tiny", settings: Settings = _NONE, **patience: int
) -> Iterator[tuple[OpenAICompatible, Server]]:
    with openai_server(*answers) as server:
        preset, model = server_at(f"{server.url}#{model}")
        llm = OpenAICompatible(
            preset, model, patience=Patience(**patience), sleep=lambda _: None, price=Price(1, 2), settings=settings
        )  # fmt: skip
        try:
            yield llm, server
        finally:
            llm.close()


# --- empty replies
# ----------------------------------------------------------------------------------------------------


def test_an_empty_reply_is_asked_for_again_and_its_tokens_are_counted() -> None:
    with asking(says(""), says("Hi.")) as (llm, server):
        reply = llm(HELLO)
    assert reply.text == "Hi." and len(server.bodies) == 2
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (2000, 1000)
    assert reply.usage.cost == pytest.approx(0.004)


@pytest.mark.parametrize(
    "answer", [says(""), says("  \n"), says("", choices=[{"message": {"content": [{"type": "text"}]}}])]
)
def test_a_reply_that_stays_empty_is_an_error_that_says_what_was_spent(answer: Answer) -> None:
    with (
        asking(answer) as (llm, server),
        pytest.raises(LLMError, match=r"after 2 requests: the reply is empty.*max_tokens") as caught,
    ):
        llm(HELLO)
    assert len(server.bodies) == 2
    assert (caught.value.spent.completion_tokens, caught.value.spent.cost) == (1000, pytest.approx(0.004))
    assert caught.value.spent.seconds > 0


def test_how_often_an_empty_reply_is_asked_for_again_is_a_setting() -> None:
    with asking(says(""), says(""), says("there"), empty=3) as (llm, _):
        assert llm(HELLO).text == "there"
    with (
        asking(says(""), says("there"), empty=1) as (llm, _),
        pytest.raises(LLMError, match="the reply is empty"),
    ):
        llm(HELLO)
    with (
        asking(says(""), says("there"), attempts=1) as (llm, _),
        pytest.raises(LLMError, match="the reply is empty"),
    ):
        llm(HELLO)


def test_thoughts_that_took_all_the_room_are_told_with_their_counts_and_what_to_raise() -> None:
    eaten = thinks("", 500, ended="length")
    with asking(eaten, model="o3") as (llm, server), pytest.raises(LLMError) as caught:
        llm(HELLO)
    for told in (
        "500 of its 500 tokens were thought",
        "allowance",
        "now 8,000",
        "max_tokens",
        "reasoning_effort",
    ):
        assert told in str(caught.value)
    assert caught.value.spent == Usage(2000, 1000, cost=pytest.approx(0.004), reasoning_tokens=1000)
    # the second request has twice the room
    assert [body["max_tokens"] for body in server.bodies] == [8050, 16100]


def test_a_second_request_with_twice_the_room_may_do() -> None:
    with asking(thinks(None, 500, ended="length"), thinks("42", 400)) as (llm, server):
        reply = llm(HELLO)
    assert (reply.text, reply.usage.reasoning_tokens, reply.usage.completion_tokens) == ("42", 900, 1000)
    assert [body["max_tokens"] for body in server.bodies] == [50, 100]


@pytest.mark.parametrize(
    "answer",
    [
        says("", choices=[{"message": {"content": None, "refusal": "I will not."}, "finish_reason": "stop"}]),
        says("", choices=[{"message": {"content": ""}, "finish_reason": "content_filter"}]),
        says("", choices=[{"message": {"content": "Half of"}, "finish_reason": "content_filter"}]),
    ],
)
def test_a_model_that_declines_is_not_asked_again(answer: Answer) -> None:
    with (
        asking(answer) as (llm, server),
        pytest.raises(LLMError, match=r"I will not|a filter withheld it") as caught,
    ):
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
        worst = llm.worst(HELLO)
        assert worst.completion_tokens == 50 + 100
        budgeted = Budgeted(llm, Budget(dollars=0.00001))
        with pytest.raises(OverBudget):
            budgeted(HELLO)
        assert not server.bodies
        budgeted = Budgeted(llm, Budget(dollars=1))
        with pytest.raises(LLMError, match="empty"):
            budgeted(HELLO)
    assert budgeted.spending.spent.cost == pytest.approx(0.004)


def test_a_reply_cut_at_its_limit_is_given_and_says_so() -> None:
    with asking(cut("Once upon a")) as (llm, server):
        reply = llm(HELLO)
    assert (reply.text, reply.cut, len(server.bodies)) == ("Once upon a", True, 1)


# --- thoughts
# ---------------------------------------------------------------------------------------------------------


def test_hidden_tokens_are_counted_apart() -> None:
    with asking(thinks("42", 450)) as (llm, _):
        assert llm(HELLO).usage == Usage(1000, 500, cost=pytest.approx(0.002), reasoning_tokens=450)


def test_thoughts_that_a_server_counts_only_in_the_total_are_paid_for() -> None:
    with asking(says("42", usage={"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1500})) as (
        llm,
        _,
    ):
        used = llm(HELLO).usage
    assert (used.completion_tokens, used.reasoning_tokens, used.cost) == (500, 490, pytest.approx(0.002))


@pytest.mark.parametrize(
    "answer",
    [
        says("<think>\nlet me see\n</think>\n\n42"),
        says(
            "",
            choices=[
                {"message": {"content": "42", "reasoning_content": "let me see"}, "finish_reason": "stop"}
            ],
        ),
        says(
            "", choices=[{"message": {"content": "42", "reasoning": "let me see"}, "finish_reason": "stop"}]
        ),
        says(
            "",
            choices=[
                {
                    "message": {
                        "content": [
                            {"type": "thinking", "thinking": [{"text": "let me see"}]},
                            {"type": "text", "text": "42"},
                        ]
                    }
                }
            ],
        ),
    ],
)
def test_what_an_open_model_thinks_aloud_is_taken_off_and_counted_by_its_letters(answer: Answer) -> None:
    with asking(answer) as (llm, _):
        reply = llm(HELLO)
    assert reply.text == "42"
    assert 350 < reply.usage.reasoning_tokens < 500


def test_a_reply_cut_while_it_thinks_aloud_is_an_empty_one() -> None:
    with asking(cut("<think>let me see, first I"), says("42")) as (llm, _):
        reply = llm(HELLO)
    assert (reply.text, reply.usage.reasoning_tokens) == ("42", 500)


@every(
    ("text", "thinks", "said"),
    [
        ("<think>a</think>b", False, "b"),
        ("<thinking>a</thinking>b", False, "b"),
        ("a</think>b", True, "b"),
        ("write </think> here", False, "write </think> here"),
        ("b <think>a</think>", False, "b <think>a</think>"),
        ("<think>a</think> b </think>", False, "b </think>"),
        ("b", True, "b"),
    ],
)
def test_thoughts_are_taken_off_where_they_begin_a_reply(text: str, thinks: bool, said: str) -> None:
    assert split_thought(text, thinks=thinks)[0] == said


# --- room and effort
# --------------------------------------------------------------------------------------------------


@every(
    ("model", "settings", "room"),
    [
        ("gpt-4o", Settings(), 50),
        ("o3-mini", Settings(), 8050),
        ("openai/gpt-5-mini", Settings(), 8050),
        ("gpt-5-mini", Settings(reasoning_effort="low"), 4050),
        ("gpt-5.1", Settings(reasoning_effort="none"), 50),
        ("house-model", Settings(reasoning_effort="high"), 25050),
        ("house-model", Settings(allowance=700), 750),
        ("o3", Settings(allowance=0), 50),
        ("gpt-4o", Settings(max_tokens=900), 900),
    ],
)
def test_a_model_that_thinks_gets_room_for_it(model: str, settings: Settings, room: int) -> None:
    with asking(says("ok"), model=model, settings=settings) as (llm, server):
        llm(HELLO)
    assert server.bodies[0]["max_tokens"] == room
    assert server.bodies[0].get("reasoning_effort", "") == settings.reasoning_effort


def test_models_that_think_are_known_by_name() -> None:
    known = "o1 o3-mini o4-mini gpt-5 gpt-5.4-nano gpt-6-sol claude-sonnet-5-5 gemini-2.5-flash deepseek-r1:8b qwen3:8b qwq gpt-oss:20b".split()
    assert [model for model in known if not reasons(model)] == []
    plain = "gpt-4o gpt-4.1-mini claude-haiku-4-5 gemini-2.0-flash llama3.3 qwen2.5-coder-1.5b-instruct-q4_k_m qwen3-4b-instruct-2507".split()
    assert [model for model in plain if reasons(model)] == []


def test_reasoning_effort_is_left_out_where_it_is_refused_and_that_is_told() -> None:
    told: list[str] = []
    no = refuses(400, "Unrecognized request argument supplied: reasoning_effort")
    with asking(no, says("hm"), settings=Settings(reasoning_effort="low")) as (llm, server):
        llm._say = told.append
        llm(HELLO)
        llm(HELLO)
    assert ["reasoning_effort" in body for body in server.bodies] == [True, False, False]
    assert llm.left_out == ["reasoning_effort"]
    assert "without reasoning_effort" in told[0]


def test_room_to_think_that_a_model_cannot_have_is_left_out() -> None:
    no = refuses(400, "max_tokens is too large: 8050. This model supports at most 4096 completion tokens.")
    with asking(no, says("hm"), model="o3") as (llm, server):
        assert llm(HELLO).text == "hm"
    assert [body["max_tokens"] for body in server.bodies] == [8050, 50]
    assert llm.left_out == ["allowance"]


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        (Settings(), 0.7),
        (Settings(temperature=0.2), 0.2),
        (Settings(temperature_scale=0.5), 0.35),
        (Settings(temperature=0), 0),
    ],
)
def test_a_temperature_of_the_model_or_a_scale_takes_the_place_of_the_prompts(
    settings: Settings, sent: float
) -> None:
    with asking(says("ok"), settings=settings) as (llm, server):
        llm(HELLO)
    assert server.bodies[0]["temperature"] == pytest.approx(sent)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"reasoning_effort": "hig"}, "did you mean 'high'"),
        ({"temperature": 3}, "between 0 and 2"),
        ({"temperature_scale": -1}, "between 0 and 2"),
        ({"allowance": -1}, "allowance must be 0 or more"),
        ({"num_ctx": 0}, "num_ctx must be 1 or more"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object], told: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=told):
        Settings(**wrong)  # type: ignore[arg-type]


def test_num_ctx_is_refused_where_it_would_do_nothing() -> None:
    with pytest.raises(BadInput, match="num_ctx is for Ollama"):
        OpenAICompatible(*server_at("http://localhost:1/v1#m"), settings=Settings(num_ctx=4096))


def test_two_threads_that_meet_the_same_refusal_give_way_once() -> None:
    """Each answer to a schema is refused at first, and the way in words is still there for the second thread."""
    from concurrent.futures import ThreadPoolExecutor

    shaped = Prompt(HELLO.messages, schema={"type": "object"})
    no = refuses(400, "Unknown parameter: response_format")
    with (
        asking(lambda body: no if "response_format" in body else says("{}")) as (llm, _),
        ThreadPoolExecutor(2) as pool,
    ):
        assert [reply.text for reply in pool.map(llm, [shaped, shaped])] == ["{}", "{}"]
    assert llm.left_out == ["json_schema", "json_object"]
