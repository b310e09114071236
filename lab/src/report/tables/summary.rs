//! The first table: what one private answer takes, here and elsewhere.

use super::super::answer::answers;
use super::super::grid::Grid;
use super::super::records::Records;
use super::super::subject::Subject;
use super::{NONE, bytes, or_none, seconds};

/// Returns the figures of the first picture, with the commands that give them again.
pub(super) fn summary(records: &Records) -> Grid {
    let title = format!("One private answer: {}", Subject::main().title());
    let note = "Seconds are without the keys of a session and the preparation of the model. The \
        paper's are those of Primer-FPC, with four threads a party and a link between two \
        machines; all others have one thread a party on one machine. Of bundles prepared \
        together, each. * extrapolated.";
    let head = [
        "system",
        "offline s",
        "online s",
        "bytes in all (online)",
        "kept by the client",
        "command",
    ];
    let mut grid = Grid::new(&title, note, &head);
    for answer in answers(records) {
        let mark = if answer.extrapolated { " *" } else { "" };
        let sent = match (answer.bytes, answer.online_bytes) {
            (0, _) => "none".into(),
            (all, None) => format!("{}{mark}", bytes(all)),
            (all, Some(online)) => format!("{}{mark} ({})", bytes(all), bytes(online)),
        };
        let command = answer.command.map(|c| c.trim_end_matches(" --json"));
        grid.push(vec![
            answer.name,
            or_none(answer.offline_s.map(|s| seconds(s) + mark)),
            seconds(answer.online_s) + mark,
            sent,
            or_none(answer.kept.map(|kept| bytes(kept) + mark)),
            command.map_or(NONE.into(), |c| format!("`{c}`")),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{records, table, with};
    use super::*;

    #[test]
    fn a_line_for_everybody_with_its_command() {
        let lean = table("bert-base", &["lean"], false, 8.0);
        let lean = with(&lean, "results.client_stored_bytes", 267_000_000);
        let lean = with(&lean, "command", "primer bench --json");
        let grid = summary(&records(&[lean, table("bert-base", &["spu"], true, 0.0)]));
        let lines: Vec<String> = grid.rows.iter().map(|row| row.join(" | ")).collect();
        assert_eq!(
            lines,
            [
                "the paper | 399 | 35.4 | 3.60 GB | – | –",
                "SPU (Cheetah) | – | 3.00 * | 0.0 kB * | – | `primer bench --model bert-base`",
                "lean | 8.00 | 3.00 | 0.0 kB (0.0 kB) | 267 MB | `primer bench`",
                "float, nothing private | – | 0.10 | none | – | –",
            ]
        );
    }
}
