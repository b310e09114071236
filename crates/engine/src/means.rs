//! By which means the stops of a program are computed, and on which transfers they stand.
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
use primer_stops::{Means, Transfers};

/// The transfers that stops stand on.
pub const TRANSFERS: Transfers = Transfers {
    to_client: Variant::SOFT_4.checked(),
    to_server: Variant::SOFT_4,
};

/// How values are requantised that products by rows (squares, rows times factors) are all that
/// reads.
pub(crate) const LIFTED: Means = Means::Lift;

/// How a label is found. It is shown to the client, so the server garbles.
pub(crate) const LABEL: Means = Means::Garbling;

/// Returns by which means a stop's function is computed.
pub(crate) const fn of(function: StopFunction) -> Means {
    match function {
        StopFunction::Requantise => Means::Transfers,
        StopFunction::Power | StopFunction::Activation => Means::Lookups,
        StopFunction::Softmax
        | StopFunction::InverseRoot
        | StopFunction::Tanh
        | StopFunction::Summary
        | StopFunction::CoarseMaximum
        | StopFunction::Reciprocal => Means::ClientGarbling,
    }
}

/// Returns the means by which a stop takes the parties' shares of a product of two secrets as they
/// are, in the product's own round trip; none if the client shares the product anew, and the stop
/// reads it like any other value.
pub(crate) const fn after_products(function: StopFunction) -> Option<Means> {
    match function {
        StopFunction::Requantise => Some(Means::LateTransfers),
        StopFunction::InverseRoot => Some(Means::LateClientGarbling),
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
        let late = after_products(function).map_or("-", Means::name);
        (function.name(), format!("{}, {late}", of(function).name()))
    });
    let lines = choices.into_iter().chain(functions);
    lines
        .map(|(what, how)| format!("{what}: {how}\n"))
        .collect()
}
