"""Read by rules what a message in English states: facts, and facts that ended, clause by clause.

spaCy parses the message. Questions, quotations, conditions, wishes and plans state no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kgot_lab.analogy.linguistic import parse_english
from kgot_lab.memory.english.clauses import is_question, plain_sentence, split_clauses
from kgot_lab.memory.english.facts import ClauseReader
from kgot_lab.memory.english.parts import ME, Statement
from kgot_lab.text.function_words import detect_language
from kgot_lab.text.words import text_sentences


@dataclass(frozen=True)
class ReadSentence:
    """A sentence of a message, its position there, and what it states. A question states nothing.

    `is_read` is false for a sentence in a language that the rules do not read, and `dropped` the number of lines of a
    model's reply that are no facts of it.
    """

    text: str
    start: int
    end: int
    statements: tuple[Statement, ...] = ()
    is_question: bool = False
    is_read: bool = True
    dropped: int = 0


_CLITIC = re.compile(r"'\w+")  # "ve" and "s" are words of other languages
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PHONE = re.compile(r"\+?\d[\d ()/-]{5,}\d")
_REACH_ME = r"(?:reach|call|text|write(?: to)?|email|mail|message) me\b"
_MY_PHONE = re.compile(
    rf"(?:\bmy |\b(?:got|have) a (?=new (?:\w+ )?number)|^)(?:new |mobile |cell |phone )*(?:number|phone|mobile|cell)\b|\b{_REACH_ME}",
    re.I,
)
_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
_BIRTHDAY = re.compile(
    r"(?:\bmy birthday(?:'s| is)(?: on)?|\bI (?:was|am) born (?:on|in)|\bI'm born (?:on|in))(?: the)? "
    rf"(?P<date>\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH}(?: \d{{1,2}}(?:st|nd|rd|th)?\b)?(?:,? \d{{4}})?)",
    re.I,
)
_MY_EMAIL = re.compile(rf"(?:\bmy |^)(?:new )?e-?mail\b|\b{_REACH_ME}", re.I)


class MessageReader:
    """Reads messages one after the other, and remembers whom "she" or "it" stands for.

    Raises NotInstalled without spaCy.
    """

    def __init__(self) -> None:
        self._topic = ""

    def read(self, messages: Sequence[tuple[str, datetime]]) -> list[list[ReadSentence]]:
        """Return the sentences of each message, given with its time, with what each states."""
        spans = [_spans(text) for text, _ in messages]
        plain = [plain_sentence(sentence) for each in spans for sentence, *_ in each]
        documents = iter(parse_english(plain, whole_words=True))
        return [
            [self._read(*span, next(documents), at) for span in of_message]
            for (_, at), of_message in zip(messages, spans, strict=True)
        ]

    def _read(self, text: str, start: int, end: int, document: Any, at: datetime) -> ReadSentence:
        if is_question(document):
            return ReadSentence(text, start, end, is_question=True)
        if detect_language([_CLITIC.sub("", document.text)]) != "en":
            return ReadSentence(text, start, end, is_read=False)
        statements = list(_read_contacts(document.text, at))
        for part in document.sents:
            for clause in split_clauses(part) if not is_question(part) else ():
                reader = ClauseReader(clause, at, self._topic)
                statements += reader.read()
                self._topic = reader.topic
        whole = (
            each
            for each in statements
            if each.subject.strip() and (each.object.strip() or each.kind == "ended")
        )
        return ReadSentence(text, start, end, tuple(whole))


def _spans(text: str) -> list[tuple[str, int, int]]:
    """Return the sentences of a text with their positions."""
    spans, place = [], 0
    for sentence in text_sentences(text, "any script"):
        start = max(text.find(sentence, place), place)
        place = min(start + len(sentence), len(text))
        spans.append((sentence, start, place))
    return spans


def _read_contacts(text: str, at: datetime) -> Iterator[Statement]:
    """Yield the addresses at which the speaker can be reached, and the birthday."""
    if (email := _EMAIL.search(text)) and _MY_EMAIL.search(text):
        yield Statement(ME, "email", email[0], at, single=True)
    if (phone := _PHONE.search(text)) and _MY_PHONE.search(text):
        yield Statement(ME, "phone", phone[0], at, single=True)
    if birthday := _BIRTHDAY.search(text):
        yield Statement(ME, "birthday", birthday["date"], at, single=True)
