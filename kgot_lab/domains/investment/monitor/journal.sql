-- tables
CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT NOT NULL, published_at BIGINT NOT NULL, arrived_at BIGINT NOT NULL,
             failed BIGINT NOT NULL, facts TEXT, written_at BIGINT);
CREATE TABLE replies (key TEXT PRIMARY KEY, model TEXT NOT NULL, asked BIGINT NOT NULL, reply TEXT);
CREATE TABLE ticks (id BIGINT PRIMARY KEY, due BIGINT NOT NULL, missed BIGINT NOT NULL, begun_at BIGINT NOT NULL,
             ended_at BIGINT);

-- indexes
CREATE INDEX items_to_read ON items (failed, published_at, id) WHERE facts IS NULL;
CREATE INDEX items_to_write ON items (published_at, id) WHERE written_at IS NULL;
