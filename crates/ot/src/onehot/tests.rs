//! Shares against their definition, for chosen offsets.

use super::receiver::receive_chunk;
use super::*;
use crate::base::BaseOt;
use crate::bits::Bits;
use crate::cot::{CotReceiver, CotSender, Delta};
use crate::error::OtError;
use crate::setup::Setup;
use crate::variant::Variant;
use primer_net::kind::one_hot::CORRECTIONS;
use primer_net::kind::transfer::EXTENSION;
use primer_net::run_pair;
use primer_ring::prg::Prg;
use rand_core::Rng;

const SETUP: Setup = Setup::new(Variant::IKNP, BaseOt::Ristretto);

/// Makes shares for these indices and offsets; checks every entry of every pair of vectors.
fn check(shape: Shape, indices: &[u16], offsets: &[u16]) {
    let count = indices.len();
    assert!(count <= shape.chunk());
    let choices = |at: usize| {
        // As transfers are laid out: in a batch, the rows for one bit side by side.
        let batch = at / (BATCH * shape.transfers());
        let elements = BATCH.min(count - batch * BATCH);
        let at = at - batch * BATCH * shape.transfers();
        offsets[batch * BATCH + at % elements] >> (at / elements) & 1 == 1
    };
    let bits = Bits::from_fn(count * shape.transfers(), choices);
    let (ours, theirs) = run_pair(
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotSender::setup(SETUP, channel, Delta::random(rng), rng)?;
            let mut all = Vec::new();
            send(&mut cot, channel, shape, indices, |first, vectors| {
                assert_eq!(first * shape.vector_bytes(), all.len());
                all.extend_from_slice(vectors);
                Ok::<_, OtError>(())
            })?;
            Ok(all)
        },
        |channel| {
            let rng = &mut Prg::from_os();
            let mut cot = CotReceiver::setup(SETUP, channel, rng)?;
            let mut all = Vec::new();
            receive_chunk(&mut cot, channel, &shape, &bits, |first, drawn, vectors| {
                assert_eq!(drawn, &offsets[first..first + drawn.len()]);
                all.extend_from_slice(vectors);
                Ok::<_, OtError>(())
            })?;
            Ok::<_, OtError>(all)
        },
    )
    .unwrap();
    let bytes = shape.vector_bytes();
    assert_eq!((ours.len(), theirs.len()), (count * bytes, count * bytes));
    for i in 0..count {
        let sum = (usize::from(indices[i]) + usize::from(offsets[i])) % shape.entries();
        for place in 0..bytes {
            let at = i * bytes + place;
            let expected = u8::from(place == sum / 8) << (sum % 8);
            assert_eq!(ours[at] ^ theirs[at], expected, "element {i}, byte {place}");
        }
    }
}

fn check_all(shape: Shape) {
    let n = shape.indices() as u16;
    let pairs = (0..n).flat_map(|b| (0..n).map(move |u| (b, u)));
    let (indices, offsets): (Vec<_>, Vec<_>) = pairs.unzip();
    check(shape, &indices, &offsets);
}

fn check_some(shape: Shape, count: usize) {
    let mut rng = Prg::from_os();
    let mut draw = || (rng.next_u32() as usize % shape.indices()) as u16;
    let (mut indices, mut offsets): (Vec<_>, Vec<_>) = (0..count).map(|_| (draw(), draw())).unzip();
    // The corners are among them.
    let last = (shape.indices() - 1) as u16;
    indices[..3].copy_from_slice(&[0, last, last]);
    offsets[..3].copy_from_slice(&[0, last, 0]);
    check(shape, &indices, &offsets);
}

#[test]
fn every_offset_and_index_of_small_vectors() {
    for bits in [4, 5] {
        check_all(Shape::new(bits).unwrap());
        check_all(Shape::with_digits(bits, &[bits]).unwrap());
        check_all(Shape::with_digits(bits, &[2, bits - 2]).unwrap());
    }
    check_all(Shape::carrying(4).unwrap());
}

#[test]
fn random_offsets_and_indices_of_all_shapes() {
    for bits in MIN_BITS..=MAX_BITS {
        check_some(Shape::new(bits).unwrap(), 203);
        if bits > MIN_BITS {
            check_some(Shape::carrying(bits - 1).unwrap(), 77);
        }
    }
    for digits in [&[8][..], &[3, 3, 2], &[1, 7], &[1, 1, 1, 1, 1, 1, 1, 1]] {
        check_some(Shape::with_digits(8, digits).unwrap(), 100);
    }
    check_some(Shape::with_digits(10, &[10]).unwrap(), 9);
}

#[test]
fn counts_around_batches() {
    for count in [3, 7, 8, 9, 63, 64, 65, 127, 129] {
        check_some(Shape::new(8).unwrap(), count);
        check_some(Shape::new(6).unwrap(), count);
    }
}

/// How far the bytes are from uniform: with `k` degrees of freedom χ² has mean `k` and variance
/// `2k`; six deviations are never seen by chance.
fn looks_uniform(bytes: &[u8]) -> bool {
    assert!(bytes.len() >= 1 << 16, "enough to tell");
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|&b| counts[usize::from(b)] += 1);
    let mean = bytes.len() as f64 / 256.0;
    let terms = counts.map(|n| (f64::from(n) - mean).powi(2) / mean);
    let statistic: f64 = terms.iter().sum();
    (statistic - 255.0).abs() < 6.0 * 510f64.sqrt()
}

/// What each party receives, and what it ends with, looks uniform though all indices and all
/// offsets are the same. The same bytes without their mask do not.
#[test]
fn every_view_is_uniform() {
    let (index, count) = (5u16, 1 << 15);
    for shape in [Shape::new(4), Shape::new(6), Shape::new(8)].map(Result::unwrap) {
        let mut unmasked = Vec::new();
        let mut alone = vec![crate::engine::Wide::ZERO; shape.blocks()];
        super::lanes::place(&[index; 8], &mut alone);
        for _ in 0..count / 8 {
            super::lanes::unload(&shape, &alone, 8, &mut unmasked);
        }
        let choices = Bits::from_fn(count * shape.transfers(), |_| false);
        let (seen_by_sender, seen_by_receiver) = run_pair(
            |channel| {
                let rng = &mut Prg::from_os();
                let delta = Delta::random(rng);
                let mut cot = CotSender::setup(SETUP, channel, delta, rng)?;
                let mut vectors = Vec::new();
                send(&mut cot, channel, shape, &vec![index; count], |_, some| {
                    vectors.extend_from_slice(some);
                    Ok::<_, OtError>(())
                })?;
                // The next extension, as it is on the wire.
                let extension = channel.recv(EXTENSION, 1 << 24)?;
                Ok((vectors, extension[8..].to_vec()))
            },
            |channel| {
                let rng = &mut Prg::from_os();
                let mut cot = CotReceiver::setup(SETUP, channel, rng)?;
                cot.extend(channel, &choices, |_, _| ())?;
                let corrections = channel.recv(CORRECTIONS, 1 << 24)?;
                cot.extend(channel, &choices, |_, _| ())?;
                Ok::<_, OtError>(corrections)
            },
        )
        .unwrap();
        let (vectors, extension) = seen_by_sender;
        assert!(looks_uniform(&seen_by_receiver), "corrections");
        assert!(looks_uniform(&extension), "extension");
        assert!(looks_uniform(&vectors), "the sender's share");
        assert!(!looks_uniform(&unmasked), "a mask of zero is found");
        // One byte in eight without its mask is found as well.
        let mut partly = seen_by_receiver;
        let bare = unmasked.iter().cycle();
        partly
            .iter_mut()
            .zip(bare)
            .step_by(8)
            .for_each(|(byte, bare)| *byte = *bare);
        assert!(!looks_uniform(&partly), "a mask that is sometimes zero");
    }
}
