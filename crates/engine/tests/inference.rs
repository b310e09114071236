//! Private inference against the fixed-point reference, which is fed the client's shares and must
//! then agree bit for bit.
#![allow(missing_docs)]

mod common;

use common::{
    Run, check, classify, demo, encode, fixture, infer_revealing, reference, rounded, small,
    synthetic_of, tiny, words,
};
use primer_engine::{Program, ProtocolError, Reveal};
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_plan::shape::{Head, Shape};
use primer_text::Input;

/// Checks outputs: dropping low bits locally costs at most two units in the last place at each
/// stop. Through the layers of the models here the logits stay this close to those of rounding to
/// nearest.
fn close_to_rounding(model: &IntModel, input: &Input, run: &Run, bound: f64) {
    let nearest = rounded(model, input);
    for (found, expected) in run.answer.reals[0].data().iter().zip(nearest[0].data()) {
        let error = (found - expected).abs();
        assert!(error <= bound, "{found} for {expected}: off by {error}");
    }
}

#[test]
fn the_embedded_model_on_a_sentence() {
    let (model, text) = demo();
    let input = encode(&text, "a warm and funny film", None, 8);
    let run = check(&model, &input);
    close_to_rounding(&model, &input, &run, 0.005);
    let logits = run.answer.reals[0].row(0);
    assert!(logits[1] > logits[0], "{logits:?}");
}

#[test]
fn a_padded_pair() {
    let (model, input) = (tiny(), words(5, 3, 0));
    let run = check(&model, &input);
    close_to_rounding(&model, &input, &run, 0.0005);
}

#[test]
fn a_single_token() {
    check(&tiny(), &words(1, 1, 0));
}

#[test]
fn only_the_label_is_revealed() {
    let (model, text) = demo();
    for (words, label) in [("a warm and funny film", 1), ("a dull , stupid mess", 0)] {
        let input = encode(&text, words, None, 8);
        let run = infer_revealing(&model, &input, Reveal::Label);
        assert!(run.answer.integers.is_empty() && run.answer.reals.is_empty());
        assert_eq!(run.answer.labels, [label], "{words}");
        let logits = reference(&model, &input, &run.seen).integers;
        let largest = usize::from(logits[0].get(0, 1) > logits[0].get(0, 0));
        assert_eq!(largest, label);
    }
    let spans = small(1, (16, 2), Head::Span);
    let error = Program::of(&spans, 4, Reveal::Label).err().unwrap();
    assert!(matches!(error, ProtocolError::NoLabel), "{error}");
}

#[test]
fn the_span_head() {
    let (model, text) = fixture("random-qa");
    let input = encode(&text, "who made it", Some("a good film"), 12);
    let run = check(&model, &input);
    assert_eq!(run.answer.integers.len(), 1);
    assert_eq!(run.answer.reals[0].cols(), 2);
}

#[test]
fn the_bare_encoder() {
    let (model, text) = fixture("random-encoder");
    check(&model, &encode(&text, "a good film", None, 7));
    for pooled in [false, true] {
        let model = small(1, (32, 2), Head::Encoder { pooled });
        let run = check(&model, &words(4, 3, 1));
        assert_eq!(run.answer.integers.len(), 1 + usize::from(pooled));
    }
}

#[test]
fn thirty_and_sixty_four_tokens() {
    let model = tiny();
    for tokens in [30, 64] {
        check(&model, &words(tokens, tokens - 5, 2));
    }
}

#[test]
#[ignore = "minutes, 2 GB: cargo test --release -p primer-engine more_tokens -- --ignored"]
fn more_tokens_than_a_ciphertext_has_cells() {
    check(&tiny(), &words(300, 280, 1));
}

#[test]
fn a_padded_pair_at_width_128() {
    let model = small(2, (128, 4), classify());
    check(&model, &words(7, 5, 0));
}

/// Takes as many words as XLM-RoBERTa has: the hint of the embedding, and what its one-hot rows err
/// by.
#[test]
#[ignore = "a minute: cargo test --release -p primer-engine --test inference words -- --ignored"]
fn a_quarter_of_a_million_words() {
    let shape = Shape {
        vocab: 250_002,
        ..synthetic::bert_shape(1, 64, 4)
    };
    let model = synthetic_of(&shape);
    let input = words(5, 4, 0);
    let run = check(&model, &input);
    close_to_rounding(&model, &input, &run, 0.0005);
}
