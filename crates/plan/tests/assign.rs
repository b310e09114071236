//! Scales from observed ranges: the rule, its edges, its refusals.
#![allow(missing_docs)]

mod common;

use common::{Calibration, range, shape};
use primer_plan::assign::{AssignError, MARGIN, Observation, ROOM, WeightRange, assign};
use primer_plan::function::{Class, Function};
use primer_plan::graph::{Op, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::role::ValueRole;
use primer_plan::scales::{COLUMN_LENGTH, OUTPUT_COLUMN_LENGTH, Scale, WeightScale};
use primer_ring::fixed::Format;
use primer_ring::modulus::K;

#[test]
fn accumulators_fill_the_share_modulus_for_their_ring() {
    let plan = Calibration::plausible(&shape()).plan();
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
            // All of it is kept.
            assert_eq!(function, StopFunction::Reciprocal);
            continue;
        };
        let kept = fraction - (K - ring_bits) as i32;
        let expected = match plan.function(index) {
            // No head of this model needs a coarse maximum.
            None if function == StopFunction::CoarseMaximum => kept,
            None => plan.scale(output).fraction(),
            Some(Function::Sorted(f)) => f.classes[0].lookup.fraction,
            Some(Function::Tanh(f)) => f.fraction,
            Some(Function::InverseRoot(_) | Function::Powers(_)) => kept,
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

/// Checks the bits of values that are requantised by transfers, where they cost nothing: three more
/// fractional ones than activations have in the paper, and the integer ones that it takes to reach
/// four times as far.
#[test]
fn looked_up_plans_are_finer_and_reach_four_times_what_was_seen() {
    let seen = Calibration::plausible(&shape());
    let plan = seen.plan();
    let graph = plan.graph();
    let mut roomy = 0;
    for step in &graph.steps {
        let Op::Stop {
            function: StopFunction::Requantise,
            input,
            output,
        } = step.op
        else {
            continue;
        };
        let value = graph.value(output);
        let most = seen.values[input.index()].max;
        let format = plan.scale(output).format().unwrap();
        let fine = Format::fitting(18, MARGIN * most);
        match value.role {
            ValueRole::Probabilities => continue,
            ValueRole::Centred => assert!(format.bits <= 22),
            // 22 bits, but none that is finer than what products err by.
            _ if graph.outputs.contains(&output) => assert!((8..=22).contains(&format.bits)),
            _ => assert_eq!(format.fraction, fine.fraction, "{}", value.name),
        }
        assert!(format.max_real() >= ROOM * most, "{}", value.name);
        roomy += 1;
    }
    assert!(roomy > 15, "{roomy}");
}

/// Checks that mixed values reach as far as the values, however little was seen of them.
#[test]
fn mixed_values_leave_their_range_only_with_their_factor() {
    let mut seen = Calibration::plausible(&shape());
    seen.set("layer0.attention.sum", range(-0.2, 0.2));
    let plan = seen.plan();
    let reach = |name: &str| plan.scale(seen.id(name)).format().unwrap().max_real();
    assert!(reach("layer0.attention") >= reach("layer0.value"));
    // Values reach to 32: in 23 bits that costs a fine one.
    let format = Format::fitting(18, MARGIN * 0.2);
    let fraction = plan.scale(seen.id("layer0.attention")).fraction();
    assert_eq!(fraction, format.fraction - 1);
}

fn classes<'a>(plan: &'a Plan, seen: &Calibration, name: &str) -> &'a [Class] {
    let id = seen.id(name);
    let index = plan.graph().steps.iter().position(|s| s.output() == id);
    match plan.function(index.unwrap()) {
        Some(Function::Sorted(sorted)) => &sorted.classes,
        other => panic!("an activation is looked up, not {other:?}"),
    }
}

/// Checks that what an activation leaves is as fine as other values and holds all entries of its
/// tables and what is added to them, however little of it was seen.
#[test]
fn activations_are_as_fine_as_other_values_and_hold_their_tables() {
    for (reached, left) in [
        (5.0, 5.0),
        (5.0, 0.2),
        (40.0, 0.01),
        (300.0, 1e-6),
        (0.1, 900.0),
    ] {
        let mut seen = Calibration::plausible(&shape());
        seen.set("layer0.intermediate.sum", range(-reached, reached));
        seen.set("layer0.intermediate", range(-left, left));
        let plan = seen.plan();
        let format = plan.scale(seen.id("layer0.intermediate")).format().unwrap();
        let fine = Format::fitting(18, MARGIN * left).fraction;
        assert!(
            format.bits <= 23 && format.fraction <= fine.max(6),
            "{format:?}"
        );
        assert!(
            format.bits == 23 || format.fraction == fine.max(6),
            "{format:?}"
        );
        for class in classes(&plan, &seen, "layer0.intermediate") {
            let table = &class.lookup.tables[0];
            let cell = 1i64 << (format.fraction - class.lookup.fraction);
            let most = table.entries().iter().map(|entry| entry.abs()).max();
            assert!(most.unwrap() + i64::from(class.slope) * cell / 8 < 1 << (format.bits - 1));
        }
    }
}

/// Checks that columns are looked up among as many entries as their ranges need, and none among
/// fewer than those of ±8; counts are in steps of sixteen. In the first layers cells are finer, as
/// far as there are bits for it.
#[test]
fn columns_get_entries_by_their_ranges() {
    let mut seen = Calibration::plausible(&shape());
    for layer in 0..2 {
        let input = seen.id(&format!("layer{layer}.intermediate.sum"));
        seen.values[input.index()] = range(-40.0, 30.0);
        let ranges = (0..256).map(|j| match j % 64 {
            0 => 40.0,
            1..=8 => 9.0,
            _ => 0.3,
        });
        seen.columns.insert(input, ranges.collect());
    }
    let plan = seen.plan();
    let found = |name: &str| -> Vec<_> {
        let classes = classes(&plan, &seen, name).iter();
        let told = classes.map(|class| {
            let lookup = &class.lookup;
            let cells = (lookup.index_bits, lookup.fraction);
            (class.columns, cells, lookup.edge)
        });
        told.collect()
    };
    // Up to ±64 in cells of 1/8; four of them, and twelve of the next.
    let wide = [(16, (10, 3), [32; 2]), (32, (10, 5), [32; 2])];
    let [first, others] = [(10, 6), (9, 5)].map(|(bits, fraction)| {
        let edge = 1 << (bits - 5);
        (208, (bits, fraction), [edge; 2])
    });
    assert_eq!(found("layer0.intermediate"), [wide[0], wide[1], first]);
    assert_eq!(found("layer1.intermediate"), [wide[0], wide[1], others]);
}

#[test]
fn activations_with_extreme_ranges_have_coarse_cells_and_are_refused_at_last() {
    let mut seen = Calibration::plausible(&shape());
    seen.set("layer0.intermediate.sum", range(-340.0, 1.0));
    let plan = seen.plan();
    let [class] = classes(&plan, &seen, "layer0.intermediate") else {
        panic!("all columns have the same range");
    };
    assert_eq!((class.lookup.index_bits, class.lookup.fraction), (10, 0));
    seen.set("layer0.intermediate.sum", range(-342.0, 1.0));
    assert!(matches!(
        seen.assign(),
        Err(AssignError::TooWide { value, bits: 10, .. }) if value == "layer0.intermediate.sum"
    ));
}

/// Checks that room is what products leave: weights do not get coarser for it.
#[test]
fn room_is_not_taken_from_weights() {
    let mut seen = Calibration::plausible(&shape());
    let mut bits = Vec::new();
    for max_abs in [0.8, 1e-3, 2e-4, 1e-4] {
        seen.weights.fill(WeightRange {
            max_abs,
            mean_max_abs: 1e-5,
            column: 0.3 * max_abs,
            norm: 0.0,
        });
        let plan = seen.plan();
        let map = plan.graph().steps.iter().find_map(|step| match &step.op {
            Op::Linear { terms, output, .. } => Some((terms[0], *output)),
            _ => None,
        });
        let (term, sum) = map.unwrap();
        let (query, finest) = (
            seen.id("layer0.query"),
            Format::fitting(15, max_abs).fraction,
        );
        assert_eq!(plan.graph().accumulator_of(query), sum);
        bits.push(plan.scale(query).format().unwrap().bits);
        let room = plan.scale(sum).fraction() - plan.scale(term.input).fraction();
        assert_eq!(plan.weight_scale(term.weight).fraction(), finest.min(room));
        assert!(room >= finest || bits.last() == Some(&18), "{max_abs}");
    }
    assert_eq!((bits[0], bits[3]), (20, 18));
}

#[test]
fn sums_of_squares_reach_four_times_what_was_seen_unless_small_ones_would_suffer() {
    let limit = (1u64 << (K - 1)) as f64;
    for (least, roomy) in [(50.0, true), (0.01, false)] {
        let mut seen = Calibration::plausible(&shape());
        let name = "layer1.output_norm.squares";
        seen.set(name, range(least, 300.0));
        let plan = seen.plan();
        let fraction = plan.scale(seen.id(name)).fraction();
        let reach = limit * f64::from(-fraction).exp2();
        assert!(reach >= MARGIN * MARGIN * 300.0);
        assert_eq!(reach >= ROOM * 300.0, roomy, "{reach}");
    }
}

#[test]
fn what_is_not_finite_is_refused_by_name() {
    for bad in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let mut seen = Calibration::plausible(&shape());
        let mut value = range(-1.0, 1.0);
        // What comes later does not hide a value that is not a number.
        value.record([0.5, bad, 0.25]);
        value.record([0.0, 1.0]);
        seen.set("layer0.intermediate.sum", value);
        let value = "layer0.intermediate.sum".to_owned();
        assert_eq!(seen.assign(), Err(AssignError::NotFinite { value }));
    }
    let mut seen = Calibration::plausible(&shape());
    seen.set("logits", Observation::EMPTY);
    assert!(matches!(
        seen.assign(),
        Err(AssignError::NotFinite { value }) if value == "logits"
    ));
}

#[test]
fn what_is_too_wide_is_refused_by_name() {
    for (name, fits, too_wide, limit) in [
        ("pooler.sum", 5_400.0, 5_500.0, 24),
        ("layer0.scores", 890.0, 910.0, 10),
    ] {
        let mut seen = Calibration::plausible(&shape());
        seen.set(name, range(-fits, fits));
        let scales = seen.assign().unwrap();
        Plan::new(&shape(), 8, scales).unwrap();
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
fn outliers_in_front_of_a_layer_norm_still_give_a_plan() {
    for outlier in [220.0, 5e3, 1e6] {
        let mut seen = Calibration::plausible(&shape());
        let squares = outlier * outlier + 63.0;
        for name in ["layer0.output.sum", "layer0.output_norm.centred"] {
            seen.set(name, range(-outlier, 10.0));
        }
        seen.set("layer0.output_norm.squares", range(50.0, squares));
        let plan = seen.plan();
        let id = |name: &str| seen.id(name);
        // The integers' sum of squares stays in half of the residues, margin and all.
        let Scale::Accumulator { fraction, .. } = plan.scale(id("layer0.output_norm.squares"))
        else {
            panic!("squares are an accumulator");
        };
        let largest = MARGIN * squares * f64::from(fraction).exp2();
        assert!(largest < (1u64 << (K - 1)) as f64, "{outlier}: {largest}");
        let centred = plan.scale(id("layer0.output_norm.centred"));
        assert!(centred.format().unwrap().max_real() >= MARGIN * outlier);
        assert!(fraction >= 2 * centred.fraction());
    }
}

#[test]
fn a_large_epsilon_has_room_in_the_sum_of_squares() {
    let mut shape = shape();
    shape.epsilon = 0.5;
    let mut seen = Calibration::plausible(&shape);
    seen.set("embeddings_norm.squares", range(1e-4, 2e-4));
    let fraction = seen.plan().scale(seen.id("embeddings_norm.squares"));
    let epsilon = 0.5 * 64.0 * f64::from(fraction.fraction()).exp2();
    assert!(epsilon < (1u64 << (K - 1)) as f64);
}

/// Checks that the last sixteenth of a table on either side raises the flag, and nothing that was
/// seen does.
#[test]
fn an_activation_is_flagged_before_its_index_ends() {
    for (layer, reached) in [0.3, 2.0, 5.0, 10.0, 30.0]
        .into_iter()
        .flat_map(|r| [(0, r), (1, r)])
    {
        let mut seen = Calibration::plausible(&shape());
        let name = format!("layer{layer}.intermediate");
        seen.set(&format!("{name}.sum"), range(-reached, reached / 2.0));
        let plan = seen.plan();
        for class in classes(&plan, &seen, &name) {
            let lookup = &class.lookup;
            let cells = (reached * f64::from(lookup.fraction).exp2()).ceil() as i64;
            let half = 1i64 << (lookup.index_bits - 1);
            let inner = half - half / 16;
            assert!(cells < inner && (-inner..inner).all(|index| !lookup.flag(index)));
            for index in [-half, -inner - 1, inner, half - 1] {
                assert!(lookup.flag(index), "{reached}: {index} of {half}");
            }
        }
    }
}

#[test]
fn tiny_queries_and_keys_give_a_plan() {
    // Together finer than the scores that they are multiplied to.
    let mut seen = Calibration::plausible(&shape());
    for name in ["layer0.query.sum", "layer0.key.sum"] {
        seen.set(name, range(-1e-5, 1e-5));
    }
    seen.set("layer0.scores", range(-1e-8, 1e-8));
    let plan = seen.plan();
    let fraction = |name: &str| plan.scale(seen.id(name)).fraction();
    let product = fraction("layer0.query") + fraction("layer0.key");
    assert_eq!(product, fraction("layer0.scores"));
}

#[test]
fn looked_up_columns_stay_within_their_length_and_diagonals_have_one_scale() {
    for column in [0.001, 1.5, 40.0] {
        let mut seen = Calibration::plausible(&shape());
        seen.weights
            .iter_mut()
            .for_each(|range| range.column = column);
        let plan = seen.plan();
        let mut diagonals = 0;
        for step in &plan.graph().steps {
            let Op::Linear { terms, .. } = &step.op else {
                continue;
            };
            for term in terms {
                let scale = plan.weight_scale(term.weight);
                if let WeightScale::Diagonal { gain, mean } = scale {
                    assert_eq!(gain, mean);
                    diagonals += 1;
                }
                let length = column * f64::from(scale.fraction()).exp2();
                let most = match plan.graph().is_revealed(step.output()) {
                    true => OUTPUT_COLUMN_LENGTH as f64,
                    false => COLUMN_LENGTH as f64,
                };
                assert!(length <= most, "{length}");
                // Unless something else is the limit, at least nearly half of it is used.
                let limited = length > 0.45 * most;
                assert!(column < 40.0 || limited, "{length}");
            }
        }
        assert!(diagonals > 0);
    }
}

/// Checks that what a product errs by is less than a unit of what is revealed, and that finer plans
/// are refused.
#[test]
fn outputs_are_no_finer_than_what_products_err_by() {
    let plan = Calibration::plausible(&shape()).plan();
    let output = plan.graph().outputs[0];
    let sum = plan.graph().accumulator_of(output);
    let Op::Linear { terms, .. } = &plan.graph().maker(sum).op else {
        unreachable!("a classifier ends with a linear step");
    };
    let product = plan.term_fractions(&terms[0]).0;
    let fraction = plan.scale(output).fraction();
    assert!(fraction <= product - 15, "{fraction} {product}");
    // Made by hand, a bit finer than that.
    let mut scales = plan.scales().clone();
    let finer = product - 15 + 1 - fraction;
    scales.values[output.index()] = match plan.scale(output) {
        Scale::Fixed { bits, fraction } => Scale::Fixed {
            bits: bits + finer as u32,
            fraction: fraction + finer,
        },
        Scale::Accumulator { .. } | Scale::Small { .. } => unreachable!("an output is fixed"),
    };
    scales.values[sum.index()] = match plan.scale(sum) {
        Scale::Accumulator {
            fraction,
            ring_bits,
        } => Scale::Accumulator {
            fraction,
            ring_bits: ring_bits + finer as u32,
        },
        Scale::Small { .. } | Scale::Fixed { .. } => unreachable!("a sum is an accumulator"),
    };
    let error = Plan::new(&shape(), 4, scales).unwrap_err().to_string();
    assert!(error.contains("fractional bits of its products"), "{error}");
}

/// Checks that a table whose rows share a strong direction is coarser: its largest singular value
/// bounds what its shares tell.
#[test]
fn a_table_of_a_large_norm_is_coarser() {
    let table_fraction = |norm: f64| {
        let mut seen = Calibration::plausible(&shape());
        let Op::Embed { table, .. } = seen.graph.steps[0].op else {
            unreachable!("the first step embeds");
        };
        seen.weights[table.index()].norm = norm;
        seen.plan().weight_scale(table).fraction()
    };
    let free = table_fraction(1.0);
    let bound = table_fraction(500.0);
    assert!(bound < free);
    assert!(500.0 * f64::from(bound).exp2() <= f64::from(3 << 18));
}

/// Checks that a one in a one-hot row is a large number, so that the low bits of a whole vocabulary
/// do not add up to an error; plans in which it would be a small one are refused.
#[test]
fn one_hot_inputs_carry_a_scale() {
    let plan = Calibration::plausible(&shape()).plan();
    let Op::Embed { table, output, .. } = plan.graph().steps[0].op else {
        unreachable!("the first step embeds");
    };
    let room = plan.shift(plan.weight_scale(table).fraction(), output);
    assert_eq!(plan.one_hot_bits(table, output), room.min(23));
    assert!(plan.one_hot_bits(table, output) >= 18);
    let mut scales = plan.scales().clone();
    let WeightScale::Dense { fraction } = &mut scales.weights[table.index()] else {
        unreachable!("a table is dense");
    };
    *fraction += room as i32 - 17;
    let error = Plan::new(&shape(), 4, scales).unwrap_err().to_string();
    assert!(error.contains("carries 17 bits"), "{error}");
}

/// Checks that heads are looked up as they are if their spans and the widths of their maxima allow
/// it, in cells as fine as these allow; sums of powers fit their ring, and the lowest row has
/// enough bits.
#[test]
fn heads_are_placed_by_their_ranges() {
    let mut shape = shape();
    shape.positions = 512;
    let of = |min: f64, min_row_max: f64, max: f64| Observation {
        min,
        max,
        min_row_max,
    };
    // Finest cells; coarser; coarsest; too wide a span; maxima too far apart.
    let heads = [
        (of(-10.0, 0.0, 8.0), Some(4)),
        (of(-40.0, -4.0, 0.0), Some(3)),
        (of(-70.0, 5.0, 20.0), Some(2)),
        (of(-80.0, 10.0, 20.0), None),
    ];
    let apart = (of(-10.0, -9.0, 8.0), None);
    for changed in [heads[0], apart] {
        let mut heads = heads;
        heads[0] = changed;
        let mut seen = Calibration::plausible(&shape);
        let scores = seen.id("layer1.scores");
        seen.set("layer1.scores", of(-80.0, -9.0, 20.0));
        let mut told = primer_plan::assign::Observations::of(seen.values.clone());
        told.by_head[scores.index()] = heads.iter().map(|(seen, _)| *seen).collect();
        let scales = assign(&seen.graph, &told, &seen.weights).unwrap();
        let plan = Plan::new(&shape, 512, scales).unwrap();
        let id = |name: &str| {
            let mut ids = plan.graph().value_ids();
            ids.find(|id| plan.graph().value(*id).name == name).unwrap()
        };
        let powers = plan.powers(id("layer1.exponents")).unwrap();
        for (head, (seen, fraction)) in heads.iter().enumerate() {
            let (class, placed) = powers.class(head);
            assert_eq!(class.measured, fraction.is_none(), "head {head}");
            let Some(fraction) = *fraction else {
                continue;
            };
            let lookup = &class.lookup;
            assert_eq!(lookup.fraction, fraction, "head {head}");
            // The flags begin beyond all that was seen, and before the end of the index.
            let cells = f64::from(fraction).exp2();
            let index = |score: f64| (score * cells).round() as i64 + placed.offset;
            let half = 1i64 << (lookup.index_bits - 1);
            for score in [seen.min, seen.max] {
                assert!((-half..half).contains(&index(score)), "head {head}");
                assert!(!lookup.flag(index(score)), "head {head}");
            }
            assert!(lookup.flag(half - 1) && lookup.flag(-half));
            let lowest = lookup.tables[0].at(index(seen.min_row_max - 2.0));
            assert!(lowest >= 240, "head {head}: {lowest}");
        }
        let measured = plan.measured_heads(id("layer1.scores"));
        let expected = heads.iter().enumerate().filter(|(_, (_, f))| f.is_none());
        assert_eq!(measured, expected.map(|(head, _)| head).collect::<Vec<_>>());
        // As many powers as a row can have, all as large as those that raise no flag.
        let totals = plan.scale(id("layer1.totals")).truncation().unwrap();
        assert!(totals.holds(512 << 28));
    }
}
