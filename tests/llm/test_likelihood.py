"""How likely a model held its own reply: asked of servers, passed on by wrappers, kept in recordings."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.every import every
from support.openai_server import Answer, asking, ollama_says, openai_server, refuses, says

from kgot_lab.errors import LLMError, TraceError
from kgot_lab.llm import connect
from kgot_lab.llm.budget import Budget, Budgeted
from kgot_lab.llm.engine_xllamacpp import _logprob
from kgot_lab.llm.recorded import Recorded, Recorder, prompt_from_json, prompt_key, prompt_to_json
from kgot_lab.llm.structured import checked_reply
from kgot_lab.types import Message, Prompt, Reply, Usage

PLAIN = Prompt(
    (Message("system", "You vote."), Message("user", "INSERT or RETRIEVE?")), temperature=0.7, seed=1
)
SURE = replace(PLAIN, likelihood=True)


def tells(*logprobs: object) -> Answer:
    """A chat completion that tells the logprob of each token."""
    content = [{"token": "x", "logprob": logprob, "bytes": None, "top_logprobs": []} for logprob in logprobs]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "yes"},
        "finish_reason": "stop",
        "logprobs": {"content": content},
    }
    return says("", choices=[choice])


class Sure:
    """A model that holds every reply as likely as it is told, where it is asked."""

    name = "sure:model"

    def __init__(self, logprob: float | None = -0.25) -> None:
        self.logprob, self.calls = logprob, 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls += 1
        return Reply("RETRIEVE", Usage(10, 2), logprob=self.logprob if prompt.likelihood else None)


# --- servers ---


def test_a_server_is_asked_for_logprobs_only_where_the_prompt_asks_and_their_sum_is_told() -> None:
    with asking(tells(-0.5, -0.25, 0)) as (llm, server):
        assert llm(SURE).logprob == -0.75
        llm(PLAIN)
    assert [body.get("logprobs") for body in server.bodies] == [True, None]
    assert "top_logprobs" not in server.bodies[0]


@every(
    "answer",
    [
        ollama_says("yes"), says("yes"), tells(), tells(-0.5, None), tells(-0.5, "certain"), tells(-0.5, 0.7), tells(True), tells(float("-inf")),
        says("", choices=[{"message": {"content": "yes"}, "logprobs": [-0.5]}]),
        says("", choices=[{"message": {"content": "yes"}, "logprobs": {"content": [-0.5]}}]),
    ],
    ids=repr,
)  # fmt: skip
def test_a_server_that_does_not_tell_all_of_it_tells_nothing(answer: Answer) -> None:
    with asking(answer, model="ollama:tiny" if "done" in str(answer.body) else "tiny") as (llm, _):
        reply = llm(SURE)
    assert (reply.text, reply.logprob) == ("yes", None)


@every(
    "no",
    [
        refuses(400, "Unrecognized request argument supplied: logprobs"),
        refuses(400, "Logprobs is not enabled for models/tiny"),
        refuses(403, "You are not allowed to request logprobs from this model."),
        refuses(
            422,
            "[{'type': 'extra_forbidden', 'loc': ('body', 'logprobs'), 'msg': 'Extra inputs are not permitted'}]",
        ),
        refuses(500, "logprobs is not supported for models created with logits_all=False"),
        refuses(400, "logprobs cannot be used with response_format"),
        Answer({"error": {"message": "this model tells no logprobs", "code": 400}}),
    ],
    ids=repr,
)
def test_a_server_that_refuses_logprobs_is_asked_once_more_without_and_that_is_remembered(no: Answer) -> None:
    with asking(no, tells(-0.5), says("yes")) as (llm, server):
        shaped = replace(SURE, schema={"type": "object"})
        assert llm(shaped).text == "yes"
        assert llm(shaped).logprob is None
    assert [body.get("logprobs") for body in server.bodies] == [True, None, None]
    assert all("response_format" in body for body in server.bodies), "what it was not about is kept"
    assert llm.left_out == ["logprobs"] and "logprobs" in repr(llm)


def test_a_word_about_logprobs_is_no_refusal_of_what_was_not_asked() -> None:
    no = refuses(400, "the message 'explain logprobs' is too long")
    with asking(no) as (llm, server), pytest.raises(LLMError, match="too long"):
        llm(PLAIN)
    assert len(server.bodies) == 1 and llm.left_out == []


# --- engines ---


def test_an_answer_that_lacks_the_logprob_of_a_token_has_none_and_that_of_nothing_is_the_smallest() -> None:
    told = [{"token": "a", "logprob": -0.5}, {"token": "", "logprob": -0.25}]
    assert _logprob({"tokens_predicted": 2, "completion_probabilities": told}) == -0.75
    assert _logprob({"tokens_predicted": 3, "completion_probabilities": told}) is None
    assert _logprob({"tokens_predicted": 2}) is None
    told[0]["logprob"] = -3.4028234663852886e38
    assert _logprob({"tokens_predicted": 2, "completion_probabilities": told}) == pytest.approx(-103.53)


# --- keys, recordings, wrappers ---


def test_a_recording_keeps_how_likely_a_reply_was_and_only_where_it_was_told(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    recorder = Recorder(Budgeted(Sure(), Budget(calls=9)), path)
    said = recorder(SURE), recorder(PLAIN)
    assert [reply.logprob for reply in said] == [-0.25, None]
    assert [json.loads(line).get("logprob", "nothing") for line in path.read_text().splitlines()[1:]] == [
        -0.25,
        "nothing",
    ]
    recording, later = Recorded(path), Sure(-9.0)
    assert (recording(SURE), recording(PLAIN)) == said == tuple(map(Recorder(later, path), (SURE, PLAIN)))
    assert later.calls == 0


@pytest.mark.parametrize("odd", ['"likely"', "0.5", "true", "NaN", "-Infinity"])
def test_a_line_whose_logprob_is_none_is_refused(tmp_path: Path, odd: str) -> None:
    path = tmp_path / "recording.jsonl"
    Recorder(Sure(), path)(SURE)
    path.write_text(path.read_text().replace("-0.25", odd))
    with pytest.raises(TraceError, match=r"is not a reply.*the logprob is"):
        Recorded(path)


@pytest.mark.parametrize("odd", [0.5, "likely", True, float("nan"), float("-inf")])
def test_a_model_that_tells_what_is_no_logprob_is_named(odd: object) -> None:
    with pytest.raises(LLMError, match="sure:model replied with a Reply whose logprob is"):
        checked_reply(Sure(odd), SURE)  # type: ignore[arg-type]
    assert checked_reply(Sure(0), SURE).logprob == 0


def test_a_prompt_that_does_not_ask_has_the_key_and_the_words_on_file_it_always_had() -> None:
    assert prompt_key(PLAIN, "m") == "5426b22c22fab6ca-1" != prompt_key(SURE, "m")
    assert "likelihood" not in prompt_to_json(PLAIN)
    assert prompt_from_json(json.loads(json.dumps(prompt_to_json(SURE)))) == SURE


def test_ollamas_own_protocol_tells_none(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(ollama_says("yes")) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url.removesuffix("/v1"))
        llm = connect("ollama:tiny")
        assert llm(SURE).logprob is None
        llm.close()  # type: ignore[attr-defined]
    assert "logprobs" not in server.bodies[0]
