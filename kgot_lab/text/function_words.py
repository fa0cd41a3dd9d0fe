"""Function words, greetings and calendar words of several languages, which are no names although a sentence may
begin with them.

`function_words.txt` has a line for each language: articles, pronouns, prepositions, conjunctions, auxiliaries,
numerals, adverbs that open sentences, and greetings. The line `calendar` has months, days and seasons of all.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import zip_longest
from pathlib import Path

_WORD = re.compile(r"[^\W\d_]+")
_CALENDAR = "calendar"


@cache
def _word_lists() -> Mapping[str, frozenset[str]]:
    lines = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
    return {name: frozenset(words.split()) for name, words in (line.split(": ", 1) for line in lines)}


@cache
def _languages_of_words() -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for language in _word_lists().keys() - {_CALENDAR}:
        for word in _word_lists()[language]:
            found.setdefault(word, []).append(language)
    return found


def languages_of_word(word: str) -> Iterable[str]:
    """Return the languages of which a word in lower case is a function word."""
    return _languages_of_words().get(word, ())


def function_words(language: str) -> frozenset[str]:
    """Return the function words of a language, none for an unknown one."""
    return _word_lists().get(language, frozenset())


def is_calendar_word(word: str) -> bool:
    """Return whether a word is the name of a month, a day of the week or a season."""
    name = word.casefold().strip(".,")
    return name in _word_lists()[_CALENDAR] or name.removesuffix("s") in _word_lists()[_CALENDAR]


def detect_language(texts: Iterable[str], default: str = "en") -> str:
    """Return the language of which most function words occur in some texts, or `default` without any."""
    counts, names = Counter[str](), Counter[str]()
    for text in texts:
        words = _WORD.findall(text)
        for word, after in zip_longest(words, words[1:], fillvalue=""):
            is_name = word.istitle() and after.istitle()  # "Otto" of "Otto Lindqvist" is no numeral
            (names if is_name else counts).update(_languages_of_words().get(word.lower(), ()))
    counts = counts or names
    best = max(counts.values(), default=0)
    return (
        default if counts[default] == best else min(name for name, count in counts.items() if count == best)
    )
