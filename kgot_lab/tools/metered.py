"""A model whose spending is noted, for the tools that ask one."""

from __future__ import annotations

from kgot_lab.types import LLM, Prompt, Reply, Usage


class Metered:
    """Asks the model behind it, and keeps what each reply cost in `usage`."""

    def __init__(self, llm: LLM):
        self._llm = llm
        self.usage: tuple[Usage, ...] = ()

    @property
    def name(self) -> str:
        """The name of the model behind it."""
        return self._llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        reply = self._llm(prompt)
        self.usage = (*self.usage, reply.usage)
        return reply
