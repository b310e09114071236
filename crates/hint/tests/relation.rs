//! The relation, and how large its errors are.
#![allow(missing_docs)]

use primer_hint::client::Batch;
use primer_hint::errors::deviation;
use primer_hint::params::{LANES, MESSAGE_BYTES, hint_bytes};
use primer_hint::sample::Wide;
use primer_hint::server::{Hint, HintSecret, Multiplier, Received};
use primer_ring::matrix::{Matrix, Packed, Scratch, product_mod};
use primer_ring::modulus;
use primer_ring::prg::Prg;
use rand_core::Rng;

const NAME: [u8; 32] = [5; 32];
const VALUE: u32 = 3;

/// Draws weights whose columns have about this length.
fn weights(features: usize, outputs: usize, length: f64, rng: &mut Prg) -> Matrix<i16> {
    let mut out = Matrix::<i16>::zeros(features, outputs);
    let scale = length / (features as f64).sqrt();
    for x in out.data_mut() {
        let uniform = |_| f64::from(rng.next_u32()) / 2f64.powi(32);
        let normal = (0..12).map(uniform).sum::<f64>() - 6.0;
        *x = (normal * scale).round().clamp(-16384.0, 16383.0) as i16;
    }
    out
}

fn root_mean_square(errors: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = errors.len() as f64;
    (errors.map(|e| e * e).sum::<f64>() / count).sqrt()
}

/// Runs a batch and returns the error of every element, in units of Z_p.
fn errors(weights: &Matrix<i16>, seed: u8) -> Vec<f64> {
    let (features, outputs) = (weights.rows(), weights.cols());
    let secret = HintSecret::new([9; 32]);
    let (multiplier, hint, margin) = Multiplier::build(&secret, &NAME, VALUE, weights).unwrap();
    assert!(margin.modulus_bits() < 54.5, "{margin:?}");
    let bytes = hint.encode();
    assert_eq!(bytes.len(), hint_bytes(outputs));
    let hint = Hint::decode(&bytes, outputs).unwrap();
    let batch = Batch::new(&NAME, VALUE, &[seed; 32]);
    let masks = batch.masks(LANES, features, 1);
    let message = batch.message();
    assert_eq!(message.len(), MESSAGE_BYTES);
    let y = batch.shares(LANES, &hint, 1);
    let z = multiplier.shares(LANES, &Received::decode(&message).unwrap(), 1);
    let expected = product_mod(&masks, &Packed::new(weights), &mut Scratch::default());
    let pairs = y.data().iter().zip(z.data()).zip(expected.data());
    let off = pairs.map(|((y, z), e)| modulus::to_signed(modulus::sub(modulus::add(*y, *z), *e)));
    let off: Vec<f64> = off.map(|e| e as f64).collect();
    assert_eq!(off.len(), LANES * outputs);
    off
}

/// Predicts the error, over all columns.
fn predicted(weights: &Matrix<i16>) -> f64 {
    let squares = weights.data().iter().map(|&w| f64::from(w).powi(2));
    let column = squares.sum::<f64>() / weights.cols() as f64;
    deviation(column.sqrt())
}

#[test]
fn errors_are_those_predicted() {
    let rng = &mut Prg::new(&[1; 16]);
    // Long columns, where rounding dominates, and short ones, where noise and packing do.
    for (features, outputs, length) in [(768, 40, 60_000.0), (768, 40, 8192.0), (64, 64, 100.0)] {
        let weights = weights(features, outputs, length, rng);
        let found = root_mean_square(errors(&weights, 4).into_iter());
        let expected = predicted(&weights);
        let ratio = found / expected;
        assert!(
            (0.95..1.05).contains(&ratio),
            "{length}: {found} and {expected}"
        );
    }
}

#[test]
fn every_size_fits() {
    let rng = &mut Prg::new(&[2; 16]);
    for (features, outputs) in [(1, 1), (7, 9), (8, 8), (9, 7), (2500, 1)] {
        let weights = weights(features, outputs, 500.0, rng);
        let largest = errors(&weights, 6)
            .into_iter()
            .fold(0.0, |a: f64, b| a.max(b.abs()));
        // Six times what is expected of a few hundred to a few thousand of them.
        assert!(
            largest < 6.0 * predicted(&weights),
            "{features} x {outputs}: {largest}"
        );
    }
}

/// Runs a chi-square test of the top bits and of the bottom bits of masks.
#[test]
fn masks_are_uniform() {
    let batch = Batch::new(&NAME, VALUE, &[7; 32]);
    let masks = batch.masks(LANES, 64, 1);
    for shift in [35, 0] {
        let mut counts = [0f64; 64];
        for &x in masks.data() {
            counts[(x >> shift & 63) as usize] += 1.0;
        }
        let expected = masks.data().len() as f64 / 64.0;
        let chi: f64 = counts
            .iter()
            .map(|c| (c - expected).powi(2) / expected)
            .sum();
        // 63 degrees of freedom: 63 on average, deviation 11.
        assert!((20.0..130.0).contains(&chi), "{chi}");
    }
}

/// Checks that a seed is a function: a message that is sent again is the same, and nothing of one
/// seed is that of another.
#[test]
fn a_seed_gives_one_message_and_one_set_of_masks() {
    let [one, again, other] = [1, 1, 2].map(|seed| Batch::new(&NAME, VALUE, &[seed; 32]));
    assert_eq!(one.message(), again.message());
    assert!(one.masks(LANES, 16, 1).data() == again.masks(LANES, 16, 1).data());
    assert_ne!(one.message(), other.message());
    assert!(one.masks(LANES, 16, 1).data() != other.masks(LANES, 16, 1).data());
    // Nor are those of another value, or of another hint.
    let elsewhere = [
        Batch::new(&NAME, VALUE + 1, &[1; 32]),
        Batch::new(&[6; 32], VALUE, &[1; 32]),
    ];
    for elsewhere in elsewhere {
        assert_ne!(one.message(), elsewhere.message());
        assert!(one.masks(LANES, 16, 1).data() != elsewhere.masks(LANES, 16, 1).data());
    }
}

/// Checks that two hints under one name have noise of their own: without it, the difference of two
/// sets of shares would reveal the key.
#[test]
fn noise_is_bound_to_the_hint() {
    let batch = Batch::new(&NAME, VALUE, &[1; 32]);
    let [zero, one] = [0, 1].map(|byte| Hint::decode(&vec![byte; hint_bytes(8)], 8).unwrap());
    let noise = batch.shares(LANES, &zero, 1);
    assert!(
        batch.shares(LANES, &zero, 1).data() == noise.data(),
        "it is a function"
    );
    // A hint of zeros opens to nothing but noise.
    let deviation = root_mean_square(noise.data().iter().map(|&x| modulus::to_signed(x) as f64));
    assert!((9_500.0..11_200.0).contains(&deviation), "{deviation}");
    assert_ne!(zero.digest(), one.digest());
    // One that differs in the last bit of one coefficient opens to nearly the same.
    let mut bytes = vec![0; hint_bytes(8)];
    bytes[0] = 1;
    let near = batch.shares(LANES, &Hint::decode(&bytes, 8).unwrap(), 1);
    let pairs = near.data().iter().zip(noise.data());
    let off = pairs.map(|(a, b)| modulus::to_signed(modulus::sub(*a, *b)) as f64);
    let deviation = root_mean_square(off);
    assert!((13_500.0..15_800.0).contains(&deviation), "{deviation}");
}

/// Checks that what hides weights depends on everything that determines what is hidden: change
/// anything, and all of the hint changes.
#[test]
fn secrets_are_bound_to_what_they_hide() {
    let rng = &mut Prg::new(&[3; 16]);
    let mut weights = weights(16, 8, 3000.0, rng);
    let build = |secret, name: u8, value, weights: &Matrix<i16>| {
        let secret = HintSecret::new([secret; 32]);
        let (_, hint, _) = Multiplier::build(&secret, &[name; 32], value, weights).unwrap();
        hint.encode()
    };
    let first = build(1, 1, 1, &weights);
    assert_eq!(build(1, 1, 1, &weights), first, "it is a function");
    let mut others = vec![
        build(2, 1, 1, &weights),
        build(1, 2, 1, &weights),
        build(1, 1, 2, &weights),
    ];
    weights.data_mut()[77] += 1;
    others.push(build(1, 1, 1, &weights));
    for other in others {
        // Two unrelated strings agree in one byte of 256.
        let same = first.iter().zip(&other).filter(|(a, b)| a == b).count();
        let share = same as f64 / first.len() as f64;
        assert!((0.002..0.008).contains(&share), "{share}");
    }
}

#[test]
fn bytes_of_the_peer_are_checked() {
    let message = Batch::new(&NAME, VALUE, &[1; 32]).message();
    for wrong in [&message[1..], &[][..], &[&message[..], &[0]].concat()] {
        assert!(Received::decode(wrong).is_err());
    }
    // The largest number of 53 bits is not below the modulus.
    let mut large = message.clone();
    large[..7].fill(0xff);
    let error = Received::decode(&large).err().unwrap();
    assert!(
        error
            .to_string()
            .starts_with("the message of a preparation"),
        "{error}"
    );
    for outputs in [8, 1 << 40] {
        let error = Hint::decode(&[0; 10], outputs).err().unwrap();
        assert!(error.to_string().starts_with("the hint"), "{error}");
    }
    assert!(Hint::decode(&[], 8).is_err());
    assert!(Hint::decode(&vec![0; hint_bytes(8)], 8).is_ok());
}

/// Checks weights of rank one, all of the largest size: what their shares tell about the dither
/// adds up.
#[test]
fn weights_whose_shares_would_tell_too_much_are_refused() {
    let weights = Matrix::from_vec(768, 256, vec![16383; 768 * 256]);
    let refused = Multiplier::build(&HintSecret::new([9; 32]), &NAME, VALUE, &weights);
    let error = refused.err().unwrap().to_string();
    assert!(
        error.contains("these weights cannot have a hint"),
        "{error}"
    );
}

/// Checks that threads change nothing, and that fewer lanes are the first ones: of masks and the
/// server's shares to the bit, of the client's shares but for the noise, which is drawn for as many
/// as there are.
#[test]
fn threads_and_lanes_change_nothing() {
    let rng = &mut Prg::new(&[4; 16]);
    let weights = weights(20, 50, 3000.0, rng);
    let (multiplier, hint, _) =
        Multiplier::build(&HintSecret::new([9; 32]), &NAME, VALUE, &weights).unwrap();
    let batch = Batch::new(&NAME, VALUE, &[1; 32]);
    let message = Received::decode(&batch.message()).unwrap();
    let all = |lanes, threads| {
        [
            batch.masks(lanes, 20, threads),
            multiplier.shares(lanes, &message, threads),
            batch.shares(lanes, &hint, threads),
        ]
    };
    let whole = all(LANES, 1);
    for (one, other) in whole.iter().zip(&all(LANES, 3)) {
        assert!(one.data() == other.data());
    }
    for (part, (whole, fewer)) in whole.iter().zip(&all(5, 4)).enumerate() {
        assert_eq!(fewer.rows(), 5);
        for (a, b) in whole.data().iter().zip(fewer.data()) {
            let off = modulus::to_signed(modulus::sub(*a, *b));
            let noise = [0.0, 0.0, 9.0 * Wide::SHARE.deviation()][part];
            assert!((off as f64).abs() <= noise, "{part}: {off}");
        }
    }
}
