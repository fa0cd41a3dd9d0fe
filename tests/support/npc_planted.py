"""Worlds to look for leaks in: small, made from a number, and every text in them is a word that stands
nowhere else.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import UUID

# a word that was planted, or an id
CANARY = re.compile(r"canary-\d+-\d+|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
PUBLIC = {
    "npc": "appearance",
    "location": "description",
    "faction": "alignment",
    "item": "type",
    "event": "date",
    "quest": "status",
}
PRIVATE = ("secret_knowledge", "mood", "plans", "personality")
TYPES = (*PUBLIC, "npc", "npc", "ship")  # a type that nobody knows has no public attributes
SPREADING = ("KNOWS", "LOCATED_AT", "MEMBER_OF", "ALLIED_WITH")
OTHERS = ("OWNS", "HOSTILE_TO", "EMPLOYED_BY", "CHILD_OF", "QUEST_GIVER", "PARTICIPATED_IN")
BOTH_WAYS = ("ALLIED_WITH", "HOSTILE_TO")
# what is said is about, so that searches find it
WORDS = ("anvil", "bridge", "candle", "debt", "elixir", "forge", "gold", "harbour")


@dataclass(frozen=True)
class Planted:
    """An entity; `public` names the attributes that everyone who knows of it may see."""

    id: str
    type: str
    name: str
    attributes: dict[str, Any]
    public: frozenset[str]


@dataclass(frozen=True)
class PlantedEdge:
    """An edge, in one direction; `public` names the attributes that everyone who sees it may see."""

    source: str
    type: str
    target: str
    attributes: dict[str, Any]
    session: str
    confidence: float
    public: frozenset[str]

    @property
    def accepted(self) -> bool:
        return self.confidence >= 0.7


@dataclass(frozen=True)
class PlantedEntry:
    """What was said in a session, by whom (None: the game master) and to whom (None: everyone)."""

    session: str
    speaker: str | None
    text: str
    audience: tuple[str, ...] | None


@dataclass(frozen=True)
class PlantedChunk:
    """A text about an entity, and which of those who see that may know it (None: all of them)."""

    id: str
    entity: str
    text: str
    audience: tuple[str, ...] | None


@dataclass(frozen=True)
class PlantedWorld:
    """What is in a world."""

    entities: dict[str, Planted]
    edges: tuple[PlantedEdge, ...]
    entries: tuple[PlantedEntry, ...]
    chunks: tuple[PlantedChunk, ...]

    @property
    def npcs(self) -> list[str]:
        return [entity.id for entity in self.entities.values() if entity.type == "npc"]


def planted(seed: int) -> PlantedWorld:
    """The world of a number: six to fourteen entities and up to three edges from each, some secret, some not
    accepted, and words told.
    """
    chance, numbers = random.Random(seed), count()

    def canary() -> str:
        return f"canary-{seed}-{next(numbers)}"

    def attributes(names: list[str], *, opened: bool) -> tuple[dict[str, Any], set[str]]:
        made: dict[str, Any] = {n: canary() if chance.random() < 0.8 else {"in": [canary()]} for n in names}
        shown = {name for name in names if opened and chance.random() < 0.3}
        if shown:
            made["public"] = sorted(shown)
        return made, shown - {"secret_knowledge"}  # which no list of public attributes opens

    entities: dict[str, Planted] = {}
    for _ in range(chance.randint(6, 14)):
        id, type = str(UUID(int=chance.getrandbits(128), version=4)), chance.choice(TYPES)
        usual = [PUBLIC[type]] if type in PUBLIC else []
        held, shown = attributes(
            [*usual, *chance.sample(PRIVATE, chance.randint(0, 3))], opened=chance.random() < 0.3
        )
        entities[id] = Planted(id, type, canary(), held, frozenset({*shown, *usual}))
    ids = list(entities)
    for npc in entities.values():
        if npc.type == "npc" and chance.random() < 0.3:
            npc.attributes["knowledge_scope"] = [*chance.sample(sorted(set(TYPES)), 3), chance.choice(ids)]
    edges: dict[tuple[str, str, str], PlantedEdge] = {}
    for source in ids:
        for _ in range(chance.randint(0, 3)):
            type = chance.choice([*SPREADING * 3, *OTHERS, f"WHISPERS {canary()}"])
            target = chance.choice(ids)
            ways = [(source, target), (target, source)] if type in BOTH_WAYS else [(source, target)]
            if any((one, type, other) in edges for one, other in ways):
                continue  # a second saying would join the first
            held, shown = attributes(["note", "since"][: chance.randint(0, 2)], opened=chance.random() < 0.3)
            if chance.random() < 0.2:
                held[chance.choice(["secret", "hidden"])] = True
            session = canary()
            confidence = chance.choice([1.0, 0.9, 0.7, 0.69, 0.2] if chance.random() < 0.5 else [1.0])
            for one, other in ways:
                edges[one, type, other] = PlantedEdge(
                    one, type, other, held, session, confidence, frozenset(shown)
                )
    sessions = [canary(), canary()]

    def told() -> tuple[str, tuple[str, ...] | None]:
        text = " ".join([canary(), *chance.sample(WORDS, chance.randint(0, 3))])
        return text, None if chance.random() < 0.2 else tuple(chance.sample(ids, chance.randint(0, 3)))

    entries = [
        PlantedEntry(chance.choice(sessions), chance.choice([None, *ids]), *told())
        for _ in range(chance.randint(0, 12))
    ]
    chunks = [
        PlantedChunk(str(UUID(int=chance.getrandbits(128), version=4)), chance.choice(ids), *told())
        for _ in range(chance.randint(0, 24))
    ]
    return PlantedWorld(entities, tuple(edges.values()), tuple(entries), tuple(chunks))


def canaries(*what: object) -> set[str]:
    """The planted words and ids in what some values say of themselves."""
    return set(CANARY.findall(" ".join(map(repr, what))))
