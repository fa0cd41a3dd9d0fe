"""An invented town, what its author says of who knows what, and an evening of play that is heard into it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from kgot_lab.domains.npc.models import Entity, Provenance, Relationship
from kgot_lab.domains.npc.opening import open_world
from kgot_lab.domains.npc.sessions import ImportedFacts, WorldReview, import_statements, resolve_relationship
from kgot_lab.domains.npc.world import NpcWorld
from kgot_lab.errors import LLMError
from kgot_lab.io.files import bundled_path
from kgot_lab.llm.presets import FREE
from kgot_lab.memory.extraction import Extraction, extract_by_schema
from kgot_lab.text.cleaning import fence_text
from kgot_lab.types import LLM, Prompt, Reply, Triple, Usage

LIKELY, UNLIKELY = 0.9, 0.1  # the confidence of facts that were read rightly, and of others


@dataclass(frozen=True)
class Competence:
    """How often the simulated extractor errs, each rate from 0 to 1, and the seed that errors are drawn from.

    missed: a fact is left out. invented: its object is a made-up name. read: another name is taken. assured: a
    misread fact looks as likely as one that was read rightly.
    """

    missed: float = 0.0
    invented: float = 0.0
    read: float = 0.0
    assured: float = 0.0
    seed: int = 0

    def errs(self, rate: str, *where: str) -> bool:
        """Draw whether an error happens here: the same for the same seed and texts."""
        chance = getattr(self, rate)
        return bool(chance) and _drawn(str(self.seed), rate, *where) < chance

    def __str__(self) -> str:
        rates = (
            f"{name}={getattr(self, name):g}".replace("=0.", "=.")
            for name in ("missed", "invented", "read", "assured")
        )
        return ",".join((*rates, f"seed={self.seed}"))


def _drawn(*where: str) -> float:
    return int.from_bytes(hashlib.sha256("\0".join(where).encode("utf-8", "replace")).digest()[:7]) / 2**56


def _made_up_word(number: int) -> str:
    """Return the three-syllable word of a number below 140,608."""
    syllables = [consonant + vowel for consonant in "bdfgklmnprtvz" for vowel in "aiou"]
    number = number * 7_919 % 52**3  # neighbours look different
    return syllables[number // 2704 % 52] + syllables[number // 52 % 52] + syllables[number % 52]


def made_up(triple: Triple, seed: int) -> Triple:
    """Put a made-up name in the place of a fact's object: the same for each fact and seed."""
    first, second = (
        _made_up_word(int(140_608 * _drawn(str(seed), "name", part, str(triple)))) for part in "ab"
    )
    return Triple(triple.subject, triple.relation, f"{first.capitalize()}x {second.capitalize()}x")


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
    return json.loads((bundled_path(_FOLDER) / name).read_text(encoding="utf-8"))


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
    sessions = {line.session for line in evening.lines}
    rulings = _rulings(evening, world.find_entities())
    played = []
    for line in evening.lines:
        if until is not None and line.at > until:
            break
        then = _at(world, line.at)
        if line.speaker:
            found = extract_by_schema(llm, line.told)
            heard = import_statements(then, found.triples, Provenance(line.session, line.at))
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
        meant = resolve_relationship(triple, entities, Provenance(line.session))
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
    meant = [(resolve_relationship(fact.triple, entities, Provenance()), fact.ruling) for fact in facts]
    return {each.key: ruling for each, ruling in meant if each is not None}


def _decide(world: NpcWorld, waiting: Relationship, rulings: Mapping[RelationshipKey, str]) -> str:
    ruling = rulings.get(waiting.key, "false")
    if ruling == "later":
        return "left"
    review = WorldReview(world)
    (review.accept if ruling == "true" else review.reject)(waiting)
    return "accepted" if ruling == "true" else "rejected"


@dataclass(frozen=True)
class DocumentLeak:
    """How many others someone sees by the policy, and what the document's query tells beyond: more others,
    and hidden attributes.
    """

    npc: Entity
    seen: int
    entities: tuple[Entity, ...]
    attributes: tuple[tuple[Entity, str], ...]


def document_leak(world: NpcWorld, npc_id: str) -> DocumentLeak:
    """Compare both for someone in a world; raises BadInput where it is not there."""
    seen = {each.id: each for each in world.visible_subgraph(npc_id).entities}
    npc = seen.pop(npc_id)
    told = [each for each in world.visible_subgraph(npc_id, policy="document").entities if each.id != npc_id]
    beyond = tuple(each for each in told if each.id not in seen)
    hidden = (
        (each, name)
        for each in told
        if each.id in seen
        for name in each.attributes
        if name not in seen[each.id].attributes
    )
    return DocumentLeak(npc, len(seen), beyond, tuple(hidden))


class SimulatedExtractor:
    """A model that answers the prompt of `extract_by_schema` for texts whose facts are known, and errs at set
    rates.

    Of the rates it has `missed`, `invented` and `read`: a fact is left out; its object is a made-up name; its
    object is another of `names` that the text holds, or subject and object change places. A misread fact is
    LIKELY at the rate `assured`, else UNLIKELY. Errors are drawn by hash: the same text has the same reply.
    Raises LLMError for a text without gold.
    """

    price = FREE

    def __init__(
        self,
        said: Mapping[str, Sequence[Triple]],
        competence: Competence | None = None,
        *,
        names: Sequence[str] = (),
    ):
        self.competence, self._said, self._names = competence or Competence(), said, names
        self.name = f"simulated extractor:{self.competence}"

    def __call__(self, prompt: Prompt) -> Reply:
        asked = prompt.messages[-1].text
        for text, facts in self._said.items():
            if asked.startswith(fence_text(text, "a message")):
                reply = json.dumps(
                    {"triples": [self._noted(fact) for fact in self._found(text, facts)]}, ensure_ascii=False
                )
                return Reply(reply, Usage(len(asked.split()), len(reply.split())))
        raise LLMError(
            f"a simulated extractor knows the texts only that it has gold for, and this is none: {asked[:200]!r}"
        )

    def _found(self, text: str, facts: Sequence[Triple]) -> Iterator[Triple]:
        for fact in facts:
            where = (str(fact), text)
            if self.competence.errs("missed", *where):
                continue
            if self.competence.errs("invented", *where):
                yield Triple(*made_up(fact, self.competence.seed).identity, confidence=fact.confidence)
            elif self.competence.errs("read", *where):
                yield self._misread(
                    text, fact, LIKELY if self.competence.errs("assured", *where) else UNLIKELY
                )
            else:
                yield fact

    def _misread(self, text: str, fact: Triple, confidence: float) -> Triple:
        others = [name for name in self._names if name in text and name not in (fact.subject, fact.object)]
        if others:
            return Triple(fact.subject, fact.relation, others[0], confidence)
        return Triple(fact.object, fact.relation, fact.subject, confidence)

    @staticmethod
    def _noted(fact: Triple) -> dict[str, str | float]:
        return dict(zip(("subject", "relation", "object"), fact.identity, strict=True)) | {
            "confidence": fact.confidence
        }
