//! How an index writes down what it knows.
//!
//! Records are postcard after one byte of version, so that a later program can tell them apart. The
//! attachment is a value of its own: listing and choosing do not touch it.

use super::{Entry, Fate, Past};
#[cfg(feature = "files")]
use crate::counts::{Account, Counting, Counts, Tally};
use crate::error::{Result, StoreError};
use crate::id::BundleId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct EntryRecord {
    peer: [u8; 32],
    program: [u8; 32],
    tokens: u32,
    created: u64,
    expires: u64,
    bytes: u64,
    file_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct PastRecord {
    peer: [u8; 32],
    fate: Fate,
    spends: u32,
    at: u64,
    until: u64,
}

#[cfg(feature = "files")]
#[derive(Serialize, Deserialize)]
struct CountsRecord {
    lasting: bool,
    prepared: Tally,
    answers: Tally,
    changed: u64,
}

fn encode(record: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(record, vec![VERSION]).expect("records of fixed shape encode")
}

fn decode<T: DeserializeOwned>(what: &'static str, bytes: &[u8]) -> Result<T> {
    let fault = || StoreError::Record {
        what,
        bytes: bytes.len(),
    };
    let (&version, rest) = bytes.split_first().ok_or_else(fault)?;
    match postcard::take_from_bytes(rest) {
        Ok((record, [])) if version == VERSION => Ok(record),
        _ => Err(fault()),
    }
}

pub(crate) fn encode_entry(e: &Entry) -> Vec<u8> {
    encode(&EntryRecord {
        peer: e.peer,
        program: e.program,
        tokens: e.tokens,
        created: e.created,
        expires: e.expires,
        bytes: e.bytes,
        file_bytes: e.file_bytes,
    })
}

pub(crate) fn decode_entry(id: BundleId, bytes: &[u8]) -> Result<Entry> {
    let r: EntryRecord = decode("bundle record", bytes)?;
    Ok(Entry {
        id,
        peer: r.peer,
        program: r.program,
        tokens: r.tokens,
        created: r.created,
        expires: r.expires,
        bytes: r.bytes,
        file_bytes: r.file_bytes,
    })
}

pub(crate) fn encode_past(p: &Past) -> Vec<u8> {
    encode(&PastRecord {
        peer: p.peer,
        fate: p.fate,
        spends: p.spends,
        at: p.at,
        until: p.until,
    })
}

pub(crate) fn decode_past(id: BundleId, bytes: &[u8]) -> Result<Past> {
    let r: PastRecord = decode("tombstone", bytes)?;
    Ok(Past {
        id,
        peer: r.peer,
        fate: r.fate,
        spends: r.spends,
        at: r.at,
        until: r.until,
    })
}

#[cfg(feature = "files")]
pub(crate) fn encode_counts(account: &Account, counts: &Counts) -> Vec<u8> {
    encode(&CountsRecord {
        lasting: account.lasting,
        prepared: counts.prepared,
        answers: counts.answers,
        changed: counts.changed,
    })
}

#[cfg(feature = "files")]
pub(crate) fn decode_counts(id: [u8; 32], bytes: &[u8]) -> Result<Counting> {
    let r: CountsRecord = decode("record of an account", bytes)?;
    Ok(Counting {
        account: Account {
            id,
            lasting: r.lasting,
        },
        counts: Counts {
            prepared: r.prepared,
            answers: r.answers,
            changed: r.changed,
        },
    })
}
