-- Rows with bodies get row numbers. In a table WITHOUT ROWID the whole row is the key of its tree, and SQLite reads all of
-- one that fills more than a page to compare it: among responses of a megabyte each look-up of another cost milliseconds.
CREATE TABLE steps_rows (
  job INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  position INTEGER NOT NULL CHECK (position BETWEEN 0 AND 19),
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  method TEXT NOT NULL,
  headers TEXT CHECK (headers IS NULL OR json_valid(headers)),
  payload TEXT,
  max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
  timeout TEXT NOT NULL,
  retry_delays TEXT CHECK (retry_delays IS NULL OR json_valid(retry_delays)),
  no_retry_on TEXT CHECK (no_retry_on IS NULL OR json_valid(no_retry_on)),
  delay TEXT,
  requires_approval INTEGER NOT NULL CHECK (requires_approval IN (0, 1)),
  approved_at INTEGER,
  PRIMARY KEY (job, position),
  UNIQUE (job, name)
) STRICT;
INSERT INTO steps_rows SELECT * FROM steps;
DROP TABLE steps;
ALTER TABLE steps_rows RENAME TO steps;

CREATE TABLE attempts_rows (
  job INTEGER NOT NULL REFERENCES jobs (seq) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  number INTEGER NOT NULL CHECK (number > 0),
  started_at INTEGER NOT NULL,
  duration_ms INTEGER,
  code INTEGER,
  headers TEXT,
  body BLOB,
  truncated INTEGER NOT NULL DEFAULT 0 CHECK (truncated IN (0, 1)),
  error TEXT,
  error_code TEXT,
  decision TEXT NOT NULL,
  PRIMARY KEY (job, step, number)
) STRICT;
INSERT INTO attempts_rows SELECT * FROM attempts;
DROP TABLE attempts;
ALTER TABLE attempts_rows RENAME TO attempts;

CREATE TABLE answers_rows (
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER NOT NULL,
  -- Headers and body, sealed: an answer can hold a key.
  sealed TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT;
INSERT INTO answers_rows SELECT * FROM answers;
DROP TABLE answers;
ALTER TABLE answers_rows RENAME TO answers;
CREATE INDEX answers_created ON answers (created_at);
