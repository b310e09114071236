-- Epochs are a chain: every one that was current has a row, so that a replica can tell whether the
-- history that it has seen is the one that it finds. And what replicas found is on record.

-- The latest epoch that `primer store renew` began, which buried all bundles of before.
ALTER TABLE primer_about ADD COLUMN renewed bigint NOT NULL DEFAULT 0;
-- Where the chain of a store begins that is older than the chain; 0 if it has all of them.
ALTER TABLE primer_about ADD COLUMN chained bigint NOT NULL DEFAULT 0;
UPDATE primer_about SET chained = number;

CREATE TABLE primer_epochs (
    number bigint PRIMARY KEY,
    nonce  bytea NOT NULL CHECK (octet_length(nonce) = 16)
);
INSERT INTO primer_epochs SELECT number, nonce FROM primer_about;

-- The database appends by itself, in the transaction of the move: replicas of the version before,
-- which know of no chain, leave no gap in it. What a renewal ended, and what is older than 600,000
-- epochs (more than eleven months), goes.
CREATE OR REPLACE FUNCTION primer_append_epoch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO primer_epochs VALUES (NEW.number, NEW.nonce) ON CONFLICT (number) DO NOTHING;
    DELETE FROM primer_epochs WHERE number < greatest(NEW.renewed, NEW.number - 600000);
    RETURN NULL;
END $$;
CREATE TRIGGER primer_append_epoch AFTER INSERT OR UPDATE ON primer_about
    FOR EACH ROW EXECUTE FUNCTION primer_append_epoch();

-- Replicas that have seen an epoch which this database does not have: which one, at which epoch
-- they found the database, and when. In force until a renewal has a greater number than all three.
CREATE TABLE primer_rollbacks (
    replica text PRIMARY KEY,
    seen    bigint NOT NULL,
    found   bigint NOT NULL,
    at      bigint NOT NULL
);
