//! Scales of whole functions and of exact products: the rule, its edges, its refusals.
#![allow(missing_docs)]

#[path = "../../../crates/plan/tests/common/mod.rs"]
mod common;

use common::{Calibration, range, shape};
use primer_paper_plan::Form;
use primer_plan::assign::{AssignError, MARGIN, Observation, ROOM, WeightRange};
use primer_plan::function::{Activation, Function, Gelu, Softmax};
use primer_plan::graph::{Op, StopFunction};
use primer_plan::scales::{Scale, WEIGHT_BITS, WeightScale};
use primer_ring::fixed::Format;
use primer_ring::modulus::K;

#[test]
fn accumulators_fill_the_share_modulus_for_their_ring() {
    let plan = Calibration::by(Form::Separate.design(), &shape()).plan();
    for (index, step) in plan.graph().steps.iter().enumerate() {
        let Op::Stop {
            input,
            output,
            function,
        } = step.op
        else {
            continue;
        };
        let Scale::Accumulator {
            fraction,
            ring_bits,
        } = plan.scale(input)
        else {
            panic!("a stop reads an accumulator");
        };
        let kept = fraction - (K - ring_bits) as i32;
        let expected = match plan.function(index) {
            None => plan.scale(output).fraction(),
            Some(Function::Softmax(f)) => f.fraction as i32,
            Some(Function::Gelu(f)) => f.fraction,
            Some(Function::Tanh(f)) => f.fraction,
            Some(Function::InverseRoot(_)) => kept,
            Some(other) => panic!("the model has no {other:?}"),
        };
        assert_eq!(kept, expected, "{}", plan.graph().value(input).name);
        if function == StopFunction::Requantise {
            // One bit more than the value needs, for the transfer that requantises.
            let format = plan.scale(output).format().unwrap();
            assert_eq!(ring_bits, format.bits + 1);
        }
    }
}

#[test]
fn an_activation_gets_the_finest_format_that_holds_its_margin() {
    let mut seen = Calibration::by(Form::Separate.design(), &shape());
    for reached in [0.01, 0.7, 5.0, 30.0, 220.0] {
        seen.set("layer1.value.sum", range(-reached, reached / 2.0));
        let scales = seen.assign().unwrap();
        let format = Format::fitting(15, MARGIN * reached);
        let id = seen.id("layer1.value");
        assert_eq!(scales.values[id.index()].format(), Some(format));
        assert!(format.max_real() >= MARGIN * reached);
        assert!(format.max_real() < 2.01 * MARGIN * reached);
    }
}

#[test]
fn weights_are_as_fine_as_their_bits_and_the_accumulator_allow() {
    let mut seen = Calibration::by(Form::Separate.design(), &shape());
    seen.weights.fill(WeightRange {
        max_abs: 0.9,
        mean_max_abs: 0.01,
        column: 2.0,
        norm: 0.0,
    });
    let plan = seen.plan();
    let mut limited_by_bits = 0;
    for step in &plan.graph().steps {
        let Op::Linear { terms, output, .. } = &step.op else {
            continue;
        };
        for term in terms {
            let room = plan.scale(*output).fraction() - plan.scale(term.input).fraction();
            let finest = |max: f64| Format::fitting(WEIGHT_BITS, max).fraction.min(room);
            match plan.weight_scale(term.weight) {
                WeightScale::Dense { fraction } => assert_eq!(fraction, finest(0.9)),
                WeightScale::Diagonal { gain, mean } => {
                    assert_eq!((gain, mean), (finest(0.9), finest(0.01)));
                }
                WeightScale::Bias => panic!("a term is not a bias"),
            }
            limited_by_bits += usize::from(room > Format::fitting(WEIGHT_BITS, 0.9).fraction);
        }
    }
    assert!(limited_by_bits > 0);
}

#[test]
fn a_merged_input_gives_up_bits_for_its_matrix() {
    let finest = Format::fitting(WEIGHT_BITS, 0.8).fraction;
    // Half a unit of 1/32 with 64 features.
    let enough = (0.29 * 64.0 * 64.0f64).log2().ceil() as i32;
    assert!(enough < finest);
    // Narrow scores have a fine accumulator, wide ones a coarse one. The input has 11 bits after
    // the point.
    let mut given_up = Vec::new();
    for reached in [5.0, 50.0, 100.0, 3_000.0] {
        let mut seen = Calibration::by(Form::Merged.design(), &shape());
        seen.set("layer1.scores", range(-reached, reached));
        let plan = seen.plan();
        let mut steps = plan.graph().steps.iter().filter(|s| s.layer == Some(1));
        let (input, weight, output) = steps
            .find_map(|step| match step.op {
                Op::MergedScores {
                    input,
                    weight,
                    output,
                    ..
                } => Some((input, weight, output)),
                _ => None,
            })
            .unwrap();
        let format = plan.scale(input).format().unwrap();
        let room = plan.scale(output).fraction() - 2 * format.fraction;
        let fraction = plan.weight_scale(weight).fraction();
        assert_eq!(fraction, finest.min(room));
        assert!(fraction >= enough || format.fraction == 8, "{reached}");
        given_up.push(Format::fitting(15, 7.5).fraction - format.fraction);
    }
    // None where there is room; never below eight.
    assert_eq!(given_up, [0, 0, 1, 3]);
}

#[test]
fn what_is_too_wide_is_refused_by_name() {
    // A GELU input with 8 fractional bits has 24 bits at most: ±2^15 with the margin.
    for (name, fits, too_wide, limit) in [
        ("layer1.intermediate.sum", 21_000.0, 22_000.0, 24),
        ("pooler.sum", 5_400.0, 5_500.0, 24),
        ("layer0.scores", 3_000.0, 20_000.0, 20),
    ] {
        let mut seen = Calibration::by(Form::Separate.design(), &shape());
        seen.set(name, range(-fits, fits));
        let scales = seen.assign().unwrap();
        seen.with(scales).unwrap();
        seen.set(name, range(-too_wide, too_wide));
        match seen.assign() {
            Err(AssignError::TooWide { value, range, bits }) => {
                assert_eq!((value.as_str(), bits), (name, limit));
                assert!(range >= MARGIN * too_wide);
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn masked_keys_end_far_below_the_lowest_row_maximum() {
    let mut seen = Calibration::by(Form::Separate.design(), &shape());
    let scores = Observation {
        min: -40.0,
        max: 20.0,
        min_row_max: -30.0,
    };
    seen.set("layer1.scores", scores);
    let plan = seen.plan();
    let step = plan
        .graph()
        .steps
        .iter()
        .position(|s| s.output() == seen.id("layer1.probabilities"))
        .unwrap();
    let Some(Function::Softmax(softmax)) = plan.function(step) else {
        panic!("probabilities leave a softmax");
    };
    let unit = f64::from(1 << softmax.fraction);
    let (low, high) = (
        ((-40.0 * MARGIN) * unit) as i64,
        ((20.0 * MARGIN) * unit) as i64,
    );
    let lowest_max = (scores.min_row_max * unit) as i64;
    assert_eq!(
        softmax.power((lowest_max - (high - softmax.mask)) as u64),
        0
    );
    // The ring also holds everything from the lowest masked score to the highest.
    let half = 1i64 << (softmax.ring_bits - 1);
    assert!(low - softmax.mask + softmax.offset > -half + 2);
    assert!(high + softmax.offset < half - 2);
}

#[test]
fn sums_of_squares_reach_four_times_what_was_seen_unless_small_ones_would_suffer() {
    let limit = (1u64 << (K - 1)) as f64;
    for form in Form::ALL {
        for (least, roomy) in [(50.0, true), (0.01, false)] {
            let mut seen = Calibration::by(form.design(), &shape());
            let name = "layer1.output_norm.squares";
            seen.set(name, range(least, 300.0));
            let plan = seen.plan();
            let fraction = plan.scale(seen.id(name)).fraction();
            let reach = limit * f64::from(-fraction).exp2();
            assert!(reach >= MARGIN * MARGIN * 300.0);
            // The comparator that garbles separate plans would pay for it in gates.
            let roomy = roomy && form != Form::Separate;
            assert_eq!(reach >= ROOM * 300.0, roomy, "{form:?}: {reach}");
        }
    }
}

#[test]
fn tiny_queries_and_keys_give_a_plan() {
    // Together finer than the scores that they are multiplied to.
    let mut seen = Calibration::by(Form::Separate.design(), &shape());
    for name in ["layer0.query.sum", "layer0.key.sum"] {
        seen.set(name, range(-1e-5, 1e-5));
    }
    seen.set("layer0.scores", range(-1e-8, 1e-8));
    let plan = seen.plan();
    let fraction = |name: &str| plan.scale(seen.id(name)).fraction();
    let product = fraction("layer0.query") + fraction("layer0.key");
    assert_eq!(product, fraction("layer0.scores"));
}

/// Checks that a one in a one-hot row is one: its products are exact.
#[test]
fn one_hot_inputs_carry_no_scale() {
    let plan = Calibration::by(Form::Separate.design(), &shape()).plan();
    let Op::Embed { table, output, .. } = plan.graph().steps[0].op else {
        unreachable!("the first step embeds");
    };
    assert_eq!(plan.one_hot_bits(table, output), 0);
}

/// Checks that functions have the numbers with which `crates/plan/tests/functions` runs them over
/// all their inputs.
#[test]
fn functions_are_those_whose_bounds_are_checked() {
    for form in Form::ALL {
        let mut seen = Calibration::by(form.design(), &shape());
        let (scores, inner) = (range(-100.0, 100.0), range(-40.0, 40.0));
        seen.set("layer1.scores", scores);
        seen.set("layer1.intermediate.sum", inner);
        let plan = seen.plan();
        let functions = |name: &str| {
            [0, 1].map(|layer| {
                let id = seen.id(&format!("layer{layer}.{name}"));
                let index = plan.graph().steps.iter().position(|s| s.output() == id);
                plan.function(index.unwrap()).unwrap().clone()
            })
        };
        let softmax = |bits, mask, offset| Function::Softmax(Softmax::new(bits, 5, mask, offset));
        let expected = [softmax(11, 656, 312), softmax(14, 5216, 2608)];
        assert_eq!(functions("probabilities"), expected);
        let gelu = |bits| Function::Gelu(Gelu::new(Activation::GeluErf, bits, 8, 10));
        assert_eq!(functions("intermediate"), [12, 15].map(gelu));
    }
}
