"""An evening of play, heard into a world line by line: what an extractor finds is added, and in the breaks
the game master decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from benchmarks.npc.written import PlayLine, RelationshipKey, WrittenEvening, WrittenTown, settled
from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.sessions import ImportedFacts, WorldReview, hear, placed
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.memory.extraction import Extraction, Extractor
from kgot_lab.types import LLM, Triple

_UNSAID = "not said"  # of a fact that the author does not find in the evening


@dataclass(frozen=True)
class PlayedLine:
    """What became of a line: what was taken from it, what of that is new in the world, and in a break what
    was decided.
    """

    line: PlayLine
    extraction: Extraction = field(default_factory=Extraction)
    heard: ImportedFacts = field(default_factory=ImportedFacts)
    decided: tuple[tuple[Relationship, str], ...] = ()  # with the ruling: "accepted", "rejected" or "left"


@dataclass(frozen=True)
class FactOutcome:
    """What became of a fact that was found in the evening, or missed; `author` is "true", "false", "later" or
    "not said".
    """

    at: datetime
    fact: str
    author: str
    outcome: str


def said_in(evening: WrittenEvening) -> dict[str, list[Triple]]:
    """What the author finds in each line, for an extractor that is simulated."""
    return {line.told: [each.triple for each in line.facts] for line in evening.lines if line.speaker}


def replay_evening(
    world: NpcWorld, evening: WrittenEvening, llm: LLM, *, until: datetime | None = None
) -> tuple[PlayedLine, ...]:
    """Play an evening in a world up to a time, at the times of its lines; what was heard before changes
    nothing. Raises LLMError.

    The game master is simulated: in a break everything that waits from this evening is decided as the
    author's facts have it, and what is none of them is rejected.
    """
    extractor, sessions = Extractor(llm), {line.session for line in evening.lines}
    rulings = _rulings(evening, world.find_entities())
    played = []
    for line in evening.lines:
        if until is not None and line.at > until:
            break
        then = _at(world, line.at)
        if line.speaker:
            found = extractor.extracted(line.told)
            heard = hear(then, found.triples, Provenance(line.session, line.at))
            played.append(PlayedLine(line, found, heard))
        else:
            waiting = [each for each in WorldReview(then).queue() if each.provenance.session_id in sessions]
            played.append(
                PlayedLine(line, decided=tuple((each, _decide(then, each, rulings)) for each in waiting))
            )
    return tuple(played)


def world_at(town: WrittenTown, evening: WrittenEvening, llm: LLM, moment: datetime) -> NpcWorld:
    """The town as it was at some moment of the evening: a world in memory in which the evening is played up
    to it.
    """
    world = settled(town)
    replay_evening(world, evening, llm, until=moment)
    return world


def fact_outcomes(world: NpcWorld, played: Sequence[PlayedLine]) -> tuple[FactOutcome, ...]:
    """What became of every fact of an evening that was played for the first time, line by line; what was
    missed comes last.
    """
    entities = world.find_entities()
    decided = {
        (each.key, each.provenance.session_id): ruling for line in played for each, ruling in line.decided
    }
    return tuple(
        outcome for line in played for outcome in _of_line(line, entities, decided, world.accept_from)
    )


def _of_line(
    played: PlayedLine,
    entities: Sequence[Entity],
    decided: Mapping[tuple[RelationshipKey, str], str],
    accept_from: float,
) -> Iterator[FactOutcome]:
    line = played.line
    author = {fact.triple: fact.ruling for fact in line.facts}
    for triple in played.extraction.triples:
        meant = placed(triple, entities, Provenance(line.session))
        if meant is None:
            became = "nobody of that name"
        elif triple.confidence >= accept_from:
            became = "accepted at once"
        else:
            became = f"waited, {decided.get((meant.key, line.session), 'left')}"
        yield FactOutcome(line.at, str(triple), author.get(triple, _UNSAID), became)
    for refused in played.extraction.refused:
        yield FactOutcome(line.at, refused, _UNSAID, "refused: the line does not say it")
    for triple in (each for each in author if each not in played.extraction.triples):
        yield FactOutcome(line.at, str(triple), author[triple], "missed")


def _at(world: NpcWorld, at: datetime) -> NpcWorld:
    """The same world with a clock that stands at some time."""
    return NpcWorld(world.storage, accept_from=world.accept_from, now=lambda: at)


def _rulings(evening: WrittenEvening, entities: Sequence[Entity]) -> dict[RelationshipKey, str]:
    """What the author says of each relationship that the evening tells of."""
    facts = [fact for line in evening.lines for fact in line.facts]
    meant = [(placed(fact.triple, entities, Provenance()), fact.ruling) for fact in facts]
    return {each.key: ruling for each, ruling in meant if each is not None}


def _decide(world: NpcWorld, waiting: Relationship, rulings: Mapping[RelationshipKey, str]) -> str:
    ruling = rulings.get(waiting.key, "false")
    if ruling == "later":
        return "left"
    review = WorldReview(world)
    (review.accept if ruling == "true" else review.reject)(waiting)
    return "accepted" if ruling == "true" else "rejected"
