-- What a dedupe_key finds, by one seek each, however many jobs had the key before: an unfinished job, and a young one.
DROP INDEX jobs_dedupe;
CREATE INDEX jobs_dedupe_open ON jobs (tenant, dedupe_key, seq)
  WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'active', 'awaiting_approval');
CREATE INDEX jobs_dedupe_young ON jobs (tenant, dedupe_key, created_at)
  WHERE dedupe_key IS NOT NULL AND status <> 'cancelled';
