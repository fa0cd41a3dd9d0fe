-- tables
CREATE TABLE proposals (id TEXT PRIMARY KEY, graph TEXT NOT NULL, body TEXT NOT NULL, at BIGINT NOT NULL);
CREATE TABLE sayings (proposal TEXT NOT NULL, message TEXT NOT NULL, conversation TEXT NOT NULL, said_by TEXT NOT NULL,
         quote TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (proposal, message));

-- indexes
CREATE INDEX proposals_by_graph ON proposals (graph);
CREATE INDEX sayings_by_conversation ON sayings (conversation);
CREATE INDEX sayings_by_person ON sayings (said_by);

-- verdicts: of version 1, whose decisions become changes; one that had not reached its graph is left out
INSERT INTO changes (id, at, clock, who, action, undoes)
  SELECT number, max(at) OVER (ORDER BY number), at, who, action, undoes FROM verdicts WHERE settled = 1;
INSERT INTO versions (kind, key, value, opened, closed)
  SELECT 'standing', proposal, CASE action WHEN 'accept' THEN 'accepted' WHEN 'reject' THEN 'rejected' ELSE 'queued' END, number,
    lead(number) OVER (PARTITION BY proposal ORDER BY number) FROM verdicts WHERE settled = 1;
INSERT INTO versions (kind, key, value, opened, closed)
  SELECT 'standing', proposal, 'queued', 0, min(number) FROM verdicts WHERE settled = 1 GROUP BY proposal;
INSERT INTO versions (kind, key, value, opened, closed)
  SELECT 'diff', v.proposal, v.diff, v.number, (SELECT u.number FROM verdicts u WHERE u.undoes = v.number AND u.settled = 1)
  FROM verdicts v WHERE v.action = 'accept' AND v.settled = 1;
DROP TABLE verdicts;
DROP INDEX proposals_by_standing;
ALTER TABLE proposals DROP COLUMN standing;
CREATE INDEX proposals_by_graph ON proposals (graph);
