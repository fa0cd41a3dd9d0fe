"""The form of a question: yes or no, one of two things, or open."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from kgot_lab.loop.modes.paths.values import strip_markers
from kgot_lab.retrieval.entity_linking import CAPITAL_LETTERS, title_name
from kgot_lab.text.function_words import detect_language, function_words
from kgot_lab.text.words import name_tokens, same_answer
from kgot_lab.types import Message, Prompt

Form = Literal["open", "yes or no", "choice"]

_ASKS = re.compile(r"\b(who|whom|whose|what|which|when|where|why|how|name the|in whose)\b", re.I)
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)"
_YES_OR_NO = re.compile(rf"(?:^|,\s+|\?\s+){_AUXILIARY}\s|\b(?:both|same|also)\b", re.I)
# do you know who …
_TELL = "ask|explain|find|give|happen|have|know|name|please|recall|remember|say|show|tell"
_BEGINS_SO = re.compile(
    rf"^\W*{_AUXILIARY}\s+(?!(?:you|anyone|anybody|we|i)\s+(?:{_TELL})\b|it known\b)", re.I
)
_ASKS_LAST = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\W*$|\b(?:in|of|by|at|on|for|from|during) (?:what|which|whose) \w+\W*$"
    r"|\bwhat \w+\W*$",
    re.I,
)
_RANKS = (
    "older|younger|elder|newer|earlier|later|sooner|longer|shorter|taller|higher|lower|larger|bigger|smaller|greater|fewer|closer|nearer|"
    "farther|further|deeper|wider|broader|narrower|heavier|lighter|faster|quicker|slower|richer|poorer|wealthier|hotter|colder|cooler|"
    "warmer|stronger|weaker|thicker|thinner|louder|cheaper|denser|drier|wetter|steeper|better|worse|safer|harder|softer|easier|busier|"
    "brighter|darker|fatter|wiser|simpler|rarer|flatter|saltier|sweeter|purer|milder|happier|prettier|uglier"
)
_RANKED = re.compile(
    rf"\b(?:{_RANKS}|first|last|more|less)\b"
    r"|\b(?:is|are|was|were)\s+(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b(?=\s*(?:[,?]|than\b))",
    re.I,
)
_LISTED = re.compile(r"[,:?]\s[^,]+\sor\s", re.I)
# where "or" is a sign too
_MAY_RANK = re.compile(r"(?i)\b(?!(?:\w*ther|other|ever|never|after|under|number|member|together)\b)\w+er\b")
# a rank that is a noun, as founder and river are, ranks nothing
_OR = re.compile(
    rf"\bor\b|\b(?:out of|between|(?:which|who|one|either|{_RANKS}|first|last|more|less) of|^of) (?:the two )?.+ and ",
    re.I,
)


def classify_question(question: str) -> Form:
    """Classify a question as "yes or no", "choice" (one of two named things) or "open".

    "Are A and B both rivers?" is "yes or no", since it has no word such as who or which. "Is A or B older?"
    and "Which is older, A or B?" are "choice". "Was the engineer who founded A from B?" is "yes or no", since
    its "who" does not ask. Words of other languages are not taken for English ones: "Was kostet das?" is "open".
    """
    first, language = question.strip().partition(" ")[0].lower(), detect_language([question])
    if language != "en" and first in function_words(language):
        return "open"
    asks = bool(_ASKS.search(question)) and not _has_relative_pronoun(question)
    listed = _LISTED.search(question) and _MAY_RANK.search(question)
    ranked = listed or (_OR.search(question) and _RANKED.search(question))
    if ranked and (asks or _YES_OR_NO.search(question)):
        return "choice"
    return "yes or no" if not asks and _YES_OR_NO.search(question.strip()) else "open"


def _has_relative_pronoun(question: str) -> bool:
    """Return whether a question begins as a yes/no question, so that a "who" in it is a relative pronoun."""
    return bool(_BEGINS_SO.match(question)) and not _ASKS_LAST.search(question)


_DATE = re.compile(
    r"^(?:in |on )?(?:when|(?:in |during )?(?:what|which) (?:year|date|month|day))\b|\bin (?:what|which) year\b",
    re.I,
)
_NO_FIGURE = re.compile(
    r"^(?:where|who|whom|in (?:what|which) (?:city|country|state|place|town|county))\b", re.I
)
_HAS_DIGIT = re.compile(r"\d")


def asks_for_date(question: str) -> bool:
    """Return whether a question asks for a date or a part of one."""
    return bool(_DATE.search(question.strip()))


def mismatch_reason(question: str, answer: str) -> str:
    """Return why an answer does not fit the kind of question, or "" if it may.

    Examples are a date without a digit, and a date as the answer to a question for a place.
    """
    stripped = question.strip()
    if asks_for_date(stripped) and not _HAS_DIGIT.search(answer) and not _is_part_of_date(stripped, answer):
        return "the question asks for a date"
    if _NO_FIGURE.search(stripped) and not re.search(r"[^\W\d]{2}", re.sub(_MONTHS, "", answer)):
        return "the question asks for no date"
    return ""


def _is_part_of_date(question: str, answer: str) -> bool:
    """Return whether an answer is a month or weekday where the question asks for a month or a day."""
    named = _MONTHS.search(answer) or _WEEKDAYS.search(answer)
    return bool(named and re.search(r"\b(?:what|which) (?:month|day)\b", question, re.I))


_WEEKDAYS = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b", re.I)
_MONTHS = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b", re.I
)


def not_offered_reason(answer: str, things: Sequence[str]) -> str:
    """Return why an answer is none of the things that a question names.

    Returns "" if it is one of them, or if fewer than two are named.
    """
    if len(things) < 2:
        return ""
    words = name_tokens(answer)
    offered = [name_tokens(name) for thing in things for name in (thing, thing.split("(")[0])]
    return "" if words in offered else "it is none of the things that the question names"


# Choices: the things that a question offers, and whether all of them were found.

MARK = "§"  # with a number, replaces a thing in a masked question
_ARTICLES = r"(?:(?:the|a|an|both|either|der|die|das)\s+)*"
_NAME = re.compile(
    rf"^\W*(?!both\b){_ARTICLES}[{CAPITAL_LETTERS}][\w.'’&-]*(?:\s+(?:(?:of|the|de|la|and|for|in|on)\s+)*[{CAPITAL_LETTERS}\d][\w.'’&-]*)*\W*$"
)
_BEGINS_WITH_NAME = re.compile(rf"^\W*(?!both\b){_ARTICLES}[{CAPITAL_LETTERS}]")
_ENDS_WITH_NAME = re.compile(rf"[{CAPITAL_LETTERS}][\w.'’&-]*\W*$")
_CONJUNCTION = re.compile(r",?\s+(and|or)\s+")
_SEPARATOR = re.compile(r"[,;:?]|\s(?:and|or)\s")


def comparison_candidates(question: str, titles: Sequence[str]) -> list[str]:
    """Return the titles in a question that may be the things compared.

    Titles that are common words there are left out, such as "Tree" in "Which tree is older?".
    """
    return [title for title in titles if not _is_common_word(question, title)]


_OFFERED = re.compile(
    rf"(?:^|[,:]|\b(?:of|between|is|are|was|were|did|does|do|has|had)\b)\s*{_ARTICLES}"
    rf"(?P<one>[^,:?]+?),?\s+(?:or|and)\s+{_ARTICLES}(?P<two>[^,:?]+?)\s*\?*$",
    re.I,
)


def offered_choices(question: str) -> list[str]:
    """Return the two things that a question ends with, without their articles.

    "Which was bought first, the lathe or the saw?" offers lathe and saw. Returns an empty list if it ends
    otherwise.
    """
    match = _OFFERED.search(question.strip())
    return [match["one"].strip(), match["two"].strip()] if match else []


def mask_names(question: str, things: Sequence[str]) -> str:
    """Replace the things that a question names by `§0`, `§1`.

    This keeps the words of a name from being read as words of the question.
    """
    for number, thing in sorted(enumerate(things), key=lambda numbered: -len(numbered[1])):
        words = [re.escape(word) for word in re.findall(r"\w+", title_name(thing))]
        if words:
            spelled = r"\W+(?:s\W+)?".join(words) + (rf"(?:\{thing[-1]})?" if thing[-1] in "?!" else "")
            pattern = rf"(?<![\w{MARK}])[\"“']?{spelled}(?!\w)[\"”]?(?:\s*\([^()]*\))?"
            question = re.sub(pattern, f"{MARK}{number}", question, flags=re.I)
    return question


def has_all_choices(question: str, things: Sequence[str]) -> bool:
    """Return whether `things` holds every thing that a question offers as a choice.

    The choices are what "or" and "and" join, and lists before them.
    """
    masked = mask_names(question, things)
    if any(f"{MARK}{number}" not in masked for number in range(len(things))):
        return False
    for joint in _CONJUNCTION.finditer(masked):
        left = _SEPARATOR.split(masked[: joint.start()])[-1]
        right = _SEPARATOR.split(f"{masked[joint.end() :]} ")[0]
        joins = _joins_names(left, right) or (joint[1] == "or" and _is_choice(left, right))
        if (MARK in left) != (MARK in right) and joins:
            return False
    listed = re.split(r"[,;:]", masked)[1:]
    return not any(_NAME.match(part) for part in listed) and not _name_continues(masked)


def _is_choice(left: str, right: str) -> bool:
    """Return whether an "or" offers a choice: "§0 or the absent mill" does, "is §0 an oak or a pine" does
    not.
    """
    return MARK in right or bool(re.search(rf"{MARK}\d\W*$", left))


def _name_continues(masked: str) -> bool:
    """Return whether a name continues after a thing that was found, as in "Old Oak Inn".

    "are §0 and §1 American?" names nothing else.
    """
    if re.search(rf"{MARK}\d [{CAPITAL_LETTERS}]\w[^{MARK}]*{MARK}", masked):
        return True
    ends_with_name = re.search(rf"{MARK}\d(?: [{CAPITAL_LETTERS}][\w'’.-]+)+\W*$", masked)
    return bool(ends_with_name) and not re.search(r"\bboth\b|\band\s", masked)


def _joins_names(left: str, right: str) -> bool:
    """Return whether an "and" joins two names, one of them unknown."""
    if MARK in left:
        return bool(re.search(rf"{MARK}\d\W*$", left) and _BEGINS_WITH_NAME.match(right))
    return bool(re.match(rf"^\W*{_ARTICLES}{MARK}", right) and _ENDS_WITH_NAME.search(left))


def _is_common_word(question: str, title: str) -> bool:
    """Return whether a title is one word that occurs in a question only in lower case.

    A word that is one side of an "or" or "and" does not count.
    """
    name = title_name(title)
    if not name or " " in name:
        return False
    word = re.escape(name)
    if not all(occurrence.islower() for occurrence in re.findall(rf"\b{word}\b", question, re.I)):
        return False
    return not re.search(rf"\b(?:or|and) {_ARTICLES}{word}\b|\b{word},? (?:or|and)\b", question)


# Decomposition into hops: simple questions, each about the answer of an earlier one.

# a relative clause, a possessive, "of the … of"; in German, a clause after a comma; in Chinese, two 的
_DESCRIPTION = re.compile(
    r"^(?:\W*[\w'’-]+\W+){3,}(?:who|whom|whose|which|that|where)\b|\w['’]s? (?-i:[a-z])|\bof the \w+ (?:of|from|in|at)\b"
    r"|\b(?:do|does|did|has|had) the \w+ of (?:the|our|this) (?-i:[a-z])"
    r"|, (?:(?:in|an|auf|mit|von) )?(?:der|die|das|dem|den|deren|dessen)\b|的.+的",
    re.I,
)


def describes_entity(question: str) -> bool:
    """Return whether a question may describe an entity that it does not name, as in "the designer of the boat
    that sank".
    """
    return bool(_DESCRIPTION.search(question))


MAX_HOPS = 4  # hops
_REPLY_TOKENS = 80  # tokens of the hops
_SYSTEM = (
    "Split the question into simple questions, one a line, each about one thing. Begin with the name that the question gives; "
    "#1, #2 stand for earlier answers."
)
# few-shot examples of the prompts of this mode
EXAMPLES: Mapping[str, Any] = tomllib.loads(
    Path(__file__).with_name("examples.toml").read_text(encoding="utf-8")
)


def hops_prompt(question: str) -> Prompt:
    """Ask for the hops of a question."""
    turns: list[Message] = []
    for compound, hops in EXAMPLES["hops"].items():
        listed = "\n".join(f"{number}. {hop}" for number, hop in enumerate(hops, 1))
        turns += [Message("user", compound), Message("assistant", listed)]
    messages = (Message("system", _SYSTEM), *turns, Message("user", question.strip()))
    return Prompt(messages, None, 0.0, 0, _REPLY_TOKENS)


_IDENTITY_HOP = re.compile(r"\W*(?:who|what|which)\s+(?:is|was|are|were)\s+#\d\W*", re.I)


def parse_hops(reply: str, question: str = "") -> list[str]:
    """Parse the hops of a reply: two or more questions, each after the first about an earlier answer.

    Returns an empty list if the reply is not a chain. It is none if a hop is the question itself, or only
    asks who or what an earlier answer is.
    """
    hops = [line for line in map(strip_markers, reply.splitlines()) if line.endswith("?")][:MAX_HOPS]
    chained = all(any(f"#{n}" in hop for n in range(1, i + 1)) for i, hop in enumerate(hops[1:], 1))
    repeats = question and any(same_answer(hop, question) or _IDENTITY_HOP.fullmatch(hop) for hop in hops)
    return hops if len(hops) > 1 and "#" not in hops[0] and chained and not repeats else []


def fill_hop(hop: str, answers: Sequence[str]) -> str:
    """Replace the references in a hop by the answers of earlier hops."""
    return re.sub(r"#(\d)", lambda m: answers[int(m[1]) - 1] if 0 < int(m[1]) <= len(answers) else m[0], hop)


def hop_subjects(hop: str, answers: Sequence[str]) -> list[str]:
    """Return the earlier answers that a hop refers to."""
    numbers = map(int, re.findall(r"#(\d)", hop))
    return [answers[number - 1] for number in numbers if 0 < number <= len(answers)]
