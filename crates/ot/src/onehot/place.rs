//! The first half of the work: shares of the lower part's unit vector, of the vector of blocks, and
//! of the place as a number.
//!
//! Row `k` of an element is that of the transfer for bit `k` of its place. Its hash is cut in two:
//! the lower half pads the correction of a swap, the upper half that of the number.

use super::axes::{self, Word};
use super::hash::hash;
use super::keys::BatchKeys;
use super::shape::Shape;
use crate::engine::Backend;
use zeroize::Zeroizing;

/// A party's shares of the elements of a batch.
pub(super) struct Shares<'a> {
    /// Of the unit vector of the lower bits of the place.
    pub(super) lower: &'a mut [u128],
    /// Of the unit vector of its upper bits: which block it is in.
    pub(super) marks: &'a mut [u16],
}

/// A batch of a party.
pub(super) struct Batch<'a> {
    pub(super) shape: &'a Shape,
    pub(super) backend: Backend,
    pub(super) keys: BatchKeys,
}

/// Bits that are packed into a number, or taken out of one, from the lowest.
struct Packed {
    bits: u128,
    held: u32,
}

impl Packed {
    fn put(&mut self, value: u64, width: u32) {
        self.bits |= u128::from(value) << self.held;
        self.held += width;
    }

    fn take(&mut self, width: u32) -> u64 {
        let value = self.bits as u64 & low_bits(width);
        self.bits >>= width;
        value
    }
}

fn low_bits(width: u32) -> u64 {
    u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// Returns all ones if bit `k` of a number is set, else zero.
fn mask(number: u16, k: u32) -> u64 {
    u64::from(number >> k & 1).wrapping_neg()
}

impl Batch<'_> {
    /// Does the index party's work, given its indices, its random part of each place, its rows, and
    /// the offset of the transfers. Appends the corrections.
    pub(super) fn correct(
        &self,
        (indices, parts): (&[u16], &[u16]),
        (rows, delta): (&[u128], u128),
        shares: Shares<'_>,
        message: &mut [u8],
    ) {
        match self.shape.lower() {
            ..=6 => self.correct_as::<u64>((indices, parts), (rows, delta), shares, message),
            _ => self.correct_as::<u128>((indices, parts), (rows, delta), shares, message),
        }
    }

    /// Does the offset party's work, given its random part of each place, its rows, and the
    /// corrections. Fills in the offsets.
    pub(super) fn follow(
        &self,
        parts: &[u16],
        rows: &[u128],
        message: &[u8],
        shares: Shares<'_>,
        offsets: &mut [u16],
    ) {
        match self.shape.lower() {
            ..=6 => self.follow_as::<u64>(parts, rows, message, shares, offsets),
            _ => self.follow_as::<u128>(parts, rows, message, shares, offsets),
        }
    }

    fn correct_as<W: Word>(
        &self,
        (indices, parts): (&[u16], &[u16]),
        (rows, delta): (&[u128], u128),
        shares: Shares<'_>,
        message: &mut [u8],
    ) {
        let (shape, n) = (self.shape, parts.len());
        let (lower, upper) = (shape.lower(), shape.upper());
        let mut zeros = Zeroizing::new(rows.to_vec());
        let mut ones = Zeroizing::new(rows.to_vec());
        hash(self.backend, &self.keys.pads, 0, &mut zeros);
        hash(self.backend, &self.keys.pads, delta, &mut ones);

        let (swaps, tails) = message.split_at_mut(n * lower as usize * shape.swap_bytes());
        let swap_bits = low_bits(8 * shape.swap_bytes() as u32);
        let mut vectors = Zeroizing::new([0; super::BATCH]);
        for (share, part) in vectors.iter_mut().zip(parts) {
            *share = W::unit(part & ((1 << lower) - 1)).block();
        }
        let planes = swaps.chunks_exact_mut(n * shape.swap_bytes());
        for (axis, swaps) in (0..lower).zip(planes) {
            let pads = zeros.iter().zip(ones.iter()).skip(axis as usize * n);
            let each = vectors.iter_mut().zip(pads);
            for ((share, (&zero, &one)), sent) in
                each.zip(swaps.chunks_exact_mut(shape.swap_bytes()))
            {
                let (vector, zero, one) = (W::of(*share), zero as u64, one as u64);
                let sum = axes::gather(axes::sum(vector, axis), axis, lower);
                let correction = sum ^ (zero ^ one) & swap_bits;
                sent.copy_from_slice(&correction.to_le_bytes()[..sent.len()]);
                let pad = axes::spread(zero & swap_bits, axis, lower);
                *share = axes::add_to_both(vector, pad, axis).block();
            }
        }
        shares.lower.copy_from_slice(&vectors[..n]);

        let bits = shape.bits();
        for (j, tail) in tails.chunks_exact_mut(shape.tail_bytes()).enumerate() {
            let pads = |k: u32| {
                let row = k as usize * n + j;
                (zeros[row], ones[row])
            };
            let mut packed = Packed { bits: 0, held: 0 };
            let mut marks = u64::unit(parts[j] >> lower);
            for axis in 0..upper {
                let (zero, one) = pads(lower + axis);
                let width = 1 << (upper - 1);
                let sum = axes::gather(axes::sum(marks, axis), axis, upper);
                packed.put(sum ^ (zero ^ one) as u64 & low_bits(width), width);
                let pad = axes::spread(zero as u64 & low_bits(width), axis, upper);
                marks = axes::add_to_both(marks, pad, axis);
            }
            shares.marks[j] = marks as u16;
            // The place is the sum of both parties' numbers: this one's.
            let mut number = u64::from(parts[j]);
            for k in 0..bits - 1 {
                let (zero, one) = pads(k);
                let (zero, one) = ((zero >> 64) as u64, (one >> 64) as u64);
                let bit = u64::from(parts[j] >> k & 1);
                let width = bits - 1 - k;
                let correction = bit.wrapping_add(zero).wrapping_sub(one);
                packed.put(correction & low_bits(width), width);
                number = number.wrapping_add(zero << (k + 1));
            }
            let index = u64::from(indices[j]).wrapping_sub(number);
            packed.put(index & low_bits(bits), bits);
            tail.copy_from_slice(&packed.bits.to_le_bytes()[..tail.len()]);
        }
    }

    fn follow_as<W: Word>(
        &self,
        parts: &[u16],
        rows: &[u128],
        message: &[u8],
        shares: Shares<'_>,
        offsets: &mut [u16],
    ) {
        let (shape, n) = (self.shape, parts.len());
        let (lower, upper) = (shape.lower(), shape.upper());
        let mut pads = Zeroizing::new(rows.to_vec());
        hash(self.backend, &self.keys.pads, 0, &mut pads);

        let (swaps, tails) = message.split_at(n * lower as usize * shape.swap_bytes());
        let swap_bits = low_bits(8 * shape.swap_bytes() as u32);
        shares.lower.fill(0);
        let planes = swaps.chunks_exact(n * shape.swap_bytes());
        for (axis, swaps) in (0..lower).zip(planes) {
            let each = shares.lower.iter_mut().zip(parts);
            let each = each.zip(&pads[axis as usize * n..]);
            for (((share, &part), &pad), sent) in each.zip(swaps.chunks_exact(shape.swap_bytes())) {
                let (vector, chosen) = (W::of(*share), mask(part, axis));
                let mut correction = [0; 8];
                correction[..sent.len()].copy_from_slice(sent);
                let correction = u64::from_le_bytes(correction);
                let own = axes::gather(axes::sum(vector, axis), axis, lower);
                let both = (pad as u64 & swap_bits) ^ (correction ^ own) & chosen;
                let both = axes::spread(both, axis, lower);
                *share = axes::add_to_both(vector, both, axis).block();
            }
        }

        let bits = shape.bits();
        for (j, tail) in tails.chunks_exact(shape.tail_bytes()).enumerate() {
            let mut packed = [0; 16];
            packed[..tail.len()].copy_from_slice(tail);
            let mut packed = Packed {
                bits: u128::from_le_bytes(packed),
                held: 0,
            };
            let pad = |k: u32| pads[k as usize * n + j];
            let mut marks = 0u64;
            for axis in 0..upper {
                let width = 1 << (upper - 1);
                let own = axes::gather(axes::sum(marks, axis), axis, upper);
                let changed = (packed.take(width) ^ own) & mask(parts[j], lower + axis);
                let both = pad(lower + axis) as u64 & low_bits(width) ^ changed;
                marks = axes::add_to_both(marks, axes::spread(both, axis, upper), axis);
            }
            shares.marks[j] = marks as u16;
            let mut number = u64::from(parts[j]);
            for k in 0..bits - 1 {
                let correction = packed.take(bits - 1 - k) & mask(parts[j], k);
                let product = ((pad(k) >> 64) as u64).wrapping_add(correction);
                number = number.wrapping_sub(product << (k + 1));
            }
            let index = packed.take(bits);
            offsets[j] = (number.wrapping_sub(index) & low_bits(bits)) as u16;
        }
    }
}
