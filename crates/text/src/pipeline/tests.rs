use super::super::{TextEncoder, Truncate};
use super::*;

/// Reads the embedded model's file.
fn demo() -> Value {
    let bytes = include_bytes!("../../../../models/sst2-demo/tokenizer.json");
    serde_json::from_slice(bytes).unwrap()
}

fn opened(file: &Value) -> Result<TextEncoder, String> {
    let bytes = serde_json::to_vec(file).unwrap();
    TextEncoder::from_json(&bytes, None).map_err(|error| error.to_string())
}

fn refused(file: &Value) -> String {
    opened(file).err().expect("refused")
}

fn tokens(encoder: &TextEncoder, text: &str) -> Vec<u32> {
    let input = encoder.encode(text, None, 64, Truncate::LongestFirst);
    input.unwrap().ids
}

/// Describes a small model of pieces of words, as XLM-R has it.
fn unigram() -> Value {
    json!({
        "model": {
            "type": "Unigram", "unk_id": 0,
            "vocab": [["[UNK]", 0.0], ["[PAD]", 0.0], ["\u{2581}a", -1.0], ["b", -2.0]],
        },
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "NFKC"},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u{2581}"},
    })
}

/// Describes a small byte-level model, as RoBERTa has it.
fn byte_level() -> Value {
    json!({
        "model": {
            "vocab": {"[PAD]": 0, "a": 1, "b": 2, "ab": 3, "\u{120}": 4},
            "merges": ["a b"],
        },
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true},
        "post_processor": {
            "type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1],
            "trim_offsets": true, "add_prefix_space": false,
        },
    })
}

#[test]
fn known_pipelines_give_the_tokens_that_the_library_gives() {
    let file = demo();
    let bytes = serde_json::to_vec(&file).unwrap();
    let mut plain = tokenizers::Tokenizer::from_bytes(&bytes).unwrap();
    plain.with_truncation(None).unwrap();
    let ours = opened(&file).unwrap();
    for text in [
        "A warm, funny film!",
        "na\u{ef}ve \u{65e5}\u{672c} it's",
        "x".repeat(300).as_str(),
    ] {
        let theirs = plain.encode(text, true).unwrap();
        assert_eq!(tokens(&ours, text), theirs.get_ids(), "{text}");
    }
    assert_eq!(tokens(&opened(&byte_level()).unwrap(), "ab"), [1, 3, 2]);
    assert_eq!(tokens(&opened(&unigram()).unwrap(), "ab"), [2, 3]);
}

/// Reads XLM-R's own pipeline, with the rules of all of Unicode.
fn multilingual() -> Value {
    let bytes = include_bytes!("../../../model/tests/fixtures/family/xlm-roberta/tokenizer.json");
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn tables_of_rules_run_as_the_library_runs_them() {
    let file = multilingual();
    let bytes = serde_json::to_vec(&file).unwrap();
    let plain = tokenizers::Tokenizer::from_bytes(&bytes).unwrap();
    let ours = opened(&file).unwrap();
    for text in [
        "Un caf\u{e9} noir\u{3000}et \u{bd} tasse\u{200b}\u{2026}",
        "\u{ad}\u{7}e\u{323}\u{302}\u{301} \u{fdfa}  \u{fb01}lm",
        "\u{ff8c}\u{ff68}\u{ff99}\u{ff91} \u{314e}\u{314f}\u{3134} \u{1f642}\0\t",
    ] {
        let theirs = plain.encode(text, true).unwrap();
        assert_eq!(tokens(&ours, text), theirs.get_ids(), "{text}");
    }
    let table = file["normalizer"]["normalizers"][0].clone();
    let (_, growth) = normalizer(table.clone()).unwrap();
    // Eighteen letters of one: 33 bytes of 3.
    assert_eq!(growth, 11.0);
    // As old files have it.
    let mut old = file.clone();
    old["normalizer"] = table.clone();
    old["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": "\u{2581}", "add_prefix_space": true},
    ]});
    assert_eq!(tokens(&opened(&old).unwrap(), "ok"), tokens(&ours, "ok"));
    let mut twice = file.clone();
    twice["normalizer"]["normalizers"] = json!([table, table]);
    assert!(refused(&twice).contains("363 times as long"));
    let mut file = demo();
    file["normalizer"] = table;
    assert!(refused(&file).contains("\"Precompiled\" among its normalizers"));
    twice["normalizer"] = json!({"type": "Precompiled"});
    assert!(refused(&twice).contains("without its table"));
}

/// Refuses two of them, which would set letters apart and lengthen each.
#[test]
fn a_pre_tokenizer_stands_once() {
    let mut file = unigram();
    let space = |letter: &str| json!({"type": "Metaspace", "replacement": letter});
    file["pre_tokenizer"] =
        json!({"type": "Sequence", "pretokenizers": [space("_"), space("\u{1f642}")]});
    assert!(refused(&file).contains("\"Metaspace\" twice"));
}

/// Refuses the attack: letters become 64 letters, eight times in a row.
#[test]
fn chained_replacements_are_refused() {
    let grow = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(64)});
    let chain = json!({"type": "Sequence", "normalizers": vec![grow; 8]});
    let mut file = demo();
    file["normalizer"] = chain.clone();
    assert!(refused(&file).contains("\"Replace\" among its normalizers"));
    let mut file = unigram();
    file["normalizer"] = chain;
    assert!(
        refused(&file).contains("the limit is 64"),
        "{}",
        refused(&file)
    );
    let nested =
        json!({"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": []}]});
    file["normalizer"] = nested;
    assert!(refused(&file).contains("\"Sequence\" among its normalizers"));
    file["normalizer"] =
        json!({"type": "Sequence", "normalizers": vec![json!({"type": "NFC"}); 9]});
    assert!(refused(&file).contains("9 normalizers"));
    for pattern in [
        json!({"Regex": "(a|a)*$"}),
        json!({"String": ""}),
        json!({}),
    ] {
        file["normalizer"] = json!({"type": "Replace", "pattern": pattern, "content": "b"});
        assert!(refused(&file).contains("something other than a text"));
    }
}

#[test]
fn parts_that_repeat_or_never_end_are_refused() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 13] = [
        (
            |file| {
                let piece = json!({"Sequence": {"id": "A", "type_id": 0}});
                file["post_processor"]["single"] = json!(vec![piece; 2]);
            },
            "each text once",
        ),
        // What the library would not survive.
        (
            |file| file["post_processor"]["single"][0]["SpecialToken"]["id"] = json!("[NO]"),
            "does not define",
        ),
        (
            |file| file["post_processor"]["single"][1]["Sequence"]["id"] = json!("B"),
            "each text once",
        ),
        (
            |file| file["post_processor"]["pair"][0] = json!({"Text": "A"}),
            "neither text nor token",
        ),
        (
            |file| {
                let token = &mut file["post_processor"]["special_tokens"]["[CLS]"];
                token["ids"] = json!(vec![2; 1000]);
            },
            "stands for several",
        ),
        (
            |file| file["model"]["max_input_chars_per_word"] = json!(1_000_000),
            "the limit of 200",
        ),
        (
            |file| file["model"]["vocab"]["far"] = json!(u32::MAX),
            "no index below",
        ),
        (
            |file| file["model"]["type"] = json!("WordLevel"),
            "none of WordPiece, BPE, Unigram",
        ),
        (
            |file| {
                let split = json!({"Regex": "(a+)+$"});
                file["pre_tokenizer"] =
                    json!({"type": "Split", "pattern": split, "behavior": "Isolated"});
            },
            "\"Split\" among its pretokenizers",
        ),
        (
            |file| file["added_tokens"][0]["content"] = json!("x".repeat(65)),
            "an added token",
        ),
        (
            |file| file["model"]["continuing_subword_prefix"] = json!("#".repeat(1000)),
            "continuing_subword_prefix",
        ),
        (|file| *file = byte_level_with_dropout(), "dropout"),
        (
            |file| {
                *file = unigram();
                file["model"]["vocab"][2][0] = json!("");
            },
            "is empty",
        ),
    ];
    for (change, word) in cases {
        let mut file = demo();
        change(&mut file);
        let error = refused(&file);
        assert!(error.contains(word), "{error}");
    }
}

/// Refuses vocabularies that would be kept in hundreds of times the bytes of the file.
#[test]
fn vocabularies_whose_tree_would_fill_memory_are_refused() {
    let mut file = unigram();
    let token = |number: usize| json!([format!("{number:032x}").repeat(8), -1.0]);
    // Within 16 MB, and all different from the first letters on.
    let vocab: Vec<Value> = (0..60_000).map(|n| token(n * 71_582_788)).collect();
    file["model"]["vocab"] = json!(vocab);
    let error = refused(&file);
    assert!(
        error.contains("a tree of 1") && error.contains("the limit is 3145728"),
        "{error}"
    );
    // As many that share their beginnings are fine.
    let vocab: Vec<Value> = (0..60_000)
        .map(|n| json!([format!("word {n}"), -1.0]))
        .collect();
    file["model"]["vocab"] = json!([vec![json!(["[PAD]", 0.0])], vocab].concat());
    assert!(opened(&file).is_ok());
    let mut file = demo();
    let added = &file["added_tokens"][0].clone();
    file["added_tokens"] = json!(vec![added; (1 << 14) + 1]);
    assert!(refused(&file).contains("16385 added tokens"));
}

fn byte_level_with_dropout() -> Value {
    let mut file = byte_level();
    file["model"]["dropout"] = json!(0.5);
    file
}

/// Ignores a second value under the same name, in the check and in the tokenizer.
#[test]
fn what_was_checked_is_what_runs() {
    let text = serde_json::to_string(&demo()).unwrap();
    let grow = r#"{"type":"Lowercase"}"#;
    let doubled = text.replacen('{', &format!("{{\"normalizer\":{grow},"), 1);
    let ours = TextEncoder::from_json(doubled.as_bytes(), None).unwrap();
    assert_eq!(
        tokens(&ours, "film"),
        tokens(&opened(&demo()).unwrap(), "film")
    );
    let last = text[..text.rfind('}').unwrap()].to_owned() + &format!(",\"normalizer\":{grow}}}");
    assert!(TextEncoder::from_json(last.as_bytes(), None).is_err());
}

#[test]
fn texts_are_bounded() {
    let encoder = opened(&demo()).unwrap();
    let encode = |text: &str| encoder.encode(text, None, 16, Truncate::LongestFirst);
    assert!(encode(&"a ".repeat(MAX_TEXT / 2)).is_ok());
    let error = encode(&"a ".repeat(MAX_TEXT / 2 + 1)).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the text has 262146 bytes, the limit is 262144"
    );
    let pair = encoder.encode(
        "a",
        Some(&"b".repeat(MAX_TEXT + 1)),
        16,
        Truncate::LongestFirst,
    );
    assert!(pair.is_err());
}

#[test]
fn the_largest_index_is_not_forgotten() {
    let vocab = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nword";
    let encoder = TextEncoder::from_vocabulary(vocab.as_bytes(), None).unwrap();
    assert!(encoder.check_vocabulary(5).is_ok());
    let error = encoder.check_vocabulary(4).unwrap_err().to_string();
    assert!(error.contains("5 tokens"), "{error}");
}
