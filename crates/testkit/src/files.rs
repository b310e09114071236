//! Files of the repository and beside it, and copies of them for a test.

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Returns the path of a file of the repository.
pub fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path)
}

/// Returns the path of a part of the larger models and data, if they are next to the repository;
/// prints a note if they are not.
pub fn shared(part: &str) -> Option<PathBuf> {
    let path = repository("../shared").join(part);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {part} of the shared models and data is not there");
    None
}

/// Returns where the small random models are, whose answers Hugging Face's code has given.
pub fn fixtures() -> PathBuf {
    repository("crates/model/tests/fixtures")
}

/// Returns where the small copies of other families' checkpoints are.
pub fn families() -> PathBuf {
    fixtures().join("family")
}

/// Writes a file with a text, and returns its name.
pub fn write(dir: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Copies some files of a directory into another.
pub fn copy(from: &Path, to: &Path, files: &[&str]) {
    for file in files {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
}

/// Makes a complete directory of a random model that a test may damage. It has `vocab.txt` only, so
/// that this way of loading a tokenizer is tested too.
pub fn random_model(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    copy_random_model(name, dir.path());
    dir
}

/// Makes the same in a directory that is there.
pub fn copy_random_model(name: &str, to: &Path) {
    let model = ["config.json", "model.safetensors", "tokenizer_config.json"];
    copy(&fixtures().join(name), to, &model);
    copy(&repository("models/sst2-demo"), to, &["vocab.txt"]);
}

/// Copies the embedded model's directory.
pub fn copy_of_demo(to: &Path) {
    let files = ["config.json", "tokenizer.json", "model.safetensors"];
    copy(&repository("models/sst2-demo"), to, &files);
}

/// Makes the random question-answering model with a vocabulary, and returns where it is.
pub fn random_qa(dir: &Path) -> String {
    let model = dir.join("random-qa");
    std::fs::create_dir(&model).unwrap();
    copy_random_model("random-qa", &model);
    model.display().to_string()
}
