//! What goes into a stop.
//!
//! A stop makes a value of an accumulator; `primer_stops` is how. Here both parties truncate their
//! share of the accumulator locally to the stop's ring (`primer_ring::truncate`), which is free.
//!
//! Softmax is masked here as well, without a word: the padding `m` (1 for a padded key) is shared
//! like the input, `m̂ + ρ`, and `-C·m` is linear, so each party adds its part to its share of the
//! scores. Where scores are looked up as they are, each party puts its bit of what counts on top of
//! its index ([`crate::padding`]).
//!
//! A coarse maximum is computed of measured heads only: their rows go in, one head after the other.

use crate::masks::Masks;
use crate::padding::Padding;
use crate::program::Program;
use crate::session::See;
use crate::share::{Share, power};
use primer_plan::function::{Function, Masking};
use primer_plan::graph::{Op, ValueId};
use primer_plan::plan::Plan;
use primer_ring::modulus;
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

/// The client's share of what goes into a stop, if it is known offline; `see` gets it before it is
/// truncated.
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
    let by = plan.truncation(input);
    ring_share(plan, index, share, &masks.padding(), |v| by.client(v))
}

/// A party's share in the stop's ring: what truncation makes of it, of the rows that the stop
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
            let elements = rows.flat_map(|r| share.row(r)).map(|v| truncate(*v));
            Zeroizing::new(elements.collect())
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

/// The client's share of a product as it goes into a late stop.
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

/// The server's share of what goes into a stop.
pub(crate) fn server_share(
    plan: &Plan,
    index: usize,
    input: ValueId,
    mut share: Share,
    padding: &Padding,
) -> RingShare {
    if let Some(masking) = plan.function(index).and_then(Function::masking) {
        mask_scores(plan, masking, input, &mut share, &padding.residues);
    }
    let by = plan.truncation(input);
    ring_share(plan, index, share, padding, |v| by.server(v))
}
