//! What goes into a stop.
//!
//! A stop makes a value of an accumulator; `primer_stops` is how. Here both parties truncate their
//! share of the accumulator locally to the stop's ring (`primer_ring::truncate`), which is free.
//!
//! Softmax is masked here as well, without a word: the padding `m` (1 for a padded key) is shared
//! like the input, `m̂ + ρ`, and `-C·m` is linear, so each party adds its part to its share of the
//! scores.

use crate::masks::Masks;
use crate::program::Program;
use crate::session::See;
use primer_engine::share::{Share, power};
use primer_plan::function::{Function, Masking};
use primer_plan::graph::ValueId;
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

/// Returns the client's share of what goes into a stop; `see` gets it before it is truncated.
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
        mask_scores(plan, masking, input, &mut share, &masks.padding());
    }
    see(input, &share);
    let by = plan.truncation(input);
    Zeroizing::new(share.data().iter().map(|v| by.client(*v)).collect())
}

/// Returns the server's share of what goes into a stop.
pub(crate) fn server_share(
    plan: &Plan,
    index: usize,
    input: ValueId,
    mut share: Share,
    padding: &Share,
) -> RingShare {
    if let Some(masking) = plan.function(index).and_then(Function::masking) {
        mask_scores(plan, masking, input, &mut share, padding);
    }
    let by = plan.truncation(input);
    Zeroizing::new(share.data().iter().map(|v| by.server(*v)).collect())
}
