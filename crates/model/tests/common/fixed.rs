//! The fixed-point reference against the float reference, for the weights of any graph.

use super::{
    RANDOM_MODELS, Rewrite, fixtures, golden_input, lines, numbers, random_model, repository,
    shared, weights_of,
};
use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Errors, Outcome, Truncate, Workspace};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_ring::modulus;
use primer_ring::prg::Prg;
use primer_text::{Input, TextEncoder};
use std::path::Path;

fn calibration() -> String {
    std::fs::read_to_string(repository("models/calibration.txt")).unwrap()
}

/// Loads a model and quantises it.
pub fn prepare(dir: &Path, rewrite: Rewrite) -> (FloatWeights, TextEncoder, IntModel) {
    let (weights, text) = weights_of(dir);
    let weights = rewrite(&weights);
    let scales = calibrate(&weights, &text, &calibration(), |_, _| ()).unwrap();
    let model = IntModel::quantise(&weights, scales).unwrap();
    (weights, text, model)
}

pub fn run(model: &IntModel, input: &Input, seed: Option<u8>) -> Outcome {
    let plan = model.plan(input.tokens()).unwrap();
    let mut workspace = Workspace::default();
    match seed {
        None => {
            let mut truncate = Truncate::Exact;
            fixed::run(
                &plan,
                model,
                input,
                &mut truncate,
                &mut Errors::None,
                &mut workspace,
            )
        }
        Some(seed) => {
            let mut rng = Prg::new(&[seed; 16]);
            let mut shares = |_, _| modulus::random(&mut rng);
            fixed::run(
                &plan,
                model,
                input,
                &mut Truncate::Shares(&mut shares),
                &mut Errors::None,
                &mut workspace,
            )
        }
    }
}

fn float(weights: &FloatWeights, input: &Input) -> Vec<Vec<f64>> {
    let graph = weights.graph(input.tokens());
    let outputs = float::run(&graph, weights, input, &mut NoObserver);
    outputs
        .iter()
        .map(|m| m.data().iter().map(|v| f64::from(*v)).collect())
        .collect()
}

/// Returns the largest difference over the rows that are not padding.
pub fn difference(weights: &FloatWeights, input: &Input, outcome: &Outcome) -> f64 {
    let float = float(weights, input);
    let mut worst: f64 = 0.0;
    for (ours, float) in outcome.reals.iter().zip(&float) {
        let rows = ours.rows().min(input.length);
        let count = rows * ours.cols();
        for (a, b) in ours.data()[..count].iter().zip(float) {
            worst = worst.max((a - b).abs());
        }
    }
    worst
}

/// Checks every kind of small model, padded and not, with exact and with shared truncation.
pub fn check_close_to_float(rewrite: Rewrite, bound: f64) {
    for name in RANDOM_MODELS {
        let dir = random_model(name);
        let (weights, text, model) = prepare(dir.path(), rewrite);
        for line in lines(&fixtures().join(name).join("golden.jsonl")) {
            for padded in [0, 5] {
                let mut input = golden_input(&text, &line, 96);
                input.pad_to(input.tokens() + padded, text.padding());
                for seed in [None, Some(1)] {
                    let outcome = run(&model, &input, seed);
                    let worst = difference(&weights, &input, &outcome);
                    assert!(worst < bound, "{name}, {}: {worst}", line["text"]);
                    assert_eq!(outcome.out_of_range, []);
                }
            }
        }
    }
}

/// Checks the labels of the demo model.
pub fn check_labels(rewrite: Rewrite) {
    let (weights, text, model) = prepare(&repository("models/sst2-demo"), rewrite);
    let mut clear = 0;
    for line in lines(&fixtures().join("sst2-demo.golden.jsonl")) {
        let mut input = golden_input(&text, &line, 128);
        input.pad_to(64, text.padding());
        for seed in [None, Some(9)] {
            let outcome = run(&model, &input, seed);
            assert_eq!(outcome.out_of_range, []);
            let worst = difference(&weights, &input, &outcome);
            assert!(worst < 0.1, "{}: {worst}", line["text"]);
            let (ours, golden) = (outcome.reals[0].row(0), numbers(&line["logits"]));
            if (golden[1] - golden[0]).abs() > 0.5 {
                assert_eq!(ours[1] > ours[0], golden[1] > golden[0], "{}", line["text"]);
                clear += 1;
            }
        }
    }
    assert!(clear >= 40, "{clear} clear cases");
}

/// Checks that the demo model gives the same integers with padding.
pub fn check_padding(rewrite: Rewrite) {
    let (_, text, model) = prepare(&repository("models/sst2-demo"), rewrite);
    let line = &lines(&fixtures().join("sst2-demo.golden.jsonl"))[0];
    let mut input = golden_input(&text, line, 128);
    let bare = run(&model, &input, None).integers;
    input.pad_to(40, text.padding());
    assert_eq!(run(&model, &input, None).integers[0].data(), bare[0].data());
}

/// Checks that a prepared model comes back from its file as it was.
pub fn check_prepared(rewrite: Rewrite) {
    let dir = random_model("random-encoder");
    let (weights, text, model) = prepare(dir.path(), rewrite);
    let path = dir.path().join("prepared");
    model.save(&path).unwrap();
    let back = IntModel::open_by(weights.design(), &path).unwrap();
    assert_eq!(back.scales(), model.scales());
    assert!(back.weights() == model.weights());
    let line = &lines(&fixtures().join("random-encoder/golden.jsonl"))[0];
    let input = golden_input(&text, line, 96);
    assert_eq!(
        run(&back, &input, None).integers[0].data(),
        run(&model, &input, None).integers[0].data()
    );
}

/// Compares labels with those of float on a whole data set. Returns the parts of labels that agree
/// and are right.
fn whole_data_set(dir: &Path, rewrite: Rewrite, seed: Option<u8>) -> Option<(f64, f64, f64)> {
    let data = shared("data/sst2/dev.tsv")?;
    // Float is always that of the model as it came.
    let (weights, _) = weights_of(dir);
    let (_, text, model) = prepare(dir, rewrite);
    let data = std::fs::read_to_string(data).unwrap();
    let (mut n, mut agree, mut right, mut float_right) = (0.0, 0.0, 0.0, 0.0);
    for line in data.lines().skip(1) {
        let (sentence, label) = line.split_once('\t').unwrap();
        let limit = weights.shape.max_tokens().min(text.max_tokens());
        let truncate = primer_text::Truncate::LongestFirst;
        let input = text.encode_padded(sentence, None, limit, truncate).unwrap();
        let outcome = run(&model, &input, seed);
        assert_eq!(outcome.out_of_range, [], "{sentence}");
        let logits = outcome.reals[0].row(0);
        let float = &float(&weights, &input)[0];
        let (ours, theirs) = (logits[1] > logits[0], float[1] > float[0]);
        let gold = label.trim() == "1";
        n += 1.0;
        agree += f64::from(u8::from(ours == theirs));
        right += f64::from(u8::from(ours == gold));
        float_right += f64::from(u8::from(theirs == gold));
    }
    Some((agree / n, right / n, float_right / n))
}

/// Checks that labels agree with those of float on all of SST-2, if it is next to the repository.
pub fn check_sst2(dir: &Path, rewrite: Rewrite, seed: Option<u8>) {
    let Some((agree, right, float)) = whole_data_set(dir, rewrite, seed) else {
        return;
    };
    eprintln!("seed {seed:?}: agreement {agree:.4}, accuracy {right:.4}, float {float:.4}");
    assert!(agree >= 0.99 && right >= float - 0.005);
}
