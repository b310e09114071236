//! Public keys as they travel.

use super::{HEADER, PUBLIC_KEY, Reader, Writer, expect_length, limb_bytes};
use crate::error::HeError;
use crate::keys::PublicKey;
use crate::params::Params;
use primer_lattice::poly::Poly;
use primer_ring::prg::SEED_BYTES;
use std::sync::Arc;

impl PublicKey {
    /// Counts the bytes of a public key.
    pub fn wire_len(params: &Params) -> usize {
        HEADER + SEED_BYTES + params.public_primes() * limb_bytes(params)
    }

    /// Returns the key as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(&self.params, PUBLIC_KEY, Self::wire_len(&self.params));
        out.bytes(&self.seed);
        let [sent, _] = self.halves();
        out.residues(sent.data());
        out.finish()
    }

    /// Reads a key from its bytes.
    ///
    /// # Errors
    /// If the bytes are not a public key for these parameters, or one that may not be used.
    pub fn from_bytes(params: &Arc<Params>, bytes: &[u8]) -> Result<Self, HeError> {
        let mut reader = Reader::new(params, PUBLIC_KEY, bytes)?;
        expect_length(bytes, Self::wire_len(params))?;
        let seed = reader.seed();
        let sent = reader.limbs(params, 0..params.public_primes())?;
        let sent = Poly::from_data(params.basis(), sent);
        let key = Self::from_parts(params, seed, sent);
        key.check()?;
        Ok(key)
    }
}
