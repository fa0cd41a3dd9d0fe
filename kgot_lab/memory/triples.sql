-- tables: those of the document
CREATE TABLE triples (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    subject TEXT NOT NULL,
    relation TEXT NOT NULL,
    object TEXT NOT NULL,
    confidence REAL DEFAULT 1.0,
    source_turn INTEGER,
    created_at TEXT,
    UNIQUE(subject, relation, object)
);
CREATE INDEX idx_subject ON triples(subject);
CREATE INDEX idx_object ON triples(object);
CREATE INDEX idx_relation ON triples(relation);

-- view: the same columns in a file of claims, for other programs, whose rows are learnt by the next store that reads them
CREATE TABLE IF NOT EXISTS written_triples (id INTEGER PRIMARY KEY AUTOINCREMENT, subject TEXT NOT NULL, relation TEXT NOT NULL, object TEXT NOT NULL,
  confidence REAL DEFAULT 1.0, source_turn INTEGER, created_at TEXT);
CREATE VIEW IF NOT EXISTS triples AS
  SELECT min(s.rowid) AS id, f.subject, f.relation, f.object, s.number AS confidence,
    CASE WHEN c.source GLOB 'turn [0-9]*' THEN CAST(substr(c.source, 6) AS INTEGER) END AS source_turn,
    strftime('%Y-%m-%dT%H:%M:%S', (c.valid_from - (c.valid_from % 1000000 + 1000000) % 1000000) / 1000000, 'unixepoch')
      || printf('.%06d+00:00', (c.valid_from % 1000000 + 1000000) % 1000000) AS created_at
  FROM claims c JOIN facts f ON f.id = c.fact JOIN versions s ON s.kind = 'standing' AND s.key = c.id AND s.closed IS NULL
  WHERE s.value IN ('taken', 'accepted') AND c.kind <> 'ended'
    AND NOT EXISTS (SELECT 1 FROM versions d WHERE d.kind = 'drop' AND d.key = c.id AND d.closed IS NULL)
  GROUP BY f.id
  UNION ALL SELECT -id, subject, relation, object, confidence, source_turn, created_at FROM written_triples;
CREATE TRIGGER IF NOT EXISTS write_triples INSTEAD OF INSERT ON triples BEGIN
  INSERT INTO written_triples (subject, relation, object, confidence, source_turn, created_at)
  VALUES (NEW.subject, NEW.relation, NEW.object, coalesce(NEW.confidence, 1.0), NEW.source_turn, NEW.created_at); END;
