//! AES on eight blocks at a time, with the instructions that the processor has.
//!
//! Column streams ([`crate::streams`]) and one-hot vectors ([`crate::onehot`]) are loops over one
//! cipher, written once over the trait [`Engine`]: a vector is eight 128-bit blocks, one for each
//! of eight independent counters or rows. There are three engines with equal results: VAES (two
//! blocks in a register), AES-NI (one), and portable code. A piece of [`EngineJob`] is handed to
//! [`Backend::run`], which compiles it for the engine that it picked.
//!
//! An engine for special instructions is a value that only exists after the processor has been
//! asked for them, which is what makes its methods safe to call.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Blocks of a vector.
pub(crate) const LANES: usize = 8;
/// Bytes of a vector.
pub(crate) const WIDE: usize = 16 * LANES;
const ROUNDS: usize = 10;
/// The round constants of AES-128.
const CONSTANTS: [u8; ROUNDS] = [1, 2, 4, 8, 16, 32, 64, 128, 0x1b, 0x36];

/// An expanded AES-128 key. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Key([u128; ROUNDS + 1]);

/// Eight blocks in registers, and the cipher.
///
/// The methods are meant to be inlined into one function compiled for the engine's instructions.
pub(crate) trait Engine: Copy {
    /// Eight blocks.
    type Vector: Copy;

    fn read(self, bytes: &[u8; WIDE]) -> Self::Vector;
    fn write(self, vector: Self::Vector, bytes: &mut [u8; WIDE]);
    fn splat(self, block: u128) -> Self::Vector;
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Computes `σ(l, r) = (l XOR r, l)` on the two halves: linear, and so is `σ(x) XOR x`, both
    /// invertible.
    fn sigma(self, a: Self::Vector) -> Self::Vector;
    /// Expands a key.
    fn expand(self, key: u128) -> Key;
    /// Encrypts eight blocks under one key.
    fn encrypt(self, key: &Key, x: Self::Vector) -> Self::Vector;
    /// Encrypts `x` under one key and `y` under another, at once.
    fn encrypt_two(
        self,
        keys: [&Key; 2],
        x: Self::Vector,
        y: Self::Vector,
    ) -> (Self::Vector, Self::Vector);
}

/// A piece of work to run on an engine.
pub(crate) trait EngineJob {
    /// The result.
    type Output;
    /// Runs the work. Implementations are `#[inline(always)]`.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

/// Expands keys.
pub(crate) struct Expand<'a>(pub(crate) &'a [u128]);

impl EngineJob for Expand<'_> {
    type Output = Vec<Key>;

    #[inline(always)]
    fn run<E: Engine>(self, e: E) -> Vec<Key> {
        self.0.iter().map(|&key| e.expand(key)).collect()
    }
}

/// Which engine runs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Backend {
    /// Two AES blocks in a 256-bit register.
    #[cfg(target_arch = "x86_64")]
    Vaes(x86::Vaes),
    /// One AES block in a 128-bit register.
    #[cfg(target_arch = "x86_64")]
    AesNi(x86::AesNi),
    /// No special instructions of our own.
    Portable,
}

impl Backend {
    /// Returns the fastest engine of this processor.
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(engine) = x86::Vaes::detect() {
                return Self::Vaes(engine);
            }
            if let Some(engine) = x86::AesNi::detect() {
                return Self::AesNi(engine);
            }
        }
        Self::Portable
    }

    /// Runs a piece of work.
    pub(crate) fn run<W: EngineJob>(self, job: W) -> W::Output {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(engine) => engine.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(engine) => engine.run(job),
            Self::Portable => job.run(portable::Portable),
        }
    }

    /// Returns every engine that runs here, to be compared.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(x86::Vaes::detect().map(Self::Vaes));
            all.extend(x86::AesNi::detect().map(Self::AesNi));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128Enc;
    use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
    use primer_ring::prg::Prg;

    /// Every operation of an engine on given inputs.
    struct Everything<'a> {
        keys: [u128; 2],
        x: &'a [u8; WIDE],
        y: &'a [u8; WIDE],
    }

    fn blocks(bytes: &[u8; WIDE]) -> [u128; LANES] {
        let (blocks, _) = bytes.as_chunks::<16>();
        std::array::from_fn(|l| u128::from_le_bytes(blocks[l]))
    }

    impl EngineJob for Everything<'_> {
        type Output = Vec<[u128; LANES]>;

        #[inline(always)]
        fn run<E: Engine>(self, e: E) -> Self::Output {
            let (x, y) = (e.read(self.x), e.read(self.y));
            let keys = self.keys.map(|key| e.expand(key));
            let (u, v) = e.encrypt_two([&keys[0], &keys[1]], x, y);
            let mut all = vec![u, v, e.encrypt(&keys[1], x), e.xor(x, y), e.and(x, y)];
            all.extend([e.sigma(x), e.splat(self.keys[0])]);
            let store = |v| {
                let mut wide = [0; WIDE];
                e.write(v, &mut wide);
                blocks(&wide)
            };
            all.into_iter().map(store).collect()
        }
    }

    #[test]
    fn engines_agree_with_the_definitions() {
        let mut rng = Prg::new(&[4; 16]);
        for _ in 0..20 {
            let (mut x, mut y) = ([0; WIDE], [0; WIDE]);
            rng.fill(&mut x);
            rng.fill(&mut y);
            let keys = [(); 2].map(|()| u128::from_le_bytes(rng.seed()));
            let (a, b) = (blocks(&x), blocks(&y));
            let aes = |key: usize, x: u128| {
                let cipher = Aes128Enc::new(&Array::from(keys[key].to_le_bytes()));
                let mut block = Array::from(x.to_le_bytes());
                cipher.encrypt_block(&mut block);
                u128::from_le_bytes(block.into())
            };
            let lanes = |f: &dyn Fn(usize) -> u128| std::array::from_fn::<_, LANES, _>(f);
            let expected = vec![
                lanes(&|l| aes(0, a[l])),
                lanes(&|l| aes(1, b[l])),
                lanes(&|l| aes(1, a[l])),
                lanes(&|l| a[l] ^ b[l]),
                lanes(&|l| a[l] & b[l]),
                lanes(&|l| (((a[l] >> 64) ^ (a[l] << 64 >> 64)) << 64) | a[l] >> 64),
                lanes(&|_| keys[0]),
            ];
            for backend in Backend::available() {
                let (x, y) = (&x, &y);
                assert_eq!(backend.run(Everything { keys, x, y }), expected);
            }
        }
    }
}
