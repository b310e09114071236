-- How many bundles were prepared for an account and how many answers it had, in all and on the day
-- (since 1970, of universal time) that was counted last. Replicas of the version before count
-- nothing.

CREATE TABLE primer_counts (
    account         bytea PRIMARY KEY CHECK (octet_length(account) = 32),
    -- Kept for ever, as those of access tokens are; of others only so many.
    lasting         boolean NOT NULL,
    prepared        bigint NOT NULL DEFAULT 0,
    prepared_day    bigint NOT NULL DEFAULT 0,
    prepared_on_day bigint NOT NULL DEFAULT 0,
    answers         bigint NOT NULL DEFAULT 0,
    answers_day     bigint NOT NULL DEFAULT 0,
    answers_on_day  bigint NOT NULL DEFAULT 0,
    changed         bigint NOT NULL DEFAULT 0
);
CREATE INDEX primer_counts_changed ON primer_counts (changed, account) WHERE NOT lasting;
