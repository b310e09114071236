//! The transfers that stops are built on.

use primer_ot::Variant;

/// The variants of both directions. They may differ: a client that deviates is a stranger, so the
/// transfers that it receives are checked, while a server that deviates can do worse than choose
/// inconsistently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transfers {
    /// Where the client receives: labels of its bits, pads of its choice.
    pub to_client: Variant,
    /// Where the server receives.
    pub to_server: Variant,
}

impl From<Variant> for Transfers {
    /// Uses the same variant in both directions.
    fn from(variant: Variant) -> Self {
        Self {
            to_client: variant,
            to_server: variant,
        }
    }
}
