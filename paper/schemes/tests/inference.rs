//! Private inference against the fixed-point reference, which is fed the client's shares and must
//! then agree bit for bit.
#![allow(missing_docs)]

mod common;

use common::{
    Run, check, classify, demo, encode, fixture, infer_revealing, reference, rounded, small,
    small_for, tiny_for, words,
};
use primer_engine::Reveal;
use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_paper::{Program, ProtocolError, Scheme};
use primer_plan::shape::Head;
use primer_text::{Input, TextEncoder};

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
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let (model, text) = demo(scheme);
        let input = encode(&text, "a warm and funny film", None, 8);
        let run = check(&model, &input, scheme);
        close_to_rounding(&model, &input, &run, 0.005);
        let logits = run.answer.reals[0].row(0);
        assert!(logits[1] > logits[0], "{logits:?}");
    }
}

#[test]
fn every_scheme_on_a_padded_pair() {
    let input = words(5, 3, 0);
    for scheme in Scheme::ALL {
        let model = tiny_for(scheme);
        let run = check(&model, &input, scheme);
        close_to_rounding(&model, &input, &run, 0.0005);
    }
}

#[test]
fn a_single_token_in_every_scheme() {
    for scheme in Scheme::ALL {
        check(&tiny_for(scheme), &words(1, 1, 0), scheme);
    }
}

#[test]
fn only_the_label_is_revealed() {
    let (model, text) = demo(Scheme::Fp);
    for (words, label) in [("a warm and funny film", 1), ("a dull , stupid mess", 0)] {
        let input = encode(&text, words, None, 8);
        let run = infer_revealing(&model, &input, Scheme::Fp, Reveal::Label);
        assert!(run.answer.integers.is_empty() && run.answer.reals.is_empty());
        assert_eq!(run.answer.labels, [label], "{words}");
        let logits = reference(&model, &input, &run.seen).integers;
        let largest = usize::from(logits[0].get(0, 1) > logits[0].get(0, 0));
        assert_eq!(largest, label);
    }
    let spans = small(1, 16, 2, Head::Span);
    let error = Program::of(&spans, Scheme::Fp, 4, Reveal::Label)
        .err()
        .unwrap();
    assert!(matches!(error, ProtocolError::NoLabel), "{error}");
}

#[test]
fn the_span_head() {
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let (model, text) = fixture("random-qa", scheme);
        let input = encode(&text, "who made it", Some("a good film"), 12);
        let run = check(&model, &input, scheme);
        assert_eq!(run.answer.integers.len(), 1);
        assert_eq!(run.answer.reals[0].cols(), 2);
    }
}

#[test]
fn the_bare_encoder() {
    let (model, text) = fixture("random-encoder", Scheme::Fp);
    check(&model, &encode(&text, "a good film", None, 7), Scheme::Fp);
    for pooled in [false, true] {
        let model = small(1, 32, 2, Head::Encoder { pooled });
        let run = check(&model, &words(4, 3, 1), Scheme::Fp);
        assert_eq!(run.answer.integers.len(), 1 + usize::from(pooled));
    }
}

#[test]
fn thirty_and_sixty_four_tokens() {
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let model = tiny_for(scheme);
        for tokens in [30, 64] {
            check(&model, &words(tokens, tokens - 5, 2), scheme);
        }
    }
}

#[test]
#[ignore = "minutes, 2 GB: cargo test --release -p primer-paper more_tokens -- --ignored"]
fn more_tokens_than_a_ciphertext_has_cells() {
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let model = small_for(scheme, 1, (16, 2), classify());
        check(&model, &words(300, 280, 1), scheme);
    }
}

#[test]
fn a_padded_pair_at_width_128() {
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let model = small_for(scheme, 2, (128, 4), classify());
        check(&model, &words(7, 5, 0), scheme);
    }
}

#[test]
#[ignore = "a minute or more: cargo test -p primer-paper --test inference -- --ignored"]
fn the_embedded_model_in_every_scheme_and_with_more_tokens() {
    let (model, text) = demo(Scheme::Fp);
    for scheme in [Scheme::Base, Scheme::F] {
        check(&model, &encode(&text, "a warm film", None, 5), scheme);
    }
    for tokens in [30, 64] {
        let input = encode(&text, "a warm film", Some("it is funny and sad"), tokens);
        check(&model, &input, Scheme::Fp);
        check(&demo(Scheme::Fpc).0, &input, Scheme::Fpc);
    }
}

/// Checks that the scheme says which plans it compiles, and others are refused by name.
#[test]
fn a_plan_in_another_form_is_refused() {
    for (scheme, other, message) in [
        (
            Scheme::Fpc,
            Scheme::Fp,
            "scheme fpc needs a plan in the merged form, this one has another",
        ),
        (
            Scheme::Base,
            Scheme::Fpc,
            "scheme base needs a plan in the separate form, this one has another",
        ),
    ] {
        let model = tiny_for(other);
        let error = Program::of(&model, scheme, 2, Reveal::Outputs).err();
        assert_eq!(error.unwrap().to_string(), message);
        let plan = model.plan(2).unwrap();
        let error = Program::received(plan, scheme, Reveal::Outputs).err();
        assert_eq!(error.unwrap().to_string(), message);
    }
}

/// Checks that the product compiles its own plans and none of the paper's, and the other way round.
#[test]
fn the_product_has_plans_of_its_own() {
    let fp = tiny_for(Scheme::Fp);
    for scheme in [Scheme::Fp, Scheme::Fpc] {
        let plan = tiny_for(scheme).plan(2).unwrap();
        let error = primer_engine::Program::received(plan, Reveal::Outputs).err();
        let error = error.unwrap();
        assert!(
            matches!(error, primer_engine::ProtocolError::OtherGraph),
            "{error}"
        );
    }
    let error = primer_engine::Program::of(&fp, 2, Reveal::Outputs).err();
    let error = error.unwrap();
    assert!(
        matches!(error, primer_engine::ProtocolError::Plan(_)),
        "{error}"
    );
    let weights = FloatWeights::fold(fp.shape(), &synthetic::checkpoint(fp.shape(), &[7; 16]));
    let vocabulary = b"[PAD]\n[UNK]\n[CLS]\n[SEP]\na\ngood\nfilm";
    let text = TextEncoder::from_vocabulary(vocabulary, None).unwrap();
    let scales = calibrate(&weights, &text, "a good film", |_, _| ()).unwrap();
    let product = IntModel::quantise(&weights, scales).unwrap();
    assert!(primer_engine::Program::of(&product, 2, Reveal::Outputs).is_ok());
    for scheme in Scheme::ALL {
        let plan = product.plan(2).unwrap();
        let error = Program::received(plan, scheme, Reveal::Outputs).err();
        assert!(matches!(error, Some(ProtocolError::Form { .. })));
    }
}
