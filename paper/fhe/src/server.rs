//! The server: everything between the client's ciphertexts and its answer.

use crate::arithmetic::Count;
use crate::ckks::evaluate::Evaluator;
use crate::ckks::keys::EvaluationKeys;
use crate::error::FheError;
use crate::packing::{Packed, capacity};
use crate::polynomials::Polynomials;
use crate::setup::Setup;
use crate::walk::{Inputs, PackedWalk, input_width};
use crate::wire;
use primer_model::fold::FloatWeights;
use primer_plan::times::Times;
use primer_wire::Channel;

/// What the server did.
pub struct Outcome {
    /// Operations by step and level.
    pub count: Count,
    /// Seconds of processor time by the steps of the paper's table: the server never waits in
    /// between.
    pub times: Times,
}

/// Runs the server's side of one inference, keys included.
///
/// # Errors
/// [`FheError`] if the client's messages are malformed or the connection fails.
///
/// # Panics
/// If weights or polynomials belong to a model other than the set-up's.
pub fn run(
    channel: &mut Channel,
    setup: &Setup,
    weights: &FloatWeights,
    polynomials: &Polynomials,
) -> Result<Outcome, FheError> {
    assert!(weights.shape == setup.graph.shape, "the set-up's model");
    let params = &*setup.params;
    let product = wire::receive_key(channel, params)?;
    let mut rotations = Vec::new();
    for &steps in &setup.counted.rotations {
        rotations.push((steps, wire::receive_key(channel, params)?));
    }
    let keys = EvaluationKeys::new(&setup.params, product, rotations);
    let width = input_width(&setup.graph.shape);
    let most = capacity(params.slots(), setup.graph.tokens);
    let parts = (0..width.div_ceil(most))
        .map(|_| wire::receive_ciphertext(channel, params))
        .collect::<Result<_, _>>()?;
    let inputs = Inputs {
        rows: Packed { width, parts },
        mask: wire::receive_ciphertext(channel, params)?,
    };
    let mut evaluator = Evaluator::new(&keys);
    let answer =
        PackedWalk::new(&mut evaluator, &setup.graph, Some(weights), polynomials).run(&inputs);
    let (count, times) = evaluator.finish();
    wire::send_answer(channel, params, &answer)?;
    Ok(Outcome { count, times })
}
