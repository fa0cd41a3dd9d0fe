-- The tables of a namespace, and the triggers that keep its journal.

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

CREATE UNLOGGED TABLE journal (
  number bigint GENERATED ALWAYS AS IDENTITY, writer xid8 NOT NULL DEFAULT pg_current_xact_id(), what text, before jsonb, after jsonb
);
CREATE INDEX journal_writer ON journal (writer);

CREATE FUNCTION note_node() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO journal (what, before, after) VALUES ('nodes',
    CASE WHEN TG_OP <> 'INSERT' THEN jsonb_build_array(OLD.id, OLD.labels, OLD.properties) END,
    CASE WHEN TG_OP <> 'DELETE' THEN jsonb_build_array(NEW.id, NEW.labels, NEW.properties) END);
  RETURN NULL;
END $$;
CREATE FUNCTION note_edge() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO journal (what, before, after) VALUES ('edges',
    CASE WHEN TG_OP <> 'INSERT' THEN jsonb_build_array(OLD.source, OLD.type, OLD.target, OLD.key, OLD.properties) END,
    CASE WHEN TG_OP <> 'DELETE' THEN jsonb_build_array(NEW.source, NEW.type, NEW.target, NEW.key, NEW.properties) END);
  RETURN NULL;
END $$;
CREATE FUNCTION add_fact() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN
  INSERT INTO nodes (id) VALUES (NEW.subject), (NEW.object) ON CONFLICT DO NOTHING;
  INSERT INTO edges (source, type, target, key, properties)
    VALUES (NEW.subject, NEW.relation, NEW.object, coalesce(NEW.key, ''), coalesce(NEW.properties, '{}'))
    ON CONFLICT (source, type, target, key) DO UPDATE SET properties = edges.properties || excluded.properties;
  RETURN NEW;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON nodes FOR EACH ROW
  WHEN (current_setting('kgot_lab.journal', true) = 'on') EXECUTE FUNCTION note_node();
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON edges FOR EACH ROW
  WHEN (current_setting('kgot_lab.journal', true) = 'on') EXECUTE FUNCTION note_edge();
CREATE TRIGGER add INSTEAD OF INSERT ON facts FOR EACH ROW EXECUTE FUNCTION add_fact();
