-- tables: in both; what has no primary key may be of any length, which no index of PostgreSQL takes but one of hashes
CREATE TABLE facts (id TEXT PRIMARY KEY, subject TEXT NOT NULL, relation TEXT NOT NULL, object TEXT NOT NULL);
CREATE TABLE claims (id TEXT PRIMARY KEY, fact TEXT NOT NULL REFERENCES facts (id), source TEXT NOT NULL,
         span_start BIGINT, span_end BIGINT, span_text TEXT, said_by TEXT NOT NULL, kind TEXT NOT NULL,
         confidence DOUBLE PRECISION NOT NULL, valid_from BIGINT, valid_until BIGINT);
CREATE TABLE premises (claim TEXT NOT NULL, fact TEXT NOT NULL, PRIMARY KEY (claim, fact));
CREATE TABLE answers (id TEXT NOT NULL, text TEXT NOT NULL, at BIGINT NOT NULL);
CREATE TABLE answer_facts (answer TEXT NOT NULL, fact TEXT NOT NULL);
CREATE TABLE unscrubbed (change BIGINT NOT NULL);

-- indexes: in both
CREATE INDEX claims_by_fact ON claims (fact);
CREATE INDEX premises_by_fact ON premises (fact);
CREATE INDEX answers_by_fact ON answer_facts (fact);

-- sqlite: there an index is the table of keys
CREATE TABLE fact_keys (key BIGINT NOT NULL, learnt BIGINT NOT NULL, fact TEXT NOT NULL, PRIMARY KEY (key, learnt, fact)) WITHOUT ROWID;
CREATE INDEX facts_by_subject ON facts (subject, relation);
CREATE INDEX facts_by_relation ON facts (relation);
CREATE INDEX facts_by_object ON facts (object);
CREATE INDEX claims_by_source ON claims (source);
CREATE UNIQUE INDEX answers_by_id ON answers (id);
CREATE UNIQUE INDEX facts_by_answer ON answer_facts (answer, fact);

-- postgres: names and texts of any length are hashed
CREATE TABLE fact_keys (key BIGINT NOT NULL, learnt BIGINT NOT NULL, fact TEXT COLLATE "C" NOT NULL, PRIMARY KEY (key, learnt, fact));
CREATE INDEX facts_by_subject ON facts USING hash (subject);
CREATE INDEX facts_by_relation ON facts USING hash (relation);
CREATE INDEX facts_by_object ON facts USING hash (object);
CREATE INDEX claims_by_source ON claims USING hash (source);
CREATE INDEX answers_by_id ON answers USING hash (id);
CREATE INDEX facts_by_answer ON answer_facts USING hash (answer);
