"""Models named in a file: what it may say, what it may not, and that what it says is what is sent."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.every import every
from support.openai_server import openai_server, says

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.llm import connect
from kgot_lab.llm.local import Local
from kgot_lab.llm.models import Models, entry_for, load_models, models_from
from kgot_lab.llm.openai_compatible import OpenAICompatible, Price, RetryPolicy, Settings
from kgot_lab.llm.recorded import Recorder, RecordingHeader, Scripted, prompt_key
from kgot_lab.types import Message, Prompt

CANARY = "sk-canary-0123456789abcdef"
HELLO = Prompt((Message("user", "Hello?"),), temperature=0.5, max_tokens=50)
FULL = """
planner:
  model: openai:gpt-5.4-mini
  price: {prompt: 0.75, completion: 4.5}
  temperature: 0.2
  reasoning_effort: low
  allowance: 6000
  key_variable: LAB_OPENAI_KEY
  patience: {attempts: 2, timeout: 300}
small: {model: "ollama:qwen3:8b", num_ctx: 16384, temperature_scale: 0.5, max_tokens: 900}
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(text: str) -> Path:
        (tmp_path / "models.yaml").write_text(text, encoding="utf-8")
        return tmp_path / "models.yaml"

    return written


def test_a_name_opens_the_model_with_all_that_the_file_says(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_OPENAI_KEY", CANARY)
    llm = connect("planner", models=write(FULL))
    assert isinstance(llm, OpenAICompatible)
    assert llm.name == "openai:gpt-5.4-mini [temperature=0.2, reasoning_effort=low, allowance=6000]"
    assert (llm.price, llm.patience) == (Price(0.75, 4.5), RetryPolicy(attempts=2, timeout=300))
    assert llm.settings == Settings(temperature=0.2, reasoning_effort="low", allowance=6000)
    assert llm.preset.key_variable == "LAB_OPENAI_KEY"
    small = connect("small", models=load_models(write(FULL)))
    assert isinstance(small, OpenAICompatible)
    assert small.settings == Settings(temperature_scale=0.5, max_tokens=900, num_ctx=16384)


def test_what_the_file_says_is_what_a_server_is_sent(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", CANARY)
    with openai_server(says("hi")) as server:
        told = f"house: {{model: '{server.url}#tiny', temperature: 0.1, allowance: 100, reasoning_effort: low, key_variable: LAB_KEY}}"
        llm = connect("house", models=write(told))
        llm(HELLO)
    sent = server.bodies[0]
    assert (sent["temperature"], sent["max_tokens"], sent["reasoning_effort"]) == (0.1, 150, "low")
    assert server.headers[0]["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in repr(llm) + repr(vars(llm)) + repr(load_models(write(told)))


def test_an_option_goes_before_what_the_file_says_and_other_names_stay_what_they_are(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_OPENAI_KEY", CANARY)
    planner = connect("planner", models=write(FULL), price=Price(1, 1))
    other = connect("http://localhost:1/v1#m", models=write(FULL))
    assert isinstance(planner, OpenAICompatible) and isinstance(other, OpenAICompatible)
    assert planner.price == Price(1, 1)
    assert other.settings == Settings()


def test_a_local_model_can_be_named_with_its_context(write: Write, tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    llm = connect(
        "mine",
        models=write(f"mine: {{model: 'local:{tmp_path / 'a.gguf'}', num_ctx: 4096, temperature: 0.0}}"),
        say=print,
    )
    assert isinstance(llm, Local) and llm.context == 4096
    assert llm._apply_settings(HELLO).temperature == 0.0


def test_a_name_that_is_not_there_is_answered_with_those_that_are(write: Write) -> None:
    with pytest.raises(UnknownName, match="did you mean 'planner'") as caught:
        connect("planer", models=write(FULL))
    assert {"planner", "small", "openai"} <= set(caught.value.known)
    with pytest.raises(UnknownName, match="did you mean 'openai:gpt-4o'"):
        connect("gpt-4o", models=write(FULL))


OPENAI = "openai:gpt-4o"


@every(
    ("model", "fields", "told"),
    [
        (
            OPENAI,
            "temprature: 0",
            "planner.temprature: there is no such field; did you mean 'temperature'. Known: ",
        ),
        (OPENAI, "temperature: hot", "planner.temperature: it has to be a number"),
        (OPENAI, "temperature: 3", "planner.temperature: it has to be 2 or less"),
        (OPENAI, "price: {prompt: 1}", "planner.price.completion: it is missing"),
        (OPENAI, "price: {prompt: -1, completion: 1}", "planner.price.prompt: it has to be 0 or more"),
        (OPENAI, "patience: {attemps: 1}", "planner.patience.attemps: there is no such field"),
        (OPENAI, "patience: {attempts: 0}", "planner.patience.attempts: it has to be 1 or more"),
        (OPENAI, "reasoning_effort: hi", "planner: unknown reasoning_effort 'hi'; did you mean 'high'"),
        (OPENAI, "num_ctx: 4096", "planner: num_ctx: a model that begins with 'openai' has no such field"),
        (
            OPENAI,
            "key_variable: not a name",
            "planner.key_variable: it is the name of an environment variable",
        ),
        (OPENAI, f"model: {OPENAI}", "model is there twice"),
        ("local", "price: {prompt: 1, completion: 1}", "planner: price: a model that begins with 'local'"),
        ("recorded:a.jsonl", "temperature: 0", "planner: temperature: a model that begins with 'recorded'"),
        ("gpt-4o", "", "planner: unknown model 'gpt-4o'; did you mean 'openai:gpt-4o'"),
        ("openai:", "", "planner: 'openai:' says no more than the kind"),
        ("", "temperature: 0", "planner.model: it is missing"),
    ],
)
def test_a_field_that_cannot_be_used_is_told_with_the_file_and_the_entry(write, model, fields, told):
    entry = ", ".join(filter(None, [f"model: '{model}'" if model else "", fields]))
    with pytest.raises(BadInput, match=told):
        load_models(write(f"planner: {{{entry}}}"))


@every(
    ("text", "told"),
    [
        ("planner: gpt-4o", "planner: write what it is below its name"),
        ("'two words': {model: local}", "a model's name is letters"),
        ("planner: {model: local}\nplanner: {model: local}", "line 1 of .*planner is there twice"),
        ("planner: {model: [", r"line \d of .*models.yaml is not YAML"),
        ("planner: !!python/object/apply:os.system ['true']", "is not YAML"),
        ("", "models.yaml names no models"),
        ("- planner", "models.yaml names no models"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(write, text, told):
    with pytest.raises(BadInput, match=told):
        load_models(write(text))


@every(
    "fields",
    [
        *(
            f"model: '{OPENAI}', {key}: {CANARY}"
            for key in ("key", "api_key", "key_variable", "reasoning_effort")
        ),
        f"model: '{OPENAI}', key_variable: abcdef0123456789abcdef0123456789",
        f"model: 'https://llm.example.org/v1?key={CANARY}#m'",
    ],
)
def test_a_key_in_the_file_is_refused_and_not_told(write: Write, fields: str) -> None:
    with pytest.raises(BadInput, match="name the environment variable that holds it") as caught:
        load_models(write(f"planner: {{{fields}}}"))
    assert CANARY not in str(caught.value) and "abcdef0123" not in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"models file .*nowhere.yaml cannot be read"):
        connect("planner", models=tmp_path / "nowhere.yaml")


def test_models_can_be_part_of_a_larger_file() -> None:
    models = models_from({"planner": {"model": "openai:gpt-4o"}}, "lab.yaml: models")
    assert isinstance(models, Models) and list(models) == ["planner"]
    assert repr(models) == "<lab.yaml: models: planner (openai:gpt-4o)>"
    with pytest.raises(BadInput, match=r"lab.yaml: models: planner.model"):
        models_from({"planner": {"model": 3}}, "lab.yaml: models")


PLAIN_KEY = "8023172c9a1766c2-1"  # as recordings held it before settings were part of a name


def test_the_name_in_a_trace_finds_the_entry_again_whatever_its_kind(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LAB_OPENAI_KEY", CANARY)
    (tmp_path / "Mine.gguf").write_bytes(b"GGUF")
    Recorder(Scripted([], name="somebody"), tmp_path / "recording.jsonl", head=RecordingHeader("somebody"))
    more = f"""
house: {{model: 'HTTP://localhost:1/v1#m', max_tokens: 7}}
mine: {{model: 'local:{tmp_path / "Mine.gguf"}', temperature: 0.0}}
recording: {{model: 'recorded:{tmp_path / "recording.jsonl"}'}}
gone: {{model: 'recorded:{tmp_path / "gone.jsonl"}'}}
"""
    models = load_models(write(FULL + more))
    for own in set(models) - {"gone"}:
        assert entry_for(models, connect(own, models=models).name) == own
        assert entry_for(models, own) == own
    assert connect("house", models=models).name == "localhost:1:m [max_tokens=7]"
    with pytest.raises(UnknownName, match=r"unknown model of a trace or recording 'openai:gpt-5\.4-mini'"):
        entry_for(models, "openai:gpt-5.4-mini")


def test_entries_of_one_model_with_other_settings_have_other_keys_on_recording_and_without_settings_the_key_is_as_ever() -> (
    None
):
    entries = [
        {},
        {"temperature": 0.0},
        {"temperature": 0.5},
        {"max_tokens": 9},
        {"allowance": 5},
        {"reasoning_effort": "low"},
    ]
    models = models_from(
        {f"m{n}": {"model": "http://localhost:1/v1#m", **more} for n, more in enumerate(entries)}, "models"
    )
    keys = [prompt_key(HELLO, connect(name, models=models).name) for name in models]
    assert len(set(keys)) == len(entries)
    assert keys[0] == PLAIN_KEY == prompt_key(HELLO, "localhost:1:m")


def test_a_name_with_settings_is_no_model_to_connect_to() -> None:
    with pytest.raises(BadInput, match="name the entry of your models file"):
        connect("openai:gpt-4o [temperature=0.2]")
