"""Whether an item of news says what a model read in it: names as the item writes them, and symbols letter by
letter.
"""

from __future__ import annotations

import re

from kgot_lab.text.words import content_words, named_words

LONGEST_NAME = 120  # characters of what names a thing; a summary may have three times as many
_LEGAL_FORMS = frozenset(
    "inc incorporated corp corporation co company ltd limited llc plc ag se sa nv spa ab asa oyj kk".split()
)
_TOLD = re.compile(r"\w+")


def bare_name(name: str) -> tuple[str, ...]:
    """The words of a name without an article before them and a legal form behind them: "The Apple Company,
    Inc." is apple.
    """
    words = named_words(name)
    while len(words) > 1 and words[-1] in _LEGAL_FORMS:
        words = words[:-1]
    return words[1:] if len(words) > 1 and words[0] == "the" else words


def contains_name(text: str, name: str) -> bool:
    """Whether a text has the words of a name in a row; its legal form may be left out. "The company" is no
    name.
    """
    bare = " ".join(bare_name(name))
    names = set(content_words(bare)) - _LEGAL_FORMS
    return bool(names) and f" {bare} " in f" {' '.join(named_words(text))} "


def contains_symbol(text: str, symbol: str) -> bool:
    """Whether a text has a symbol, in the same capitals, as a word by itself: SAL.MD and SAL-29 do not say
    SAL.
    """
    return (
        bool(symbol) and re.search(rf"(?<!\w)(?<!\w[.-]){re.escape(symbol)}(?!\w|[.-]\w)", text) is not None
    )


def distinctive_names(summary: str) -> list[str]:
    """The words of a summary that are names or numbers, by their capitals or digits; the first word has a
    capital anyway.
    """
    words = _TOLD.findall(summary)
    return [
        word
        for place, word in enumerate(words)
        if (place and word != word.lower()) or any(map(str.isdigit, word))
    ]


def unsaid_names(text: str, summary: str) -> list[str]:
    """The names and numbers of a summary that are not in a text."""
    said = set(named_words(text))
    return [word for word in distinctive_names(summary) if not said.issuperset(named_words(word))]
