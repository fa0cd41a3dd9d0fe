"""Short ways to say things to a memory of claims."""

from __future__ import annotations

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


def year(number: int) -> datetime:
    """The beginning of a year."""
    return datetime(number, 1, 1, tzinfo=UTC)
