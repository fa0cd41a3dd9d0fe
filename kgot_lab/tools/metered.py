"""A model whose spending is noted, for the tools that ask one."""

from __future__ import annotations

from kgot_lab.errors import LLMError
from kgot_lab.types import LLM, Prompt, Reply, Usage


class Metered:
    """Asks the model behind it, and keeps what each reply cost in `usage`; an LLMError that passes says all that was spent until then.

    `before` is what the tool had spent already.
    """

    def __init__(self, llm: LLM, before: tuple[Usage, ...] = ()):
        self._llm = llm
        self.usage = before

    @property
    def name(self) -> str:
        """The name of the model behind it."""
        return self._llm.name

    def __call__(self, prompt: Prompt) -> Reply:
        try:
            reply = self._llm(prompt)
        except LLMError as error:
            error.spent = Usage.total([*self.usage, error.spent or Usage()])
            raise
        self.usage = (*self.usage, reply.usage)
        return reply
