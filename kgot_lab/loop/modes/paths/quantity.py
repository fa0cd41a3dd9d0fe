"""A figure in a text with its scale and its unit, as an amount that compares; none where the text may be read
in two ways.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kgot_lab.text.words import light_stem

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
    """An amount in the first unit of a kind: metres, kilograms, seconds; "" is a bare figure, and `~word`
    counts some unknown thing.
    """

    kind: str
    amount: float

    def compares_with(self, other: Quantity) -> bool:
        """Whether two amounts are of one kind, or one is a bare figure and the other a count."""
        kinds = {self.kind, other.kind}
        return len(kinds) == 1 or (
            "" in kinds and all(not kind or kind[0] == "~" or kind == "people" for kind in kinds)
        )


def quantity_in(text: str) -> Quantity | None:
    """The first amount in a text; None where there is none, or where it may be read in two ways, as a range
    or 1.200 may.
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
    """An amount, the factor of its unit and where it ends."""
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
    """The number that some digits with signs between them are; None where a point or comma may part thousands
    or decimals.
    """
    if re.fullmatch(r"[1-9]\d{0,2}\.\d{3}|0,\d{3}", text):
        return None
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?: \d{3})+", text):
        return float(text.replace(",", "").replace(" ", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)|\d{1,3}(?:\.\d{3}){2,}|\d+,\d+", text):
        return float(text.replace(".", "").replace(",", "."))
    return float(text) if re.fullmatch(r"\d+(?:\.\d+)?", text) else None


def _scale(text: str, at: int, money: bool) -> tuple[float, int] | None:
    """How many a word as "million" makes of a number, and where it ends; of money, m is a million as well."""
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
    """The kind of the unit that begins at a place, its factor and where it ends."""
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
