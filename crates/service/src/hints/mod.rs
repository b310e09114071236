//! The hint of a model, from the server that builds it to the client that keeps it.
//!
//! A server publishes a file once for a model and all its clients (`primer_hint`, docs/rlwe.md):
//! 125 MB for BERT-base. It is pseudorandom and not secret, and a
//! client that has it prepares without asking for products. The server keeps a second file beside
//! it, which is secret: the multipliers, ten times as large.
//!
//! ```text
//! server/hint.key               what hides the weights (mode 0600); of a fleet, the store's key
//! server/hints/NAME.hint        the hint, the same bytes that clients get
//! server/hints/NAME.digits      the multipliers (mode 0600)
//! server/hints/NAME.json        what they are: model, length, hashes; written last
//! client/hints/ROOT.hint        a hint that was fetched; ROOT.part while it is fetched
//! client/hints/ROOT.json        what it is: model, server, length, hashes; written first
//! ```
//!
//! A NAME stands for the server's secret and the weights, a ROOT for every byte of the hint. The
//! same secret and the same weights make the same bytes: a file that is lost or damaged is built
//! again, and clients need not know.
//!
//! `primer_server::hints` makes a server's files and `primer_client` a client's. Both write under
//! the name of a *part*, which one process at a time may hold (`part`), and rename what is whole.
//! `record` is what is kept beside a hint, `kept` lists and deletes.

#[cfg(feature = "files")]
pub mod part;
pub mod record;
#[cfg(feature = "files")]
pub mod stored;

/// The largest hint that is served or fetched.
pub const MAX_HINT: u64 = 8 << 30;
