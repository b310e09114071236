//! Other systems beside the protocol's schemes, on one machine.

use super::super::distinct;
use super::super::grid::Grid;
use super::super::peer::Peer;
use super::super::records::Records;
use super::super::subject::Subject;
use super::{EXTRAPOLATED, basis, bytes, core_seconds, mark, seconds};
use crate::bench::Scheme;
use primer_measure::bench::table::{Row, Table};

/// Tabulates seconds and bytes of one answer, both phases, and how they compare with the default
/// scheme's.
pub(super) fn peers(records: &Records) -> Grid {
    let note = format!(
        "Seconds and bytes are those of one answer, both phases. The last figures are how many \
         times those of `{}` they are, of the same model, length and link. {} {EXTRAPOLATED}",
        Scheme::Lean.name(),
        Peer::ALL
            .map(|peer| format!("{}: {}.", peer.title(), peer.differs_in()))
            .join(" ")
    );
    let head = [
        "system",
        "model",
        "seconds",
        "bytes",
        "core-seconds a token",
        "times the seconds",
        "times the bytes",
        "measured",
    ];
    let mut grid = Grid::new("Other systems on the same machine", &note, &head);
    let mut subjects = distinct(records.peers.iter().map(Subject::of));
    subjects.sort_by_key(|subject| subject.tokens);
    for subject in subjects {
        let ours = records.rows(subject).filter(|(e, ..)| !e.is_comparator());
        let ours: Vec<_> = ours.map(|(e, table, row)| (e.name(), table, row)).collect();
        let default = ours.iter().find(|(name, ..)| *name == Scheme::Lean.name());
        let default = default.map(|(_, _, row)| *row);
        for (name, table, row) in of_peers(records, subject) {
            grid.push(line(records, subject, name, (table, row), default));
        }
        for (name, table, row) in &ours {
            let name = format!("`{name}`");
            grid.push(line(records, subject, &name, (table, row), default));
        }
    }
    grid
}

/// Returns the best figures of each other system.
pub(in crate::report) fn of_peers<'r>(
    records: &'r Records,
    subject: Subject<'_>,
) -> Vec<(&'static str, &'r Table, &'r Row)> {
    let best = |peer: Peer| {
        let (table, row) = records.peer(subject, peer)?;
        Some((peer.title(), table, row))
    };
    Peer::ALL.into_iter().filter_map(best).collect()
}

fn line(
    records: &Records,
    subject: Subject<'_>,
    name: &str,
    (table, row): (&Table, &Row),
    default: Option<&Row>,
) -> Vec<String> {
    let total = |row: &Row| row.offline_s + row.online_s;
    let times = |of: f64, by: f64| mark(row, format!("{:.1}", of / by));
    let compared =
        |f: &dyn Fn(&Row) -> f64| super::or_none(default.map(|default| times(f(row), f(default))));
    vec![
        name.to_owned(),
        subject.title(),
        mark(row, seconds(total(row))),
        mark(row, bytes(row.bytes.total())),
        mark(row, core_seconds(table, row)),
        compared(&total),
        compared(&|row| row.bytes.total() as f64),
        basis(records, table, row),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{records, table, with};
    use super::*;

    #[test]
    fn ratios_are_of_the_same_subject() {
        let spu = with(
            &table("bert-base", &["spu"], true, 0.0),
            "results.online_s",
            86.0,
        );
        let other = with(
            &table("bert-tiny", &["crypten"], false, 0.0),
            "results.online_s",
            7.0,
        );
        let grid = peers(&records(&[
            spu,
            other,
            table("bert-base", &["lean"], false, 40.0),
        ]));
        let cells = |at: usize| grid.rows[at][..7].join(" | ");
        assert_eq!(
            cells(0),
            "SPU (Cheetah) | BERT-base, 30 tokens | 86.0 * | 0.0 kB * | 5.73 * | 2.0 * | 1.0 *"
        );
        assert_eq!(
            cells(1),
            "`lean` | BERT-base, 30 tokens | 43.0 | 0.0 kB | 2.87 | 1.0 | 1.0"
        );
        assert_eq!(
            cells(2),
            "CrypTen, with a dealer | bert-tiny, 30 tokens | 7.00 | 0.0 kB | 0.47 | – | –"
        );
    }
}
