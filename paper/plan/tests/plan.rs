//! Plans of the paper's schemes that contradict themselves are refused, by a change to a good plan.
#![allow(missing_docs)]

#[path = "../../../crates/plan/tests/common/mod.rs"]
mod common;

use common::{Calibration, shape};
use primer_paper_plan::Form;
use primer_plan::function::{Activation, Function, Gelu};
use primer_plan::graph::Op;
use primer_plan::plan::{Plan, PlanError};
use primer_plan::scales::{Scale, Scales, WeightScale};

/// Returns the error after a change to good scales.
fn refusal(change: impl FnOnce(&Calibration, &mut Scales)) -> PlanError {
    let seen = Calibration::by(Form::Separate.design(), &shape());
    let mut scales = seen.assign().unwrap();
    change(&seen, &mut scales);
    seen.with(scales).expect_err("a contradiction was accepted")
}

/// Checks that a change is refused with the name of a value or weight, and the reason.
fn contradiction(name: &str, reason: &str, change: impl FnOnce(&Calibration, &mut Scales)) {
    match refusal(change) {
        PlanError::Scales {
            value,
            reason: found,
        } => {
            assert_eq!(value, name);
            assert!(found.contains(reason), "{name}: {found}, not {reason}");
        }
        other => panic!("{name}: {other}"),
    }
}

fn set(name: &'static str, scale: Scale) -> impl FnOnce(&Calibration, &mut Scales) {
    move |seen, scales| scales.values[seen.id(name).index()] = scale
}

fn functions(scales: &mut Scales) -> impl Iterator<Item = &mut Function> {
    scales.functions.iter_mut().flatten()
}

const FIXED: Scale = Scale::Fixed {
    bits: 15,
    fraction: 10,
};

#[test]
fn a_good_plan_is_accepted_and_survives_its_encoding() {
    for form in Form::ALL {
        for activation in [Activation::GeluErf, Activation::GeluTanh, Activation::Relu] {
            let mut shape = shape();
            shape.activation = activation;
            let plan = Calibration::by(form.design(), &shape).plan();
            assert_eq!(Plan::decode_by(&form, &plan.encode()).unwrap(), plan);
        }
    }
}

/// Checks that plans of one design are refused as another's, whichever way they come.
#[test]
fn another_design_is_another_plan() {
    let seen = || {
        let paper = Form::ALL.map(|form| Calibration::by(form.design(), &shape()));
        paper.into_iter().chain([Calibration::plausible(&shape())])
    };
    for (i, ours) in seen().enumerate() {
        let plan = ours.plan();
        for (j, other) in seen().enumerate() {
            assert_eq!(plan.is_by(other.design), i == j);
            if i == j {
                continue;
            }
            assert_ne!(plan.fingerprint(), other.plan().fingerprint());
            for refused in [
                other.with(ours.assign().unwrap()),
                Plan::decode_by(other.design, &plan.encode()),
            ] {
                let found = refused.unwrap_err();
                assert!(matches!(found, PlanError::Count { what: "values", .. }));
            }
        }
    }
}

/// Checks that an activation of these graphs is a circuit.
#[test]
fn activations_are_not_looked_up() {
    let looked_up = Calibration::plausible(&shape());
    contradiction("layer0.intermediate", "another function", |seen, scales| {
        let theirs = looked_up.assign().unwrap();
        for name in ["layer0.intermediate.sum", "layer0.intermediate"] {
            scales.values[seen.id(name).index()] = theirs.values[looked_up.id(name).index()];
        }
        let stop = |of: &Calibration| {
            let made = of.id("layer0.intermediate");
            let steps = &of.graph.steps;
            steps.iter().position(|s| s.output() == made).unwrap()
        };
        let weight = |of: &Calibration| {
            let weights = &of.graph.weights;
            weights
                .iter()
                .position(|w| w.name == "layer0.intermediate")
                .unwrap()
        };
        scales.weights[weight(seen)] = theirs.weights[weight(&looked_up)];
        scales.functions[stop(seen)] = theirs.functions[stop(&looked_up)].clone();
    });
}

#[test]
fn merged_scores_are_checked() {
    let seen = Calibration::by(Form::Merged.design(), &shape());
    let step = |op: &Op| matches!(op, Op::MergedScores { .. });
    let found = seen.graph.steps.iter().find(|s| step(&s.op)).unwrap();
    let Op::MergedScores { input, weight, .. } = found.op else {
        unreachable!();
    };
    let refused = |change: &dyn Fn(&mut Scales)| {
        let mut scales = seen.assign().unwrap();
        change(&mut scales);
        seen.with(scales).unwrap_err().to_string()
    };
    // One bit beyond the accumulator.
    let scales = seen.assign().unwrap();
    let room = scales.values[found.output().index()].fraction()
        - 2 * scales.values[input.index()].fraction();
    let error = refused(&|s| {
        s.weights[weight.index()] = WeightScale::Dense { fraction: room + 1 };
    });
    assert!(error.contains("off by -1 bits"), "{error}");
    let error = refused(&|s| s.weights[weight.index()] = WeightScale::Bias);
    assert!(error.contains("another kind of weight"), "{error}");
}

#[test]
fn functions_that_are_not_usable() {
    let function = |change: fn(&mut Function)| {
        let error = refusal(|_, scales| functions(scales).for_each(change));
        match error {
            PlanError::Function(error) => error.function,
            other => panic!("{other}"),
        }
    };
    let gelu = |f: &mut Function| {
        if let Function::Gelu(f) = f {
            f.fraction = i32::MAX;
        }
    };
    assert_eq!(function(gelu), "GELU");
    let softmax = |f: &mut Function| {
        if let Function::Softmax(f) = f {
            f.mask = -1;
        }
    };
    assert_eq!(function(softmax), "softmax");
    let root = |f: &mut Function| {
        if let Function::InverseRoot(f) = f {
            f.output_fraction = i32::MIN;
        }
    };
    assert_eq!(function(root), "reciprocal square root");
    let tanh = |f: &mut Function| {
        if let Function::Tanh(f) = f {
            f.ring_bits = 25;
        }
    };
    assert_eq!(function(tanh), "tanh");
}

#[test]
fn products_that_would_not_be_exact() {
    contradiction("layer0.output.sum", "52 are exact", |seen, scales| {
        let weight = |name: &str| {
            let found = seen.graph.weights.iter().position(|w| w.name == name);
            found.unwrap()
        };
        scales.weights[weight("layer0.intermediate")] = WeightScale::Dense { fraction: 5 };
        let wide = Gelu::new(Activation::GeluErf, 24, 8, 16);
        let first = functions(scales).find(|f| matches!(f, Function::Gelu(_)));
        *first.unwrap() = Function::Gelu(wide);
        let accumulator = Scale::Accumulator {
            fraction: 25,
            ring_bits: 24,
        };
        set("layer0.intermediate.sum", accumulator)(seen, scales);
        let fixed = Scale::Fixed {
            bits: 32,
            fraction: 16,
        };
        set("layer0.intermediate", fixed)(seen, scales);
    });
}

#[test]
fn stops_that_do_not_fit_their_function() {
    contradiction("layer1.key", "another function", |seen, scales| {
        let is = |s: &primer_plan::graph::Step| s.output() == seen.id("layer1.key");
        let index = seen.graph.steps.iter().position(is).unwrap();
        let other = functions(scales).next().cloned();
        scales.functions[index] = other;
    });
    contradiction("layer1.probabilities", "another function", |_, scales| {
        let is = |f: &Option<Function>| matches!(f, Some(Function::Softmax(_)));
        let index = scales.functions.iter().rposition(is).unwrap();
        scales.functions[index] = None;
    });
    contradiction("embeddings.sum", "has no function", |_, scales| {
        let other = functions(scales).next().cloned();
        scales.functions[0] = other;
    });
    // The ring or the scale of a GELU, of a softmax and of a requantisation is another.
    for (value, reads) in [
        ("layer0.intermediate", "layer0.intermediate.sum"),
        ("layer0.probabilities", "layer0.scores"),
        ("pooled", "pooler.sum"),
    ] {
        contradiction(reads, "ring is not the function's", |seen, scales| {
            let scale = &mut scales.values[seen.id(reads).index()];
            if let Scale::Accumulator { fraction, .. } = scale {
                *fraction += 1;
            }
        });
        for (more_bits, more_fraction) in [(1, 0), (0, 1)] {
            contradiction(value, "scale is not the function's", |seen, scales| {
                let scale = &mut scales.values[seen.id(value).index()];
                if let Scale::Fixed { bits, fraction } = scale {
                    *bits += more_bits;
                    *fraction += more_fraction;
                }
            });
        }
    }
    contradiction(
        "logits",
        "scale is not the function's",
        set("logits", FIXED),
    );
}

#[test]
fn linear_steps_that_do_not_fit_their_neighbours() {
    contradiction("embeddings.sum", "off by -", |_, scales| {
        scales.weights[0] = WeightScale::Dense { fraction: 120 };
    });
    contradiction("layer0.query.sum", "off by", |seen, scales| {
        let weight = seen.graph.weights.iter();
        let index = weight.clone().position(|w| w.name == "layer0.query");
        scales.weights[index.unwrap()] = WeightScale::Dense { fraction: -60 };
    });
    // An accumulator where a fixed value belongs, and the other way round.
    let accumulator = Scale::Accumulator {
        fraction: 30,
        ring_bits: 16,
    };
    contradiction(
        "embeddings_norm.centred",
        "a stop leaves a fixed value",
        set("embeddings_norm.centred", accumulator),
    );
    contradiction("embeddings.sum", "not an accumulator", |seen, scales| {
        scales.weights[0] = WeightScale::Dense { fraction: 10 };
        set("embeddings.sum", FIXED)(seen, scales);
    });
}

#[test]
fn weights_of_another_kind() {
    contradiction("embeddings", "another kind of weight", |_, scales| {
        scales.weights[0] = WeightScale::Bias;
    });
    contradiction("positions", "another kind of weight", |_, scales| {
        scales.weights[1] = WeightScale::Dense { fraction: 3 };
    });
}
