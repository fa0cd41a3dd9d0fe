"""The programs that can run a model file on this computer, by name: both are llama.cpp, one comes ready, one
is compiled here.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from kgot_lab.errors import NotInstalled, UnknownName
from kgot_lab.types import Message, Prompt

# The compiled one comes first because it is built for this processor: on one with more than AVX2 it reads
# prompts faster.
ENGINES = {
    "llama-cpp-python": "llama_cpp",
    "xllamacpp": "xllamacpp",
}  # the package that pip knows, and the module it brings
_READY = "xllamacpp"  # the one whose wheel needs no compiler: what the extra brings

# What a reply is drawn from, besides its temperature; said to both engines, so that neither's own choice
# counts.
SAMPLING: dict[str, float] = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}


@dataclass(frozen=True)
class Written:
    """What an engine wrote: the text, how many tokens it has, whether max_tokens cut it, and its logprob
    where the prompt asks for it.
    """

    text: str
    tokens: int
    cut: bool
    logprob: float | None = None


class Engine(Protocol):
    """A loaded model with one prompt in its memory: what the local model needs of an engine, in tokens."""

    def tokens(self, text: str) -> list[int]:
        """The tokens of a plain text; control marks in it are text."""
        ...

    def chat(self, messages: Sequence[Message]) -> tuple[list[int], list[str]]:
        """The tokens of messages in the model's own chat format, and where a reply stops besides at the
        model's end mark.
        """
        ...

    def read(self, tokens: list[int], done: int) -> None:
        """Keep the first `done` tokens of what was read before, and read the rest but the last."""
        ...

    def write(self, tokens: list[int], stop: list[str], prompt: Prompt, seed: int) -> Written:
        """The reply to the prompt that was read; reads the last token of the prompt by itself.

        Its logprob is the model's own: at temperature 1, before a choice of tokens or a schema narrows it,
        the end mark counted.
        """
        ...

    def write_on(
        self, tokens: list[int], stop: list[str], prompt: Prompt, seed: int
    ) -> Generator[str | Written, None, None]:
        """The same reply in pieces as it is written, and last all of it; closing it ends the writing, and
        nothing read counts any more.
        """
        ...

    def park(self) -> Any:
        """The memory of what was read, to be brought back."""
        ...

    def restore(self, parked: Any) -> bool:
        """Bring back what was parked; whether that worked."""
        ...

    def forget(self) -> None:
        """Nothing is read any more."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


def find_engine(name: str | None = None) -> str:
    """The engine of this name, or the first that is installed; raises UnknownName, and NotInstalled with what
    to install.
    """
    if name is not None and name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)
    for package in ENGINES if name is None else [name]:
        if find_spec(ENGINES[package]) is not None:
            return package
    if name in {None, _READY}:
        raise NotInstalled("local", f"{_READY}, which runs the model")
    raise NotInstalled("local", f"{name}, compiled here", also=str(name))


def engine_version(name: str) -> str:
    """An engine and its version, as traces name it: "xllamacpp 2026.10"."""
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:  # a copy that pip did not install
        return name


def load_engine(name: str, path: Path, *, context: int, threads: int, chunk: int) -> Engine:
    """Load a model file of `context` tokens, read `chunk` tokens at once on so many threads; raises LLMError."""
    if name == _READY:
        from kgot_lab.llm.engine_xllamacpp import Xllamacpp

        return Xllamacpp(path, context, threads, chunk)
    from kgot_lab.llm.engine_llama_cpp import LlamaCpp

    return LlamaCpp(path, context, threads, chunk)
