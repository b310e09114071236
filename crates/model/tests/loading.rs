//! Files that are missing, cut off, contradictory or hostile: each refused by name.
#![allow(missing_docs)]

mod common;

use common::{load, random_model};
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;

fn refusal(dir: &Path) -> String {
    match load(dir) {
        Ok(_) => panic!("a damaged model was loaded"),
        Err(error) => error.to_string(),
    }
}

fn refusal_after_config(change: impl FnOnce(&mut Value)) -> String {
    let dir = random_model("random-tanh-3labels");
    let path = dir.path().join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    change(&mut config);
    std::fs::write(&path, config.to_string()).unwrap();
    refusal(dir.path())
}

/// Rewrites the weights with one tensor changed.
fn refusal_after_tensor(
    change: impl FnOnce(&mut HashMap<String, (Dtype, Vec<usize>, Vec<u8>)>),
) -> String {
    let dir = random_model("random-tanh-3labels");
    let path = dir.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = HashMap::new();
    for (name, view) in file.tensors() {
        tensors.insert(
            name,
            (view.dtype(), view.shape().to_vec(), view.data().to_vec()),
        );
    }
    change(&mut tensors);
    let views: HashMap<String, TensorView<'_>> = tensors
        .iter()
        .map(|(name, (dtype, shape, data))| {
            (
                name.clone(),
                TensorView::new(*dtype, shape.clone(), data).unwrap(),
            )
        })
        .collect();
    std::fs::write(&path, serialize(&views, None).unwrap()).unwrap();
    refusal(dir.path())
}

#[test]
fn missing_files_are_named() {
    for file in ["config.json", "model.safetensors"] {
        let dir = random_model("random-qa");
        std::fs::remove_file(dir.path().join(file)).unwrap();
        assert!(refusal(dir.path()).contains(file));
    }
    let dir = random_model("random-qa");
    std::fs::remove_file(dir.path().join("vocab.txt")).unwrap();
    assert!(refusal(dir.path()).contains("neither tokenizer.json nor vocab.txt"));
    assert!(refusal(&dir.path().join("nowhere")).contains("not a directory"));
}

#[test]
fn cut_off_weights_are_refused_at_every_length() {
    let dir = random_model("random-encoder");
    let path = dir.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    for keep in [0, 1, 7, 8, 9, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..keep]).unwrap();
        let message = refusal(dir.path());
        assert!(message.contains("model.safetensors"), "{keep}: {message}");
    }
    let mut hostile = whole.clone();
    hostile[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&path, &hostile).unwrap();
    assert!(refusal(dir.path()).contains("cut off or damaged"));
}

#[test]
fn wrong_tensors_are_named() {
    let message = refusal_after_tensor(|t| {
        let moved = t.remove("classifier.weight").unwrap();
        t.insert("clasifier.weight".into(), moved);
    });
    assert!(
        message.contains("classifier.weight is missing"),
        "{message}"
    );
    assert!(message.contains("clasifier.weight"), "{message}");

    let message = refusal_after_tensor(|t| {
        let shape = &mut t.get_mut("bert.pooler.dense.bias").unwrap().1;
        *shape = vec![8, 8];
    });
    assert!(
        message.contains("pooler.dense.bias has shape [8, 8]"),
        "{message}"
    );
    assert!(message.contains("[64]"), "{message}");

    let message = refusal_after_tensor(|t| {
        let entry = t.get_mut("classifier.bias").unwrap();
        *entry = (Dtype::I32, vec![3], vec![0; 12]);
    });
    assert!(message.contains("classifier.bias is I32"), "{message}");
}

#[test]
fn weights_that_are_not_numbers_are_named() {
    for (bad, shown) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "inf"),
        (f32::NEG_INFINITY, "-inf"),
    ] {
        let message = refusal_after_tensor(|t| {
            let data = &mut t
                .get_mut("bert.encoder.layer.1.output.dense.weight")
                .unwrap()
                .2;
            data[40..44].copy_from_slice(&bad.to_le_bytes());
        });
        let expected = format!("encoder.layer.1.output.dense.weight has {shown} at element 10");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn contradictory_configurations_are_refused() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 13] = [
        (
            |c| c["num_attention_heads"] = json!(7),
            "hidden_size 64 is not divisible",
        ),
        (
            |c| c["num_attention_heads"] = json!(0),
            "num_attention_heads is 0",
        ),
        (
            |c| c["num_hidden_layers"] = json!(100_000),
            "num_hidden_layers is 100000",
        ),
        (|c| c["vocab_size"] = json!(u64::MAX), "vocab_size is"),
        (|c| c["hidden_size"] = json!(-1), "config.json"),
        (
            |c| c["hidden_act"] = json!("swish"),
            "hidden_act \"swish\" is not supported",
        ),
        (
            |c| c["model_type"] = json!("roberta"),
            "model_type \"roberta\"",
        ),
        (
            |c| c["architectures"] = json!(["BertForMaskedLM"]),
            "\"BertForMaskedLM\" is not",
        ),
        (
            |c| c["architectures"] = json!([]),
            "\"architectures\" is missing",
        ),
        (
            |c| c["position_embedding_type"] = json!("relative_key"),
            "\"relative_key\"",
        ),
        (|c| c["is_decoder"] = json!(true), "is_decoder"),
        (
            |c| c["id2label"] = json!({"0": "a", "2": "b"}),
            "none for \"1\"",
        ),
        (|c| c["layer_norm_eps"] = json!(2.0), "layer_norm_eps is 2"),
    ];
    for (change, expected) in cases {
        let message = refusal_after_config(change);
        assert!(message.contains(expected), "{expected}: {message}");
    }
}

#[test]
fn a_smaller_embedding_than_the_tokenizer_is_refused() {
    let dir = random_model("random-qa");
    let path = dir.path().join("vocab.txt");
    let mut vocab = std::fs::read_to_string(&path).unwrap();
    vocab.push_str("onewordtoomany\n");
    std::fs::write(&path, vocab).unwrap();
    let message = refusal(dir.path());
    assert!(
        message.contains("8193 tokens, but the model's embedding only 8192"),
        "{message}"
    );
}

#[test]
fn damaged_tokenizers_are_refused() {
    let dir = random_model("random-qa");
    std::fs::write(dir.path().join("tokenizer.json"), "{\"version\": 1").unwrap();
    assert!(refusal(dir.path()).contains("tokenizer.json"));
    std::fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    std::fs::write(dir.path().join("vocab.txt"), "only\nwords\n").unwrap();
    assert!(refusal(dir.path()).contains("is missing"));
}

#[test]
fn names_without_the_prefix_load_too() {
    let dir = random_model("random-tanh-3labels");
    let path = dir.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let views: HashMap<String, TensorView<'_>> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| (name.trim_start_matches("bert.").to_owned(), view))
        .collect();
    std::fs::write(&path, serialize(&views, None).unwrap()).unwrap();
    assert!(load(dir.path()).is_ok());
}
