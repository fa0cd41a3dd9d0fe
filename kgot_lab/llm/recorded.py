"""Tapes: real replies on file, so that notebooks and tests run without the model, a key or a network.

A tape is JSON lines. The head: {"tape": 1, "model", "model_sha256", "engine", "recorded", "note"}; then a line for each reply:
{"key", "prompt" (its last words, for people), "reply", "usage"}.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from kgot_lab.errors import ReplayMiss, TraceError
from kgot_lab.types import LLM, Json, Prompt, Reply, Usage

_SHOWN = 80  # characters of a prompt that a tape keeps for people


@dataclass(frozen=True)
class Head:
    """Where the replies of a tape come from."""

    model: str
    model_sha256: str = ""
    engine: str = ""
    recorded: str = ""
    note: str = ""


class Keys:
    """Gives each prompt its key: a digest of all it says, and how often it was seen, so that five equal ballots have five keys."""

    def __init__(self, model: str):
        self.model = model
        self._seen: Counter[str] = Counter()

    def of(self, prompt: Prompt) -> str:
        """The key of the next asking of this prompt."""
        self._seen[prompt_digest(prompt, self.model)] += 1
        return prompt_key(prompt, self.model, self._seen[prompt_digest(prompt, self.model)])


def prompt_key(prompt: Prompt, model: str, seen: int = 1) -> str:
    """The key of the seen-th asking of a prompt: 16 hexadecimal digits, a dash, a count from 1."""
    return f"{prompt_digest(prompt, model)}-{seen}"


def prompt_digest(prompt: Prompt, model: str) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of everything a model is asked with."""
    asked = {
        "model": model,
        "messages": [[message.role, message.text] for message in prompt.messages],
        "schema": prompt.schema,
        "temperature": float(prompt.temperature),
        "seed": prompt.seed,
        "max_tokens": prompt.max_tokens,
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False, default=dict).encode()).hexdigest()[:16]


class Recorded:
    """Replays a tape: a file of one, or its head and entries. Its name is the recorded model's own, so that keys and traces agree.

    Raises TraceError when the tape cannot be read, and ReplayMiss on a prompt that is not on it: it never asks a live model.
    """

    def __init__(self, tape: str | Path | Iterable[Mapping[str, Json]]):
        self.tape = str(tape) if isinstance(tape, (str, Path)) else "a tape in memory"
        lines = list(_lines(Path(tape))) if isinstance(tape, (str, Path)) else list(tape)
        self.head = _head(lines, self.tape)
        self.replies = {str(line["key"]): _reply(line) for line in lines[1:]}
        self._keys = Keys(self.head.model)

    @property
    def name(self) -> str:
        """The name of the model whose replies these are."""
        return self.head.model

    def __call__(self, prompt: Prompt) -> Reply:
        key = self._keys.of(prompt)
        if key not in self.replies:
            raise ReplayMiss(
                f"the tape {self.tape} has no reply {key} to the prompt that begins {_beginning(prompt)!r} and ends {_ending(prompt)!r}. "
                "The prompt, a limit or a seed has changed since it was recorded: record it again with `make record`, or use a live model."
            )
        return self.replies[key]

    def rewind(self) -> None:
        """Start from the first asking of every prompt again."""
        self._keys = Keys(self.head.model)

    def __repr__(self) -> str:
        return f"<{len(self.replies)} replies of {self.name}, recorded {self.head.recorded or 'at an unknown date'}, from {self.tape}>"


class Recorder:
    """Asks a live model and writes every reply to a tape as it happens; what the tape already holds is answered from it."""

    def __init__(self, llm: LLM, path: str | Path, *, head: Head | None = None):
        self.path, self._llm = Path(path), llm
        self.head = head or Head(llm.name, getattr(llm, "sha256", ""), getattr(llm, "engine", ""), date.today().isoformat())
        self._keys = Keys(self.head.model)
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write({"tape": 1, **asdict(self.head)})
        self._tape = Recorded(self.path)
        if self._tape.head.model != self.head.model:
            held = f"{self.path} holds replies of {self._tape.head.model}, not of {self.head.model}"
            raise TraceError(f"{held}: record to another file, or delete this one")

    @property
    def name(self) -> str:
        """The name of the live model."""
        return self._llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        key = self._keys.of(prompt)
        if key not in self._tape.replies:
            reply = self._llm(prompt)
            self._write({"key": key, "prompt": _ending(prompt), "reply": reply.text, "usage": _usage(reply.usage)})
            self._tape.replies[key] = reply
        return self._tape.replies[key]

    def _write(self, line: Mapping[str, Json]) -> None:
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def __repr__(self) -> str:
        return f"<recording {self.name} to {self.path}: {len(self._tape.replies)} replies>"


def _lines(path: Path) -> Iterable[dict[str, Json]]:
    """The lines of a tape file; raises TraceError with the number of the line that cannot be read."""
    try:
        texts = path.read_text(encoding="utf-8").strip("\n").split("\n")  # splitlines would also cut at the odd separators a reply may hold
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"the tape {path} cannot be read: {error}. Record it with `make record`.") from None
    for number, text in enumerate(texts, start=1):
        try:
            yield json.loads(text)
        except json.JSONDecodeError as error:
            raise TraceError(f"line {number} of the tape {path} is not JSON ({error.msg}): delete that line and record again") from None


def _head(lines: list[Mapping[str, Json]] | list[dict[str, Json]], tape: str) -> Head:
    if not lines or lines[0].get("tape") != 1 or "model" not in lines[0]:
        raise TraceError(f'{tape} does not begin with the head of a tape, {{"tape": 1, "model": …}}')
    return Head(**{key: str(lines[0].get(key, "")) for key in Head.__dataclass_fields__})


def _reply(line: Mapping[str, Json]) -> Reply:
    try:
        return Reply(str(line["reply"]), Usage(**line.get("usage", {})))
    except (KeyError, TypeError) as error:
        raise TraceError(f"the entry {line.get('key')} of a tape is not a reply: {error}") from None


def _usage(usage: Usage) -> dict[str, Json]:
    return {**asdict(usage), "seconds": round(usage.seconds, 3)}


def _ending(prompt: Prompt) -> str:
    """The last words of a prompt: prompts of one role begin alike and end differently."""
    return " ".join(prompt.messages[-1].text.split())[-_SHOWN:] if prompt.messages else ""


def _beginning(prompt: Prompt) -> str:
    return " ".join(prompt.messages[0].text.split())[:_SHOWN] if prompt.messages else ""
