//! A stop of each kind, small, for the targets that play one party of it.

use primer_ot::Variant;
use primer_plan::function::{Function, Lookup, LookupTable};
use primer_stops::means::Wanted;
use primer_stops::{Means, StopBuilder, Task, TwoPartyStop};
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
        (Means::Garbling, Wanted::Function(&relu)),
        (Means::Garbling, Wanted::Position),
        (Means::ClientGarbling, Wanted::Function(&relu)),
        (Means::LateClientGarbling, Wanted::Function(&relu)),
        (Means::Transfers, Wanted::Same),
        (Means::LateTransfers, Wanted::Same),
        (Means::Lift, Wanted::Same),
        (Means::Lookups, Wanted::Function(&lookup)),
    ];
    let stop = |(means, result)| {
        let task = Task {
            result,
            ring_bits: RING_BITS,
            rows: 2,
            cols: 3,
        };
        let stop = StopBuilder::over(Variant::SOFT_4).stop(means, &task);
        stop.expect("small tasks")
    };
    tasks.map(stop).into()
}
