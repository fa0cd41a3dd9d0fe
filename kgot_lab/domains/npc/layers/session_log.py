"""The log of a world's sessions: what was said, word by word, and who heard it (L1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgot_lab.domains.npc.layers import statements as sql
from kgot_lab.domains.npc.layers.models import LogEntry
from kgot_lab.domains.npc.layers.storage import audience_text, entry_of, layers_of
from kgot_lab.domains.npc.statements import uuids
from kgot_lab.domains.npc.world import NpcWorld, require_entities
from kgot_lab.errors import require, require_count
from kgot_lab.memory.claims.claim import plain_text
from kgot_lab.text.words import searched_words

_MOST_WORDS = 500  # of a question that are looked up
_INDEXED = 100_000  # characters of an entry; PostgreSQL holds the words of 1 MB at most


class SessionLog:
    """What was said in a world. It is appended to, and outlives those who spoke; its own methods see all of
    it, `log_of` does not.
    """

    def __init__(self, world: NpcWorld) -> None:
        self.world, self.storage = world, layers_of(world)
        self.storage.prepare_log()

    def append(self, entries: Iterable[LogEntry]) -> None:
        """Add some entries, all or none; raises BadInput where a speaker or one of an audience is not there."""
        entries = list(entries)
        for entry in entries:
            require(entry, LogEntry, "what is appended to a log is a LogEntry(session_id, text, audience, …)")
        with self.world.storage.changing():
            require_entities(
                self.world.storage,
                {id for each in entries for id in (*(each.audience or ()), each.speaker_id) if id},
            )
            for each in entries:
                # a server in the C locale takes ’ for a letter, and É for no é
                words = " ".join(searched_words(each.text[:_INDEXED]))
                told = {
                    "session": each.session_id,
                    "text": each.text,
                    "audience": audience_text(each.audience),
                    "words": words,
                }
                speaker = uuids(each.speaker_id)[0] if each.speaker_id else None
                self.storage.rows(sql.APPEND, {**told, "speaker": speaker, "at": each.at or self.world.now()})

    def search(self, words: str, limit: int = 10) -> tuple[LogEntry, ...]:
        """What was said with any of some words, with more of them first, then later ones; English words in
        any of their forms.
        """
        return self._found(sql.EVERYTHING, words, limit)

    def last(self, limit: int = 10, *, session_id: str = "") -> tuple[LogEntry, ...]:
        """What was said last, in a session or in all, in its order."""
        return self._last(sql.EVERYTHING, limit, session_id)

    def log_of(self, npc_id: str) -> CharacterLog:
        """The log as someone has heard it."""
        return CharacterLog(self, self.world.sight(npc_id).npc_id)

    def _found(self, who: str, words: str, limit: int, **npc: object) -> tuple[LogEntry, ...]:
        require_count(limit, 1, "limit", "how many entries are found")
        words = plain_text(words, "the words that are looked for", blank=True)
        # in quotes FTS5 takes none for its own
        terms = [f'"{word}"' for word in dict.fromkeys(searched_words(words))][:_MOST_WORDS]
        rows = (
            self.storage.rows(sql.entries_with(who), {"terms": terms, "limit": limit, **npc}) if terms else []
        )
        return tuple(map(entry_of, rows))

    def _last(self, who: str, limit: int, session_id: str, **npc: object) -> tuple[LogEntry, ...]:
        require_count(limit, 1, "limit", "how many entries are found")
        session = {"session": plain_text(session_id, "the session of entries")} if session_id else {}
        rows = self.storage.rows(
            sql.last_entries(who, of_session=bool(session)), {"limit": limit, **session, **npc}
        )
        return tuple(map(entry_of, reversed(rows)))


class CharacterLog:
    """The log as one of those in a world has heard it: what it said, and what was said to it or to everyone.

    No policy and no scope takes that away again. Who else heard it is not told.
    """

    def __init__(self, log: SessionLog, npc_id: str) -> None:
        self._log, self.npc_id = log, npc_id

    def search(self, words: str, limit: int = 10) -> tuple[LogEntry, ...]:
        """What it heard with any of some words, with more of them first, then later ones; raises BadInput
        where it is not there.
        """
        return self._told(self._log._found(sql.HEARD, words, limit, npc=uuids(self.npc_id)[0]))

    def last(self, limit: int = 10, *, session_id: str = "") -> tuple[LogEntry, ...]:
        """What it heard last, in a session or in all, in its order; raises BadInput where it is not there."""
        return self._told(self._log._last(sql.HEARD, limit, session_id, npc=uuids(self.npc_id)[0]))

    def _told(self, entries: tuple[LogEntry, ...]) -> tuple[LogEntry, ...]:
        self._log.world.get_entity(self.npc_id)
        return tuple(replace(each, audience=(self.npc_id,)) for each in entries)
