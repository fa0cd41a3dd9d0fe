"""What the words of a turn or a question tell by rules alone: what a user says of himself, orders, prefers,
or only remarks in passing.
"""

from __future__ import annotations

import re

_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_REACTION = re.compile(
    r"^(?:thanks|thank you|got it|sounds? (?:good|like|great)|that(?:'s| sounds| makes| plan| looks)|great|perfect|awesome|yeah|yes|sure|"
    r"okay|ok\b|hmm|i think i'll|alright|absolutely|cool|nice)",
    re.IGNORECASE,
)
_ORDER = re.compile(r"^(?:please )?(?:always|never|from now on|whenever|remember to)\b", re.IGNORECASE)
_CONDITION = re.compile(
    r"\b(?:when|whenever|if|every time|any time)\s+(?:I|we)\s+(?:\w+\s+)?(?:ask|request|mention|need|want|discuss|talk)"
    r"(?:\s+(?:you|about|for|to|on))*\s+(.+)",
    re.IGNORECASE | re.DOTALL,
)
_PREFERENCE = re.compile(r"\b(?:prefer\w*|favou?r\w*|rather than|instead of|i like|i love)\b", re.IGNORECASE)

_POLAR = re.compile(r"^(?:have|has|had|did|do|does|am|is|are|was|were)\s+(?:i|my|we)\b", re.IGNORECASE)
_VALUE = re.compile(r"\b(?:how (?:many|much|long|often|old|far)|what|which|when)\b", re.IGNORECASE)
_RECALL = re.compile(
    r"\b(?:did|have|had|was|were) (?:i|you|we|my)\b|\bi (?:said|mentioned|told)\b|summar|brought up",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:can|could|would|should) (?:you|i)\b|^how (?:should|do|can|would)|\bwhat (?:are|is) (?:some|the best|the different)|suggest|"
    r"recommend|i'm (?:planning|looking|working|trying|thinking|updating|considering)|help me",
    re.IGNORECASE,
)
_TO_ASSISTANT = re.compile(
    r"\b(?:did|have|had|were) you\b|\byou (?:recommended|suggested|advised|gave|told|said|helped|outlined|explained|mentioned)|"
    r"\byour (?:advice|suggest|recommend)|^how did (?:i|we|my)\b|\bwhat approach did\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(r"\bsummar|\brecap\b", re.IGNORECASE)
_SEQUENCE = re.compile(
    r"\border\b.*\b(?:brought|mention|discuss|talk|share)|throughout our|across our|in order\b",
    re.IGNORECASE | re.DOTALL,
)


def spoken(text: str) -> str:
    """A message without its blocks of code."""
    return _CODE.sub(" ", text).strip()


def is_reaction(said: str) -> bool:
    """Whether a turn opens as an answer to the one before, which seldom states anything new."""
    return bool(_REACTION.match(said))


def condition_of_order(said: str) -> str:
    """When a standing order holds ("Always … when I ask about *this*"), the order itself where it does not
    say, "" for no order.
    """
    if not _ORDER.match(said):
        return ""
    found = _CONDITION.search(said)
    return (found[1] if found else said).strip(" .\n")


def tells_preference(said: str) -> bool:
    """Whether a turn says what its speaker prefers."""
    return bool(_PREFERENCE.search(said))


def asks_whether(question: str) -> bool:
    """Whether a question asks if something was so: yes or no, of the user."""
    return bool(_POLAR.match(question))


def asks_state(question: str) -> bool:
    """Whether a question asks what holds, as a value or a yes or no: what a later turn may have changed or
    denied.
    """
    return asks_whether(question) or bool(_VALUE.search(question) and not _RECALL.search(question))


def asks_what_was_said(question: str) -> bool:
    """Whether a question asks for something of the past, and so gives no occasion for a standing order."""
    return bool(_RECALL.search(question))


def asks_for_help(question: str) -> bool:
    """Whether a question asks for something to be done now, as the user likes it."""
    return bool(_REQUEST.search(question)) and not asks_what_was_said(question)


def asks_for_replies(question: str) -> bool:
    """Whether a question asks for what the assistant said, too."""
    return bool(_TO_ASSISTANT.search(question))


def asks_for_summary(question: str) -> bool:
    """Whether a question asks for a summary."""
    return bool(_SUMMARY.search(question))


def asks_for_sequence(question: str) -> bool:
    """Whether a question asks for an order of things that spreads over the sessions."""
    return bool(_SEQUENCE.search(question))
