//! The two shapes of offline material, and how they are kept until they are spent.
//!
//! A sender holds two residues per transfer, a receiver a choice and one residue, or a multiple of
//! these residues where a transfer carries several. Both are stored packed, without a header: the
//! party that loads them knows the count and the modulus from the plan, and a file that does not
//! fit is refused. Storing consumes the material; the store guarantees that a stored copy is loaded
//! once only.

use crate::bits::Bits;
use crate::error::{OtError, Result};
use crate::offline::check_modulus;
use primer_ring::pack::{pack, packed_len, unpack};
use primer_ring::wipe::{SecretBytes, wipe};
use zeroize::Zeroizing;

/// Two residues per transfer, or several pairs of them.
pub(crate) struct PairMaterial {
    pub(crate) pairs: Zeroizing<Vec<[u64; 2]>>,
    pub(crate) modulus: u64,
}

/// A choice and a residue per transfer, or several residues.
pub(crate) struct ChoiceMaterial {
    pub(crate) choices: Bits,
    pub(crate) values: Zeroizing<Vec<u64>>,
    pub(crate) modulus: u64,
}

impl PairMaterial {
    pub(crate) fn into_bytes(self) -> SecretBytes {
        packed(Vec::new(), self.pairs.as_flattened(), self.modulus)
    }

    pub(crate) fn from_bytes(bytes: &[u8], n: usize, each: usize, modulus: u64) -> Result<Self> {
        let pairs = n.checked_mul(each);
        check_length(
            bytes,
            pairs.and_then(|pairs| pairs.checked_mul(2)),
            0,
            modulus,
        )?;
        let mut pairs = Zeroizing::new(vec![[0; 2]; n * each]);
        read(bytes, pairs.as_flattened_mut(), modulus)?;
        Ok(Self { pairs, modulus })
    }
}

impl ChoiceMaterial {
    pub(crate) fn into_bytes(self) -> SecretBytes {
        packed(self.choices.bytes().to_vec(), &self.values, self.modulus)
    }

    pub(crate) fn from_bytes(bytes: &[u8], n: usize, each: usize, modulus: u64) -> Result<Self> {
        let front = n.div_ceil(8);
        check_length(bytes, n.checked_mul(each), front, modulus)?;
        let (choices, rest) = bytes.split_at(front);
        let choices = Bits::from_bytes(choices.to_vec(), n)?;
        let mut values = Zeroizing::new(vec![0; n * each]);
        read(rest, &mut values, modulus)?;
        Ok(Self {
            choices,
            values,
            modulus,
        })
    }
}

/// Refuses a file of the wrong length before anything is allocated for it.
fn check_length(bytes: &[u8], values: Option<usize>, front: usize, modulus: u64) -> Result<()> {
    let width = check_modulus(modulus)?;
    let expected = values
        .and_then(|values| packed_len(values, width))
        .and_then(|packed| packed.checked_add(front));
    match expected {
        Some(expected) if expected == bytes.len() => Ok(()),
        _ => Err(OtError::StoredLength {
            expected: expected.unwrap_or(usize::MAX),
            got: bytes.len(),
        }),
    }
}

fn packed(mut front: Vec<u8>, values: &[u64], modulus: u64) -> SecretBytes {
    let width = crate::cost::width(modulus);
    let values_len = packed_len(values.len(), width).expect("values in memory can be counted");
    let mut bytes = SecretBytes::with_capacity(front.len() + values_len);
    bytes.extend_from_slice(&front);
    wipe(&mut front);
    pack(values.iter().copied(), width, &mut bytes);
    bytes
}

fn read(bytes: &[u8], values: &mut [u64], modulus: u64) -> Result<()> {
    let width = check_modulus(modulus)?;
    Ok(unpack(bytes, width, modulus, values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;
    use proptest::prelude::*;
    use rand_core::Rng;

    proptest! {
        #[test]
        fn material_survives_storage(
            n in 0usize..100,
            each in 1usize..4,
            modulus in 2u64..=1 << 57,
        ) {
            let rng = &mut Prg::new(&[n as u8; 16]);
            let mut draw = || rng.next_u64() % modulus;
            let pairs: Vec<[u64; 2]> = (0..n * each).map(|_| [draw(), draw()]).collect();
            let choices = Bits::random(n, rng);
            let chosen = choices.bytes().to_vec();
            let values: Vec<u64> = pairs.iter().map(|p| p[0]).collect();

            let material = PairMaterial { pairs: Zeroizing::new(pairs.clone()), modulus };
            let bytes = material.into_bytes();
            prop_assert_eq!(&*PairMaterial::from_bytes(&bytes, n, each, modulus)?.pairs, &pairs);
            prop_assert!(PairMaterial::from_bytes(&bytes, n + 9, each, modulus).is_err());

            let kept = Zeroizing::new(values.clone());
            let bytes = ChoiceMaterial { choices, values: kept, modulus }.into_bytes();
            let back = ChoiceMaterial::from_bytes(&bytes, n, each, modulus)?;
            prop_assert_eq!(&*back.values, &values);
            prop_assert_eq!(back.choices.bytes(), &chosen[..]);
            prop_assert!(ChoiceMaterial::from_bytes(&bytes, n + 9, each, modulus).is_err());
        }

        #[test]
        fn arbitrary_files_are_right_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            n in prop_oneof![0usize..40, Just(usize::MAX), Just(1 << 60)],
            each in prop_oneof![0usize..4, Just(usize::MAX)],
            modulus in prop_oneof![0u64..100, any::<u64>()],
        ) {
            if let Ok(material) = PairMaterial::from_bytes(&bytes, n, each, modulus) {
                prop_assert!(material.pairs.iter().flatten().all(|&v| v < modulus));
                prop_assert_eq!(&*material.into_bytes(), &bytes);
            }
            if let Ok(material) = ChoiceMaterial::from_bytes(&bytes, n, each, modulus) {
                prop_assert!(material.values.iter().all(|&v| v < modulus));
                prop_assert_eq!(&*material.into_bytes(), &bytes);
            }
        }
    }
}
