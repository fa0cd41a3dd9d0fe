"""The rules by which GAIA compares an answer with the right one (Mialon et al. 2023), written anew from their
description.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
# a minus sign is one, however it was typed
_SIGNS = str.maketrans({"$": None, "%": None, ",": None, "−": "-"})
# a close call is at least and at most so many times as long as the right answer
_SHORTEST, _LONGEST = (0.5, 2.0)


@dataclass(frozen=True)
class GaiaVerdict:
    """Whether an answer is right, by which rule (number, list or text), and whether a wrong one is close,
    which never counts as right.
    """

    correct: bool
    close: bool
    rule: str


def gaia_verdict(answer: object, gold: str) -> GaiaVerdict:
    """Compare an answer with the right one as GAIA does.

    *number*, where the right answer is one: the signs $ % and the commas are taken from the answer, the rest
    must be that number.
    *list*, where it has a comma or a semicolon: both are cut there; as many elements, in that order, numbers
    by the first rule, others without white space and in lower case, their punctuation kept. *text*: without
    white space and punctuation, in lower case.

    Decided where the description leaves a choice: "inf" and "nan" are texts, in either place. A number
    written with thousands commas, such as 1,000, is right as a number or as a list. Text that is nothing but
    punctuation is compared as it is. An answer that is not a text, such as a number or None, is taken as its
    text, None as "". Typographic punctuation counts as punctuation. A close call is a wrong answer to a text
    or a list that has all letters of the right one in their order and is half to twice as long; each letter
    of the answer serves once.
    """
    said, right = "" if answer is None else str(answer).strip(), str(gold).strip()
    if _is_number(right):
        return GaiaVerdict(_number(said) == _number(right), False, "number")
    if re.search("[,;]", right):
        same = _same_list(said, right) or (
            _THOUSANDS.fullmatch(right) is not None and _number(said) == _number(right)
        )
        return GaiaVerdict(same, not same and _is_close(said, right), "list")
    same = _bare(said) == _bare(right) if _bare(right) else said == right
    return GaiaVerdict(same, not same and _is_close(said, right), "text")


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text.replace("−", "-")) is not None


def _number(text: str) -> float | None:
    """The number in an answer, without the signs that may stand by it; None where there is none."""
    bare = text.translate(_SIGNS).strip()
    return float(bare) if _NUMBER.fullmatch(bare) else None


def _same_list(said: str, right: str) -> bool:
    ours, theirs = (re.split("[,;]", text) for text in (said, right))
    return len(ours) == len(theirs) and all(map(_same_element, ours, theirs))


def _same_element(said: str, right: str) -> bool:
    if _is_number(right.strip()):
        return _number(said) == _number(right)
    return "".join(said.split()).casefold() == "".join(right.split()).casefold()


def _bare(text: str) -> str:
    """A text without white space and punctuation, in lower case."""
    kept = (
        letter
        for letter in unicodedata.normalize("NFC", text)
        if not (letter.isspace() or _is_punctuation(letter))
    )
    return "".join(kept).casefold()


def _is_punctuation(letter: str) -> bool:
    return letter in string.punctuation or unicodedata.category(letter).startswith("P")


def _is_close(said: str, right: str) -> bool:
    ours, theirs = _bare(said), _bare(right)
    letters = iter(ours)
    # looking into an iterator uses up what came before
    in_order = all(letter in letters for letter in theirs)
    return bool(theirs) and in_order and _SHORTEST * len(theirs) <= len(ours) <= _LONGEST * len(theirs)
