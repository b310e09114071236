//! What this machine does per second, and what the stops cost.

use crate::circuit::{Circuit, LANES, Party};
use crate::engine::Label;
use crate::evaluator::Evaluator;
use crate::garbler::Garbler;
use crate::label::Offset;
use crate::stop::StopCircuit;
use primer_plan::function::{Activation, Function, Gelu, Softmax};
use primer_ring::prg::Prg;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The garbling figures of `primer bench --kernels`, on one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    /// Millions of AND gates garbled per second, on the GELU stop with its projections.
    pub garble_mand_per_s: f64,
    /// Millions of AND gates evaluated per second, on the same.
    pub evaluate_mand_per_s: f64,
    /// AND gates of one GELU, with the addition of its shares.
    pub gelu_and_gates: usize,
    /// AND gates of one power of two, with its saturation.
    pub exp_and_gates: usize,
    /// AND gates of a softmax over 30 elements, for each of them.
    pub softmax_and_gates_per_element: f64,
    /// Bytes of an AND gate.
    pub bytes_per_and: f64,
}

/// Returns the GELU of a BERT: 16-bit ring, 8 fractional bits in, 10 out, as the plan assigns them.
pub fn typical_gelu() -> StopCircuit {
    let gelu = Gelu::new(Activation::GeluErf, 16, 8, 10);
    StopCircuit::new(&Function::Gelu(gelu), 1).expect("these parameters are usable")
}

/// Returns the softmax of a BERT: 15-bit ring, 5 fractional bits.
pub fn typical_softmax() -> Softmax {
    Softmax::new(15, 5, 0, 0)
}

/// Instances of one timed run: long enough to time, short enough for many runs.
const INSTANCES: usize = 1024;

/// Measures for about `budget` and keeps the best run of each kind.
pub fn measure(budget: Duration) -> Figures {
    let gelu = typical_gelu();
    let softmax = typical_softmax();
    let row = 30;
    let stop =
        StopCircuit::new(&Function::Softmax(softmax.clone()), row).expect("30 is a row length");
    let (garble, evaluate) = best_times(gelu.circuit(), budget);
    let gates = gelu.circuit().cost().and_gates;
    let rate = |t: Duration| (gates * INSTANCES) as f64 / t.as_secs_f64() / 1e6;
    Figures {
        garble_mand_per_s: rate(garble),
        evaluate_mand_per_s: rate(evaluate),
        gelu_and_gates: gates,
        exp_and_gates: crate::stop::power_and_gates(&softmax),
        softmax_and_gates_per_element: stop.circuit().cost().and_gates as f64 / row as f64,
        bytes_per_and: 2.0 * crate::label::LABEL_BYTES as f64,
    }
}

/// Returns the best time of garbling and of evaluating [`INSTANCES`] instances.
fn best_times(circuit: &Circuit, budget: Duration) -> (Duration, Duration) {
    let mut prg = Prg::from_os();
    let offset = Offset::random(&mut prg);
    let mut label = || Label::from_le_bytes(prg.seed());
    let nonce = label();
    let mut labels = |party| -> Vec<Label> {
        let count = INSTANCES * circuit.inputs(party);
        (0..count).map(|_| label()).collect()
    };
    let server = labels(Party::Garbler);
    let client = labels(Party::Evaluator);
    let outputs = circuit.cost().outputs;
    let mut masks = vec![0; INSTANCES * outputs];
    let len = circuit
        .garbled_len(INSTANCES as u64)
        .expect("a few thousand instances");
    let mut material: Vec<u8> = Vec::with_capacity(len as usize);
    let (server_step, client_step) = (
        LANES * circuit.inputs(Party::Garbler),
        LANES * circuit.inputs(Party::Evaluator),
    );
    let mut best = (Duration::MAX, Duration::MAX);
    let end = Instant::now() + budget;
    while best.1 == Duration::MAX || Instant::now() < end {
        material.clear();
        let start = Instant::now();
        let mut garbler = Garbler::new(circuit, &offset, nonce);
        let batches = server.chunks(server_step).zip(client.chunks(client_step));
        for ((s, c), m) in batches.zip(masks.chunks_mut(LANES * outputs)) {
            garbler
                .batch(s, c, m, &mut material)
                .expect("memory takes everything");
        }
        best.0 = best.0.min(start.elapsed());
        // Zero labels are as good as any: every instance then computes on zeros.
        let start = Instant::now();
        let mut source = &material[..];
        let mut evaluator = Evaluator::new(circuit, nonce);
        let batches = server.chunks(server_step).zip(client.chunks(client_step));
        for ((s, c), m) in batches.zip(masks.chunks_mut(LANES * outputs)) {
            let done = evaluator.batch(s, c, &mut source, m, &mut []);
            done.expect("our own material is well formed");
        }
        best.1 = best.1.min(start.elapsed());
        black_box(&masks);
    }
    best
}
