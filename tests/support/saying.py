"""Short ways to say things to a memory of claims."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from kgot_lab.memory.claims.claim import Claim
from kgot_lab.types import Triple


def fact(words: str) -> Triple:
    """A fact of three words."""
    return Triple(*words.split())


def said(words: str, source: str = "doc", **other: Any) -> Claim:
    """A claim that a source states."""
    return Claim(fact(words), source, **other)


def inferred(words: str, *premises: str, source: str = "doc", **other: Any) -> Claim:
    """A claim that was derived from others."""
    return Claim(fact(words), source, kind="inferred", premises=tuple(map(fact, premises)), **other)


CLAIM = re.compile(
    r"(?P<fact>.*?)(?: <- (?P<premises>.*?))?(?: @(?P<source>\S+))?(?: ~(?P<confidence>[\d.]+))?"
    r"(?: (?P<valid_from>\d*)\.\.(?P<valid_until>\d*))?"
)


def make_claims(*lines: str) -> list[Claim]:
    """Claims, one a line, such as "Ada in London @book ~0.5 1830..1840": the fact, its source, its confidence,
    and the years in which it is true. After <- are the premises of a derived one, separated by commas.
    """
    made = []
    for line in lines:
        parts = CLAIM.fullmatch(line)
        assert parts is not None
        fact_words, premises, source, confidence, *years = parts.groups()
        since, until = (year(int(each)) if each else None for each in years)
        other = {"confidence": float(confidence or 1), "valid_from": since, "valid_until": until}
        if premises:
            made.append(inferred(fact_words, *premises.split(", "), source=source or "doc", **other))
        else:
            made.append(said(fact_words, source or "doc", **other))
    return made


def year(number: int) -> datetime:
    """The beginning of a year."""
    return datetime(number, 1, 1, tzinfo=UTC)
