-- The shared store as it began: bundles, what became of those that are gone, and the epoch.

CREATE TABLE primer_about (
    one         boolean PRIMARY KEY DEFAULT true CHECK (one),
    store       bytea NOT NULL CHECK (octet_length(store) = 16),
    -- What the blobs must say too: the number, and which one of that number.
    number      bigint NOT NULL,
    nonce       bytea NOT NULL CHECK (octet_length(nonce) = 16),
    -- What the blobs may say already, while the epoch moves on.
    next_number bigint,
    next_nonce  bytea,
    moved       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE primer_bundles (
    id         bytea PRIMARY KEY CHECK (octet_length(id) = 16),
    peer       bytea NOT NULL CHECK (octet_length(peer) = 32),
    program    bytea NOT NULL CHECK (octet_length(program) = 32),
    tokens     bigint NOT NULL,
    created    bigint NOT NULL,
    expires    bigint NOT NULL,
    bytes      bigint NOT NULL,
    file_bytes bigint NOT NULL,
    -- Half of the salt: the other half is in the blob.
    salt       bytea NOT NULL CHECK (octet_length(salt) = 32),
    blob       text NOT NULL UNIQUE,
    attachment bytea NOT NULL
);
CREATE INDEX primer_bundles_of_peer ON primer_bundles (peer, expires);
CREATE INDEX primer_bundles_expires ON primer_bundles (expires);

CREATE TABLE primer_past (
    id     bytea PRIMARY KEY CHECK (octet_length(id) = 16),
    peer   bytea NOT NULL CHECK (octet_length(peer) = 32),
    fate   smallint NOT NULL,
    spends integer NOT NULL,
    at     bigint NOT NULL,
    until  bigint NOT NULL,
    -- Named as long as it has to be erased.
    blob   text
);
CREATE INDEX primer_past_until ON primer_past (until);
CREATE INDEX primer_past_blob ON primer_past (blob) WHERE blob IS NOT NULL;

CREATE TABLE primer_replicas (
    id   bytea PRIMARY KEY CHECK (octet_length(id) = 16),
    name text NOT NULL,
    seen timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE primer_reservations (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    replica bytea NOT NULL REFERENCES primer_replicas ON DELETE CASCADE,
    peer    bytea NOT NULL,
    bytes   bigint NOT NULL
);
CREATE INDEX primer_reservations_replica ON primer_reservations (replica);
