"""The layers of a world: session log (L1), dense retrieval of texts (L2), and a character's context."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from kgot_lab.arguments import check_arguments
from kgot_lab.domains.npc.layers import storage as sql
from kgot_lab.domains.npc.layers.models import (
    DEFAULT_RANKING,
    Chunk,
    ChunkMatch,
    ContextQuery,
    ContextRanking,
    ContextResult,
    LogEntry,
    check_ids,
)
from kgot_lab.domains.npc.layers.storage import audience_text, entry_from_row
from kgot_lab.domains.npc.models import Entity, IdentitySnapshot, check_id
from kgot_lab.domains.npc.policy import DEFAULT_POLICY, VisibilityPolicy
from kgot_lab.domains.npc.statements import WorldStorage, uuids
from kgot_lab.domains.npc.visibility import format_entity, sort_by_name
from kgot_lab.domains.npc.world import NpcWorld, require_entities
from kgot_lab.embedding.embedder import Embedder, Matrix, checked_embedder
from kgot_lab.errors import BadInput, require, require_amount, require_count
from kgot_lab.text.cleaning import checked_text, single_line
from kgot_lab.text.words import searched_words


def _storage_of(world: NpcWorld) -> WorldStorage:
    require(world, NpcWorld, "layers lie on an NpcWorld")
    return world.storage


# Texts about the entities of a world, for dense retrieval (L2).


class SemanticIndex:
    """Chunks with the embeddings of one model.

    Its own methods see all of them, as the author of a world does. Raises BadInput if there are embeddings of
    another model, StoreUnavailable for a server without pgvector.
    """

    def __init__(self, world: NpcWorld, embedder: Embedder) -> None:
        checked_embedder(embedder)
        self.embedder, self.storage = embedder, _storage_of(world)
        self.storage.prepare_chunks()
        self._refuse_other_embedders()

    @check_arguments
    def add(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks, all or none, replacing those with the same ids.

        Raises BadInput if an entity does not exist.
        """
        chunks = list(chunks)
        vectors = self.embedder.embed([item.text for item in chunks])
        with self.storage.changing():
            self._refuse_other_embedders()
            ids = {id for item in chunks for id in (item.entity_id, *(item.audience or ()))}
            require_entities(self.storage, ids)
            for item, vector in zip(chunks, vectors, strict=True):
                id, entity = uuids(item.id, item.entity_id)
                values: dict[str, Any] = {"id": id, "entity": entity, "text": item.text}
                values |= {"audience": audience_text(item.audience), "embedder": self.embedder.digest}
                self.storage.rows(sql.PUT_CHUNK, values | {"vector": self.storage.vector(vector)})

    def delete(self, id: str) -> None:
        """Delete a chunk.

        Raises BadInput if it does not exist.
        """
        (chunk_id,) = uuids(check_id(id))
        with self.storage.changing():
            if not self.storage.rows(sql.CHUNK_EXISTS, {"id": chunk_id}):
                raise BadInput(f"there is no chunk {chunk_id}")
            self.storage.rows(sql.DELETE_CHUNK, {"id": chunk_id})

    def search(self, query: str, limit: int = 10) -> tuple[ChunkMatch, ...]:
        """Return the chunks with the largest cosine with the query, regardless of who may know them."""
        require_count(limit, 1, "limit", "how many texts are found")
        return self.storage.nearest(self.embed_query(query), self.embedder.digest, limit)

    def embed_query(self, query: str) -> Matrix:
        """Return the embedding of a query, shape (dimension,)."""
        vector: Matrix = self.embedder.embed([checked_text(query, "the question")])[0]
        return vector

    def _refuse_other_embedders(self) -> None:
        if self.storage.rows(sql.OTHER_EMBEDDERS, {"embedder": self.embedder.digest}):
            problem = (
                f"the texts of this world have the vectors of another embedder than {self.embedder.name}"
            )
            raise BadInput(f"{problem}: open it with that one")


# The log of a world's sessions: verbatim entries, and who heard them (L1).

_MAX_QUERY_WORDS = 500  # of a query that are searched for
_Select = Callable[[str], str]  # the statement that reads entries under a condition
_MAX_INDEXED_LENGTH = 100_000  # characters of an entry; PostgreSQL indexes at most 1 MB of text


class SessionEntries:
    """The entries of a log, for reading: all of them, or what one character said and heard.

    For a character no policy and no scope removes entries, and who else heard one is not shown. Raises BadInput if
    the character does not exist.
    """

    def __init__(self, world: NpcWorld, npc_id: str | None = None) -> None:
        self.world, self.storage, self.npc_id = world, _storage_of(world), npc_id

    def search(self, words: str, limit: int = 10, *, session_id: str = "") -> tuple[LogEntry, ...]:
        """Return the entries of a session or of all with any of the words, in any inflected form in English.

        Those with more of them come first, then the latest.
        """
        require_count(limit, 1, "limit", "how many entries are found")
        words = checked_text(words, "the words that are looked for", blank=True)
        # in quotes FTS5 treats none as an operator
        terms = [f'"{word}"' for word in dict.fromkeys(searched_words(words))][:_MAX_QUERY_WORDS]
        found = sql.select_entries_with_words
        return self._entries(found, session_id, terms=terms, limit=limit) if terms else ()

    def last(self, limit: int = 10, *, session_id: str = "") -> tuple[LogEntry, ...]:
        """Return the last entries of a session or of all, in order."""
        require_count(limit, 1, "limit", "how many entries are found")
        return self._entries(sql.select_last_entries, session_id, limit=limit)[::-1]

    def _entries(self, statement: _Select, session_id: str, **values: Any) -> tuple[LogEntry, ...]:
        condition = sql.ALWAYS_TRUE
        if (npc := self.npc_id) is not None:
            condition, values["npc"] = sql.HEARD_CONDITION, uuids(npc)[0]
        if session_id:
            values["session"] = checked_text(session_id, "the session of entries")
            condition += " AND x.session_id = :session"
        entries = tuple(map(entry_from_row, self.storage.rows(statement(condition), values)))
        if npc is None:
            return entries
        self.world.get_entity(npc)
        return tuple(replace(entry, audience=(npc,)) for entry in entries)


class SessionLog(SessionEntries):
    """What was said in a world: an append-only log that outlives its speakers.

    Its own methods see all of it, `log_of` does not.
    """

    def __init__(self, world: NpcWorld) -> None:
        super().__init__(world)
        self.storage.prepare_log()

    @check_arguments
    def append(self, entries: Iterable[LogEntry]) -> None:
        """Add entries, all or none.

        Raises BadInput if a speaker or a member of an audience does not exist.
        """
        entries = list(entries)
        with self.storage.changing():
            ids = {id for entry in entries for id in (*(entry.audience or ()), entry.speaker_id) if id}
            require_entities(self.storage, ids)
            for each in entries:
                # a server in the C locale treats ’ as a letter, and É as different from é
                words = " ".join(searched_words(each.text[:_MAX_INDEXED_LENGTH]))
                speaker = uuids(each.speaker_id)[0] if each.speaker_id else None
                values: dict[str, Any] = {"session": each.session_id, "text": each.text, "words": words}
                values |= {"audience": audience_text(each.audience), "at": each.at or self.world.now()}
                self.storage.rows(sql.APPEND, values | {"speaker": speaker})

    def log_of(self, npc_id: str) -> SessionEntries:
        """Return the log as a character heard it: what it said, and what was said to it or to everyone."""
        return SessionEntries(self.world, self.world.sight(npc_id).npc_id)


class WorldLayers:
    """A world with its log (L1) and, with an embedder, its texts (L2) beside the graph (L3).

    Raises what SemanticIndex raises.
    """

    def __init__(self, world: NpcWorld, embedder: Embedder | None = None) -> None:
        self.world, self.log = world, SessionLog(world)
        self.has_texts = embedder is not None
        if embedder is not None:
            self.chunks = SemanticIndex(world, embedder)

    def memory(self, npc_id: str, *, policy: VisibilityPolicy = DEFAULT_POLICY) -> NpcMemory:
        """Return the memory of a character, valid as long as the character exists."""
        return NpcMemory(self, npc_id, policy)


class NpcMemory:
    """What a character knows: the graph it sees, the log it heard, and the texts it may know."""

    def __init__(self, layers: WorldLayers, npc_id: str, policy: VisibilityPolicy = DEFAULT_POLICY) -> None:
        self.layers = layers
        self.sight = layers.world.sight(npc_id, policy=policy)
        self.log = layers.log.log_of(npc_id)
        self.npc_id = self.sight.npc_id

    def __repr__(self) -> str:
        return f"<what {self.npc_id} knows>"

    def query_with_context(
        self, query: str, scope: Iterable[str] | None = None, *, ranking: ContextRanking = DEFAULT_RANKING
    ) -> tuple[ContextResult, ...]:
        """Return the texts ranked by similarity to the query and by distance in the graph.

        Only entities that the character sees are searched, of those in `scope` (ids, or None for all).
        PostgreSQL needs one query, in SQLite graph and texts are read separately. Raises BadInput
        if the ranking or the scope is invalid.
        """
        require(ranking, ContextRanking, "a ranking of texts is a ContextRanking(hops, limit, weight)")
        if not self.layers.has_texts:
            raise BadInput("texts are searched with their embedder: WorldLayers(world, embedder)")
        ids = None if scope is None else check_ids(scope, "a scope")
        chunks = self.layers.chunks
        vector, embedder = chunks.embed_query(query), chunks.embedder.digest
        asked = ContextQuery(self.npc_id, vector, embedder, ids, ranking, self.sight.policy)
        return chunks.storage.query_with_context(asked)


# The hot context of a character: identity, scene and relevant texts, within a time limit.


ASSEMBLY_THREAD_NAME = "hot context"  # the name of the threads that assemble it


@dataclass(frozen=True)
class NpcScene:
    """Where a character is, who it sees there, and what it heard last, in order."""

    places: tuple[Entity, ...]
    present: tuple[Entity, ...]
    heard: tuple[LogEntry, ...]


@dataclass(frozen=True)
class HotContext:
    """The parts that were ready in time, None for the others, and the seconds taken."""

    identity: IdentitySnapshot | None
    scene: NpcScene | None
    passages: tuple[ContextResult, ...] | None
    seconds: float

    @property
    def missing(self) -> tuple[str, ...]:
        """The parts that were not ready at the limit."""
        return tuple(part for part in ("identity", "scene", "passages") if getattr(self, part) is None)

    @property
    def text(self) -> str:
        """The parts that are ready, a line each, for a prompt."""
        who, scene = self.identity, self.scene
        lines = [format_entity(who.entity)] if who else []
        lines += [f"{each.type} {format_entity(each.target)}" for each in who.ties] if who else []
        lines += [f"here: {format_entity(each)}" for each in (*scene.places, *scene.present)] if scene else []
        lines += [single_line(f"heard: {entry.text}") for entry in scene.heard] if scene else []
        return "\n".join([*lines, *(single_line(f"{e.entity.name}: {e.text}") for e in self.passages or ())])


@check_arguments
def hot_context(
    memory: NpcMemory,
    query: str,
    *,
    session_id: str = "",
    limit: float = 0.15,
    wait: Callable[[threading.Event, float], object] = threading.Event.wait,
    clock: Callable[[], float] = time.perf_counter,
) -> HotContext:
    """Assemble the context of a character's next line: identity, scene and relevant texts, in this order.

    There are no texts without an embedder. The scene has what it heard in a session or in all. At the limit,
    in seconds, what is ready is returned. The part being read is read to its end and dropped, and later parts
    are not started. Until then the storage is busy with it. `wait(done, seconds)` waits for all parts. Raises
    what the parts raise before the limit.
    """
    require_amount(limit, "limit", positive=True)
    parts: dict[str, Callable[[], Any]] = {
        "identity": memory.sight.identity_snapshot,
        "scene": lambda: _read_scene(memory, session_id),
        "passages": lambda: memory.query_with_context(query) if memory.layers.has_texts else (),
    }
    ready: dict[str, Any] = {}
    failed: list[BaseException] = []
    done, cancelled = threading.Event(), threading.Event()

    def assemble() -> None:
        try:
            for name, read_part in parts.items():
                if not cancelled.is_set():
                    ready[name] = read_part()
        except BaseException as error:
            failed.append(error)
        done.set()

    began = clock()
    threading.Thread(target=assemble, name=ASSEMBLY_THREAD_NAME, daemon=True).start()
    wait(done, limit)
    cancelled.set()
    shown, seconds = {name: ready.get(name) for name in parts}, clock() - began
    if failed:
        raise failed[0]
    return HotContext(**shown, seconds=seconds)


def _read_scene(memory: NpcMemory, session_id: str) -> NpcScene:
    seen = memory.sight.visible_subgraph()
    located = [(item.source_id, item.target_id) for item in seen.relationships if item.type == "LOCATED_AT"]
    places = {place for entity_id, place in located if entity_id == memory.npc_id}
    present = {entity_id for entity_id, place in located if place in places} - {memory.npc_id}
    around, others = ([e for e in seen.entities if e.id in ids] for ids in (places, present))
    heard = memory.log.last(session_id=session_id)
    return NpcScene(sort_by_name(around), sort_by_name(others), heard)
