-- indexes
ALTER TABLE edges
  ADD CONSTRAINT edges_source FOREIGN KEY (source) REFERENCES nodes ON DELETE CASCADE ON UPDATE CASCADE,
  ADD CONSTRAINT edges_target FOREIGN KEY (target) REFERENCES nodes ON DELETE CASCADE ON UPDATE CASCADE;
CREATE INDEX edges_target ON edges (target, type);
CREATE INDEX nodes_labels ON nodes USING gin (labels);
CREATE INDEX nodes_words ON nodes USING gin (words);

-- drop_indexes
ALTER TABLE edges DROP CONSTRAINT edges_source, DROP CONSTRAINT edges_target;
DROP INDEX edges_target, nodes_labels, nodes_words;

-- grants
GRANT USAGE ON SCHEMA {namespace} TO {role};
GRANT SELECT ON nodes, edges, facts TO {role};

-- wipe
DROP VIEW IF EXISTS facts;
DROP TABLE IF EXISTS vectors, edges, nodes, journal;
DROP FUNCTION IF EXISTS note_node, note_edge, add_fact, spaced, texts_of;
DROP SCHEMA {namespace};
