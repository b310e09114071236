//! Random transfers of residues: what [`crate::product`] starts from.

use crate::bits::Bits;
use crate::cost::width;
use crate::cot::{CotReceiver, CotSender};
use crate::error::{OtError, Result, expect_count};
use crate::hash::residues;
use crate::stored::{ChoiceMaterial, PairMaterial};
use primer_net::Channel;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Checks that residues of this modulus can be packed; their width.
pub(crate) fn check_modulus(modulus: u64) -> Result<u32> {
    let width = width(modulus);
    if modulus < 2 || width > 57 {
        return Err(OtError::Modulus { modulus });
    }
    Ok(width)
}

/// Checks that there are as many values as prepared transfers, all residues.
///
/// The values may be secret: all are looked at, whatever is found.
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

/// `n` pairs of uniform residues.
pub(crate) fn send(
    cot: &mut CotSender,
    channel: &mut Channel,
    n: usize,
    modulus: u64,
) -> Result<PairMaterial> {
    check_modulus(modulus)?;
    let hash = cot.hash();
    let tweak = cot.spent();
    let delta = Zeroizing::new(cot.delta().label());
    let mut pairs = Zeroizing::new(vec![[0; 2]; n]);
    cot.extend(channel, n, |first, rows| {
        let tweak = tweak + first as u64;
        for (message, offset) in [0, *delta].into_iter().enumerate() {
            residues(&hash, tweak, rows, offset, modulus, |j, pad| {
                pairs[first + j][message] = pad;
            });
        }
    })?;
    Ok(PairMaterial { pairs, modulus })
}

/// `n` random choices and the residue of each pair that they choose.
pub(crate) fn receive(
    cot: &mut CotReceiver,
    channel: &mut Channel,
    rng: &mut impl CryptoRng,
    n: usize,
    modulus: u64,
) -> Result<ChoiceMaterial> {
    check_modulus(modulus)?;
    let hash = cot.hash();
    let tweak = cot.spent();
    let choices = Bits::random(n, rng);
    let mut values = Zeroizing::new(vec![0; n]);
    cot.extend(channel, &choices, |first, rows| {
        residues(&hash, tweak + first as u64, rows, 0, modulus, |j, pad| {
            values[first + j] = pad;
        });
    })?;
    Ok(ChoiceMaterial {
        choices,
        values,
        modulus,
    })
}

/// `a + b mod m`, both reduced, `m < 2^57`.
pub(crate) fn add(a: u64, b: u64, modulus: u64) -> u64 {
    let sum = a + b;
    // A mask, not a branch: the summands may be secret.
    let over = u64::from(sum >= modulus).wrapping_neg();
    sum - (modulus & over)
}

/// `a - b mod m`, both reduced.
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
