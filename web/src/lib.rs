//! The client in a browser.
//!
//! This is what `primer-client` needs of a system, where the system is a page. It runs in a worker,
//! which may wait; all that it cannot do itself is done by the JavaScript beside it
//! (`package/host.js`): `host` has those functions, and the clocks made of them. `line`
//! is a connection, `files` what stays between two visits, `session` is what JavaScript calls, and
//! `told` how it hears of progress.
//!
//! Handles to the other side are numbers, not objects: those could not leave their thread, and a
//! client's parts must be able to.

mod files;
mod hints;
mod host;
mod line;
mod session;
mod told;

pub use session::Session;
