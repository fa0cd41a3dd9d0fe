"""Words without their endings: lightly for ranking sentences, thoroughly for finding a word that leaked into
a skeleton.
"""

from __future__ import annotations

import re
from functools import lru_cache

POSSESSIVE = re.compile(r"['’]s?$")
_VOWEL = re.compile(r"[aeiouy]")


def light_stem(word: str) -> str:
    """A word without its plural or past ending, roughly."""
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


@lru_cache(50_000)
def stem(word: str) -> str:
    """A word without its plural, -ed or -ing, in lower case, so that endings do not hide a leak; for
    comparing, not for reading.
    """
    word = POSSESSIVE.sub("", word.casefold())
    if len(word) > 4 and word.endswith(("ies", "ied")):
        return word[:-3] + "y"
    if len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word.removesuffix(ending)
        if root != word and len(root) > 2 and _VOWEL.search(root):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
