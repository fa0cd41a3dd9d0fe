"""All SQL of proposals and of what was decided on them, in what SQLite and PostgreSQL have in common."""

from __future__ import annotations

from kgot_lab.memory.tables import Layout

PROPOSAL_TABLES = (
    """CREATE TABLE proposals (id TEXT PRIMARY KEY, graph TEXT NOT NULL, body TEXT NOT NULL, standing TEXT NOT NULL, at BIGINT NOT NULL)""",
    """CREATE TABLE sayings (proposal TEXT NOT NULL, message TEXT NOT NULL, conversation TEXT NOT NULL, said_by TEXT NOT NULL,
         quote TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (proposal, message))""",
    """CREATE TABLE verdicts (number BIGINT PRIMARY KEY, proposal TEXT NOT NULL, action TEXT NOT NULL, who TEXT NOT NULL,
         at BIGINT NOT NULL, undoes BIGINT, diff TEXT NOT NULL, digest_before TEXT NOT NULL, digest_after TEXT NOT NULL,
         settled BIGINT NOT NULL)""",
)
PROPOSAL_INDEXES = (
    "CREATE INDEX proposals_by_standing ON proposals (graph, standing)",
    "CREATE INDEX sayings_by_conversation ON sayings (conversation)",
    "CREATE INDEX sayings_by_person ON sayings (said_by)",
)
PROPOSALS_LAYOUT = Layout("proposals", 0x6B676C70, PROPOSAL_TABLES, PROPOSAL_INDEXES)  # "kglp"

PROPOSAL = "SELECT id, body, standing, at FROM proposals WHERE id = :id"
WAITING_PROPOSALS = "SELECT id, body, standing, at FROM proposals WHERE standing = 'queued' AND graph = :graph ORDER BY at, id"
ADD_PROPOSAL = (
    "INSERT INTO proposals (id, graph, body, standing, at) VALUES (:id, :graph, :body, 'queued', :at)"
)
STAND = "UPDATE proposals SET standing = :standing WHERE id = :id"
REMOVE_PROPOSALS = "DELETE FROM proposals WHERE id = ANY(:ids)"

SAYINGS = (
    "SELECT message, conversation, said_by, quote, at FROM sayings WHERE proposal = :id ORDER BY at, message"
)
ADD_SAYING = """INSERT INTO sayings (proposal, message, conversation, said_by, quote, at)
  VALUES (:id, :message, :conversation, :said_by, :quote, :at) ON CONFLICT (proposal, message) DO NOTHING"""
WAITING_OF_PERSON = """SELECT count(*) FROM proposals p WHERE p.standing = 'queued'
  AND EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id AND s.said_by = :said_by)"""
SAID_IN = "SELECT DISTINCT proposal FROM sayings WHERE conversation = :conversation"
REMOVE_SAYINGS = "DELETE FROM sayings WHERE conversation = :conversation"
UNSAID_PROPOSALS = """SELECT p.id FROM proposals p WHERE p.id = ANY(:ids) AND p.standing = 'queued'
  AND NOT EXISTS (SELECT 1 FROM sayings s WHERE s.proposal = p.id) AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.proposal = p.id)"""

_SHOWN = "v.number, v.proposal, v.action, v.who, v.at, v.undoes, v.diff, v.digest_before, v.digest_after, v.settled"
_OF_GRAPH = f"SELECT {_SHOWN} FROM verdicts v JOIN proposals p ON p.id = v.proposal WHERE p.graph = :graph"
VERDICT = f"SELECT {_SHOWN} FROM verdicts v WHERE v.number = :number"
VERDICTS = f"{_OF_GRAPH} ORDER BY v.number DESC LIMIT :most"
UNSETTLED = f"{_OF_GRAPH} AND v.settled = 0 ORDER BY v.number"
UNDONE_BY = "SELECT number FROM verdicts WHERE undoes = :number"
LAST_VERDICT = "SELECT coalesce(max(number), 0) FROM verdicts"
ADD_VERDICT = """INSERT INTO verdicts (number, proposal, action, who, at, undoes, diff, digest_before, digest_after, settled)
  VALUES (:number, :proposal, :action, :who, :at, :undoes, :diff, :before, :after, :settled)"""
SETTLE = "UPDATE verdicts SET settled = 1 WHERE number = :number"
WITHDRAW = "DELETE FROM verdicts WHERE number = :number"
