//! Every family and head against outputs of Hugging Face's own code, for the weights of any graph:
//! single precision within a thousandth, integers within a twentieth.

use super::{Rewrite, golden_input, lines, numbers, repository, weights_of};
use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Workspace};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_plan::shape::Head;
use primer_ring::matrix::Matrix;
use primer_text::{Input, TextEncoder};
use serde_json::Value;
use std::path::Path;

pub const FIXTURES: [&str; 5] = [
    "distilbert",
    "electra",
    "roberta-ner",
    "sentence",
    "xlm-roberta",
];
pub const SHARED: [&str; 7] = [
    "bert-ner",
    "distilbert",
    "distilbert-qa",
    "electra",
    "roberta",
    "roberta-ner",
    "sentence",
];

/// Returns the largest difference between a model's outputs and a golden line's.
fn difference(head: &Head, line: &Value, output: &Matrix<f64>, length: usize) -> f64 {
    let most = |golden: &Value, ours: &[f64]| {
        let golden = numbers(golden);
        assert_eq!(golden.len(), ours.len());
        let pairs = golden.iter().zip(ours);
        pairs.map(|(g, o)| (g - o).abs()).fold(0.0, f64::max)
    };
    match head {
        Head::Classify { .. } => most(&line["logits"], output.row(0)),
        Head::Tokens { .. } => {
            let golden = line["logits"].as_array().unwrap();
            assert_eq!(golden.len(), length);
            let rows = golden.iter().enumerate();
            rows.map(|(t, row)| most(row, output.row(t)))
                .fold(0.0, f64::max)
        }
        Head::Span => {
            let column = |c| (0..length).map(|t| output.get(t, c)).collect::<Vec<f64>>();
            most(&line["start_logits"], &column(0)).max(most(&line["end_logits"], &column(1)))
        }
        // What the client makes of a sum: of any multiple of the mean.
        Head::Sentence { .. } => {
            let norm = output.row(0).iter().map(|v| v * v).sum::<f64>().sqrt();
            let vector: Vec<f64> = output.row(0).iter().map(|v| v / norm).collect();
            most(&line["embedding"], &vector)
        }
        Head::Encoder { .. } => unreachable!("there is no such golden file"),
    }
}

fn in_float(weights: &FloatWeights, input: &Input) -> Matrix<f64> {
    let graph = weights.graph(input.tokens());
    float::run(&graph, weights, input, &mut NoObserver)[0].map(|v| f64::from(*v))
}

/// Checks a model in single precision against its golden file.
pub fn matches_in_float(dir: &Path, rewrite: Rewrite) {
    let (folded, text) = weights_of(dir);
    let weights = rewrite(&folded);
    let head = weights.shape.head.clone();
    for line in lines(&dir.join("golden.jsonl")) {
        let mut input = golden_input(&text, &line, weights.shape.max_tokens());
        for padding in [0, 5] {
            input.pad_to(input.tokens() + padding, text.padding());
            let found = in_float(&weights, &input);
            let off = difference(&head, &line, &found, input.length);
            assert!(off < 1e-3, "{}: {off}", dir.display());
        }
    }
}

fn quantised(weights: &FloatWeights, text: &TextEncoder) -> IntModel {
    let calibration = std::fs::read_to_string(repository("models/calibration.txt")).unwrap();
    let some: Vec<&str> = calibration.lines().step_by(10).collect();
    let scales = calibrate(weights, text, &some.join("\n"), |_, _| ()).unwrap();
    IntModel::quantise(weights, scales).unwrap()
}

/// Checks a model in integers against its golden file.
pub fn matches_in_integers(dir: &Path, rewrite: Rewrite) {
    let (folded, text) = weights_of(dir);
    let model = quantised(&rewrite(&folded), &text);
    let head = folded.shape.head.clone();
    for line in lines(&dir.join("golden.jsonl")) {
        let mut input = golden_input(&text, &line, folded.shape.max_tokens());
        input.pad_to(input.tokens() + 3, text.padding());
        let plan = model.plan(input.tokens()).unwrap();
        let mut rounded = fixed::Truncate::Exact;
        let mut workspace = Workspace::default();
        let found = fixed::run(
            &plan,
            &model,
            &input,
            &mut rounded,
            &mut fixed::Errors::None,
            &mut workspace,
        );
        let off = difference(&head, &line, &found.reals[0], input.length);
        assert!(off < 0.05, "{}: {off}", dir.display());
        assert_eq!(found.out_of_range, [], "{}", dir.display());
    }
}
