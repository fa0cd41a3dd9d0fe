"""A scripted model for tests of the loop: it knows what it is asked for by the words of the prompt, and
answers from a list per role.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from kgot_lab.llm.recorded import Scripted
from kgot_lab.loop.limits import REFERENCE
from kgot_lab.memory.extraction import EXTRACTION_SYSTEM
from kgot_lab.types import Document, Prompt

WORDS = {
    "vote": "What next? RETRIEVE",
    "look": "Use only the facts above.",
    "merge": "Fuse these notes",
    "tools": "Choose the calls that fetch",
    "write": "statements that add this to the graph",
    "next": "Not looked up yet:",
    "compute again": "This Python should compute",
    "mend": "Write it again, corrected.",
    "read in": "reads what answers the question from this graph.",
    "reread": "found nothing:",
    "forced": "No more facts can be fetched.",
    "names": "Which names of the graph",
    "arithmetic?": "Must numbers or dates",
    "arithmetic": "Write short Python that computes",
    "choose": "Candidate answers:",
    "guess": "Give your best answer",
    "parse": "Facts:\n",
}


SYSTEMS = {EXTRACTION_SYSTEM: "extract", "Write the question": "claim", "Does the text": "check"}


def role_of(prompt: Prompt) -> str:
    """What a prompt asks for."""
    if role := next((SYSTEMS[words] for words in SYSTEMS if prompt.messages[0].text.startswith(words)), ""):
        return role
    text = prompt.messages[1].text
    return next(role for role, words in WORDS.items() if words in text)


def scripted(name: str = "scripted", **replies: Any) -> Scripted:
    """A model that gives, for each role, the listed replies in turn, and the last one for ever; texts, or
    values written as JSON.
    """
    left = {role: deque(items if isinstance(items, list) else [items]) for role, items in replies.items()}

    def reply(prompt: Prompt) -> str:
        role = role_of(prompt)
        assert role in left, f"the script has no reply for {role}: {prompt.messages[-1].text[-300:]}"
        value = left[role].popleft() if len(left[role]) > 1 else left[role][0]
        if isinstance(value, Callable):
            value = value(prompt)
        return value if isinstance(value, str) else json.dumps(value)

    return Scripted(reply, name)


def votes(*choices: str, text: str = "more") -> list[dict[str, str]]:
    """Votes, I for INSERT and R for RETRIEVE of every fact."""
    samples = {
        "I": {"choice": "INSERT", "text": text},
        "R": {"choice": "RETRIEVE", "text": "result = facts()"},
    }
    return [samples[choice] for choice in choices]


def call(query: str = "Ada Lovelace", tool: str = "search") -> dict[str, Any]:
    """A reply that chooses one call."""
    return {"calls": [{"tool": tool, "arguments": {"query": query}}]}


ADA = [
    Document(
        "d1", "Ada Lovelace was born in London in 1815. She worked with Charles Babbage.", "Ada Lovelace"
    ),
    Document("d2", "Charles Babbage designed the Analytical Engine. He was born in 1791.", "Charles Babbage"),
    Document("d3", "The Thames flows through London.", "Thames"),
]
WRITE = {"statements": ['add("Ada Lovelace", "born in", "London", year=1815)']}
FEW = REFERENCE.but(steps=2, parses=1, arithmetic="never")


def kinds(events: list[Any]) -> list[str]:
    """The kinds of some events, without the questions asked."""
    return [type(event).__name__ for event in events if type(event).__name__ != "Asked"]


def of(kind: type, events: list[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def counted() -> defaultdict[str, int]:
    """A counter for tools in tests."""
    return defaultdict(int)
