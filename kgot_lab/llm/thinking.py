"""Models that think before they speak: which they are by name, and what they thought, taken off what they said."""

from __future__ import annotations

import re

# Names of November 2026. A model that is not told here is told by its settings: reasoning_effort or allowance.
_REASONS = re.compile(
    r"^(o[1-9]|gpt-[5-9]|gemini-(2\.5|[3-9])|claude-(opus|sonnet|haiku|fable)-[5-9]|grok-[4-9]|deepseek-(r|v?[4-9])|qwq|qwen3(?!.*(instruct|coder))"
    r"|gpt-oss|magistral|kimi-k[3-9])|(thinking|reasoner|reasoning|-r1)"
)
_OPEN = re.compile(r"^\s*<(think|thinking|reasoning)>")


def reasons(model: str) -> bool:
    """Whether a model of this name is known to think before it speaks; the name may come with its maker, as in openai/o3."""
    return _REASONS.search(model.lower().rsplit("/", 1)[-1]) is not None


def split_thought(text: str, *, thinks: bool = False) -> tuple[str, str]:
    """What was said and what was thought, of a text that begins with a block such as <think>…</think>; one cut in it says nothing.

    Some models begin inside the block, so where the model `thinks` all before </think> is thought.
    """
    opened = _OPEN.match(text)
    tag = opened[1] if opened else "think"
    if not opened and not (thinks and f"</{tag}>" in text):
        return text, ""
    thought, _, said = text[opened.end() if opened else 0 :].partition(f"</{tag}>")
    return said.strip(), thought


def share_of(tokens: int, thought: str, said: str) -> int:
    """How many of the tokens were thought, by the letters, where a server does not count them apart."""
    return round(tokens * len(thought) / (len(thought) + len(said))) if thought else 0
