"""The words of a text, in the three ways they are compared: as a search takes them, as a question tells, and
as a name is looked up.
"""

from __future__ import annotations

import re
import unicodedata

from kgot_lab.text.words import light_stem

_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"[^\W_]+")
_NO_SPACES = (  # Thai to Khmer, Japanese, Chinese; Korean too, whose particles follow a name without a space
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_NO_SPACES}]|[^{_NO_SPACES}]+")
_SEARCHED = re.compile(r"\b\w\w+\b")
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such "
    "that the their then there these they this to was will with".split()
)  # Lucene's, which bm25s takes too
_COMMON = frozenset(
    "a an and are as at be been but by did do does for from had has have he her his how i in is it its of on or s she that the their "
    "them then there they this to was were what when where which who whom whose why will with".split()
)


def content_words(text: str) -> list[str]:
    """The telling words of a text, lower-cased, lightly stemmed."""
    return [light_stem(word) for word in _WORD.findall(composed(text).lower()) if word not in _COMMON]


def searched_words(text: str) -> list[str]:
    """The words of a text in their order, in lower case, without English stop words and single letters:
    bm25s's of the composed text.
    """
    return [word for word in _SEARCHED.findall(composed(text).lower()) if word not in STOP_WORDS]


def folded_words(text: str) -> list[str]:
    """The words of a text as they are compared: folded, underscores as spaces."""
    return _WORD.findall(composed(text).casefold().replace("_", " "))


def composed(text: str) -> str:
    """A text with each letter and its accent as one sign (NFC), as it is compared: files may hold them as
    two.
    """
    return unicodedata.normalize("NFC", text)


def named_words(text: str) -> tuple[str, ...]:
    """The words by which names are compared: folded and composed, without signs, underscores between words as
    spaces are.
    """
    return tuple(_NAMED.findall(composed(text.casefold())))


def content_stems(text: str) -> tuple[str, ...]:
    """The same, where each letter of a script that sets no spaces between words is a word."""
    return tuple(part for word in named_words(text) for part in _UNSPACED.findall(word))


def stands_in(value: str, text: str) -> bool:
    """Whether a value stands in a text, word for word, side by side and in order; one of signs alone in a
    text that is the same.
    """
    words = content_stems(value)
    if not words:
        return bool(value.strip()) and value.strip() == text.strip()
    return f" {' '.join(words)} " in f" {' '.join(content_stems(text))} "


def plain_answer(answer: str) -> str:
    """An answer without case, punctuation, articles and extra spaces, so that equal answers are equal texts."""
    words = re.sub(r"[^\w\s]", " ", answer.lower()).split()
    return " ".join(word for word in words if word not in {"a", "an", "the"})
