//! Garbling and evaluating one segment, over any engine.
//!
//! Half-gates (Zahur, Rosulek, Evans, Eurocrypt 2015). A wire has the labels `W` and `W XOR Δ`;
//! the lowest bit of Δ is 1, so the lowest bit of a label, its *colour*, tells the two apart
//! without telling which is which. With `p_a`, `p_b` the colours of the zero labels `A`, `B`:
//!
//! ```text
//! T_G = H(A) + H(A+Δ) + p_b·Δ            W_G = H(A) + p_a·T_G
//! T_E = H'(B) + H'(B+Δ) + A              W_E = H'(B) + p_b·(T_E + A)
//! zero label of the product: W_G + W_E
//! evaluator, holding a and b: H(a) + colour(a)·T_G + H'(b) + colour(b)·(T_E + a)
//! ```
//!
//! `H(x) = AES_k(σ(x + l)) + σ(x + l)` with a key for each half-gate of eight instances and `l` the
//! number of the instance among them. So labels that several instances have in common, as where one
//! weight serves many tokens, are never the same input under one key.
//!
//! A projection gate turns the labels of a bit `b` into `S + b·w` in a group: with `r0`, `r1` the
//! hashes of the labels of colour 0 and 1 as group elements, the row is `r0 - r1 ± w` and the
//! evaluator's value is its label's hash, plus the row if the colour is 1. The sign is that of the
//! zero label's colour; the garbler's `S` is `r0`, or `r0 - w` if the label of colour 0 stands
//! for 1. An instance may have all of its weights negated: only the garbler can tell.

use super::{Engine, KEYS, Label, PROJECTIONS, Wire};
use crate::circuit::{Circuit, LANES, Op, Segment};

/// What both interpreters work on.
pub(crate) struct Batch<'a> {
    pub(crate) circuit: &'a Circuit,
    pub(crate) segment: &'a Segment,
    pub(crate) nonce: Label,
    /// Keys used for AND gates and for projections before this segment.
    pub(crate) gate_keys: u64,
    pub(crate) projection_keys: u64,
    /// Labels of the garbler's and of the evaluator's inputs, instance by instance.
    pub(crate) inputs: [&'a [Label]; 2],
    pub(crate) wires: &'a mut [Wire],
    /// Sums of the arithmetic outputs.
    pub(crate) sums: &'a mut [[u64; LANES]],
    /// Labels of the kept outputs.
    pub(crate) kept: &'a mut [Wire],
}

/// A segment to be garbled.
pub(crate) struct GarbleSegment<'a> {
    pub(crate) batch: Batch<'a>,
    pub(crate) delta: Label,
    /// For each lane, all ones if its outputs are negated, zero if they are not.
    pub(crate) negated: &'a [u64; LANES],
    /// 32 bytes for each AND gate and lane.
    pub(crate) tables: &'a mut [u8],
    /// One element for each projection and lane.
    pub(crate) rows: &'a mut [u64],
    /// The colours of revealed zero labels, a lane in each bit.
    pub(crate) decoding: &'a mut [u8],
}

/// A segment to be evaluated.
pub(crate) struct EvaluateSegment<'a> {
    pub(crate) batch: Batch<'a>,
    pub(crate) tables: &'a [u8],
    pub(crate) rows: &'a [u64],
    /// Goes in as the garbler's decoding bits, comes out as the revealed bits.
    pub(crate) decoding: &'a mut [u8],
}

const HALF: usize = 16 * LANES;

/// What is added to the labels of each instance before they are hashed.
const INSTANCE: Wire = Wire([0, 1, 2, 3, 4, 5, 6, 7]);

#[inline(always)]
fn hash<E: Engine>(
    e: E,
    keys: &E::Keys,
    (i, j): (usize, usize),
    x: E::Vector,
    y: E::Vector,
) -> (E::Vector, E::Vector) {
    let (x, y) = (e.sigma(x), e.sigma(y));
    let (u, v) = e.encrypt(keys, i, j, x, y);
    (e.xor(u, x), e.xor(v, y))
}

#[inline(always)]
fn input<E: Engine>(e: E, inputs: &[Label], count: usize, index: usize) -> E::Vector {
    // A missing instance of the last batch has zero labels; no part of it is ever sent.
    const NONE: Label = 0;
    let mut labels = [&NONE; LANES];
    for (l, label) in labels.iter_mut().enumerate() {
        if let Some(present) = inputs.get(l * count + index) {
            *label = present;
        }
    }
    e.gather(labels)
}

/// Computes the label of an operation that needs no table: garbler and evaluator do the same.
#[inline(always)]
fn linear<E: Engine>(
    e: E,
    circuit: &Circuit,
    inputs: [&[Label]; 2],
    wires: &[Wire],
    op: Op,
) -> E::Vector {
    match op {
        Op::Input { party, index, .. } => {
            let count = circuit.inputs(party);
            input(e, inputs[party as usize], count, index as usize)
        }
        Op::Xor { a, b, .. } => e.xor(e.load(&wires[a as usize]), e.load(&wires[b as usize])),
        Op::Sum { first, count, .. } => {
            let terms = &circuit.sources[first as usize..][..count as usize];
            let Some((&s, rest)) = terms.split_first() else {
                return e.splat(0);
            };
            let mut sum = e.load(&wires[s as usize]);
            for &s in rest {
                sum = e.xor(sum, e.load(&wires[s as usize]));
            }
            sum
        }
        Op::And { .. } | Op::Project { .. } | Op::Reveal { .. } | Op::Keep { .. } => e.splat(0),
    }
}

/// Returns the lowest bits of eight labels.
#[inline(always)]
fn colors<E: Engine>(e: E, x: E::Vector) -> u8 {
    let mut wire = Wire::default();
    e.store(x, &mut wire);
    let mut bits = 0;
    for l in 0..LANES {
        bits |= ((wire.0[l] & 1) as u8) << l;
    }
    bits
}

fn rows<const N: usize, T>(all: &mut [T], i: usize) -> &mut [T; N] {
    let (chunks, _) = all.as_chunks_mut::<N>();
    &mut chunks[i]
}

#[inline(always)]
pub(super) fn garble<E: Engine>(e: E, s: &mut GarbleSegment<'_>) {
    let batch = &mut s.batch;
    let circuit = batch.circuit;
    let modulus = circuit.modulus();
    let delta = e.splat(s.delta);
    let zero = e.splat(0);
    let instance = e.load(&INSTANCE);
    let (mut gates, mut projections, mut reveals) = (0usize, 0usize, 0usize);
    let (mut gate_keys, mut projection_keys) = (e.no_keys(), e.no_keys());
    let wires = &mut *batch.wires;
    for op in &circuit.ops[batch.segment.ops.clone()] {
        match *op {
            Op::Input { dst, .. } | Op::Xor { dst, .. } | Op::Sum { dst, .. } => {
                let x = linear(e, circuit, batch.inputs, wires, *op);
                e.store(x, &mut wires[dst as usize]);
            }
            Op::And {
                dst,
                a,
                b,
                flip_a,
                flip_b,
            } => {
                let key = 2 * gates % KEYS;
                if key == 0 {
                    let counter = batch.gate_keys + 2 * gates as u64;
                    e.expand(batch.nonce, counter, &mut gate_keys);
                }
                let a0 = e.xor(
                    e.load(&wires[a as usize]),
                    if flip_a { delta } else { zero },
                );
                let b0 = e.xor(
                    e.load(&wires[b as usize]),
                    if flip_b { delta } else { zero },
                );
                let at = e.xor(a0, instance);
                let (ha0, ha1) = hash(e, &gate_keys, (key, key), at, e.xor(at, delta));
                let pb = e.color(b0);
                let tg = e.xor(e.xor(ha0, ha1), e.and(pb, delta));
                let wg = e.xor(ha0, e.and(e.color(a0), tg));
                e.write(tg, rows(s.tables, 2 * gates));
                let bt = e.xor(b0, instance);
                let (hb0, hb1) = hash(e, &gate_keys, (key + 1, key + 1), bt, e.xor(bt, delta));
                let hb = e.xor(hb0, hb1);
                e.write(e.xor(hb, a0), rows::<HALF, u8>(s.tables, 2 * gates + 1));
                // T_E + A is H'(B) + H'(B + Δ) again.
                let we = e.xor(hb0, e.and(pb, hb));
                e.store(e.xor(wg, we), &mut wires[dst as usize]);
                gates += 1;
            }
            Op::Project { a, output, weight } => {
                let key = projections % KEYS;
                if key == 0 {
                    let counter = PROJECTIONS | (batch.projection_keys + projections as u64);
                    e.expand(batch.nonce, counter, &mut projection_keys);
                }
                let x = e.load(&wires[a as usize]);
                let xt = e.xor(x, instance);
                let (h0, h1) = hash(e, &projection_keys, (key, key), xt, e.xor(xt, delta));
                let color = e.color(x);
                let both = e.xor(h0, h1);
                let of_color_0 = e.xor(h0, e.and(color, both));
                let (mut c, mut r0, mut r1) = (Wire::default(), Wire::default(), Wire::default());
                e.store(color, &mut c);
                e.store(of_color_0, &mut r0);
                e.store(e.xor(both, of_color_0), &mut r1);
                let weight = circuit.weights[weight as usize];
                let flipped = weight ^ modulus.neg(weight);
                let (mut signed, mut of_one) = ([weight; LANES], [weight; LANES]);
                for l in 0..LANES {
                    let negated = flipped & s.negated[l];
                    signed[l] ^= negated ^ (flipped & c.0[l] as u64);
                    of_one[l] = (of_one[l] ^ negated) & c.0[l] as u64;
                }
                let (r0, r1) = (modulus.residues(&r0.0), modulus.residues(&r1.0));
                let row: &mut [u64; LANES] = rows(s.rows, projections);
                *row = modulus.add_each(modulus.sub_each(r0, r1), signed);
                let sums = &mut batch.sums[output as usize];
                *sums = modulus.add_each(*sums, modulus.sub_each(r0, of_one));
                projections += 1;
            }
            Op::Reveal { a, flip } => {
                let flip = if flip { 0xff } else { 0 };
                s.decoding[reveals] = colors(e, e.load(&wires[a as usize])) ^ flip;
                reveals += 1;
            }
            Op::Keep { a, flip, output } => {
                let x = e.load(&wires[a as usize]);
                let zero_label = e.xor(x, if flip { delta } else { zero });
                e.store(zero_label, &mut batch.kept[output as usize]);
            }
        }
    }
}

#[inline(always)]
pub(super) fn evaluate<E: Engine>(e: E, s: &mut EvaluateSegment<'_>) {
    let batch = &mut s.batch;
    let circuit = batch.circuit;
    let modulus = circuit.modulus();
    let (tables, _) = s.tables.as_chunks::<HALF>();
    let (rows, _) = s.rows.as_chunks::<LANES>();
    let (mut gates, mut projections, mut reveals) = (0usize, 0usize, 0usize);
    let (mut gate_keys, mut projection_keys) = (e.no_keys(), e.no_keys());
    let instance = e.load(&INSTANCE);
    let wires = &mut *batch.wires;
    for op in &circuit.ops[batch.segment.ops.clone()] {
        match *op {
            Op::Input { dst, .. } | Op::Xor { dst, .. } | Op::Sum { dst, .. } => {
                let x = linear(e, circuit, batch.inputs, wires, *op);
                e.store(x, &mut wires[dst as usize]);
            }
            Op::And { dst, a, b, .. } => {
                let key = 2 * gates % KEYS;
                if key == 0 {
                    let counter = batch.gate_keys + 2 * gates as u64;
                    e.expand(batch.nonce, counter, &mut gate_keys);
                }
                let x = e.load(&wires[a as usize]);
                let y = e.load(&wires[b as usize]);
                let (xt, yt) = (e.xor(x, instance), e.xor(y, instance));
                let (hx, hy) = hash(e, &gate_keys, (key, key + 1), xt, yt);
                let tg = e.read(&tables[2 * gates]);
                let te = e.read(&tables[2 * gates + 1]);
                let first = e.xor(hx, e.and(e.color(x), tg));
                let second = e.xor(hy, e.and(e.color(y), e.xor(te, x)));
                e.store(e.xor(first, second), &mut wires[dst as usize]);
                gates += 1;
            }
            Op::Project { a, output, .. } => {
                let key = projections % KEYS;
                if key == 0 {
                    let counter = PROJECTIONS | (batch.projection_keys + projections as u64);
                    e.expand(batch.nonce, counter, &mut projection_keys);
                }
                let x = e.load(&wires[a as usize]);
                let sx = e.sigma(e.xor(x, instance));
                let h = e.xor(e.encrypt_one(&projection_keys, key, sx), sx);
                let (mut c, mut r) = (Wire::default(), Wire::default());
                e.store(e.color(x), &mut c);
                e.store(h, &mut r);
                let mut row = rows[projections];
                for l in 0..LANES {
                    row[l] &= c.0[l] as u64;
                }
                let share = modulus.add_each(modulus.residues(&r.0), row);
                let sums = &mut batch.sums[output as usize];
                *sums = modulus.add_each(*sums, share);
                projections += 1;
            }
            Op::Reveal { a, .. } => {
                s.decoding[reveals] ^= colors(e, e.load(&wires[a as usize]));
                reveals += 1;
            }
            Op::Keep { a, output, .. } => {
                batch.kept[output as usize] = wires[a as usize];
            }
        }
    }
}
