"""All SQL of experts and their conversations, in what SQLite and PostgreSQL have in common."""

from __future__ import annotations

from kgot_lab.memory.tables import Layout

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
    "CREATE INDEX experts_by_age ON experts (created, id)",  # a place that was made without it only takes longer for a page
    "CREATE INDEX conversations_by_expert ON conversations (expert, owner, last)",
    "CREATE INDEX conversations_by_chain ON conversations (chain)",
)
EXPERTS_LAYOUT = Layout("experts", 0x6B676C78, EXPERT_TABLES, EXPERT_INDEXES)  # "kglx"

# --- experts
# ----------------------------------------------------------------------------------------------------------

EXPERT = "SELECT id, body, created, updated FROM experts WHERE id = :id AND gone IS NULL"
EXPERTS = "SELECT id, body, created, updated FROM experts WHERE gone IS NULL ORDER BY created, id"
EXPERTS_AFTER = """SELECT id, body, created, updated FROM experts
  WHERE gone IS NULL AND (created, id) > (:created, :after) ORDER BY created, id LIMIT :limit"""
CREATED = "SELECT created FROM experts WHERE id = :id"  # also of one that is gone, so that a page can be gone on from
TAKEN = "SELECT id FROM experts WHERE id = :id OR substr(id, 1, :length) = :beginning"  # also of those that are gone: no id comes again
ADD_EXPERT = "INSERT INTO experts (id, body, created, updated) VALUES (:id, :body, :at, :at)"
CHANGE_EXPERT = "UPDATE experts SET body = :body, updated = :at WHERE id = :id"
REMOVE_EXPERT = "UPDATE experts SET body = '', gone = :at WHERE id = :id"
ACTIVE = "SELECT expert, count(*), max(last) FROM conversations WHERE owner = :owner GROUP BY expert"
ACTIVE_WITH = "SELECT expert, count(*), max(last) FROM conversations WHERE owner = :owner AND expert = ANY(:experts) GROUP BY expert"

# --- conversations
# ----------------------------------------------------------------------------------------------------

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

# --- trials
# -----------------------------------------------------------------------------------------------------------

ADD_TRIAL = "INSERT INTO trials (id, expert, body, begun) VALUES (:id, :expert, :body, :at)"
TRIALS = "SELECT id, body, begun, ended FROM trials WHERE expert = :expert ORDER BY begun, id"
RUNNING = "SELECT id, body, begun, ended FROM trials WHERE expert = :expert AND ended IS NULL ORDER BY begun, id LIMIT 1"
END_TRIAL = "UPDATE trials SET ended = :at WHERE id = :id AND ended IS NULL"

# --- tokens
# -----------------------------------------------------------------------------------------------------------

ADD_TOKEN = "INSERT INTO tokens (hash, tenant, role, made) VALUES (:hash, :tenant, :role, :at)"
TOKENS = "SELECT hash, tenant, role FROM tokens WHERE revoked IS NULL"
HELD_TOKENS = "SELECT tenant, role, made FROM tokens WHERE revoked IS NULL ORDER BY tenant, made"
REVOKE_TENANT = "UPDATE tokens SET revoked = :at WHERE tenant = :tenant AND revoked IS NULL"
