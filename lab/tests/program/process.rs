//! Commands of the program under test.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Makes a command of the program under test.
pub(crate) fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_primer-lab"))
}

/// Finds a file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Writes a file with a text, and returns its name.
pub(crate) fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Makes the random question-answering model with a vocabulary.
pub(crate) fn random_qa(dir: &Path) -> String {
    let model = dir.join("random-qa");
    std::fs::create_dir(&model).unwrap();
    let fixtures = repository("crates/model/tests/fixtures/random-qa");
    for file in ["config.json", "model.safetensors", "tokenizer_config.json"] {
        std::fs::copy(fixtures.join(file), model.join(file)).unwrap();
    }
    let vocab = repository("models/sst2-demo/vocab.txt");
    std::fs::copy(vocab, model.join("vocab.txt")).unwrap();
    model.display().to_string()
}

/// Returns the JSON object that a command prints.
pub(crate) fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a command fails with a code and certain words, and without a panic; returns what it
/// said.
pub(crate) fn fails(command: &mut Command, code: i32, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert!(output.stdout.is_empty());
    assert!(!message.contains("panicked"), "{message}");
    for word in words {
        assert!(message.contains(word), "no \"{word}\" in: {message}");
    }
    message
}
