//! Rotation keys as they travel.

use super::GALOIS_KEYS;
use crate::keys::{GaloisKey, GaloisKeys, centre};
use crate::params::{Params, row};
use primer_ring::prg::SEED_BYTES;
use primer_rlwe::error::HeError;
use primer_rlwe::wire::{HEADER, Reader, Writer, expect_length, limb_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most rotation keys in one message.
const MAX_GALOIS_KEYS: usize = 512;

impl GaloisKeys {
    /// Counts the bytes of `count` rotation keys.
    pub(crate) fn wire_len(params: &Params, count: usize) -> usize {
        HEADER + 4 + count * Self::one(params)
    }

    fn one(params: &Params) -> usize {
        4 + SEED_BYTES + params.data_primes() * params.all_primes() * limb_bytes(params)
    }

    /// Returns the keys as they travel.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let len = Self::wire_len(&self.params, self.keys.len());
        let mut out = Writer::new(&self.params, GALOIS_KEYS, len);
        out.number(self.keys.len());
        for (&steps, key) in &self.keys {
            out.bytes(&steps.to_le_bytes());
            out.bytes(&key.seed);
            for limb in key.sent(&self.params) {
                out.residues(&limb);
            }
        }
        out.finish()
    }

    /// Reads the keys from their bytes.
    ///
    /// # Errors
    /// If the bytes are not rotation keys for these parameters, in rising order, 512
    /// at most.
    pub(crate) fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, GALOIS_KEYS, bytes)?;
        if reader.rest().len() < 4 {
            return Err(HeError::Length {
                expected: Self::wire_len(params, 0),
                actual: bytes.len(),
            });
        }
        let count = reader.number() as usize;
        if count > MAX_GALOIS_KEYS {
            return Err(HeError::Range {
                what: "number of rotation keys",
                value: count,
                max: MAX_GALOIS_KEYS,
            });
        }
        expect_length(bytes, Self::wire_len(params, count))?;
        let row = row(params) as i32;
        let mut keys = BTreeMap::new();
        let data = params.data_primes();
        for _ in 0..count {
            let steps = reader.number() as i32;
            let last = keys.last_key_value().map(|(&s, _)| s);
            if steps == 0
                || !(-row / 2..row / 2).contains(&steps)
                || last.is_some_and(|l| l >= steps)
            {
                return Err(HeError::Header {
                    field: "rotation",
                    found: steps as u32 as u64,
                    expected: centre(last.unwrap_or(-row / 2) + 1, row) as u32 as u64,
                });
            }
            let seed = reader.seed();
            let b = reader.limbs(
                params,
                (0..params.all_primes()).flat_map(|j| std::iter::repeat_n(j, data)),
            )?;
            keys.insert(steps, GaloisKey::receive(params, steps, seed, &b));
        }
        Ok(Self {
            params: params.clone(),
            keys,
        })
    }
}
