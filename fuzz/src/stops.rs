//! A stop of each kind, small, for the targets that play one party of it.

use primer_ot::Variant;
use primer_plan::function::{Function, Lookup, LookupTable};
use primer_stops::kind::StopResult;
use primer_stops::{StopBuilder, StopKind, StopSpec, TwoPartyStop};
use std::sync::Arc;

/// Bits of the ring of all of them.
const RING_BITS: u32 = 8;

/// Makes a look-up in two tables whose outermost cells raise a flag.
fn lookup() -> Function {
    let table = |slope: f64| LookupTable::tabulate((RING_BITS, 2), (12, 4), |x| slope * x);
    let lookup = Lookup::new((RING_BITS, 2), [3; 2], vec![table(1.0), table(-0.5)]);
    Function::Lookup(lookup.expect("usable parameters"))
}

/// Makes all of them, over transfers of the variant that `lean` uses.
pub fn all() -> Vec<Arc<dyn TwoPartyStop>> {
    let relu = Function::Relu {
        ring_bits: RING_BITS,
        fraction: 2,
    };
    let lookup = lookup();
    let tasks = [
        (StopKind::Garbling, StopResult::Function(&relu)),
        (StopKind::Garbling, StopResult::Position),
        (StopKind::ClientGarbling, StopResult::Function(&relu)),
        (StopKind::LateClientGarbling, StopResult::Function(&relu)),
        (StopKind::Transfers, StopResult::Same),
        (StopKind::LateTransfers, StopResult::Same),
        (StopKind::Lift, StopResult::Same),
        (StopKind::Lookups, StopResult::Function(&lookup)),
    ];
    let stop = |(means, result)| {
        let spec = StopSpec {
            result,
            ring_bits: RING_BITS,
            rows: 2,
            cols: 3,
        };
        let stop = StopBuilder::over(Variant::SOFT_4).stop(means, &spec);
        stop.expect("small tasks")
    };
    tasks.map(stop).into()
}
