-- tables
CREATE TABLE profiles (user_id TEXT PRIMARY KEY, owner TEXT NOT NULL UNIQUE, risk_tolerance TEXT NOT NULL,
             horizon TEXT NOT NULL, goals TEXT NOT NULL, preferences TEXT NOT NULL);
CREATE TABLE positions (user_id TEXT NOT NULL REFERENCES profiles (user_id), symbol TEXT NOT NULL, shares TEXT NOT NULL,
             avg_cost TEXT NOT NULL, added_at BIGINT NOT NULL, PRIMARY KEY (user_id, symbol));
CREATE TABLE watchlist (user_id TEXT NOT NULL REFERENCES profiles (user_id), symbol TEXT NOT NULL, added_at BIGINT NOT NULL,
             PRIMARY KEY (user_id, symbol));
CREATE TABLE outbox (key TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES profiles (user_id), body TEXT NOT NULL,
             created_at BIGINT NOT NULL, sent_at BIGINT);
