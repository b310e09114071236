//! Random transfers of residues: what [`crate::product`] and [`crate::pads`] start from.
//!
//! A transfer may carry several residues. Then its row is hashed once for each, under tweaks of
//! their own: the position in the lower half, the number of the residue in the upper.

use crate::bits::Bits;
use crate::cost::width;
use crate::cot::{CotReceiver, CotSender};
use crate::error::{OtError, Result, expect_count};
use crate::hash::residues;
use crate::stored::{ChoiceMaterial, PairMaterial};
use primer_wire::Channel;
use zeroize::Zeroizing;

/// Checks that residues of this modulus can be packed and returns their width.
pub(crate) fn check_modulus(modulus: u64) -> Result<u32> {
    let width = width(modulus);
    if modulus < 2 || width > 57 {
        return Err(OtError::Modulus { modulus });
    }
    Ok(width)
}

/// Checks that there are as many values as prepared transfers, all residues.
///
/// The values may be secret: all are examined, also after one has failed.
pub(crate) fn check_values(
    what: &'static str,
    expected: usize,
    values: &[u64],
    modulus: u64,
) -> Result<()> {
    expect_count(what, expected, values.len())?;
    let values = values.iter();
    let wrong = values.fold(false, |wrong, &value| wrong | (value >= modulus));
    match wrong {
        true => Err(OtError::NotResidues { what }),
        false => Ok(()),
    }
}

/// Returns the tweak of a transfer's residue.
fn tweak(position: u64, residue: usize) -> u128 {
    (residue as u128) << 64 | u128::from(position)
}

/// Makes `n` transfers of `each` pairs of uniform residues.
pub(crate) fn send(
    cot: &mut CotSender,
    channel: &mut Channel,
    n: usize,
    each: usize,
    modulus: u64,
) -> Result<PairMaterial> {
    check_modulus(modulus)?;
    let hash = cot.hash();
    let spent = cot.spent();
    let delta = Zeroizing::new(cot.delta().label());
    let mut pairs = Zeroizing::new(vec![[0; 2]; n * each]);
    cot.extend(channel, n, |first, rows| {
        for residue in 0..each {
            let tweak = tweak(spent + first as u64, residue);
            for (message, offset) in [0, *delta].into_iter().enumerate() {
                residues(&hash, tweak, rows, offset, modulus, |j, pad| {
                    pairs[(first + j) * each + residue][message] = pad;
                });
            }
        }
    })?;
    Ok(PairMaterial { pairs, modulus })
}

/// Makes a transfer for each choice: of `each` pairs the residues that it chooses.
pub(crate) fn receive(
    cot: &mut CotReceiver,
    channel: &mut Channel,
    choices: Bits,
    each: usize,
    modulus: u64,
) -> Result<ChoiceMaterial> {
    check_modulus(modulus)?;
    let hash = cot.hash();
    let spent = cot.spent();
    let mut values = Zeroizing::new(vec![0; choices.len() * each]);
    cot.extend(channel, &choices, |first, rows| {
        for residue in 0..each {
            let tweak = tweak(spent + first as u64, residue);
            residues(&hash, tweak, rows, 0, modulus, |j, pad| {
                values[(first + j) * each + residue] = pad;
            });
        }
    })?;
    Ok(ChoiceMaterial {
        choices,
        values,
        modulus,
    })
}

/// Returns `a + b mod m`, both reduced, `m < 2^57`.
pub(crate) fn add(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    // A mask, not a branch: the summands may be secret.
    let over = u64::from(sum >= modulus).wrapping_neg();
    sum - (modulus & over)
}

/// Returns `a - b mod m`, both reduced.
pub(crate) fn sub(a: u64, b: u64, modulus: u64) -> u64 {
    let below = u64::from(a < b).wrapping_neg();
    a.wrapping_sub(b).wrapping_add(modulus & below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn residues_add_and_subtract(modulus in 2u64..=1 << 57, x: u64, y: u64) {
            let (a, b) = (x % modulus, y % modulus);
            let sum = (u128::from(a) + u128::from(b)) % u128::from(modulus);
            prop_assert_eq!(u128::from(add(a, b, modulus)), sum);
            prop_assert_eq!(sub(add(a, b, modulus), b, modulus), a);
        }
    }

    #[test]
    fn moduli_have_limits() {
        assert_eq!(check_modulus(2).unwrap(), 1);
        assert_eq!(check_modulus(1 << 57).unwrap(), 57);
        for wrong in [0, 1, (1 << 57) + 1, u64::MAX] {
            assert!(matches!(check_modulus(wrong), Err(OtError::Modulus { .. })));
        }
    }
}
