//! From scores to answers as Hugging Face's own code finds them: its scores of windows of one
//! context are a fixture (`fixtures/make-spans`). And a real span model against its scores and
//! answers, where it lies beside the repository.
#![allow(missing_docs)]

use primer::client::span::{ContextAnswer, characters};
use primer::source::Model;
use primer_model::float::{self, NoObserver};
use primer_text::CharSpan;
use serde_json::Value;
use std::path::Path;

/// Scores of a beginning and an end at each place, and the places.
type Window = (Vec<(f64, f64)>, Vec<CharSpan>);

#[test]
fn answers_and_none_are_hugging_faces_under_every_threshold() {
    let lines = include_str!("fixtures/spans.jsonl");
    let (mut found, mut none) = (0, 0);
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let windows: Vec<Window> = line["windows"]
            .as_array()
            .unwrap()
            .iter()
            .map(window)
            .collect();
        assert!(windows.len() > 1);
        let all = windows
            .iter()
            .map(|(scores, places)| (&scores[..], &places[..]));
        let over = ContextAnswer::over(all).unwrap();
        let golden = line["null_minus_best"].as_f64().unwrap();
        let off = (over.null_score - over.best.score - golden).abs();
        assert!(off < 1e-6, "{}: off by {off}", line["question"]);
        for pair in line["answers"].as_array().unwrap() {
            let span = over.answer(pair[0].as_f64().unwrap());
            let context = line["context"].as_str().unwrap();
            let ours = span.map_or("", |span| characters(context, (span.start, span.end)));
            assert_eq!(ours, pair[1], "{} at {}", line["question"], pair[0]);
            match ours.is_empty() {
                true => none += 1,
                false => found += 1,
            }
        }
    }
    // The fixture tells thresholds apart.
    assert_eq!((found, none), (22, 8));
}

/// Scores of a window's tokens, and where they stand in the context.
fn window(value: &Value) -> Window {
    let column = |name: &str| value[name].as_array().unwrap().iter();
    let number = |v: &Value| v.as_f64().unwrap();
    let scores = column("start").map(number).zip(column("end").map(number));
    let at = |v: &Value| v.as_u64().unwrap() as usize;
    let places = column("places").map(|p| p.is_array().then(|| (at(&p[0]), at(&p[1]))));
    (scores.collect(), places.collect())
}

#[test]
fn spans_of_minilm_are_hugging_faces_where_it_is() {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let golden = shared.join("golden/minilm-squad.squad2-test.jsonl");
    let Ok(lines) = std::fs::read_to_string(&golden) else {
        eprintln!("skipped: {} is not there", golden.display());
        return;
    };
    let model = Model::load(Some(&shared.join("models/minilm-squad"))).unwrap();
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| line[name].as_str().unwrap();
        let numbers = |name: &str| -> Vec<f64> {
            let values = line[name].as_array().unwrap().iter();
            values.map(|v| v.as_f64().unwrap()).collect()
        };
        let ids = numbers("input_ids");
        let windows = model
            .text
            .windows(text("question"), text("context"), ids.len(), 64);
        let input = &windows.unwrap()[0];
        let ours: Vec<f64> = input.ids.iter().map(|id| f64::from(*id)).collect();
        assert_eq!(ours, ids, "{}", line["id"]);
        let graph = model.weights.graph(input.tokens());
        let outputs = float::run(&graph, &model.weights, input, &mut NoObserver);
        let rows = (0..input.tokens()).map(|t| outputs[0].row(t));
        let scores: Vec<(f64, f64)> = rows.map(|r| (r[0].into(), r[1].into())).collect();
        let golden = numbers("start_logits")
            .into_iter()
            .zip(numbers("end_logits"));
        for ((start, end), golden) in scores.iter().zip(golden) {
            let off = (start - golden.0).abs().max((end - golden.1).abs());
            assert!(off < 1e-3, "{}: off by {off}", line["id"]);
        }
        let found = ContextAnswer::over([(&scores[..], &input.second[..])]).unwrap();
        let near = |ours: f64, name: &str| {
            let golden = line[name].as_f64().unwrap();
            assert!((ours - golden).abs() < 2e-3, "{name} {ours} for {golden}");
        };
        near(found.best.score, "best_score");
        near(found.null_score, "null_score");
        let piece = characters(text("context"), (found.best.start, found.best.end));
        assert_eq!(piece, text("answer"));
    }
}
