//! Plans that contradict themselves: every refusal is triggered, by a change to a good plan.
#![allow(missing_docs)]

mod common;

use common::{Calibration, range, shape};
use primer_plan::function::{Activation, Function, Gelu, Powers, Sorted};
use primer_plan::graph::{Op, Step};
use primer_plan::plan::{MAX_ENCODED, Plan, PlanError};
use primer_plan::scales::{Scale, Scales, WeightScale};
use primer_plan::shape::{Head, Pooling, Shape, ShapeError};
use primer_ring::modulus::K;

/// Returns the error after a change to good scales.
fn refusal(change: impl FnOnce(&Calibration, &mut Scales)) -> PlanError {
    let seen = Calibration::plausible(&shape());
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
    for activation in [Activation::GeluErf, Activation::GeluTanh, Activation::Relu] {
        let mut shape = shape();
        shape.activation = activation;
        let plan = Calibration::plausible(&shape).plan();
        assert_eq!(Plan::decode(&plan.encode()).unwrap(), plan);
        let for_tokens = |n| Plan::new(&shape, n, plan.scales().clone()).unwrap();
        assert_ne!(for_tokens(9).fingerprint(), plan.fingerprint());
        assert_eq!(for_tokens(8), plan);
    }
}

/// A change that makes powers unusable, and why.
type Wrong<'a> = (&'a dyn Fn(&mut Powers), &'a str);

/// Checks that what is left of scores must fit the ring of the exponents, and be left of a coarse
/// maximum.
#[test]
fn what_is_left_of_scores_is_checked() {
    // The scores of the first layer are so wide that they are measured, those of the second are
    // looked up as they are.
    let mut seen = Calibration::plausible(&shape());
    seen.set("layer0.scores", range(-100.0, 100.0));
    let of_layer = |layer: usize| {
        let rests = |s: &Step| s.layer == Some(layer) && matches!(s.op, Op::Exponents { .. });
        let at = seen.graph.steps.iter().position(rests).unwrap();
        let Op::Exponents {
            reference, output, ..
        } = seen.graph.steps[at].op
        else {
            unreachable!();
        };
        let made = |s: &Step| s.output() == reference;
        let maker = seen.graph.steps.iter().position(made).unwrap();
        let reads = |s: &Step| s.inputs() == [output];
        let reader = seen.graph.steps.iter().position(reads).unwrap();
        (maker, output, reader)
    };
    let refused = |change: &dyn Fn(&mut Scales)| {
        let mut scales = seen.assign().unwrap();
        change(&mut scales);
        Plan::new(&shape(), 8, scales).unwrap_err().to_string()
    };
    let (maker, output, reader) = of_layer(0);
    let error = refused(&|s| {
        let Some(Function::CoarseMaximum(coarse)) = &mut s.functions[maker] else {
            unreachable!();
        };
        coarse.far += 8;
    });
    assert!(error.contains("too short for what is left"), "{error}");
    let error = refused(&|s| {
        if let Scale::Accumulator { fraction, .. } = &mut s.values[output.index()] {
            *fraction -= 20;
        }
    });
    assert!(error.contains("a product is off by"), "{error}");
    let error = refused(&|s| s.functions[maker] = None);
    assert!(error.contains("there is nothing to measure"), "{error}");
    let error = refused(&|s| s.functions[reader] = None);
    assert!(error.contains("not what is left of scores"), "{error}");
    // Nothing but sums of powers is kept whole.
    let scores = seen.id("layer0.scores");
    let totals = seen.id("layer0.totals");
    let error = refused(&|s| {
        let scale = &mut s.values[scores.index()];
        let (fraction, ring_bits) = (scale.fraction(), 7);
        *scale = Scale::Small {
            fraction,
            ring_bits,
        };
    });
    assert!(error.contains("sums of powers are kept whole"), "{error}");
    let error = refused(&|s| s.values[totals.index()] = s.values[output.index()]);
    assert!(error.contains("contradict each other"), "{error}");
    // Heads that are not there, or twice; a class without a table; powers that are negative.
    let (maker, _, reader) = of_layer(1);
    let wrong = |change: &dyn Fn(&mut Powers)| {
        refused(&|s| {
            let Some(Function::Powers(powers)) = &mut s.functions[reader] else {
                unreachable!();
            };
            change(powers);
        })
    };
    let cases: [Wrong<'_>; 7] = [
        (
            &|p| p.classes[0].heads[3].head = 4,
            "a head that is not there",
        ),
        (&|p| p.classes[0].heads.truncate(3), "a head has one class"),
        (&|p| p.classes[0].heads[1].head = 0, "rising order"),
        (
            &|p| p.classes[0].heads[0].offset = i64::MIN,
            "outside its table",
        ),
        (&|p| p.classes.clear(), "no classes"),
        (
            &|p| p.classes[0].lookup.fraction = 5,
            "do not reach the cells",
        ),
        (&|p| p.classes[0].measured = true, "outside its table"),
    ];
    for (change, reason) in cases {
        let error = wrong(change);
        assert!(error.contains(reason), "{error}");
    }
    let error = wrong(&|p| {
        p.classes[0].measured = true;
        p.classes[0].heads.iter_mut().for_each(|h| h.offset = 0);
    });
    assert!(error.contains("for measured heads only"), "{error}");
    let error = refused(&|s| s.functions[maker] = s.functions[of_layer(0).0].clone());
    assert!(error.contains("the ring is not the function's"), "{error}");
}

/// Checks that classes have all columns, that the accumulator fills the ring of the widest, and
/// that only a looked-up plan has them.
#[test]
fn classes_are_checked() {
    let seen = Calibration::plausible(&shape());
    let is_sorted = |f: &Option<Function>| matches!(f, Some(Function::Sorted(_)));
    let index = seen.assign().unwrap().functions.iter().position(is_sorted);
    let index = index.expect("an activation is looked up");
    let refused = |change: &dyn Fn(&mut Sorted)| {
        let mut scales = seen.assign().unwrap();
        let Some(Function::Sorted(sorted)) = &mut scales.functions[index] else {
            unreachable!();
        };
        change(sorted);
        Plan::new(&shape(), 8, scales).unwrap_err().to_string()
    };
    for columns in [255, 257, usize::MAX] {
        let error = refused(&|s| s.classes[0].columns = columns);
        assert!(error.contains("do not cover its 256 columns"), "{error}");
    }
    let error = refused(&|s| s.classes.push(s.classes[0].clone()));
    assert!(error.contains("do not cover its 256 columns"), "{error}");
    let error = refused(&|s| s.classes[0].lookup.fraction -= 1);
    assert!(error.contains("the ring is not the function's"), "{error}");
    let error = refused(&|s| s.classes.clear());
    assert!(error.contains("0 classes"), "{error}");
    // An activation that is a circuit fits its neighbours, and is refused all the same.
    let mut scales = seen.assign().unwrap();
    let Op::Stop { input, output, .. } = seen.graph.steps[index].op else {
        unreachable!("functions belong to stops");
    };
    let gelu = Gelu::new(Activation::GeluErf, 12, 8, 10);
    scales.values[input.index()] = Scale::Accumulator {
        fraction: 8 + K as i32 - 12,
        ring_bits: 12,
    };
    let gelu = Function::Gelu(gelu);
    scales.values[output.index()] = Scale::Fixed {
        bits: gelu.output_bits(),
        fraction: gelu.output_fraction(),
    };
    scales.functions[index] = Some(gelu);
    let error = seen.with(scales).unwrap_err().to_string();
    assert!(error.contains("the stop has another function"), "{error}");
}

#[test]
fn what_is_kept_is_one_or_zero() {
    let head = Head::Sentence {
        pooling: Pooling::Mean,
        normalised: true,
    };
    let seen = Calibration::plausible(&Shape { head, ..shape() });
    let accumulator = Scale::Accumulator {
        fraction: 20,
        ring_bits: 16,
    };
    let fixed = |bits, fraction| Scale::Fixed { bits, fraction };
    for scale in [fixed(3, 0), fixed(2, 1), accumulator] {
        let mut scales = seen.assign().unwrap();
        scales.values[seen.id("kept").index()] = scale;
        let error = Plan::new(&seen.graph.shape, 8, scales).err().unwrap();
        let named = ["kept", "one or zero"];
        assert!(
            named.iter().all(|n| error.to_string().contains(n)),
            "{error}"
        );
    }
}

#[test]
fn encodings() {
    let plan = Calibration::plausible(&shape()).plan();
    let bytes = plan.encode();
    for cut in 0..bytes.len() {
        assert!(Plan::decode(&bytes[..cut]).is_err(), "{cut} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(matches!(Plan::decode(&longer), Err(PlanError::Encoding(n)) if n == bytes.len() + 1));
    // The version 6, encoded with a useless second byte.
    let spelled = [&[0x86, 0x00], &bytes[1..]].concat();
    assert!(matches!(
        Plan::decode(&spelled),
        Err(PlanError::Encoding(_))
    ));
    let mut newer = bytes;
    newer[0] = 7;
    assert!(matches!(Plan::decode(&newer), Err(PlanError::Version(7))));
    let huge = vec![0; MAX_ENCODED + 1];
    assert!(matches!(Plan::decode(&huge), Err(PlanError::TooLarge(n)) if n == MAX_ENCODED + 1));
}

#[test]
fn shapes_and_tokens() {
    let scales = Calibration::plausible(&shape()).assign().unwrap();
    let mut odd = shape();
    odd.heads = 3;
    assert!(matches!(
        Plan::new(&odd, 8, scales.clone()),
        Err(PlanError::Shape(ShapeError::Heads {
            hidden: 64,
            heads: 3
        }))
    ));
    for tokens in [0, 33, usize::MAX] {
        assert!(matches!(
            Plan::new(&shape(), tokens, scales.clone()),
            Err(PlanError::Tokens { limit: 32, .. })
        ));
    }
}

#[test]
fn lists_of_another_length() {
    let count = |change: fn(&mut Scales)| match refusal(|_, scales| change(scales)) {
        PlanError::Count {
            what,
            found,
            expected,
        } => (what, found + 1 == expected),
        other => panic!("{other}"),
    };
    assert_eq!(
        count(|s| s.values.truncate(s.values.len() - 1)),
        ("values", true)
    );
    assert_eq!(
        count(|s| s.weights.truncate(s.weights.len() - 1)),
        ("weights", true)
    );
    assert_eq!(
        count(|s| s.functions.truncate(s.functions.len() - 1)),
        ("steps", true)
    );
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
fn numbers_beyond_reach_neither_overflow_nor_pass() {
    for fraction in [i32::MIN, i32::MAX, 65, -65] {
        let ring_bits = 16;
        let scale = Scale::Accumulator {
            fraction,
            ring_bits,
        };
        let reason = format!("{fraction} fractional bits");
        contradiction("layer0.key.sum", &reason, set("layer0.key.sum", scale));
    }
    for ring_bits in [0, 1, 25, 42, u32::MAX] {
        let scale = Scale::Accumulator {
            fraction: 30,
            ring_bits,
        };
        let reason = format!("a ring of {ring_bits} bits");
        contradiction("layer0.key.sum", &reason, set("layer0.key.sum", scale));
    }
    for bits in [0, 1, 33, u32::MAX] {
        let scale = Scale::Fixed { bits, fraction: 3 };
        contradiction("layer0.key", "2 to 32 bits", set("layer0.key", scale));
    }
    for fraction in [i32::MIN, i32::MAX] {
        contradiction("embeddings", "fractional bits", |_, scales| {
            scales.weights[0] = WeightScale::Dense { fraction };
        });
    }
}

#[test]
fn weights_of_another_kind() {
    contradiction("embeddings", "another kind of weight", |_, scales| {
        scales.weights[0] = WeightScale::Bias;
    });
    contradiction(
        "layer0.query.bias",
        "another kind of weight",
        |seen, scales| {
            let weights = &seen.graph.weights;
            let index = weights.iter().position(|w| w.name == "layer0.query.bias");
            scales.weights[index.unwrap()] = WeightScale::Dense { fraction: 3 };
        },
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
fn stops_that_do_not_fit_their_function() {
    contradiction("layer1.key", "another function", |seen, scales| {
        let is = |s: &primer_plan::graph::Step| s.output() == seen.id("layer1.key");
        let index = seen.graph.steps.iter().position(is).unwrap();
        let other = functions(scales).next().cloned();
        scales.functions[index] = other;
    });
    contradiction("layer1.reciprocals", "another function", |_, scales| {
        let is = |f: &Option<Function>| matches!(f, Some(Function::Reciprocal(_)));
        let index = scales.functions.iter().rposition(is).unwrap();
        scales.functions[index] = None;
    });
    contradiction("embeddings.sum", "has no function", |_, scales| {
        let other = functions(scales).next().cloned();
        scales.functions[0] = other;
    });
    // The ring or the scale of an activation and of a summary is another.
    for (value, reads) in [
        ("layer0.intermediate", "layer0.intermediate.sum"),
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
