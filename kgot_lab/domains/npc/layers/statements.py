"""The tables of the layers, and what is asked of them, in the words of PostgreSQL; `file` has those in which
SQLite says it otherwise.
"""

from __future__ import annotations

LOG_TABLE = """CREATE TABLE log (number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, session_id TEXT NOT NULL, speaker_id UUID,
  text TEXT NOT NULL, audience JSONB, at TIMESTAMPTZ NOT NULL, words tsvector NOT NULL)"""
LOG_SESSIONS = "CREATE INDEX log_sessions ON log (session_id, number)"
LOG_WORDS = "CREATE INDEX log_words ON log USING gin (words)"
CHUNK_TABLE = """CREATE TABLE chunks (id UUID PRIMARY KEY, entity_id UUID NOT NULL REFERENCES entities (id) ON DELETE CASCADE,
  content TEXT NOT NULL, audience JSONB, embedder TEXT NOT NULL, embedding pgvector.vector NOT NULL)"""
CHUNK_ENTITIES = "CREATE INDEX chunk_entities ON chunks (entity_id)"
CHUNK_VECTORS = """CREATE INDEX chunk_vectors_{dimension} ON chunks
  USING hnsw ((embedding::pgvector.vector({dimension})) pgvector.vector_ip_ops) WHERE {of_dimension}"""
OF_DIMENSION = "pgvector.vector_dims(embedding) = {dimension}"  # a table may have held vectors of another embedder before

AUDIENCE = "(x.audience IS NULL OR x.audience ? CAST(:npc AS text))"  # the rule of `may_know`
HEARD = f"({AUDIENCE} OR x.speaker_id = :npc)"
EVERYTHING = "true"

INDEXED = "to_tsvector('pg_catalog.english', :words)"
APPEND = f"""INSERT INTO log (session_id, speaker_id, text, audience, at, words)
  VALUES (:session, :speaker, :text, :audience, :at, {INDEXED})"""
_ENTRY = "x.number, x.session_id, x.speaker_id, x.text, x.audience, x.at"
TERMS = "unnest(CAST(:terms AS text[])) AS t (value)"
MATCHED = "JOIN log x ON x.words @@ plainto_tsquery('pg_catalog.english', t.value)"

PUT_CHUNK = """INSERT INTO chunks (id, entity_id, content, audience, embedder, embedding)
  VALUES (:id, :entity, :text, :audience, :embedder, :vector) ON CONFLICT (id) DO UPDATE SET entity_id = excluded.entity_id,
  content = excluded.content, audience = excluded.audience, embedder = excluded.embedder, embedding = excluded.embedding"""
CHUNK_THERE = "SELECT 1 FROM chunks x WHERE x.id = :id"
DELETE_CHUNK = "DELETE FROM chunks WHERE id = :id"
CHUNKS = (
    "SELECT x.id, x.entity_id, x.content, x.audience, x.embedding FROM chunks x WHERE x.embedder = :embedder"
)
CHUNKS_OF = f"{CHUNKS} AND x.entity_id = ANY(:ids)"
OTHER_EMBEDDERS = "SELECT 1 FROM chunks x WHERE x.embedder <> :embedder LIMIT 1"


def entries_with(who: str) -> str:
    """The statement that finds what was said with some words: with more of them first, then later ones. `who`
    is HEARD or EVERYTHING.

    No measure of the index itself decides the order, since that would count what others said.
    """
    return f"""SELECT {_ENTRY} FROM {TERMS} {MATCHED}
  WHERE {who} GROUP BY x.number ORDER BY count(*) DESC, x.number DESC LIMIT :limit"""


def last_entries(who: str, *, of_session: bool) -> str:
    """The statement that finds what was said last."""
    return f"SELECT {_ENTRY} FROM log x WHERE {who}{' AND x.session_id = :session' * of_session} ORDER BY x.number DESC LIMIT :limit"
