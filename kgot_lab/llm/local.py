"""A real language model on this computer: llama.cpp, no key, no network.

Reading a prompt costs far more than answering it on a small machine, so prompts that begin alike should find their beginning already
read. One instance holds the weights (a second would cost another 0.9 GB, because llama.cpp rearranges them in memory); what it has
read is parked and brought back, 28 kB a token, in milliseconds.

Floating-point sums depend on how many tokens are read at once. So that a seed means the same text whatever was asked before, a prompt
is always read in the same chunks, only whole chunks are reused, and the last token is read by itself.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgot_lab.errors import LLMError, ModelMissing, NotInstalled
from kgot_lab.llm.model_file import find_model, sha256_of
from kgot_lab.types import Message, Prompt, Reply, Usage

CHUNK = 128  # prompt tokens read at once; an interrupt waits for the chunk to end; 128 reads 5 % faster and reuses less
FAMILY = 0.25  # a prompt that shares less than this with everything read before begins a family of its own


@dataclass(frozen=True)
class Parked:
    """A prompt the model has read: its tokens and llama.cpp's memory of them."""

    tokens: tuple[int, ...]
    memory: Any  # a ctypes array of bytes


class Local:
    """Answers with a GGUF model, by default the fetched Qwen2.5-Coder; `slots` families of prompts stay read.

    Raises ModelMissing or NotInstalled when it is made, LLMError when a prompt does not fit `context` tokens.
    The model loads at the first call. Temperature 0 is greedy; the same seed gives the same text.
    """

    def __init__(self, path: str | Path | None = None, *, context: int = 8192, threads: int | None = None, slots: int = 6):
        # Read by OpenMP when it is first loaded; without it idle threads spin, and on a busy machine a call takes ten times as long.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.path = Path(path) if path else find_model()
        if not self.path.is_file():
            raise ModelMissing(f"there is no model file at {self.path}")
        self.name = f"local:{self.path.stem.lower()}"
        self.engine = _engine_version()
        self.context, self.slots, self.threads = context, slots, threads or min(8, _cores())
        self.reused = 0  # prompt tokens that did not have to be read again
        self._read: tuple[int, ...] = ()  # the prompt that is live in the model
        self._parked: list[Parked] = []  # the least recently used first
        self._grammars: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._llama: Any = None
        self._chat: Any = None

    @property
    def sha256(self) -> str:
        """The hash of the model file."""
        return sha256_of(self.path)

    def __call__(self, prompt: Prompt) -> Reply:
        with self._lock:
            started = time.perf_counter()
            self._load()
            tokens, stop = self._tokens_of(prompt)
            self._read_prompt(tokens)
            answer = self._llama.create_completion(
                prompt=tokens,
                max_tokens=prompt.max_tokens,
                temperature=prompt.temperature,
                seed=random.getrandbits(31) if prompt.seed is None else prompt.seed,
                grammar=self._grammar(prompt),
                stop=stop,
            )
            usage = answer["usage"]
            seconds = time.perf_counter() - started
        return Reply(answer["choices"][0]["text"].strip(), Usage(usage["prompt_tokens"], usage["completion_tokens"], seconds))

    def count_tokens(self, text: str) -> int:
        """How many tokens a text has for this model."""
        with self._lock:
            self._load()
            return len(self._llama.tokenize(text.encode(), add_bos=False, special=False))

    def close(self) -> None:
        """Give the memory back; the next call loads the model again."""
        with self._lock:
            if self._llama is not None:
                self._llama.close()
            self._llama, self._read, self._parked = None, (), []

    def _load(self) -> None:
        if self._llama is not None:
            return
        import llama_cpp
        from llama_cpp.llama_chat_format import CHATML_CHAT_TEMPLATE, Jinja2ChatFormatter

        try:
            llama = llama_cpp.Llama(
                str(self.path),
                n_ctx=self.context,
                n_batch=CHUNK,
                n_threads=self.threads,
                n_threads_batch=self.threads,  # unequal numbers make OpenMP rebuild its team at every switch
                verbose=False,
            )
        except ValueError as error:
            raise LLMError(f"llama.cpp cannot load {self.path}: {error}. Is it a whole GGUF file?") from None
        end = llama.detokenize([llama.token_eos()], special=True).decode()
        self._chat = Jinja2ChatFormatter(llama.metadata.get("tokenizer.chat_template", CHATML_CHAT_TEMPLATE), eos_token=end, bos_token="")
        self._llama = llama

    def _tokens_of(self, prompt: Prompt) -> tuple[list[int], list[str]]:
        """The tokens of a prompt in the model's own chat format, and where the reply stops; raises LLMError if they do not fit."""
        chat = self._chat(messages=[{"role": message.role, "content": _harmless(message)} for message in prompt.messages])
        tokens = self._llama.tokenize(chat.prompt.encode(), add_bos=True, special=True)
        if len(tokens) + prompt.max_tokens > self.context:
            raise LLMError(
                f"the prompt has {len(tokens):,} tokens and its reply may have {prompt.max_tokens:,}: together more than the "
                f"{self.context:,} that {self.name} was opened with. Shorten the prompt, or open the model with a larger context."
            )
        return list(tokens), [chat.stop] if isinstance(chat.stop, str) else list(chat.stop or [])

    def _grammar(self, prompt: Prompt) -> Any:
        """The grammar that lets only JSON of the prompt's schema through, or none; kept, because compiling takes a while."""
        if prompt.schema is None:
            return None
        from llama_cpp.llama_grammar import LlamaGrammar

        schema = json.dumps(_spellable(prompt.schema))  # not sorted: the order of the properties is the order of writing
        if schema not in self._grammars:
            self._grammars[schema] = LlamaGrammar.from_json_schema(schema, verbose=False)
        return self._grammars[schema]

    def _read_prompt(self, tokens: list[int]) -> None:
        """Have the model read all of a prompt but its last token, reusing what it has read of the closest one."""
        self._bring_closest(tokens)
        done = _reusable(self._read, tokens)
        self._read = ()  # should an interrupt come now, nothing half-read is reused
        self.reused += done
        self._llama.n_tokens = done
        self._llama.eval(tokens[done:-1])
        self._read = tuple(tokens)

    def _bring_closest(self, tokens: list[int]) -> None:
        """Make live whichever prompt read before begins most like this one, and park the one that was live."""
        candidates = (self._read, *(parked.tokens for parked in self._parked))
        shared = [_reusable(read, tokens) for read in candidates]
        best = max(range(len(shared)), key=lambda place: shared[place])
        if shared[best] < FAMILY * len(tokens):
            self._park()
        elif best > 0:
            restored = self._parked.pop(best - 1)
            self._park()
            self._restore(restored)

    def _park(self) -> None:
        """Set aside what the model has read; the least recently used beyond `slots` is forgotten."""
        if self._read and self.slots > 1:
            import llama_cpp

            size = llama_cpp.llama_state_seq_get_size(self._llama.ctx, 0)
            memory = (ctypes.c_uint8 * size)()
            llama_cpp.llama_state_seq_get_data(self._llama.ctx, memory, size, 0)
            self._parked = [*self._parked, Parked(self._read, memory)][-(self.slots - 1) :]
        self._llama.reset()
        self._read = ()

    def _restore(self, parked: Parked) -> None:
        import llama_cpp

        if llama_cpp.llama_state_seq_set_data(self._llama.ctx, parked.memory, len(parked.memory), 0):
            self._llama.input_ids[: len(parked.tokens)] = parked.tokens
            self._read = parked.tokens

    def __repr__(self) -> str:
        state = "not loaded yet" if self._llama is None else f"{bool(self._read) + len(self._parked)} of {self.slots} prompt families kept"
        return f"<{self.name}: context {self.context:,}, {self.threads} threads, {state}>"


def _reusable(read: tuple[int, ...], tokens: list[int]) -> int:
    """How many tokens of a prompt need not be read again: all but the last of the same prompt, else the whole chunks in common."""
    if read == tuple(tokens):
        return len(tokens) - 1
    most = min(len(read), len(tokens)) - 1  # the last token of either was, or will be, read by itself
    alike = next((place for place in range(most) if read[place] != tokens[place]), max(most, 0))
    return alike - alike % CHUNK


def _harmless(message: Message) -> str:
    """The text of a message with control marks broken up, so that a document cannot open a turn of its own."""
    return re.sub(r"<\|(\w+)\|>", r"< |\1| >", message.text)


def _spellable(part: Any) -> Any:
    """A schema in which choices with quotes or backslashes are any text.

    llama-cpp-python misspells those, and a grammar that cannot be parsed kills the process.
    """
    if isinstance(part, list | tuple):
        return [_spellable(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    choices = [*part.get("enum", []), part.get("const", "")] if isinstance(part.get("enum", []), list) else []
    if any(isinstance(choice, str) and ('"' in choice or "\\" in choice) for choice in choices):
        return {"type": "string"}
    return {key: _spellable(value) for key, value in part.items()}


def _cores() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _engine_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"llama-cpp-python {version('llama-cpp-python')}"
    except PackageNotFoundError:
        raise NotInstalled("local", "llama-cpp-python") from None
