//! The paper's three tables with our figures beside theirs, and what it does not tell: bytes,
//! rounds, growth, accuracy.

mod accuracy;
mod costs;
mod growth;
mod hosts;
mod peers;
mod summary;
mod together;
mod traffic;

pub(super) use growth::{Line, lines};
pub(super) use peers::of_peers;

use super::grid::Grid;
use super::records::Records;
use super::subject;
use crate::bench::Entrant;
use primer_measure::bench::table::{Row, Table};

const NONE: &str = "–";
/// What has to be said of every table of seconds.
const ONE: &str = "Seconds are those of one inference, without the keys of a session and the \
    preparation of the model, which are in the table “What crosses the link”. A number in brackets \
    is that of the command at the end.";
const EXTRAPOLATED: &str = "* extrapolated from what the last column says.";

/// Formats seconds with as many digits as they deserve.
pub(super) fn seconds(s: f64) -> String {
    match s {
        s if s >= 10_000.0 => format!("{:.0}K", s / 1000.0),
        s if s >= 100.0 => format!("{s:.0}"),
        s if s >= 10.0 => format!("{s:.1}"),
        s => format!("{s:.2}"),
    }
}

/// Formats bytes in the unit that fits.
pub(super) fn bytes(b: u64) -> String {
    let b = b as f64;
    match b {
        b if b >= 1e12 => format!("{:.1} TB", b / 1e12),
        b if b >= 1e9 => format!("{:.2} GB", b / 1e9),
        b if b >= 1e7 => format!("{:.0} MB", b / 1e6),
        b if b >= 1e5 => format!("{:.2} MB", b / 1e6),
        b => format!("{:.1} kB", b / 1e3),
    }
}

/// Formats the seconds of all cores of both parties, for each token of the input.
fn core_seconds(table: &Table, row: &Row) -> String {
    let cores = 2 * table.threads_per_party;
    let total = (row.offline_s + row.online_s) * cores as f64;
    seconds(total / table.tokens as f64)
}

/// Tells whether the paper's table 3, which is of Primer-FPC, may stand beside a row: that of a
/// scheme which prepares.
pub(super) const fn is_sized(entrant: Entrant, row: &Row) -> bool {
    !entrant.is_comparator() && row.offline_s > 0.0
}

fn or_none(value: Option<String>) -> String {
    value.unwrap_or_else(|| NONE.into())
}

/// Marks a figure that was not measured whole.
fn mark(row: &Row, figure: String) -> String {
    if row.extrapolated {
        format!("{figure} *")
    } else {
        figure
    }
}

/// Returns what a row rests on, and the number of the command that measured it.
fn basis(records: &Records, table: &Table, row: &Row) -> String {
    let what = match (&row.measured_on, row.extrapolated) {
        (Some(what), _) => what.clone(),
        (None, true) => format!("{} of {} layers", table.layers_measured, table.layers),
        (None, false) => "whole".into(),
    };
    let runs = if table.runs > 1 {
        format!(", median of {}", table.runs)
    } else {
        String::new()
    };
    format!("{what}{runs} [{}]", records.number(&table.provenance))
}

/// Returns all tables: one answer here and elsewhere, other systems beside ours, the paper's in its
/// order, then those of other subjects, two hosts, growth and accuracy.
pub fn all(records: &Records) -> Vec<Grid> {
    let shown = subject::shown(records);
    let mut grids = vec![summary::summary(records), peers::peers(records)];
    for (at, &subject) in shown.iter().enumerate() {
        let suffix = &subject.suffix();
        grids.push(costs::comparison(records, subject).beside(&["schemes"], suffix));
        let steps = ["steps-offline", "steps-online"];
        grids.push(costs::ablation(records, subject).beside(&steps, suffix));
        if at == 0 {
            grids.push(costs::sizes(records).beside(&["models"], ""));
        }
        grids.push(traffic::traffic(records, subject).beside(&["bytes"], suffix));
        grids.push(together::together(records, subject));
        if at == 0 {
            grids.push(traffic::links(records));
        }
    }
    grids.extend([
        hosts::hosts(records),
        growth::layers(records).beside(&["growth-layers"], ""),
        growth::tokens(records).beside(&["growth-tokens"], ""),
        accuracy::papers(records),
        accuracy::by_engine(records).beside(&["accuracy"], ""),
    ]);
    grids.retain(|g| !g.rows.is_empty());
    grids
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        accuracy as eval, everything, records, result, table, table_at, with,
    };
    use super::*;

    #[test]
    fn every_entrant_is_in_every_table() {
        let records = records(&everything());
        let mut grids = all(&records);
        let first = grids.remove(0);
        assert!(
            first.title.starts_with("One private answer"),
            "which has a few of them"
        );
        let (accuracies, costs): (Vec<_>, Vec<_>) =
            grids.iter().partition(|g| g.title.starts_with("Accuracy"));
        assert_eq!(costs.len(), 10, "two subjects, models, links, growth");
        for grid in costs {
            for entrant in Entrant::all() {
                let name = format!("`{}`", entrant.name());
                let mut cells = grid.rows.iter().flatten();
                let found = cells.any(|cell| cell.split(' ').any(|word| word == name));
                assert!(found, "{name} in {}", grid.title);
            }
        }
        let [_, by_engine] = accuracies[..] else {
            panic!("the paper's accuracies, and ours")
        };
        assert_eq!(by_engine.rows.len(), Entrant::all().count());
    }

    #[test]
    fn figures_stand_beside_the_papers() {
        let records = records(&[
            table("bert-base", &["fp", "fpc"], false, 40.0),
            table("bert-base", &["base", "f"], true, 400.0),
            table("bert-base", &["gc"], true, 24_000.0),
            with(&eval("mnli", "secure"), "scheme", "fp"),
            eval("mnli", "fixed"),
            result("mnli", "fixed", "exact", 1000),
        ]);
        let grids = all(&records);
        let titles: Vec<&str> = grids.iter().map(|g| &g.title[..11]).collect();
        let expected = [
            "One private",
            "Table 1: sc",
            "Table 2: se",
            "Table 3: fi",
            "What crosse",
            "Accuracy of",
            "Accuracy by",
        ];
        assert_eq!(titles, expected);
        let text: String = grids.iter().map(Grid::markdown).collect();
        for line in [
            "`fp` (Primer-FP) | 40.0 | 3.00 | 43.0 | 2.87 | 405.2 | 39 | 444.2 \
             | 90.0 (float 92.0) of 50 | 98.0 | 84.6 | whole [1] |",
            "`fpc` (Primer-FPC) | 40.0 | 3.00 | 43.0 | 2.87 | 399.4 | 35.4 | 434.8 \
             | – | – | 84.6 | whole [1] |",
            "`f` (Primer-F) | 400 * | 3.00 * | 403 * | 26.9 * | 6524.3 | 41.2 | 6565.5 \
             | 90.0 (float 92.0) of 50 | 98.0 | 84.6 | 1 of 12 layers [1] |",
            "| 7.5K | 9.8K | 17.3K | 90.0 (float 92.0) of 1000 | 98.0 | 85.1 |",
            "| 400 / 3.00 * |  | 1 of 12 layers [1] |",
            "| 405.2 / 39 | 84.6 |  |",
            "| fixed (exact) | 1000 | 90.00 | 92.00 | 980 of 1000 (96.9 to 98.7) |",
            "| bert-small | 81.6 | 84.5 | 91.1 | 88.5 | 78.2 |",
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }

    #[test]
    fn every_subject_has_its_tables() {
        let other = table_at("minilm", 64, "loopback", &["gc", "fp"]);
        let titles = |texts: &[String]| -> Vec<String> {
            let grids = all(&records(texts));
            grids.into_iter().map(|g| g.title).collect()
        };
        let own = [
            "Schemes: minilm, 64 tokens",
            "Seconds by step: minilm, 64 tokens, offline / online",
            "What crosses the link: minilm, 64 tokens",
        ];
        assert_eq!(titles(std::slice::from_ref(&other)), own);
        let both = titles(&[other.clone(), table("bert-base", &["fp"], false, 1.0)]);
        assert_eq!(both.len(), 8);
        assert_eq!(both[1], "Table 1: schemes, BERT-base");
        assert_eq!(both[5..], own);
        let text: String = all(&records(&[other])).iter().map(Grid::markdown).collect();
        assert!(!text.contains("paper:"), "{text}");
        assert!(
            text.contains("| `gc` | 40.0 | 3.00 | 43.0 | 1.34 | whole [1] |"),
            "{text}"
        );
        let slow = all(&records(&[table_at("bert-base", 30, "paper", &["fp"])]));
        assert_eq!(slow[0].title, "Schemes: BERT-base, 30 tokens, link paper");
        assert!(slow[0].markdown().contains("| 405.2 | 39 | 444.2 |"));
    }

    #[test]
    fn rows_name_their_command_and_runs() {
        let often = with(&table("bert-base", &["fp"], false, 40.0), "runs", 3);
        let records = records(&[table("bert-tiny", &["fp"], true, 4.0), often]);
        let text: String = all(&records).iter().map(Grid::markdown).collect();
        assert_eq!(text.matches("whole, median of 3 [2]").count(), 3, "{text}");
        assert!(text.contains("1 of 12 layers [1]"), "{text}");
    }

    #[test]
    fn figures_have_the_digits_they_deserve() {
        assert_eq!(seconds(43_210.0), "43K");
        assert_eq!(seconds(377.4), "377");
        assert_eq!(seconds(3.789), "3.79");
        assert_eq!(bytes(4_830_000_000), "4.83 GB");
        assert_eq!(bytes(284_000_000), "284 MB");
        assert_eq!(bytes(1_250), "1.2 kB");
    }
}
