//! Any bytes as a plan: refused, or a plan that encodes to the same bytes and can be asked
//! everything that the parties ask it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::DESIGNS;
use primer_plan::graph::Op;
use primer_plan::plan::Plan;
use primer_ring::modulus::K;

fuzz_target!(|bytes: &[u8]| {
    for design in DESIGNS {
        if let Ok(plan) = Plan::decode_by(design, bytes) {
            assert!(
                plan.is_by(design),
                "what was decoded is a plan of its design"
            );
            ask(&plan, bytes);
        }
    }
});

/// Asks a plan everything that the parties ask it.
fn ask(plan: &Plan, bytes: &[u8]) {
    assert_eq!(plan.encode(), bytes, "one plan, one encoding");
    let _ = plan.fingerprint();
    let _ = plan.graph().counts();
    for (index, step) in plan.graph().steps.iter().enumerate() {
        match &step.op {
            Op::Stop { input, .. } => {
                let ring = plan.truncation(*input).ring_bits();
                if let Some(function) = plan.function(index) {
                    assert_eq!(function.ring_bits(), ring);
                }
            }
            Op::Linear { terms, output, .. } => {
                for term in terms {
                    let (first, second) = plan.term_fractions(term);
                    assert!(plan.shift(first, *output).max(plan.shift(second, *output)) <= K);
                }
            }
            Op::MergedScores {
                input,
                weight,
                output,
                ..
            } => {
                let fraction = plan.scale(*input).fraction();
                let first = plan.merged_fraction(*input, *weight);
                assert!(plan.shift(first + fraction, *output) <= K);
            }
            Op::Exponents { scores, output, .. } => {
                let _ = plan.measured_heads(*scores);
                for head in 0..plan.graph().shape.heads {
                    let _ = plan.exponent_map(head, *scores, *output);
                }
            }
            Op::SquareSum { output, .. } => {
                let _ = plan.epsilon(*output);
            }
            Op::Embed { table, output, .. } => {
                assert!(plan.one_hot_bits(*table, *output) <= K);
            }
            _ => {}
        }
    }
}
