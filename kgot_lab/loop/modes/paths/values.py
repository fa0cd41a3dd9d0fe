"""Values in short answers: no answer, yes or no, dates, ages and quantities, and whether two are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kgot_lab.text.words import content_words, light_stem, name_tokens

# Quantities: a number in a text with its scale and unit, as a comparable amount, or none if ambiguous.

_FEET, _INCH = 0.3048, 0.0254
_SCALES: Mapping[str, float] = MappingProxyType(
    {"hundred": 1e2, "thousand": 1e3, "tausend": 1e3, "k": 1e3, "lakh": 1e5, "crore": 1e7}
    | dict.fromkeys(("million", "millions", "millionen", "mn", "mln", "mio", "M"), 1e6)
    | dict.fromkeys(("billion", "billions", "bn", "bln", "milliarden", "mrd", "B"), 1e9)
    | dict.fromkeys(("trillion", "trillions", "tn", "trn"), 1e12)
)
_UNITS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        unit: (kind, factor)
        for kind, units in {
            "length": {
                "mm millimetre millimeter": 1e-3, "cm centimetre centimeter": 1e-2, "m metre meter": 1.0, "km kilometre kilometer": 1e3,
                "ft foot feet ' ′ ’": _FEET, "inch inches \" ″ ”": _INCH, "yd yard": 0.9144, "mi mile": 1609.344,
            },
            "weight": {
                "mg milligram": 1e-6, "g gram": 1e-3, "kg kilogram kilo": 1.0, "t tonne": 1e3, "lb lbs": 0.45359237,
                "oz ounce": 0.028349523125,
            },
            "time": {
                "s sec second": 1.0, "min minute": 60.0, "h hr hour": 3600.0, "day": 86400.0, "week": 604800.0, "month": 2629800.0,
                "yr year year-old": 31557600.0, "decade": 315576000.0, "century centuries": 3155760000.0,
            },
            "area": {
                "m² m2 sqm": 1.0, "km² km2": 1e6, "ha hectare": 1e4, "acre": 4046.8564224, "mi²": 2589988.110336, "ft²": _FEET**2,
            },
            "speed": {"km/h kmh kph": 1.0, "mph": 1.609344},
            "$": {"dollar usd": 1.0},
            "€": {"euro eur": 1.0},
            "%": {"% percent": 1.0},
            "people": {"people person inhabitant resident": 1.0},
        }.items()
        for names, factor in units.items()
        for name in names.split()
        for unit in (name, f"{name}s")
    }
)  # fmt: skip
_NUMBER = r"\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,]\d+)*"
_FOUND = re.compile(
    rf"(?P<sign>(?<![\w.,)])-\s?)?(?P<money>(?:US|A|C)?[$£€¥₹]\s?)?(?<![\w.,:/])(?P<number>{_NUMBER})"
)
_SCALE = re.compile(rf"(?: ?(?:{'|'.join(sorted(_SCALES, key=len, reverse=True))})\b\.?)", re.I)
_RANGE_OR_PART = re.compile(r"\s?(?:[-–—]|to|bis)\s?\d|[:/]\d|\s?[½¼¾⅓⅔]")
_WORD = re.compile(r"[ -]?([^\W\d_][^\s\d()\[\],;]*|['\"′″’”%]|°\w)")
_NO_UNIT = frozenset(
    "a about after and around as at before by during for from in including on of or per since the to was with".split()
)
# which is no amount beside another figure
_YEAR_OF_COUNT = re.compile(r"\b(?:in|by|since|as of|until)\s+[12]\d{3}\b,?", re.I)
_SMALL = "length weight time".split()  # kinds that two units say together, as feet and inches do


@dataclass(frozen=True)
class Quantity:
    """An amount in the base unit of its kind, such as metres, kilograms or seconds.

    The kind "" is a bare number, and `~word` counts an unknown thing.
    """

    kind: str
    amount: float

    def compares_with(self, other: Quantity) -> bool:
        """Return whether two amounts are of one kind, or one is a bare number and the other a count."""
        kinds = {self.kind, other.kind}
        return len(kinds) == 1 or (
            "" in kinds and all(not kind or kind[0] == "~" or kind == "people" for kind in kinds)
        )


def quantity_in(text: str) -> Quantity | None:
    """Return the first amount in a text.

    Returns None if there is none, or if it is ambiguous, such as a range or 1.200.
    """
    text = text.translate({0x2212: "-", 0xA0: " ", 0x202F: " ", 0x2009: " "})
    rest = _YEAR_OF_COUNT.sub("", text)
    text = rest if re.search(r"\d", rest) else text
    found = _FOUND.search(text)
    one = _one(text, found) if found else None
    if one is None:
        return None
    quantity, factor, at = one
    while quantity.kind in _SMALL and (more := re.match(r",?\s?(?:and )?(?=\d)", text[at:])):
        found = _FOUND.match(text, at + more.end())
        following = _one(text, found) if found else None
        if following is None:
            return None
        part, smaller, end = following
        if factor == _FEET and part.kind in ("", "~in"):  # 5'11, and "in" which is no unit elsewhere
            part, smaller = Quantity("length", part.amount * _INCH), _INCH
        if part.kind != quantity.kind or smaller >= factor:
            break
        quantity, factor, at = Quantity(quantity.kind, quantity.amount + part.amount), smaller, end
    return Quantity(quantity.kind, -quantity.amount) if _is_negative(text) else quantity


def _is_negative(text: str) -> bool:
    found = _FOUND.search(text)
    return bool(found and found["sign"])


def _one(text: str, found: re.Match[str]) -> tuple[Quantity, float, int] | None:
    """Return an amount, the factor of its unit and its end position, or None."""
    number, at = _number(found["number"]), found.end()
    if number is None or _RANGE_OR_PART.match(text, at):
        return None
    if scale := _scale(text, at, bool(found["money"])):
        number, at = number * scale[0], scale[1]
    if found["money"]:
        sign = found["money"].strip()
        return Quantity("$" if sign == "US$" else sign, number), 1.0, at
    kind, factor, at = _unit(text, at)
    return Quantity(kind, number * factor), factor, at


def _number(text: str) -> float | None:
    """Parse digits with separators as a number.

    Returns None if a point or comma may separate either thousands or decimals.
    """
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}|0,\d{3}", text):
        return None
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+", text):
        return float(text.replace(",", "").replace(" ", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)|\d{1,3}(?:\.\d{3}){2,}|\d+,\d+", text):
        return float(text.replace(".", "").replace(",", "."))
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None


def _scale(text: str, at: int, money: bool) -> tuple[float, int] | None:
    """Return the factor of a scale word such as "million", and its end position.

    For money, m means a million as well.
    """
    if money and (short := re.compile(r"m\b").match(text, at)):
        return 1e6, short.end()
    found = _SCALE.match(text, at)
    if not found:
        return None
    word = found[0].strip(" .")
    # 5M are millions and 5m are metres
    large = _SCALES.get(word) if len(word) == 1 else _SCALES.get(word.lower())
    large = 1e9 if money and word == "b" else large
    return (large, found.end()) if large else None


def _unit(text: str, at: int) -> tuple[str, float, int]:
    """Return the kind of the unit at a position, its factor and its end position."""
    found = _WORD.match(text, at)
    if not found:
        return "", 1.0, at
    word, end = found[1].lower().rstrip(".:!?"), found.end()
    if word in ("square", "sq", "nautical", "cubic") and (second := _WORD.match(text, end)):
        after = second[1].lower().rstrip(".")
        kind, factor = _UNITS.get(after, ("", 1.0))
        if word in ("square", "sq") and kind == "length":
            return "area", factor**2, second.end()
        if word == "nautical" and kind == "length":
            return "length", 1852.0, second.end()
        return f"~{word} {after}", 1.0, second.end()
    if word in ("years-old", "year-old"):
        word = "year"
    if word in _UNITS:
        return *_UNITS[word], end
    if word == "in" and not text[end:].strip(" .)"):
        return "~in", 1.0, end
    return ("", 1.0, at) if word in _NO_UNIT else (f"~{light_stem(word)}", 1.0, end)


_SHORT_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec".split(),
    "jan feb mär apr mai jun jul aug sep okt nov dez".split(),
)
_MONTHS = {name: number for names in _SHORT_MONTHS for number, name in enumerate(names, start=1)}
_BEFORE = r"(?:\s*[–-]\s*\d{1,4})?\s*(?:B\.?\s?C(?:\.?\s?E)?(?!\w)|v\.\s?Chr)"
_AFTER = r"\s*(?:A\.?D\b|C\.?E\b|n\.\s?Chr)"
_YEAR_OF = rf"(\d{{3,4}}(?!\d)|\d{{1,2}}(?={_BEFORE}|{_AFTER}))"
_DATE = re.compile(
    rf"(?:(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+)?([A-Z][a-zä]{{2,8}})\.?\s+(?:(\d{{1,2}}),?\s+)?{_YEAR_OF}"
)
_YEAR = re.compile(rf"(?<![\w.,])(?<!\d )(?:AD ?(\d{{1,4}})\b|{_YEAR_OF}(?![.,]?\d|\w))")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
# day first, as in dates with points
_POINTS = re.compile(r"\b(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})\b")
_IS_BEFORE = re.compile(_BEFORE)
_AGE = re.compile(
    r"(?:(?:about|around|approximately|roughly|over|nearly|almost|some|at|aged?|the|of|more than|at least|c\.)\s+)*(?=\d)",
    re.I,
)
_SAYS_AGE = re.compile(r"^(?:at )?(?:the )?aged? (?:of )?\d+$", re.I)
_YEARS = 31557600.0  # seconds of a year
_UNKNOWN = re.compile(
    r"^\W*(?:(?:it|this|that|the \w+) (?:is|was) |is )?(?:unknown|unclear|unspecified|undisclosed|undetermined|none|nothing|null|n/?a|"
    r"not applicable|uncertain)\W*$"
    r"|^\W*$"
    r"|\bnot (?:\w+ )?(?:stated|known|given|mentioned|specified|provided|available|clear|found|sure|listed|disclosed|determined|said|told|"
    r"certain|in the (?:text|sentences?|passages?))\b"
    r"|\b(?:can ?not|can['’]t|could not|couldn['’]t|unable to) (?:be )?(?:tell|say|told|said|know|known|find|found|answer\w*|determin\w*)\b"
    r"|\b(?:do|does|did) ?n(?:o|['’])t (?:know|say|state|mention|tell|specify|give|provide|contain|include|have)\b"
    r"|\bno (?:information|answer|data|mention|idea|indication|details?|record|such information)\b"
    r"|^\W*(?:i['’]?m |i am )?sorry\b",
    re.I,
)
_SAYS_TRUTH = re.compile(r"^\W*(yes|no)(?:\W*$|\s*[,.;:!–—-]|\s+(?:he|she|it|they)\b)", re.I)


def is_no_answer(text: str) -> bool:
    """Return whether an answer is empty or says that it does not know."""
    return bool(
        _UNKNOWN.search(
            text.replace("do not", "don't").replace("does not", "doesn't").replace("did not", "didn't")
        )
    )


def truth_in(text: str) -> bool | None:
    """Return whether an answer says yes (True) or no (False).

    Returns None if it says neither, as "no information" does.
    """
    said = None if is_no_answer(text) else _SAYS_TRUTH.match(text)
    return said[1].lower() == "yes" if said else None


def date_in(text: str) -> tuple[int, ...] | None:
    """Return the first date in a text as (year, month, day), as far as it is given, or None.

    A year before Christ is negative.
    """
    if found := _ISO.search(text):
        return _in_order(int(found[1]), int(found[2]), int(found[3]))
    if found := _POINTS.search(text):
        return _in_order(int(found[3]), int(found[2]), int(found[1]))
    for match in _DATE.finditer(text):
        day, month, later, told = match.groups()
        if number := _MONTHS.get(month[:3].lower()):
            year = _year(int(told), text, match.end())
            return (year, number, int(day or later)) if day or later else (year, number)
    if not (found := _YEAR.search(text)):
        return None
    return (int(found[1]),) if found[1] else (_year(int(found[2]), text, found.end(2)),)


def age_in(text: str) -> float | None:
    """Return the duration in years that an answer states, such as "800 years old" or "aged 45", or None."""
    if _SAYS_AGE.match(text.strip()):
        return float(re.sub(r"\D", "", text))
    start = _AGE.match(text.strip())
    quantity: Quantity | None = quantity_in(text.strip()[start.end() :]) if start else None
    return quantity.amount / _YEARS if quantity and quantity.kind == "time" else None


def _in_order(year: int, month: int, day: int) -> tuple[int, ...]:
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else (year,)


def _year(year: int, text: str, end: int) -> int:
    return -year if _IS_BEFORE.match(text, end) else year


# Equality of values: dates as dates, countries by any of their names, anything else by its words.

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
    """Return whether two values are the same.

    Returns None if that cannot be decided, such as for a town and a country of one name.
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
    """Compare two lists, which match if one contains the other, as "Isfahan, Iran" is in Iran.

    Returns None where that is uncertain: Paris, Texas may not be Paris.
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
    """Compare two single names, which match if their words are equal.

    They differ if neither contains the other or is a form of it. Returns None otherwise.
    """
    first, second = set(content_words(one)), set(content_words(other))
    if not first or not second:
        return None
    if first == second:
        return True
    if first < second or second < first:
        return None
    known = {_country(one), _country(other)} <= set(_COUNTRIES.values())
    if not known and any(_is_form(a, b) for a in name_tokens(one) for b in name_tokens(other)):
        return None
    return False


def _is_form(one: str, other: str) -> bool:
    """Return whether one of two words may be the adjective of the other, as Maltese is of Malta."""
    return (
        one != other
        and one[:4] == other[:4]
        and bool(_ADJECTIVE.search(one)) != bool(_ADJECTIVE.search(other))
    )


def _parts(text: str) -> list[str]:
    return [_country(part) for part in _LIST.split(text) if name_tokens(part)]


def _country(text: str) -> str:
    words = " ".join(name_tokens(text))
    return _COUNTRIES.get(words, words)


def _is_date(text: str) -> bool:
    """Return whether a text is a date and nothing else."""
    rest = _OF_DATE.sub("", text)
    return not rest and date_in(text) is not None and len(re.findall(r"[A-Z][a-zä]{2,8}", text)) <= 1


# Plain lines: a line of a reply without list and emphasis markers.

_HEAD = re.compile(r"^(?:[-*•–]\s+)?(?:\*\*|__)?(?:\d+[.)](?!\d))?(?:\*\*|__)?\s*")
_TAIL = re.compile(r"\s*(?:\*\*|__)?$")


def plain_line(line: str) -> str:
    """Strip the number, bullet and bold markers from a line."""
    return _TAIL.sub("", _HEAD.sub("", line.strip()))
