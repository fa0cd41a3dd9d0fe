"""Words while a model writes them: the same as the whole, the reply last, and a model that stops where the
stream is closed.
"""

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from contextvars import copy_context
from pathlib import Path

import pytest
from support.every import every
from support.openai_server import (
    Answer,
    asking,
    delta,
    ending,
    event,
    ollama_refuses,
    refuses,
    says,
    says_on,
    tells,
)
from support.waiting import AMPLE

from kgot_lab.errors import LLMError, ModelMissing, NotInstalled, OverBudget, ReplayMiss
from kgot_lab.llm.budget import Budget, Budgeted, Spending
from kgot_lab.llm.capabilities import omit_quotes
from kgot_lab.llm.keys import StreamMasker, mask_key
from kgot_lab.llm.local import GeneratedText, Local
from kgot_lab.llm.presets import SERVER_KEY, Settings
from kgot_lab.llm.recorded import Recorded, Recorder, Scripted
from kgot_lab.llm.streaming import StreamingLLM, stream_reply
from kgot_lab.llm.structured import AnswerSplitter, RecordedCall, record_calls, split_reasoning
from kgot_lab.types import LLM, Message, Prompt, Reply, Usage

CANARY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("system", "Be brief."), Message("user", "Hello?")), seed=3, max_tokens=50)
WORDS = ("Once ", "upon", " a time", ", there was\u2028a key.")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SERVER_KEY, CANARY)


def told_by(llm: LLM, prompt: Prompt = HELLO) -> tuple[list[str], Reply]:
    """The pieces that are not empty, and the reply; together they are what a stream promises."""
    *pieces, reply = stream_reply(llm, prompt)
    assert isinstance(reply, Reply) and all(isinstance(piece, str) for piece in pieces)
    assert "".join(map(str, pieces)).strip().endswith(reply.text)
    return [str(piece) for piece in pieces if piece], reply


def until_something_is_said(stream: Iterator[str | Reply]) -> str:
    return str(next(piece for piece in stream if piece))


def endless() -> Iterator[str]:
    while True:
        yield delta("and on ")


def test_the_pieces_of_a_server_are_the_whole_and_the_reply_comes_last_with_its_usage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(SERVER_KEY)  # for whose sake the end of a piece may wait for the next
    with asking(says_on(*WORDS)) as (llm, server):
        pieces, reply = told_by(llm)
    assert pieces == list(WORDS) and isinstance(llm, StreamingLLM)
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cost) == (
        1000,
        500,
        pytest.approx(0.002),
    )
    assert server.bodies[0]["stream"] is True
    assert server.bodies[0]["stream_options"] == {"include_usage": True}
    assert server.bodies[0]["seed"] == 3


def test_a_piece_is_told_before_the_next_is_written() -> None:
    heard = threading.Event()

    def pieces() -> Iterator[str]:
        yield delta("first")
        yield delta(" second" if heard.wait(AMPLE) else " too late")
        yield from ending()

    with asking(tells(pieces())) as (llm, _):
        stream = llm.stream(HELLO)
        assert "first".startswith(until_something_is_said(stream))  # its last letters may begin a key
        heard.set()
        assert [*stream][-1] == Reply("first second", Usage(1000, 500, cost=0.002))


def test_a_closed_stream_closes_the_connection_and_the_next_call_works() -> None:
    with asking(tells(endless()), says("Hi.")) as (llm, server):
        stream = llm.stream(HELLO)
        assert "and on ".startswith(until_something_is_said(stream))
        assert not server.hung_up.is_set()
        stream.close()  # type: ignore[attr-defined]
        assert server.hung_up.wait(AMPLE)
        assert llm(HELLO).text == "Hi."


def test_how_likely_each_token_was_is_added_up() -> None:
    tokens = [
        {"index": 0, "delta": {"content": word}, "logprobs": {"content": [{"token": word, "logprob": -0.5}]}}
        for word in WORDS
    ]
    with asking(tells([*(event({"choices": [token]}) for token in tokens), *ending()])) as (llm, _):
        assert told_by(llm, Prompt(HELLO.messages, likelihood=True))[1].logprob == -2


@every(
    "words", ["Unknown parameter: 'stream_options'.", "body.stream_options: Extra inputs are not permitted"]
)
def test_a_server_that_refuses_to_be_asked_for_usage_is_not_asked_again(words: str) -> None:
    with asking(refuses(400, words), says_on("Hi.", usage=False)) as (llm, server):
        spending = Spending(Budget(dollars=1.0))
        assert told_by(Budgeted(llm, spending))[1].text == "Hi."
        told_by(llm)
    assert llm.left_out == ["stream_options"] and len(server.bodies) == 3
    assert "stream_options" not in server.bodies[1] and server.bodies[1]["stream"] is True
    assert sum("does not tell how many tokens" in line for line in server.said) == 1
    assert spending.unanswered > 0  # what nobody tells is counted as the most it can be


@every(
    ("answers", "left_out"),
    [
        (
            [refuses(400, "Your organization must be verified to stream this model."), says("Hi there.")],
            ["stream"],
        ),
        ([Answer(json.dumps(says("Hi there.").body, indent=1))], []),
    ],
)
def test_a_server_that_does_not_stream_is_understood(answers: list[Answer], left_out: list[str]) -> None:
    with asking(*answers) as (llm, server):
        pieces, reply = told_by(llm)
    assert pieces == ["Hi there."] and reply.usage.completion_tokens == 500 and llm.left_out == left_out
    assert not left_out or not {"stream", "stream_options"} & set(server.bodies[1])


@every(
    ("kind", "said"),
    [
        ("", "the answer is not a chat completion"),
        ("text/html; charset=utf-8", "a page of the web.*Is this the address of an OpenAI-comp"),
    ],
)
def test_a_page_instead_of_an_answer_is_told(kind: str, said: str) -> None:
    page = Answer("<html>welcome</html>", headers={"content-type": kind} if kind else {})
    with asking(page, attempts=1 + bool(kind)) as (llm, server), pytest.raises(LLMError, match=said):
        told_by(llm)
    assert len(server.bodies) == 1 and server.said == []


def test_what_is_said_of_waits_is_had_without_the_words_of_the_server() -> None:
    words = "cannot open /srv/weights/secret.gguf"
    with asking(refuses(503, words), Answer(drop=True), says_on("Hi."), attempts=3) as (llm, server):
        told_by(llm)
    assert words in server.said[0]
    first, second = map(omit_quotes, server.said)
    assert first.startswith(f"{llm.name}: HTTP 503; request 1 of 3, the next in ") and "secret" not in first
    assert second.startswith(f"{llm.name}: no connection; request 2 of 3")
    assert omit_quotes("as it is") == "as it is"


@every(
    "before", [refuses(429, "slow down"), tells([delta()], breaks=True), Answer(drop=True), tells([delta()])]
)
def test_what_fails_before_the_first_piece_is_asked_for_again(before: Answer) -> None:
    with asking(before, says_on("Hi."), attempts=3) as (llm, server):
        assert told_by(llm)[1].text == "Hi."
    assert len(server.bodies) == 2 and "request 1 of 3" in server.said[0]


@every(
    ("answer", "said", "requests"),
    [
        (tells([delta("Once")], breaks=True), "the connection broke", 3),
        (tells([delta("Once")]), "the answer ends before its end", 3),
        (
            tells([delta("Once"), event({"error": {"message": f"no luck with {CANARY}", "code": 500}})]),
            "HTTP 500, reported within an answer", 3,
        ),
        (tells([delta("Once"), event({"error": {"message": "no memory"}})]), "no memory", 1),
        (tells([delta("Once"), event("{")]), "not a chat completion", 1),
        (tells([delta("Once"), event("[" * 200_000)]), "more than 100,000 objects", 1),
        (tells([delta("Once"), *ending("content_filter")]), "a filter withheld it", 1),
    ],
)  # fmt: skip
def test_an_answer_that_always_breaks_off_is_an_error(answer: Answer, said: str, requests: int) -> None:
    with asking(answer, attempts=3) as (llm, server):
        stream = llm.stream(HELLO)
        assert until_something_is_said(stream) == "Once"
        with pytest.raises(LLMError, match=rf"broke off its answer.*: .*{said}") as caught:
            list(stream)
    assert len(server.bodies) == requests
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_answer_that_breaks_off_begins_again_as_a_plain_one_does() -> None:
    with asking(tells([delta("Once")], breaks=True), says_on("Twice.")) as (llm, server):
        pieces, reply = told_by(llm)
    assert reply.text == "Twice." and "".join(pieces) == "Once\nTwice."
    assert len(server.bodies) == 2 and "the connection broke" in server.said[0]


def test_a_stream_ends_in_time_whatever_its_server_does() -> None:
    def pieces() -> Iterator[str]:
        yield delta("Once")
        enough.wait(AMPLE)

    enough = threading.Event()
    with asking(tells(pieces()), timeout=0.5, attempts=1) as (llm, _):
        with pytest.raises(LLMError, match=r"it was not complete in time .*RetryPolicy\(timeout=SECONDS\)"):
            told_by(llm)
        enough.set()


def test_a_key_that_a_server_repeats_is_masked_over_the_pieces_it_comes_in() -> None:
    with asking(
        says_on("Your key is ", CANARY[:9], CANARY[9:15], CANARY[15:] + ", and sk", "-canaries sing.")
    ) as (llm, _):
        pieces, reply = told_by(llm)
    assert reply.text == "Your key is …, and sk-canaries sing."
    assert all(letters not in "|".join(pieces) for letters in (CANARY[:9], CANARY[9:15], CANARY[15:]))


@every("secret", [CANARY, "abababab", "aaaaaaaaaa", "k'\"<&/ =keykey"])
def test_a_text_in_pieces_is_masked_as_the_whole_is(secret: str) -> None:
    chance = random.Random(1)
    bits = [
        secret,
        secret.upper(),
        secret[:5],
        secret[3:],
        secret.encode().hex(),
        repr(secret),
        "ab",
        " ",
        "…",
    ]
    for _ in range(200):
        text, masked, told = "".join(chance.choices(bits, k=chance.randrange(1, 6))), StreamMasker(secret), ""
        for piece in in_pieces(text, chance):
            told += masked.after(piece)
        assert told + masked.rest() == mask_key(text, secret)


def test_a_text_in_pieces_is_parted_from_its_thoughts_as_the_whole_is() -> None:
    chance = random.Random(1)
    bits = ["<think>", "</think>", "<thinking>", "</thinking>", " ", "\n", "a", "<", "th", "b c", "</thi"]
    for _ in range(5000):
        text = "".join(chance.choices(bits, k=chance.randrange(7)))
        for thinks in (False, True):
            spoken = AnswerSplitter(thinks=thinks)
            told = "".join([spoken.after(piece) for piece in in_pieces(text, chance)]) + spoken.rest()
            said, thought = split_reasoning(text, thinks=thinks)
            assert (told.strip(), spoken.thought) == (said.strip(), thought)


def in_pieces(text: str, chance: random.Random) -> Iterator[str]:
    while text:
        size = chance.randrange(1, 9)
        yield text[:size]
        text = text[size:]


@every(
    ("model", "pieces"),
    [
        ("tiny", [delta("<thi"), delta("nk> hm, "), delta("hm </think>"), delta(" For"), delta("ty")]),
        ("qwen3-4b", [delta("hm, hm </thi"), delta("nk> For"), delta("ty")]),  # its template opens the block
        (
            "qwen3-4b",
            [
                delta(None, reasoning_content="hm, "),
                delta(None, reasoning_content="hm"),
                *map(delta, ("For", "ty")),
            ],
        ),
        ("tiny", [delta(None, reasoning="hm, hm"), delta("For"), delta("ty")]),
    ],
)
def test_what_a_model_thinks_is_not_told_and_the_rest_is_as_soon_as_it_speaks(
    model: str, pieces: list[str]
) -> None:
    with asking(tells([*pieces, *ending()]), model=model) as (llm, _):
        told, reply = told_by(llm)
    assert told == ["For", "ty"] and reply.text == "Forty"
    assert 250 < reply.usage.reasoning_tokens < 500


def test_a_model_can_be_stopped_while_it_thinks() -> None:
    def pieces() -> Iterator[str]:
        while True:
            yield delta(None, reasoning_content="hm ")

    with asking(tells(pieces())) as (llm, server), closing(stream_reply(llm, HELLO)) as stream:
        assert next(stream) == ""
        stream.close()
        assert server.hung_up.wait(AMPLE)


def test_a_model_that_says_nothing_is_asked_once_more_with_more_room() -> None:
    with asking(tells(ending("length")), says_on("Hi.")) as (llm, server):
        assert told_by(llm)[1].usage.completion_tokens == 1000
    assert [body["max_tokens"] for body in server.bodies] == [50, 100]


def ollama_lines(*messages: dict[str, str]) -> Answer:
    lines = [json.dumps({"model": "m", "message": message, "done": False}) + "\n" for message in messages]
    last = {
        "model": "m",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
    }
    return Answer(pieces=[*lines, json.dumps({**last, "prompt_eval_count": 90, "eval_count": 40}) + "\n"])


def test_ollama_is_heard_line_by_line() -> None:
    thinking, said = {"content": "", "thinking": "hm"}, ({"content": "For"}, {"content": "ty"})
    broken = Answer(pieces=['{"message": {"content": "For", "thinking": "hm"}}\n', '{"error": "no memory"}'])
    no = ollama_refuses(400, '"m" does not support thinking')
    with asking(no, ollama_lines(thinking, *said), broken, model="ollama:qwen3:8b") as (llm, server):
        told, reply = told_by(llm)
        assert told == ["For", "ty"] and reply.text == "Forty"
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (90, 40)
        assert reply.usage.reasoning_tokens > 0
        with pytest.raises(LLMError, match=r"broke off its answer: .*no memory"):
            told_by(llm)
    assert [body["stream"] for body in server.bodies] == [True, True, True]


@every("effort, told", [("", ["Forty"]), ("none", ["For", "ty"])])
def test_where_a_model_may_begin_in_thought_all_waits_for_the_end_of_it(effort: str, told: list[str]) -> None:
    lines, settings = ollama_lines({"content": "For"}, {"content": "ty"}), Settings(reasoning_effort=effort)
    with asking(lines, model="ollama:qwen3:8b", settings=settings) as (llm, _):
        assert told_by(llm)[0] == told


class Plain:
    """A model that cannot stream."""

    name = "plain"

    def __call__(self, prompt: Prompt) -> Reply:
        return Reply("all at once", Usage(1, 3))


class Rude(Plain):
    """A model whose stream ends without a reply."""

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        yield "good-"


def test_what_cannot_stream_is_told_in_words_and_a_stream_without_a_reply_is_an_error() -> None:
    assert not isinstance(Plain(), StreamingLLM)
    assert told_by(Plain()) == (["all", " at", " once"], Reply("all at once", Usage(1, 3)))
    with pytest.raises(LLMError, match="the stream of plain ended without its Reply"):
        told_by(Rude())
    assert told_by(Scripted(["  Once upon\n a time. "]))[0] == ["Once", " upon", "\n a", " time."]


def test_a_recording_keeps_what_was_streamed_and_tells_it_in_words(tmp_path: Path) -> None:
    recorder = Recorder(Scripted(["Once upon a time.", "Never kept."]), tmp_path / "recording.jsonl")
    _, reply = told_by(recorder)
    with closing(stream_reply(recorder, HELLO)) as stopped:
        next(stopped)
    replayed = Recorded(tmp_path / "recording.jsonl")
    assert told_by(replayed) == (["Once", " upon", " a", " time."], reply)
    with pytest.raises(ReplayMiss):
        told_by(replayed)
    assert told_by(Recorder(Scripted([]), tmp_path / "recording.jsonl", head=recorder.head))[1] == reply


def test_a_budget_counts_a_stream_once_and_stops_before_it_would_pass() -> None:
    llm = Budgeted(Budgeted(Scripted(["Once upon a time."] * 2), Budget()), Budget(calls=1))
    noted: list[RecordedCall] = []
    with record_calls(noted):
        _, reply = told_by(llm)
    assert (llm.calls, llm.spent.completion_tokens, llm.spending.calls) == (1, 4, 1)
    assert [call.usage for call in noted] == [reply.usage] and llm.spending in noted[0].accounts
    with pytest.raises(OverBudget):
        told_by(llm)


def test_a_stream_that_is_stopped_or_breaks_off_counts_as_the_most_it_can_take() -> None:
    broken = tells([delta("Once")], breaks=True)
    with asking(tells(endless()), broken, says_on("Hi."), attempts=1) as (model, _):
        llm = Budgeted(model, Budget(dollars=1.0))
        worst = llm.worst(HELLO)
        stream = llm.stream(HELLO)
        until_something_is_said(stream)
        stream.close()  # type: ignore[attr-defined]
        assert llm.spending.spent.completion_tokens == worst.completion_tokens
        assert llm.spending.spent.cost == llm.spending.unanswered == worst.cost > 0
        with pytest.raises(LLMError, match="broke off"):
            told_by(llm)
        assert llm.spending.spent.completion_tokens == 2 * worst.completion_tokens
        assert llm.spending.spent.cost > worst.cost and llm.calls == llm.spending.calls == 2
        told_by(llm)
    assert llm.spending.calls == 3


def test_each_step_of_a_stream_may_be_taken_in_another_context() -> None:
    noted: list[RecordedCall] = []
    with asking(says_on(*WORDS)) as (model, _):
        stream = stream_reply(Budgeted(model, Budget(seconds=AMPLE)), HELLO)
        with record_calls(noted):
            parts = [copy_context().run(next, stream, None) for _ in range(20)]
    assert [part for part in parts if part][-1] == Reply("".join(WORDS), Usage(1000, 500, cost=0.002))
    assert len(noted) == 1


class Mumbling:
    """An engine whose model writes these pieces, and knows whether it was let finish."""

    def __init__(self, *pieces: str) -> None:
        self.pieces, self.finished, self.read_from = pieces, False, list[int]()

    def chat(self, messages: object) -> list[int]:
        return [1, 2, 3]

    def read(self, tokens: list[int], done: int) -> None:
        self.read_from.append(done)

    def write_on(self, tokens: list[int], prompt: Prompt, seed: int) -> Iterator[str | GeneratedText]:
        self.finished = False
        yield from self.pieces
        self.finished = True
        yield GeneratedText("".join(self.pieces), len(self.pieces), cut=False)


def mumbling(path: Path, *pieces: str) -> tuple[Local, Mumbling]:
    path.write_bytes(b"GGUF")
    local, engine = Local(path), Mumbling(*pieces)
    local._loaded = engine  # type: ignore[assignment]
    return local, engine


def test_a_local_model_tells_only_what_it_says_after_its_thought(tmp_path: Path) -> None:
    local, _ = mumbling(tmp_path / "qwen3-4b.gguf", "<think>", " well </th", "ink>\n", "Lon", "don ")
    pieces, reply = told_by(local)
    assert pieces == ["Lon", "don "] and reply.text == "London" and 0 < reply.usage.reasoning_tokens < 5
    local, _ = mumbling(tmp_path / "qwen3-4b.gguf", "<think>", " well ")
    with pytest.raises(LLMError, match="thought for 2 tokens and said nothing"):
        told_by(local)


def test_a_closed_stream_of_a_local_model_stops_its_engine_and_lets_the_next_in(tmp_path: Path) -> None:
    local, engine = mumbling(tmp_path / "a.gguf", "Lon", "don")
    stream = local.stream(HELLO)
    assert next(stream) == "Lon" and local._lock.locked()
    stream.close()  # type: ignore[attr-defined]
    assert not local._lock.locked() and not engine.finished
    assert told_by(local)[1].text == "London" and engine.finished
    assert engine.read_from == [0, 0]  # nothing half-read was used
    told_by(local)
    assert engine.read_from[-1] == 2


@pytest.fixture(scope="module")
def real() -> Iterator[Local]:
    try:
        local = Local(context=2048, slots=3)
    except (ModelMissing, NotInstalled) as error:
        pytest.skip(f"no local model here: {error}")
    yield local
    local.close()


@pytest.mark.live
@pytest.mark.parametrize(
    "more",
    [
        {"seed": 3, "temperature": 0.8},
        {"likelihood": True},
        {"schema": {"type": "object", "properties": {"river": {"type": "string"}}, "required": ["river"]}},
    ],
)
def test_a_real_model_streams_what_it_replies(real: Local, more: dict[str, object]) -> None:
    prompt = Prompt((Message("user", "Name four rivers. Begin with 你好 👋."),), max_tokens=40, **more)  # type: ignore[arg-type]
    whole, (pieces, reply) = real(prompt), told_by(real, prompt)
    assert reply == whole and len(pieces) > 3


@pytest.mark.live
def test_a_real_model_that_is_stopped_answers_the_next(real: Local) -> None:
    short = Prompt((Message("user", "Say yes."),), max_tokens=5)
    before = real(short)
    stream = real.stream(Prompt((Message("user", "Tell a very long story."),), max_tokens=1900))
    until_something_is_said(stream)
    stream.close()  # type: ignore[attr-defined]
    assert real(short) == before and real._read
