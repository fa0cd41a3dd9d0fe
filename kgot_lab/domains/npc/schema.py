"""The tables of a world; each statement may be run again, and changes nothing then.

To what the document on the entity graph states, they add a row for each session that speaks for a
relationship (`support`), whether that is accepted, when it last changed, whether it is marked as secret, and
the index on its confidence as a number.
"""

from __future__ import annotations

from functools import cache

from kgot_lab.memory.tables import Layout

CONFIDENCE = "(r.provenance->>'confidence')::float8"  # the index of PostgreSQL is on these words, so questions use them too
_TABLES = (
    """CREATE TABLE IF NOT EXISTS entities (
         id UUID PRIMARY KEY DEFAULT gen_random_uuid(), type TEXT NOT NULL, name TEXT NOT NULL, attributes JSONB NOT NULL DEFAULT '{}',
         created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ NOT NULL DEFAULT now())""",
    """CREATE TABLE IF NOT EXISTS relationships (
         source_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
         target_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
         rel_type TEXT NOT NULL, attributes JSONB NOT NULL DEFAULT '{}', provenance JSONB NOT NULL DEFAULT '{}',
         standing TEXT NOT NULL DEFAULT 'accepted', secret BOOLEAN NOT NULL GENERATED ALWAYS AS (
           coalesce(attributes->'secret', 'false') <> 'false' OR coalesce(attributes->'hidden', 'false') <> 'false') STORED,
         created_at TIMESTAMPTZ NOT NULL DEFAULT now(), updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
         PRIMARY KEY (source_id, target_id, rel_type))""",
    """CREATE TABLE IF NOT EXISTS support (
         source_id UUID NOT NULL, target_id UUID NOT NULL, rel_type TEXT NOT NULL, session_id TEXT NOT NULL,
         said_at TIMESTAMPTZ NOT NULL, confidence DOUBLE PRECISION NOT NULL, source TEXT NOT NULL, dm_confirmed BOOLEAN NOT NULL,
         standing TEXT NOT NULL, PRIMARY KEY (source_id, target_id, rel_type, session_id),
         FOREIGN KEY (source_id, target_id, rel_type) REFERENCES relationships ON DELETE CASCADE)""",
)
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_entities_type ON entities (type)",
    "CREATE INDEX IF NOT EXISTS idx_entities_name ON entities (name)",
    "CREATE INDEX IF NOT EXISTS idx_rel_source ON relationships (source_id)",
    "CREATE INDEX IF NOT EXISTS idx_rel_target ON relationships (target_id)",
    "CREATE INDEX IF NOT EXISTS idx_rel_type ON relationships (rel_type)",
    "CREATE INDEX IF NOT EXISTS idx_rel_provenance_confidence ON relationships (((provenance->>'confidence')::float8))",
    "CREATE INDEX IF NOT EXISTS idx_support_queued ON support (standing) WHERE standing = 'queued'",
)
_IN_SQLITE = {
    "UUID": "TEXT",
    "JSONB": "TEXT",
    "TIMESTAMPTZ": "TEXT",
    " DEFAULT gen_random_uuid()": "",
    " DEFAULT now()": "",
    "attributes->'secret'": "json_type(attributes, '$.secret')",
    "attributes->'hidden'": "json_type(attributes, '$.hidden')",
    "(r.provenance->>'confidence')::float8": "CAST(json_extract(r.provenance, '$.confidence') AS REAL)",
    "((provenance->>'confidence')::float8)": "CAST(json_extract(provenance, '$.confidence') AS REAL)",
}


@cache
def in_sqlite(statement: str) -> str:
    """A statement or definition for PostgreSQL as SQLite says it."""
    for theirs, ours in _IN_SQLITE.items():
        statement = statement.replace(theirs, ours)
    return statement


WORLD_LAYOUT = Layout(
    "world",
    0x6B676C77,  # "kglw"
    (),
    sqlite=tuple(map(in_sqlite, (*_TABLES, *_INDEXES))),
    postgres=(*_TABLES, *_INDEXES),
    repeatable=True,
)
