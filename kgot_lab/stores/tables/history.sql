-- tables: of claims, worlds and investment graphs: changes, and the versions that each opened and closed
CREATE TABLE changes (id BIGINT PRIMARY KEY, at BIGINT NOT NULL, clock BIGINT NOT NULL, who TEXT NOT NULL, action TEXT NOT NULL,
         undoes BIGINT, erased BIGINT NOT NULL DEFAULT 0);
CREATE TABLE versions (kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, number DOUBLE PRECISION,
         opened BIGINT NOT NULL, closed BIGINT);

-- indexes
CREATE INDEX changes_by_undone ON changes (undoes);
CREATE INDEX versions_by_opening ON versions (opened);
CREATE INDEX versions_by_closing ON versions (closed);

-- sqlite
CREATE UNIQUE INDEX IF NOT EXISTS versions_by_key ON versions (kind, key, value, opened);

-- postgres: keys of any length are hashed
CREATE INDEX IF NOT EXISTS versions_by_key ON versions USING hash (key);
CREATE INDEX IF NOT EXISTS versions_by_kind ON versions (kind, opened) WHERE kind IN ('merged', 'declared');
