"""placeholder"""
from __future__ import annotations

import re
from collections.abc import Iterator

from kgot_lab.types import LLM, Prompt, Reply


def streamed(llm: LLM, prompt: Prompt) -> Iterator[str | Reply]:
    reply = llm(prompt)
    yield from re.findall(r"\s*\S+\s*", reply.text)
    yield reply
