//! Every family and head against outputs of Hugging Face's own code: tokens equal, single precision
//! within a thousandth, integers within a twentieth. Small copies of the checkpoints are fixtures
//! (`scripts/shrink-family-models`, `scripts/make-xlm-roberta-model`); the checkpoints themselves
//! are used where they are present.
#![allow(missing_docs)]

mod common;

use common::families::{FIXTURES, SHARED, matches_in_float, matches_in_integers};
use common::{fixtures, load, shared, weights_of};
use primer_model::fold::FloatWeights;
use primer_model::load::config::Config;
use primer_plan::shape::{Head, Pooling, Problem};
use primer_text::Input;
use serde_json::{Value, json};
use std::path::Path;

#[test]
fn small_copies_match_hugging_face_in_float() {
    for name in FIXTURES {
        matches_in_float(&fixtures().join("family").join(name), FloatWeights::clone);
    }
}

#[test]
fn small_copies_match_hugging_face_in_integers() {
    for name in FIXTURES {
        matches_in_integers(&fixtures().join("family").join(name), FloatWeights::clone);
    }
}

#[test]
fn whole_checkpoints_match_hugging_face_where_they_are() {
    for name in SHARED {
        if let Some(dir) = shared(&format!("models/family/{name}")) {
            matches_in_float(&dir, FloatWeights::clone);
            matches_in_integers(&dir, FloatWeights::clone);
        }
    }
}

#[test]
fn shapes_say_what_a_family_has() {
    let shape = |name: &str| load(&fixtures().join("family").join(name)).unwrap().shape;
    let distilbert = shape("distilbert");
    assert_eq!(
        distilbert.architecture(),
        "DistilBertForSequenceClassification"
    );
    assert_eq!((distilbert.types, distilbert.positions), (0, 48));
    // Two of the table's rows precede the first position.
    let roberta = shape("roberta-ner");
    assert_eq!(roberta.architecture(), "RobertaForTokenClassification");
    assert_eq!((roberta.types, roberta.positions), (0, 46));
    let electra = shape("electra");
    assert_eq!(
        (electra.embedding, electra.hidden, electra.types),
        (32, 64, 2)
    );
    let mean = Head::Sentence {
        pooling: Pooling::Mean,
        normalised: true,
    };
    assert_eq!(shape("sentence").head, mean);
    let multilingual = shape("xlm-roberta");
    assert_eq!(
        multilingual.architecture(),
        "XLMRobertaForSequenceClassification"
    );
    assert_eq!((multilingual.types, multilingual.positions), (0, 62));
    assert!(!multilingual.head.shows_labels());
}

/// Makes a copy of a fixture that a test may change.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let from = fixtures().join("family").join(name);
    for entry in std::fs::read_dir(&from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
    }
    if name == "sentence" {
        std::fs::create_dir(dir.path().join("1_Pooling")).unwrap();
        let pooling = "1_Pooling/config.json";
        std::fs::copy(from.join(pooling), dir.path().join(pooling)).unwrap();
    }
    dir
}

fn change(dir: &Path, file: &str, change: impl FnOnce(&mut Value)) {
    let path = dir.join(file);
    let mut value: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut value);
    std::fs::write(&path, value.to_string()).unwrap();
}

fn refusal(dir: &Path) -> String {
    let error = load(dir).err().expect("it should be refused");
    error.to_string()
}

#[test]
fn wrong_families_and_heads_are_refused_by_name() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &[&str]); 7] = [
        (
            "roberta-ner",
            |c| c["type_vocab_size"] = json!(0),
            &["type_vocab_size is 0"],
        ),
        (
            "distilbert",
            |c| c["model_type"] = json!("mpnet"),
            &["model_type \"mpnet\"", "\"distilbert\"", "\"electra\""],
        ),
        (
            "distilbert",
            |c| c["model_type"] = json!("roberta"),
            &["DistilBertForSequenceClassification", "RobertaForToken"],
        ),
        (
            "distilbert",
            |c| {
                c.as_object_mut().unwrap().remove("n_heads");
            },
            &["n_heads: it is missing"],
        ),
        (
            "distilbert",
            |c| c["problem_type"] = json!("ranking"),
            &["problem_type \"ranking\""],
        ),
        (
            "electra",
            |c| c["architectures"] = json!(["ElectraForPreTraining"]),
            &["\"ElectraForPreTraining\"", "ElectraForQuestionAnswering"],
        ),
        (
            "roberta-ner",
            |c| c["pad_token_id"] = json!(47),
            &["max_position_embeddings is 48", "begin at 48"],
        ),
    ];
    for (name, edit, expected) in cases {
        let dir = copy(name);
        change(dir.path(), "config.json", edit);
        let message = refusal(dir.path());
        let named = expected.iter().all(|e| message.contains(e));
        assert!(named, "{expected:?}: {message}");
    }
}

#[test]
fn ways_of_pooling_that_are_not_there_are_refused_by_name() {
    let pooling = "1_Pooling/config.json";
    let dir = copy("sentence");
    change(dir.path(), pooling, |c| {
        c["pooling_mode_max_tokens"] = json!(true);
    });
    let message = refusal(dir.path());
    assert!(
        message.contains("pooling_mode_mean_tokens with pooling_mode_max_tokens"),
        "{message}"
    );
    change(dir.path(), "modules.json", |c| {
        c[2]["type"] = json!("sentence_transformers.models.Dense");
    });
    change(dir.path(), pooling, |c| {
        c["pooling_mode_max_tokens"] = json!(false);
    });
    assert!(refusal(dir.path()).contains("models.Dense"));
    change(dir.path(), "modules.json", |c| {
        c[1]["path"] = json!("../1_Pooling");
    });
    assert!(refusal(dir.path()).contains("\"../1_Pooling\""));
    // The first token's, without a normalisation, of texts that are short.
    change(dir.path(), "modules.json", |c| {
        c[1]["path"] = json!("1_Pooling");
        c.as_array_mut().unwrap().truncate(2);
    });
    change(dir.path(), pooling, |c| {
        c["pooling_mode_mean_tokens"] = json!(false);
        c["pooling_mode_cls_token"] = json!(true);
    });
    let limit = dir.path().join("sentence_bert_config.json");
    std::fs::write(&limit, "{\"max_seq_length\": 20, \"do_lower_case\": true}").unwrap();
    assert!(refusal(dir.path()).contains("sentence_bert_config.json: do_lower_case"));
    std::fs::write(&limit, "{\"max_seq_length\": 20, \"do_lower_case\": false}").unwrap();
    let prompts = dir.path().join("config_sentence_transformers.json");
    std::fs::write(&prompts, "{\"default_prompt_name\": \"query\"}").unwrap();
    assert!(refusal(dir.path()).contains("default_prompt_name \"query\""));
    std::fs::write(&prompts, "{\"prompts\": {}, \"default_prompt_name\": null}").unwrap();
    let model = load(dir.path()).unwrap();
    let first = Head::Sentence {
        pooling: Pooling::First,
        normalised: false,
    };
    assert_eq!((model.shape.head.clone(), model.max_tokens()), (first, 20));
}

#[test]
fn problem_types_are_as_hugging_face_decides_them() {
    let problem = |edit: fn(&mut Value)| {
        let dir = copy("distilbert");
        change(dir.path(), "config.json", edit);
        match load(dir.path()).map(|model| model.shape.head) {
            Ok(Head::Classify { problem, .. }) => problem,
            Ok(_) => panic!("another head"),
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(problem(|_| ()), Problem::SingleLabel);
    let several = problem(|c| c["problem_type"] = json!("multi_label_classification"));
    assert_eq!(several, Problem::MultiLabel);
    let number = problem(|c| c["problem_type"] = json!("regression"));
    assert_eq!(number, Problem::Regression);
    // One output needs no `problem_type`: it is a number.
    let config = |extra: &str| {
        let head = r#"{"architectures": ["BertForSequenceClassification"], "hidden_act": "gelu",
            "num_hidden_layers": 1, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9,
            "intermediate_size": 8, "max_position_embeddings": 8, "#;
        let config = Config::parse(format!("{head}{extra}}}").as_bytes(), false);
        config.map_or_else(|error| panic!("{error}"), |config| config.problem)
    };
    assert_eq!(config(r#""id2label": {"0": "score"}"#), Problem::Regression);
    assert_eq!(config(r#""num_labels": 1"#), Problem::Regression);
    assert_eq!(config(r#""num_labels": 3"#), Problem::SingleLabel);
    let one = r#""num_labels": 1, "problem_type": "single_label_classification""#;
    assert_eq!(config(one), Problem::SingleLabel);
}

/// Checks that rules of normalisation change the letters, not where a token stands in the text.
#[test]
fn tokens_of_sentence_pieces_stand_where_their_letters_do() {
    let (_, text) = weights_of(&fixtures().join("family/xlm-roberta"));
    let sentence = "Ein \u{fb01}lm \u{fdfa} na  \u{ff3a}\u{fc}rich";
    let letters: Vec<char> = sentence.chars().collect();
    let (input, places) = text.encode_with_places(sentence, 46).unwrap();
    let mut stands = vec![false; letters.len()];
    for (id, place) in input.ids.iter().zip(&places) {
        let Some((start, end)) = *place else { continue };
        stands[start..end].fill(true);
        let piece = text.piece(*id).unwrap();
        if piece.contains("lm") {
            assert_eq!(
                letters[start..end].iter().collect::<String>(),
                " \u{fb01}lm"
            );
        }
    }
    let missed = letters
        .iter()
        .zip(&stands)
        .filter(|(letter, stands)| **letter != ' ' && !**stands);
    assert_eq!(missed.count(), 0, "{places:?}");
    assert_eq!(text.join(&input.ids[1..6]), "Ein film");
}

/// Checks a tokenizer of byte pairs: it includes the space before a word in the word's first token,
/// and leaves it out of the token's place once, not twice.
#[test]
fn tokens_stand_where_their_words_do() {
    let (_, text) = weights_of(&fixtures().join("family/roberta-ner"));
    let sentence = "a quiet , moving film";
    let (input, places) = text.encode_with_places(sentence, 64).unwrap();
    assert_eq!(places.len(), input.tokens());
    let found = |ids: &[u32], places: &[Option<(usize, usize)>]| {
        let tokens = ids.iter().zip(places).filter_map(|(id, place)| {
            let (start, end) = (*place)?;
            let piece = text.piece(*id).unwrap();
            assert_eq!(&sentence[start..end], piece.trim_start_matches('Ġ'));
            Some(&sentence[start..end])
        });
        tokens.collect::<String>()
    };
    let letters = sentence.replace(' ', "");
    assert_eq!(found(&input.ids, &places), letters);
    let pair = &text.windows("ok", sentence, 64, 4).unwrap()[0];
    assert_eq!(found(&pair.ids, &pair.second), letters);
    assert_eq!(text.join(&input.ids[1..input.tokens() - 1]), sentence);
}

#[test]
fn windows_overlap_and_cover_the_whole_text() {
    let (_, text) = weights_of(&fixtures().join("family/electra"));
    let context = "the plot is thin but the cast is a joy and a quiet moving film .";
    let whole = text.windows("ok", context, 512, 4).unwrap();
    assert_eq!(whole.len(), 1);
    let all: Vec<_> = whole[0].second.iter().flatten().collect();
    for (limit, stride) in [(12, 0), (12, 4), (10, 5), (9, 100)] {
        let windows = text.windows("ok", context, limit, stride).unwrap();
        assert!(windows.len() > 1);
        let mut seen: Vec<_> = windows
            .iter()
            .flat_map(|w| w.second.iter().flatten())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, all, "{limit} {stride}");
        for pair in windows.windows(2) {
            let end = |w: &Input| w.second.iter().flatten().max().copied();
            let shared = pair[1].second.iter().flatten();
            let shared = shared
                .filter(|place| Some(**place) <= end(&pair[0]))
                .count();
            assert!(pair[0].tokens() == limit && pair[1].tokens() <= limit);
            // Three special tokens and two of the question leave the rest for the context.
            assert_eq!(shared, stride.min(limit - 6));
        }
    }
    assert!(text.windows("ok", context, 5, 0).is_err());
}
