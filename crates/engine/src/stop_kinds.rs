//! Which kind of stop computes which function, and on which transfers stops stand.
//!
//! | what becomes of an accumulator | by |
//! |---|---|
//! | requantised | transfers |
//! | requantised, and read by products by rows alone | a lift |
//! | requantised, of a product of two secrets | late transfers |
//! | a function of a short index: powers, activations | look-ups |
//! | any other function | garbled circuits of the client's; late ones, if the root of a product |
//! | a label, which is shown to the client | garbled circuits of the server's |

use primer_ot::Variant;
use primer_plan::graph::StopFunction;
use primer_stops::{StopKind, Transfers};

/// The transfers that stops stand on.
pub const TRANSFERS: Transfers = Transfers {
    to_client: Variant::SOFT_4.checked(),
    to_server: Variant::SOFT_4,
};

/// How values are requantised that products by rows (squares, rows times factors) are all that
/// reads.
pub(crate) const LIFTED: StopKind = StopKind::Lift;

/// How a label is found. It is shown to the client, so the server garbles.
pub(crate) const LABEL: StopKind = StopKind::Garbling;

/// Returns the kind of stop that computes a function.
pub(crate) const fn of(function: StopFunction) -> StopKind {
    match function {
        StopFunction::Requantise => StopKind::Transfers,
        StopFunction::Power | StopFunction::Activation => StopKind::Lookups,
        StopFunction::Softmax
        | StopFunction::InverseRoot
        | StopFunction::Tanh
        | StopFunction::Summary
        | StopFunction::CoarseMaximum
        | StopFunction::Reciprocal => StopKind::ClientGarbling,
    }
}

/// Returns the kind of stop that takes the parties' shares of a product of two secrets as they
/// are, in the product's own round trip; none if the client shares the product anew, and the stop
/// reads it like any other value.
pub(crate) const fn after_products(function: StopFunction) -> Option<StopKind> {
    match function {
        StopFunction::Requantise => Some(StopKind::LateTransfers),
        StopFunction::InverseRoot => Some(StopKind::LateClientGarbling),
        _ => None,
    }
}

/// Says how a plan is computed, a line for each choice: the fingerprint of a program stands for it.
pub(crate) fn describe() -> String {
    let Transfers {
        to_client,
        to_server,
    } = TRANSFERS;
    let choices = [
        ("to client", to_client.to_string()),
        ("to server", to_server.to_string()),
        ("lifted", LIFTED.name().to_owned()),
        ("label", LABEL.name().to_owned()),
    ];
    let functions = StopFunction::ALL.map(|function| {
        let late = after_products(function).map_or("-", StopKind::name);
        (function.name(), format!("{}, {late}", of(function).name()))
    });
    let lines = choices.into_iter().chain(functions);
    lines
        .map(|(what, how)| format!("{what}: {how}\n"))
        .collect()
}
