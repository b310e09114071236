//! Numbers of the documentation that follow from `budget.txt`, which a test of its own keeps exact.
//! After a change that is meant, `PRIMER_BLESS=1 cargo test -p primer-protocol --test pages` writes
//! them again.
#![allow(missing_docs)]

use std::path::Path;

const PAGE: &str = "paper/docs/schemes.md";
const BEGIN: &str = "<!-- schemes: begin -->\n";
const END: &str = "<!-- schemes: end -->";

/// The totals of the guide's table of trips, which `docs/guide/draw.py` writes.
#[test]
fn the_guide_has_the_trips_and_bytes_of_the_budget() {
    let budget = read("crates/protocol/tests/budget.txt");
    let all = costs(&budget, 12, "lean").expect("BERT-base is in the budget");
    let [up, down, trips] = [all[2], all[3], all[4]].map(grouped);
    let row = format!("| **{trips}** | **all** | | **{down}** | | **{up}** |");
    let page = read("docs/guide.md");
    assert!(page.contains(&row), "docs/guide.md must have {row}");
}

/// A number with its thousands apart.
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

/// The costs of a scheme for a number of layers of BERT-base and 30 tokens: bytes offline up and
/// down, online up and down, round trips, gates, bytes stored by the client and by the server.
fn costs(budget: &str, layers: usize, scheme: &str) -> Option<Vec<u64>> {
    let start = format!("{layers:>2} x  768,  30 tokens, {scheme:<4}: ");
    let line = budget.lines().find_map(|line| line.strip_prefix(&start))?;
    let numbers = line.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    assert_eq!(numbers.len(), 8, "{line}");
    Some(numbers)
}

#[test]
fn the_costs_of_schemes_are_those_of_the_budget() {
    let budget = read("crates/protocol/tests/budget.txt");
    let mut table = String::from(
        "| scheme | offline up, down (MB) | online up, down (MB) | round trips | of these a layer \
         | AND gates | stored by client, server (MB) |\n|---|---|---|---|---|---|---|\n",
    );
    let mb = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    for scheme in ["base", "f", "fp", "fpc", "lean"] {
        let all = costs(&budget, 12, scheme).expect("BERT-base is in the budget");
        // Costs are linear in layers, which the budget's own test checks.
        let half = costs(&budget, 6, scheme);
        let layer = half.map_or(String::new(), |half| {
            assert_eq!((all[4] - half[4]) % 6, 0);
            ((all[4] - half[4]) / 6).to_string()
        });
        table += &format!(
            "| `{scheme}` | {}, {} | {}, {} | {} | {layer} | {:.1} M | {}, {} |\n",
            mb(all[0]),
            mb(all[1]),
            mb(all[2]),
            mb(all[3]),
            all[4],
            all[5] as f64 / 1e6,
            mb(all[6]),
            mb(all[7]),
        );
    }
    let page = read(PAGE);
    let (before, rest) = page.split_once(BEGIN).expect("the page has a table");
    let (kept, after) = rest.split_once(END).expect("the table has an end");
    if std::env::var_os("PRIMER_BLESS").is_some() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let made = [before, BEGIN, &table, END, after].concat();
        std::fs::write(path.join(PAGE), made).unwrap();
    } else {
        assert_eq!(table, kept, "{PAGE} is stale; see the top of this test");
    }
}
