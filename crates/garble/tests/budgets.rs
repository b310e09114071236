//! The gate budgets of the design, and the byte formulas.

use primer_garble::circuit::{Circuit, LANES};
use primer_garble::measure::measure;
use primer_garble::stop::StopCircuit;
use primer_plan::function::{
    Activation, CoarseMaximum, Function, Gelu, InverseRoot, Reciprocal, Softmax, Tanh,
};
use std::path::Path;
use std::time::Duration;

fn stop(function: Function, row: usize) -> StopCircuit {
    StopCircuit::new(&function, row).unwrap()
}

fn gates(function: Function, row: usize) -> usize {
    stop(function, row).circuit().cost().and_gates
}

/// Returns one row of the page's table: gates, projections and bytes of an instance, for each of
/// its `row` elements.
fn page_row(name: &str, parameters: &str, stop: &StopCircuit, row: usize) -> String {
    let cost = stop.circuit().cost();
    let bytes = (256 * cost.and_gates + 41 * cost.projections + cost.reveals) as f64 / 8.0;
    let each = |number: f64| match row {
        1 => format!("{number:.0}"),
        _ => format!("{:.1} each", number / row as f64),
    };
    format!(
        "| {name} | {parameters} | {} | {} | {} | {} |\n",
        each(cost.and_gates as f64),
        each(cost.projections as f64),
        cost.reveals,
        each(bytes),
    )
}

/// Checks the table of `docs/garbling.md`. After an intended change,
/// `PRIMER_BLESS=1 cargo test -p primer-garble --test budgets page` writes it again.
#[test]
fn counts_of_the_page() {
    const BEGIN: &str = "<!-- gates: begin -->\n";
    const END: &str = "<!-- gates: end -->";
    let mut table = String::from(
        "| stop | parameters | AND gates | projections | bits revealed | bytes of tables and rows \
         |\n|---|---|---|---|---|---|\n",
    );
    for (name, activation, m, g) in [
        ("GELU (erf)", Activation::GeluErf, 15, 8),
        ("GELU (erf)", Activation::GeluErf, 15, 9),
        ("GELU (erf)", Activation::GeluErf, 16, 9),
        ("GELU (tanh)", Activation::GeluTanh, 16, 9),
        (
            "**GELU (erf), what the plan assigns**",
            Activation::GeluErf,
            16,
            10,
        ),
        ("GELU (erf)", Activation::GeluErf, 16, 11),
        ("GELU (erf)", Activation::GeluErf, 16, 12),
    ] {
        let gelu = stop(Function::Gelu(Gelu::new(activation, m, 8, g)), 1);
        let parameters = format!("{m}-bit ring, fraction 8 → {g}");
        table += &page_row(name, &parameters, &gelu, 1);
    }
    let relu = Function::Relu {
        ring_bits: 16,
        fraction: 8,
    };
    table += &page_row("ReLU", "16-bit ring", &stop(relu, 1), 1);
    for (m, f, n) in [
        (15, 5, 8),
        (15, 5, 30),
        (15, 5, 128),
        (15, 5, 512),
        (16, 5, 30),
        (16, 6, 30),
        (16, 7, 30),
    ] {
        let softmax = stop(Function::Softmax(Softmax::new(m, f, 0, 0)), n);
        let (name, parameters) = (
            format!("softmax, n = {n}"),
            format!("{m}-bit ring, fraction {f}"),
        );
        table += &page_row(&name, &parameters, &softmax, n);
    }
    for m in [6, 7] {
        let parameters = format!("{m}-bit ring");
        let maximum = stop(coarse(m, 2), 30);
        table += &page_row("coarse maximum, n = 30", &parameters, &maximum, 30);
    }
    for (m, dropped) in [(16, 0), (20, 0), (24, 0), (38, 9)] {
        let reciprocal = Reciprocal::new(m, 1.0, dropped, 7);
        let reciprocal = stop(Function::Reciprocal(reciprocal), 1);
        table += &page_row("reciprocal", &format!("{m}-bit ring"), &reciprocal, 1);
    }
    for m in [16, 20, 22, 24] {
        let root = stop(Function::InverseRoot(InverseRoot::new(m, 1.0)), 1);
        table += &page_row("reciprocal root", &format!("{m}-bit ring"), &root, 1);
    }
    let tanh = stop(Function::Tanh(Tanh::new(16, 10)), 1);
    table += &page_row("tanh", "16-bit ring, fraction 10", &tanh, 1);
    for n in [2, 3, 10] {
        let largest = StopCircuit::argmax(16, n).unwrap();
        table += &page_row(&format!("argmax of {n}"), "16-bit ring", &largest, 1);
    }
    let compared = StopCircuit::equality(40);
    table += &page_row("comparison of range flags", "40 parities", &compared, 1);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/garbling.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a table");
    let (kept, after) = rest.split_once(END).expect("the table has an end");
    if std::env::var_os("PRIMER_BLESS").is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(table, kept, "docs/garbling.md is stale; see this test");
    }
}

#[test]
fn gelu_stays_within_its_budget() {
    for activation in [Activation::GeluErf, Activation::GeluTanh] {
        for m in 9..=16 {
            for f in 6..=m as i32 - 3 {
                for g in f..=f + 4 {
                    if g <= 12 {
                        let count = gates(Function::Gelu(Gelu::new(activation, m, f, g)), 1);
                        assert!(count <= 110, "{count} gates for {m} {f} {g}");
                    }
                }
            }
        }
    }
}

#[test]
fn softmax_stays_within_its_budget() {
    for (m, f) in [(15, 5), (16, 5), (16, 6)] {
        for n in [1, 2, 16, 30, 31, 64, 128] {
            let count = gates(Function::Softmax(Softmax::new(m, f, 0, 0)), n);
            // A few gates belong to the row, not to its elements.
            assert!(
                count <= 280 * n + 60,
                "{count} gates for {n} elements of {m}, {f}"
            );
            if n == 30 {
                assert!(count <= 280 * n);
            }
        }
    }
}

fn coarse(ring_bits: u32, near_bits: u32) -> Function {
    Function::CoarseMaximum(CoarseMaximum {
        ring_bits,
        fraction: -2,
        near_bits,
        far: (1 << near_bits) + 1,
        mask: 0,
        offset: 0,
    })
}

/// Checks what is left of softmax where powers are looked up: the reciprocal of a row's sum, and,
/// in a head that is measured, the maximum of a row with its distances.
#[test]
fn a_row_takes_a_reciprocal_and_a_measured_score_at_most_forty_gates() {
    let reciprocal = Reciprocal::new(38, 1.0, 9, 7);
    assert_eq!(gates(Function::Reciprocal(reciprocal), 1), 405);
    for m in [6, 7] {
        for near in [2, 3] {
            for n in [30, 32, 64, 128, 512] {
                let maximum = gates(coarse(m, near), n);
                // No comparison for the first score.
                assert_eq!(maximum, (5 * m as usize - 3) * n - 2 * m as usize);
                assert!(
                    maximum <= 40 * n,
                    "{maximum} gates for {n} scores of {m} bits"
                );
            }
        }
    }
}

#[test]
fn the_measured_figures_are_within_the_budgets() {
    let figures = measure(Duration::ZERO);
    assert_eq!(figures.gelu_and_gates, 94);
    assert_eq!(figures.exp_and_gates, 74);
    assert!(figures.exp_and_gates <= 110);
    assert!(figures.softmax_and_gates_per_element <= 280.0);
    assert_eq!(figures.bytes_per_and, 32.0);
    assert!(figures.garble_mand_per_s > 0.0 && figures.evaluate_mand_per_s > 0.0);
}

#[test]
fn bytes_follow_the_formula() {
    let per_batch = |c: &Circuit| c.garbled_len(LANES as u64).unwrap();
    for (stop, reveals) in [
        (
            stop(Function::Gelu(Gelu::new(Activation::GeluErf, 16, 8, 9)), 1),
            0,
        ),
        (stop(Function::Softmax(Softmax::new(15, 5, 0, 0)), 30), 0),
        (StopCircuit::argmax(16, 9).unwrap(), 4),
    ] {
        let cost = stop.circuit().cost();
        assert_eq!(cost.reveals, reveals);
        let formula = 256 * cost.and_gates + 41 * cost.projections + cost.reveals;
        assert_eq!(per_batch(stop.circuit()), formula as u64);
        assert_eq!(
            stop.circuit().garbled_len(80_000),
            Some(10_000 * formula as u64)
        );
        assert_eq!(stop.circuit().garbled_len(u64::MAX), None);
    }
}

#[test]
fn both_parties_build_the_same_circuit() {
    // Nothing may depend on the order of a hash map: each party builds its circuits on its own.
    let softmax = || stop(Function::Softmax(Softmax::new(15, 5, 0, 0)), 17);
    assert!(softmax() == softmax());
    let tanh = || stop(Function::Tanh(Tanh::new(16, 10)), 1);
    assert!(tanh() == tanh());
}

#[test]
fn working_sets_stay_small() {
    let gelu = stop(Function::Gelu(Gelu::new(Activation::GeluErf, 16, 8, 9)), 1);
    // 128 bytes a slot: within a first-level cache of 32 KiB.
    assert!(gelu.circuit().slots() <= 128, "{}", gelu.circuit().slots());
    let softmax = stop(Function::Softmax(Softmax::new(15, 5, 0, 0)), 30);
    assert!(
        softmax.circuit().slots() <= 1024,
        "{}",
        softmax.circuit().slots()
    );
}
