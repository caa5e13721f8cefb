-- Times are milliseconds since the Unix epoch; durations are texts as users write them ("30s"); flags are 0 and 1.

CREATE TABLE accounts (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- One account in one mode: what every other row belongs to.
CREATE TABLE tenants (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL REFERENCES accounts (id),
  mode TEXT NOT NULL CHECK (mode IN ('test', 'live')),
  UNIQUE (account_id, mode)
) STRICT;

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  hash TEXT NOT NULL UNIQUE CHECK (length(hash) = 64),
  name TEXT NOT NULL,
  hint TEXT NOT NULL,
  scopes TEXT NOT NULL CHECK (json_valid(scopes)),
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX api_keys_tenant ON api_keys (tenant, id);

CREATE TABLE signing_secrets (
  id TEXT PRIMARY KEY,
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  sealed TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER
) STRICT;
CREATE INDEX signing_secrets_tenant ON signing_secrets (tenant, created_at);

CREATE TABLE queues (
  id INTEGER PRIMARY KEY,
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  name TEXT NOT NULL,
  concurrency INTEGER CHECK (concurrency > 0),
  rate_limit INTEGER CHECK (rate_limit > 0),
  rate_period TEXT,
  paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  created_at INTEGER NOT NULL,
  UNIQUE (tenant, name),
  CHECK ((rate_limit IS NULL) = (rate_period IS NULL))
) STRICT;

-- The recent starts in queues with a rate limit: what the limit is counted from, also after a restart.
CREATE TABLE queue_starts (
  queue INTEGER NOT NULL REFERENCES queues (id),
  at INTEGER NOT NULL
) STRICT;
CREATE INDEX queue_starts_at ON queue_starts (queue, at);

-- Jobs of each queue by state, kept in step by every transition, so that nobody has to count.
CREATE TABLE queue_counts (
  queue INTEGER NOT NULL REFERENCES queues (id),
  status TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (queue, status)
) STRICT, WITHOUT ROWID;

-- Pending jobs wait per queue and origin, so that no target is in the way of another. Retention removes a lane in which
-- none waits; no other ever gets its number, which the engine may still have in mind.
CREATE TABLE lanes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue INTEGER NOT NULL REFERENCES queues (id),
  origin TEXT NOT NULL,
  UNIQUE (queue, origin)
) STRICT;

CREATE TABLE schedules (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  name TEXT,
  cron_expr TEXT NOT NULL,
  timezone TEXT NOT NULL,
  template TEXT NOT NULL CHECK (json_valid(template)),
  on_missed TEXT NOT NULL CHECK (on_missed IN ('skip', 'once', 'all')),
  on_overlap TEXT NOT NULL CHECK (on_overlap IN ('allow', 'skip')),
  starts_at INTEGER,
  ends_at INTEGER,
  paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
  next_run_at INTEGER,
  last_run_at INTEGER,
  last_job_id TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (tenant, name),
  CHECK (paused = 0 OR next_run_at IS NULL)
) STRICT;
CREATE INDEX schedules_due ON schedules (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX schedules_tenant ON schedules (tenant, seq);

-- One line for each due time of a schedule, whatever became of it.
CREATE TABLE occurrences (
  schedule INTEGER NOT NULL REFERENCES schedules (seq) ON DELETE CASCADE,
  scheduled_for INTEGER NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'late', 'missed', 'skipped_overlap')),
  job_id TEXT,
  lateness_ms INTEGER,
  PRIMARY KEY (schedule, scheduled_for),
  CHECK ((job_id IS NOT NULL) = (outcome IN ('fired', 'late')))
) STRICT, WITHOUT ROWID;

CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  queue INTEGER NOT NULL REFERENCES queues (id),
  lane INTEGER REFERENCES lanes (id),
  -- A callback is a job that nobody lists; this is the id of the job whose end it tells.
  callback_of TEXT,
  status TEXT NOT NULL CHECK (status IN ('pending', 'active', 'completed', 'failed', 'cancelled', 'awaiting_approval')),
  url TEXT,
  method TEXT NOT NULL,
  headers TEXT CHECK (headers IS NULL OR json_valid(headers)),
  max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 100),
  timeout TEXT NOT NULL,
  retry_delays TEXT CHECK (retry_delays IS NULL OR json_valid(retry_delays)),
  no_retry_on TEXT CHECK (no_retry_on IS NULL OR json_valid(no_retry_on)),
  tags TEXT CHECK (tags IS NULL OR json_valid(tags)),
  step INTEGER NOT NULL DEFAULT 0,
  step_count INTEGER NOT NULL DEFAULT 0,
  run_at INTEGER NOT NULL,
  due_at INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  spent INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  response_code INTEGER,
  duration_ms INTEGER,
  last_error TEXT,
  last_error_code TEXT,
  dedupe_key TEXT,
  idempotency_key TEXT,
  requires_approval INTEGER NOT NULL DEFAULT 0 CHECK (requires_approval IN (0, 1)),
  approval_timeout TEXT,
  approved_at INTEGER,
  approved_by TEXT,
  rejected_at INTEGER,
  rejected_by TEXT,
  approval_note TEXT,
  callback_url TEXT,
  schedule_id TEXT,
  scheduled_for INTEGER,
  CHECK ((url IS NULL) = (step_count > 0)),
  CHECK (step_count = 0 OR step < step_count),
  CHECK (attempts >= spent),
  CHECK ((lane IS NOT NULL) = (status = 'pending')),
  -- What lifecycle.ts promises of each state.
  CHECK ((status = 'pending' AND due_at IS NOT NULL) OR status = 'awaiting_approval' OR (status NOT IN ('pending', 'awaiting_approval') AND due_at IS NULL)),
  CHECK (status <> 'active' OR (attempts > 0 AND started_at IS NOT NULL)),
  CHECK ((finished_at IS NOT NULL) = (status IN ('completed', 'failed', 'cancelled')))
) STRICT;
CREATE INDEX jobs_status ON jobs (tenant, status, seq);
-- Pending jobs by their lane; also what the foreign key looks into when a lane is removed.
CREATE INDEX jobs_due ON jobs (lane, due_at, seq) WHERE lane IS NOT NULL;
CREATE INDEX jobs_approval_due ON jobs (due_at) WHERE status = 'awaiting_approval' AND due_at IS NOT NULL;
CREATE INDEX jobs_schedule ON jobs (schedule_id, seq) WHERE schedule_id IS NOT NULL;
-- Whether a run of the schedule is still under way, for on_overlap.
CREATE INDEX jobs_schedule_open ON jobs (schedule_id)
  WHERE schedule_id IS NOT NULL AND status IN ('pending', 'active', 'awaiting_approval');
CREATE INDEX jobs_dedupe ON jobs (tenant, dedupe_key, seq) WHERE dedupe_key IS NOT NULL;
CREATE INDEX jobs_callback ON jobs (callback_of, seq) WHERE callback_of IS NOT NULL;

-- Bodies live apart, so that lists, claims and state changes touch small pages.
CREATE TABLE payloads (
  job INTEGER PRIMARY KEY REFERENCES jobs (seq) ON DELETE CASCADE,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE steps (
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
) STRICT, WITHOUT ROWID;

-- The ledger: one line for each attempt that ended, with the response as it came.
CREATE TABLE attempts (
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
) STRICT, WITHOUT ROWID;

-- Answers to be repeated under an Idempotency-Key.
CREATE TABLE answers (
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER NOT NULL,
  -- Headers and body, sealed: an answer can hold a key.
  sealed TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_created ON answers (created_at);

CREATE TABLE usage (
  tenant INTEGER NOT NULL REFERENCES tenants (id),
  day TEXT NOT NULL,
  jobs INTEGER NOT NULL DEFAULT 0,
  deliveries INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;

-- Facts about the file itself, such as that it was restored from a backup.
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
