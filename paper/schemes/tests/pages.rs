//! Numbers of the documentation that follow from the budgets of all schemes, those of the paper and
//! the product's, which tests of their own keep exact.
//! After a change that is meant, `PRIMER_BLESS=1 cargo test -p primer-paper --test pages` writes
//! them again.
#![allow(missing_docs)]

use std::path::Path;

const PAGE: &str = "paper/docs/schemes.md";
const BEGIN: &str = "<!-- schemes: begin -->\n";
const END: &str = "<!-- schemes: end -->";

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

#[test]
fn the_costs_of_schemes_are_those_of_the_budget() {
    let budgets = ["paper/schemes", "crates/engine"].map(|of| format!("{of}/tests/budget.txt"));
    let budget = budgets.map(|path| read(&path)).concat();
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
