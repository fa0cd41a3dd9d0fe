-- tables
CREATE TABLE nodes (owner TEXT NOT NULL, id TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, symbol TEXT NOT NULL,
             properties TEXT NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, opened BIGINT NOT NULL, closed BIGINT);
CREATE TABLE edges (owner TEXT NOT NULL, source TEXT NOT NULL, type TEXT NOT NULL, target TEXT NOT NULL,
             properties TEXT NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, opened BIGINT NOT NULL, closed BIGINT);

-- indexes
CREATE UNIQUE INDEX nodes_now ON nodes (id) WHERE closed IS NULL;
CREATE INDEX nodes_by_id ON nodes (id);
CREATE INDEX nodes_by_type ON nodes (type);
CREATE INDEX nodes_by_symbol ON nodes (symbol);
CREATE UNIQUE INDEX edges_now ON edges (owner, source, type, target) WHERE closed IS NULL;
CREATE INDEX edges_by_source ON edges (source);
CREATE INDEX edges_by_target ON edges (target);

-- sqlite
CREATE INDEX nodes_by_name ON nodes (name);

-- postgres
CREATE INDEX nodes_by_name ON nodes USING hash (name);

-- changes: of version 1, without author and action
ALTER TABLE changes ADD COLUMN who TEXT NOT NULL DEFAULT '';
ALTER TABLE changes ADD COLUMN action TEXT NOT NULL DEFAULT 'write';
ALTER TABLE changes ADD COLUMN undoes BIGINT;
ALTER TABLE changes ADD COLUMN erased BIGINT NOT NULL DEFAULT 0;
