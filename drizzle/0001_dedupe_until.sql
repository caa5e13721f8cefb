-- When the dedupe_window of the job's own create ends: retention keeps the job until then, so that a repeat finds it.
ALTER TABLE jobs ADD COLUMN dedupe_until INTEGER;
