"""Values in short answers: no answer, yes or no, dates, ages and quantities, and whether two are the same."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product, starmap
from pathlib import Path

from kgot_lab.io.files import read_tables
from kgot_lab.text.function_words import is_calendar_word
from kgot_lab.text.words import canonical_answer, content_words, light_stem, name_tokens, stem

# Quantities: a number in a text with its scale and unit, as a comparable amount, or none if ambiguous.

_TABLES = read_tables(Path(__file__).with_suffix(".txt"))
_SCALES = {name: float(factor) for factor, names in _TABLES["scales"] for name in names.split()}
_UNITS = {
    unit: (kind, float(factor))
    for kind, factor, names in _TABLES["units"]
    for name in names.split()
    for unit in (name, f"{name}s")
}
_FEET, _INCH = _UNITS["ft"][1], _UNITS["inch"][1]
_NUMBER = r"\d{1,3}(?: \d{3})+(?!\d)|\d+(?:[.,]\d+)*"
_QUANTITY = re.compile(
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
_COMPOUND_KINDS = "length weight time".split()  # kinds that two units say together, as feet and inches do


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
        return len(kinds) == 1 or ("" in kinds and all(not k or k[0] == "~" or k == "people" for k in kinds))


def parse_quantity(text: str) -> Quantity | None:
    """Return the first amount in a text.

    Returns None if there is none, or if it is ambiguous, such as a range or 1.200.
    """
    text = text.translate({0x2212: "-", 0xA0: " ", 0x202F: " ", 0x2009: " "})
    rest = _YEAR_OF_COUNT.sub("", text)
    text = rest if re.search(r"\d", rest) else text
    match = _QUANTITY.search(text)
    matched = _match_quantity(text, match) if match else None
    if matched is None:
        return None
    quantity, factor, position = matched
    while quantity.kind in _COMPOUND_KINDS and (joint := re.match(r",?\s?(?:and )?(?=\d)", text[position:])):
        match = _QUANTITY.match(text, position + joint.end())
        following = _match_quantity(text, match) if match else None
        if following is None:
            return None
        part, smaller, part_end = following
        if factor == _FEET and part.kind in ("", "~in"):  # 5'11, and "in" which is no unit elsewhere
            part, smaller = Quantity("length", part.amount * _INCH), _INCH
        if part.kind != quantity.kind or smaller >= factor:
            break
        quantity, factor, position = Quantity(quantity.kind, quantity.amount + part.amount), smaller, part_end
    return Quantity(quantity.kind, -quantity.amount) if _is_negative(text) else quantity


def _is_negative(text: str) -> bool:
    match = _QUANTITY.search(text)
    return bool(match and match["sign"])


def _match_quantity(text: str, match: re.Match[str]) -> tuple[Quantity, float, int] | None:
    """Return an amount, the factor of its unit and its end position, or None."""
    number, end = _parse_number(match["number"]), match.end()
    if number is None or _RANGE_OR_PART.match(text, end):
        return None
    if scale := _parse_scale(text, end, bool(match["money"])):
        number, end = number * scale[0], scale[1]
    if match["money"]:
        sign = match["money"].strip()
        return Quantity("$" if sign == "US$" else sign, number), 1.0, end
    kind, factor, end = _parse_unit(text, end)
    return Quantity(kind, number * factor), factor, end


def _parse_number(text: str) -> float | None:
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


def _parse_scale(text: str, start: int, money: bool) -> tuple[float, int] | None:
    """Return the factor of a scale word such as "million", and its end position.

    For money, m means a million as well.
    """
    if money and (abbreviated := re.compile(r"m\b").match(text, start)):
        return 1e6, abbreviated.end()
    match = _SCALE.match(text, start)
    if not match:
        return None
    word = match[0].strip(" .")
    # 5M are millions and 5m are metres
    factor = _SCALES.get(word) if len(word) == 1 else _SCALES.get(word.lower())
    factor = 1e9 if money and word == "b" else factor
    return (factor, match.end()) if factor else None


def _parse_unit(text: str, start: int) -> tuple[str, float, int]:
    """Return the kind of the unit at a position, its factor and its end position."""
    match = _WORD.match(text, start)
    if not match:
        return "", 1.0, start
    word, end = match[1].lower().rstrip(".:!?"), match.end()
    if word in ("square", "sq", "nautical", "cubic") and (second := _WORD.match(text, end)):
        next_word = second[1].lower().rstrip(".")
        kind, factor = _UNITS.get(next_word, ("", 1.0))
        if word in ("square", "sq") and kind == "length":
            return "area", factor**2, second.end()
        if word == "nautical" and kind == "length":
            return "length", 1852.0, second.end()
        return f"~{word} {next_word}", 1.0, second.end()
    if word in ("years-old", "year-old"):
        word = "year"
    if word in _UNITS:
        return *_UNITS[word], end
    if word == "in" and not text[end:].strip(" .)"):
        return "~in", 1.0, end
    return ("", 1.0, start) if word in _NO_UNIT else (f"~{light_stem(word)}", 1.0, end)


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
_ASKS_DAY = re.compile(r"(?:since |until )?(?:when|(?:on |in )?(?:what|which) (?:day|date))\b", re.I)
_IS_BEFORE = re.compile(_BEFORE)
_AGE = re.compile(
    r"(?:(?:about|around|approximately|roughly|over|nearly|almost|some|at|aged?|the|of|more than|at least|c\.)\s+)*(?=\d)",
    re.I,
)
_SAYS_AGE = re.compile(r"^(?:at )?(?:the )?aged? (?:of )?\d+$", re.I)
_YEAR_SECONDS = 31557600.0  # seconds of a year
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


NO_ANSWER = "unknown"  # the answer where nothing that was read answers


def is_no_answer(text: str) -> bool:
    """Return whether an answer is empty or says that it does not know."""
    for verb in ("do", "does", "did"):
        text = text.replace(f"{verb} not", f"{verb}n't")
    return bool(_UNKNOWN.search(text))


def parse_yes_no(text: str) -> bool | None:
    """Return whether an answer says yes (True) or no (False).

    Returns None if it says neither, as "no information" does.
    """
    match = None if is_no_answer(text) else _SAYS_TRUTH.match(text)
    return match[1].lower() == "yes" if match else None


def parse_date(text: str) -> tuple[int, ...] | None:
    """Return the first date in a text as (year, month, day), as far as it is given, or None.

    A year before Christ is negative.
    """
    if matched := _ISO.search(text):
        return _checked_date(int(matched[1]), int(matched[2]), int(matched[3]))
    if matched := _POINTS.search(text):
        return _checked_date(int(matched[3]), int(matched[2]), int(matched[1]))
    for match in _DATE.finditer(text):
        day, month, later, year_text = match.groups()
        if number := _MONTHS.get(month[:3].lower()):
            year = _signed_year(int(year_text), text, match.end())
            return (year, number, int(day or later)) if day or later else (year, number)
    if not (matched := _YEAR.search(text)):
        return None
    return (int(matched[1]),) if matched[1] else (_signed_year(int(matched[2]), text, matched.end(2)),)


def whole_date(question: str, answer: str, text: str) -> str:
    """Return the date of a year as it stands in a text, if the question asks when or on what day and the
    answer is only its year, which one date there has; or else the answer.
    """
    if not answer.isdecimal() or not _ASKS_DAY.match(question.strip()):
        return answer
    dates = {match.group() for match in _DATE.finditer(text) if is_calendar_word(match[2])}
    dates = {date for date in dates if date.endswith(f" {answer}")}
    return dates.pop() if len(dates) == 1 else answer


def parse_age(text: str) -> float | None:
    """Return the duration in years that an answer states, such as "800 years old" or "aged 45", or None."""
    if _SAYS_AGE.match(text.strip()):
        return float(re.sub(r"\D", "", text))
    start = _AGE.match(text.strip())
    quantity: Quantity | None = parse_quantity(text.strip()[start.end() :]) if start else None
    return quantity.amount / _YEAR_SECONDS if quantity and quantity.kind == "time" else None


def _checked_date(year: int, month: int, day: int) -> tuple[int, ...]:
    return (year, month, day) if 1 <= month <= 12 and 1 <= day <= 31 else (year,)


def _signed_year(year: int, text: str, end: int) -> int:
    return -year if _IS_BEFORE.match(text, end) else year


# Equality of values: dates as dates, countries by any of their names, anything else by its words.

_COUNTRIES: Mapping[str, str] = {name: names[0] for names in _TABLES["countries"] for name in names}
_LIST = re.compile(r"\s*(?:,|;|/|\band\b|&)\s*")
_ADJECTIVE = re.compile(r"(?:ian|ish|ese|an|ic|ch|i)$")
_DATE_PART = re.compile(
    r"\b(?:born|died|on|in|the|of|ad|bc|bce|ce|c|circa|about|around)\b|[A-Z][a-zä]{2,8}|(?<=\d)(?:st|nd|rd|th)\b|[\W\d_]"
)
_FIGURE_ALONE = re.compile(
    r"^\W*(?:(?:about|around|over)\s+)?\W?\d[\d.,  ]*\s*[^\W\d_.]*(?:\s[^\W\d_]+)?\W*$"
)
_ARTICLE = re.compile(r"^\W*(?:an?|the)\s+", re.I)
_PLACES = re.compile(r"\bsame (?:country|nation|nationality|state|continent)\b", re.I)


def answer_keys(answers: Sequence[str]) -> list[Hashable]:
    """Return a key for each answer to a question, the same for those that are one answer.

    "212 meters" and "212 metres" are one by their amount, and so is "212" unless they differ in their unit.
    Anything else is compared by its words.
    """
    figures = list(map(_figure_alone, answers))

    def key_of(answer: str, figure: tuple[float, Hashable] | None) -> Hashable:
        if figure is None:
            return canonical_answer(answer)
        number, key = figure
        units = {key} if key else {unit for other, unit in filter(None, figures) if unit and other == number}
        return units.pop() if len(units) == 1 else number

    return list(map(key_of, answers, figures))


def _figure_alone(text: str) -> tuple[float, Hashable] | None:
    """Return the number of a text that is a figure alone, and a key of it with its unit, None without one."""
    text = _ARTICLE.sub("", text)
    match = _QUANTITY.search(text) if _FIGURE_ALONE.match(text) else None
    quantity = parse_quantity(text) if match else None
    matched = _match_quantity(text, match) if match else None
    if quantity is None or matched is None or quantity.amount < 0:
        return None
    amount, number = (float(f"{value:.9g}") for value in (quantity.amount, matched[0].amount / matched[1]))
    if quantity.kind[:1] != "~":
        return number, (quantity.kind, amount) if quantity.kind else None
    words = tuple(map(stem, name_tokens(text)))
    return (number, words) if len(words) == 2 else None


def same_value(first_value: str, second_value: str, question: str = "") -> bool | None:
    """Return whether two values are the same.

    Returns None if that cannot be decided, such as for a town and a country of one name.
    """
    if is_no_answer(first_value) or is_no_answer(second_value):
        return None
    if _is_date(first_value) and _is_date(second_value):
        return _same_date(parse_date(first_value) or (), parse_date(second_value) or (), question)
    if _FIGURE_ALONE.match(first_value) and _FIGURE_ALONE.match(second_value):
        first, second = parse_quantity(first_value), parse_quantity(second_value)
        return first.amount == second.amount if first and second and first.compares_with(second) else None
    if _country_name(first_value) == _country_name(second_value):
        return True
    first_parts, second_parts = _list_items(first_value), _list_items(second_value)
    if first_parts and second_parts and len(first_parts) + len(second_parts) > 2:
        return _same_list(first_value, second_value, first_parts, second_parts, question)
    return _same_name(first_value, second_value)


def _same_date(first: tuple[int, ...], second: tuple[int, ...], question: str) -> bool | None:
    if match := re.search(r"\bsame (year|month|decade|century|\w+)\b", question, re.I):
        part = match[1].lower()
        if part == "year":
            return first[0] == second[0]
        if part in ("month", "decade", "century"):
            return None  # of any year, and by which count
    shared = min(len(first), len(second))
    if first[:shared] != second[:shared]:
        return False
    return True if len(first) == len(second) else None


def _same_list(
    first_text: str, second_text: str, first: list[str], second: list[str], question: str
) -> bool | None:
    """Compare two lists, which match if one contains the other, as "Isfahan, Iran" is in Iran.

    Returns None where that is uncertain: Paris, Texas may not be Paris.
    """
    if set(first) == set(second):
        return True
    shorter, longer = sorted((first, second), key=len)
    if set(shorter) <= set(longer):
        joined_by_commas = "," in (first_text if longer is first else second_text)
        may_be_one_name = joined_by_commas and not all(part in _COUNTRIES.values() for part in longer)
        return None if may_be_one_name and shorter != longer[-len(shorter) :] else True
    if first[-1] == second[-1] and _PLACES.search(question):
        return True
    return None if set(first[1:]) & set(second[:-1]) or set(second[1:]) & set(first[:-1]) else False


def _same_name(first_text: str, second_text: str) -> bool | None:
    """Compare two single names, which match if their words are equal.

    They differ if neither contains the other or is a form of it. Returns None otherwise.
    """
    first, second = set(content_words(first_text)), set(content_words(second_text))
    if not first or not second:
        return None
    if first == second:
        return True
    if first < second or second < first:
        return None
    known = {_country_name(first_text), _country_name(second_text)} <= set(_COUNTRIES.values())
    tokens = product(name_tokens(first_text), name_tokens(second_text))
    return None if not known and any(starmap(_is_word_form, tokens)) else False


def _is_word_form(first: str, second: str) -> bool:
    """Return whether one of two words may be the adjective of the other, as Maltese is of Malta."""
    same_stem = first != second and first[:4] == second[:4]
    return same_stem and bool(_ADJECTIVE.search(first)) != bool(_ADJECTIVE.search(second))


def _list_items(text: str) -> list[str]:
    return [_country_name(part) for part in _LIST.split(text) if name_tokens(part)]


def _country_name(text: str) -> str:
    words = " ".join(name_tokens(text))
    return _COUNTRIES.get(words, words)


def _is_date(text: str) -> bool:
    """Return whether a text is a date and nothing else."""
    rest = _DATE_PART.sub("", text)
    return not rest and parse_date(text) is not None and len(re.findall(r"[A-Z][a-zä]{2,8}", text)) <= 1


# Plain lines: a line of a reply without list and emphasis markers.

_LINE_HEAD = re.compile(r"^(?:[-*•–]\s+)?(?:\*\*|__)?(?:\d+[.)](?!\d))?(?:\*\*|__)?\s*")
_LINE_TAIL = re.compile(r"\s*(?:\*\*|__)?$")


def strip_markers(line: str) -> str:
    """Strip the number, bullet and bold markers from a line."""
    return _LINE_TAIL.sub("", _LINE_HEAD.sub("", line.strip()))
