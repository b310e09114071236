//! Families and heads through the cryptography: equal to the fixed-point reference bit for bit, and
//! within a twentieth of what Hugging Face's own code says.
#![allow(missing_docs)]

mod common;

use common::{Run, check, family, infer_revealing, reference, small, words};
use primer_engine::{Program, ProtocolError, Reveal};
use primer_plan::shape::{Head, Pooling, Problem, Summary};
use primer_text::{Input, Truncate};
use serde_json::Value;
use std::path::Path;

/// Finds the golden line with the fewest tokens.
fn golden(dir: &Path) -> Value {
    let text = std::fs::read_to_string(dir.join("golden.jsonl")).unwrap();
    let lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
    let tokens = |line: &Value| line["input_ids"].as_array().unwrap().len();
    lines.min_by_key(tokens).unwrap()
}

/// Compares what the client has in the end, row by row, with the golden line's.
fn compare(line: &Value, run: &Run, input: &Input) {
    let output = &run.answer.reals[0];
    let row = |r: usize| output.row(r).to_vec();
    let column = |c: usize| (0..input.length).map(|t| output.get(t, c)).collect();
    let (golden, found): (Vec<&Value>, Vec<Vec<f64>>) = if line["logits"][0].is_array() {
        let rows = line["logits"].as_array().unwrap();
        (rows.iter().collect(), (0..input.length).map(row).collect())
    } else if line["logits"].is_array() {
        (vec![&line["logits"]], vec![row(0)])
    } else if line["start_logits"].is_array() {
        let golden = vec![&line["start_logits"], &line["end_logits"]];
        (golden, vec![column(0), column(1)])
    } else {
        assert_eq!(output.rows(), 1, "only the pooled vector is revealed");
        let norm = row(0).iter().map(|v| v * v).sum::<f64>().sqrt();
        let vector = row(0).iter().map(|v| v / norm).collect();
        (vec![&line["embedding"]], vec![vector])
    };
    assert_eq!(golden.len(), found.len());
    for (golden, found) in golden.iter().zip(&found) {
        let golden = golden.as_array().unwrap();
        assert_eq!(golden.len(), found.len());
        for (golden, found) in golden.iter().zip(found) {
            let off = (golden.as_f64().unwrap() - found).abs();
            assert!(off < 0.05, "off by {off}");
        }
    }
}

fn through_dir(dir: &Path) {
    let (model, text) = family(dir);
    let line = golden(dir);
    let first = line["text"].as_str().unwrap();
    let limit = model.shape().max_tokens();
    let input = text.encode(
        first,
        line["text_pair"].as_str(),
        limit,
        Truncate::LongestFirst,
    );
    let mut input = input.unwrap();
    input.pad_to(input.tokens() + 1, text.padding());
    let run = check(&model, &input);
    compare(&line, &run, &input);
}

fn through(name: &str) {
    through_dir(&common::families().join(name));
}

/// Checks every one of them, whichever there are.
#[test]
fn whole_checkpoints_where_they_are() {
    let Some(all) = common::whole_families() else {
        return;
    };
    // By name: there are families beside them that are refused.
    let families = [
        "bert-ner",
        "distilbert",
        "distilbert-qa",
        "electra",
        "roberta",
        "roberta-ner",
        "sentence",
    ];
    let mut seen = 0;
    for dir in families.map(|name| all.join(name)) {
        if dir.join("golden.jsonl").exists() {
            through_dir(&dir);
            seen += 1;
        }
    }
    assert!(seen > 0, "there is a directory without models");
}

#[test]
fn xlm_roberta_with_several_labels() {
    through("xlm-roberta");
}

#[test]
fn distilbert_with_labels() {
    through("distilbert");
}

#[test]
fn electra_with_labels() {
    through("electra");
}

#[test]
fn roberta_with_labels_of_tokens() {
    through("roberta-ner");
}

#[test]
fn sentences() {
    through("sentence");
}

fn sentence(pooling: Pooling) -> Head {
    Head::Sentence {
        pooling,
        normalised: false,
    }
}

/// Checks that one vector comes out, for any length.
#[test]
fn pooling() {
    for pooling in [Pooling::Mean, Pooling::First] {
        let model = small(1, (16, 2), sentence(pooling));
        for (tokens, length) in [(4, 1), (4, 4), (5, 3)] {
            let run = check(&model, &words(tokens, length, 1));
            assert_eq!(run.answer.reals[0].rows(), 1);
        }
    }
}

/// Checks that a label for each token comes out, padding included, and nothing else; equal to what
/// the scores say.
#[test]
fn labels_of_tokens_are_revealed_alone() {
    let labels = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"].map(str::to_owned);
    let head = Head::Tokens {
        labels: labels.to_vec(),
    };
    let input = words(6, 4, 0);
    let model = small(1, (16, 2), head);
    let run = infer_revealing(&model, &input, Reveal::Label);
    assert!(run.answer.integers.is_empty() && run.answer.reals.is_empty());
    let scores = reference(&model, &input, &run.seen).integers;
    let best = (0..6).map(|row| {
        let row = scores[0].row(row);
        (1..row.len()).fold(0, |best, i| if row[i] > row[best] { i } else { best })
    });
    assert_eq!(run.answer.labels, best.collect::<Vec<_>>());
    let shown = Program::of(&model, 6, Reveal::Label).unwrap();
    assert_eq!(shown.answer_bits(), 6 * 3 + shown.flag_bits());
}

#[test]
fn only_one_label_can_be_revealed_alone() {
    let head = |problem| Head::Classify {
        labels: vec!["no".into(), "yes".into()],
        summary: Summary::Relu,
        problem,
    };
    let model = small(1, (16, 2), head(Problem::SingleLabel));
    let run = infer_revealing(&model, &words(4, 3, 0), Reveal::Label);
    assert!(run.answer.labels.len() == 1 && run.answer.reals.is_empty());
    for problem in [Problem::MultiLabel, Problem::Regression] {
        let model = small(1, (16, 2), head(problem));
        let error = Program::of(&model, 4, Reveal::Label).err();
        assert!(matches!(error, Some(ProtocolError::NoLabel)));
    }
}
