//! What goes into a stop.
//!
//! A stop makes a value of an accumulator; `primer_stops` is how. Here both parties truncate their
//! share of the accumulator locally to the stop's ring (`primer_ring::truncate`), which is free.
//!
//! Scores are masked here as well, without a word: the padding `m` (1 for a padded key) is shared
//! like the input, `m̂ + ρ`, and `-C·m` is linear, so each party adds its part to its share of the
//! scores. Where scores are looked up as they are, each party puts its bit of what counts on top of
//! its index ([`crate::padding`]).
//!
//! A coarse maximum is computed of measured heads only: their rows go in, one head after the other.
//!
//! An activation whose columns are sorted is truncated by classes, and what truncation leaves out
//! joins the result ([`primer_ring::coarse`]): each party adds its part to its share of what was
//! looked up. The client's share of the result is a mask that is given, so what it takes for its
//! mask in the look-up is that mask minus its part ([`client_mask`]); it knows both offline.

use crate::masks::Masks;
use crate::padding::Padding;
use crate::program::Program;
use crate::session::See;
use crate::share::{Share, power};
use primer_plan::function::{Function, Masking, Sorted};
use primer_plan::graph::{Op, ValueId};
use primer_plan::plan::Plan;
use primer_ring::coarse::CoarseIndex;
use primer_ring::modulus;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A party's share of what goes into a stop, in the stop's ring.
pub(crate) type RingShare = Zeroizing<Vec<u64>>;

/// Adds a party's part of `-C·m` and of the offset to its share of the scores.
fn mask_scores(plan: &Plan, masking: Masking, input: ValueId, share: &mut Share, padding: &Share) {
    let unit = power(plan.truncation(input).shift());
    let weight = modulus::mul(modulus::from_signed(masking.mask), unit);
    let offset = modulus::mul(modulus::from_signed(masking.offset), unit);
    for r in 0..share.rows() {
        for (v, pad) in share.row_mut(r).iter_mut().zip(padding.data()) {
            *v = modulus::add(*v, modulus::sub(offset, modulus::mul(weight, *pad)));
        }
    }
}

/// Returns the client's share of what goes into a stop, if it is known offline; `see` gets it
/// before it is truncated.
pub(crate) fn client_share(
    program: &Program,
    index: usize,
    input: ValueId,
    masks: &mut Masks,
    see: &mut See<'_>,
) -> RingShare {
    let plan = program.plan();
    let mut share = masks.get(input).first_rows(plan.graph().value(input).rows);
    if let Some(masking) = plan.function(index).and_then(Function::masking) {
        // The offset is public: one party adds it.
        let masking = Masking {
            offset: 0,
            ..masking
        };
        mask_scores(plan, masking, input, &mut share, &masks.padding().residues);
    }
    see(input, &share);
    if let Some(sorted) = sorted(plan, index) {
        let ring = by_class(sorted, &share, |by, x| by.client(x).index);
        return Zeroizing::new(ring.data().to_vec());
    }
    let by = plan.truncation(input);
    ring_share(plan, index, share, &masks.padding(), |v| by.client(v))
}

/// Makes a party's share in the stop's ring: what truncation makes of it, of the rows that the stop
/// takes, and its bits of what counts.
fn ring_share(
    plan: &Plan,
    index: usize,
    share: Share,
    padding: &Padding,
    truncate: impl Fn(u64) -> u64,
) -> RingShare {
    let n = plan.graph().tokens;
    match plan.function(index) {
        Some(Function::CoarseMaximum(_)) => {
            let Op::Stop { input, .. } = plan.graph().steps[index].op else {
                unreachable!("only stops have functions");
            };
            let heads = plan.measured_heads(input);
            let rows = heads.iter().flat_map(|head| head * n..(head + 1) * n);
            // Reserved at once: a buffer that grows would leave copies behind.
            let mut elements = Zeroizing::new(Vec::with_capacity(heads.len() * n * n));
            elements.extend(rows.flat_map(|r| share.row(r)).map(|v| truncate(*v)));
            elements
        }
        Some(Function::Powers(powers)) => {
            let mut elements = Zeroizing::new(Vec::with_capacity(share.data().len()));
            for r in 0..share.rows() {
                let (class, _) = powers.class(r / n);
                let row = share.row(r).iter().map(|v| truncate(*v));
                elements.extend(row.enumerate().map(|(key, index)| {
                    let counts = !class.measured && padding.bits.get(key);
                    index | u64::from(counts) << class.lookup.index_bits
                }));
            }
            elements
        }
        _ => Zeroizing::new(share.data().iter().map(|v| truncate(*v)).collect()),
    }
}

/// Makes the client's share of a product into what goes into a late stop.
pub(crate) fn truncated(
    plan: &Plan,
    input: ValueId,
    share: &Share,
    see: &mut See<'_>,
) -> RingShare {
    see(input, share);
    let by = plan.truncation(input);
    Zeroizing::new(share.data().iter().map(|v| by.client(*v)).collect())
}

/// Applies to a share what a stop with classes takes of it: a function of how its column is
/// truncated, and of the element.
fn by_class(sorted: &Sorted, share: &Share, one: impl Fn(CoarseIndex, u64) -> u64) -> Share {
    let mut out = Share::zeros(share.rows(), share.cols());
    for (columns, by) in sorted.indices() {
        for r in 0..share.rows() {
            let from = &share.row(r)[columns.clone()];
            let into = &mut out.row_mut(r)[columns.clone()];
            into.iter_mut()
                .zip(from)
                .for_each(|(v, x)| *v = one(by, *x));
        }
    }
    out
}

fn sorted(plan: &Plan, index: usize) -> Option<&Sorted> {
    match plan.function(index) {
        Some(Function::Sorted(sorted)) => Some(sorted),
        _ => None,
    }
}

/// Returns what the client takes for its mask in a stop, from its mask of the result and its share
/// of what goes in: less its part of what the look-up leaves out, if it is one with classes.
pub(crate) fn client_mask(
    program: &Program,
    index: usize,
    mask: &Share,
    input: impl FnOnce() -> Arc<Share>,
) -> Share {
    let mut mask = mask.first_rows(mask.rows());
    if let Some(sorted) = sorted(program.plan(), index) {
        mask.sub(&by_class(sorted, &input(), |by, x| by.client(x).part));
    }
    mask
}

/// What the server brings to a stop.
pub(crate) struct ServerShare {
    /// Its share of what goes in.
    pub(crate) ring: RingShare,
    /// What it adds to its share of what comes out, if there is something.
    pub(crate) part: Option<Share>,
}

/// Returns the server's share of what goes into a stop.
pub(crate) fn server_share(
    plan: &Plan,
    index: usize,
    input: ValueId,
    mut share: Share,
    padding: &Padding,
) -> ServerShare {
    if let Some(sorted) = sorted(plan, index) {
        let ring = by_class(sorted, &share, |by, x| by.server(x).index);
        let part = by_class(sorted, &share, |by, x| by.server(x).part);
        return ServerShare {
            ring: Zeroizing::new(ring.data().to_vec()),
            part: Some(part),
        };
    }
    if let Some(masking) = plan.function(index).and_then(Function::masking) {
        mask_scores(plan, masking, input, &mut share, &padding.residues);
    }
    let by = plan.truncation(input);
    ServerShare {
        ring: ring_share(plan, index, share, padding, |v| by.server(v)),
        part: None,
    }
}
