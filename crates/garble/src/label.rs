//! The free-XOR offset and labels as bytes.

use crate::engine::Label;
use rand_core::CryptoRng;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of a label.
pub const LABEL_BYTES: usize = 16;

/// The offset Δ between the two labels of every wire, known to the garbler only.
///
/// Its lowest bit is 1, so that the lowest bits of the two labels differ.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Offset(Label);

impl Offset {
    /// Draws a fresh offset: 127 random bits.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = [0; LABEL_BYTES];
        rng.fill_bytes(&mut bytes);
        let offset = Self(Label::from_le_bytes(bytes) | 1);
        bytes.zeroize();
        offset
    }

    /// Takes over the offset of an oblivious transfer, whose rows are to serve as labels.
    ///
    /// Returns `None` if its lowest bit is 0: such an offset leaves labels without a colour.
    pub const fn from_label(label: Label) -> Option<Self> {
        if label & 1 == 1 {
            Some(Self(label))
        } else {
            None
        }
    }

    /// Returns the offset as bytes, to be stored where only the garbler reads.
    pub fn to_bytes(&self) -> Zeroizing<[u8; LABEL_BYTES]> {
        Zeroizing::new(self.0.to_le_bytes())
    }

    pub(crate) const fn label(&self) -> Label {
        self.0
    }

    /// Returns the label of a bit, from its wire's zero label; no branch on the bit.
    #[inline(always)]
    pub const fn choose(&self, zero: Label, bit: bool) -> Label {
        zero ^ (self.0 & (bit as Label).wrapping_neg())
    }
}
