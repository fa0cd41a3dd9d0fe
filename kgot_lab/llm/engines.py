"""The engine of the local model: the protocol that `Local` uses, and whether xllamacpp is installed."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Protocol

from kgot_lab.errors import NotInstalled
from kgot_lab.types import Message, Prompt

PACKAGE = "xllamacpp"  # llama.cpp in a wheel, which needs no compiler

# Sampling settings besides temperature; set here, so that the engine's own defaults do not count.
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

    def close(self) -> None:
        """Give the memory back."""
        ...


def require_engine() -> None:
    """Raise NotInstalled unless the engine is installed."""
    if find_spec(PACKAGE) is None:
        raise NotInstalled("local", f"{PACKAGE}, which runs the model")


def engine_version() -> str:
    """The engine and its version, as traces name it: "xllamacpp 2026.10"."""
    try:
        return f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:  # a copy that pip did not install
        return PACKAGE
