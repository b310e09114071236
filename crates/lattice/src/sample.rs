//! Random polynomials.
//!
//! Secrets, errors and flooding noise are drawn without a branch or a table index that depends on a
//! value that is used. Randomness is drawn in blocks, and no more of it than the distributions
//! need: even at several gigabytes per second it takes a good part of an encryption's time.

use crate::kernel::elementwise;
use crate::prime::Prime;
use crate::simd::Simd;
use primer_ring::prg::Prg;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Bound of an error coefficient: a centred binomial of 42 coins, standard deviation 3.24.
pub const ERROR_BOUND: u32 = 21;
/// Flooding noise lies in `[-2^FLOOD_BITS, 2^FLOOD_BITS)`.
pub const FLOOD_BITS: u32 = 77;
/// The number of uniform integers whose sum is one coefficient of the flooding noise. A sum of
/// several has a smooth density, so that the distances of many coefficients add like lengths and
/// not like numbers.
pub const FLOOD_TERMS: usize = 8;
/// Each of them is uniform in `[-2^FLOOD_TERM_BITS, 2^FLOOD_TERM_BITS)`.
pub const FLOOD_TERM_BITS: u32 = FLOOD_BITS - FLOOD_TERMS.trailing_zeros();

/// Words drawn at once.
const WORDS: usize = 512;
/// Coefficients that are made at once, from bytes on the stack.
const CHUNK: usize = 2048;

/// Draws uniform residues from a public generator: 30-bit words, those not below the prime skipped.
pub fn expand(prime: Prime, prg: &mut Prg, out: &mut [u32]) {
    const GROUP: usize = 16;
    let mut bytes = [0; 4 * WORDS];
    let mut filled = 0;
    while filled < out.len() {
        let words = (out.len() - filled).min(WORDS);
        prg.fill(&mut bytes[..4 * words]);
        for group in bytes[..4 * words].chunks(4 * GROUP) {
            let mut numbers = [u32::MAX; GROUP];
            for (x, word) in numbers.iter_mut().zip(group.as_chunks::<4>().0) {
                *x = u32::from_le_bytes(*word) >> 2;
            }
            let residues = numbers
                .iter()
                .fold(true, |all, &x| all & (x < prime.value()));
            match out[filled..].first_chunk_mut::<GROUP>() {
                // Nearly always: the primes are just below 2^30.
                Some(to) if residues => {
                    *to = numbers;
                    filled += GROUP;
                }
                _ => {
                    for x in numbers.into_iter().filter(|&x| x < prime.value()) {
                        out[filled] = x;
                        filled += 1;
                    }
                }
            }
        }
    }
}

/// Draws coefficients uniform in {-1, 0, 1}.
pub fn ternary(rng: &mut impl CryptoRng, count: usize) -> Zeroizing<Vec<i8>> {
    let mut out = Zeroizing::new(vec![0; count]);
    fill_ternary(Simd::detect(), rng, &mut out);
    out
}

/// Draws coefficients uniform in {-1, 0, 1} into a buffer.
///
/// A byte below `3^5` gives five of them; other bytes are skipped. Which bytes are skipped reveals
/// nothing about those that are used.
pub fn fill_ternary(simd: Simd, rng: &mut impl CryptoRng, out: &mut [i8]) {
    const DIGITS: usize = 5;
    let mut drawn = Zeroizing::new([0; CHUNK]);
    let mut kept = Zeroizing::new([0; CHUNK + 1]);
    for out in out.chunks_mut(DIGITS * CHUNK) {
        let wanted = out.len().div_ceil(DIGITS);
        let mut filled = 0;
        while filled < wanted {
            let drawn = &mut drawn[..wanted - filled];
            rng.fill_bytes(drawn);
            for &mut byte in drawn {
                // Written always, kept if it is below: no branch.
                kept[filled] = byte;
                filled += usize::from(byte < 243);
            }
        }
        elementwise::ternary_digits(simd, &mut kept[..wanted], out);
    }
}

/// Draws error coefficients: the number of heads of twice [`ERROR_BOUND`] coins, minus their mean.
pub fn error(rng: &mut impl CryptoRng, count: usize) -> Zeroizing<Vec<i8>> {
    let mut out = Zeroizing::new(vec![0; count]);
    fill_error(Simd::detect(), rng, &mut out);
    out
}

/// Draws error coefficients into a buffer.
pub fn fill_error(simd: Simd, rng: &mut impl CryptoRng, out: &mut [i8]) {
    // Five bytes for forty coins, and a fourth of a byte.
    let mut coins = Zeroizing::new([0; 5 * CHUNK + CHUNK / 4]);
    for out in out.chunks_mut(CHUNK) {
        rng.fill_bytes(&mut coins[..]);
        let (whole, last) = coins.split_at(5 * CHUNK);
        elementwise::count_coins(simd, out, whole, last);
    }
}

/// Bits of a digit of a flooding integer: eight of them fit a sum of 32 bits.
const DIGIT_BITS: u32 = 29;
/// Digits of one, and the bits of the highest.
const DIGITS: usize = (FLOOD_TERM_BITS + 1).div_ceil(DIGIT_BITS) as usize;
const TOP_BITS: u32 = FLOOD_TERM_BITS + 1 - DIGIT_BITS * (DIGITS as u32 - 1);
/// Coefficients that are flooded at once.
const FLOODED: usize = 128;

/// Adds flooding noise to limbs of `count` coefficients each.
///
/// # Panics
/// If the limbs have another length.
pub fn add_flood(
    simd: Simd,
    primes: &[Prime],
    rng: &mut impl CryptoRng,
    count: usize,
    limbs: &mut [u32],
) {
    assert_eq!(limbs.len(), count * primes.len());
    let mut bytes = Zeroizing::new([0; 4 * FLOODED * DIGITS]);
    let mut sums = Zeroizing::new([0; FLOODED * DIGITS]);
    let factors: Vec<_> = primes
        .iter()
        .map(|prime| {
            let digit = |i: u32| prime.to_montgomery(prime.pow(2, (DIGIT_BITS * i).into()));
            (
                [0, 1, 2].map(digit),
                prime.neg(prime.pow(2, FLOOD_BITS.into())),
            )
        })
        .collect();
    for start in (0..count).step_by(FLOODED) {
        let len = FLOODED.min(count - start);
        sums.fill(0);
        for _ in 0..FLOOD_TERMS {
            rng.fill_bytes(&mut bytes[..]);
            let planes = sums.chunks_exact_mut(FLOODED);
            for (i, (sums, bytes)) in planes.zip(bytes.chunks_exact(4 * FLOODED)).enumerate() {
                let unused = 32
                    - if i + 1 == DIGITS {
                        TOP_BITS
                    } else {
                        DIGIT_BITS
                    };
                for (sum, word) in sums.iter_mut().zip(bytes.as_chunks::<4>().0) {
                    *sum += u32::from_le_bytes(*word) >> unused;
                }
            }
        }
        // What is above a digit goes to the next.
        for i in 1..DIGITS {
            let (low, high) = sums[(i - 1) * FLOODED..].split_at_mut(FLOODED);
            for (low, high) in low.iter_mut().zip(high) {
                *high += *low >> DIGIT_BITS;
                *low &= (1 << DIGIT_BITS) - 1;
            }
        }
        let all = limbs.chunks_exact_mut(count).zip(primes);
        for ((limb, &prime), (factors, centre)) in all.zip(&factors) {
            let out = &mut limb[start..start + len];
            elementwise::add_digits(simd, prime, out, &sums[..], *factors, *centre);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_the_distributions() {
        let mut rng = Prg::new(&[5; 16]);
        let n = 100_000;
        let secret = ternary(&mut rng, n);
        for v in -1..=1 {
            let share = secret.iter().filter(|&&x| x == v).count() as f64 / n as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.01, "{v}: {share}");
        }
        let noise = error(&mut rng, n);
        let mean = noise.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
        let variance = noise.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / n as f64;
        assert!(
            mean.abs() < 0.05 && (variance - 10.5).abs() < 0.3,
            "{mean} {variance}"
        );
        assert!(noise.iter().all(|x| x.unsigned_abs() <= ERROR_BOUND as u8));
    }

    #[test]
    fn expansion_is_uniform_and_repeatable() {
        let prime = Prime::largest(1)[0];
        let (mut a, mut b) = (vec![0; 5000], vec![0; 5000]);
        expand(prime, &mut Prg::new(&[2; 16]), &mut a);
        expand(prime, &mut Prg::new(&[2; 16]), &mut b);
        assert_eq!(a, b);
        assert!(a.iter().all(|&x| x < prime.value()));
        let mean = a.iter().map(|&x| f64::from(x)).sum::<f64>() / 5000.0 / f64::from(prime.value());
        assert!((mean - 0.5).abs() < 0.02);
    }

    #[test]
    fn vectors_and_plain_code_draw_the_same() {
        for len in [1, 7, 511, 2560, 8192] {
            let draw = |simd| {
                let mut rng = Prg::new(&[7; 16]);
                let (mut small, mut limbs) = (vec![0; 2 * len], vec![5; 2 * len]);
                fill_ternary(simd, &mut rng, &mut small[..len]);
                fill_error(simd, &mut rng, &mut small[len..]);
                let primes = Prime::largest(2);
                add_flood(simd, &primes, &mut rng, len, &mut limbs);
                (small, limbs)
            };
            let plain = draw(Simd::portable());
            assert!(
                Simd::available()
                    .into_iter()
                    .all(|simd| draw(simd) == plain)
            );
        }
    }

    #[test]
    fn five_digits_of_a_byte_and_forty_two_coins() {
        for simd in Simd::available() {
            let mut bytes: Vec<u8> = (0..243).collect();
            let mut digits = vec![0; 5 * 243];
            elementwise::ternary_digits(simd, &mut bytes, &mut digits);
            for byte in 0..243 {
                let place = |i: usize| (i32::from(digits[i * 243 + byte]) + 1) * 3i32.pow(i as u32);
                assert_eq!((0..5).map(place).sum::<i32>(), byte as i32);
            }
            // All coins of one coefficient are heads, all others are tails.
            let mut whole = vec![0; 5 * 64];
            let mut last = vec![0; 16];
            (0..5).for_each(|p| whole[p * 64 + 37] = 0xff);
            last[37 % 16] = 3 << (2 * (37 / 16));
            let mut out = vec![0; 64];
            elementwise::count_coins(simd, &mut out, &whole, &last);
            assert!((0..64).all(|i| out[i] == if i == 37 { 21 } else { -21 }));
        }
    }

    #[test]
    fn flood_is_one_integer_in_every_limb() {
        // Four primes hold 120 bits: the integer is recovered and has the stated range.
        let primes = Prime::largest(4);
        let q: Vec<i128> = primes.iter().map(|p| p.value().into()).collect();
        let total: i128 = q.iter().product();
        let n = 4000;
        let mut limbs = vec![0; 4 * n];
        let mut rng = Prg::new(&[6; 16]);
        add_flood(Simd::detect(), &primes, &mut rng, n, &mut limbs);
        let (mut mean, mut square) = (0.0, 0.0);
        let unit = f64::from(FLOOD_TERM_BITS).exp2();
        for j in 0..n {
            let mut x: i128 = 0;
            let mut weight: i128 = 1;
            for i in 0..4 {
                let digit = primes[i].from_signed_wide((x.rem_euclid(q[i])) as i64);
                let inverse = primes[i].invert(weight.rem_euclid(q[i]) as u32);
                let step = primes[i].mul(primes[i].sub(limbs[i * n + j], digit), inverse);
                x += weight * i128::from(step);
                weight *= q[i];
            }
            if x > total / 2 {
                x -= total;
            }
            assert!((x as f64).abs() <= f64::from(FLOOD_BITS).exp2());
            mean += x as f64 / unit / n as f64;
            square += (x as f64 / unit).powi(2) / n as f64;
        }
        // A third for each term; five standard errors.
        let variance = FLOOD_TERMS as f64 / 3.0;
        assert!(mean.abs() < 5.0 * (variance / n as f64).sqrt(), "{mean}");
        assert!((square / variance - 1.0).abs() < 0.12, "{square}");
    }
}
