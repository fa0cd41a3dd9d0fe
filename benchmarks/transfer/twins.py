"""Sixty stories told again in other words, and as questions: does a system that finds a story in the same
phrases find it reworded?
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

from kgot_lab.io.files import bundled

from benchmarks.structure.analogies import Choice, Choices, choices, hashed
from kgot_lab.errors import UnknownName

TELLINGS = ("same phrases", "reworded", "same phrases, turned beside", "reworded, turned beside")


@dataclass(frozen=True)
class StoryTwin:
    """A right choice of StoryAnalogy told again: `twin` tells the same events in other words, `turned` other
    events in the same words.
    """

    id: str
    question: Choice
    twin: str
    turned: str

    @property
    def story(self) -> str:
        """The right choice as it stands in the set."""
        return self.question.choices[self.question.answer]


@cache
def story_twins() -> tuple[StoryTwin, ...]:
    """The sixty twins, in the order of their questions."""
    asked = {question.id: question for question in choices("storyanalogy-mc").questions}
    lines = bundled("story-twins/twins.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple(StoryTwin(row["_id"], asked[row["question"]], row["twin"], row["turned"]) for row in rows)


def twin_questions(telling: str) -> Choices:
    """The questions of the twins in one telling, one of TELLINGS; raises UnknownName.

    The right choice is the story in "same phrases", and its twin where it is "reworded". The wrong ones are
    those of StoryAnalogy; with "turned beside" one of the two that were drawn by chance makes way for the
    story with its outcome turned. The places of the choices stay; a question is locked where that of
    StoryAnalogy is.
    """
    if telling not in TELLINGS:
        raise UnknownName("telling", telling, TELLINGS)
    made = tuple(_question(twin, telling) for twin in story_twins())
    away = choices("storyanalogy-mc").locked
    locked = frozenset(twin.id for twin in story_twins() if twin.question.id in away)
    return Choices(f"story-twins, {telling}", made, locked)


def _question(twin: StoryTwin, telling: str) -> Choice:
    asked = twin.question
    texts, kinds = list(asked.choices), list(asked.kinds)
    if telling.startswith("reworded"):
        texts[asked.answer] = twin.twin
    if telling.endswith("turned beside"):
        drawn = [place for place, kind in enumerate(kinds) if kind == "random"]
        place = min(drawn, key=lambda each: hashed("turned", twin.id, str(each)))
        texts[place], kinds[place] = twin.turned, "turned"
    return Choice(twin.id, asked.source, tuple(texts), asked.answer, tuple(kinds), group=asked.group)


def words_shared(words_of: Callable[[str], frozenset[str]]) -> Mapping[str, float]:
    """For each twin the share of content words that it has in common with its story, over those of the one
    with fewer.
    """
    shares = {}
    for each in story_twins():
        twin, story = words_of(each.twin), words_of(each.story)
        shares[each.id] = len(twin & story) / max(1, min(len(twin), len(story)))
    return shares
