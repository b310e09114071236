//! The client's side: `c1` becomes a share.

use super::nearest;
use crate::error::{HeError, agree};
use crate::keys::SecretKey;
use primer_lattice::kernel::elementwise;
use primer_lattice::prime::Prime;
use zeroize::Zeroizing;

/// Primes of the modulus at which `c1` meets the secret: it comes with fewer bits than they have.
pub(super) const LIMBS: usize = 4;
/// Bits of a word that [`elementwise::scale_wide`] takes.
const WORD: u32 = 60;

/// Opens ciphertexts of which only `c1` was sent, with the memory for it.
pub(super) struct Opener<'a> {
    secret: &'a SecretKey,
    /// Bytes of a coefficient.
    width: usize,
    /// The product of the primes.
    modulus: u128,
    /// Coefficients in two words.
    words: [Vec<u64>; 2],
    limb: Zeroizing<Vec<u32>>,
    more: Zeroizing<Vec<u32>>,
    /// By limbs, the coefficients that count.
    phase: Zeroizing<Vec<u32>>,
    fractions: Zeroizing<Vec<u128>>,
}

impl<'a> Opener<'a> {
    /// Makes room for ciphertexts of `width` bytes a coefficient.
    ///
    /// # Errors
    /// If the secret has too few primes.
    pub(super) fn new(secret: &'a SecretKey, width: usize) -> Result<Self, HeError> {
        let (params, n) = (secret.params(), secret.params().degree());
        agree(
            "primes to open with",
            params.data_primes().min(LIMBS),
            LIMBS,
        )?;
        let primes = (0..LIMBS).map(|i| u128::from(params.prime(i).value()));
        Ok(Self {
            secret,
            width,
            modulus: primes.product(),
            words: [vec![0; n], vec![0; n]],
            limb: Zeroizing::new(vec![0; n]),
            more: Zeroizing::new(vec![0; n]),
            phase: Zeroizing::new(vec![0; LIMBS * n]),
            fractions: Zeroizing::new(vec![0; n]),
        })
    }

    /// Returns the client's share of the coefficients that count, from the bytes of `c1`. Any bytes
    /// of the right length say something.
    ///
    /// # Errors
    /// If there are more or fewer bytes.
    pub(super) fn open(
        &mut self,
        bytes: &[u8],
        counted: &[usize],
        out: &mut [u64],
    ) -> Result<(), HeError> {
        let params = self.secret.params();
        let n = params.degree();
        agree("bytes of an answer", bytes.len(), self.width * n)?;
        self.lift(bytes);
        let phase = &mut self.phase[..LIMBS * counted.len()];
        for (i, phase) in phase.chunks_exact_mut(counted.len().max(1)).enumerate() {
            let (prime, ntt, simd) = (params.prime(i), params.ntt(i), params.simd());
            let [low, high] = factors(prime, 8 * self.width as u32);
            elementwise::scale_wide(simd, prime, &mut self.limb, &self.words[0], low);
            elementwise::scale_wide(simd, prime, &mut self.more, &self.words[1], high);
            elementwise::add_assign(simd, prime, &mut self.limb, &self.more);
            ntt.forward(&mut self.limb);
            let secret = self.secret.values().limb(i);
            elementwise::mul_assign(simd, prime, &mut self.limb, secret);
            ntt.inverse(&mut self.limb);
            for (to, &at) in phase.iter_mut().zip(counted) {
                *to = self.limb[at];
            }
        }
        let fractions = &mut self.fractions[..counted.len()];
        params.basis().fractions(phase, fractions);
        for (to, &x) in out.iter_mut().zip(&*fractions) {
            *to = nearest(x);
        }
        Ok(())
    }

    /// Takes numbers `x` modulo `2^b`, to be read as the same fractions of the modulus `Q`, rounded
    /// down: `⌊x·Q/2^b⌋ = (x·Q - r)/2^b` with `r` what `x·Q` is modulo `2^b`, and modulo each prime
    /// it is `-r/2^b`. Puts down `r`.
    fn lift(&mut self, bytes: &[u8]) {
        let mask = u128::MAX >> (128 - 8 * self.width);
        let [low, high] = &mut self.words;
        let words = low.iter_mut().zip(high);
        for (bytes, (low, high)) in bytes.chunks_exact(self.width).zip(words) {
            let mut number = [0; 16];
            number[..self.width].copy_from_slice(bytes);
            let rest = u128::from_le_bytes(number).wrapping_mul(self.modulus) & mask;
            *low = (rest as u64) & ((1 << WORD) - 1);
            *high = (rest >> WORD) as u64;
        }
    }
}

/// Returns what the two words of `r` are multiplied with to give `-r/2^b`, each as
/// [`elementwise::scale_wide`] wants it.
fn factors(prime: Prime, bits: u32) -> [[u32; 2]; 2] {
    let factor = prime.neg(prime.invert(prime.pow(2, bits.into())));
    let times = |power: u32| prime.to_montgomery(prime.mul(factor, prime.pow(2, power.into())));
    [[times(0), times(30)], [times(WORD), times(WORD + 30)]]
}
