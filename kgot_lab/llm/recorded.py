"""Recorded replies, so that notebooks and tests run without the model, a key or a network.

A recording is JSON lines of replies. The header is {"tape": 1, "model", "model_sha256", "engine", "recorded",
"note"}; "recording" is what files call a recording. Each further line is a reply: {"key", "prompt" (its last words,
for people), "reply", "usage"}. A trace (kgot_lab.loop.trace) is a whole run, event by event, whose replies can
be used as a recording.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from kgot_lab.arguments import check_arguments, parse_json
from kgot_lab.errors import LLMError, ReplayMiss, TraceError, UnknownName, require
from kgot_lab.io.files import os_errors_as, read_regular_file, refuse_wide_encoding
from kgot_lab.llm.budget import Spending, WrappedLLM, charged_account
from kgot_lab.llm.presets import FREE
from kgot_lab.llm.reply_forms import explain_json_error
from kgot_lab.llm.streaming import stream_reply, word_by_word
from kgot_lab.llm.structured import checked_reply, is_logprob, record_replayed
from kgot_lab.text.cleaning import format_count
from kgot_lab.types import LLM, Json, Message, Prompt, Reply, Usage

_PROMPT_PREVIEW = 80  # characters of a prompt in a recording, for readers


@dataclass(frozen=True)
class RecordingHeader:
    """The origin of the replies of a recording."""

    model: str
    model_sha256: str = ""
    engine: str = ""
    recorded: str = ""
    note: str = ""


class PromptKeys:
    """Assigns each prompt its key: a digest of its content and a count.

    So five equal samples have five keys.
    """

    def __init__(self, model: str):
        self.model = model
        self._seen: Counter[str] = Counter()

    def next_key(self, prompt: Prompt) -> str:
        """Return the key of the next occurrence of this prompt."""
        self._seen[prompt_digest(prompt, self.model)] += 1
        return prompt_key(prompt, self.model, self._seen[prompt_digest(prompt, self.model)])


def prompt_key(prompt: Prompt, model: str, seen: int = 1) -> str:
    """Return the key of the nth occurrence of a prompt: 16 hexadecimal digits, a dash, a count from 1."""
    return f"{prompt_digest(prompt, model)}-{seen}"


def prompt_digest(prompt: Prompt, model: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of everything sent to a model."""
    content = {
        "model": model,
        "messages": [[message.role, message.text, *message.images] for message in prompt.messages],
        "schema": prompt.schema,
        "temperature": float(prompt.temperature),
        "seed": prompt.seed,
        "max_tokens": prompt.max_tokens,
        **_likelihood(prompt),
    }
    return hashlib.sha256(
        json.dumps(content, sort_keys=True, ensure_ascii=False, default=dict).encode()
    ).hexdigest()[:16]


class Recorded:
    """Replays a recording, or the replies in a trace, from a file or its lines.

    Its name is that of the recorded model, so that keys and traces agree. `model` selects the replies of one
    model, if a trace has two. Raises TraceError if the file cannot be read or `model` is needed, UnknownName
    if the model is not in it, and ReplayMiss for a prompt that is not in it. It never calls a live model.
    """

    price = FREE  # the cost when recorded is in the usage

    def __init__(self, recording: str | Path | Iterable[Mapping[str, Json]], *, model: str = ""):
        is_path = isinstance(recording, (str, Path))
        lines = list(_lines(Path(recording))) if isinstance(recording, (str, Path)) else list(recording)
        self.is_trace = bool(lines) and lines[0].get("trace") == 1
        self.recording = (
            str(recording) if is_path else f"a {'trace' if self.is_trace else 'recording'} in memory"
        )
        read = _replies_of_trace if self.is_trace else _replies_of_recording
        self.head, self.replies = read(lines, self.recording, model)
        self._keys = PromptKeys(self.head.model)
        started = next((line for line in lines if line.get("event") == "Started"), {})
        self.preset = str(started.get("preset", "")).rstrip("*")  # that a recorded run used

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self.head.model

    @check_arguments
    def __call__(self, prompt: Prompt) -> Reply:
        key = self._keys.next_key(prompt)
        if key not in self.replies:
            raise ReplayMiss(self._missing(prompt, key))
        return self.replies[key]

    def _missing(self, prompt: Prompt, key: str) -> str:
        """Explain why there is no reply: all to this prompt are used, or there never was one."""
        what = f"the prompt that begins {_beginning(prompt)!r} and ends {_ending(prompt)!r}"
        advice = "use a live model, or record it again (`make record` for the bundled runs, `kgot-lab ask … --recording FILE` for your own)"
        count = sum(known.startswith(f"{key.partition('-')[0]}-") for known in self.replies)
        if count:
            reason = f"{'all ' if count > 1 else ''}{format_count(count, 'reply', 'replies')} to {what} {'are' if count > 1 else 'is'} used up"
            return f"{self.recording} has no reply {key}: {reason}. Start from the first again with rewind(), {advice}."
        changed = "The question, the documents, a limit, a seed or a prompt is not as it was recorded: ask as it was"
        return f"{self.recording} has no reply {key} to {what}. {changed}, {advice}."

    def rewind(self, asked: Iterable[tuple[Prompt, Reply]] = ()) -> None:
        """Start again from the first reply to every prompt.

        A resumed run starts from the first reply that it has not used.
        """
        self._keys = PromptKeys(self.head.model)
        for prompt, _ in asked:
            self._keys.next_key(prompt)

    def __repr__(self) -> str:
        replies, at = (
            format_count(len(self.replies), "reply", "replies"),
            self.head.recorded or "at an unknown date",
        )
        return f"<{replies} of {self.name}, recorded {at}, from {self.recording}>"


def load_recorded(place: str, **options: str) -> Recorded:
    """Load the replies in FILE, or those of one model in it, written FILE#MODEL."""
    if Path(place).exists():  # a file name may contain #
        return Recorded(place, **options)
    path, _, model = place.partition("#")
    return Recorded(path, **({"model": model} if model else {}), **options)


@check_arguments
class Recorder(WrappedLLM):
    """Records the replies of a live model in a recording. Replies that the recording already holds are replayed.

    `asked` are the prompts that a resumed run sent to this model before, with the replies. They are added to
    the recording, as if it had been there from the start. Raises TraceError if the file cannot be written, is not
    a recording, or is that of another model.
    """

    def __init__(
        self,
        llm: LLM,
        path: str | Path,
        *,
        head: RecordingHeader | None = None,
        asked: Iterable[tuple[Prompt, Reply]] = (),
    ):
        super().__init__(llm)
        self.path = Path(path)
        sha256, engine = getattr(llm, "sha256", ""), getattr(llm, "engine", "")
        self.head = head or RecordingHeader(llm.name, sha256, engine, date.today().isoformat())
        self._keys = PromptKeys(self.head.model)
        self._write_header()
        self._recording = Recorded(self.path)
        if self._recording.is_trace:
            raise TraceError(f"{self.path} is a trace: record the replies to another file")
        if self._recording.head.model != self.head.model:
            message = f"{self.path} holds replies of {self._recording.head.model}, not of {self.head.model}"
            raise TraceError(f"{message}: record to another file, or delete this one")
        repair_last_line(self.path)
        earlier = [(self._keys.next_key(prompt), prompt, reply) for prompt, reply in asked]
        if any(self._recording.replies.get(key, reply).text != reply.text for key, _, reply in earlier):
            raise TraceError(f"{self.path} holds other replies than the run: record to another file")
        for entry in earlier:
            self._store(*entry)

    @property
    def spending(self) -> Spending | None:
        """The account of the live model."""
        return charged_account(self._llm)

    def __call__(self, prompt: Prompt) -> Reply:
        key = self._keys.next_key(prompt)
        if key not in self._recording.replies:
            self._store(key, prompt, checked_reply(self._llm, prompt))
        else:
            record_replayed(self._recording.replies[key].usage)
        return self._recording.replies[key]

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply from the live model, or word by word from the recording, and the Reply last.

        A reply that is closed early is not recorded.
        """
        key = self._keys.next_key(prompt)
        if (held := self._recording.replies.get(key)) is not None:
            record_replayed(held.usage)
            yield from word_by_word(lambda: held)
            return
        with closing(stream_reply(self._llm, prompt)) as parts:
            for part in parts:
                if isinstance(part, Reply):
                    self._store(key, prompt, part)
                yield part

    def _store(self, key: str, prompt: Prompt, reply: Reply) -> None:
        if key not in self._recording.replies:
            self._write({"key": key, "prompt": _ending(prompt), **reply_to_json(reply)})
            self._recording.replies[key] = reply

    def _write_header(self) -> None:
        """Write the header of a recording that is missing, empty, or truncated in its header."""
        with os_errors_as(f"cannot write the recording {self.path}", TraceError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            held = read_regular_file(self.path) if self.path.exists() else b""
            if held.startswith(b'{"tape": 1, ') and not held.endswith((b"}", b"\n")) and b"\n" not in held:
                self.path.write_bytes(held := b"")
        if not held:
            self._write({"tape": 1, **asdict(self.head)})

    def _write(self, line: Mapping[str, Json]) -> None:
        with (
            os_errors_as(f"cannot write the recording {self.path}", TraceError),
            self.path.open("a", encoding="utf-8", newline="\n") as file,
        ):
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def __repr__(self) -> str:
        return f"<recording {self.name} to {self.path}: {format_count(len(self._recording.replies), 'reply', 'replies')}>"


def _lines(path: Path) -> Iterable[dict[str, Json]]:
    """Read the JSON lines of a file. The last one may be truncated.

    Raises TraceError, which names the line, if one cannot be read.
    """
    try:
        texts = read_lines(path)
    except (OSError, UnicodeDecodeError) as error:
        advice = "`kgot-lab ask … --recording FILE` records replies, `make record` the bundled runs"
        raise TraceError(f"the recording or trace {path} cannot be read: {error}; {advice}") from None
    is_ours = texts[0].startswith(('{"trace"', '{"tape"'))
    cut_short = len(texts) if is_ours else 0  # its last line has no end: the writer was stopped in the middle
    for number, text in enumerate(texts, start=1):
        try:
            line = parse_json(text) if text else {}
        except (ValueError, RecursionError) as error:
            if number == cut_short:
                return
            problem = f"line {number} of {path} is not JSON ({explain_json_error(error)})"
            advice = (
                "delete that line and record again"
                if number > 1
                else "it is no recording, nor the trace of a run"
            )
            raise TraceError(f"{problem}: {advice}") from None
        if not isinstance(line, dict):
            raise TraceError(
                f"line {number} of {path} is of no recording or trace: {text[:_PROMPT_PREVIEW]!r}"
            )
        if line:
            yield line


def read_lines(path: Path) -> list[str]:
    """Read the lines of a file. The last one is "" if the file ends with a newline.

    Raises OSError, UnicodeDecodeError unless only the final character is truncated, and BadInput for UTF-16.
    """
    data = read_regular_file(path)
    refuse_wide_encoding(data, path)
    before, end, last = data.rpartition(b"\n")
    # splitlines would also cut at odd separators
    return [  # a byte order mark is not part of the first line
        *(before + end).decode("utf-8-sig").split("\n")[:-1],
        last.decode("utf-8" if end else "utf-8-sig", errors="replace"),
    ]


def repair_last_line(path: Path) -> None:
    """Terminate the last line of a file if it is complete, else remove it, so that lines can be appended.

    Readers apply the same rule.
    """
    before, end, last = read_regular_file(path).rpartition(b"\n")
    if not last:
        return
    try:
        json.loads(last)
    except (ValueError, RecursionError):
        with path.open("r+b") as file:
            file.truncate(len(before + end))
    else:
        with path.open("ab") as file:
            file.write(b"\n")


_Held = tuple[RecordingHeader, dict[str, Reply]]


def _replies_of_recording(lines: Sequence[Mapping[str, Json]], recording: str, model: str) -> _Held:
    if not lines or lines[0].get("tape") != 1 or "model" not in lines[0]:
        raise TraceError(
            f'{recording} is no recording and no trace: it does not begin with {{"tape": 1, "model": …}} or {{"trace": 1, …}}'
        )
    head = RecordingHeader(
        **{key: str(lines[0].get(key, "")) for key in RecordingHeader.__dataclass_fields__}
    )
    if model not in {"", head.model}:
        raise UnknownName(f"model of {recording}", model, [head.model])
    try:
        return head, {str(line["key"]): reply_from_json(line) for line in lines[1:]}
    except KeyError:
        raise TraceError(f"an entry of {recording} has no key: record it again") from None


def _replies_of_trace(lines: Sequence[Mapping[str, Json]], trace: str, model: str) -> _Held:
    prompt_lines = _prompt_lines(lines)
    models = list(dict.fromkeys(str(line.get("model")) for line in prompt_lines))
    if not models:
        raise TraceError(f"no model was asked in the run {trace}: it holds no reply to answer with")
    if model and model not in models:
        raise UnknownName(f"model of {trace}", model, models)
    if not model and len(models) > 1:
        problem = f"{trace} holds replies of {' and '.join(models)}"
        raise TraceError(f"{problem}: say whose, as in recorded:{trace}#{models[0]}")
    about: Mapping[str, Json] = lines[0].get("about") or {}
    recorded = str(about.get("recorded") or lines[0].get("created", ""))[:10]
    sha256, engine = str(about.get("model_sha256", "")), str(about.get("engine", ""))
    head = RecordingHeader(model or models[0], sha256, engine, recorded, f"run {lines[0].get('run', '')}")
    keys = PromptKeys(head.model)
    own = [line for line in prompt_lines if line.get("model") == head.model]
    return head, {keys.next_key(_prompt_text(line, trace)): reply_from_json(line) for line in own}


def recorded_prompts(trace: str | Path, model: str) -> list[tuple[Prompt, Reply]]:
    """Return the prompts that a recorded run sent to a model, and the replies, in order.

    Raises TraceError if the trace cannot be read.
    """
    own = [line for line in _prompt_lines(list(_lines(Path(trace)))) if line.get("model") == model]
    return [(_prompt_text(line, str(trace)), reply_from_json(line)) for line in own]


def _prompt_lines(lines: Sequence[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """Return the Asked events of a run. Prompts sent inside tools are in the results of the tools."""
    asked = (line for line in lines[1:] if line.get("event") == "Asked")
    return [line for line in asked if not str(line.get("role")).startswith("inside ")]


def prompt_to_json(prompt: Prompt) -> dict[str, Json]:
    """Convert a prompt to JSON values.

    Images and likelihood are included only if present, so that older records stay the same.
    """
    messages = [{"role": turn.role, "text": turn.text} | _images(turn) for turn in prompt.messages]
    schema = None if prompt.schema is None else dict(prompt.schema)
    return {
        "messages": messages, "schema": schema, "temperature": prompt.temperature, "seed": prompt.seed, "max_tokens": prompt.max_tokens,
        **_likelihood(prompt),
    }  # fmt: skip


def _likelihood(prompt: Prompt) -> dict[str, Json]:
    return {"likelihood": True} if prompt.likelihood else {}


def _images(message: Message) -> dict[str, Json]:
    return {"images": list(message.images)} if message.images else {}


def prompt_from_json(data: Mapping[str, Json]) -> Prompt:
    """Build a prompt from the JSON values in a trace.

    Raises KeyError or TypeError if they are not a prompt.
    """
    turns = [{**turn, "images": tuple(turn.get("images", ()))} for turn in data["messages"]]
    return Prompt(**{**data, "messages": tuple(Message(**turn) for turn in turns)})


def _prompt_text(line: Mapping[str, Json], trace: str) -> Prompt:
    try:
        return prompt_from_json(line["prompt"])
    except (KeyError, TypeError) as error:
        raise TraceError(f"a prompt in {trace} is damaged: {error!r}") from None


def reply_from_json(line: Mapping[str, Json]) -> Reply:
    """Build a reply from a line of a recording.

    Raises TraceError if the line is not a reply.
    """
    try:
        logprob = logprob_from_json(line.get("logprob"))
        usage, cut = Usage(**line.get("usage", {})), bool(line.get("cut", False))
        return Reply(str(line["reply"]), usage, cut=cut, logprob=logprob)
    except (KeyError, TypeError) as error:
        name = line.get("key") or line.get("event")
        raise TraceError(f"the entry {name} is not a reply: {error!r}") from None


def logprob_from_json(value: Json) -> float | None:
    """Read the log-probability in a line.

    Raises TypeError if it is not one.
    """
    if value is not None and not is_logprob(value):
        raise TypeError(f"the logprob is {value!r}")
    return None if value is None else float(value)


def reply_to_json(reply: Reply) -> dict[str, Json]:
    """Convert a reply to a line of a recording."""
    usage = {**asdict(reply.usage), "seconds": round(reply.usage.seconds, 3)}
    return {"reply": reply.text, "usage": usage} | ({"cut": True} if reply.cut else {}) | _logprob(reply)


def _logprob(reply: Reply) -> dict[str, Json]:
    return {} if reply.logprob is None else {"logprob": reply.logprob}


def _ending(prompt: Prompt) -> str:
    """Return the last words of a prompt, since prompts of one role begin alike and end differently."""
    return " ".join(prompt.messages[-1].text.split())[-_PROMPT_PREVIEW:] if prompt.messages else ""


def _beginning(prompt: Prompt) -> str:
    return " ".join(prompt.messages[0].text.split())[:_PROMPT_PREVIEW] if prompt.messages else ""


# A model with scripted replies, for tests, simulations and explanations.


@check_arguments
class Scripted:
    """Answers with the given replies in order, or with a function of the prompt. Words count as tokens.

    `asked` holds every prompt received. Raises LLMError if the replies run out.
    """

    price = FREE

    def __init__(self, replies: Sequence[str] | Callable[[Prompt], str], name: str = "scripted"):
        self.name = name
        self.asked: list[Prompt] = []
        self._replies = replies if callable(replies) else tuple(replies)

    def __call__(self, prompt: Prompt) -> Reply:
        text = self._replies(prompt) if callable(self._replies) else self._next()
        require(text, str, f"a reply of {self.name} is a text")
        self.asked.append(prompt)
        words = sum(len(message.text.split()) for message in prompt.messages)
        return Reply(text, Usage(words, len(text.split())))

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply word by word, and the Reply last.

        Raises LLMError if the replies run out.
        """
        yield from word_by_word(lambda: self(prompt))

    def _next(self) -> str:
        assert not callable(self._replies)
        if len(self.asked) >= len(self._replies):
            raise LLMError(
                f"{self.name} has no reply left: it was given {len(self._replies)} and is asked once more. Give it more."
            )
        return self._replies[len(self.asked)]

    def __repr__(self) -> str:
        left = "a function"
        if not callable(self._replies):
            left = f"{format_count(len(self._replies) - len(self.asked), 'reply', 'replies')} left"
        return f"<{self.name}: {left}>"
