"""Recordings and the replies in traces: what was recorded is replayed, reply by reply, and nothing else is."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from support.every import every

from kgot_lab.errors import ReplayMiss, TraceError, UnknownName
from kgot_lab.llm import connect
from kgot_lab.llm.recorded import (
    PromptKeys,
    Recorded,
    Recorder,
    RecordingHeader,
    Scripted,
    prompt_from_json,
    prompt_key,
    prompt_to_json,
    repair_last_line,
)
from kgot_lab.types import Message, Prompt, Reply, Usage

VOTE = Prompt(
    (Message("system", "You vote."), Message("user", "INSERT or RETRIEVE?")), temperature=0.7, seed=1
)


class Live:
    """A model that never says the same twice."""

    name = "live:model"
    sha256 = "abc"
    engine = "an engine 1.0"

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, prompt: Prompt) -> Reply:
        self.calls += 1
        return Reply(f"reply {self.calls} \u2028 ü", Usage(10, self.calls, 0.5, 0.01))


def test_five_equal_votes_replay_five_replies(tmp_path: Path) -> None:
    recorder = Recorder(Live(), tmp_path / "recording.jsonl")
    said = [recorder(VOTE) for _ in range(5)]
    recording = Recorded(tmp_path / "recording.jsonl")
    assert [recording(VOTE) for _ in range(5)] == said
    assert len({reply.text for reply in said}) == 5


def test_a_recording_has_the_name_and_keys_of_the_live_model(tmp_path: Path) -> None:
    live = Live()
    recorder = Recorder(live, tmp_path / "recording.jsonl")
    recorder(VOTE)
    recording = Recorded(tmp_path / "recording.jsonl")
    assert recording.name == recorder.name == live.name
    assert (
        list(recording.replies) == [PromptKeys(live.name).next_key(VOTE)] == [prompt_key(VOTE, live.name, 1)]
    )


@every(
    "change",
    [
        {"temperature": 0.0},
        {"seed": 2},
        {"seed": None},
        {"max_tokens": 7},
        {"likelihood": True},
        {"schema": {"type": "object"}},
        {"messages": (Message("user", "You vote."), Message("user", "INSERT or RETRIEVE?"))},
        {"messages": (Message("system", "You vote.INSERT or RETRIEVE?"),)},
    ],
    ids=str,
)
def test_everything_a_model_is_asked_with_changes_the_key(change: dict[str, object]) -> None:
    assert prompt_key(replace(VOTE, **change), "m") != prompt_key(VOTE, "m")  # type: ignore[arg-type]
    assert prompt_key(VOTE, "m") != prompt_key(VOTE, "another")


def test_a_prompt_without_images_has_the_key_it_always_had_and_images_change_it() -> None:
    assert prompt_key(VOTE, "m") == "5426b22c22fab6ca-1"
    seen = replace(
        VOTE, messages=(VOTE.messages[0], replace(VOTE.messages[1], images=("data:image/png;base64,AA==",)))
    )
    other = replace(
        VOTE, messages=(VOTE.messages[0], replace(VOTE.messages[1], images=("data:image/png;base64,AB==",)))
    )
    assert len({prompt_key(prompt, "m") for prompt in (VOTE, seen, other)}) == 3


def test_a_prompt_comes_back_from_plain_values_with_its_images() -> None:
    seen = replace(
        VOTE, messages=(*VOTE.messages, Message("user", "And this?", ("data:image/png;base64,AA==",)))
    )
    assert prompt_from_json(json.loads(json.dumps(prompt_to_json(seen)))) == seen
    assert "images" not in json.dumps(prompt_to_json(VOTE))
    assert prompt_from_json({"messages": [{"role": "user", "text": "hello"}]}) == Prompt(
        (Message("user", "hello"),)
    )


def test_whole_numbers_and_property_order_do_not_change_the_key() -> None:
    one, other = {"a": 1, "b": 2}, {"b": 2, "a": 1}
    assert prompt_key(replace(VOTE, schema=one, temperature=0), "m") == prompt_key(
        replace(VOTE, schema=other, temperature=0.0), "m"
    )


def test_a_miss_tells_a_prompt_never_asked_from_replies_used_up(tmp_path: Path) -> None:
    Recorder(Live(), tmp_path / "recording.jsonl")(VOTE)
    recording = Recorded(tmp_path / "recording.jsonl")
    recording(VOTE)
    for _ in range(2):
        with pytest.raises(
            ReplayMiss,
            match=r"1 reply to the prompt .* is used up\. Start from the first again with rewind\(\)",
        ) as used_up:
            recording(VOTE)
        assert "is not as it was recorded" not in str(used_up.value)
    with pytest.raises(
        ReplayMiss, match="a seed or a prompt is not as it was recorded: ask as it was"
    ) as unknown:
        recording(replace(VOTE, seed=2))
    assert "used up" not in str(unknown.value)


def test_recording_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first, second = Live(), Live()
    said = Recorder(first, tmp_path / "recording.jsonl")(VOTE)
    recorder = Recorder(second, tmp_path / "recording.jsonl")
    assert recorder(VOTE) == said
    assert second.calls == 0
    recorder(VOTE)
    assert second.calls == 1
    assert len((tmp_path / "recording.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")) == 3


@pytest.mark.parametrize("cut", [1, 2, 20, 60])
def test_a_recording_that_was_cut_in_its_last_line_keeps_every_whole_reply_and_goes_on(
    tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "recording.jsonl"
    said = [recorder(VOTE) for recorder in [Recorder(Live(), path)] for _ in range(3)]
    path.write_bytes(path.read_bytes()[:-cut])
    whole = 3 if cut == 1 else 2
    assert list(Recorded(path).replies.values()) == said[:whole]
    live = Live()
    recorder = Recorder(live, path)
    assert [recorder(VOTE) for _ in range(4)][:whole] == said[:whole] and live.calls == 4 - whole
    assert list(Recorded(path).replies.values())[:whole] == said[:whole] and len(Recorded(path).replies) == 4


def test_a_recording_that_was_cut_in_a_letter_or_in_its_head_goes_on_too(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    for _ in range(2):
        Recorder(Live(), path)(VOTE)
    data = path.read_bytes()
    path.write_bytes(data[: data.index("ü".encode()) + 1])
    assert len(Recorded(path).replies) == 0
    Recorder(Live(), path)(VOTE)
    assert path.read_bytes() == data
    path.write_bytes(data[:30])
    with pytest.raises(TraceError, match="is no recording"):
        Recorded(path)
    Recorder(Live(), path)(VOTE)
    assert path.read_bytes() == data
    path.write_bytes(data[: data.index(b"\n")])
    Recorder(Live(), path)(VOTE)
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "text",
    [
        "my own words",
        '{"my": "own words"}',
        '{"tape": 1, "model": "another"}',
        '{"tape": 1, "model": "m"}\n{"own',
    ],
)
def test_a_recorder_does_not_repair_what_is_not_its_recording(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.jsonl").write_text(text)
    with pytest.raises(TraceError):
        Recorder(Live(), tmp_path / "own.jsonl")
    assert (tmp_path / "own.jsonl").read_text() == text


def test_a_run_that_goes_on_has_its_earlier_replies_on_the_recording_and_counted(tmp_path: Path) -> None:
    path, live = tmp_path / "recording.jsonl", Live()
    before = [(VOTE, live(VOTE)), (VOTE, live(VOTE))]
    recorder = Recorder(live, path, asked=before)
    third = recorder(VOTE)
    recording = Recorded(path)
    assert [recording(VOTE) for _ in range(3)] == [*(reply for _, reply in before), third] and live.calls == 3
    # a reply in the recording that its run lost
    assert Recorder(live, path, asked=before)(VOTE) == third and live.calls == 3
    text = path.read_text()
    with pytest.raises(TraceError, match="holds other replies than the run"):
        Recorder(live, path, asked=[(VOTE, Reply("another"))])
    assert path.read_text() == text


def test_the_head_tells_where_the_replies_come_from(tmp_path: Path) -> None:
    Recorder(Live(), tmp_path / "recording.jsonl")
    head = json.loads((tmp_path / "recording.jsonl").read_text())
    assert (head["tape"], head["model"], head["model_sha256"], head["engine"]) == (
        1,
        "live:model",
        "abc",
        "an engine 1.0",
    )
    assert len(head["recorded"]) == 10


def test_a_recording_of_another_model_is_not_written_to(tmp_path: Path) -> None:
    Recorder(Live(), tmp_path / "recording.jsonl")
    with pytest.raises(TraceError, match=r"live:model, not of scripted"):
        Recorder(Scripted([]), tmp_path / "recording.jsonl")


@pytest.mark.parametrize(
    "text",
    ["", "{}\n", "not json\n", '{"tape": 2, "model": "m"}\n', '{"tape": 1, "model": "m"}\n{"key": "x"}\n'],
)
def test_what_is_not_a_recording_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "recording.jsonl").write_text(text)
    with pytest.raises(TraceError):
        Recorded(tmp_path / "recording.jsonl")


def test_a_recorder_writes_to_no_trace_and_to_no_folder(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(text := trace_of(asked("a", "INSERT")))
    with pytest.raises(TraceError, match="is a trace"):
        Recorder(Live(), tmp_path / "run.jsonl")
    with pytest.raises(TraceError, match="cannot write"):
        Recorder(Live(), tmp_path / "run.jsonl" / "recording.jsonl")
    assert (tmp_path / "run.jsonl").read_text() == text


# --- traces ---


def asked(model: str, reply: str, role: str = "vote") -> dict[str, object]:
    prompt = {**asdict(VOTE), "messages": [asdict(message) for message in VOTE.messages]}
    return {
        "event": "Asked",
        "step": 0,
        "role": role,
        "model": model,
        "prompt": prompt,
        "reply": reply,
        "usage": {"prompt_tokens": 3},
    }


def trace_of(*events: dict[str, object]) -> str:
    head = {
        "trace": 1,
        "run": "r",
        "created": "2026-11-21T10:00:00+00:00",
        "about": {"engine": "an engine 1.0"},
    }
    return "".join(json.dumps(line) + "\n" for line in (head, *events))


def test_the_replies_in_a_trace_are_replayed_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(
        trace_of(
            asked("a", "INSERT"), {"event": "Ballot"}, asked("a", "RETRIEVE"), asked("b", "?", "inside tool")
        )
    )
    recording = connect(f"recorded:{tmp_path / 'run.jsonl'}")
    assert isinstance(recording, Recorded)
    assert recording.head == RecordingHeader("a", "", "an engine 1.0", "2026-11-21", "run r")
    assert [recording(VOTE) for _ in range(2)] == [Reply("INSERT", Usage(3)), Reply("RETRIEVE", Usage(3))]
    with pytest.raises(
        ReplayMiss,
        match=r"run\.jsonl has no reply .*-3: all 2 replies to the prompt .*rewind\(\), use a live model, or record it again",
    ):
        recording(VOTE)


def test_of_a_trace_with_two_models_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run#1.jsonl"
    path.write_text(trace_of(asked("a", "INSERT"), asked("b", "RETRIEVE"), asked("b", "?")))
    with pytest.raises(
        TraceError, match=r"holds replies of a and b: say whose, as in recorded:.*run#1\.jsonl#a"
    ):
        connect(f"recorded:{path}")
    with pytest.raises(UnknownName, match="a, b"):
        connect(f"recorded:{path}", model="c")
    (tmp_path / "run.jsonl").write_text(path.read_text())
    for recording in (
        connect(f"recorded:{path}", model="b"),
        connect(f"recorded:{tmp_path / 'run.jsonl'}#b"),
    ):
        assert isinstance(recording, Recorded)
        assert (recording.name, [recording(VOTE).text for _ in range(2)]) == ("b", ["RETRIEVE", "?"])


def test_a_recording_has_the_replies_of_its_own_model_only() -> None:
    entries = [{"tape": 1, "model": "m"}]
    assert Recorded(entries, model="m").name == "m"
    with pytest.raises(UnknownName, match="model of a recording in memory"):
        Recorded(entries, model="n")


def test_a_trace_that_a_kill_cut_short_gives_the_replies_it_has(tmp_path: Path) -> None:
    whole = trace_of(asked("a", "INSERT"), asked("a", "ü")).encode()
    for cut in (1, 5, 100):
        (tmp_path / "run.jsonl").write_bytes(whole[:-cut])
        assert len(Recorded(tmp_path / "run.jsonl").replies) == (2 if cut == 1 else 1)


@pytest.mark.parametrize(
    "text",
    [
        trace_of(),
        trace_of({"event": "Answered"}),
        trace_of(asked("a", "x", "inside tool")),
        trace_of({**asked("a", "x"), "prompt": {"messages": [{"role": "user"}]}}),
        trace_of({**asked("a", "x"), "prompt": 3}),
        trace_of({**asked("a", "x"), "usage": {"tokens": 3}}),
        trace_of(asked("a", "x")).replace('{"event"', "[", 1),
        "[]\n",
        "3",
    ],
)
def test_a_trace_without_a_reply_or_with_a_damaged_one_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.jsonl").write_text(text)
    with pytest.raises(TraceError):
        Recorded(tmp_path / "run.jsonl")


def test_a_model_can_be_connected_so_that_its_replies_are_kept(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_text(trace_of(asked("a", "INSERT"), asked("a", "RETRIEVE")))
    kept = connect(f"recorded:{tmp_path / 'run.jsonl'}", recording=tmp_path / "recording.jsonl")
    assert kept(VOTE).text == "INSERT"
    recording = Recorded(tmp_path / "recording.jsonl")
    assert not recording.is_trace and recording(VOTE).text == "INSERT" and len(recording.replies) == 1


def test_a_missing_recording_says_how_to_record_it(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="make record"):
        connect(f"recorded:{tmp_path / 'none.jsonl'}")


def test_a_recording_may_be_held_in_memory() -> None:
    entries = [
        {"tape": 1, "model": "m"},
        {"key": prompt_key(VOTE, "m"), "reply": "INSERT", "usage": {"prompt_tokens": 3}},
    ]
    recording = Recorded(entries)
    assert (recording(VOTE).text, recording.head) == ("INSERT", RecordingHeader("m"))


@pytest.mark.parametrize(
    ("line", "why"), [('{"n": ' + "1" * 5_000 + "}", "too many digits"), ("[" * 200_000, "too deep")]
)
def test_a_line_that_no_reader_can_take_is_named_and_at_the_end_dropped(
    tmp_path: Path, line: str, why: str
) -> None:
    recording = tmp_path / "recording.jsonl"
    Recorder(Scripted(["INSERT"] * 2), recording)(VOTE)
    sound = recording.read_text()
    recording.write_text(f"{sound}{line}\n")
    with pytest.raises(TraceError, match=rf"is not JSON \({why}\)"):
        Recorded(recording)
    recording.write_text(f"{sound}{line}")
    assert Recorded(recording)(VOTE).text == "INSERT"
    repair_last_line(recording)
    assert recording.read_text() == sound
