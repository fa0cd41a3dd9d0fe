"""The sentences of a text: carefully for a prompt, roughly and fast for the vectors of many passages."""

from __future__ import annotations

import re
from typing import Literal

SentenceRules = Literal["plain", "careful"]
LONGEST_SENTENCE = 2000  # letters: what has no sentence ends for longer, such as a table, is cut into pieces of this length
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Inc|Ltd|Co|c|ca|[A-Z])\.)$")
_INITIALS = re.compile(r"[\"'(](?:[A-Z]\. ?)+[\"')]$|\b(?:Hon|Rev|Gen|Col|Lt|Sgt|Capt|Sen|Gov|Mt|Ft)\.$")  # Elwyn Brooks "E. B." White
_BEFORE_A_NUMBER = re.compile(r"\b(?:[Nn]o|[Oo]p|[Vv]ol|pp?|b|d|fl)\.$")
_CAPITAL_AFTER_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(0-9])")


def rough_sentences(text: str) -> list[str]:
    """The sentences of a text by punctuation alone; the text itself where there is none."""
    return [part for part in _CAPITAL_AFTER_END.split(text) if part] or [text]


def sentences(text: str, rules: SentenceRules = "careful") -> list[str]:
    """The sentences of a text, by punctuation, with common abbreviations and initials respected; none is longer than LONGEST_SENTENCE.

    "plain" rules, which runs recorded by older versions were cut by, know fewer of them: no initials in quotes, no "b. 1960".
    """
    found: list[str] = []
    start = 0
    for match in re.finditer(r"[.!?][\"')\]]*\s+(?=[\"'(\[A-Z0-9])|\n\s*\n|\n(?=\s*[-*\[])", text):
        before = text[max(start, match.start() - 20) : match.end()].strip()
        if _ABBREVIATION.search(before) or (rules == "careful" and _is_short_form(before, text[match.end() : match.end() + 1])):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [piece[first : first + LONGEST_SENTENCE] for piece in found for first in range(0, len(piece), LONGEST_SENTENCE)]


def _is_short_form(before: str, next: str) -> bool:
    return bool(_INITIALS.search(before) or (next.isdigit() and _BEFORE_A_NUMBER.search(before)))
