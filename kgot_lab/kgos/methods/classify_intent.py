"""What a query is after: fourteen intents by the phrases and words it holds (KG-OS, method 8)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from kgot_lab.errors import UnknownName, require, require_amount, require_count
from kgot_lab.kgos.methods.formatting import MethodResult
from kgot_lab.kgos.methods.intents import INTENTS, PURPOSES, Purpose

_PHRASE, _WORD, _THRESHOLD, _MOST = 1.0, 0.3, 0.3, 3
_WORDS = re.compile(r"[^\W_]+")


class Intent(NamedTuple):
    """An intent that a query may have: its score, and the phrases and words that gave it."""

    name: str
    score: float
    phrases: tuple[str, ...]
    words: tuple[str, ...]
    boost: float = 0.0

    @property
    def confidence(self) -> float:
        """The score as a share of certainty: it ends at 1 (decision C-O4)."""
        return min(1.0, self.score)


@dataclass(frozen=True, repr=False)
class Intents(MethodResult):
    """The likeliest intents of a query, best first, and what it asks to be done; without one it is a search."""

    query: str
    intents: tuple[Intent, ...]
    purpose: Purpose
    why: tuple[str, ...]

    COLUMNS: ClassVar[tuple[str, ...]] = ("intent", "score", "confidence", "phrases", "words", "boost")

    @property
    def title(self) -> str:
        return f"intents of {self.query!r}: {self.best.name if self.best else 'none'}, purpose {self.purpose}"

    @property
    def best(self) -> Intent | None:
        """The likeliest intent; None where none reached the threshold."""
        return self.intents[0] if self.intents else None

    @property
    def ids(self) -> list[str]:
        """None: it is about a query and no graph."""
        return []

    def rows(self) -> Sequence[tuple[object, ...]]:
        return [
            (each.name, each.score, each.confidence, each.phrases, each.words, each.boost)
            for each in self.intents
        ]


def classify_intent(
    query: str, *, threshold: float = _THRESHOLD, most: int = _MOST, boosts: Mapping[str, float] | None = None
) -> Intents:
    """The intents of a query with a score of at least the threshold: 1 for each phrase it holds, .3 for each
    word, and what boosts add.

    A phrase counts wherever its letters stand, a word between the bounds of words, also with a plural s, each
    once; ties are in the order of INTENTS (decision C-M2). `boosts` is what a mode of an application adds to
    an intent, by name. Raises BadInput, and UnknownName for an intent that is none.
    """
    require(query, str, "a query is a text")
    require_amount(threshold, "threshold")
    require_count(most, 1, "most", "it is how many intents are kept")
    text = query.lower().replace("’", "'")
    phrases: dict[str, list[str]] = {}
    for phrase, names in _PHRASES:
        if phrase in text:
            for name in names:
                phrases.setdefault(name, []).append(phrase)
    words: dict[str, list[str]] = {}
    said = dict.fromkeys(_WORDS.findall(text))
    for word in dict.fromkeys(
        known for each in said for known in (each, each.removesuffix("s")) if known in _OF_WORD
    ):
        for name in _OF_WORD[word]:
            words.setdefault(name, []).append(word)
    added = _checked_boosts(boosts) if boosts else {}
    scored = [
        Intent(name, score, tuple(phrases.get(name, ())), tuple(words.get(name, ())), added.get(name, 0.0))
        for name in INTENTS
        if name in phrases or name in words or name in added
        for score in [
            round(
                _PHRASE * len(phrases.get(name, ()))
                + _WORD * len(words.get(name, ()))
                + added.get(name, 0.0),
                9,
            )
        ]
    ]
    kept = sorted((each for each in scored if each.score >= threshold), key=lambda each: -each.score)[:most]
    purpose, told = _purpose(text, kept)
    return Intents(query, tuple(kept), purpose, (*_reasons(scored, kept, threshold, most), told))


def _purpose(text: str, kept: Sequence[Intent]) -> tuple[Purpose, str]:
    """What is to be done: as the query says it, else as the likeliest intent has it, else a search."""
    asks = [
        (purpose, phrase)
        for purpose, phrases in PURPOSES.items()
        for phrase in phrases
        if re.search(rf"\b{phrase}\b", text)
    ]
    of_intent = INTENTS[kept[0].name].purpose if kept else "search"
    if asks and (asks[0][0] == "capability" or of_intent in ("search", "goal")):
        return asks[0][0], f"purpose {asks[0][0]}: the query says {asks[0][1]!r}"
    return of_intent, f"purpose {of_intent}: " + (
        f"that of {kept[0].name}" if kept else "no intent, and no phrase that says one"
    )


def _reasons(scored: Sequence[Intent], kept: Sequence[Intent], threshold: float, most: int) -> list[str]:
    if not scored:
        return ["no phrase and no word of the fourteen intents is in the query"]
    below = [f"{each.name} {each.score:g}" for each in scored if each.score < threshold]
    cut = [each.name for each in scored if each.score >= threshold and each not in kept]
    return [f"below the threshold of {threshold:g}: {', '.join(below)}"] * bool(below) + [
        f"not among the best {most}: {', '.join(cut)}"
    ] * bool(cut)


def _checked_boosts(boosts: Mapping[str, float]) -> Mapping[str, float]:
    require(boosts, Mapping, "boosts are a dictionary of numbers by intent")
    for name, value in boosts.items():
        if name not in INTENTS:
            raise UnknownName("intent", str(name), INTENTS)
        require_amount(value, f"the boost of {name}")
    return boosts


def _homes(triggers: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The intents that each trigger stands for, in their order."""
    found: dict[str, list[str]] = {}
    for name, said in triggers.items():
        for each in said:
            found.setdefault(each, []).append(name)
    return {each: tuple(names) for each, names in found.items()}


_PHRASES = tuple(_homes({name: rule.phrases for name, rule in INTENTS.items()}).items())
_OF_WORD = _homes({name: rule.words for name, rule in INTENTS.items()})
