"""Replies that other systems were given to the very same prompt, so that what differs in one part is not
asked all over again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from kgot_lab.benchmark.questions.attempt import read_events
from kgot_lab.benchmark.questions.batch import TRACES, trace_name
from kgot_lab.errors import BadInput
from kgot_lab.llm.recorded import prompt_digest
from kgot_lab.loop.events import Asked
from kgot_lab.types import LLM, Prompt, Reply

_ASKED = b'{"event":"Asked"'  # how the line of a reply begins: to count them, no trace need be read whole


def replies_on_file(folders: Iterable[Path], set: str, question: str) -> dict[str, Reply]:
    """The replies in the traces of a question by all systems of some folders, as `replies_in` gives them."""
    return replies_in(
        path for folder in folders for path in sorted(folder.glob(f"{set}/*/{TRACES}/{trace_name(question)}"))
    )


def replies_in(traces: Iterable[Path]) -> dict[str, Reply]:
    """The replies in some traces, by digests of their prompts, of which the seed is a part; the first where
    several are.
    """
    found: dict[str, Reply] = {}
    for path in traces:
        for event in read_events(path):
            if isinstance(event, Asked) and not event.is_loss and not event.role.startswith("inside "):
                found.setdefault(prompt_digest(event.prompt, event.model), event.as_reply)
    return found


def count_replies(folders: Iterable[Path], sets: Collection[str]) -> int:
    """How many replies the traces of some sets hold in some folders; raises BadInput for a folder that is not
    there.
    """
    replies = 0
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"--reuse {folder}: there is no such folder, so there are no replies to take")
        for path in (path for name in sets for path in folder.glob(f"{name}/*/{TRACES}/*.jsonl")):
            replies += sum(line.startswith(_ASKED) for line in path.read_bytes().splitlines())
    return replies


class ReusingLLM:
    """A model that is not asked what it was asked before: `known` are its replies, by `prompt_digest`;
    `reused` counts those given.

    `told` hears of each.
    """

    def __init__(self, llm: LLM, known: Mapping[str, Reply], told: Callable[[], object] = lambda: None):
        self.name, self.reused = llm.name, 0
        self._llm, self._known, self._told = llm, known, told

    def __call__(self, prompt: Prompt) -> Reply:
        reply = self._known.get(prompt_digest(prompt, self.name))
        if reply is None:
            return self._llm(prompt)
        self.reused += 1
        self._told()
        return reply

    def __getattr__(self, name: str) -> Any:
        return getattr(self._llm, name)  # its hash, engine, price and account
