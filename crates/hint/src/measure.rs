//! What a product with weights costs the server, measured on this machine with one thread.

use crate::client::Batch;
use crate::error::HintError;
use crate::params::LANES;
use crate::server::{HintSecret, Multiplier, Received};
use primer_ring::matrix::Matrix;
use primer_ring::measure::best;
use primer_ring::prg::Prg;
use rand_core::Rng;
use std::hint::black_box;

/// The server's work on one batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// The shares of a batch of one value, in seconds: the same for one row and for all
    /// [`LANES`] of them.
    pub batch_s: f64,
    /// Billions of multiply-adds a second of rows with weights, if all lanes are used.
    pub gmac_per_s: f64,
}

/// Measures the shares of a batch for random weights of some features and outputs, whose columns
/// have a length of about `2^13`: the best of some repetitions. Builds their hint first, which
/// takes far longer.
///
/// # Errors
/// [`HintError::Margin`], which weights of this length do not cause.
pub fn figures(
    (features, outputs): (usize, usize),
    repetitions: usize,
    rng: &mut Prg,
) -> Result<Figures, HintError> {
    let most = (8192.0 * (3.0 / features as f64).sqrt()).clamp(1.0, 16383.0) as i32;
    let weights = Matrix::from_fn(features, outputs, |_, _| {
        (rng.next_u32() % (2 * most + 1) as u32) as i16 - most as i16
    });
    let (name, value) = ([1; 32], 0);
    let secret = HintSecret::new(rng.secret_seed());
    let (multiplier, _, _) = Multiplier::build(&secret, &name, value, &weights)?;
    let message = Batch::new(&name, value, &rng.secret_seed()).message();
    let message = Received::decode(&message)?;
    let batch_s = best(repetitions, || {
        black_box(multiplier.shares(LANES, &message, 1));
    });
    Ok(Figures {
        batch_s,
        gmac_per_s: (LANES * features * outputs) as f64 / batch_s / 1e9,
    })
}
