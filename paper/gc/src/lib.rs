//! A comparator: a whole BERT as one garbled circuit, as GCFormer in the paper's first table.
//!
//! **Not a product path.** It exists to be measured against: the service does not offer it.
//!
//! The server garbles the model, the client evaluates it. Every value between two steps is labels
//! on both sides; nothing is opened but the outputs, to the client. The integers are those of the
//! fixed-point reference with rounding to nearest, bit for bit.
//!
//! ```text
//! offline   client  random choices r, extends the transfers         16 bytes per bit up
//!           server  garbles along the plan; sends tables, labels of weights
//!           client  puts them into a file
//! online    client  c XOR r for the bits c of its text               1 bit each up
//!           server  corrected labels, how to read the outputs        16 bytes each down
//!           client  evaluates, reads the outputs                     no more messages
//! ```
//!
//! **Input bits.** With rows `q`, `q ⊕ r·Δ` of a transfer and a zero label `Z` the server keeps
//! `Z ⊕ q`; for the correction `d = c ⊕ r` it sends `Z ⊕ q ⊕ d·Δ`, and the client, adding its row,
//! has `Z ⊕ c·Δ`. `d` hides `c`, and `q` hides the rest.
//!
//! **Order.** The tables come before the text is chosen. What the labels of the outputs mean is
//! sent last, so until then tables and labels are independent of what they compute
//! (`docs/garbling.md`, section 2).
//!
//! * `products`: how a product takes half the usual gates; `spec`: the circuits.
//! * `compile`, `work`: the plan compiled; [`Count`] counts it.
//! * `walk`: the plan walked, for either `role`.
//! * [`client`], [`server`]: the two parties.
//!
//! What it costs, and how it compares with the paper's, is on the page `paper/docs/comparators.md`.
#![forbid(unsafe_code)]

mod chain;
pub mod client;
mod columns;
mod compile;
mod count;
mod error;
mod garbled_step;
mod given;
mod inputs;
mod labels;
mod products;
mod role;
pub mod server;
mod small;
mod spec;
mod walk;
mod window;

pub use count::{Count, Part};
pub use error::{GcError, Result};
pub use small::{SMALL_TOKENS, small_shape};

use primer_ot::{BaseOt, Setup, Variant};
use primer_plan::plan::Plan;

/// The transfers: with post-quantum base transfers, as in the service.
const TRANSFERS: Setup = Setup::new(Variant::IKNP, BaseOt::MlKem);

/// Products of a plan that is run, at most: about 2^33 gates, 256 GiB. Counting has no such limit.
pub const MAX_PRODUCTS: u64 = 1 << 25;
/// Elements of a value or of a weight of a plan that is run, at most: labels of half a gigabyte.
pub const MAX_ELEMENTS: u64 = 1 << 20;

/// Refuses plans that are too large to run, before a circuit is built for them.
fn check_size(plan: &Plan) -> Result<()> {
    let graph = plan.graph();
    let counts = graph.counts();
    let products = counts
        .weight_products
        .saturating_add(counts.secret_products);
    let values = graph.values.iter().map(|v| v.rows * v.cols);
    let weights = graph.weights.iter().map(|w| w.rows * w.cols);
    let largest = values.chain(weights).max().unwrap_or(0) as u64;
    for (what, amount, limit) in [
        ("products", products, MAX_PRODUCTS),
        ("elements in one matrix", largest, MAX_ELEMENTS),
    ] {
        if amount > limit {
            return Err(GcError::TooLarge {
                what,
                amount,
                limit,
            });
        }
    }
    Ok(())
}
