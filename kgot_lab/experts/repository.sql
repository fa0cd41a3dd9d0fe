-- tables: in both
CREATE TABLE experts (id TEXT PRIMARY KEY, body TEXT NOT NULL, created BIGINT NOT NULL, updated BIGINT NOT NULL, gone BIGINT);
CREATE TABLE conversations (id TEXT PRIMARY KEY, expert TEXT NOT NULL, owner TEXT NOT NULL, started BIGINT NOT NULL,
         last BIGINT NOT NULL, preview TEXT NOT NULL, chain TEXT NOT NULL);
CREATE TABLE messages (conversation TEXT NOT NULL, number BIGINT NOT NULL, id TEXT NOT NULL UNIQUE, role TEXT NOT NULL,
         content TEXT NOT NULL, at BIGINT NOT NULL, metadata TEXT NOT NULL, PRIMARY KEY (conversation, number));
CREATE TABLE opinions (message TEXT PRIMARY KEY, thumb BIGINT NOT NULL, at BIGINT NOT NULL);
CREATE TABLE trials (id TEXT PRIMARY KEY, expert TEXT NOT NULL, body TEXT NOT NULL, begun BIGINT NOT NULL, ended BIGINT);
CREATE TABLE tokens (hash TEXT PRIMARY KEY, tenant TEXT NOT NULL, role TEXT NOT NULL, made BIGINT NOT NULL, revoked BIGINT);

-- indexes: in both; a database created without experts_by_age only needs longer for a page
CREATE INDEX experts_by_age ON experts (created, id);
CREATE INDEX conversations_by_expert ON conversations (expert, owner, last);
CREATE INDEX conversations_by_chain ON conversations (chain);
