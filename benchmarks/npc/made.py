"""Worlds of any size, made by a seed, to measure with: no story, and vectors of no words."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from uuid import UUID

import numpy as np

from kgot_lab.domains.npc.layers.memory import WorldLayers
from kgot_lab.domains.npc.layers.models import Chunk, LogEntry
from kgot_lab.domains.npc.models import Entity, Relationship
from kgot_lab.embedding.embedder import Matrix

WORLD_SEED = 16
ENTRIES = 1_000  # of the log
_TOGETHER = 2_000  # that are put in one change
_LEADS = {  # what an NPC's relationship is, by the type of what it leads to
    "npc": ("KNOWS", "CHILD_OF", "EMPLOYED_BY"),
    "location": ("LOCATED_AT",),
    "faction": ("MEMBER_OF",),
    "item": ("OWNS",),
    "event": ("PARTICIPATED_IN",),
    "quest": ("QUEST_GIVER",),
}
_TYPES = (*_LEADS, *["npc"] * (len(_LEADS) - 2))  # half of them NPCs


class Directions:
    """An embedder that gives each text a direction by its spelling alone, always the same.

    The vectors vary in `inner` of their dimensions, since those of real texts do not fill all of theirs
    either; how many makes a great difference to an index that finds the nearest.
    """

    def __init__(self, dimension: int, inner: int | None = None) -> None:
        self.dimension, self.inner = dimension, inner or dimension
        self.name = f"directions that vary in {self.inner} of {dimension}"
        self.digest = hashlib.sha256(self.name.encode()).hexdigest()
        self._across = np.random.default_rng(WORLD_SEED).standard_normal((self.inner, dimension))

    def embed(self, texts: Sequence[str]) -> Matrix:
        """A row of length 1 for each text."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
        rows = np.array([np.random.default_rng(seed).standard_normal(self.inner) for seed in seeds]).reshape(
            -1, self.inner
        )
        across = rows @ self._across if self.inner < self.dimension else rows
        return np.asarray(across / np.linalg.norm(across, axis=1, keepdims=True), np.float32)


def made_world(layers: WorldLayers, entities: int, relationships: int, chunks: int) -> list[str]:
    """Make a world of so many things in an empty one; the ids of its NPCs."""
    chance = random.Random(WORLD_SEED)

    def id() -> str:
        return str(UUID(int=chance.getrandbits(128), version=4))

    made = [
        Entity(_TYPES[n % len(_TYPES)], f"name {n}", {"appearance": f"grey {n}", "mood": "calm"}, id())
        for n in range(entities)
    ]
    npcs = [each for each in made if each.type == "npc"]
    places = [each for each in made if each.type == "location"]
    told = {
        tie.key: tie
        for one, other in zip(places[1:], places, strict=False)
        if (tie := Relationship(one.id, other.id, "LOCATED_AT"))
    }
    while len(told) < relationships:
        other = chance.choice(made)
        tie = Relationship(chance.choice(npcs).id, other.id, chance.choice(_LEADS[other.type]))
        told[tie.key] = tie
    located = [tie for tie in told.values() if tie.type == "LOCATED_AT"]
    layers.world.add(made, located)  # in one change, since a later place would end an earlier one
    ties = [tie for tie in told.values() if tie.type != "LOCATED_AT"]
    for start in range(0, len(ties), _TOGETHER):
        layers.world.add([], ties[start : start + _TOGETHER])
    ids = [npc.id for npc in npcs]
    layers.log.append(
        LogEntry(f"session {n % 10}", f"gold {n}", tuple(chance.sample(ids, 3)), chance.choice(ids))
        for n in range(ENTRIES)
    )
    for start in range(0, chunks, _TOGETHER):
        numbers = range(start, min(chunks, start + _TOGETHER))
        layers.chunks.add(
            Chunk(chance.choice(made).id, f"told of {n}", None if n % 4 else (chance.choice(ids),), id())
            for n in numbers
        )
    return ids
