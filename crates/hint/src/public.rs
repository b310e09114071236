//! Elements that both parties expand from a name.
//!
//! Never global forever (one lattice reduction would serve against all models), and never chosen by
//! a party (`a_pk = 0` would reveal `W·A`): each is expanded by AES in counter mode under a hash of
//! the hint's name, the kind of element and its place.

use crate::params::{DEGREE, Q};
use crate::ring::Packing;
use primer_ring::prg::Prg;

/// The name of a hint: the server draws a new one for each version of a model.
pub type Name = [u8; 32];

/// Which element.
#[derive(Debug, Clone, Copy)]
pub enum Element {
    /// `A_i`: multiplied by the secret, it masks a block of columns of a value.
    Mask {
        /// The value.
        value: u32,
        /// The block.
        block: u32,
    },
    /// `a_fk`: hides a part of the secret.
    Part {
        /// The value.
        value: u32,
        /// `f·DIGITS + k`.
        part: u32,
    },
    /// `a_pk`: hides the weights.
    Key {
        /// The value.
        value: u32,
    },
}

fn generator(name: &Name, element: Element) -> Prg {
    let (kind, value, place) = match element {
        Element::Mask { value, block } => (0u32, value, block),
        Element::Part { value, part } => (1, value, part),
        Element::Key { value } => (2, value, 0),
    };
    let mut hasher = blake3::Hasher::new_derive_key("primer hint public element v1");
    hasher.update(name);
    for number in [kind, value, place] {
        hasher.update(&number.to_le_bytes());
    }
    Prg::secret(hasher.finalize().as_bytes())
}

/// Expands an element of masks: uniform modulo q, by rejection.
pub fn mask(name: &Name, value: u32, block: u32) -> Vec<u64> {
    const SHIFT: u32 = Q.leading_zeros();
    let mut prg = generator(name, Element::Mask { value, block });
    let mut out = Vec::with_capacity(DEGREE);
    let mut bytes = [0; 8 * 256];
    while out.len() < DEGREE {
        prg.fill(&mut bytes);
        let words = bytes.as_chunks().0.iter();
        let numbers = words.map(|word| u64::from_le_bytes(*word) >> SHIFT);
        let left = DEGREE - out.len();
        out.extend(numbers.filter(|number| *number < Q).take(left));
    }
    out
}

/// Expands an element of the packing: uniform modulo `q'`, by its values at the roots of unity.
pub fn packing(ring: &Packing, name: &Name, element: Element) -> [Vec<u32>; 2] {
    let mut prg = generator(name, element);
    ring.primes().map(|prime| {
        let mut out = Vec::with_capacity(DEGREE);
        let mut bytes = [0; 4 * 512];
        let shift = prime.value().leading_zeros();
        while out.len() < DEGREE {
            prg.fill(&mut bytes);
            let words = bytes.as_chunks().0.iter();
            let numbers = words.map(|word| u32::from_le_bytes(*word) >> shift);
            let left = DEGREE - out.len();
            out.extend(numbers.filter(|number| *number < prime.value()).take(left));
        }
        out
    })
}
