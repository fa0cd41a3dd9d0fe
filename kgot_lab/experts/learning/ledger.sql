-- tables
CREATE TABLE proposals (id TEXT PRIMARY KEY, graph TEXT NOT NULL, body TEXT NOT NULL, standing TEXT NOT NULL, at BIGINT NOT NULL);
CREATE TABLE sayings (proposal TEXT NOT NULL, message TEXT NOT NULL, conversation TEXT NOT NULL, said_by TEXT NOT NULL,
         quote TEXT NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (proposal, message));
CREATE TABLE verdicts (number BIGINT PRIMARY KEY, proposal TEXT NOT NULL, action TEXT NOT NULL, who TEXT NOT NULL,
         at BIGINT NOT NULL, undoes BIGINT, diff TEXT NOT NULL, digest_before TEXT NOT NULL, digest_after TEXT NOT NULL,
         settled BIGINT NOT NULL);

-- indexes
CREATE INDEX proposals_by_standing ON proposals (graph, standing);
CREATE INDEX sayings_by_conversation ON sayings (conversation);
CREATE INDEX sayings_by_person ON sayings (said_by);
