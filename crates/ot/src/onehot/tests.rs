//! Shares against their definition for every part and index, and what each party sees.

use super::chunk::Chunk;
use super::*;
use primer_ring::prg::Prg;
use rand_core::Rng;

/// Makes up a transfer for each bit of `choices`: the sender's rows and the receiver's.
fn transfers(choices: &crate::bits::Bits, delta: u128, prg: &mut Prg) -> [Vec<u128>; 2] {
    let mut draw = || u128::from_le_bytes(prg.seed());
    let sent: Vec<u128> = (0..choices.len()).map(|_| draw()).collect();
    let chosen = |(i, row): (usize, &u128)| match choices.get(i) {
        false => *row,
        true => row ^ delta,
    };
    let received = sent.iter().enumerate().map(chosen).collect();
    [sent, received]
}

/// Both parties' work without a channel.
struct Made {
    /// Messages of the index party: corrections, then blocks.
    from_index: [Vec<u8>; 2],
    /// The offset party's blocks.
    from_offset: Vec<u8>,
    offsets: Vec<u16>,
    /// The index party's vectors and the offset party's.
    vectors: [Vec<u8>; 2],
}

fn make(shape: Shape, indices: &[u16], [own, others]: [&[u16]; 2], prg: &mut Prg) -> Made {
    let n = indices.len();
    let deltas = [(); 2].map(|()| u128::from_le_bytes(prg.seed()) | 1);
    let mut index = chunk(shape, n);
    let (offset, offsets, corrections) = places(&mut index, indices, [own, others], deltas[0], prg);
    if shape.block_transfers() == 0 {
        return Made {
            from_index: [corrections, Vec::new()],
            from_offset: Vec::new(),
            offsets,
            vectors: [index.whole().to_vec(), offset.whole().to_vec()],
        };
    }
    let [to_offset, by_index] = transfers(&index.marks().unwrap(), deltas[1], prg);
    let [to_index, by_offset] = transfers(&offset.marks().unwrap(), deltas[0], prg);
    let from_index = index.open([&to_index, &by_index], deltas[0]);
    let from_offset = offset.open([&to_offset, &by_offset], deltas[1]);
    let messages = [&from_index, &from_offset].map(|opened| opened.message.clone());
    let vectors = [
        index.close(from_index, &messages[1]).to_vec(),
        offset.close(from_offset, &messages[0]).to_vec(),
    ];
    let [ours, theirs] = messages;
    Made {
        from_index: [corrections, ours],
        from_offset: theirs,
        offsets,
        vectors,
    }
}

fn chunk(shape: Shape, n: usize) -> Chunk {
    Chunk::new(shape, VectorKeys::new(&[7; 32]), (0, 1), n)
}

/// Runs the first half: the offset party's chunk, its offsets, and the corrections.
fn places(
    index: &mut Chunk,
    indices: &[u16],
    [own, others]: [&[u16]; 2],
    delta: u128,
    prg: &mut Prg,
) -> (Chunk, Vec<u16>, Vec<u8>) {
    let shape = index.shape();
    let choices = planes::choices(others, 0, shape.place_transfers()).unwrap();
    let [sent, received] = transfers(&choices, delta, prg);
    let corrections = index.correct((indices, own), (&sent, delta));
    assert_eq!(corrections.len(), indices.len() * shape.correction_bytes());
    let mut offset = chunk(shape, indices.len());
    let offsets = offset.follow(others, &received, &corrections).to_vec();
    (offset, offsets, corrections)
}

/// Checks every bit of every vector.
fn check(shape: Shape, indices: &[u16], parts: [&[u16]; 2]) {
    let made = make(shape, indices, parts, &mut Prg::from_os());
    let bytes = shape.vector_bytes();
    for (i, (&index, &offset)) in indices.iter().zip(&made.offsets).enumerate() {
        let place = (usize::from(index) + usize::from(offset)) % shape.entries();
        assert_eq!(place, usize::from(parts[0][i] ^ parts[1][i]));
        for byte in 0..bytes {
            let at = i * bytes + byte;
            let expected = u8::from(byte == place / 8) << (place % 8);
            let sum = made.vectors[0][at] ^ made.vectors[1][at];
            assert_eq!(sum, expected, "element {i}, byte {byte}");
        }
    }
}

#[test]
fn every_pair_of_parts_of_small_vectors() {
    for bits in [4, 5] {
        let shape = Shape::new(bits).unwrap();
        let n = 1u16 << bits;
        let pairs = (0..n).flat_map(|s| (0..n).map(move |c| (s, c)));
        let (own, others): (Vec<_>, Vec<_>) = pairs.unzip();
        for index in [0, 5, n - 1] {
            check(shape, &vec![index; own.len()], [&own, &others]);
        }
    }
}

#[test]
fn random_parts_and_indices_of_all_shapes() {
    let mut prg = Prg::from_os();
    for bits in MIN_BITS..=MAX_BITS {
        let shape = Shape::new(bits).unwrap();
        let last = (shape.entries() - 1) as u16;
        for count in [1, 3, 63, 64, 65, 400] {
            let mut draw = |corners: [u16; 3]| {
                let mut all: Vec<u16> = (0..count).map(|_| prg.next_u32() as u16 & last).collect();
                all.iter_mut()
                    .zip(corners)
                    .for_each(|(x, corner)| *x = corner);
                all
            };
            let indices = draw([0, last, last]);
            let (own, others) = (draw([0, last, 0]), draw([last, last, 0]));
            check(shape, &indices, [&own, &others]);
        }
    }
}

/// Tells whether the bytes are close to uniform: with `k` degrees of freedom χ² has mean `k` and
/// variance `2k`; six deviations are never seen by chance.
fn looks_uniform(bytes: &[u8]) -> bool {
    assert!(bytes.len() >= 1 << 16, "enough to tell");
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|&b| counts[usize::from(b)] += 1);
    let mean = bytes.len() as f64 / 256.0;
    let terms = counts.map(|n| (f64::from(n) - mean).powi(2) / mean);
    let statistic: f64 = terms.iter().sum();
    (statistic - 255.0).abs() < 6.0 * 510f64.sqrt()
}

/// Checks that what each party receives, and what it ends with, looks uniform though all indices
/// and all parts of the other party are the same. The same bytes with the masks taken off do not.
#[test]
fn every_view_is_uniform() {
    let count = 1 << 15;
    for bits in [6, 8, 9, 10] {
        let shape = Shape::new(bits).unwrap();
        let mut prg = Prg::from_os();
        let random: Vec<u16> = (0..count).map(|_| prg.next_u32() as u16).collect();
        let mask = (shape.entries() - 1) as u16;
        let random: Vec<u16> = random.iter().map(|part| part & mask).collect();
        let (fixed, indices) = (vec![3u16; count], vec![5u16; count]);

        // The offset party sees an index party that always does the same.
        let made = make(shape, &indices, [&fixed, &random], &mut prg);
        let [corrections, blocks] = &made.from_index;
        // Tails have unused bits: only swaps are looked at here, and tails below.
        let swaps = whole_swaps(&shape, corrections);
        assert!(looks_uniform(&swaps), "{bits}: corrections");
        assert!(
            looks_uniform(&made.vectors[1]),
            "{bits}: the offset party's share"
        );
        // The same without a pad: the sum of both halves of a unit vector.
        let bare: Vec<u8> = (0..count * 8).map(|i| u8::from(i % 8 == 0)).collect();
        assert!(!looks_uniform(&bare), "a mask of zero is found");
        let partly = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bytes.iter_mut().step_by(8).for_each(|byte| *byte = 1);
            bytes
        };
        assert!(
            !looks_uniform(&partly(&swaps)),
            "a mask that is sometimes missing"
        );
        if shape.block_transfers() > 0 {
            assert!(looks_uniform(blocks), "{bits}: the index party's blocks");
        }

        // The index party sees an offset party that always does the same.
        let made = make(shape, &indices, [&random, &fixed], &mut prg);
        assert!(
            looks_uniform(&made.vectors[0]),
            "{bits}: the index party's share"
        );
        if shape.block_transfers() > 0 {
            assert!(
                looks_uniform(&made.from_offset),
                "{bits}: the offset party's blocks"
            );
            assert!(!looks_uniform(&partly(&made.from_offset)));
        }
    }
}

/// Returns the corrections of swaps, batch by batch, without the packed tails.
fn whole_swaps(shape: &Shape, corrections: &[u8]) -> Vec<u8> {
    let swaps = shape.correction_bytes() - shape.tail_bytes();
    let batches = corrections.chunks(BATCH * shape.correction_bytes());
    let of = |batch: &[u8]| batch[..batch.len() / shape.correction_bytes() * swaps].to_vec();
    batches.flat_map(of).collect()
}

/// Checks that what the index party says about its index is a one-time pad: for one index and one
/// part of its own every offset comes out equally often, and so does every place.
#[test]
fn offsets_do_not_tell_the_index() {
    let (shape, count) = (Shape::new(4).unwrap(), 1 << 14);
    let mut prg = Prg::from_os();
    let mut draw = || {
        (0..count)
            .map(|_| prg.next_u32() as u16 & 15)
            .collect::<Vec<_>>()
    };
    let (own, others) = (draw(), vec![9; count]);
    let made = make(shape, &vec![6; count], [&own, &others], &mut Prg::from_os());
    let mut counts = [0f64; 16];
    made.offsets
        .iter()
        .for_each(|&u| counts[usize::from(u)] += 1.0);
    let mean = count as f64 / 16.0;
    let statistic: f64 = counts.iter().map(|n| (n - mean).powi(2) / mean).sum();
    assert!((statistic - 15.0).abs() < 6.0 * 30f64.sqrt(), "{counts:?}");
}

/// Checks that an index party that chooses by the offset party's own marks, so that the seeds of
/// all blocks but the first are equal, cannot take the pads off what the other sends: then the
/// parties' seeds of the first block differ. It could if both had one offset, and this test would
/// notice.
#[test]
fn choosing_by_other_marks_opens_nothing() {
    let (shape, n) = (Shape::new(9).unwrap(), 1000);
    let attack = |deltas: [u128; 2]| {
        let prg = &mut Prg::from_os();
        let mut index = chunk(shape, n);
        let mut draw = || {
            (0..n)
                .map(|_| prg.next_u32() as u16 & 511)
                .collect::<Vec<_>>()
        };
        let (indices, own, others) = (draw(), draw(), draw());
        let (offset, ..) = places(&mut index, &indices, [&own, &others], deltas[0], prg);
        let [to_offset, by_index] = transfers(&offset.marks().unwrap(), deltas[1], prg);
        let [to_index, by_offset] = transfers(&offset.marks().unwrap(), deltas[0], prg);
        let sent = offset.open([&to_offset, &by_offset], deltas[1]).message;
        // The same marks, and nothing to hide.
        let guess = offset
            .with_nothing_below()
            .open([&to_index, &by_index], deltas[0]);
        let differences = sent.iter().zip(&guess.message).map(|(a, b)| a ^ b);
        let shares = offset.shares_below();
        let found: Vec<u8> = differences.collect();
        let pairs = found.chunks_exact(8).zip(shares);
        pairs.filter(|(a, b)| a == &b.to_le_bytes()).count()
    };
    assert_eq!(attack([3, 3]), n);
    let mut prg = Prg::from_os();
    let deltas = [(); 2].map(|()| u128::from_le_bytes(prg.seed()) | 1);
    assert_eq!(attack(deltas), 0);
}
