"""Reading one passage: which relations it states, each with the words that state it, and what it says of how something is."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from kgot_lab.extraction.concepts.passages import Passage
from kgot_lab.llm.structured import parse, schema_of
from kgot_lab.schemas.dimensions.catalogue import DIMENSIONS
from kgot_lab.schemas.dimensions.extracted import NOT_EXTRACTABLE
from kgot_lab.text.fence import FENCES, fenced
from kgot_lab.text.words import searched_words, stands_in
from kgot_lab.types import Message, Prompt

Relation = Literal["requires", "enables", "has_limitation", "has_workaround", "alternative_to", "caused_by", "conflicts_with", "prevents"]
RELATIONS: Mapping[str, tuple[str, str, str]] = {  # what it says, and what its ends are
    "requires": ("A cannot be had without B", "concept", "concept"),
    "enables": ("A makes B possible", "technique", "goal"),
    "has_limitation": ("A is held back by B, or does not do B", "concept", "limitation"),
    "has_workaround": ("B helps in spite of the limitation A", "limitation", "workaround"),
    "alternative_to": ("A does the same job as B", "technique", "technique"),
    "caused_by": ("A comes from B", "limitation", "concept"),
    "conflicts_with": ("A does not work together with B", "concept", "concept"),
    "prevents": ("A keeps B from happening", "technique", "limitation"),
}
_LONGEST = 14  # words of an end; what is longer is a sentence
_MOST = 8  # relations of a passage
_REPLY = 700
_TOLD = ", ".join(f"{name} ({meaning})" for name, (meaning, *_) in RELATIONS.items())
_SYSTEM = (
    "You read one paragraph of documentation and list the relations that it states between the things it names. "
    f"The relations are: {_TOLD}. "
    "Take A and B in the words of the paragraph, short, as noun phrases; quote the words of the paragraph that state the relation. "
    "List nothing that the paragraph does not state; an empty list is a good answer. " + FENCES
)
_EXAMPLES = (
    ("Return the number of rows, as an integer.", ()),
    (
        "The parser needs a grammar file. It does not handle nested comments; as a workaround, strip comments before parsing.",
        (
            ("parser", "requires", "grammar file", "The parser needs a grammar file"),
            ("parser", "has_limitation", "does not handle nested comments", "It does not handle nested comments"),
            (
                "does not handle nested comments",
                "has_workaround",
                "strip comments before parsing",
                "as a workaround, strip comments before parsing",
            ),
        ),
    ),
    (
        "With `compact=True` the writer keeps rows in order and allows random access. Closing it twice does nothing.",
        (("compact=True", "enables", "random access", "With `compact=True` the writer keeps rows in order and allows random access"),),
    ),
)
# What each relation is said with: a small model calls any two things of a sentence by the relation that it named last.
_CUES: Mapping[str, re.Pattern[str]] = {
    name: re.compile(rf"\b({words})", re.IGNORECASE)
    for name, words in {
        "requires": r"requir|need|must|depend|necessary|without|only|should|ha(s|ve) to|expect|assum|given|us(e|es|ing)\b|based on|"
        r"rel(y|ies) on",
        "enables": r"allow|let|enabl|can\b|make|provid|support|giv|obtain|so that|used? |useful|help|add|define|find|comput",
        "has_limitation": r"no|cannot|can't|\w+n't|without|only|unless|except|fail|slow|limit|un\w+|expensive|large|long|los[est]|error|"
        r"problem|warn|"
        r"careful|hard|difficult|deprecated|may|might|approximat|sub\w+|exponential|but|however",
        "has_workaround": r"workaround|instead|use|using|avoid|can\b|consider|otherwise|first|by|helps?|convert|want to",
        "alternative_to": r"instead|alternative|rather|or\b|unlike|than|when|either|replac",
        "caused_by": r"because|due|since|as\b|caus|result|from|by\b|relies",
        "conflicts_with": r"not|conflict|incompatib|cannot|exclu|without",
        "prevents": r"prevent|avoid|without|from|protect|stop|never|guarantee|otherwise|or else",
    }.items()
}
_LIMIT = _CUES["has_limitation"]
_NOT_NEEDED = re.compile(r"\b(needs?|requires?)\s+(no|nothing)\b|\bnot\s+(need|require)", re.IGNORECASE)
_RATED = {each.name: each for each in DIMENSIONS if each.name in NOT_EXTRACTABLE}


class Stated(BaseModel):
    """A relation as a model states it, with the words of the passage."""

    subject: str
    relation: Relation
    object: str
    quote: str


class StatedRelations(BaseModel):
    """The relations of a passage; a bare list is taken too."""

    relations: list[Stated] = Field(max_length=_MOST)

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, value: Any) -> Any:
        return {"relations": value} if isinstance(value, list) else value


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
    for text, relations in _EXAMPLES:
        reply = {"relations": [dict(zip(("subject", "relation", "object", "quote"), each, strict=True)) for each in relations]}
        turns += [Message("user", fenced(text, "a paragraph")), Message("assistant", json.dumps(reply))]
    turns.append(Message("user", fenced(passage.text, f"a paragraph about {passage.name}")))
    return Prompt(tuple(turns), schema_of(StatedRelations), max_tokens=_REPLY)


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
    """What of a reply the passage says: the quotation stands in it, and so do the words of both ends. Raises BadReply for no list.

    The name of what the passage belongs to may stand for an end, since a docstring seldom says the name of its function.
    """
    kept: dict[tuple[str, str, str], Stated] = {}
    refused: list[str] = []
    limits: set[str] = set()
    for each in parse(reply, StatedRelations).relations:
        if why := _why_not(each, passage, limits):
            refused.append(f"{each.subject} -{each.relation}-> {each.object}: {why}")
        else:
            limits |= {each.object.casefold()} if each.relation == "has_limitation" else set()
            kept.setdefault((each.subject.casefold(), each.relation, each.object.casefold()), each)
    return ReadPassage(passage, tuple(kept.values()), refused=tuple(refused))


def read_about(passage: Passage, reply: str) -> ReadPassage:
    """The keywords and dimensions of a reply that the passage says. Raises BadReply."""
    about = parse(reply, About)
    refused = [f"keyword {each}: it is not in the passage" for each in about.keywords if not stands_in(each, passage.text)]
    rated: dict[str, Rated] = {}
    for each in about.dimensions:
        if each.dimension not in _RATED:
            refused.append(f"dimension {each.dimension}: there is none of this name that has to be read")
        elif not _is_span(each.quote, passage.text):
            refused.append(f"dimension {each.dimension}: its quotation is not in the passage")
        else:
            rated.setdefault(each.dimension, each)
    keywords = tuple(dict.fromkeys(each.casefold() for each in about.keywords if stands_in(each, passage.text)))
    return ReadPassage(passage, (), keywords, tuple(rated.values()), tuple(refused))


def _why_not(stated: Stated, passage: Passage, limits: Collection[str]) -> str:
    if not _is_span(stated.quote, passage.text):
        return "its quotation is not in the passage"
    ends = (stated.subject, stated.object)
    if any(len(each.split()) > _LONGEST for each in ends):
        return "an end is a sentence"
    if stated.subject.casefold() == stated.object.casefold():
        return "both ends are the same"
    if not _CUES[stated.relation].search(stated.quote) or (stated.relation == "requires" and _NOT_NEEDED.search(stated.quote)):
        return "its quotation does not say that"
    if stated.relation == "has_workaround" and stated.subject.casefold() not in limits and not _LIMIT.search(stated.subject):
        return "what is got round is no limitation"
    there = f"{passage.text} {passage.name}"
    return next((f"{each!r} is not in the passage" for each in ends if not _words_stand(each, there)), "")


def _is_span(quote: str, text: str) -> bool:
    """Whether a quotation stands in a text, but for white space, and says more than a word."""
    return len(quote.split()) > 1 and stands_in(quote, text)


def _words_stand(end: str, text: str) -> bool:
    """Whether each telling word of an end is a word of the text, in any form that begins alike."""
    words: Sequence[str] = searched_words(end)
    there = set(searched_words(text))
    return bool(words) and all(word in there or any(each.startswith(word[:5]) for each in there if len(word) > 4) for word in words)
