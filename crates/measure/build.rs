//! Tells the program which commit it is built from, for the results that it measures.

use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Every commit and checkout adds a line there.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        ":/crates",
        ":/paper",
        ":/lab",
    ]);
    let mark = if changed.is_some_and(|files| !files.is_empty()) {
        "+"
    } else {
        ""
    };
    println!("cargo:rustc-env=PRIMER_COMMIT={commit}{mark}");
}
