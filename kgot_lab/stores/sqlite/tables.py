"""The tables of an SQLite file that holds a graph, and the journal of what a statement changes in them."""

from __future__ import annotations

from kgot_lab.stores.sqlite.damage import SUMS

SCHEMA = (
    """CREATE TABLE nodes (
        id TEXT NOT NULL UNIQUE CHECK (id <> ''),
        labels TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(labels) AND json_type(labels) = 'array'),
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY
    ) STRICT""",  # by number, oldest first: a declared one stays the same through VACUUM
    """CREATE TABLE edges (
        source TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        type TEXT NOT NULL CHECK (type <> ''),
        target TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        key TEXT NOT NULL DEFAULT '',
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY,
        UNIQUE (source, type, target, key)
    ) STRICT""",
    "CREATE INDEX edges_by_target ON edges (target, source, type, key)",
    "CREATE INDEX edges_by_type ON edges (type)",  # these two so that counting reads no properties
    "CREATE INDEX nodes_by_labels ON nodes (labels)",
    "CREATE VIEW facts (subject, relation, object, key, properties) AS SELECT source, type, target, key, properties FROM edges",
    "CREATE VIRTUAL TABLE words USING fts5 (name, texts, tokenize = 'porter unicode61')",
    "CREATE TABLE waiting (yes)",  # holds a row, within a transaction, while new nodes are indexed later and together
    "CREATE TRIGGER words_come AFTER INSERT ON nodes WHEN NOT EXISTS (SELECT yes FROM waiting) BEGIN {index} END",
    "CREATE TRIGGER words_go AFTER DELETE ON nodes BEGIN DELETE FROM words WHERE rowid = OLD.number; END",
    """CREATE TRIGGER words_change AFTER UPDATE OF id, properties, number ON nodes BEGIN
        DELETE FROM words WHERE rowid = OLD.number; {index} END""",
    *SUMS,
)
_TEXTS = """(SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree({0}.properties) WHERE type IN ('text', 'integer', 'real'))"""
_INDEX = f"INSERT INTO words (rowid, name, texts) VALUES (NEW.number, NEW.id, {_TEXTS.format('NEW')});"
GRAPH_TABLES = tuple(statement.replace("{index}", _INDEX) for statement in SCHEMA)
INDEX_SINCE = f"INSERT INTO words (rowid, name, texts) SELECT number, id, {_TEXTS.format('nodes')} FROM nodes WHERE number > ?"

# The journal is this connection's own: nothing of it is written to the file, and its cost is that of the rows
# a statement touched.
_NODE, _EDGE = (
    "{0}.id, {0}.labels, {0}.properties, NULL, NULL",
    "{0}.source, {0}.type, {0}.target, {0}.key, {0}.properties",
)
_NOTHING = "NULL, NULL, NULL, NULL, NULL"
RECORDERS = {
    f"{kind}_{event}": f"CREATE TEMP TRIGGER {kind}_{event} AFTER {event} ON main.{kind} WHEN (SELECT yes FROM recording) BEGIN"
    f" INSERT INTO journal VALUES ('{kind}', {row.format('OLD') if event != 'INSERT' else _NOTHING},"
    f" {row.format('NEW') if event != 'DELETE' else _NOTHING}); END"
    for kind, row in (("nodes", _NODE), ("edges", _EDGE))
    for event in ("INSERT", "UPDATE", "DELETE")
}
JOURNAL = (
    "CREATE TEMP TABLE recording (yes)",
    "CREATE TEMP TABLE journal (kind, b1, b2, b3, b4, b5, a1, a2, a3, a4, a5)",
    *RECORDERS.values(),
    """CREATE TEMP TRIGGER fact_comes INSTEAD OF INSERT ON main.facts BEGIN
        INSERT INTO nodes (id) VALUES (NEW.subject), (NEW.object) ON CONFLICT (id) DO NOTHING;
        INSERT INTO edges (source, type, target, key, properties)
        VALUES (NEW.subject, NEW.relation, NEW.object, coalesce(NEW.key, ''), coalesce(NEW.properties, '{}'))
        ON CONFLICT (source, type, target, key) DO UPDATE SET properties = merged(edges.properties, excluded.properties);
    END""",
)
