//! Families and heads through the cryptography: equal to the fixed-point reference bit for bit, and
//! within a twentieth of what Hugging Face's own code says.
#![allow(missing_docs)]

mod common;

use common::{Run, check, family, infer_revealing, small_for, words};
use primer_model::text::{Input, Truncate};
use primer_plan::shape::{Head, Pooling, Problem, Summary};
use primer_protocol::{Program, ProtocolError, Reveal, Scheme};
use serde_json::Value;

/// The golden line with the fewest tokens.
fn golden(name: &str) -> Value {
    let path = common::families().join(name).join("golden.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|l| serde_json::from_str(l).unwrap());
    let tokens = |line: &Value| line["input_ids"].as_array().unwrap().len();
    lines.min_by_key(tokens).unwrap()
}

/// What the client has in the end, row by row, against the golden line's.
fn compare(line: &Value, run: &Run, input: &Input) {
    let output = &run.answer.reals[0];
    let row = |r: usize| output.row(r).to_vec();
    let (golden, found): (Vec<&Value>, Vec<Vec<f64>>) = if line["logits"][0].is_array() {
        let rows = line["logits"].as_array().unwrap();
        (rows.iter().collect(), (0..input.length).map(row).collect())
    } else if line["logits"].is_array() {
        (vec![&line["logits"]], vec![row(0)])
    } else {
        assert_eq!(output.rows(), 1, "only the pooled vector is revealed");
        let norm = row(0).iter().map(|v| v * v).sum::<f64>().sqrt();
        let vector = row(0).iter().map(|v| v / norm).collect();
        (vec![&line["embedding"]], vec![vector])
    };
    for (golden, found) in golden.iter().zip(&found) {
        let golden = golden.as_array().unwrap();
        assert_eq!(golden.len(), found.len());
        for (golden, found) in golden.iter().zip(found) {
            let off = (golden.as_f64().unwrap() - found).abs();
            assert!(off < 0.05, "off by {off}");
        }
    }
}

fn through(name: &str, scheme: Scheme) {
    let (model, text) = family(name, scheme);
    let line = golden(name);
    let first = line["text"].as_str().unwrap();
    let limit = model.shape().max_tokens();
    let input = text.encode(first, None, limit, Truncate::LongestFirst);
    let mut input = input.unwrap();
    input.pad_to(input.tokens() + 1, text.padding());
    let run = check(&model, &input, scheme);
    compare(&line, &run, &input);
}

#[test]
fn distilbert_with_labels() {
    through("distilbert", Scheme::Lean);
    through("distilbert", Scheme::Fp);
}

#[test]
fn electra_with_labels() {
    through("electra", Scheme::Lean);
    through("electra", Scheme::Fp);
}

#[test]
fn roberta_with_labels_of_tokens() {
    through("roberta-ner", Scheme::Lean);
    through("roberta-ner", Scheme::Fp);
}

#[test]
fn sentences() {
    through("sentence", Scheme::Lean);
    through("sentence", Scheme::Fp);
}

fn sentence(pooling: Pooling) -> Head {
    Head::Sentence {
        pooling,
        normalised: false,
    }
}

/// One vector comes out, whatever the scheme and the length.
#[test]
fn pooling_in_every_scheme() {
    for scheme in Scheme::ALL {
        let model = small_for(scheme, 1, (8, 2), sentence(Pooling::Mean));
        let run = check(&model, &words(3, 2, 1), scheme);
        assert_eq!(run.answer.reals[0].rows(), 1);
    }
    for pooling in [Pooling::Mean, Pooling::First] {
        let model = small_for(Scheme::Lean, 1, (16, 2), sentence(pooling));
        for (tokens, length) in [(4, 1), (4, 4), (5, 3)] {
            let run = check(&model, &words(tokens, length, 1), Scheme::Lean);
            assert_eq!(run.answer.reals[0].rows(), 1);
        }
    }
}

#[test]
fn only_one_label_can_be_revealed_alone() {
    let head = |problem| Head::Classify {
        labels: vec!["no".into(), "yes".into()],
        summary: Summary::Relu,
        problem,
    };
    let model = small_for(Scheme::Lean, 1, (16, 2), head(Problem::SingleLabel));
    let run = infer_revealing(&model, &words(4, 3, 0), Scheme::Lean, Reveal::Label);
    assert!(run.answer.label.is_some() && run.answer.reals.is_empty());
    for problem in [Problem::MultiLabel, Problem::Regression] {
        let model = small_for(Scheme::Lean, 1, (16, 2), head(problem));
        let error = Program::of(&model, Scheme::Lean, 4, Reveal::Label).err();
        assert!(matches!(error, Some(ProtocolError::NoLabel)));
    }
}
