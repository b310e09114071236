//! The native half of the Python package `primer`: a client and a server of the library, as Python
//! objects.
//!
//! It is thin on purpose. What a Python user sees (pipelines, results, warnings, a bar) is written
//! in Python beside it (`python/primer/`); here is what Python cannot do itself:
//!
//! * [`work`] runs what blocks on a thread of its own, with the interpreter free meanwhile and
//!   signals still heard;
//! * [`client`] and [`serve`] are the two ends, [`watch`] tells how far an offline phase is;
//! * [`errors`] turns a `ServiceError` into the exception of its kind, [`facts`] makes
//!   dictionaries of what is learnt.
//!
//! Nothing is computed here that the library computes.

use pyo3::prelude::*;

mod client;
mod errors;
mod facts;
mod serve;
mod watch;
mod work;

/// The native half of `primer`.
#[pymodule]
mod _primer {
    #[pymodule_export]
    use super::client::Client;
    #[pymodule_export]
    use super::serve::Server;
    #[pymodule_export]
    use super::version;
}

/// Returns the version of the package.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
