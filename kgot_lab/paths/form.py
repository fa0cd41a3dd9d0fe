"""What a question asks for, by its form alone: yes or no, one of two things, or anything else."""

from __future__ import annotations

import re
from typing import Literal

Form = Literal["open", "yes or no", "choice"]

_ASKS = re.compile(r"\b(who|whom|whose|what|which|when|where|why|how|name the|in whose)\b", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)"
_YES_OR_NO = re.compile(rf"(?:^|,\s+|\?\s+){_AUXILIARY}\s|\b(?:both|same|also)\b", re.I)
_OR = re.compile(r"\bor\b", re.I)


def form_of(question: str) -> Form:
    """Whether a question asks for yes or no, for one of two things that it names, or for anything else.

    "Are A and B both rivers?" asks for yes or no, since it has no word as who or which; "Is A or B older?" and "Which is older, A or B?"
    ask for one of two.
    """
    asks = bool(_ASKS.search(question))
    if _OR.search(question) and (asks or _YES_OR_NO.search(question)):
        return "choice" if re.search(r"\b\w+er\b|\bfirst\b|\bmore\b|\bless\b|\bwhich\b|\bwho\b", question, re.I) else "open"
    return "yes or no" if not asks and _YES_OR_NO.search(question.strip()) else "open"
