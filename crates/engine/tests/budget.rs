//! What an inference costs in bytes, round trips and AND gates, kept exactly.
//!
//! These counts follow from the plan alone (other tests compare them with what a channel and a
//! garbler really did), so they are the same on every machine, and a change that makes anything
//! dearer shows here before it shows on a clock. A change that is meant:
//! `PRIMER_BLESS=1 cargo test -p primer-engine --test budget` writes the new counts into
//! `budget.txt`, and the difference belongs into the same commit.

use primer_engine::{Program, ProtocolError, Reveal, cost};
use primer_model::synthetic;
use primer_plan::assign::{Columns, Observation, Observations, WeightRange, assign};
use primer_plan::graph::{Graph, Op, StopFunction};
use primer_plan::plan::Plan;
use primer_plan::scales::WEIGHT_BITS;
use primer_plan::shape::{Head, Pooling, Shape};
use primer_rlwe::error::HeError;
use std::fmt::Write;
use std::path::Path;

/// Makes a plan with scales from ranges such as trained models have.
fn plan(shape: &Shape, tokens: usize) -> Plan {
    let graph = Graph::new(shape, tokens);
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
    let scales = assign(&graph, &seen, &weights).unwrap();
    Plan::new(shape, tokens, scales).unwrap()
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

fn program(shape: &Shape, tokens: usize) -> Program {
    Program::received(plan(shape, tokens), Reveal::Outputs).unwrap()
}

const fn range(min: f64, max: f64) -> Observation {
    Observation {
        min,
        max,
        min_row_max: max,
    }
}

fn line(out: &mut String, (layers, hidden, heads): (usize, usize, usize), tokens: usize) {
    let shape = synthetic::bert_shape(layers, hidden, heads);
    let program = program(&shape, tokens);
    let total = cost::parts(&program).total();
    let stored = cost::stored(&program);
    let bytes = &total.bytes;
    writeln!(
        out,
        "{layers:>2} x {hidden:>4}, {tokens:>3} tokens, lean: offline {} up {} down, \
         online {} up {} down, {} round trips, {} AND gates, stored {} and {}",
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

/// Checks that what an operator reads about bits is what programs say of themselves.
#[test]
fn the_operators_table_of_bits_follows_from_plans() {
    let labels = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
    let tags = || Head::Tokens { labels: labels(9) };
    let sentence = Head::Sentence {
        pooling: Pooling::Mean,
        normalised: true,
    };
    let (outputs, label) = (Reveal::Outputs, Reveal::Label);
    let rows = [
        (
            "two labels",
            "scores",
            Head::classify(labels(2)),
            30,
            outputs,
        ),
        ("two labels", "label", Head::classify(labels(2)), 30, label),
        (
            "three labels",
            "scores",
            Head::classify(labels(3)),
            30,
            outputs,
        ),
        (
            "three labels",
            "label",
            Head::classify(labels(3)),
            30,
            label,
        ),
        ("tags of 30 tokens, 9 labels", "scores", tags(), 30, outputs),
        ("tags of 30 tokens, 9 labels", "labels", tags(), 30, label),
        (
            "a span among 384 tokens",
            "scores",
            Head::Span,
            384,
            outputs,
        ),
        ("an embedding of 768", "values", sentence, 30, outputs),
    ];
    let weights = 85_000_000 * u64::from(WEIGHT_BITS);
    let mut table = String::new();
    for (model, output, head, tokens, reveal) in rows {
        let mut shape = synthetic::bert_shape(1, 768, 12);
        shape.head = head;
        let plan = plan(&shape, tokens);
        let bits = Program::received(plan, reveal).unwrap().answer_bits();
        let (bits, answers) = (grouped(bits), grouped(weights / bits));
        writeln!(table, "| {model} | {output} | {bits} | {answers} |").unwrap();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table),
        "docs/operations.md must have\n{table}"
    );
}

/// Writes a number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

#[test]
fn bytes_rounds_and_gates_are_what_they_were() {
    let mut found = String::new();
    line(&mut found, (12, 768, 12), 30);
    // The paper's other models, and MiniLM.
    for shape in [
        (3, 768, 12),
        (6, 768, 12),
        (12, 1024, 16),
        (24, 1024, 16),
        (6, 384, 12),
    ] {
        line(&mut found, shape, 30);
    }
    for tokens in [8, 16, 64, 128, 300] {
        line(&mut found, (1, 768, 12), tokens);
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
    let total = |layers: usize| {
        let shape = synthetic::bert_shape(layers, 768, 12);
        let parts = cost::parts(&program(&shape, 30));
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
        assert_eq!(four[i] - two[i], 2 * (two[i] - one[i]), "{i}");
    }
}

/// Checks that products of secrets have five primes, for any model, and need no other keys.
#[test]
fn one_set_of_parameters_serves_all_models() {
    for ((layers, hidden, heads), tokens) in [((2, 128, 2), 32), ((24, 1024, 16), 512)] {
        let shape = synthetic::bert_shape(layers, hidden, heads);
        let program = program(&shape, tokens);
        let sets = program.key_needs().sets().iter();
        let found: Vec<usize> = sets.map(|set| set.params().data_primes()).collect();
        assert_eq!(found, [5], "{layers} x {hidden}, {tokens} tokens");
    }
}

/// Checks how often an inference has a wrong share: the table of docs/rlwe.md, section 7, rounded
/// up.
#[test]
fn wrong_shares_are_as_rare_as_documented() {
    for ((layers, hidden, heads), tokens, bits) in [
        ((2, 128, 2), 32, -39.7),
        ((6, 384, 12), 30, -37.2),
        ((12, 768, 12), 30, -35.8),
        ((12, 768, 12), 128, -34.6),
        ((12, 768, 12), 512, -34.1),
        ((24, 1024, 16), 30, -34.5),
        ((24, 1024, 16), 512, -32.8),
    ] {
        let shape = synthetic::bert_shape(layers, hidden, heads);
        let odds = program(&shape, tokens).odds().log2();
        println!("{layers} x {hidden}, {tokens} tokens: 2^{odds:.2}");
        assert!(odds < bits && odds > bits - 0.5, "{odds}");
    }
    // Eight bundles fill the tokens that are prepared together; far more than that is refused.
    let base = program(&synthetic::bert_shape(12, 768, 12), 32);
    assert!(cost::parts_together(&base, 8).is_ok());
    let mut shape = synthetic::bert_shape(32, 1024, 16);
    // With all words their one-hot rows would be refused before.
    shape.vocab = 1000;
    let large = program(&shape, 512);
    let refused = cost::parts_together(&large, 8).err();
    assert!(
        matches!(refused, Some(ProtocolError::He(HeError::Odds { .. }))),
        "{refused:?}"
    );
}
