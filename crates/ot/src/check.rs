//! The consistency check of an extension: one string of choices for all of Δ.
//!
//! A receiver that deviates may use other choices `c ⊕ e_b` in block `b` of Δ. Then the sender's
//! row differs from what the receiver knows by the bits of Δ in that block, and any use of the row
//! tells whether a guess of them was right. The check of SoftSpokenOT (Roy, CRYPTO 2022) puts a
//! price on this: with a linear hash `h` of columns, of 128 bits,
//!
//! ```text
//! receiver   128 more transfers with random choices, hashed like the others, then thrown away
//!            x = h(c),  T = all h(t^i)                       sends x and a digest of T: 48 bytes
//! sender     compares the digest with that of all h(q^i) ⊕ Δ_i·x
//! ```
//!
//! *The hash* is `h(w) = Σ χ_j·w_j` over GF(2^128), `w_j` the 128-bit words of a column. The `χ_j`
//! of a block of transfers are drawn when its message is complete, from a hash of all messages so
//! far, those of the set-up and its trees included, so there is no further round and nothing is
//! kept: two different columns, fixed before the last `χ` that meets a difference, collide with
//! probability `2^-128`.
//!
//! *What it gives.* Column `i` of block `b` passes if `T_i ⊕ h(t^i) = Δ_i·(x ⊕ h(c_b))`. If the two
//! hashes on the right are equal, it always does; if not, for one value of `Δ_i` only. So a
//! receiver passes with blocks whose choices differ from those of the others only by guessing all
//! bits of Δ in them, with probability `2^-g` for `g` bits; except for a collision, `2^9` pairs of
//! blocks and one `2^-128` for each attempt to find a message (it can be retried locally, at the
//! price of a hash). One bit of block 0 is known, so block 0 takes a guess of `k - 1` bits. A
//! failure ends the session.
//!
//! *What is left of Δ.* After passes that needed `g` guessed bits, which happen with probability
//! `2^-g`, Δ is uniform on the other `127 - g` bits; sets of several extensions intersect. A
//! failure is an answer too: a receiver that guesses one bit knows it afterwards, at the price of
//! its session if it was wrong, so one that has risked `g - 1` bits and survived may know `g`. A
//! session that failed is not used again. Bundles that were prepared in it before can still be
//! spent, but each has a Δ of its own ([`crate::renewal`]), so guesses about one do not help with
//! another. The bounds that rest on Δ survive: `2^-g` times `p/2^(127-g)` is `p/2^127`.
//!
//! *Rows reach the caller before the check has passed.* Nothing that depends on them may be sent
//! until the extension returns; garbling, products, pads and one-hot shares keep to this.
//!
//! *What it costs the receiver's privacy*: nothing. `x` is masked by the 128 choices that are
//! thrown away, and `T` is what the sender computes itself.

use crate::base::Session;
use crate::clmul::{Product, Sums};
use crate::error::{OtError, Result};
use crate::transpose::COLUMNS;
use primer_ring::prg::Prg;
use primer_wire::{RecvStream, SendStream};
use zeroize::Zeroizing;

/// Transfers that mask the hash of the choices.
pub(crate) const MASKING: usize = 128;
/// Bytes of the proof: a hash of the choices, and a digest.
pub(crate) const PROOF_BYTES: usize = 16 + 32;

/// One party's hashes of an extension so far.
pub(crate) struct Check {
    transcript: blake3::Hasher,
    columns: Zeroizing<Vec<Product>>,
    choices: Zeroizing<Product>,
}

impl Check {
    /// Begins the check of an extension that has this place in its session: the transfers before
    /// it, its own, and the blocks of streams that were read.
    pub(crate) fn new(session: &Session, place: [u64; 3]) -> Self {
        let mut transcript = blake3::Hasher::new_derive_key("primer ot consistency check v2");
        transcript.update(session);
        for number in place {
            transcript.update(&number.to_le_bytes());
        }
        Self {
            transcript,
            columns: Zeroizing::new(vec![Product::default(); COLUMNS]),
            choices: Zeroizing::default(),
        }
    }

    /// Absorbs a part of the receiver's message.
    pub(crate) fn absorb(&mut self, message: &[u8]) {
        self.transcript.update(message);
    }

    /// Hashes a block of columns of `bytes` bytes, `stride` apart, and the choices, if known. The
    /// message of the block has been absorbed.
    pub(crate) fn add(
        &mut self,
        matrix: &mut [u8],
        stride: usize,
        bytes: usize,
        choices: Option<&[u8]>,
    ) {
        let seed = *self.transcript.finalize().as_bytes();
        let (seed, _) = seed.split_first_chunk().expect("a seed is shorter");
        let mut challenge = vec![0; 16 * bytes.div_ceil(16)];
        Prg::new(seed).fill(&mut challenge);
        let sums = Sums::new(&challenge);
        for (column, sum) in matrix.chunks_exact_mut(stride).zip(self.columns.iter_mut()) {
            let column = &mut column[..challenge.len()];
            // Past the message the parties' columns are not related.
            column[bytes..].fill(0);
            sums.add(column, sum);
        }
        if let Some(choices) = choices {
            let mut whole = Zeroizing::new(vec![0; challenge.len()]);
            whole[..bytes].copy_from_slice(choices);
            sums.add(&whole, &mut self.choices);
        }
    }

    /// Sends the receiver's proof.
    pub(crate) fn prove(self, stream: &mut SendStream<'_>) -> Result<()> {
        stream.put(&self.choices.reduce().to_le_bytes())?;
        Ok(stream.put(self.digest(0, 0).as_bytes())?)
    }

    /// Checks the receiver's proof, as the sender.
    pub(crate) fn verify(self, stream: &mut RecvStream<'_>, delta: u128) -> Result<()> {
        let (mut choices, mut digest) = ([0; 16], [0; 32]);
        stream.get(&mut choices)?;
        stream.get(&mut digest)?;
        // Compared in constant time.
        match self.digest(u128::from_le_bytes(choices), delta) == digest {
            true => Ok(()),
            false => Err(OtError::Inconsistent),
        }
    }

    /// Returns the digest of every column's hash, with `choices` added where `delta` has a bit.
    fn digest(&self, choices: u128, delta: u128) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_derive_key("primer ot consistency digest v1");
        for (i, sum) in self.columns.iter().enumerate() {
            let mask = (delta >> i & 1).wrapping_neg();
            let hash = Zeroizing::new((sum.reduce() ^ (choices & mask)).to_le_bytes());
            hasher.update(&*hash);
        }
        let digest = hasher.finalize();
        zeroize::Zeroize::zeroize(&mut hasher);
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_wire::kind::trial::FIRST as PROOF;
    use primer_wire::run_pair;

    const BYTES: usize = 40;
    const STRIDE: usize = 64;

    /// Returns the sender's verdict on a receiver whose choices in column `i` are those of
    /// `choices(i)`, and who proves that they are `claimed`, adding `guess` to the hashes of the
    /// columns in `guessed`.
    fn verdict(
        delta: u128,
        choices: impl Fn(usize) -> [u8; BYTES] + Sync,
        claimed: [u8; BYTES],
        guessed: u128,
    ) -> Result<()> {
        let mut t = vec![0; COLUMNS * STRIDE];
        Prg::new(&[7; 16]).fill(&mut t);
        let mut q = t.clone();
        for (i, column) in q.chunks_exact_mut(STRIDE).enumerate() {
            let mask = ((delta >> i & 1) as u8).wrapping_neg();
            let pairs = column.iter_mut().zip(choices(i));
            pairs.for_each(|(q, c)| *q ^= c & mask);
        }
        let begin = || {
            let mut check = Check::new(&[3; 32], [99, 320, 0]);
            check.absorb(b"whatever was sent, both saw the same");
            check
        };
        let run = run_pair(
            |channel| {
                let mut check = begin();
                check.add(&mut t, STRIDE, BYTES, Some(&claimed));
                // In columns guessed to have a bit of Δ, what that bit would add.
                for (i, sum) in check.columns.iter_mut().enumerate() {
                    if guessed >> i & 1 == 1 {
                        let mut other = begin();
                        let mut one = vec![0; COLUMNS * STRIDE];
                        let both = choices(i).into_iter().zip(claimed);
                        one.iter_mut().zip(both).for_each(|(x, (a, b))| *x = a ^ b);
                        other.add(&mut one, STRIDE, BYTES, None);
                        sum.add(&other.columns[0]);
                    }
                }
                let mut stream = channel.send_stream(PROOF, PROOF_BYTES as u64)?;
                check.prove(&mut stream)
            },
            |channel| {
                let mut check = begin();
                check.add(&mut q, STRIDE, BYTES, None);
                let mut stream = channel.recv_stream(PROOF, PROOF_BYTES as u64)?;
                check.verify(&mut stream, delta)
            },
        );
        run.map(drop)
    }

    #[test]
    fn one_string_of_choices_passes() {
        let mut rng = Prg::new(&[1; 16]);
        for _ in 0..10 {
            let mut choices = [0; BYTES];
            rng.fill(&mut choices);
            let delta = u128::from_le_bytes(rng.seed());
            verdict(delta, |_| choices, choices, 0).unwrap();
            let mut other = choices;
            other[BYTES - 1] ^= 1;
            let lie = verdict(delta, |_| choices, other, 0);
            assert!(matches!(lie, Err(OtError::Inconsistent)));
        }
    }

    /// Checks that other choices in some columns pass if and only if all bits of Δ there were
    /// guessed.
    #[test]
    fn other_choices_pass_with_the_right_guess_only() {
        let (choices, mut other) = ([0x5a; BYTES], [0x5a; BYTES]);
        other[13] ^= 0x10;
        let columns = 12..16;
        for bits in 0..16u128 {
            let delta = (0x1234_5678_9abc_def0_1357_9bdf_0246_0001 & !0xf000) | bits << 12;
            for guess in 0..16u128 {
                let used = |i| if columns.contains(&i) { other } else { choices };
                let passed = verdict(delta, used, choices, guess << 12).is_ok();
                assert_eq!(
                    passed,
                    guess == bits,
                    "Δ has {bits:04b}, guessed {guess:04b}"
                );
            }
        }
    }
}
