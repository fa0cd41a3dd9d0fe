"""A model whose spending is noted, for the tools that ask one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isclose

from kgot_lab.errors import LLMError
from kgot_lab.llm.structured import RecordedCall, checked_reply
from kgot_lab.types import LLM, Prompt, Reply, Usage


class Metered:
    """Asks the model behind it, and keeps what each reply cost in `usage`; an LLMError that passes says all
    that was spent until then.

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
            reply = checked_reply(self._llm, prompt)
        except LLMError as error:
            error.spent = Usage.total([*self.usage, error.spent or Usage()])
            raise
        self.usage = (*self.usage, reply.usage)
        return reply


def format_costs(reported: Iterable[Usage], noted: Sequence[RecordedCall]) -> tuple[RecordedCall, ...]:
    """What models behind a tool cost: the calls that were noted, and what the tool reports that none of them
    is, nor all together.
    """
    left, more = list(noted), []
    for usage in reported:
        same = next((call for call in left if call.usage == usage), None)
        if same is None:
            more.append(usage)
        else:
            left.remove(same)
    if _is_all(Usage.total(more), Usage.total(call.usage for call in noted)) or _is_all(
        Usage.total(more), Usage.total(call.usage for call in left)
    ):
        more = []
    return (*noted, *map(RecordedCall, more))


def _is_all(sum_told: Usage, sum_noted: Usage) -> bool:
    """Whether two sums are of the same calls; dollars are added in another order."""
    return replace(sum_told, cost=0) == replace(sum_noted, cost=0) and isclose(
        sum_told.cost, sum_noted.cost, abs_tol=1e-9
    )
