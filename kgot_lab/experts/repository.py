"""Storage of experts and their conversations: tables in SQLite, or in PostgreSQL by its address.

A change is stored before the caller hears of it. Every query names the owner of the conversations, and no
statement reads those of another.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import Expert, ExpertConfig, slug
from kgot_lab.memory.claims.claim import (
    from_micros,
    from_micros_or_none,
    to_micros,
    utc_now,
)
from kgot_lab.memory.sqlite_tables import open_tables
from kgot_lab.memory.tables import ClaimRow, Layout, TableBacked, TableStorage
from kgot_lab.types import Json

# All SQL of experts and their conversations, common to SQLite and PostgreSQL.

EXPERT_TABLES = (
    """CREATE TABLE experts (id TEXT PRIMARY KEY, body TEXT NOT NULL, created BIGINT NOT NULL, updated BIGINT NOT NULL, gone BIGINT)""",
    """CREATE TABLE conversations (id TEXT PRIMARY KEY, expert TEXT NOT NULL, owner TEXT NOT NULL, started BIGINT NOT NULL,
         last BIGINT NOT NULL, preview TEXT NOT NULL, chain TEXT NOT NULL)""",
    """CREATE TABLE messages (conversation TEXT NOT NULL, number BIGINT NOT NULL, id TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
         content TEXT NOT NULL, at BIGINT NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (conversation, number))""",
    """CREATE TABLE opinions (message TEXT PRIMARY KEY, thumb BIGINT NOT NULL, at BIGINT NOT NULL)""",
    """CREATE TABLE trials (id TEXT PRIMARY KEY, expert TEXT NOT NULL, body TEXT NOT NULL, begun BIGINT NOT NULL, ended BIGINT)""",
    """CREATE TABLE tokens (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, role TEXT NOT NULL, made BIGINT NOT NULL, revoked BIGINT)""",
)
EXPERT_INDEXES = (
    "CREATE INDEX experts_by_age ON experts (created, id)",  # a database created without it only needs longer for a page
    "CREATE INDEX conversations_by_expert ON conversations (expert, owner, last)",
    "CREATE INDEX conversations_by_chain ON conversations (chain)",
)
EXPERTS_LAYOUT = Layout("experts", 0x6B676C78, EXPERT_TABLES, EXPERT_INDEXES)  # "kglx"

# --- experts ---

EXPERT = "SELECT id, body, created, updated FROM experts WHERE id = :id AND gone IS NULL"
EXPERTS = "SELECT id, body, created, updated FROM experts WHERE gone IS NULL ORDER BY created, id"
EXPERTS_AFTER = """SELECT id, body, created, updated FROM experts
  WHERE gone IS NULL AND (created, id) > (:created, :after) ORDER BY created, id LIMIT :limit"""
CREATED = "SELECT created FROM experts WHERE id = :id"  # also of a deleted one, so that paging can continue
TAKEN = "SELECT id FROM experts WHERE id = :id OR substr(id, 1, :length) = :beginning"  # also of deleted ones: no id is reused
ADD_EXPERT = "INSERT INTO experts (id, body, created, updated) VALUES (:id, :body, :at, :at)"
CHANGE_EXPERT = "UPDATE experts SET body = :body, updated = :at WHERE id = :id"
REMOVE_EXPERT = "UPDATE experts SET body = '', gone = :at WHERE id = :id"
ACTIVE = "SELECT expert, count(*), max(last) FROM conversations WHERE owner = :owner GROUP BY expert"
ACTIVE_WITH = "SELECT expert, count(*), max(last) FROM conversations WHERE owner = :owner AND expert = ANY(:experts) GROUP BY expert"

# --- conversations ---

_SHOWN = """c.id, c.expert, c.started, c.last, c.preview, c.chain,
  (SELECT count(*) FROM messages m WHERE m.conversation = c.id)"""
CONVERSATION = (
    f"SELECT {_SHOWN} FROM conversations c WHERE c.id = :id AND c.expert = :expert AND c.owner = :owner"
)
CONVERSATIONS = f"""SELECT {_SHOWN} FROM conversations c WHERE c.expert = :expert AND c.owner = :owner
  ORDER BY c.last DESC, c.id LIMIT :limit OFFSET :offset"""
COUNT_CONVERSATIONS = "SELECT count(*) FROM conversations WHERE expert = :expert AND owner = :owner"
_GONE = "NOT EXISTS (SELECT 1 FROM experts e WHERE e.id = c.expert AND e.gone IS NULL)"
OWNED = f"""SELECT {_SHOWN} FROM conversations c WHERE c.owner = :owner ORDER BY c.last DESC, c.id LIMIT :limit OFFSET :offset"""
COUNT_OWNED = "SELECT count(*) FROM conversations c WHERE c.owner = :owner"
LEFT_BEHIND = f"""SELECT {_SHOWN} FROM conversations c WHERE c.owner = :owner AND {_GONE}
  ORDER BY c.last DESC, c.id LIMIT :limit OFFSET :offset"""
COUNT_LEFT_BEHIND = f"SELECT count(*) FROM conversations c WHERE c.owner = :owner AND {_GONE}"
CONTINUED = """SELECT id FROM conversations WHERE chain = :chain AND expert = :expert AND owner = :owner ORDER BY last DESC, id LIMIT 1"""
ADD_CONVERSATION = """INSERT INTO conversations (id, expert, owner, started, last, preview, chain)
  VALUES (:id, :expert, :owner, :at, :at, :preview, :chain)"""
TOUCH = "UPDATE conversations SET last = :at, chain = :chain WHERE id = :id"
LAST_MESSAGE = "SELECT coalesce(max(number), 0) FROM messages WHERE conversation = :id"
ADD_MESSAGE = """INSERT INTO messages (conversation, number, id, role, content, at, metadata)
  VALUES (:conversation, :number, :id, :role, :content, :at, :metadata)"""
MESSAGES = "SELECT id, role, content, at, metadata FROM messages WHERE conversation = :id ORDER BY number"
SAID_BEFORE = """SELECT m.id, m.role, m.content, m.at FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE c.expert = :expert AND c.owner = :owner AND c.id <> :conversation ORDER BY m.at DESC, m.id LIMIT :most"""
SPOKEN = """SELECT c.owner, m.id, m.content, m.at FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE c.expert = :expert AND m.role = 'user' AND m.at >= :since ORDER BY m.at DESC, m.id LIMIT :most"""
REMOVE_OPINIONS = (
    "DELETE FROM opinions WHERE message IN (SELECT id FROM messages WHERE conversation = ANY(:ids))"
)
REMOVE_MESSAGES = "DELETE FROM messages WHERE conversation = ANY(:ids)"
REMOVE_CONVERSATIONS = "DELETE FROM conversations WHERE id = ANY(:ids)"
OF_EXPERT = "SELECT id FROM conversations WHERE expert = :expert"
MESSAGE_OF = """SELECT m.id, m.role FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE m.id = :message AND c.id = :conversation AND c.expert = :expert AND c.owner = :owner"""
PUT_OPINION = """INSERT INTO opinions (message, thumb, at) VALUES (:message, :thumb, :at)
  ON CONFLICT (message) DO UPDATE SET thumb = excluded.thumb, at = excluded.at"""
TAKE_OPINION_BACK = "DELETE FROM opinions WHERE message = :message"
THUMBS = (
    "SELECT o.message, o.thumb FROM opinions o JOIN messages m ON m.id = o.message WHERE m.conversation = :id"
)
OPINIONS = """SELECT m.id, m.conversation, m.at, m.metadata, o.thumb, o.at FROM messages m JOIN conversations c ON c.id = m.conversation
  LEFT JOIN opinions o ON o.message = m.id WHERE c.expert = :expert AND m.role = 'assistant' ORDER BY m.at, m.id"""

# --- trials ---

ADD_TRIAL = "INSERT INTO trials (id, expert, body, begun) VALUES (:id, :expert, :body, :at)"
TRIALS = "SELECT id, body, begun, ended FROM trials WHERE expert = :expert ORDER BY begun, id"
RUNNING = "SELECT id, body, begun, ended FROM trials WHERE expert = :expert AND ended IS NULL ORDER BY begun, id LIMIT 1"
END_TRIAL = "UPDATE trials SET ended = :at WHERE id = :id AND ended IS NULL"

# --- tokens ---

ADD_TOKEN = "INSERT INTO tokens (hash, tenant, role, made) VALUES (:hash, :tenant, :role, :at)"
TOKENS = "SELECT hash, tenant, role FROM tokens WHERE revoked IS NULL"
HELD_TOKENS = "SELECT tenant, role, made FROM tokens WHERE revoked IS NULL ORDER BY tenant, made"
REVOKE_TENANT = "UPDATE tokens SET revoked = :at WHERE tenant = :tenant AND revoked IS NULL"


# characters of the original's id in that of a copy, so that a copy of a copy has a valid id
_LONGEST_ID = 150
_PREVIEW = 80  # characters of the first question


class NotFound(BadInput):
    """An expert, a conversation or a message does not exist, or belongs to another owner.

    The message is the same for both.
    """

    def __init__(self, what: str):
        super().__init__(f"there is no such {what}")


class AlreadyExists(BadInput):
    """An id that an expert has or had. Ids are never reused (C-E9)."""

    def __init__(self, id: str):
        super().__init__(f"there is, or was, an expert {id} already")


@dataclass(frozen=True)
class ChatMessage:
    """A message of a conversation: role ("user" or "assistant"), time, and the evidence of an answer."""

    id: str
    role: str
    content: str
    at: datetime
    metadata: Mapping[str, Json] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class ChatConversation:
    """A conversation with an expert. `chain` is a hash of all its messages."""

    id: str
    expert_id: str
    started_at: datetime
    last_message_at: datetime
    preview: str
    chain: str
    message_count: int


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer without its text: its evidence, and the thumb (+1, -1 or None) with its time."""

    message: str
    conversation: str
    at: datetime
    about: Mapping[str, Json] = field(hash=False)
    thumb: int | None
    thought_at: datetime | None


@dataclass(frozen=True)
class StoredTrial:
    """A stored trial: its plan, stated before it began, and when it ran."""

    id: str
    body: Mapping[str, Json] = field(hash=False)
    begun: datetime
    ended: datetime | None


class ExpertTables(TableBacked):
    """Experts, their conversations and the ratings of answers. `now` is its clock."""

    def __init__(self, storage: TableStorage, *, now: Callable[[], datetime] = utc_now) -> None:
        self.storage, self.now = storage, now

    def _at(self) -> int:
        return to_micros(self.now(), "now")

    # --- experts ---

    def experts(self) -> tuple[Expert, ...]:
        """Return all experts, the oldest first."""
        return tuple(map(_expert, self.storage.rows(EXPERTS)))

    def experts_after(self, after: str | None, limit: int) -> tuple[tuple[Expert, ...], bool]:
        """Return a page of at most `limit` experts, the oldest first, and whether there are more.

        The page begins behind the expert with the id `after`, which may have been deleted meanwhile. No page
        repeats an expert or omits one that exists throughout. Raises BadInput if there never was an expert
        `after`.
        """
        with self.storage.reading():
            before = self.storage.rows(CREATED, {"id": after}) if after is not None else [(-1,)]
            if not before:
                raise BadInput(
                    "after is the id of the last expert of the page before, and there never was such a one"
                )
            told = {"created": before[0][0], "after": after or "", "limit": limit + 1}
            rows = self.storage.rows(EXPERTS_AFTER, told)
        return tuple(map(_expert, rows[:limit])), len(rows) > limit

    def expert(self, id: str) -> Expert:
        """Return an expert by its id.

        Raises NotFound if there is none.
        """
        found = self.storage.rows(EXPERT, {"id": id})
        if not found:
            raise NotFound("expert")
        return _expert(found[0])

    def add_expert(self, config: ExpertConfig, *, copy_of: str = "", id: str = "") -> Expert:
        """Store a new expert. Its id is derived from the persona's name, or from the expert it copies.

        The id is never used again (C-E9).
        """
        base = f"{copy_of[:_LONGEST_ID]}_copy" if copy_of else f"expert_{slug(config.persona.name)}"
        with self.storage.changing():
            beginning = id or base
            asked = {"id": id, "beginning": beginning, "length": len(beginning)}
            taken = {row[0] for row in self.storage.rows(TAKEN, asked)}
            if id and id in taken:
                raise AlreadyExists(id)
            first = [base] if not copy_of else []
            names = (*first, *(f"{base}_{number}" for number in range(1 if copy_of else 2, len(taken) + 3)))
            chosen = id or next(name for name in names if name not in taken)
            at = self._at()
            self.storage.rows(ADD_EXPERT, {"id": chosen, "body": _body(config), "at": at})
        return _expert((chosen, _body(config), at, at))

    def change_expert(self, id: str, change: Callable[[ExpertConfig], ExpertConfig]) -> Expert:
        """Change an expert by a function of its configuration.

        Raises NotFound if there is none, and what the function raises.
        """
        with self.storage.changing():
            before = self.expert(id)
            body = _body(change(before.config))
            self.storage.rows(CHANGE_EXPERT, {"id": id, "body": body, "at": self._at()})
            return self.expert(id)

    def remove_expert(self, id: str, *, conversations: bool) -> tuple[str, ...]:
        """Remove an expert, optionally with all its conversations, and return the ids of those removed.

        Raises NotFound if there is no such expert.
        """
        with self.storage.changing():
            self.expert(id)
            ids = [row[0] for row in self.storage.rows(OF_EXPERT, {"expert": id})] if conversations else []
            self._remove(ids)
            self.storage.rows(REMOVE_EXPERT, {"id": id, "at": self._at()})
        return tuple(map(str, ids))

    def activity(self, owner: str, experts: Sequence[str] | None = None) -> dict[str, tuple[int, datetime]]:
        """Return the number of an owner's conversations with each expert, and the time of the last.

        Only the given `experts` are counted, or all that the owner talked to.
        """
        told = {"owner": owner} if experts is None else {"owner": owner, "experts": list(experts)}
        rows = self.storage.rows(ACTIVE if experts is None else ACTIVE_WITH, told)
        return {expert: (int(count), from_micros(last)) for expert, count, last in rows}

    # --- conversations ---

    def conversations(
        self, expert: str, owner: str, *, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with an expert, and their total number.

        The latest come first.
        """
        asked = {"expert": expert, "owner": owner}
        return self._page(CONVERSATIONS, COUNT_CONVERSATIONS, asked, limit, offset)

    def owned_conversations(
        self, owner: str, *, gone: bool = False, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with all experts, and their total number.

        The latest come first. With `gone`, only those with deleted experts count.
        """
        shown, count = (LEFT_BEHIND, COUNT_LEFT_BEHIND) if gone else (OWNED, COUNT_OWNED)
        return self._page(shown, count, {"owner": owner}, limit, offset)

    def _page(
        self, shown: str, count: str, asked: dict[str, Json], limit: int, offset: int
    ) -> tuple[tuple[ChatConversation, ...], int]:
        with self.storage.reading():
            rows = self.storage.rows(shown, {**asked, "limit": limit, "offset": offset})
            ((total,),) = self.storage.rows(count, asked)
        return tuple(map(_conversation, rows)), int(total)

    def conversation(self, id: str, expert: str, owner: str) -> ChatConversation:
        """Return a conversation of an owner with an expert.

        Raises NotFound if there is none, or it belongs to another owner.
        """
        found = self.storage.rows(CONVERSATION, {"id": id, "expert": expert, "owner": owner})
        if not found:
            raise NotFound("conversation")
        return _conversation(found[0])

    def continued(self, expert: str, owner: str, said: Sequence[tuple[str, str]]) -> str | None:
        """Find the conversation whose messages so far are exactly `said`, as (role, content), or None."""
        asked = {"chain": chain_of(said), "expert": expert, "owner": owner}
        found = self.storage.rows(CONTINUED, asked) if said else []
        return found[0][0] if found else None

    def begin(self, expert: str, owner: str, question: str, said: Sequence[tuple[str, str]] = ()) -> str:
        """Create a conversation, with the earlier messages `said`, and return its id."""
        id = f"conv_{secrets.token_urlsafe(12)}"
        with self.storage.changing():
            self.expert(expert)
            preview = " ".join((said[0][1] if said else question).split())[:_PREVIEW]
            told = {"id": id, "expert": expert, "owner": owner, "preview": preview, "chain": ""}
            self.storage.rows(ADD_CONVERSATION, {**told, "at": self._at()})
            for role, content in said:
                self.say(id, role, content, {"told_by_client": True})
        return id

    def say(
        self, conversation: str, role: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> ChatMessage:
        """Store a message.

        Raises NotFound if the conversation has been deleted meanwhile.
        """
        id = f"msg_{secrets.token_urlsafe(12)}"
        with self.storage.changing():
            ((last,),) = self.storage.rows(LAST_MESSAGE, {"id": conversation})
            chain = self.storage.rows("SELECT chain FROM conversations WHERE id = :id", {"id": conversation})
            if not chain:
                raise NotFound("conversation")
            at = self._at()
            told = {"conversation": conversation, "number": int(last) + 1, "id": id, "role": role, "at": at}
            about = json.dumps(dict(metadata or {}))
            self.storage.rows(ADD_MESSAGE, {**told, "content": content, "metadata": about})
            grown = chain_of([(role, content)], str(chain[0][0]))
            self.storage.rows(TOUCH, {"id": conversation, "at": at, "chain": grown})
        return ChatMessage(id, role, content, from_micros(at), metadata or {})

    def messages(self, conversation: str) -> tuple[ChatMessage, ...]:
        """Return all messages of a conversation in order."""
        return tuple(map(_message, self.storage.rows(MESSAGES, {"id": conversation})))

    def earlier_messages(
        self, expert: str, owner: str, conversation: str, most: int
    ) -> tuple[tuple[str, str, str], ...]:
        """Return the last messages of an owner's other conversations with an expert.

        Each is (id, role, content).
        """
        asked = {"expert": expert, "owner": owner, "conversation": conversation, "most": most}
        return tuple((id, role, content) for id, role, content, _ in self.storage.rows(SAID_BEFORE, asked))

    def spoken(self, expert: str, since: datetime, most: int) -> tuple[tuple[str, str, str, datetime], ...]:
        """Return the last messages of all people to an expert since a time, as (owner, id, content, when)."""
        rows = self.storage.rows(SPOKEN, {"expert": expert, "since": to_micros(since, "since"), "most": most})
        return tuple((owner, id, content, from_micros(at)) for owner, id, content, at in rows)

    def remove_conversation(self, id: str, expert: str, owner: str) -> None:
        """Remove a conversation.

        Raises NotFound if there is none.
        """
        with self.storage.changing():
            self.conversation(id, expert, owner)
            self._remove([id])

    def _remove(self, ids: list[str]) -> None:
        for statement in (REMOVE_OPINIONS, REMOVE_MESSAGES, REMOVE_CONVERSATIONS):
            self.storage.rows(statement, {"ids": ids})

    # --- ratings of answers ---

    def rate_answer(self, message: str, thumb: int, *, conversation: str, expert: str, owner: str) -> None:
        """Store a person's rating of an answer, +1 or -1. The last one counts.

        Raises NotFound if there is no such answer, also for a question.
        """
        with self.storage.changing():
            self._answer_of(message, conversation, expert, owner)
            self.storage.rows(PUT_OPINION, {"message": message, "thumb": thumb, "at": self._at()})

    def take_opinion_back(self, message: str, *, conversation: str, expert: str, owner: str) -> None:
        """Remove a person's rating of an answer, if there is one.

        Raises NotFound if there is no such answer, also for a question.
        """
        with self.storage.changing():
            self._answer_of(message, conversation, expert, owner)
            self.storage.rows(TAKE_OPINION_BACK, {"message": message})

    def _answer_of(self, message: str, conversation: str, expert: str, owner: str) -> None:
        asked = {"message": message, "conversation": conversation, "expert": expert, "owner": owner}
        found = self.storage.rows(MESSAGE_OF, asked)
        if not found or found[0][1] != "assistant":
            raise NotFound("answer")

    def ratings(self, conversation: str) -> dict[str, int]:
        """Return the ratings of the answers in a conversation, +1 or -1 by the answer's id."""
        return {str(id): int(thumb) for id, thumb in self.storage.rows(THUMBS, {"id": conversation})}

    def judged(self, expert: str) -> tuple[JudgedAnswer, ...]:
        """Return each answer of an expert with its evidence and its rating, without anybody's text."""
        return tuple(
            JudgedAnswer(
                id,
                conversation,
                from_micros(at),
                json.loads(about),
                thumb and int(thumb),
                from_micros_or_none(thought),
            )
            for id, conversation, at, about, thumb, thought in self.storage.rows(OPINIONS, {"expert": expert})
        )

    # --- trials ---

    def add_trial(self, expert: str, body: Mapping[str, Json]) -> StoredTrial:
        """Start a trial of an expert.

        Raises BadInput while another one is running.
        """
        id = f"trial_{secrets.token_urlsafe(9)}"
        with self.storage.changing():
            self.expert(expert)
            if self.running_trial(expert) is not None:
                raise BadInput(
                    "a trial of this expert is going on: end it first, since each conversation has one configuration"
                )
            at = self._at()
            self.storage.rows(
                ADD_TRIAL, {"id": id, "expert": expert, "body": json.dumps(dict(body)), "at": at}
            )
        return StoredTrial(id, body, from_micros(at), None)

    def trials(self, expert: str) -> tuple[StoredTrial, ...]:
        """Return all trials of an expert, the oldest first."""
        return tuple(map(_trial, self.storage.rows(TRIALS, {"expert": expert})))

    def running_trial(self, expert: str) -> StoredTrial | None:
        """Return the running trial of an expert, or None."""
        found = self.storage.rows(RUNNING, {"expert": expert})
        return _trial(found[0]) if found else None

    def end_trial(self, id: str) -> None:
        """Stop a trial. Its results are kept."""
        with self.storage.changing():
            self.storage.rows(END_TRIAL, {"id": id, "at": self._at()})


def open_experts(
    place: Path | str = ":memory:", *, namespace: str | None = None, now: Callable[[], datetime] = utc_now
) -> ExpertTables:
    """Open the tables of experts in an SQLite file, in memory, or in PostgreSQL.

    Raises what `open_tables` raises.
    """
    return ExpertTables(open_tables(EXPERTS_LAYOUT, place, namespace=namespace), now=now)


def chain_of(said: Sequence[tuple[str, str]], before: str = "") -> str:
    """Hash the messages of a conversation, (role, content), as a chain that each message extends.

    Two conversations with the same messages have the same hash.
    """
    for role, content in said:
        before = hashlib.sha256(json.dumps([before, role, content.strip()]).encode()).hexdigest()
    return before


def _body(config: ExpertConfig) -> str:
    """Serialize the fields of an expert that were set.

    Defaults of a later version apply to the others.
    """
    told = json.loads(config.model_dump_json(exclude_unset=True))
    return json.dumps({"schema_version": config.schema_version, **told}, ensure_ascii=False)


def _expert(row: ClaimRow) -> Expert:
    id, body, created, updated = row
    return Expert.model_validate(
        {
            **json.loads(body),
            "id": id,
            "created_at": from_micros(created),
            "updated_at": from_micros(updated),
        }
    )


def _conversation(row: ClaimRow) -> ChatConversation:
    id, expert, started, last, preview, chain, count = row
    return ChatConversation(id, expert, from_micros(started), from_micros(last), preview, chain, int(count))


def _trial(row: ClaimRow) -> StoredTrial:
    id, body, begun, ended = row
    return StoredTrial(
        id, json.loads(body), from_micros(begun), None if ended is None else from_micros(ended)
    )


def _message(row: ClaimRow) -> ChatMessage:
    id, role, content, at, metadata = row
    return ChatMessage(id, role, content, from_micros(at), json.loads(metadata))
