//! Every function of a plan over all its inputs, against real numbers.
//!
//! The functions are those that scales are assigned with, for every activation, and whole ones with
//! the numbers that the paper's schemes give them. Two checks are made of each:
//!
//! * *Every entry is the best one.* Over all inputs that an entry serves, the result is off by half
//!   a unit of the entry on average, and no more ([`expect_best`]). So an entry that is one or two
//!   units off is found, however coarse the cells are.
//! * *The worst error is the stated one*, from both sides ([`expect_worst`]). So a constant that
//!   changes (a cell's width, a centre, bits of an output) is found, whether results get worse or
//!   better.
//!
//! Even functions of several million inputs are run on all of them; only accumulators before
//! look-ups have too many values, and are taken at fixed places of every cell, its ends among them.
#![allow(missing_docs)]

mod circuits;
#[path = "../common/mod.rs"]
mod common;
mod lookups;
mod rows;

use common::{Calibration, range, shape};
use primer_plan::function::{Activation, CoarseMaximum, Function, Gelu, Softmax};
use primer_plan::graph::{Op, StopFunction, ValueId};
use primer_plan::plan::Plan;
use primer_plan::shape::{Head, Problem, Summary};
use std::collections::BTreeSet;

/// All variants of an enumeration; code that does not name all of them does not compile.
macro_rules! every {
    ($type:ident: $($variant:ident),+) => {{
        let _ = |value: $type| match value { $($type::$variant => (),)+ };
        [$($type::$variant),+]
    }};
}

/// The worst errors of an activation.
struct Worst {
    /// As a circuit, if it has a table there.
    circuit: Option<f64>,
    /// Looked up in cells of 1/32, along lines of slope 1/8: of a single result, and of the mean
    /// over what truncation makes of an argument.
    looked_up: [f64; 2],
}

const fn worst(activation: Activation) -> Worst {
    match activation {
        Activation::GeluErf => Worst {
            circuit: Some(0.0041),
            looked_up: [0.0311, 0.000_1],
        },
        Activation::GeluTanh => Worst {
            circuit: Some(0.0041),
            looked_up: [0.0311, 0.000_1],
        },
        // The bend is at an index: what is left is the rounding of entries.
        Activation::Relu => Worst {
            circuit: None,
            looked_up: [0.0274, 0.000_01],
        },
    }
}

/// Fails unless the mean error of results, in units of an entry, is that of rounding the best entry
/// to an integer. For a curve the middle of a cell is not quite the mean.
#[track_caller]
fn expect_best(what: &str, mean: f64) {
    assert!(mean.abs() <= 0.52, "{what}: {mean} units off on average");
}

/// Fails unless the worst error that was found is the stated one, rounded up.
#[track_caller]
fn expect_worst(what: &str, found: f64, stated: f64) {
    assert!(
        found <= stated && found >= 0.95 * stated,
        "{what}: the worst error is {found}, stated are {stated}"
    );
}

/// Returns the activation that a stop's function is.
fn activation_of(plan: &Plan, kind: StopFunction) -> Option<Activation> {
    let shape = &plan.graph().shape;
    match (kind, &shape.head) {
        (StopFunction::Activation, _) => Some(shape.activation),
        (StopFunction::Summary, Head::Classify { summary, .. }) => summary.activation(),
        _ => None,
    }
}

/// Checks the function of a stop that reads a value; returns its name.
fn check(plan: &Plan, kind: StopFunction, input: ValueId, function: &Function) -> &'static str {
    let activation = activation_of(plan, kind);
    let fraction = plan.scale(input).ring_fraction().expect("an accumulator");
    match function {
        Function::Gelu(f) => {
            let activation = activation.expect("GELU is an activation");
            let stated = worst(activation).circuit.expect("GELU has a table");
            circuits::gelu(f, activation, stated);
            "GELU"
        }
        // Nothing is looked up, and nothing rounded.
        Function::Relu { .. } => "ReLU",
        Function::Tanh(f) => {
            circuits::tanh(f);
            "tanh"
        }
        Function::InverseRoot(f) => {
            circuits::inverse_root(f, (plan.graph().squared_width(input), fraction));
            "root"
        }
        Function::Reciprocal(f) => {
            circuits::reciprocal(f, fraction);
            "reciprocal"
        }
        Function::Softmax(_) => panic!("{kind:?} is taken apart"),
        Function::CoarseMaximum(f) => {
            rows::coarse_maximum(f);
            "coarse maximum"
        }
        Function::Sorted(f) => {
            let activation = activation.expect("what is sorted is an activation's");
            lookups::activation(f, activation, worst(activation).looked_up);
            "sorted activation"
        }
        Function::Powers(f) => {
            for class in &f.classes {
                match class.measured {
                    true => lookups::power(&class.lookup, coarse_maximum(plan)),
                    false => lookups::placed_power(&class.lookup),
                }
            }
            match f.measured().is_empty() {
                true => "placed powers",
                false => "measured powers",
            }
        }
        Function::Lookup(_) => panic!("{kind:?} is looked up: it needs a bound here"),
    }
}

fn coarse_maximum(plan: &Plan) -> &CoarseMaximum {
    let functions = (0..plan.graph().steps.len()).filter_map(|step| plan.function(step));
    let mut found = functions.filter_map(|function| match function {
        Function::CoarseMaximum(coarse) => Some(coarse),
        _ => None,
    });
    found.next().expect("powers are those of rests of scores")
}

/// Sets ranges with which activations get classes of all kinds, and scores coarser steps.
fn widen(calibrated: &mut Calibration) {
    let names = calibrated.graph.values.iter().map(|value| &value.name);
    for (name, value) in names.zip(&mut calibrated.values) {
        if name.contains("intermediate") {
            *value = range(-40.0, 40.0);
        } else if name.contains("scores") {
            *value = range(-100.0, 100.0);
        }
    }
    // A quarter of the columns for each range.
    let columns = (0..calibrated.graph.shape.ffn).map(|j| [40.0, 20.0, 9.0, 1.0][j % 4]);
    let columns: Vec<f64> = columns.collect();
    for layer in 0..calibrated.graph.shape.layers {
        let id = calibrated.id(&format!("layer{layer}.intermediate.sum"));
        calibrated.columns.insert(id, columns.clone());
    }
}

/// Compares the real functions with Hugging Face's at -1, 1 and 2.5, since everything else is
/// measured by them.
#[test]
fn activations_are_those_that_models_were_trained_with() {
    for activation in every!(Activation: GeluErf, GeluTanh, Relu) {
        let expected = match activation {
            Activation::GeluErf => [-0.158_655_253_931, 0.841_344_746_069, 2.484_475_836_686],
            Activation::GeluTanh => [-0.158_808_009_392, 0.841_191_990_608, 2.484_915_733_910],
            Activation::Relu => [0.0, 1.0, 2.5],
        };
        for (x, expected) in [-1.0, 1.0, 2.5].into_iter().zip(expected) {
            let found = activation.real(x);
            assert!(
                (found - expected).abs() < 1e-11,
                "{activation:?} of {x}: {found}"
            );
        }
    }
}

#[test]
fn functions_are_within_their_bounds_on_all_inputs() {
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut checked: Vec<(StopFunction, Option<Activation>, Function)> = Vec::new();
    for activation in every!(Activation: GeluErf, GeluTanh, Relu) {
        for summary in every!(Summary: Tanh, Relu, Gelu) {
            for wide in [false, true] {
                let mut shape = shape();
                shape.activation = activation;
                shape.head = Head::Classify {
                    labels: vec!["no".into(), "yes".into()],
                    summary,
                    problem: Problem::SingleLabel,
                };
                let mut calibrated = Calibration::plausible(&shape);
                if wide {
                    widen(&mut calibrated);
                }
                let plan = calibrated.plan();
                for (index, step) in plan.graph().steps.iter().enumerate() {
                    let Op::Stop {
                        input,
                        function: kind,
                        ..
                    } = step.op
                    else {
                        continue;
                    };
                    let Some(function) = plan.function(index) else {
                        continue;
                    };
                    let case = (kind, activation_of(&plan, kind), function.clone());
                    if !checked.contains(&case) {
                        seen.insert(check(&plan, kind, input, function));
                        checked.push(case);
                    }
                }
            }
        }
    }
    let all = [
        "GELU",
        "ReLU",
        "coarse maximum",
        "measured powers",
        "placed powers",
        "reciprocal",
        "root",
        "sorted activation",
        "tanh",
    ];
    assert_eq!(seen, BTreeSet::from(all), "a function was not met");
}

/// Checks functions that are computed whole, with the numbers of `paper/plan`: narrow rings and
/// wide ones.
#[test]
fn whole_functions_are_within_their_bounds_on_all_inputs() {
    for activation in [Activation::GeluErf, Activation::GeluTanh] {
        let stated = worst(activation).circuit.expect("GELU has a table");
        for ring_bits in [12, 15] {
            let gelu = Gelu::new(activation, ring_bits, 8, 10);
            circuits::gelu(&gelu, activation, stated);
        }
    }
    for (ring_bits, mask, offset) in [(11, 656, 312), (14, 5216, 2608)] {
        rows::softmax(&Softmax::new(ring_bits, 5, mask, offset));
    }
}
