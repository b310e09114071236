//! Commands: the programs under test, what they print, how they fail.

use serde_json::Value;
use std::process::{Command, Output};

/// Makes a command of a program of the package whose tests run: Cargo has built it for them.
pub fn program(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    Command::new(profile.join(name))
}

/// Returns the JSON object that a command prints.
pub fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object on standard output")
}

/// Returns what a command said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that a command fails with a code and certain words, and without a panic; returns what it
/// said.
pub fn fails(command: &mut Command, code: i32, words: &[&str]) -> String {
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

/// Sends a signal to a process that this test started.
pub fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}
