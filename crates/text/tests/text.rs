//! Tokenising and truncating as Hugging Face does.
#![allow(missing_docs)]

use primer_text::{TextEncoder, TextError, Truncate};
use std::path::Path;

/// Reads a file of the repository.
fn read(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read(root.join(path)).unwrap()
}

fn encoder() -> TextEncoder {
    let config = read("models/sst2-demo/tokenizer_config.json");
    TextEncoder::from_json(&read("models/sst2-demo/tokenizer.json"), Some(&config)).unwrap()
}

#[test]
fn the_longer_text_loses_tokens_first() {
    let text = encoder();
    let (long, short) = ("the the the the the the the the", "a a a");
    let input = text
        .encode(long, Some(short), 12, Truncate::LongestFirst)
        .unwrap();
    // [CLS] 6 [SEP] 3 [SEP]
    assert_eq!((input.tokens(), input.removed), (12, 2));
    assert_eq!(input.types, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    let input = text
        .encode(long, Some(short), 8, Truncate::LongestFirst)
        .unwrap();
    assert_eq!(
        input.types.iter().filter(|t| **t == 1).count(),
        3,
        "two tokens and [SEP]"
    );
    assert_eq!(input.removed, 6);
}

#[test]
fn only_the_second_text_loses_tokens() {
    let text = encoder();
    let context = "the the the the the the the the";
    let input = text
        .encode("a a a", Some(context), 10, Truncate::OnlySecond)
        .unwrap();
    assert_eq!(input.types, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    let error = text.encode(context, Some("a a a"), 10, Truncate::OnlySecond);
    assert!(matches!(
        error.err(),
        Some(TextError::FirstTooLong {
            tokens: 8,
            limit: 10
        })
    ));
}

#[test]
fn positions_in_the_second_text_are_characters() {
    let text = encoder();
    let context = "naïve film";
    let input = text
        .encode("a film", Some(context), 32, Truncate::OnlySecond)
        .unwrap();
    let spans: Vec<_> = input.second.iter().flatten().collect();
    assert_eq!(spans.first().unwrap().0, 0);
    assert_eq!(**spans.last().unwrap(), (6, 10));
    assert_eq!(input.second[0], None);
}

#[test]
fn hard_texts() {
    let text = encoder();
    for empty in ["", " ", "\n\t"] {
        let error = text.encode(empty, None, 128, Truncate::LongestFirst);
        assert!(matches!(error.err(), Some(TextError::Empty)));
    }
    let long = "word ".repeat(10_000);
    let input = text
        .encode_padded(&long, None, 128, Truncate::LongestFirst)
        .unwrap();
    assert_eq!((input.tokens(), input.removed > 9_000), (128, true));
    let error = text.encode("word", None, 2, Truncate::LongestFirst);
    assert!(matches!(
        error.err(),
        Some(TextError::NoRoom {
            limit: 2,
            special: 2
        })
    ));
    for odd in [
        "\u{0}\u{fffd}",
        "🦀🦀",
        "日本語テキスト",
        &"x".repeat(100_000),
    ] {
        let input = text.encode(odd, None, 128, Truncate::LongestFirst).unwrap();
        assert!(input.tokens() <= 128);
    }
}

#[test]
fn vocabulary_and_json_agree() {
    let from_json = encoder();
    let config = read("crates/model/tests/fixtures/random-qa/tokenizer_config.json");
    let vocabulary = read("models/sst2-demo/vocab.txt");
    let from_vocabulary = TextEncoder::from_vocabulary(&vocabulary, Some(&config)).unwrap();
    for text in [
        "A quiet, Moving film!",
        "naïve Zürich -- don't",
        "日本 x_y 12.5%",
        "unaffable",
    ] {
        let encode = |e: &TextEncoder| {
            let input = e
                .encode(text, Some("the end"), 64, Truncate::LongestFirst)
                .unwrap();
            (input.ids, input.types)
        };
        assert_eq!(encode(&from_json), encode(&from_vocabulary), "{text}");
    }
}
