//! Trees, rows and their sums for eight elements side by side.
//!
//! Block `l` of eight elements is one vector; an element's ring element is `blocks` of these. A
//! ring of less than 128 entries is worked on in `F_2[X]/(X^128 - 1)`, of which it is a quotient,
//! and folded at the end.

use super::keys::BatchKeys;
use super::shape::{MAX_DEPTH, Shape};
use crate::engine::{Engine, Key, Wide, Work};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// What one of eight elements needs room for. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Octet {
    /// The party's rows of the transfers, by the bit of the offset that they are for.
    pub(super) transfers: Vec<Wide>,
    /// The share: of what goes in, then of the result. `blocks` vectors.
    pub(super) share: Vec<Wide>,
    /// The corrections of levels, digit by digit from the lowest, each from the top.
    pub(super) levels: Vec<Wide>,
    /// The corrections of rows, `blocks` vectors for each digit.
    pub(super) masked: Vec<Wide>,
    nodes: Vec<Wide>,
    sum: Vec<Wide>,
    /// Sums of a power of two of neighbouring rows that wait for their neighbours, by that power;
    /// the last is the one that is worked on.
    pending: Vec<Wide>,
}

impl Octet {
    pub(super) fn new(shape: &Shape) -> Self {
        let blocks = shape.blocks();
        let deepest = shape.digits().max().unwrap_or(0) as usize;
        let room = |n: usize| vec![Wide::ZERO; n];
        Self {
            transfers: room(shape.transfers()),
            share: room(blocks),
            levels: room(shape.levels()),
            masked: room(blocks * shape.digits().count()),
            nodes: room(1 << deepest),
            sum: room(blocks),
            pending: room(blocks * (deepest + 2)),
        }
    }
}

/// The sender's part: fills `levels` and `masked`.
pub(super) struct Grow<'a> {
    pub(super) shape: &'a Shape,
    pub(super) keys: &'a BatchKeys,
    pub(super) delta: u128,
    pub(super) octet: &'a mut Octet,
}

/// The receiver's part, from `levels` and `masked`; bit `l` of `offsets[i]` is bit `i` of the
/// offset of element `l`.
pub(super) struct Regrow<'a> {
    pub(super) shape: &'a Shape,
    pub(super) keys: &'a BatchKeys,
    pub(super) offsets: &'a [u8],
    pub(super) octet: &'a mut Octet,
}

/// The hash of two vectors under one key.
#[inline(always)]
fn hash_two<E: Engine>(e: E, key: &Key, x: E::Vector, y: E::Vector) -> (E::Vector, E::Vector) {
    let (x, y) = (e.sigma(x), e.sigma(y));
    let (u, v) = e.encrypt_two([key, key], x, y);
    (e.xor(u, x), e.xor(v, y))
}

#[inline(always)]
fn get<E: Engine>(e: E, wide: &Wide) -> E::Vector {
    e.read(wide.bytes())
}

#[inline(always)]
fn put<E: Engine>(e: E, wide: &mut Wide, vector: E::Vector) {
    e.write(vector, wide.bytes_mut());
}

/// Block `l` of `x` times `X^(2^power)`.
#[inline(always)]
fn rotated<E: Engine>(e: E, x: &[Wide], l: usize, power: u32) -> E::Vector {
    let blocks = x.len();
    let from = |back: usize| (l + blocks - back % blocks) % blocks;
    match power {
        ..=6 => e.shift_in(get(e, &x[from(0)]), get(e, &x[from(1)]), 1 << power),
        _ => get(e, &x[from(1 << (power - 7))]),
    }
}

/// One level down: `nodes[..width]` become `nodes[..2 * width]`. A node's child at the even place
/// is the one whose bit is `flip`'s. The sum of the children at odd places, but for that of node 0
/// if `without_first`.
#[inline(always)]
fn descend<E: Engine>(
    e: E,
    key: &Key,
    nodes: &mut [Wide],
    width: usize,
    flip: E::Vector,
    without_first: bool,
) -> E::Vector {
    let mut sum = e.splat(0);
    for p in (0..width).step_by(2).rev() {
        let (x, y) = (get(e, &nodes[p]), get(e, &nodes[p + 1]));
        let (hx, hy) = hash_two(e, key, x, y);
        let (odd_x, odd_y) = (e.xor(hx, e.and(x, flip)), e.xor(hy, e.and(y, flip)));
        put(e, &mut nodes[2 * p], e.xor(odd_x, x));
        put(e, &mut nodes[2 * p + 1], odd_x);
        put(e, &mut nodes[2 * p + 2], e.xor(odd_y, y));
        put(e, &mut nodes[2 * p + 3], odd_y);
        sum = e.xor(sum, odd_y);
        if p > 0 || !without_first {
            sum = e.xor(sum, odd_x);
        }
    }
    sum
}

/// `left + X^(2^power)·right`, in place of `left`; the two change places first where `flip` says
/// so.
#[inline(always)]
fn join<E: Engine>(
    e: E,
    left: &mut [Wide],
    right: &mut [Wide],
    flip: Option<E::Vector>,
    power: u32,
) {
    if let Some(flip) = flip {
        for (x, y) in left.iter_mut().zip(right.iter_mut()) {
            let (a, b) = (get(e, x), get(e, y));
            let change = e.and(e.xor(a, b), flip);
            put(e, x, e.xor(a, change));
            put(e, y, e.xor(b, change));
        }
    }
    for (l, x) in left.iter_mut().enumerate() {
        let sum = e.xor(get(e, x), rotated(e, right, l, power));
        put(e, x, sum);
    }
}

/// Stretches leaves to rows. Adds all of them to `sum`, and returns where in `pending`
/// `Σ X^(2^shift·i)·row_i` is: the row at place `p` has the index `i = p XOR offset`, where the
/// bits of the offset are given by `flips` if it is not zero. Without `flips` the party is the
/// sender; with them it is the receiver, whose row at place 0 counts as zero.
#[inline(always)]
fn stretch<'a, E: Engine>(
    e: E,
    key: &Key,
    leaves: &[Wide],
    shift: u32,
    flips: Option<&[E::Vector]>,
    sum: &mut [Wide],
    pending: &'a mut [Wide],
) -> &'a [Wide] {
    let blocks = sum.len();
    let (waiting, current) = pending.split_at_mut(pending.len() - blocks);
    for (pair, leaves) in leaves.chunks_exact(2).enumerate() {
        let (x, y) = (get(e, &leaves[0]), get(e, &leaves[1]));
        for l in 0..blocks {
            let block = e.splat(l as u128);
            let (mut r0, r1) = hash_two(e, key, e.xor(x, block), e.xor(y, block));
            if pair == 0 && flips.is_some() {
                r0 = e.splat(0);
            }
            let total = e.xor(get(e, &sum[l]), e.xor(r0, r1));
            put(e, &mut sum[l], total);
            put(e, &mut waiting[l], r0);
            put(e, &mut current[l], r1);
        }
        // Neighbours join as long as there is a left one, like carries in a counter.
        let mut level = 0;
        loop {
            let left = &mut waiting[blocks * level..][..blocks];
            let flip = flips.map(|flips| flips[level]);
            join(e, left, current, flip, shift + level as u32);
            if pair >> level & 1 == 0 {
                break;
            }
            current.copy_from_slice(left);
            level += 1;
        }
        waiting.copy_within(blocks * level..blocks * (level + 1), blocks * (level + 1));
    }
    let depth = leaves.len().ilog2() as usize;
    &waiting[blocks * depth..][..blocks]
}

impl Work for Grow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let Octet {
            transfers,
            share,
            levels,
            masked,
            nodes,
            sum,
            pending,
        } = self.octet;
        let blocks = share.len();
        let delta = e.splat(self.delta);
        let (mut shift, mut corrected) = (0, 0);
        for (digit, depth) in self.shape.digits().enumerate() {
            // The top level first: its transfer is that of the digit's highest bit.
            let mut rows = transfers[shift as usize..][..depth as usize].iter().rev();
            let top = rows.next().expect("a digit has bits");
            nodes[1] = *top;
            put(e, &mut nodes[0], e.xor(get(e, top), delta));
            let mut width = 2;
            for row in rows {
                let ones = descend(e, &self.keys.nodes, nodes, width, e.splat(0), false);
                put(e, &mut levels[corrected], e.xor(get(e, row), ones));
                corrected += 1;
                width *= 2;
            }
            sum.copy_from_slice(share);
            let key = &self.keys.rows;
            let result = stretch(e, key, &nodes[..width], shift, None, sum, pending);
            share.copy_from_slice(result);
            masked[digit * blocks..][..blocks].copy_from_slice(sum);
            shift += depth;
        }
    }
}

impl Work for Regrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<E: Engine>(self, e: E) {
        let Octet {
            transfers,
            share,
            levels,
            masked,
            nodes,
            sum,
            pending,
        } = self.octet;
        let blocks = share.len();
        let (mut shift, mut corrected) = (0, 0);
        for (digit, depth) in self.shape.digits().enumerate() {
            let bits = &self.offsets[shift as usize..][..depth as usize];
            let mut flips = [e.splat(0); MAX_DEPTH as usize];
            for (flip, bits) in flips.iter_mut().zip(bits) {
                *flip = e.masks(*bits);
            }
            let mut rows = transfers[shift as usize..][..depth as usize].iter().rev();
            nodes[1] = *rows.next().expect("a digit has bits");
            // Node 0 is the one on the path: whatever is there does not count.
            nodes[0] = Wide::ZERO;
            let mut width = 2;
            for (row, flip) in rows.zip(flips[..depth as usize - 1].iter().rev()) {
                let others = descend(e, &self.keys.nodes, nodes, width, *flip, true);
                let missing = e.xor(get(e, &levels[corrected]), get(e, row));
                put(e, &mut nodes[1], e.xor(missing, others));
                corrected += 1;
                width *= 2;
            }
            sum.copy_from_slice(share);
            for (sum, masked) in sum.iter_mut().zip(&masked[digit * blocks..]) {
                let both = e.xor(get(e, sum), get(e, masked));
                put(e, sum, both);
            }
            let key = &self.keys.rows;
            let result = stretch(e, key, &nodes[..width], shift, Some(&flips), sum, pending);
            share.copy_from_slice(result);
            // `sum` is now the row that was missing; its index is the digit itself.
            for (bit, flip) in flips[..depth as usize].iter().enumerate() {
                let power = shift + bit as u32;
                let before: &mut [Wide] = &mut pending[..blocks];
                before.copy_from_slice(sum);
                for (l, x) in sum.iter_mut().enumerate() {
                    let (a, b) = (get(e, x), rotated(e, before, l, power));
                    put(e, x, e.xor(a, e.and(e.xor(a, b), *flip)));
                }
            }
            for (share, row) in share.iter_mut().zip(sum.iter()) {
                let both = e.xor(get(e, share), get(e, row));
                put(e, share, both);
            }
            shift += depth;
        }
    }
}
