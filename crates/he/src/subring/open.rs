//! Opening an answer: the client's side of [`super::finish`].
//!
//! Both halves come rounded to powers of two. They are brought to the product of the first two
//! primes, where `c1` is multiplied with the secret; the coefficients that were sent are rounded to
//! residues modulo p, and their noise is held against two bounds: the largest of any, and the mean
//! of their squares. The flood fills most of the room, so a wrong key shows in the second. Neither
//! sees a message to which whole units were added: who sends it is for the channel to know.

use super::answers::open_all;
use super::noise::Margins;
use super::shape::Blocks;
use crate::ciphertext::Rounding;
use crate::error::HeError;
use crate::keys::SecretKey;
use primer_lattice::kernel::elementwise;
use primer_ring::matrix::Matrix;
use primer_ring::pack;
use zeroize::Zeroizing;

/// Opens ciphertexts of answers, with the memory for it.
pub(crate) struct Opener<'a> {
    secret: &'a SecretKey,
    margins: Margins,
    rounding: Rounding,
    packed: Vec<u64>,
    lifted: Vec<u32>,
    phase: [Zeroizing<Vec<u32>>; 2],
    /// Noise of the last answer, in units of `q/p`.
    #[cfg(test)]
    pub(crate) noise: Vec<f64>,
}

impl<'a> Opener<'a> {
    /// # Errors
    /// If the parameters leave no room for answers.
    pub(crate) fn new(secret: &'a SecretKey) -> Result<Self, HeError> {
        let n = secret.params().degree();
        Ok(Self {
            secret,
            margins: Margins::of(secret.params())?,
            rounding: Rounding::new(secret.params()),
            packed: vec![0; n],
            lifted: vec![0; n],
            phase: std::array::from_fn(|_| Zeroizing::new(vec![0; n])),
            #[cfg(test)]
            noise: Vec::new(),
        })
    }

    /// The residues of the coefficients that were sent, from bytes of the right length. `index`
    /// names the ciphertext in an error.
    ///
    /// # Errors
    /// If the noise is beyond what any admitted product leaves: a wrong key, or damage.
    pub(crate) fn open(
        &mut self,
        bytes: &[u8],
        sent: &[usize],
        index: usize,
        out: &mut [u64],
    ) -> Result<(), HeError> {
        let params = self.secret.params();
        let Margins {
            c0_bits, c1_bits, ..
        } = self.margins;
        let first = pack::packed_len(sent.len(), c0_bits).unwrap_or(usize::MAX);
        let (first, second) = bytes.split_at_checked(first).ok_or(HeError::Length {
            expected: first,
            actual: bytes.len(),
        })?;
        pack::unpack(second, c1_bits, 1 << c1_bits, &mut self.packed)?;
        let factors = self.rounding.lift(c1_bits, &mut self.packed);
        for (i, phase) in self.phase.iter_mut().enumerate() {
            let (prime, ntt) = (params.prime(i), params.ntt(i));
            elementwise::scale_wide(params.simd(), prime, phase, &self.packed, factors[i]);
            ntt.forward(phase);
            let secret = self.secret.values().limb(i);
            elementwise::mul_assign(params.simd(), prime, phase, secret);
            ntt.inverse(phase);
        }
        pack::unpack(first, c0_bits, 1 << c0_bits, out)?;
        let factors = self.rounding.lift(c0_bits, out);
        let lifted = &mut self.lifted[..sent.len()];
        let (mut worst, mut square) = (0, 0.0);
        #[cfg(test)]
        self.noise.clear();
        for (i, phase) in self.phase.iter_mut().enumerate() {
            let prime = params.prime(i);
            elementwise::scale_wide(params.simd(), prime, lifted, out, factors[i]);
            for (&at, &x) in sent.iter().zip(&*lifted) {
                phase[at] = prime.add(phase[at], x);
            }
        }
        for (out, &at) in out.iter_mut().zip(sent) {
            let (message, rest) = self.rounding.round(self.phase[0][at], self.phase[1][at]);
            (*out, worst) = (message, worst.max(rest.unsigned_abs()));
            let noise = rest as f64 / self.rounding.modulus() as f64;
            square += noise * noise;
            #[cfg(test)]
            self.noise.push(noise);
        }
        let mean = square / sent.len().max(1) as f64;
        if worst as f64 > self.margins.limit * self.rounding.modulus() as f64
            || mean > self.margins.largest_mean_square(sent.len())
        {
            return Err(HeError::NoiseExhausted { index });
        }
        Ok(())
    }
}

/// Opens the answers of a product by coefficients, of so many bytes for results.
///
/// # Errors
/// As [`Opener::open`].
pub(crate) fn open_blocks(
    secret: &SecretKey,
    threads: usize,
    blocks: &Blocks,
    bytes: &[u8],
    len: impl Fn(usize) -> usize,
) -> Result<Matrix<u64>, HeError> {
    let place = |index: usize| (index / blocks.answers(), index % blocks.answers());
    let count = blocks.lanes.runs() * blocks.answers();
    let size = (blocks.lanes.rows(), blocks.outputs);
    let len = |index: usize| {
        let (run, answer) = place(index);
        len(blocks.sent_len(run, answer))
    };
    open_all(
        threads,
        bytes,
        count,
        len,
        size,
        || Opener::new(secret),
        |opener, answer, out| {
            let (run, block) = place(answer.index);
            let sent = blocks.sent(run, block);
            let mut plain = Zeroizing::new(vec![0; sent.len()]);
            opener.open(answer.bytes, &sent, answer.index, &mut plain)?;
            let rows = blocks.lanes.of_run(run);
            let columns = plain.chunks_exact(rows.len());
            for (column, output) in columns.zip(blocks.outputs_of(block)) {
                for (row, &x) in rows.clone().zip(column) {
                    out.row_mut(row)[output] = x;
                }
            }
            Ok(())
        },
    )
}
