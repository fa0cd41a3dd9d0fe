"""The relations that people state of themselves and others: the words that state, begin and end each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kgot_lab.text.words import stem

ANY = "*"  # any relation


@dataclass(frozen=True)
class Relation:
    """A relation and the English words that state it.

    `states` and `begins` are verbs with a preposition if one leads to the object, as "work at"; only what `begins`
    a relation states it in the past tense too. `ends` are verbs after which it is over, `lost` what
    others do to end it ("fire"), and states without it ("single"), `gained` what others do to begin it ("hire").
    `nouns` name its object:
    "my employer is Acme". `about` has the words of questions about it. `aliases` are other names of it. A `single`
    relation has one object at a time.
    """

    name: str
    single: bool = True
    states: tuple[str, ...] = ()
    begins: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@cache
def _lines() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Return the sections of `relations.txt` with their lines."""
    sections: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            name, _, texts = line.partition(":")
            section[name] = tuple(text.strip() for text in texts.split(",") if text.strip())
    return sections


@cache
def relations() -> Mapping[str, Relation]:
    """Return the relations of the table by name."""
    found = {}
    for name, lines in _lines().items():
        if name != "words":
            fields = {field: texts for field, texts in lines.items() if field != "several"}
            found[name] = Relation(name, "several" not in lines, **fields)
    return found


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a list of words.

    "ends" are verbs that may end any relation, "deaths" those of them that end a life, "used up" those that end
    only what has a name, and "transitive" those that end nothing without an object, "successors" those
    whose subject takes the place of their object. "moved to" are things to which one changes
    without a new home, "people", "contracts" and "several", of which one may have several, are nouns.
    """
    return frozenset(_lines()["words"][name])


def is_person(noun: str) -> bool:
    """Return whether a noun names people or animals, as do "sister", "co-worker", "ex-wife" and "former boss"."""
    return bool(_parts(noun) & word_list("people"))


def is_one_of_several(noun: str) -> bool:
    """Return whether one may have several of what a noun names."""
    return bool(_parts(noun) & word_list("several"))


def is_former_partner(noun: str) -> bool:
    """Return whether a noun names someone who was a partner: "ex", "ex-wife", "late husband"."""
    base = re.split("[- ]", noun)[-1]
    return noun == "ex" or (base != noun and "partner" in relations_by("nouns").get(base, ()))


def _parts(noun: str) -> frozenset[str]:
    return frozenset((noun, *re.split("[- ]", noun)))


@cache
def relations_by(field: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the relations by each text of a field, such as "begins"."""
    found: dict[str, tuple[str, ...]] = {}
    for relation in relations().values():
        for text in getattr(relation, field):
            found[text] = (*found.get(text, ()), relation.name)
    return found


def canonical_relation(name: str) -> str:
    """Return the name in the table of a relation that another calls by it or by an alias, else the name."""
    key = "_".join(name.split()).casefold()
    return key if key in relations() else next(iter(relations_by("aliases").get(key, ())), key)


def is_single(relation: str) -> bool:
    """Return whether a relation of the table has one object at a time."""
    return relation in relations() and relations()[relation].single


@cache
def question_stems(relation: str) -> frozenset[str]:
    """Return the stems of the words that a question about a relation may have."""
    return frozenset(map(stem, relations()[relation].about)) if relation in relations() else frozenset()
