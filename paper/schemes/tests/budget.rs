//! What an inference costs in bytes, round trips and AND gates, kept exactly.
//!
//! These counts follow from the plan alone (other tests compare them with what a channel and a
//! garbler really did), so they are the same on every machine, and a change that makes anything
//! dearer shows here before it shows on a clock. A change that is meant:
//! `PRIMER_BLESS=1 cargo test -p primer-paper --test budget` writes the new counts into
//! `budget.txt`, and the difference belongs into the same commit.

use primer_engine::Reveal;
use primer_model::synthetic;
use primer_paper::{Program, Scheme, cost};
use primer_plan::assign::{Columns, Observation, Observations, WeightRange, assign_by};
use primer_plan::graph::{Graph, Op, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::shape::Shape;
use std::fmt::Write;
use std::path::Path;

/// Makes a plan with scales from ranges such as trained models have.
fn plan(shape: &Shape, tokens: usize, scheme: Scheme) -> Plan {
    let graph = scheme.recipe().form.graph(shape, tokens);
    let mut seen: Vec<Observation> = graph.values.iter().map(|_| range(-8.0, 8.0)).collect();
    for step in &graph.steps {
        let id = step.output().index();
        match &step.op {
            Op::SquareSum { .. } => seen[id] = range(0.5, 4.0 * shape.hidden as f64),
            Op::Scores { .. } | Op::MergedScores { .. } => seen[id] = range(-20.0, 20.0),
            Op::Stop { function, .. } => match function {
                StopFunction::Softmax => seen[id] = range(0.0, 1.0),
                StopFunction::InverseRoot => seen[id] = range(0.1, 2.0),
                StopFunction::Tanh => seen[id] = range(-1.0, 1.0),
                StopFunction::Summary => {}
                StopFunction::Power | StopFunction::Reciprocal => {
                    seen[id] = range(0.0, 1.0);
                }
                StopFunction::Requantise
                | StopFunction::Activation
                | StopFunction::CoarseMaximum => {}
            },
            _ => {}
        }
    }
    let weights: Vec<WeightRange> = graph
        .weights
        .iter()
        .map(|_| WeightRange {
            max_abs: 1.0,
            mean_max_abs: 0.01,
            column: 1.5,
            norm: 0.0,
        })
        .collect();
    let seen = Observations {
        columns: columns(&graph),
        ..Observations::of(seen)
    };
    let design = scheme.recipe().form.design();
    let scales = assign_by(design, &graph, &seen, &weights).unwrap();
    Plan::by(design, shape, tokens, scales).unwrap()
}

/// Returns the inputs of activations: one column in twenty reaches further than the others.
fn columns(graph: &Graph) -> Columns {
    let inputs = graph.steps.iter().filter_map(|step| match step.op {
        Op::Stop {
            function: StopFunction::Activation,
            input,
            ..
        } => Some(input),
        _ => None,
    });
    let range = |j: usize| if j.is_multiple_of(20) { 8.0 } else { 4.0 };
    inputs
        .map(|id| (id, (0..graph.value(id).cols).map(range).collect()))
        .collect()
}

fn program(shape: &Shape, tokens: usize, scheme: Scheme) -> Program {
    Program::received(plan(shape, tokens, scheme), scheme, Reveal::Outputs).unwrap()
}

const fn range(min: f64, max: f64) -> Observation {
    Observation {
        min,
        max,
        min_row_max: max,
    }
}

fn line(
    out: &mut String,
    (layers, hidden, heads): (usize, usize, usize),
    tokens: usize,
    scheme: Scheme,
) {
    let shape = synthetic::bert_shape(layers, hidden, heads);
    let program = program(&shape, tokens, scheme);
    let total = cost::parts(&program).total();
    let stored = cost::stored(&program);
    let bytes = &total.bytes;
    writeln!(
        out,
        "{layers:>2} x {hidden:>4}, {tokens:>3} tokens, {:<4}: offline {} up {} down, \
         online {} up {} down, {} round trips, {} AND gates, stored {} and {}",
        scheme.name(),
        bytes.offline_up,
        bytes.offline_down,
        bytes.online_up,
        bytes.online_down,
        total.rounds_online,
        total.and_gates,
        stored.client,
        stored.server,
    )
    .unwrap();
}

#[test]
fn bytes_rounds_and_gates_are_what_they_were() {
    let mut found = String::new();
    for scheme in Scheme::ALL {
        line(&mut found, (12, 768, 12), 30, scheme);
    }
    // The paper's other models, and MiniLM.
    for shape in [
        (3, 768, 12),
        (6, 768, 12),
        (12, 1024, 16),
        (24, 1024, 16),
        (6, 384, 12),
    ] {
        line(&mut found, shape, 30, Scheme::Fp);
        line(&mut found, shape, 30, Scheme::Fpc);
    }
    for tokens in [8, 16, 64, 128, 300] {
        line(&mut found, (1, 768, 12), tokens, Scheme::Fp);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/budget.txt");
    if std::env::var_os("PRIMER_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (found, kept) in found.lines().zip(kept.lines()) {
        assert_eq!(found, kept, "a cost has changed; see the top of this test");
    }
    assert_eq!(found.lines().count(), kept.lines().count());
}

/// Checks that the same number of layers more costs the same more: what extrapolation rests on.
#[test]
fn bytes_rounds_and_gates_are_linear_in_layers() {
    for scheme in Scheme::ALL {
        let total = |layers: usize| {
            let shape = synthetic::bert_shape(layers, 768, 12);
            let parts = cost::parts(&program(&shape, 30, scheme));
            let all = parts.total();
            let b = all.bytes;
            [
                b.offline_up,
                b.offline_down,
                b.online_up,
                b.online_down,
                all.rounds_online,
                all.and_gates,
            ]
        };
        let (one, two, four) = (total(1), total(2), total(4));
        for i in 0..one.len() {
            assert_eq!(
                four[i] - two[i],
                2 * (two[i] - one[i]),
                "{} {i}",
                scheme.name()
            );
        }
    }
}

/// Writes a count with two digits, rounded down: what is promised.
fn count(inferences: f64) -> String {
    if inferences >= 1e12 {
        return format!("over 10^{}", inferences.log10().floor());
    }
    let unit = 10f64.powf((inferences.log10() - 1.0).floor().max(0.0));
    let whole = ((inferences / unit).floor() * unit) as u64;
    let digits = whole.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<&str> = groups.map(|g| std::str::from_utf8(g).unwrap()).collect();
    groups.join(",")
}

/// Computes for how many inferences the statistical promise holds: the table of SECURITY.md, which
/// the same variable rewrites.
#[test]
fn lifetimes_are_those_of_the_security_page() {
    const BEGIN: &str = "<!-- lifetimes: begin -->\n";
    const END: &str = "<!-- lifetimes: end -->";
    let mut table = String::from("| layers × width | vocabulary | tokens |");
    for scheme in Scheme::ALL {
        write!(table, " `{}` |", scheme.name()).unwrap();
    }
    table += "\n|---|---|---|---|---|---|---|\n";
    for ((layers, hidden, heads), vocab, tokens) in [
        ((2, 128, 2), 8_192, 32),
        ((6, 384, 12), 30_522, 32),
        ((12, 768, 12), 30_522, 32),
        ((12, 768, 12), 30_522, 128),
        ((12, 768, 12), 30_522, 512),
        ((12, 768, 12), 50_265, 32),
        ((12, 768, 12), 250_002, 32),
        ((24, 1024, 16), 30_522, 128),
    ] {
        let mut shape = synthetic::bert_shape(layers, hidden, heads);
        shape.vocab = vocab;
        write!(table, "| {layers} × {hidden} | {vocab} | {tokens} |").unwrap();
        for scheme in Scheme::ALL {
            let inferences = program(&shape, tokens, scheme).inferences();
            write!(table, " {} |", count(inferences)).unwrap();
        }
        table.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../SECURITY.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has a table");
    let (kept, after) = rest.split_once(END).expect("the table has an end");
    if std::env::var_os("PRIMER_BLESS").is_some() {
        std::fs::write(&path, [before, BEGIN, &table, END, after].concat()).unwrap();
    } else {
        assert_eq!(
            table, kept,
            "SECURITY.md is stale; see the top of this test"
        );
    }
}
