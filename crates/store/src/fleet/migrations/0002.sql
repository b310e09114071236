-- Keys can be exchanged: a bundle says which one sealed it (none: the one key of before). And
-- whoever made a bundle go is on record.

ALTER TABLE primer_bundles ADD COLUMN key bytea;
ALTER TABLE primer_past ADD COLUMN replica bytea;
ALTER TABLE primer_past ADD COLUMN replica_name text;
