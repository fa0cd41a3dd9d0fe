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

from kgot_lab.errors import BadInput
from kgot_lab.experts.expert import Expert, ExpertConfig, slugify
from kgot_lab.io.files import read_statements
from kgot_lab.io.times import from_micros, from_micros_or_none, to_micros
from kgot_lab.stores.tables.layout import Layout, TableRow
from kgot_lab.stores.tables.opening import TableBacked
from kgot_lab.types import Json

# All SQL of experts and their conversations, common to SQLite and PostgreSQL.

EXPERTS_LAYOUT = Layout("experts", 0x6B676C78, **read_statements(__file__, "repository.sql"))  # "kglx"

# --- experts ---

SELECT_EXPERT = "SELECT id, body, created, updated FROM experts WHERE id = :id AND gone IS NULL"
SELECT_EXPERTS_AFTER = """SELECT id, body, created, updated FROM experts
  WHERE gone IS NULL AND (created, id) > (:created, :after) ORDER BY created, id LIMIT :limit"""
# also of a deleted one, so that paging can continue
SELECT_CREATION_TIME = "SELECT created FROM experts WHERE id = :id"
SELECT_USED_IDS = "SELECT id FROM experts WHERE id = :id OR substr(id, 1, :length) = :beginning"  # also of deleted ones: no id is reused
INSERT_EXPERT = "INSERT INTO experts (id, body, created, updated) VALUES (:id, :body, :at, :at)"
UPDATE_EXPERT = "UPDATE experts SET body = :body, updated = :at WHERE id = :id"
MARK_EXPERT_DELETED = "UPDATE experts SET body = '', gone = :at WHERE id = :id"
SELECT_ACTIVITY = "SELECT expert, count(*), max(last) FROM conversations WHERE owner = :owner GROUP BY expert"

# --- conversations ---

_CONVERSATION_COLUMNS = """c.id, c.expert, c.started, c.last, c.preview, c.chain,
  (SELECT count(*) FROM messages m WHERE m.conversation = c.id)"""
SELECT_CONVERSATION = f"SELECT {_CONVERSATION_COLUMNS} FROM conversations c WHERE c.id = :id AND c.expert = :expert AND c.owner = :owner"
_EXPERT_IS_DELETED = "NOT EXISTS (SELECT 1 FROM experts e WHERE e.id = c.expert AND e.gone IS NULL)"
SELECT_BY_CHAIN = """SELECT id FROM conversations WHERE chain = :chain AND expert = :expert AND owner = :owner ORDER BY last DESC, id LIMIT 1"""
INSERT_CONVERSATION = """INSERT INTO conversations (id, expert, owner, started, last, preview, chain)
  VALUES (:id, :expert, :owner, :at, :at, :preview, :chain)"""
UPDATE_CONVERSATION = "UPDATE conversations SET last = :at, chain = :chain WHERE id = :id"
SELECT_LAST_NUMBER = "SELECT coalesce(max(number), 0) FROM messages WHERE conversation = :id"
INSERT_MESSAGE = """INSERT INTO messages (conversation, number, id, role, content, at, metadata)
  VALUES (:conversation, :number, :id, :role, :content, :at, :metadata)"""
SELECT_MESSAGES = (
    "SELECT id, role, content, at, metadata FROM messages WHERE conversation = :id ORDER BY number"
)
SELECT_EARLIER_MESSAGES = """SELECT m.id, m.role, m.content, m.at FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE c.expert = :expert AND c.owner = :owner AND c.id <> :conversation ORDER BY m.at DESC, m.id LIMIT :most"""
SELECT_USER_MESSAGES = """SELECT c.owner, m.id, m.content, m.at FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE c.expert = :expert AND m.role = 'user' AND m.at >= :since ORDER BY m.at DESC, m.id LIMIT :most"""
DELETE_RATINGS = (
    "DELETE FROM opinions WHERE message IN (SELECT id FROM messages WHERE conversation = ANY(:ids))"
)
DELETE_MESSAGES = "DELETE FROM messages WHERE conversation = ANY(:ids)"
DELETE_CONVERSATIONS = "DELETE FROM conversations WHERE id = ANY(:ids)"
SELECT_IDS_OF_EXPERT = "SELECT id FROM conversations WHERE expert = :expert"
SELECT_OWNED_MESSAGE = """SELECT m.id, m.role FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE m.id = :message AND c.id = :conversation AND c.expert = :expert AND c.owner = :owner"""
UPSERT_RATING = """INSERT INTO opinions (message, thumb, at) VALUES (:message, :thumb, :at)
  ON CONFLICT (message) DO UPDATE SET thumb = excluded.thumb, at = excluded.at"""
DELETE_RATING = "DELETE FROM opinions WHERE message = :message"
SELECT_RATINGS = (
    "SELECT o.message, o.thumb FROM opinions o JOIN messages m ON m.id = o.message WHERE m.conversation = :id"
)
SELECT_JUDGED_ANSWERS = """SELECT m.id, m.conversation, m.at, m.metadata, o.thumb, o.at
  FROM messages m JOIN conversations c ON c.id = m.conversation LEFT JOIN opinions o ON o.message = m.id
  WHERE c.expert = :expert AND m.role = 'assistant' ORDER BY m.at, m.id"""

# --- trials ---

INSERT_TRIAL = "INSERT INTO trials (id, expert, body, begun) VALUES (:id, :expert, :body, :at)"
SELECT_TRIALS = "SELECT id, body, begun, ended FROM trials WHERE expert = :expert ORDER BY begun, id"
UPDATE_TRIAL_END = "UPDATE trials SET ended = :at WHERE id = :id AND ended IS NULL"

# --- tokens ---

INSERT_TOKEN = "INSERT INTO tokens (hash, tenant, role, made) VALUES (:hash, :tenant, :role, :at)"
SELECT_TOKENS = "SELECT hash, tenant, role, made FROM tokens WHERE revoked IS NULL ORDER BY tenant, made"
REVOKE_TENANT_TOKENS = "UPDATE tokens SET revoked = :at WHERE tenant = :tenant AND revoked IS NULL"


# characters of the original's id in that of a copy, so that a copy of a copy has a valid id
_MAX_ID_LENGTH = 150
_PREVIEW_LENGTH = 80  # characters of the first question
ALL_EXPERTS = 2**31 - 2  # a limit for no page


class NotFound(BadInput):
    """An expert, a conversation or a message does not exist, or belongs to another owner.

    The message is the same for both, if none is given.
    """

    def __init__(self, what: str, message: str = ""):
        super().__init__(message or f"there is no such {what}")


class AlreadyExists(BadInput):
    """An id that an expert has or had. Ids are never reused."""

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
    """Experts, their conversations and the ratings of answers."""

    layout = EXPERTS_LAYOUT

    def _now(self) -> int:
        return to_micros(self.now(), "now")

    # --- experts ---

    def experts(self) -> tuple[Expert, ...]:
        """Return all experts, the oldest first."""
        return self.experts_page(None, ALL_EXPERTS)[0]

    def experts_page(self, after: str | None, limit: int) -> tuple[tuple[Expert, ...], bool]:
        """Return a page of at most `limit` experts, the oldest first, and whether there are more.

        The page begins behind the expert with the id `after`, which may have been deleted meanwhile. No page
        repeats an expert or omits one that exists throughout. Raises BadInput if there never was an expert
        `after`.
        """
        with self.storage.reading():
            cursor = self.storage.rows(SELECT_CREATION_TIME, {"id": after}) if after is not None else [(-1,)]
            if not cursor:
                raise BadInput("after is the id of the last expert of the page before: there is no such one")
            params = {"created": cursor[0][0], "after": after or "", "limit": limit + 1}
            rows = self.storage.rows(SELECT_EXPERTS_AFTER, params)
        return tuple(map(_expert_from_row, rows[:limit])), len(rows) > limit

    def expert(self, id: str) -> Expert:
        """Return an expert by its id.

        Raises NotFound if there is none.
        """
        rows = self.storage.rows(SELECT_EXPERT, {"id": id})
        if not rows:
            raise NotFound("expert")
        return _expert_from_row(rows[0])

    def add_expert(self, config: ExpertConfig, *, copy_of: str = "", id: str = "") -> Expert:
        """Store a new expert. Its id is derived from the persona's name, or from the expert it copies.

        The id is never used again.
        """
        base = f"{copy_of[:_MAX_ID_LENGTH]}_copy" if copy_of else f"expert_{slugify(config.persona.name)}"
        with self.storage.changing():
            prefix = id or base
            params = {"id": id, "beginning": prefix, "length": len(prefix)}
            used_ids = {row[0] for row in self.storage.rows(SELECT_USED_IDS, params)}
            if id and id in used_ids:
                raise AlreadyExists(id)
            first = 1 if copy_of else 2
            numbered = (f"{base}_{number}" for number in range(first, len(used_ids) + 3))
            candidates = numbered if copy_of else (base, *numbered)
            chosen = id or next(name for name in candidates if name not in used_ids)
            at = self._now()
            self.storage.rows(INSERT_EXPERT, {"id": chosen, "body": _config_json(config), "at": at})
        return _expert_from_row((chosen, _config_json(config), at, at))

    def change_expert(self, id: str, change: Callable[[ExpertConfig], ExpertConfig]) -> Expert:
        """Change an expert by a function of its configuration.

        Raises NotFound if there is none, and what the function raises.
        """
        with self.storage.changing():
            body = _config_json(change(self.expert(id).config))
            self.storage.rows(UPDATE_EXPERT, {"id": id, "body": body, "at": self._now()})
            return self.expert(id)

    def remove_expert(self, id: str, *, conversations: bool) -> tuple[str, ...]:
        """Remove an expert, optionally with all its conversations, and return the ids of those removed.

        Raises NotFound if there is no such expert.
        """
        with self.storage.changing():
            self.expert(id)
            rows = self.storage.rows(SELECT_IDS_OF_EXPERT, {"expert": id}) if conversations else []
            ids = [row[0] for row in rows]
            self._remove_conversations(ids)
            self.storage.rows(MARK_EXPERT_DELETED, {"id": id, "at": self._now()})
        return tuple(map(str, ids))

    def activity(self, owner: str) -> dict[str, tuple[int, datetime]]:
        """Return the number of an owner's conversations with each expert, and the time of the last."""
        rows = self.storage.rows(SELECT_ACTIVITY, {"owner": owner})
        return {expert: (int(count), from_micros(last)) for expert, count, last in rows}

    # --- conversations ---

    def conversations(
        self, expert: str, owner: str, *, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with an expert, and their total number.

        The latest come first.
        """
        params = {"expert": expert, "owner": owner}
        return self._conversation_page("c.expert = :expert", params, limit, offset)

    def owned_conversations(
        self, owner: str, *, expert_deleted: bool = False, limit: int = 20, offset: int = 0
    ) -> tuple[tuple[ChatConversation, ...], int]:
        """Return a page of an owner's conversations with all experts, and their total number.

        The latest come first. With `expert_deleted`, only those with deleted experts count.
        """
        condition = _EXPERT_IS_DELETED if expert_deleted else "TRUE"
        return self._conversation_page(condition, {"owner": owner}, limit, offset)

    def _conversation_page(
        self, condition: str, params: dict[str, Json], limit: int, offset: int
    ) -> tuple[tuple[ChatConversation, ...], int]:
        selected = f"FROM conversations c WHERE c.owner = :owner AND {condition}"
        page = f"{selected} ORDER BY c.last DESC, c.id LIMIT :limit OFFSET :offset"
        with self.storage.reading():
            bounds = {"limit": limit, "offset": offset}
            rows = self.storage.rows(f"SELECT {_CONVERSATION_COLUMNS} {page}", params | bounds)
            ((total,),) = self.storage.rows(f"SELECT count(*) {selected}", params)
        return tuple(map(_conversation_from_row, rows)), int(total)

    def conversation(self, id: str, expert: str, owner: str) -> ChatConversation:
        """Return a conversation of an owner with an expert.

        Raises NotFound if there is none, or it belongs to another owner.
        """
        rows = self.storage.rows(SELECT_CONVERSATION, {"id": id, "expert": expert, "owner": owner})
        if not rows:
            raise NotFound("conversation")
        return _conversation_from_row(rows[0])

    def find_conversation(self, expert: str, owner: str, history: Sequence[tuple[str, str]]) -> str | None:
        """Find the conversation whose messages so far are exactly `history`, as (role, content), or None."""
        params = {"chain": hash_messages(history), "expert": expert, "owner": owner}
        rows = self.storage.rows(SELECT_BY_CHAIN, params) if history else []
        return rows[0][0] if rows else None

    def begin_conversation(
        self, expert: str, owner: str, question: str, history: Sequence[tuple[str, str]] = ()
    ) -> str:
        """Create a conversation, with the earlier messages `history`, and return its id."""
        id = f"conv_{secrets.token_urlsafe(12)}"
        with self.storage.changing():
            self.expert(expert)
            preview = " ".join((history[0][1] if history else question).split())[:_PREVIEW_LENGTH]
            params = {"id": id, "expert": expert, "owner": owner, "preview": preview, "chain": ""}
            self.storage.rows(INSERT_CONVERSATION, {**params, "at": self._now()})
            for role, content in history:
                self.add_message(id, role, content, {"told_by_client": True})
        return id

    def add_message(
        self, conversation: str, role: str, content: str, metadata: Mapping[str, Json] | None = None
    ) -> ChatMessage:
        """Store a message.

        Raises NotFound if the conversation has been deleted meanwhile.
        """
        id = f"msg_{secrets.token_urlsafe(12)}"
        with self.storage.changing():
            ((last,),) = self.storage.rows(SELECT_LAST_NUMBER, {"id": conversation})
            chains = self.storage.rows("SELECT chain FROM conversations WHERE id = :id", {"id": conversation})
            if not chains:
                raise NotFound("conversation")
            at = self._now()
            params = {"conversation": conversation, "number": int(last) + 1, "id": id, "role": role, "at": at}
            metadata_json = json.dumps(dict(metadata or {}))
            self.storage.rows(INSERT_MESSAGE, {**params, "content": content, "metadata": metadata_json})
            new_chain = hash_messages([(role, content)], str(chains[0][0]))
            self.storage.rows(UPDATE_CONVERSATION, {"id": conversation, "at": at, "chain": new_chain})
        return ChatMessage(id, role, content, from_micros(at), metadata or {})

    def messages(self, conversation: str) -> tuple[ChatMessage, ...]:
        """Return all messages of a conversation in order."""
        return tuple(map(_message_from_row, self.storage.rows(SELECT_MESSAGES, {"id": conversation})))

    def earlier_messages(
        self, expert: str, owner: str, conversation: str, limit: int
    ) -> tuple[tuple[str, str, str], ...]:
        """Return the last messages of an owner's other conversations with an expert.

        Each is (id, role, content).
        """
        params = {"expert": expert, "owner": owner, "conversation": conversation, "most": limit}
        rows = self.storage.rows(SELECT_EARLIER_MESSAGES, params)
        return tuple((id, role, content) for id, role, content, _ in rows)

    def user_messages(
        self, expert: str, since: datetime, limit: int
    ) -> tuple[tuple[str, str, str, datetime], ...]:
        """Return the last messages of all people to an expert since a time, as (owner, id, content, when)."""
        params = {"expert": expert, "since": to_micros(since, "since"), "most": limit}
        rows = self.storage.rows(SELECT_USER_MESSAGES, params)
        return tuple((owner, id, content, from_micros(at)) for owner, id, content, at in rows)

    def remove_conversation(self, id: str, expert: str, owner: str) -> None:
        """Remove a conversation.

        Raises NotFound if there is none.
        """
        with self.storage.changing():
            self.conversation(id, expert, owner)
            self._remove_conversations([id])

    def _remove_conversations(self, ids: list[str]) -> None:
        for statement in (DELETE_RATINGS, DELETE_MESSAGES, DELETE_CONVERSATIONS):
            self.storage.rows(statement, {"ids": ids})

    # --- ratings of answers ---

    def rate_answer(self, message: str, thumb: int, *, conversation: str, expert: str, owner: str) -> None:
        """Store a person's rating of an answer, +1 or -1. The last one counts.

        Raises NotFound if there is no such answer, also for a question.
        """
        with self.storage.changing():
            self._require_answer(message, conversation, expert, owner)
            self.storage.rows(UPSERT_RATING, {"message": message, "thumb": thumb, "at": self._now()})

    def remove_rating(self, message: str, *, conversation: str, expert: str, owner: str) -> None:
        """Remove a person's rating of an answer, if there is one.

        Raises NotFound if there is no such answer, also for a question.
        """
        with self.storage.changing():
            self._require_answer(message, conversation, expert, owner)
            self.storage.rows(DELETE_RATING, {"message": message})

    def _require_answer(self, message: str, conversation: str, expert: str, owner: str) -> None:
        params = {"message": message, "conversation": conversation, "expert": expert, "owner": owner}
        rows = self.storage.rows(SELECT_OWNED_MESSAGE, params)
        if not rows or rows[0][1] != "assistant":
            raise NotFound("answer")

    def ratings(self, conversation: str) -> dict[str, int]:
        """Return the ratings of the answers in a conversation, +1 or -1 by the answer's id."""
        return {str(id): int(thumb) for id, thumb in self.storage.rows(SELECT_RATINGS, {"id": conversation})}

    def judged_answers(self, expert: str) -> tuple[JudgedAnswer, ...]:
        """Return each answer of an expert with its evidence and its rating, without anybody's text."""
        answers = []
        rows = self.storage.rows(SELECT_JUDGED_ANSWERS, {"expert": expert})
        for id, talk, at, metadata, thumb, rated in rows:
            rating = thumb and int(thumb), from_micros_or_none(rated)
            answers.append(JudgedAnswer(id, talk, from_micros(at), json.loads(metadata), *rating))
        return tuple(answers)

    # --- trials ---

    def add_trial(self, expert: str, body: Mapping[str, Json]) -> StoredTrial:
        """Start a trial of an expert.

        Raises BadInput while another one is running.
        """
        id = f"trial_{secrets.token_urlsafe(9)}"
        with self.storage.changing():
            self.expert(expert)
            if self.running_trial(expert) is not None:
                raise BadInput("a trial of this expert is going on: end it first")
            at = self._now()
            row = {"id": id, "expert": expert, "body": json.dumps(dict(body)), "at": at}
            self.storage.rows(INSERT_TRIAL, row)
        return StoredTrial(id, body, from_micros(at), None)

    def trials(self, expert: str) -> tuple[StoredTrial, ...]:
        """Return all trials of an expert, the oldest first."""
        return tuple(map(_trial_from_row, self.storage.rows(SELECT_TRIALS, {"expert": expert})))

    def running_trial(self, expert: str) -> StoredTrial | None:
        """Return the running trial of an expert, or None."""
        return next((trial for trial in self.trials(expert) if trial.ended is None), None)

    def end_trial(self, id: str) -> None:
        """Stop a trial. Its results are kept."""
        with self.storage.changing():
            self.storage.rows(UPDATE_TRIAL_END, {"id": id, "at": self._now()})


open_experts = ExpertTables.open


def hash_messages(messages: Sequence[tuple[str, str]], chain: str = "") -> str:
    """Hash the messages of a conversation, (role, content), as a chain that each message extends.

    Two conversations with the same messages have the same hash.
    """
    for role, content in messages:
        chain = hashlib.sha256(json.dumps([chain, role, content.strip()]).encode()).hexdigest()
    return chain


def _config_json(config: ExpertConfig) -> str:
    """Serialize the fields of an expert that were set.

    Defaults of a later version apply to the others.
    """
    fields = json.loads(config.model_dump_json(exclude_unset=True))
    return json.dumps({"schema_version": config.schema_version, **fields}, ensure_ascii=False)


def _expert_from_row(row: TableRow) -> Expert:
    id, body, created, updated = row
    times = {"created_at": from_micros(created), "updated_at": from_micros(updated)}
    return Expert.model_validate({**json.loads(body), "id": id, **times})


def _conversation_from_row(row: TableRow) -> ChatConversation:
    id, expert, started, last, preview, chain, count = row
    return ChatConversation(id, expert, from_micros(started), from_micros(last), preview, chain, int(count))


def _trial_from_row(row: TableRow) -> StoredTrial:
    id, body, begun, ended = row
    return StoredTrial(id, json.loads(body), from_micros(begun), from_micros_or_none(ended))


def _message_from_row(row: TableRow) -> ChatMessage:
    id, role, content, at, metadata = row
    return ChatMessage(id, role, content, from_micros(at), json.loads(metadata))
