//! The server's part: building a hint once, and its shares of every batch.

use crate::digits::{LeftOut, digits};
use crate::error::HintError;
use crate::images::images;
use crate::margin::{Forms, Margin};
use crate::params::{
    BLOCK, DEGREE, DIGITS, HINT_BITS, LANES, MESSAGE_BYTES, PACKING_BITS, TERMS, fingerprint,
    hint_bytes,
};
use crate::public::{Element, Name, packing};
use crate::ring::{Limbs, Packing};
use crate::room::{Room, by_blocks, spread};
use crate::sample::{Wide, wide};
use primer_ring::matrix::Matrix;
use primer_ring::pack::{PackError, pack, unpack};
use primer_ring::prg::Prg;
use std::slice::from_ref;
use zeroize::{Zeroize, Zeroizing};

/// Polynomials of an element: its digits, and the secret that hides them.
const POLYS: usize = TERMS + 1;

/// The secret from which a server draws what hides its weights. All replicas have the same one.
pub struct HintSecret(Zeroizing<[u8; 32]>);

impl HintSecret {
    /// Takes 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Returns a name for the hint of some weights, which stands for them and for this secret.
    pub fn name(&self, of: &[&[u8]]) -> Name {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"primer hint name v1");
        for part in of {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        let name = *hasher.finalize().as_bytes();
        hasher.zeroize();
        name
    }

    /// Seeds the secret and the error of one element of a hint by everything that determines what
    /// they hide. So equal secrets imply equal elements, no matter what differed: weights, scales,
    /// a build that rounds otherwise, a fault in memory. A secret that hid two things would reveal
    /// their difference.
    fn hiding(&self, target: &HintTarget<'_>, group: usize, key: &[u64], hidden: &[u64]) -> Prg {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"primer hint secret v1");
        hasher.update(target.name);
        hasher.update(&fingerprint());
        for number in [target.value.into(), group as u64] {
            hasher.update(&number.to_le_bytes());
        }
        for number in key.iter().chain(hidden) {
            hasher.update(&number.to_le_bytes());
        }
        let seed = Zeroizing::new(*hasher.finalize().as_bytes());
        hasher.zeroize();
        Prg::secret(&seed)
    }
}

/// Which value's weights a hint is for.
struct HintTarget<'a> {
    name: &'a Name,
    value: u32,
}

/// What a server keeps of the weights that read one value: digits and secrets of all elements.
pub struct Multiplier {
    outputs: usize,
    /// `[element][polynomial][coefficient]`.
    polys: Zeroizing<Vec<i16>>,
}

/// What is published: the top bits of every coefficient, element by element.
pub struct Hint {
    outputs: usize,
    /// Multiples of `q'/2^HINT_BITS`, as numbers below `2^HINT_BITS`.
    coefficients: Vec<u64>,
    /// Of its bytes.
    digest: [u8; 32],
}

impl Hint {
    /// Returns how many outputs it is for.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    fn new(outputs: usize, coefficients: Vec<u64>) -> Self {
        let mut hint = Self {
            outputs,
            coefficients,
            digest: [0; 32],
        };
        hint.digest = *blake3::hash(&hint.encode()).as_bytes();
        hint
    }

    /// Returns the BLAKE3 hash of its bytes.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    pub(crate) fn element(&self, group: usize) -> &[u64] {
        &self.coefficients[group * DEGREE..][..DEGREE]
    }

    /// Returns its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(hint_bytes(self.outputs));
        pack(self.coefficients.iter().copied(), HINT_BITS, &mut bytes);
        bytes
    }

    /// Reads the hint of some outputs.
    ///
    /// # Errors
    /// [`HintError::Bytes`] if it is not as long as that.
    pub fn decode(bytes: &[u8], outputs: usize) -> Result<Self, HintError> {
        let what = "the hint";
        let values = outputs.div_ceil(BLOCK) * DEGREE;
        let (expected, actual) = (hint_bytes(outputs), bytes.len());
        if expected != actual {
            // Before anything is set aside for them.
            let cause = PackError::Length {
                values,
                width: HINT_BITS,
                expected,
                actual,
            };
            return Err(HintError::Bytes { what, cause });
        }
        let mut coefficients = vec![0; values];
        unpack(bytes, HINT_BITS, 1 << HINT_BITS, &mut coefficients)
            .map_err(|cause| HintError::Bytes { what, cause })?;
        Ok(Self {
            outputs,
            coefficients,
            digest: *blake3::hash(bytes).as_bytes(),
        })
    }
}

/// What a client sent for one value and batch, by values and in Montgomery form.
pub struct Received(Vec<Limbs>);

impl Received {
    /// Reads a message.
    ///
    /// # Errors
    /// [`HintError::Bytes`] if it has another length than [`MESSAGE_BYTES`], or a coefficient that
    /// is not below the modulus.
    pub fn decode(bytes: &[u8]) -> Result<Self, HintError> {
        let ring = Packing::get();
        let what = "the message of a preparation";
        let mut coefficients = vec![0; MESSAGE_BYTES * 8 / PACKING_BITS as usize];
        unpack(bytes, PACKING_BITS, ring.modulus(), &mut coefficients)
            .map_err(|cause| HintError::Bytes { what, cause })?;
        let elements = coefficients.chunks_exact(DEGREE);
        Ok(Self(elements.map(|element| ring.factor(element)).collect()))
    }
}

impl Multiplier {
    /// Builds the multiplier and the hint of all weights that read a value, features by outputs,
    /// and tells how much its shares may say.
    ///
    /// # Errors
    /// [`HintError::Margin`] if they would say too much.
    pub fn build(
        secret: &HintSecret,
        name: &Name,
        value: u32,
        weights: &Matrix<i16>,
    ) -> Result<(Self, Hint, Margin), HintError> {
        let (target, outputs) = (HintTarget { name, value }, weights.cols());
        let mut forms = Forms::new();
        let left_out = LeftOut::new(Packing::get().modulus());
        let images = images(name, value, weights);
        let groups = outputs.div_ceil(BLOCK);
        let mut polys = Zeroizing::new(vec![0; groups * POLYS * DEGREE]);
        for (group, polys) in polys.chunks_exact_mut(POLYS * DEGREE).enumerate() {
            for j in 0..BLOCK.min(outputs - group * BLOCK) {
                let mut left = Zeroizing::new(vec![vec![0.0; LANES]; BLOCK]);
                for n in 0..DEGREE {
                    let (f, lane) = (n % BLOCK, n / BLOCK);
                    let x = images[n * outputs + group * BLOCK + j];
                    let digits = digits(x);
                    for (k, digit) in digits.into_iter().enumerate() {
                        polys[(f * DIGITS + k) * DEGREE + j + BLOCK * lane] = digit;
                    }
                    left[f][lane] = left_out.of(x, digits);
                }
                forms.output(&left);
            }
        }
        let mut multiplier = Self { outputs, polys };
        let hint = multiplier.hide(secret, &target, &mut forms);
        let margin = forms.margin(weights);
        margin.check()?;
        Ok((multiplier, hint, margin))
    }

    /// Draws the secrets of all elements and makes what is published.
    fn hide(&mut self, secret: &HintSecret, target: &HintTarget<'_>, forms: &mut Forms) -> Hint {
        let ring = Packing::get();
        let value = target.value;
        let public = |element| {
            let mut limbs = packing(ring, target.name, element);
            ring.to_montgomery(&mut limbs);
            limbs
        };
        let part = |part| public(Element::Part { value, part });
        let parts: Vec<_> = (0..TERMS as u32).map(part).collect();
        let key = public(Element::Key { value });
        let mut room = Room::default();
        let mut unit = vec![0; DEGREE];
        unit[0] = 1;
        let named = room
            .sum(ring, [&unit[..]].into_iter(), from_ref(&key))
            .to_vec();
        let mut coefficients = Vec::with_capacity(self.polys.len() / POLYS);
        for (group, polys) in self.polys.chunks_exact_mut(POLYS * DEGREE).enumerate() {
            let (terms, own) = polys.split_at_mut(TERMS * DEGREE);
            let hidden = room.sum(ring, terms.chunks_exact(DEGREE), &parts);
            let hidden = Zeroizing::new(hidden.to_vec());
            let mut rng = secret.hiding(target, group, &named, &hidden);
            let drawn = wide(&mut rng, Wide::HINT_SECRET, DEGREE);
            let pairs = own.iter_mut().zip(drawn.iter());
            pairs.for_each(|(own, &drawn)| *own = drawn as i16);
            let error = wide(&mut rng, Wide::HINT_ERROR, DEGREE);
            let shown = room.sum(ring, [&*own].into_iter(), from_ref(&key));
            let exact = hidden.iter().zip(shown);
            let exact = exact.map(|(a, b)| ring.add_signed(*a, *b as i64));
            let exact = Zeroizing::new(exact.collect::<Vec<u64>>());
            let noisy = exact.iter().zip(error.iter());
            let noisy = noisy.map(|(&x, &e)| ring.publish(ring.add_signed(x, e.into())));
            coefficients.extend(noisy);
            let published = coefficients[group * DEGREE..].iter().zip(exact.iter());
            let error = published
                .map(|(&x, &exact)| ring.centred(ring.add_signed(ring.expand(x), -(exact as i64))));
            let error = Zeroizing::new(error.collect::<Vec<i64>>());
            forms.element(polys.chunks_exact(DEGREE), &error);
        }
        Hint::new(self.outputs, coefficients)
    }

    /// Makes room for the multiplier of some outputs.
    pub(crate) fn zeros(outputs: usize) -> Self {
        let length = Self::bytes_of(outputs) / size_of::<i16>();
        Self {
            outputs,
            polys: Zeroizing::new(vec![0; length]),
        }
    }

    /// Returns the bytes of the multiplier of some outputs.
    pub(crate) fn bytes_of(outputs: usize) -> usize {
        outputs.div_ceil(BLOCK) * POLYS * DEGREE * size_of::<i16>()
    }

    /// Returns its bytes, as this machine has them.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.polys)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.polys)
    }

    /// Returns the server's shares of the first lanes of a batch, `[lane][output]`, modulo p.
    pub fn shares(&self, lanes: usize, message: &Received, threads: usize) -> Matrix<u64> {
        let ring = Packing::get();
        by_blocks((lanes, self.outputs), threads, |groups, out| {
            let mut room = Room::default();
            for (at, group) in groups.enumerate() {
                let polys = &self.polys[group * POLYS * DEGREE..][..POLYS * DEGREE];
                let sums = room.sum(ring, polys.chunks_exact(DEGREE), &message.0);
                let shares = sums.iter().take(lanes * BLOCK);
                spread(out, at, shares.map(|&x| ring.to_share(x)));
            }
        })
    }
}
