"""Whether two values are the same: dates as dates, countries by any of their names, anything else by its
words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from kgot_lab.loop.modes.paths.values import date_in, is_no_answer, quantity_in
from kgot_lab.text.words import content_words, named_words

_COUNTRIES: Mapping[str, str] = MappingProxyType(
    {
        name.strip(): country
        for country, *names in (
            line.split("|")
            for line in (
                "united states|american|usa|us|u s|u s a|the united states|united states of america|america",
                "united kingdom|british|uk|u k|great britain|britain", "england|english", "scotland|scottish", "ireland|irish",
                "wales|welsh",
                "france|french", "germany|german", "netherlands|dutch|the netherlands|holland", "belgium|belgian", "switzerland|swiss",
                "austria|austrian", "italy|italian", "spain|spanish", "portugal|portuguese", "norway|norwegian", "sweden|swedish",
                "denmark|danish", "finland|finnish", "iceland|icelandic", "poland|polish", "hungary|hungarian", "romania|romanian",
                "bulgaria|bulgarian", "greece|greek", "turkey|turkish", "russia|russian|russian federation", "ukraine|ukrainian",
                "czech republic|czech|czechia", "slovakia|slovak", "serbia|serbian", "croatia|croatian", "slovenia|slovenian",
                "estonia|estonian", "latvia|latvian", "lithuania|lithuanian", "canada|canadian", "mexico|mexican", "brazil|brazilian",
                "argentina|argentine|argentinian", "chile|chilean", "peru|peruvian", "colombia|colombian", "cuba|cuban",
                "australia|australian",
                "new zealand|new zealander", "india|indian", "pakistan|pakistani", "bangladesh|bangladeshi", "iran|iranian", "iraq|iraqi",
                "israel|israeli", "egypt|egyptian", "nigeria|nigerian", "south africa|south african", "china|chinese", "taiwan|taiwanese",
                "japan|japanese", "south korea|south korean", "north korea|north korean", "thailand|thai", "vietnam|vietnamese",
                "philippines|filipino|the philippines", "indonesia|indonesian", "soviet union|soviet|ussr",
            )
        )
        for name in (country, *names)
    }
)  # fmt: skip
_LIST = re.compile(r"\s*(?:,|;|/|\band\b|&)\s*")
_ADJECTIVE = re.compile(r"(?:ian|ish|ese|an|ic|ch|i)$")
_OF_DATE = re.compile(
    r"\b(?:born|died|on|in|the|of|ad|bc|bce|ce|c|circa|about|around)\b|[A-Z][a-zä]{2,8}|(?<=\d)(?:st|nd|rd|th)\b|[\W\d_]"
)
_FIGURE_ALONE = re.compile(
    r"^\W*(?:(?:about|around|over)\s+)?\W?\d[\d.,  ]*\s*[^\W\d_.]*(?:\s[^\W\d_]+)?\W*$"
)
_PLACES = re.compile(r"\bsame (?:country|nation|nationality|state|continent)\b", re.I)


def alike(one: str, other: str, question: str = "") -> bool | None:
    """Whether two values are the same; None where that cannot be told, as of a town and a country that hold
    one name.
    """
    if is_no_answer(one) or is_no_answer(other):
        return None
    if _is_date(one) and _is_date(other):
        return _of_one_date(date_in(one) or (), date_in(other) or (), question)
    if _FIGURE_ALONE.match(one) and _FIGURE_ALONE.match(other):
        first, second = quantity_in(one), quantity_in(other)
        return first.amount == second.amount if first and second and first.compares_with(second) else None
    if _country(one) == _country(other):
        return True
    if (
        (first_parts := _parts(one))
        and (second_parts := _parts(other))
        and len(first_parts) + len(second_parts) > 2
    ):
        return _lists_alike(one, other, first_parts, second_parts, question)
    return _names_alike(one, other)


def _of_one_date(one: tuple[int, ...], other: tuple[int, ...], question: str) -> bool | None:
    if found := re.search(r"\bsame (year|month|decade|century|\w+)\b", question, re.I):
        part = found[1].lower()
        if part == "year":
            return one[0] == other[0]
        if part in ("month", "decade", "century"):
            return None  # of any year, and by which count
    shared = min(len(one), len(other))
    if one[:shared] != other[:shared]:
        return False
    return True if len(one) == len(other) else None


def _lists_alike(one: str, other: str, first: list[str], second: list[str], question: str) -> bool | None:
    """Of lists: alike where one holds the other, as "Isfahan, Iran" is in Iran; Paris, Texas is not Paris for
    sure.
    """
    if set(first) == set(second):
        return True
    less, more = sorted((first, second), key=len)
    if set(less) <= set(more):
        joined_by_commas = "," in (one if more is first else other)
        return (
            True
            if less == more[-len(less) :]
            or not joined_by_commas
            or all(part in _COUNTRIES.values() for part in more)
            else None
        )
    if first[-1] == second[-1] and _PLACES.search(question):
        return True
    return None if set(first[1:]) & set(second[:-1]) or set(second[1:]) & set(first[:-1]) else False


def _names_alike(one: str, other: str) -> bool | None:
    """Of single names: alike by equal words, unlike where neither holds the other and neither is a form of
    the other.
    """
    first, second = set(content_words(one)), set(content_words(other))
    if not first or not second:
        return None
    if first == second:
        return True
    if first < second or second < first:
        return None
    known = {_country(one), _country(other)} <= set(_COUNTRIES.values())
    if not known and any(_is_form(a, b) for a in named_words(one) for b in named_words(other)):
        return None
    return False


def _is_form(one: str, other: str) -> bool:
    """Whether one of two words may be the adjective of the other, as Maltese is of Malta."""
    return (
        one != other
        and one[:4] == other[:4]
        and bool(_ADJECTIVE.search(one)) != bool(_ADJECTIVE.search(other))
    )


def _parts(text: str) -> list[str]:
    return [_country(part) for part in _LIST.split(text) if named_words(part)]


def _country(text: str) -> str:
    words = " ".join(named_words(text))
    return _COUNTRIES.get(words, words)


def _is_date(text: str) -> bool:
    """Whether a text is a date and nothing else."""
    rest = _OF_DATE.sub("", text)
    return not rest and date_in(text) is not None and len(re.findall(r"[A-Z][a-zä]{2,8}", text)) <= 1
