//! The arithmetic of labels: eight instances of one wire at a time, with the instructions that the
//! processor has.
//!
//! An [`Engine`] knows how to move, mask and encrypt eight 128-bit labels. There are three, with
//! equal results: VAES (two blocks in a register), AES-NI (one), and portable code. The
//! interpreters of [`run`] are written once over this trait; [`Backend::detect`] picks the engine
//! when the program runs.
//!
//! An engine for special instructions is a value that only exists after the processor has been
//! asked for them, which is what makes its methods safe to call.

mod portable;
mod run;
#[cfg(target_arch = "x86_64")]
mod x86;

pub(crate) use run::{Batch, EvaluateSegment, GarbleSegment};

use crate::circuit::LANES;
use zeroize::Zeroize;

/// A 128-bit label, the bytes of the wire format read as a little-endian number.
pub type Label = u128;

/// One wire of eight instances.
#[derive(Clone, Copy, Default, Zeroize)]
#[repr(C, align(64))]
pub(crate) struct Wire(pub(crate) [Label; LANES]);

/// Keys expanded together.
pub(crate) const KEYS: usize = 8;

/// The bit of the counter that separates the keys of projections from those of AND gates.
const PROJECTIONS: u64 = 1 << 63;

/// Eight labels in registers, and the cipher.
///
/// The methods are meant to be inlined into one function compiled for the engine's instructions.
pub(crate) trait Engine: Copy {
    /// Eight labels.
    type Vector: Copy;
    /// [`KEYS`] expanded AES-128 keys. They are public: a nonce and a counter.
    type Keys;

    fn load(self, wire: &Wire) -> Self::Vector;
    fn store(self, vector: Self::Vector, wire: &mut Wire);
    fn gather(self, labels: [&Label; LANES]) -> Self::Vector;
    fn read(self, bytes: &[u8; 16 * LANES]) -> Self::Vector;
    fn write(self, vector: Self::Vector, bytes: &mut [u8; 16 * LANES]);
    fn splat(self, label: Label) -> Self::Vector;
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Returns all ones in the labels whose lowest bit is set, zero in the others.
    fn color(self, a: Self::Vector) -> Self::Vector;
    /// Computes `σ(l, r) = (l XOR r, l)` on the two halves: linear, and so is `σ(x) XOR x`, both
    /// invertible.
    fn sigma(self, a: Self::Vector) -> Self::Vector;
    /// Makes room for keys.
    fn no_keys(self) -> Self::Keys;
    /// Expands the keys `nonce XOR (counter + i)`.
    fn expand(self, nonce: Label, counter: u64, keys: &mut Self::Keys);
    /// Encrypts `x` under key `i` and `y` under key `j`.
    fn encrypt(
        self,
        keys: &Self::Keys,
        i: usize,
        j: usize,
        x: Self::Vector,
        y: Self::Vector,
    ) -> (Self::Vector, Self::Vector);
    /// Encrypts `x` under key `i`.
    fn encrypt_one(self, keys: &Self::Keys, i: usize, x: Self::Vector) -> Self::Vector;
}

/// Which engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Two AES blocks in a 256-bit register.
    #[cfg(target_arch = "x86_64")]
    Vaes(x86::VaesToken),
    /// One AES block in a 128-bit register.
    #[cfg(target_arch = "x86_64")]
    AesNi(x86::AesNiToken),
    /// No special instructions of our own.
    Portable,
}

impl Backend {
    /// Returns the fastest engine of this processor.
    pub fn detect() -> Self {
        Self::available()[0]
    }

    /// Returns every engine that runs here, the fastest first.
    pub fn available() -> Vec<Self> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(x86::VaesToken::detect().map(Self::Vaes));
            all.extend(x86::AesNiToken::detect().map(Self::AesNi));
        }
        all.push(Self::Portable);
        all
    }

    /// Returns its name, for reports.
    pub const fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(_) => "vaes",
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(_) => "aes-ni",
            Self::Portable => "portable",
        }
    }

    pub(crate) fn garble(self, segment: &mut GarbleSegment<'_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(token) => token.garble(segment),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(token) => token.garble(segment),
            Self::Portable => run::garble(portable::Portable, segment),
        }
    }

    pub(crate) fn evaluate(self, segment: &mut EvaluateSegment<'_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vaes(token) => token.evaluate(segment),
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(token) => token.evaluate(segment),
            Self::Portable => run::evaluate(portable::Portable, segment),
        }
    }
}
