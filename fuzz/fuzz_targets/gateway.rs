//! Any bytes as the body of a request to the gateway, and true ones with changes, for a model with
//! each kind of head: questions or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer::Reveal;
use primer::service::message::Card;
use primer_fuzz::{Script, edited};
use primer_hint::params::hint_bytes;
use primer_hint::published::Identity;
use primer_plan::shape::{Family, Head, Pooling};
use std::sync::LazyLock;

static CARDS: LazyLock<[Card; 5]> = LazyLock::new(|| {
    let labels = || vec!["no".to_owned(), "yes".to_owned()];
    let heads = [
        Head::classify(labels()),
        Head::Span,
        Head::Tokens { labels: labels() },
        Head::Sentence {
            pooling: Pooling::Mean,
            normalised: true,
        },
        Head::Encoder { pooled: true },
    ];
    heads.map(|head| Card {
        model: "a model".into(),
        generation: [1; 16],
        family: Family::Bert,
        head,
        vocab: 100,
        types: 2,
        buckets: vec![8, 16],
        hint: Identity {
            name: [3; 32],
            bytes: hint_bytes(1) as u64,
            root: [4; 32],
        },
        reveal: Reveal::Outputs,
        answer_bits: vec![43, 43],
        tokenizer: ([2; 32], 10),
        max_stored: 1,
        idle_seconds: 1,
    })
});

const TRUE: [&str; 4] = [
    r#"{"inputs":[{"text":"a","text_pair":"b"},"c"],"parameters":{"top_k":2},
"options":{"meta":true}}"#,
    r#"{"inputs":{"question":"who","context":"a fox"}}"#,
    r#"{"inputs":"a b","parameters":{"aggregation_strategy":"simple"}}"#,
    r#"{"inputs":["a","b"],"options":{"wait_for_model":true}}"#,
];

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = usize::from(script.byte());
    let card = &CARDS[choice % CARDS.len()];
    let body = match choice / 8 % 5 {
        4 => script.0.to_vec(),
        which => edited(TRUE[which].as_bytes(), &[0], &mut script),
    };
    if let Some(questions) = primer_gateway::decode_any(&body, card) {
        assert!((1..=body.len()).contains(&questions));
    }
});
