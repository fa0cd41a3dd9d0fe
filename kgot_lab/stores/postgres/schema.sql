-- The tables of a namespace.

-- Text search reads the first 100,000 characters, because a tsvector holds at most 1 MB. Punctuation becomes
-- spaces: PostgreSQL parses a/b as a file and a.b as a host, and finds neither by its parts. Ids are names: no
-- stemming and no stop words (The Who). Properties are prose.
CREATE FUNCTION spaced(words text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN regexp_replace(left(words, 100000), '[!-/:-@[-`{-~]', ' ', 'g');
CREATE FUNCTION texts_of(properties jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN (SELECT string_agg(value #>> '{}', ' ')
          FROM jsonb_path_query(properties, 'strict $.** ? (@.type() == "string" || @.type() == "number")') AS value);

CREATE TABLE nodes (
  id text PRIMARY KEY,
  labels jsonb NOT NULL DEFAULT '[]' CHECK (jsonb_typeof(labels) = 'array'),
  properties jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(properties) = 'object'),
  number bigint GENERATED ALWAYS AS IDENTITY,
  words tsvector GENERATED ALWAYS AS (
    setweight(to_tsvector('pg_catalog.simple', spaced(id)), 'A') ||
    setweight(to_tsvector('pg_catalog.english', spaced(coalesce(texts_of(properties), ''))), 'B')) STORED
);
CREATE TABLE edges (
  source text NOT NULL,
  type text NOT NULL,
  target text NOT NULL,
  key text NOT NULL DEFAULT '',
  properties jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(properties) = 'object'),
  number bigint GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (source, type, target, key)
);
CREATE VIEW facts AS SELECT source AS subject, type AS relation, target AS object, key, properties FROM edges;
