"""The things that a question names to choose from: which titles are among them, and whether all of them were
found.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgot_lab.retrieval.entity_linking import CAPITAL, called

MARK = "§"  # stands with its number for a thing in a masked question
_ARTICLES = r"(?:(?:the|a|an|both|either|der|die|das)\s+)*"
_NAME = re.compile(
    rf"^\W*(?!both\b){_ARTICLES}[{CAPITAL}][\w.'’&-]*(?:\s+(?:(?:of|the|de|la|and|for|in|on)\s+)*[{CAPITAL}\d][\w.'’&-]*)*\W*$"
)
_BEGINS_WITH_NAME = re.compile(rf"^\W*(?!both\b){_ARTICLES}[{CAPITAL}]")
_ENDS_WITH_NAME = re.compile(rf"[{CAPITAL}][\w.'’&-]*\W*$")
_JOINT = re.compile(r",?\s+(and|or)\s+")
_PART = re.compile(r"[,;:?]|\s(?:and|or)\s")


def comparison_candidates(question: str, titles: Sequence[str]) -> list[str]:
    """The titles in a question that are things compared: not one that is a common word there, as "Tree" is in
    "Which tree is older?".
    """
    return [title for title in titles if not _is_common(question, title)]


def with_names_masked(question: str, things: Sequence[str]) -> str:
    """A question with `§0`, `§1` in the place of the things that it names, so that no word of a name is taken
    for one of the question.
    """
    for number, thing in sorted(enumerate(things), key=lambda each: -len(each[1])):
        words = [re.escape(word) for word in re.findall(r"\w+", called(thing))]
        if words:
            spelled = r"\W+(?:s\W+)?".join(words) + (rf"(?:\{thing[-1]})?" if thing[-1] in "?!" else "")
            question = re.sub(
                rf"(?<![\w{MARK}])[\"“']?{spelled}(?!\w)[\"”]?(?:\s*\([^()]*\))?",
                f"{MARK}{number}",
                question,
                flags=re.I,
            )
    return question


def all_found(question: str, things: Sequence[str]) -> bool:
    """Whether every thing that a question names to choose from is among the things: what "or" and "and" join,
    and lists before them.
    """
    masked = with_names_masked(question, things)
    if any(f"{MARK}{number}" not in masked for number in range(len(things))):
        return False
    for joint in _JOINT.finditer(masked):
        left, right = _PART.split(masked[: joint.start()])[-1], _PART.split(f"{masked[joint.end() :]} ")[0]
        if (MARK in left) != (MARK in right) and (
            _joins_names(left, right) or (joint[1] == "or" and _is_choice(left, right))
        ):
            return False
    listed = re.split(r"[,;:]", masked)[1:]
    return not any(_NAME.match(part) for part in listed) and not _goes_on(masked)


def _is_choice(left: str, right: str) -> bool:
    """Whether an "or" offers one of two: "§0 or the absent mill" does, "is §0 an oak or a pine" does not."""
    return MARK in right or bool(re.search(rf"{MARK}\d\W*$", left))


def _goes_on(masked: str) -> bool:
    """Whether a name goes on behind a thing that was found, as in "Old Oak Inn"; "are §0 and §1 American?"
    names nothing else.
    """
    if re.search(rf"{MARK}\d [{CAPITAL}]\w[^{MARK}]*{MARK}", masked):
        return True
    return not re.search(r"\bboth\b|\band\s", masked) and bool(
        re.search(rf"{MARK}\d(?: [{CAPITAL}][\w'’.-]+)+\W*$", masked)
    )


def _joins_names(left: str, right: str) -> bool:
    """Whether what stands before and behind an "and" are names, one of them unknown."""
    if MARK in left:
        return bool(re.search(rf"{MARK}\d\W*$", left) and _BEGINS_WITH_NAME.match(right))
    return bool(re.match(rf"^\W*{_ARTICLES}{MARK}", right) and _ENDS_WITH_NAME.search(left))


def _is_common(question: str, title: str) -> bool:
    """Whether a title is one word that stands in a question in lower case only, and is not one side of an
    "or" or "and" there.
    """
    name = called(title)
    if not name or " " in name:
        return False
    word = re.escape(name)
    if not all(found.islower() for found in re.findall(rf"\b{word}\b", question, re.I)):
        return False
    return not re.search(rf"\b(?:or|and) {_ARTICLES}{word}\b|\b{word},? (?:or|and)\b", question)
