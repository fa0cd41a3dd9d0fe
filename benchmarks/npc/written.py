"""The town and its evening as their author wrote them, and what the author says of who knows what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kgot_lab.io.files import bundled

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.types import Triple

_FOLDER = "npc-town"
BEFORE = "before the evening"  # the session in which the author told of the town
RelationshipKey = tuple[str, str, str]  # of a relationship: the ids of its ends, and its type


@dataclass(frozen=True)
class KnowsGold:
    """What the author says: whether someone knows of something, by which relationship, or why not and where
    the way breaks.
    """

    npc: str
    thing: str
    knows: bool
    why_not: str
    edge: RelationshipKey | None


@dataclass(frozen=True)
class WrittenTown:
    """The town; `ids` are the ids of its entities by the short keys that the files use."""

    ids: Mapping[str, str]
    entities: tuple[Entity, ...]
    relationships: tuple[Relationship, ...]
    gold: tuple[KnowsGold, ...]


@dataclass(frozen=True)
class WrittenFact:
    """A fact that the author finds in a line, and what the game master makes of it: "true", "false", or
    "later".
    """

    triple: Triple
    ruling: str


@dataclass(frozen=True)
class PlayLine:
    """A line of the evening; one without a speaker is a break, in which the game master goes through what
    waits.
    """

    number: int
    at: datetime
    speaker: str
    text: str
    facts: tuple[WrittenFact, ...] = ()

    @property
    def session(self) -> str:
        """What it is called as a source: each line is one of its own."""
        return f"evening, line {self.number}"

    @property
    def told(self) -> str:
        """The line with its speaker, as an extractor reads it."""
        return f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class AskedAt:
    """What the author says of a moment of the evening: whether someone knows of something by then."""

    npc: str
    thing: str
    at: datetime
    knows: bool


@dataclass(frozen=True)
class WrittenEvening:
    """The lines of an evening, and who knows of what when."""

    lines: tuple[PlayLine, ...]
    asked: tuple[AskedAt, ...]
    day: str

    def moment(self, clock: str) -> datetime:
        """A time of the evening, such as "21:10"."""
        return _moment(self.day, clock)


def written_town() -> WrittenTown:
    """The town that comes with the package."""
    town, gold = _read("town.json"), _read("gold.json")
    ids = {key: str(uuid5(NAMESPACE_URL, f"{_FOLDER}/{key}")) for key, *_ in town["entities"]}

    def edge(told: list[str] | None) -> RelationshipKey | None:
        return None if told is None else (ids[told[0]], ids[told[2]], told[1])

    entities = tuple(
        Entity(type, name, attributes, ids[key]) for key, type, name, attributes in town["entities"]
    )
    relationships = tuple(_relationship(ids, *told) for told in town["relationships"])
    known = [KnowsGold(ids[npc], ids[thing], True, "", edge(by)) for npc, thing, by in gold["knows"]]
    unknown = [
        KnowsGold(ids[npc], ids[thing], False, why, edge(at)) for npc, thing, why, at in gold["knows_not"]
    ]
    return WrittenTown(ids, entities, relationships, (*known, *unknown))


def written_evening() -> WrittenEvening:
    """The evening that comes with the package, played in that town."""
    told, ids = _read("evening.json"), written_town().ids
    lines = tuple(_line(number, told["day"], *line) for number, line in enumerate(told["lines"], start=1))
    asked = tuple(
        AskedAt(ids[npc], ids[thing], _moment(told["day"], at), knows)
        for npc, thing, at, knows in told["asked"]
    )
    return WrittenEvening(lines, asked, told["day"])


def settled(town: WrittenTown, world: NpcWorld | None = None) -> NpcWorld:
    """A world with the town in it: the one that is given, or a new one in memory, whose clock stands at the
    evening's beginning.
    """
    begins = written_evening().lines[0].at
    world = world or open_world(now=lambda: begins)
    world.add(town.entities, town.relationships)
    return world


def _relationship(
    ids: Mapping[str, str],
    source: str,
    type: str,
    target: str,
    attributes: Mapping[str, Any] | None = None,
    confidence: float = 1.0,
) -> Relationship:
    return Relationship(
        ids[source], ids[target], type, attributes or {}, Provenance(BEFORE, confidence=confidence)
    )


def _line(number: int, day: str, clock: str, speaker: str, text: str, *facts: list[Any]) -> PlayLine:
    found = tuple(WrittenFact(Triple(*fact[:4]), fact[4]) for fact in facts)
    return PlayLine(number, _moment(day, clock), speaker, text, found)


def _moment(day: str, clock: str) -> datetime:
    return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)


def _read(name: str) -> Any:
    return json.loads((bundled(_FOLDER) / name).read_text(encoding="utf-8"))
