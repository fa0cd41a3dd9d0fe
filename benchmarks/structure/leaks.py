"""Leakage: domain words of a text that remain in its skeleton."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from kgot_lab.arguments import check_arguments
from kgot_lab.errors import BadInput
from kgot_lab.text.words import POSSESSIVE, stem

TOKEN = re.compile(r"\d+(?:[.,]\d+)*|\w+(?:['’]\w+)*")
# what precedes a word that is always capitalised
SENTENCE_START = re.compile(r"(?:^|[.!?:…]['\"”’)\]]*\s+|\n)\W*$|[\"“‘(\[]$")
DEFAULT_CUT = 3.0  # nats: a word in fewer than 1 of 20 texts

_WORDS = Path(__file__).with_name("skeleton_words.txt").read_text(encoding="utf-8").splitlines()
# words without a domain, and those a skeleton is written with: saying "process" of a process is no leak
FUNCTION_WORDS, GENERAL_WORDS = (frozenset(line.split()) for line in _WORDS)


@dataclass(frozen=True)
class LeakCheck:
    """Counts the words of a text that leaked into its skeleton.

    A content word is a domain word if idf(w) = ln(N / df(w)) >= min(cut, ln N), where N is the number of
    texts and df(w) the number of them that hold w or another ending of it, at least 1. So a word of a single
    text always is one, and the cut is in nats. Names (words capitalised in mid-sentence in both texts) and
    numbers leak however common they are, and `common` words never do. Synonyms are not detected, so the count
    is a lower bound.
    """

    texts: int
    frequency: Mapping[str, int] = field(repr=False, hash=False)  # df, by `stem`
    cut: float = DEFAULT_CUT
    common: frozenset[str] = field(default=frozenset(), repr=False)  # by `stem`

    @classmethod
    @check_arguments
    def of(
        cls,
        texts: Iterable[str],
        *,
        cut: float = DEFAULT_CUT,
        common: Iterable[str] = FUNCTION_WORDS | GENERAL_WORDS,
    ) -> LeakCheck:
        """Build the check from texts like those that it will check.

        For a stricter check pass FUNCTION_WORDS as `common`. Raises BadInput for one text in place of a list,
        for no texts, and for an invalid cut.
        """
        stems_by_text = [{stem(word) for word in TOKEN.findall(text)} for text in texts]
        if not stems_by_text:
            raise BadInput("a leak check learns from texts which words are common; give it at least one")
        frequency = Counter(chain.from_iterable(stems_by_text))
        return cls(len(stems_by_text), frequency, _validate_cut(cut), frozenset(map(stem, common)))

    def idf(self, word: str) -> float:
        """Return ln(N / df) of a word, in nats.

        It is 0 for a word that is in every text, and ln N for one that is in a single text or in none.
        """
        return math.log(self.texts / max(self.frequency.get(stem(word), 1), 1))

    def check(self, text: str, skeleton: str) -> tuple[str, ...]:
        """Return the words of a text that leaked into its skeleton.

        They are in lower case, each once, in the order of the skeleton.
        """
        text_stems, names = {stem(word) for word in TOKEN.findall(text)}, _find_names(text)
        found = {}
        for word in TOKEN.findall(skeleton):
            plain = stem(word)
            if plain in text_stems and plain not in found and self._is_leak(word, plain in names):
                found[plain] = POSSESSIVE.sub("", word.casefold())
        return tuple(found.values())

    def calibrated(
        self, texts: Sequence[str], skeletons: Sequence[str], *, share: float = 0.01, seed: int = 0
    ) -> LeakCheck:
        """Choose the lowest cut at which at most `share` of unrelated skeletons seem to leak.

        What a text shares with the skeleton of another text is language, not leakage. Each text is compared
        with up to 20 others, drawn by the seed. Use texts of a dev split. Raises BadInput for lists of
        unequal length or of fewer than 2.
        """
        if len(texts) != len(skeletons) or len(texts) < 2 or not 0 <= share < 1:
            given_values = f"{len(texts)} texts, {len(skeletons)} skeletons and a share of {share}"
            problem = "calibrated() takes as many skeletons as texts, 2 or more"
            raise BadInput(f"{problem}, and a share from 0 to below 1, not {given_values}")
        open_check = replace(self, cut=0.0)
        shifts = random.Random(seed).sample(range(1, len(texts)), min(20, len(texts) - 1))
        rarest = sorted(
            max(map(self.idf, open_check.check(text, skeletons[(row + shift) % len(texts)])), default=-1.0)
            for shift in shifts
            for row, text in enumerate(texts)
        )
        last = rarest[min(math.ceil((1 - share) * len(rarest)), len(rarest)) - 1]
        return replace(self, cut=math.nextafter(max(last, 0.0), math.inf))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that affects the result."""
        parts = self.texts, sorted(self.frequency.items()), self.cut, sorted(self.common)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _is_leak(self, word: str, is_name: bool) -> bool:
        plain = stem(word)
        if plain[0].isdigit():
            return True
        if plain in self.common or len(plain) < 2:
            return False
        return (is_name and word[0].isupper()) or self.idf(word) >= min(self.cut, math.log(self.texts))

    def __repr__(self) -> str:
        return f"<leak check from {self.texts:,} texts: names, numbers and words with an idf of {self.cut:.2f} or more>"


def _find_names(text: str) -> set[str]:
    """Return the capitalised words that do not start a sentence or quotation."""
    return {
        stem(match.group())
        for match in TOKEN.finditer(text)
        if match.group()[0].isupper()
        and not SENTENCE_START.search(text[max(match.start() - 20, 0) : match.start()])
    }


def _validate_cut(cut: float) -> float:
    if not (math.isfinite(cut) and cut >= 0):
        raise BadInput(f"the cut of a leak check is an idf in nats, 0 or more, not {cut}")
    return float(cut)
