//! Numbers of the documentation that follow from `budget.txt`, which a test of its own keeps exact.
#![allow(missing_docs)]

use std::path::Path;

/// Checks the totals of the guide's table of trips, which `docs/guide/draw.py` writes.
#[test]
fn the_guide_has_the_trips_and_bytes_of_the_budget() {
    let budget = read("crates/engine/tests/budget.txt");
    let all = costs(&budget, 12, "lean").expect("BERT-base is in the budget");
    let [up, down, trips] = [all[2], all[3], all[4]].map(grouped);
    let row = format!("| **{trips}** | **all** | | **{down}** | | **{up}** |");
    let page = read("docs/guide.md");
    assert!(page.contains(&row), "docs/guide.md must have {row}");
}

/// Writes a number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups
        .map(|group| std::str::from_utf8(group).expect("digits"))
        .collect();
    groups.join(",")
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Finds the costs of a scheme for a number of layers of BERT-base and 30 tokens: bytes offline up
/// and down, online up and down, round trips, gates, bytes stored by the client and by the server.
fn costs(budget: &str, layers: usize, scheme: &str) -> Option<Vec<u64>> {
    let start = format!("{layers:>2} x  768,  30 tokens, {scheme:<4}: ");
    let line = budget.lines().find_map(|line| line.strip_prefix(&start))?;
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    assert_eq!(numbers.len(), 8, "{line}");
    Some(numbers)
}
