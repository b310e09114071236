//! What preparing several bundles together saves.

use super::super::grid::Grid;
use super::super::records::Records;
use super::super::subject::Subject;
use super::{EXTRAPOLATED, ONE, basis, bytes, mark, seconds};

/// Shows one bundle alone and several together, each with what one of them costs.
pub(super) fn together(records: &Records, subject: Subject<'_>) -> Grid {
    let note = format!(
        "Every figure is that of one bundle. Products of several bundles share ciphertexts; \
         everything after them is each bundle's own. {ONE} {EXTRAPOLATED}"
    );
    let head = [
        "scheme",
        "bundles",
        "offline s",
        "online s",
        "bytes offline",
        "bytes online",
        "memory server",
        "measured",
    ];
    let title = format!("Bundles prepared together: {}", subject.title());
    let mut grid = Grid::new(&title, &note, &head);
    for (entrant, table, row) in records.together(subject) {
        let b = &row.bytes;
        grid.push(vec![
            format!("`{}`", entrant.name()),
            row.bundles.to_string(),
            mark(row, seconds(row.offline_s)),
            mark(row, seconds(row.online_s)),
            mark(row, bytes(b.offline_up + b.offline_down)),
            mark(row, bytes(b.online_up + b.online_down)),
            bytes(row.peak_rss_server),
            basis(records, table, row),
        ]);
    }
    grid
}
