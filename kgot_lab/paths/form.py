"""What a question asks for, by its form alone: yes or no, one of two things, or anything else."""

from __future__ import annotations

import re
from typing import Literal

Form = Literal["open", "yes or no", "choice"]

_ASKS = re.compile(r"\b(who|whom|whose|what|which|when|where|why|how|name the|in whose)\b", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_YES_OR_NO = re.compile(rf"(?:^|,\s+|\?\s+){_AUXILIARY}\s|\b(?:both|same|also)\b", re.I)
_OR = re.compile(r"\bor\b|\b(?:out of|between|of) (?:the two )?.+ and ", re.I)
_RANKED = re.compile(r"\b(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b|\b(?:first|last|more|less)\b", re.I)


def form_of(question: str) -> Form:
    """Whether a question asks for yes or no, for one of two things that it names, or for anything else.

    "Are A and B both rivers?" asks for yes or no, since it has no word as who or which; "Is A or B older?" and "Which is older, A or B?"
    ask for one of two.
    """
    asks = bool(_ASKS.search(question))
    if _OR.search(question) and _RANKED.search(question) and (asks or _YES_OR_NO.search(question)):
        return "choice"
    return "yes or no" if not asks and _YES_OR_NO.search(question.strip()) else "open"
