"""All SQL of the investment graph and the accounts, common to SQLite and PostgreSQL.

A row of nodes or edges is never changed except to close it, so the state at any time can be
queried: rows that were opened by then, not yet closed and not yet expired. The owner of a shared row is ''.
"""

from __future__ import annotations

from kgot_lab.io.files import read_statements
from kgot_lab.stores.tables.history import with_history
from kgot_lab.stores.tables.layout import Layout

_GRAPH = read_statements(__file__, "graph.sql")
_TO_HISTORY = _GRAPH.pop("changes")
GRAPH_LAYOUT = with_history(Layout("investment graphs", 0x6B676C69, **_GRAPH), *_TO_HISTORY)  # "kgli"

_TIMES = "{0}.created_at, {0}.expires_at, {0}.opened, {0}.closed"
_NODE_COLUMNS = "{0}.owner, {0}.id, {0}.type, {0}.properties, " + _TIMES
_EDGE_COLUMNS = "e.owner, e.source, e.type, e.target, e.properties, " + _TIMES.format("e")
_VISIBLE_TO_OWNER = "{0}.owner IN ('', :owner)"
_OPEN_THEN = _VISIBLE_TO_OWNER + " AND {0}.opened <= :at AND ({0}.closed IS NULL OR {0}.closed > :at)"
_LIVE_THEN = _OPEN_THEN + " AND ({0}.expires_at IS NULL OR {0}.expires_at > :at)"


def _evidence(of: str, type: str, edge: str, node: str) -> str:
    """Build the condition that an insight has evidence of a type."""
    return f"""EXISTS (SELECT 1 FROM edges d JOIN nodes g ON g.id = d.target
    WHERE d.source = {of}.id AND d.type = 'derived_from' AND g.type = {type} AND {edge} AND {node})"""


def _live_node(of: str) -> str:
    """Build the condition of a live node. An insight falls with the last of its events, or else of its news."""
    had = f"{_VISIBLE_TO_OWNER.format('d')} AND d.opened <= :at"
    live = _LIVE_THEN.format("d"), _LIVE_THEN.format("g")
    fell = (
        f"{_evidence(of, type, had, 'true')} AND NOT {_evidence(of, type, *live)}"
        for type in ("'MarketEvent'", "g.type")
    )
    return f"{_LIVE_THEN.format(of)} AND ({of}.type <> 'Insight' OR NOT ({' OR '.join(fell)}))"


LIVE_NODES = f"SELECT {_NODE_COLUMNS.format('n')} FROM nodes n WHERE {_live_node('n')}"
LIVE_EDGES = f"""SELECT {_EDGE_COLUMNS} FROM edges e JOIN nodes s ON s.id = e.source JOIN nodes t ON t.id = e.target
  WHERE {_LIVE_THEN.format("e")} AND {_live_node("s")} AND {_live_node("t")}"""

NODE_HISTORY = f"SELECT {_NODE_COLUMNS.format('n')} FROM nodes n WHERE {_VISIBLE_TO_OWNER.format('n')} AND n.id = :id ORDER BY n.opened"
EDGE_HISTORY = f"""SELECT {_EDGE_COLUMNS} FROM edges e
  WHERE {_VISIBLE_TO_OWNER.format("e")} AND (e.source = :id OR e.target = :id) ORDER BY e.opened, e.type"""

OPEN_NODES = f"SELECT {_NODE_COLUMNS.format('n')} FROM nodes n WHERE {_VISIBLE_TO_OWNER.format('n')} AND n.closed IS NULL AND n.id = ANY(:ids)"
OPEN_EDGES = f"SELECT {_EDGE_COLUMNS} FROM edges e WHERE e.owner = :owner AND e.closed IS NULL AND e.source = ANY(:ids)"
CLOSE_NODE = "UPDATE nodes SET closed = :at WHERE id = :id AND closed IS NULL AND owner = :owner"
CLOSE_EDGE = """UPDATE edges SET closed = :at
  WHERE owner = :owner AND source = :source AND type = :type AND target = :target AND closed IS NULL"""
OPEN_NODE = """INSERT INTO nodes (owner, id, type, name, symbol, properties, created_at, expires_at, opened)
  VALUES (:owner, :id, :type, :name, :symbol, :properties, :created_at, :expires_at, :at)"""
OPEN_EDGE = """INSERT INTO edges (owner, source, type, target, properties, created_at, expires_at, opened)
  VALUES (:owner, :source, :type, :target, :properties, :created_at, :expires_at, :at)"""

ALL_OF_OWNER = (
    "SELECT owner FROM nodes WHERE owner = :owner UNION SELECT owner FROM edges WHERE owner = :owner"
)
ERASE_OWNER = ("DELETE FROM edges WHERE owner = :owner", "DELETE FROM nodes WHERE owner = :owner")
# the key of a node begins with its owner, that of an edge ends with it
VERSIONS_OF_OWNER = """(v.kind = 'node' AND substr(v.key, 1, :length) = :prefix
  OR v.kind = 'edge' AND replace(v.key, :ending, '') <> v.key)"""

# --- accounts: holdings are stored here only ---

# "kglu"
ACCOUNTS_LAYOUT = Layout("investment accounts", 0x6B676C75, **read_statements(__file__, "accounts.sql"))

USERS = "SELECT user_id FROM profiles ORDER BY user_id"
PROFILE = "SELECT owner, risk_tolerance, horizon, goals, preferences FROM profiles WHERE user_id = :user"
PUT_PROFILE = """INSERT INTO profiles (user_id, owner, risk_tolerance, horizon, goals, preferences)
  VALUES (:user, :owner, :risk_tolerance, :horizon, :goals, :preferences) ON CONFLICT (user_id) DO UPDATE SET
  risk_tolerance = excluded.risk_tolerance, horizon = excluded.horizon, goals = excluded.goals, preferences = excluded.preferences"""
POSITIONS = "SELECT symbol, shares, avg_cost, added_at FROM positions WHERE user_id = :user ORDER BY symbol"
SET_POSITION = """INSERT INTO positions (user_id, symbol, shares, avg_cost, added_at) VALUES (:user, :symbol, :shares, :avg_cost, :at)
  ON CONFLICT (user_id, symbol) DO UPDATE SET shares = excluded.shares, avg_cost = excluded.avg_cost"""
END_POSITION = "DELETE FROM positions WHERE user_id = :user AND symbol = :symbol"
WATCHED = "SELECT symbol FROM watchlist WHERE user_id = :user ORDER BY symbol"
WATCH = "INSERT INTO watchlist (user_id, symbol, added_at) VALUES (:user, :symbol, :at) ON CONFLICT (user_id, symbol) DO NOTHING"
UNWATCH = "DELETE FROM watchlist WHERE user_id = :user AND symbol = :symbol"

IN_OUTBOX = "SELECT 1 FROM outbox WHERE key = :key"
POST_BRIEFING = """INSERT INTO outbox (key, user_id, body, created_at) VALUES (:key, :user, :body, :at) ON CONFLICT (key) DO NOTHING"""
POSTED_BRIEFINGS = "SELECT key, user_id, body, created_at, sent_at FROM outbox ORDER BY created_at, key"
POSTED_KEYS = "SELECT key FROM outbox WHERE user_id = :user"
UNSENT_BRIEFINGS = "SELECT key, user_id, body, created_at, sent_at FROM outbox WHERE sent_at IS NULL ORDER BY created_at, key"
MARK_SENT = "UPDATE outbox SET sent_at = :at WHERE key = :key AND sent_at IS NULL"
ERASE_USER = [
    f"DELETE FROM {t} WHERE user_id = :user" for t in ("outbox", "watchlist", "positions", "profiles")
]
