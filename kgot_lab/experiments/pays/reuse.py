"""Replies that other systems were given to the very same prompt, so that what differs in one part is not asked all over again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.experiments.questions.attempt import begun
from kgot_lab.experiments.questions.batch import TRACES, trace_name
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Asked
from kgot_lab.types import LLM, Prompt, Reply


def replies_on_file(folders: Iterable[Path], set: str, question: str) -> dict[str, Reply]:
    """The replies in the traces of a question by all systems of some folders, as `replies_in` gives them."""
    return replies_in(path for folder in folders for path in sorted(folder.glob(f"{set}/*/{TRACES}/{trace_name(question)}")))


def replies_in(traces: Iterable[Path]) -> dict[str, Reply]:
    """The replies in some traces, by digests of their prompts, of which the seed is a part; the first where several are."""
    found: dict[str, Reply] = {}
    for path in traces:
        for event in begun(path):
            if isinstance(event, Asked) and not event.is_loss and not event.role.startswith("inside "):
                found.setdefault(prompt_digest(event.prompt, event.model), event.said)
    return found


class ReusingLLM:
    """A model that is not asked what it was asked before: `known` are its replies, by `prompt_digest`; `reused` counts those given."""

    def __init__(self, llm: LLM, known: Mapping[str, Reply]):
        self.name, self.reused = llm.name, 0
        self._llm, self._known = llm, known

    def __call__(self, prompt: Prompt) -> Reply:
        reply = self._known.get(prompt_digest(prompt, self.name))
        if reply is None:
            return self._llm(prompt)
        self.reused += 1
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)  # its hash, engine, price and account
