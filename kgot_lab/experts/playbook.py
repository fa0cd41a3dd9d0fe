"""Playbooks: short guides in Markdown, whose sections go into the prompt of an expert that has the skill, where a question calls for one.

A playbook is a file with a head between two lines of ---: `name`, `title`, `words` (what questions that need it say) and, if it serves
some, `intents`. Its sections begin with ## and are told whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.methods.intents import INTENTS
from kgot_lab.reading import read_regular_text
from kgot_lab.text.stems import stem
from kgot_lab.text.words import searched_words

_FOLDER = Path(__file__).parent / "playbooks"
_LEAST = 2.0  # what a section has to score: a word of the playbook's own counts 2, one of its text 1 (of several, at most 3)
_MOST = 2  # sections in a prompt


@dataclass(frozen=True)
class PlaybookSection:
    """A part of a playbook: its heading and its text."""

    playbook: str
    heading: str
    text: str


@dataclass(frozen=True)
class Playbook:
    """A guide: what it is called, what questions that need it say, and its sections."""

    name: str
    title: str
    words: tuple[str, ...]
    intents: tuple[str, ...]
    sections: tuple[PlaybookSection, ...]


def read_playbook(path: Path) -> Playbook:
    """The playbook in a file; raises BadInput with what is wrong in it."""
    import yaml

    text = read_regular_text(path)
    head, marks, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not marks:
        raise BadInput(f"{path.name} has no head between two lines of ---")
    try:
        told = yaml.safe_load(head)
    except yaml.YAMLError as error:
        raise BadInput(f"the head of {path.name} is not YAML ({type(error).__name__})") from None
    if not isinstance(told, Mapping) or not all(isinstance(told.get(field), str) for field in ("name", "title")):
        raise BadInput(f"the head of {path.name} has no name and title")
    words, intents = (_listed(told, field, path) for field in ("words", "intents"))
    for intent in intents:
        if intent not in INTENTS:
            raise UnknownName("intent", intent, INTENTS)
    sections = [part.partition("\n") for part in f"\n{body}".split("\n## ")[1:]]
    if not sections or not words:
        raise BadInput(f"{path.name} has no {'words' if sections else 'sections that begin with ##'}")
    name = str(told["name"])
    parts = tuple(PlaybookSection(name, heading.strip(), text.strip()) for heading, _, text in sections)
    return Playbook(name, str(told["title"]), words, intents, parts)


def _listed(told: Mapping[str, Any], field: str, path: Path) -> tuple[str, ...]:
    value = told.get(field, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadInput(f"{field} in the head of {path.name} is a list of words")
    return tuple(value)


@cache
def authored_playbooks() -> Mapping[str, Playbook]:
    """The playbooks that come with the package, by name."""
    found = [read_playbook(path) for path in sorted(_FOLDER.glob("*.md"))]
    return {each.name: each for each in found}


def matching_sections(
    question: str, allowed: Iterable[str], playbooks: Mapping[str, Playbook], *, intent: str = ""
) -> tuple[PlaybookSection, ...]:
    """The sections, two at most, that a question calls for, of the playbooks that are allowed; unknown names are passed over."""
    asked = {stem(word) for word in searched_words(question)}
    scored = []
    for name in dict.fromkeys(allowed):
        playbook = playbooks.get(name)
        if playbook is None:
            continue
        own = sum(2.0 for word in playbook.words if {stem(each) for each in searched_words(word)} <= asked)
        own += 1.0 * (intent in playbook.intents)
        for section in playbook.sections:
            heading = {stem(word) for word in searched_words(section.heading)}
            text = {stem(word) for word in searched_words(section.text)}
            score = own + min(3.0, len(asked & text) + len(asked & heading))
            if own and score >= _LEAST:
                scored.append((score, section))
    scored.sort(key=lambda each: -each[0])  # stable: equal ones in the order of the skills
    return tuple(section for _, section in scored[:_MOST])
