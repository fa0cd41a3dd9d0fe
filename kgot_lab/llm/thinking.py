"""Models that think before they speak: which they are by name, and what they thought, taken off what they
said.
"""

from __future__ import annotations

import re

# Names of November 2026. A model that is not told here is told by its settings: reasoning_effort or
# allowance.
_REASONS = re.compile(
    r"^(o[1-9]|gpt-[5-9]|gemini-(2\.5|[3-9])|claude-(opus|sonnet|haiku|fable)-[5-9]|grok-[4-9]|deepseek-(r|v?[4-9])|qwq|qwen3(?!.*(instruct|coder))"
    r"|gpt-oss|magistral|kimi-k[3-9])|(thinking|reasoner|reasoning|-r1)"
)
_TAGS = ("think", "thinking", "reasoning")
_OPEN = re.compile(rf"^\s*<({'|'.join(_TAGS)})>")


def reasons(model: str) -> bool:
    """Whether a model of this name is known to think before it speaks; the name may come with its maker, as
    in openai/o3.
    """
    return _REASONS.search(model.lower().rsplit("/", 1)[-1]) is not None


def split_thought(text: str, *, thinks: bool = False) -> tuple[str, str]:
    """What was said and what was thought, of a text that begins with a block such as <think>…</think>; one
    cut in it says nothing.

    Some models begin inside the block, so where the model `thinks` all before </think> is thought.
    """
    opened = _OPEN.match(text)
    tag = opened[1] if opened else "think"
    if not opened and not (thinks and f"</{tag}>" in text):
        return text, ""
    thought, _, said = text[opened.end() if opened else 0 :].partition(f"</{tag}>")
    return said.strip(), thought


class SpokenPieces:
    """As `split_thought`, of a text that comes piece by piece, without the space around what is said.

    Where a model `thinks` and opens no block, it may have begun inside one: nothing counts as said before
    </think> or the end.
    """

    def __init__(self, *, thinks: bool = False):
        self.thinks = thinks  # until its thoughts are known to come apart from what it says
        self.thought = ""
        self._held = ""  # what came while it is not known whether it is thought, or how it goes on
        self._inside = ""  # the tag of the block it is in
        self._speaks = self._said = False

    def after(self, piece: str) -> str:
        """What is surely said, now that this piece has come."""
        if self._speaks:
            return self._told(piece)
        seen, self._held = len(self._held), self._held + piece
        if not self._inside:
            if opened := _OPEN.match(self._held):
                self._inside, self._held, seen = opened[1], self._held[opened.end() :], 0
            elif any(f"<{tag}>".startswith(self._held.lstrip()) for tag in _TAGS):
                return ""
            elif not self.thinks:
                return self.rest()
        end = f"</{self._inside or 'think'}>"
        found = self._held.find(end, max(0, seen - len(end)))
        if found < 0:
            return ""
        self.thought, self._held, self._inside = self._held[:found], self._held[found + len(end) :], ""
        return self.rest()

    def rest(self) -> str:
        """What is said of what was held back, at the end of the text; a block cut in it says nothing."""
        held, self._held = self._held, ""
        if self._inside:
            self.thought, held = held, ""
        self._speaks = True
        return self._told(held)

    def _told(self, piece: str) -> str:
        told = piece if self._said else piece.lstrip()
        self._said = self._said or bool(told)
        return told


def share_of(tokens: int, thought: str, said: str) -> int:
    """How many of the tokens were thought, by the characters, where a server does not count them apart."""
    return round(tokens * len(thought) / (len(thought) + len(said))) if thought else 0
