-- Of jobs older than this column nobody knows the window: retention keeps them for the longest that there is.
UPDATE jobs SET dedupe_until = created_at + 30 * 86400000 WHERE dedupe_key IS NOT NULL AND dedupe_until IS NULL;

-- What a dedupe_key finds, by one seek each, however many jobs had the key before: an unfinished job, and a young one.
DROP INDEX jobs_dedupe;
CREATE INDEX jobs_dedupe_open ON jobs (tenant, dedupe_key, seq)
  WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'active', 'awaiting_approval');
CREATE INDEX jobs_dedupe_young ON jobs (tenant, dedupe_key, created_at)
  WHERE dedupe_key IS NOT NULL AND status <> 'cancelled';
