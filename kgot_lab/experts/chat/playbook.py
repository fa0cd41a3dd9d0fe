"""Playbooks: short guides in Markdown, whose sections go into the prompt of an expert that has the skill,
where a question calls for one.

A playbook is a file with a head between two lines of ---: `name`, `title`, `words` (what questions that need
it say) and, if it serves some, `intents`. Its sections begin with ## and are told whole. A question calls for
a playbook by its words, compared without their endings; of several words by all of them side by side. No
model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kgot_lab.errors import BadInput, UnknownName
from kgot_lab.io.files import read_regular_text
from kgot_lab.kgos.methods.intents import INTENTS
from kgot_lab.text.stems import stem
from kgot_lab.text.words import STOP_WORDS, folded_words

_FOLDER = Path(__file__).parent / "playbooks"
_LEAST = 2.0  # what a section has to score: a word of the playbook's own counts 2, one of its text 1 (of several, at most 3)
_MOST = 2  # sections in a prompt
_ASKING = STOP_WORDS | frozenset(  # words of any question, which call for nothing
    "about all am any can could did do does from get give go had has have he her him his how itself just know let like make me more most "
    "much my need one only our out over should so some something than them us want we were what when where which who whom whose why would "
    "you your".split()
)


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

    text = read_regular_text(path).replace("\r\n", "\n")
    head, marks, body = text.removeprefix("---\n").partition("\n---\n")
    if not text.startswith("---\n") or not marks:
        raise BadInput(f"{path.name} has no head between two lines of ---")
    try:
        told = yaml.safe_load(head)
    except yaml.YAMLError as error:
        raise BadInput(f"the head of {path.name} is not YAML ({type(error).__name__})") from None
    if not isinstance(told, Mapping) or not all(
        isinstance(told.get(field), str) for field in ("name", "title")
    ):
        raise BadInput(f"the head of {path.name} has no name and title")
    words, intents = (_listed(told, field, path) for field in ("words", "intents"))
    for intent in intents:
        if intent not in INTENTS:
            raise UnknownName(f"intent in the head of {path.name}", intent, INTENTS)
    sections = [part.partition("\n") for part in f"\n{body}".split("\n## ")[1:]]
    if not sections or not words:
        raise BadInput(f"{path.name} has no {'words' if sections else 'sections that begin with ##'}")
    name = str(told["name"])
    parts = tuple(PlaybookSection(name, heading.strip(), text.strip()) for heading, _, text in sections)
    if any(not part.heading or not part.text for part in parts):
        raise BadInput(
            f"a section of {path.name} has no {'text' if all(part.heading for part in parts) else 'heading'}"
        )
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
    """The sections, two at most, that a question calls for, of the playbooks that are allowed; unknown names
    are passed over.
    """
    said, asked = _standing(question), _telling(question)
    scored = []
    for name in dict.fromkeys(allowed):
        playbook = playbooks.get(name)
        if playbook is None:
            continue
        own = 2.0 * len({word for word in map(_standing, playbook.words) if word.strip() and word in said})
        own += 1.0 * (intent in playbook.intents)
        for section in playbook.sections:
            score = own + min(
                3.0, len(asked & _telling(section.text)) + len(asked & _telling(section.heading))
            )
            if own and score >= _LEAST:
                scored.append((score, section))
    scored.sort(key=lambda each: -each[0])  # stable: equal ones in the order of the skills
    return tuple(section for _, section in scored[:_MOST])


def _standing(text: str) -> str:
    """The words of a text without their endings, each between spaces, so that some of them can be looked up
    side by side.
    """
    return f" {' '.join(map(stem, folded_words(text)))} "


def _telling(text: str) -> set[str]:
    """The words of a text that tell what it is about, without their endings."""
    return {stem(word) for word in folded_words(text) if len(word) > 1 and word not in _ASKING}
