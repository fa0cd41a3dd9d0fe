-- world: extends the tables in the document on the entity graph by a row for each session that supports a relationship (`support`), its standing, the time of its last change, a mark for secrets, and an index on confidence as a number
CREATE TABLE IF NOT EXISTS entities (
         id UUID PRIMARY KEY DEFAULT (gen_random_uuid()), type TEXT NOT NULL, name TEXT NOT NULL, attributes JSONB NOT NULL DEFAULT '{}',
         created_at TIMESTAMPTZ NOT NULL DEFAULT (now()), updated_at TIMESTAMPTZ NOT NULL DEFAULT (now()));
CREATE TABLE IF NOT EXISTS relationships (
         source_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
         target_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
         rel_type TEXT NOT NULL, attributes JSONB NOT NULL DEFAULT '{}', provenance JSONB NOT NULL DEFAULT '{}',
         standing TEXT NOT NULL DEFAULT 'accepted', secret BOOLEAN NOT NULL GENERATED ALWAYS AS (
           coalesce(attributes->'secret', 'false') <> 'false' OR coalesce(attributes->'hidden', 'false') <> 'false') STORED,
         created_at TIMESTAMPTZ NOT NULL DEFAULT (now()), updated_at TIMESTAMPTZ NOT NULL DEFAULT (now()),
         PRIMARY KEY (source_id, target_id, rel_type));
CREATE TABLE IF NOT EXISTS support (
         source_id UUID NOT NULL, target_id UUID NOT NULL, rel_type TEXT NOT NULL, session_id TEXT NOT NULL,
         said_at TIMESTAMPTZ NOT NULL, confidence DOUBLE PRECISION NOT NULL, source TEXT NOT NULL, dm_confirmed BOOLEAN NOT NULL,
         standing TEXT NOT NULL, PRIMARY KEY (source_id, target_id, rel_type, session_id),
         FOREIGN KEY (source_id, target_id, rel_type) REFERENCES relationships ON DELETE CASCADE);
CREATE INDEX IF NOT EXISTS idx_entities_type ON entities (type);
CREATE INDEX IF NOT EXISTS idx_entities_name ON entities (name);
CREATE INDEX IF NOT EXISTS idx_rel_source ON relationships (source_id);
CREATE INDEX IF NOT EXISTS idx_rel_target ON relationships (target_id);
CREATE INDEX IF NOT EXISTS idx_rel_type ON relationships (rel_type);
CREATE INDEX IF NOT EXISTS idx_rel_provenance_confidence ON relationships (CAST(provenance->>'confidence' AS float8));
CREATE INDEX IF NOT EXISTS idx_support_queued ON support (standing) WHERE standing = 'queued';

-- log
CREATE TABLE log (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id TEXT NOT NULL, speaker_id UUID,
  text TEXT NOT NULL, audience JSONB, at TIMESTAMPTZ NOT NULL, words tsvector NOT NULL);
CREATE INDEX log_sessions ON log (session_id, number);

-- log_words_postgres
CREATE INDEX log_words ON log USING gin (words);

-- log_words_sqlite
CREATE VIRTUAL TABLE log_words USING fts5 (words, content = 'log', content_rowid = 'number', tokenize = 'porter unicode61');
CREATE TRIGGER log_comes AFTER INSERT ON log BEGIN INSERT INTO log_words (rowid, words) VALUES (NEW.number, NEW.words); END;
CREATE TRIGGER log_goes AFTER DELETE ON log BEGIN
         INSERT INTO log_words (log_words, rowid, words) VALUES ('delete', OLD.number, OLD.words); END;

-- chunks
CREATE TABLE chunks (id UUID PRIMARY KEY, entity_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  content TEXT NOT NULL, audience JSONB, embedder TEXT NOT NULL, embedding pgvector.vector NOT NULL);
CREATE INDEX chunk_entities ON chunks (entity_id);
