-- version_1: `waiting` holds a row, within a transaction, while new nodes are indexed later and together
CREATE TABLE nodes (
        id TEXT NOT NULL UNIQUE CHECK (id <> ''),
        labels TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(labels) AND json_type(labels) = 'array'),
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY
    ) STRICT;
CREATE TABLE edges (
        source TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        type TEXT NOT NULL CHECK (type <> ''),
        target TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE ON UPDATE CASCADE,
        key TEXT NOT NULL DEFAULT '',
        properties TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(properties) AND json_type(properties) = 'object'),
        number INTEGER PRIMARY KEY,
        UNIQUE (source, type, target, key)
    ) STRICT;
CREATE INDEX edges_by_target ON edges (target, source, type, key);
CREATE INDEX edges_by_type ON edges (type);
CREATE INDEX nodes_by_labels ON nodes (labels);
CREATE VIEW facts (subject, relation, object, key, properties) AS SELECT source, type, target, key, properties FROM edges;
CREATE VIRTUAL TABLE words USING fts5 (name, texts, tokenize = 'porter unicode61');
CREATE TABLE waiting (yes);
CREATE TRIGGER words_come AFTER INSERT ON nodes WHEN NOT EXISTS (SELECT yes FROM waiting) BEGIN INSERT INTO words (rowid, name, texts) VALUES (NEW.number, NEW.id, (SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree(NEW.properties) WHERE type IN ('text', 'integer', 'real'))); END;
CREATE TRIGGER words_go AFTER DELETE ON nodes BEGIN DELETE FROM words WHERE rowid = OLD.number; END;
CREATE TRIGGER words_change AFTER UPDATE OF id, properties, number ON nodes BEGIN
        DELETE FROM words WHERE rowid = OLD.number; INSERT INTO words (rowid, name, texts) VALUES (NEW.number, NEW.id, (SELECT coalesce(group_concat(atom, ' '), '') FROM json_tree(NEW.properties) WHERE type IN ('text', 'integer', 'real'))); END;

-- version_2: the checksum of each row, which the change of a row by any program removes
CREATE TABLE sums (kind TEXT NOT NULL, number INTEGER NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, number)) STRICT, WITHOUT ROWID;
CREATE TRIGGER sum_nodes_before_UPDATE BEFORE UPDATE ON nodes BEGIN DELETE FROM sums WHERE kind = 'nodes' AND number = OLD.number; END;
CREATE TRIGGER sum_nodes_before_DELETE BEFORE DELETE ON nodes BEGIN DELETE FROM sums WHERE kind = 'nodes' AND number = OLD.number; END;
CREATE TRIGGER sum_edges_before_UPDATE BEFORE UPDATE ON edges BEGIN DELETE FROM sums WHERE kind = 'edges' AND number = OLD.number; END;
CREATE TRIGGER sum_edges_before_DELETE BEFORE DELETE ON edges BEGIN DELETE FROM sums WHERE kind = 'edges' AND number = OLD.number; END;
