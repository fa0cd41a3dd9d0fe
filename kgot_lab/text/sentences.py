"""The sentences of a text: carefully for a prompt, roughly and fast for the vectors of many passages."""

from __future__ import annotations

import re
from typing import Literal

SentenceRules = Literal["plain", "careful", "any script"]
LONGEST_SENTENCE = 2000  # characters: what has no sentence ends for longer, such as a table, is cut into pieces of this length
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|etc|No|Inc|Ltd|Co|c|ca|[A-Z])\.)$")
# Elwyn Brooks "E. B." White
_INITIALS = re.compile(r"[\"'(](?:[A-Z]\. ?)+[\"')]$|\b(?:Hon|Rev|Gen|Col|Lt|Sgt|Capt|Sen|Gov|Mt|Ft)\.$")
_BEFORE_A_NUMBER = re.compile(r"\b(?:[Nn]o|[Oo]p|[Vv]ol|pp?|b|d|fl)\.$")
_ENDS = re.compile(r"[.!?][\"')\]]*\s+(?=[\"'(\[A-Z0-9])|\n\s*\n|\n(?=\s*[-*\[])")
# of Latin with accents, Greek, Cyrillic and Armenian letters
_CAPITAL = "".join(filter(str.isupper, map(chr, range(0x80, 0x2000))))
_CASELESS = "\u05d0-\u10ff\u1100-\u139f\u3040-\u9fff\uac00-\ud7a3\uf900-\ufaff"  # scripts without capitals, from Hebrew to Chinese
_ENDS_IN_ANY_SCRIPT = re.compile(
    rf"[.!?][\"')\]”’»]*\s+(?=[\"'(\[A-Z0-9“‘«„¿¡{_CAPITAL}{_CASELESS}])|[。！？][\"')\]”’»」』）]*\s*|\n\s*\n|\n(?=\s*[-*\[])"
)
_INITIAL_IN_ANY_SCRIPT = re.compile(rf"\b[{_CAPITAL}]\.$")  # А. С. Пушкин
_BEFORE_A_FIGURE = re.compile(r"\b(?:[Ff]igs?|[Ee]qs?|[Cc]h|[Cc]hap|[Nn]r|[Nn]os|[Aa]pprox)\.$")
_CAPITAL_AFTER_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(0-9])")


def rough_sentences(text: str) -> list[str]:
    """The sentences of a text by punctuation alone; the text itself where there is none."""
    return [part for part in _CAPITAL_AFTER_END.split(text) if part] or [text]


def sentences(text: str, rules: SentenceRules = "careful") -> list[str]:
    """The sentences of a text, by punctuation, with common abbreviations and initials respected; none is
    longer than LONGEST_SENTENCE.

    "any script" rules also end a sentence before accented, Cyrillic and other letters and curled quotes, and
    at 。！？, and know "Fig. 3". "plain" rules, which runs recorded by older versions were cut by, know fewer
    than "careful": no initials in quotes, no "b. 1960".
    """
    found: list[str] = []
    start = 0
    for match in (_ENDS_IN_ANY_SCRIPT if rules == "any script" else _ENDS).finditer(text):
        before = text[max(start, match.start() - 20) : match.end()].strip()
        if _ABBREVIATION.search(before) or _is_short_form(before, text[match.end() : match.end() + 1], rules):
            continue
        found.append(text[start : match.end()].strip())
        start = match.end()
    found.append(text[start:].strip())
    return [
        piece[first : first + LONGEST_SENTENCE]
        for piece in found
        for first in range(0, len(piece), LONGEST_SENTENCE)
    ]


def _is_short_form(before: str, next: str, rules: SentenceRules) -> bool:
    """Whether a full stop belongs to initials, or to a short word before a number, that these rules know."""
    if rules == "plain":
        return False
    if _INITIALS.search(before) or (next.isdigit() and _BEFORE_A_NUMBER.search(before)):
        return True
    if rules == "careful":
        return False
    return bool(_INITIAL_IN_ANY_SCRIPT.search(before) or (next.isdigit() and _BEFORE_A_FIGURE.search(before)))
