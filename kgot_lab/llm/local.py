"""A local language model with llama.cpp: no key, no network.

On a small machine reading a prompt costs far more than answering it, so a common beginning of prompts should
be read once. One instance holds the weights (a second would cost another 0.9 GB, because llama.cpp rearranges
them in memory). The state of what it has read is saved and restored, 28 kB a token, in milliseconds.

Floating-point sums depend on how many tokens are read at once. So that a seed gives the same text whatever
was asked before, a prompt is always read in the same chunks, only whole chunks are reused, and the last token
is read by itself.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import LLMError, ModelMissing, NotInstalled
from kgot_lab.io.processes import deferred_interrupts
from kgot_lab.llm.model_file import find_model, sha256_of
from kgot_lab.llm.presets import FREE, Settings
from kgot_lab.llm.structured import (
    AnswerSplitter,
    estimate_reasoning_tokens,
    is_reasoning_model,
    split_reasoning,
)
from kgot_lab.types import Message, Prompt, Reply, Usage

if TYPE_CHECKING:
    from kgot_lab.llm.engine_xllamacpp import Xllamacpp

# What the engine returns, and the check that xllamacpp is installed.

PACKAGE = "xllamacpp"  # llama.cpp in a wheel, which needs no compiler

# Sampling settings besides temperature, set explicitly so that the engine's defaults do not apply.
SAMPLING: dict[str, float] = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}


@dataclass(frozen=True)
class GeneratedText:
    """A generated text: number of tokens, whether max_tokens cut it, and any log-probability.

    The log-probability is present if the prompt requests it.
    """

    text: str
    tokens: int
    cut: bool
    logprob: float | None = None


def require_engine() -> None:
    """Raise NotInstalled unless the engine is installed."""
    if find_spec(PACKAGE) is None:
        raise NotInstalled("local", f"{PACKAGE}, which runs the model")


def engine_version() -> str:
    """Return the engine and its version as in traces: "xllamacpp 2026.10"."""
    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:  # not installed by pip
        return PACKAGE


_AS_PROMPTED = Settings()
CHUNK = 32  # prompt tokens read at once; an interrupt waits for the chunk to end; 128 reads 5 % faster and reuses less
MIN_SHARED_PREFIX = 0.25  # a prompt that shares less than this with all earlier ones starts a new family


@dataclass(frozen=True)
class SavedPrompt:
    """A prompt that the model has read: its tokens and the saved state."""

    tokens: tuple[int, ...]
    memory: Any


class Local:
    """A local GGUF model, by default the downloaded Qwen2.5-Coder.

    The state of `slots` families of prompts is kept. The model loads at the first call. Temperature 0 is
    greedy, and the same seed gives the same text. A reasoning model gets additional tokens for that, unless a
    schema prevents it. Its reasoning is counted but is not in the text.

    The log-probability of a reply is under the model's own distribution at temperature 1, whatever
    temperature, sampling or schema the reply was drawn with. It includes all that was generated: reasoning,
    the brackets and names of a schema, and the end token unless the reply was cut. It is None if the engine
    does not report it for each token, as for a character of several tokens (many emoji).

    Raises ModelMissing or NotInstalled on creation, and LLMError if a prompt does not fit `context` tokens.
    """

    price = FREE

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        context: int = 8192,
        threads: int | None = None,
        slots: int = 10,
        settings: Settings = _AS_PROMPTED,
    ):
        # OpenMP reads it on loading. Without it idle threads spin, and on a busy machine a call takes ten
        # times as long.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.path = Path(path) if path else find_model()
        if not self.path.is_file():
            raise ModelMissing(f"there is no model file at {self.path}")
        require_engine()
        self.name = local_name(self.path, settings)
        self.engine = engine_version()
        self.context = settings.num_ctx or context
        self.slots = slots
        self.threads = threads or min(8, _usable_cores())
        self.settings = settings
        self._thinks = is_reasoning_model(self.path.stem) or settings.reasoning_effort not in {"", "none"}
        self.reused = 0  # prompt tokens that did not have to be read again
        self._read: tuple[int, ...] = ()  # the prompt currently in the model
        self._parked: list[SavedPrompt] = []  # the least recently used first
        self._lock = threading.Lock()
        self._loaded: Xllamacpp | None = None

    @property
    def sha256(self) -> str:
        """The hash of the model file."""
        return sha256_of(self.path)

    @check_arguments
    def __call__(self, prompt: Prompt) -> Reply:
        prompt = self._apply_settings(prompt)
        with self._lock:
            started = time.perf_counter()
            with self._prepared(prompt) as (tokens, asked):
                written = self._load().write(*asked)
            seconds = time.perf_counter() - started
        answer, thought = split_reasoning(written.text, thinks=self._thinks)
        return self._reply(prompt, tokens, written, seconds, answer, thought)

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """Stream the reply in pieces, and the Reply last. Pieces are empty while the model reasons.

        Closing the iterator stops generation. Other calls wait until it ends or is closed. Raises LLMError if
        generation fails.
        """
        prompt = self._apply_settings(prompt)
        may_think = self._thinks and prompt.schema is None and self.settings.reasoning_effort != "none"
        spoken, pieces = AnswerSplitter(thinks=may_think), list[str]()
        with self._lock:
            started = time.perf_counter()
            with self._prepared(prompt) as (tokens, asked), closing(self._load().write_on(*asked)) as parts:
                for part in parts:
                    if isinstance(part, GeneratedText):
                        written = part
                    else:
                        pieces.append(spoken.after(part))
                        yield pieces[-1]
            seconds = time.perf_counter() - started
        if rest := spoken.rest():
            pieces.append(rest)
            yield rest
        yield self._reply(prompt, tokens, written, seconds, "".join(pieces), spoken.thought)

    @contextmanager
    def _prepared(self, prompt: Prompt) -> Iterator[tuple[int, tuple[list[int], Prompt, int]]]:
        """Read a prompt, and yield its number of tokens and the arguments for generation."""
        tokens = self._tokens_of(prompt)
        self._read_prompt(tokens)
        seed = random.getrandbits(31) if prompt.seed is None else prompt.seed
        try:
            yield len(tokens), (tokens, prompt, seed)
        except BaseException:
            self._read = ()  # a partly read prompt is not reused
            raise

    def _reply(
        self, prompt: Prompt, tokens: int, written: GeneratedText, seconds: float, answer: str, thought: str
    ) -> Reply:
        """Build the Reply from the generated text.

        Raises LLMError if all of it is reasoning.
        """
        reasoning_tokens = estimate_reasoning_tokens(written.tokens, thought, answer)
        usage = Usage(tokens, written.tokens, seconds, reasoning_tokens=reasoning_tokens)
        if thought and not answer:
            thinking = f"{self.name} thought for {written.tokens:,} tokens and said nothing"
            error = LLMError(
                f"{thinking}: raise the allowance in its settings, or max_tokens (together now {prompt.max_tokens:,})"
            )
            error.spent = usage
            raise error
        return Reply(answer.strip(), usage, cut=written.cut, logprob=written.logprob)

    def _apply_settings(self, prompt: Prompt) -> Prompt:
        """Return the prompt with this model's settings applied, and room to reason.

        There is no such room if a schema allows only JSON. Raises LLMError for a prompt with images.
        """
        if any(message.images for message in prompt.messages):
            raise LLMError(
                f"{self.name} reads no images: ask a model that does, such as openai:gpt-4o or ollama:qwen2.5vl. Nothing was sent."
            )
        asked = self.settings.apply_to(prompt)
        allowance = 0 if asked.schema else self.settings.reasoning_allowance(self._thinks)
        return replace(asked, max_tokens=asked.max_tokens + allowance)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text for this model."""
        with self._lock:
            return len(self._load().tokens(text))

    def close(self) -> None:
        """Free the memory. The next call loads the model again."""
        with self._lock:
            if self._loaded is not None:
                self._loaded.close()
            self._loaded, self._read, self._parked = None, (), []

    def _load(self) -> Xllamacpp:
        if self._loaded is None:
            from kgot_lab.llm.engine_xllamacpp import Xllamacpp

            with deferred_interrupts():
                self._loaded = Xllamacpp(self.path, self.context, self.threads, CHUNK)
        return self._loaded

    def _tokens_of(self, prompt: Prompt) -> list[int]:
        """Tokenise a prompt in the model's chat format.

        Raises LLMError if the prompt and its reply do not fit the context.
        """
        # control tokens are broken up, so that a document cannot open a turn
        texts = (re.sub(r"<\|(\w+)\|>", r"< |\1| >", message.text) for message in prompt.messages)
        messages = [replace(each, text=text) for each, text in zip(prompt.messages, texts, strict=True)]
        tokens = self._load().chat(messages)
        if len(tokens) + prompt.max_tokens > self.context:
            raise LLMError(
                f"the prompt has {len(tokens):,} tokens and its reply may have {prompt.max_tokens:,}: together more than the "
                f"{self.context:,} that {self.name} was opened with. Shorten the prompt, or open the model with a larger context."
            )
        return tokens

    def _read_prompt(self, tokens: list[int]) -> None:
        """Read all of a prompt but its last token, reusing the state of the closest prompt."""
        self._bring_closest(tokens)
        done = _reusable(self._read, tokens)
        self._read = ()  # after an interrupt, a partly read prompt is not reused
        self.reused += done
        self._load().read(tokens, done)
        self._read = tuple(tokens)

    def _bring_closest(self, tokens: list[int]) -> None:
        """Restore the prompt with the longest common prefix, and save the current one."""
        candidates = (self._read, *(parked.tokens for parked in self._parked))
        shared = [_reusable(read, tokens) for read in candidates]
        best = max(range(len(shared)), key=lambda index: shared[index])
        if shared[best] < MIN_SHARED_PREFIX * len(tokens):
            self._park()
        elif best > 0:
            restored = self._parked.pop(best - 1)
            self._park()
            if self._load().restore(restored.memory):
                self._read = restored.tokens

    def _park(self) -> None:
        """Save the current state. The least recently used beyond `slots` is dropped."""
        if self._read and self.slots > 1:
            self._parked = [*self._parked, SavedPrompt(self._read, self._load().park())][-(self.slots - 1) :]
        self._read = ()

    def __repr__(self) -> str:
        state = "not loaded yet"
        if self._loaded is not None:
            state = f"{bool(self._read) + len(self._parked)} of {self.slots} prompt families kept"
        return f"<{self.name}: context {self.context:,}, {self.threads} threads, {state}>"


def local_name(path: Path, settings: Settings) -> str:
    """Return the name of a model in a local file."""
    return f"local:{path.stem.lower()}{settings.suffix}"


def _reusable(read: tuple[int, ...], tokens: list[int]) -> int:
    """Return how many tokens of a prompt need not be read again.

    All but the last for the same prompt, else the whole chunks of the common prefix.
    """
    if read == tuple(tokens):
        return len(tokens) - 1
    limit = min(len(read), len(tokens)) - 1  # the last token of either is read by itself
    shared = next((index for index in range(limit) if read[index] != tokens[index]), max(limit, 0))
    return shared - shared % CHUNK


def _usable_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Short checks of the local model, for `kgot-lab doctor`.


def probe_local() -> str:
    """Run the local model once and return a line about its speed.

    Raises ModelMissing, NotInstalled or LLMError, with advice, if it does not work.
    """
    local = Local()
    started = time.perf_counter()
    local.count_tokens("loads the model")
    loaded = time.perf_counter() - started
    text = f"Count from one to twenty in words.{' Take your time.' * 16}"
    reading = local(Prompt((Message("user", text),), max_tokens=1)).usage
    # the same prompt, so that nearly all the time goes into writing
    writing = local(Prompt((Message("user", text),), max_tokens=25)).usage
    local.close()
    return (
        f"{local.name} answers on {local.threads} threads: loaded in {loaded:.1f} s, "
        f"reads {reading.prompt_tokens / reading.seconds:.0f} and writes {writing.completion_tokens / writing.seconds:.0f} tokens a second"
    )
