//! Figures of the documentation that a command prints.

use primer_testkit::command::json;
use primer_testkit::files::repository;
use primer_testkit::process::primer;
use serde_json::Value;

fn inspected(tokens: &str) -> Value {
    json(primer().args(["inspect", "--tokens", tokens]))
}

/// Formats megabytes with some digits.
fn mb(bytes: &Value, digits: usize) -> String {
    format!("{:.digits$}", bytes.as_f64().unwrap() / 1e6)
}

/// Checks the embedded model's bytes in the section on sizing.
#[test]
fn the_page_on_operations_has_the_bytes_that_inspect_prints() {
    let page = std::fs::read_to_string(repository("docs/operations.md")).unwrap();
    let has = |row: String| assert!(page.contains(&row), "docs/operations.md lacks: {row}");
    let found = inspected("30");
    let once = ["hint_bytes", "multiplier_bytes"].map(|key| mb(&found[key], 1));
    has(format!("| {} MB, {} MB |", once[0], once[1]));
    let bytes = &found["bytes"];
    has(format!(
        "| offline {} MB up, {} MB down; online {} MB up, {} MB down |",
        mb(&bytes["offline_up"], 1),
        mb(&bytes["offline_down"], 1),
        mb(&bytes["online_up"], 2),
        mb(&bytes["online_down"], 2),
    ));
    let bundles = ["8", "16", "64"].map(|tokens| inspected(tokens)["stored"].clone());
    for party in ["client", "server"] {
        let sizes = bundles.each_ref().map(|stored| mb(&stored[party], 1));
        has(format!("| {} MB |", sizes.join(", ")));
    }
}
