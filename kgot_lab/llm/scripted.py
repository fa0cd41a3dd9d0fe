"""A model whose replies are written beforehand: for tests, simulations and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kgot_lab.errors import LLMError
from kgot_lab.llm.presets import FREE
from kgot_lab.llm.streaming import in_words
from kgot_lab.types import Prompt, Reply, Usage


class Scripted:
    """Answers with the given replies in order, or with what a function makes of the prompt; counts words as
    tokens.

    `asked` holds every prompt it was given. Raises LLMError when the replies run out.
    """

    price = FREE

    def __init__(self, replies: Sequence[str] | Callable[[Prompt], str], name: str = "scripted"):
        self.name = name
        self.asked: list[Prompt] = []
        self._replies = replies if callable(replies) else tuple(replies)

    def __call__(self, prompt: Prompt) -> Reply:
        text = self._replies(prompt) if callable(self._replies) else self._next()
        self.asked.append(prompt)
        return Reply(
            text, Usage(sum(len(message.text.split()) for message in prompt.messages), len(text.split()))
        )

    def stream(self, prompt: Prompt) -> Iterator[str | Reply]:
        """The same reply word by word, and last the Reply; raises LLMError when the replies run out."""
        yield from in_words(lambda: self(prompt))

    def _next(self) -> str:
        assert not callable(self._replies)
        if len(self.asked) >= len(self._replies):
            raise LLMError(
                f"{self.name} has no reply left: it was given {len(self._replies)} and is asked once more. Give it more."
            )
        return self._replies[len(self.asked)]

    def __repr__(self) -> str:
        left = (
            "a function"
            if callable(self._replies)
            else f"{len(self._replies) - len(self.asked)} replies left"
        )
        return f"<{self.name}: {left}>"
