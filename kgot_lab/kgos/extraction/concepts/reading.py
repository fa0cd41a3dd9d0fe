"""Reading one passage: which relations it states, each with the words that state it, and what it says of how
something is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, Field

from kgot_lab.kgos.extraction.concepts import Passage
from kgot_lab.kgos.schemas.dimensions import DIMENSIONS
from kgot_lab.kgos.schemas.extracted_dimensions import NOT_EXTRACTABLE
from kgot_lab.llm.structured import parse, schema_of
from kgot_lab.text.fence import FENCES, fenced
from kgot_lab.text.sentences import rough_sentences
from kgot_lab.text.words import searched_words, stands_in
from kgot_lab.types import Message, Prompt

# Each field of the form that a model fills in: the relation it stands for, what it asks for, and the types of
# both ends. The subject is what the passage is about; of a workaround and of a cause it is the limitation.
FIELDS: Mapping[str, tuple[str, str, str, str]] = {
    "limitations": (
        "has_limitation",
        "what the thing does not do, or what is bad about it",
        "concept",
        "limitation",
    ),
    "workarounds": ("has_workaround", "what to do in spite of a limitation", "limitation", "workaround"),
    "requires": ("requires", "what the thing needs", "concept", "concept"),
    "enables": ("enables", "what one can do with the thing", "technique", "goal"),
    "prevents": ("prevents", "what the thing keeps from happening", "technique", "limitation"),
    "alternatives": ("alternative_to", "other things for the same job", "technique", "technique"),
    "causes": ("caused_by", "why a limitation is there", "limitation", "concept"),
}
_OF_LIMITATION = ("has_workaround", "caused_by")
_LONGEST = 20  # words of a phrase; what is longer is no phrase
_REPLY = 400
_SYSTEM = (
    "You read one paragraph of documentation about a thing and copy short phrases of the paragraph, word for word, into a form. "
    f"{' '.join(f'{name}: {asked}.' for name, (_, asked, *_) in FIELDS.items())} Most fields stay empty. {FENCES}"
)
_EXAMPLES: tuple[tuple[str, str, dict[str, list[str]]], ...] = (
    ("count_rows", "Return the number of rows, as an integer.", {}),
    (
        "parser",
        "The parser reads files of any size and needs a grammar file. It does not handle nested comments because it looks at one line at a "
        "time; as a workaround, strip comments before parsing. For small files use `eval_text` instead.",
        {
            "limitations": ["does not handle nested comments"],
            "workarounds": ["strip comments before parsing"],
            "requires": ["a grammar file"],
            "enables": ["reads files of any size"],
            "alternatives": ["eval_text"],
            "causes": ["it looks at one line at a time"],
        },
    ),
    (
        "compact",
        "With `compact=True` the writer allows random access and avoids a second pass.",
        {"enables": ["random access"], "prevents": ["a second pass"]},
    ),
)
# What a limitation is said with: a small model calls a limitation whatever it would not have thought of.
_LIMIT = re.compile(
    r"\b(no|not|cannot|can't|\w+n't|never|without|only|unless|except|fail|slow|limit|un\w+|expensive|los[est]|error|problem|warn|careful|"
    r"hard|difficult|deprecated|approximat|sub\w+|exponential|very|too)",
    re.IGNORECASE,
)
_RATED = {each.name: each for each in DIMENSIONS if each.name in NOT_EXTRACTABLE}


class PassageForm(BaseModel):
    """What a model fills in of a passage: phrases of it, word for word."""

    limitations: list[str] = Field(max_length=4)
    workarounds: list[str] = Field(max_length=3)
    requires: list[str] = Field(max_length=4)
    enables: list[str] = Field(max_length=4)
    prevents: list[str] = Field(max_length=3)
    alternatives: list[str] = Field(max_length=3)
    causes: list[str] = Field(max_length=3)


class Stated(NamedTuple):
    """A relation that a passage states, and the sentence that states it."""

    subject: str
    relation: str
    object: str
    quote: str


class Rated(BaseModel):
    """How something is on a dimension, from 0 to 1, with the words that say so."""

    dimension: str
    value: float = Field(ge=0, le=1)
    quote: str


class About(BaseModel):
    """What a passage says of its subject: words by which somebody would look for it, and dimensions."""

    keywords: list[str] = Field(max_length=8)
    dimensions: list[Rated] = Field(max_length=6)


@dataclass(frozen=True)
class ReadPassage:
    """What was accepted of a passage, and what was refused with the reason."""

    passage: Passage
    relations: tuple[Stated, ...] = ()
    keywords: tuple[str, ...] = ()
    dimensions: tuple[Rated, ...] = ()
    refused: tuple[str, ...] = ()


def relations_prompt(passage: Passage) -> Prompt:
    """What a model is asked of a passage."""
    turns = [Message("system", _SYSTEM)]
    for name, text, filled in _EXAMPLES:
        reply = json.dumps({field: filled.get(field, []) for field in FIELDS})
        turns += [Message("user", fenced(text, f"a paragraph about {name}")), Message("assistant", reply)]
    turns.append(Message("user", fenced(passage.text, f"a paragraph about {passage.name}")))
    return Prompt(tuple(turns), schema_of(PassageForm), max_tokens=_REPLY)


def about_prompt(passage: Passage) -> Prompt:
    """What a model is asked of how the subject of a passage is."""
    told = "; ".join(f"{name}: 0 is {each.low}, 1 is {each.high}" for name, each in _RATED.items())
    system = (
        "You read one paragraph of documentation. List up to eight keywords, words of the paragraph by which somebody would look for what "
        "it is about, and rate it on those dimensions of which the paragraph says something, with the words that say so, each from 0 to 1. "
        f"The dimensions are: {told}. Rate nothing that the paragraph does not say; empty lists are good answers. {FENCES}"
    )
    asked = fenced(passage.text, f"a paragraph about {passage.name}")
    return Prompt((Message("system", system), Message("user", asked)), schema_of(About), max_tokens=_REPLY)


def read_relations(passage: Passage, reply: str) -> ReadPassage:
    """What of a form the passage says: each phrase stands in it word for word, a limitation is said as one.
    Raises BadReply for no form.

    A workaround and a cause are those of the first limitation that was accepted; without one they are
    refused.
    """
    form = parse(reply, PassageForm)
    kept: dict[tuple[str, str, str], Stated] = {}
    refused: list[str] = []
    limitation = ""
    for field, (relation, *_) in FIELDS.items():
        for said in getattr(form, field):
            phrase = " ".join(said.split()).strip(" .,;:")
            subject = limitation if relation in _OF_LIMITATION else passage.name
            if why := _why_not(phrase, relation, subject, passage):
                refused.append(f"{relation} {phrase!r}: {why}")
                continue
            quote = next((each for each in rough_sentences(passage.text) if stands_in(phrase, each)), phrase)
            kept.setdefault(
                (subject.casefold(), relation, phrase.casefold()), Stated(subject, relation, phrase, quote)
            )
            if relation == "has_limitation" and not limitation:
                limitation = phrase
    return ReadPassage(passage, tuple(kept.values()), refused=tuple(refused))


def read_about(passage: Passage, reply: str) -> ReadPassage:
    """The keywords and dimensions of a reply that the passage says. Raises BadReply."""
    about = parse(reply, About)
    refused = [
        f"keyword {each}: it is not in the passage"
        for each in about.keywords
        if not stands_in(each, passage.text)
    ]
    rated: dict[str, Rated] = {}
    for each in about.dimensions:
        if each.dimension not in _RATED:
            refused.append(f"dimension {each.dimension}: there is none of this name that has to be read")
        elif not _is_span(each.quote, passage.text):
            refused.append(f"dimension {each.dimension}: its quotation is not in the passage")
        else:
            rated.setdefault(each.dimension, each)
    keywords = tuple(
        dict.fromkeys(each.casefold() for each in about.keywords if stands_in(each, passage.text))
    )
    return ReadPassage(passage, (), keywords, tuple(rated.values()), tuple(refused))


def _why_not(phrase: str, relation: str, subject: str, passage: Passage) -> str:
    if not searched_words(phrase) or not stands_in(phrase, passage.text):
        return "it does not stand in the passage"
    if len(phrase.split()) > _LONGEST:
        return "it is no phrase"
    if not subject:
        return "no limitation is said that it belongs to"
    if phrase.casefold() == subject.casefold():
        return "both ends are the same"
    if relation == "has_limitation" and not _LIMIT.search(phrase):
        return "it says no limit"
    return ""


def _is_span(quote: str, text: str) -> bool:
    """Whether a quotation stands in a text, but for white space, and says more than a word."""
    return len(quote.split()) > 1 and stands_in(quote, text)
