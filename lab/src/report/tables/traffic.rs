//! What crosses the link, and what a slow link costs.

use super::super::distinct;
use super::super::grid::Grid;
use super::super::records::{Records, TOKENS};
use super::super::subject::Subject;
use super::{EXTRAPOLATED, ONE, basis, bytes, mark, or_none, seconds};
use crate::bench::Entrant;
use primer_measure::bench::table::{Row, Table};
use primer_net::Link;

/// Shows bytes, round trips, gates and memory, and what is done once.
pub(super) fn traffic(records: &Records, subject: Subject<'_>) -> Grid {
    let title = if subject == Subject::main() {
        "What crosses the link, BERT-base".into()
    } else {
        format!("What crosses the link: {}", subject.title())
    };
    let mut grid = Grid::new(
        &title,
        "* extrapolated. Bytes are those of one inference; keys are made and sent once a session, \
         the model is read and encoded once for all sessions, and the seconds of one inference in \
         the other tables are without both. Plaintext: the float reference on one thread. Memory \
         is that of the run itself, not extrapolated. The logit error is that of the layers that \
         were run, and of a scheme that ran another model there is none.",
        &[
            "scheme",
            "offline up",
            "offline down",
            "online up",
            "online down",
            "round trips online",
            "AND gates, million",
            "keys, once a session",
            "keys, seconds",
            "model, seconds",
            "plaintext s",
            "memory client",
            "memory server",
            "kept by the client",
            "kept by the server",
            "largest logit error",
        ],
    );
    for (entrant, _, row) in records.rows(subject) {
        let b = &row.bytes;
        // Keys do not grow with layers: they are measured unless something else was run.
        let keys = bytes(row.setup_bytes);
        let keys = match row.measured_on {
            Some(_) => mark(row, keys),
            None => keys,
        };
        let error = format!("{:.4}", row.max_abs_logit_error);
        let mut line = vec![format!("`{}`", entrant.name())];
        let counts = [b.offline_up, b.offline_down, b.online_up, b.online_down];
        line.extend(counts.map(|c| mark(row, bytes(c))));
        line.push(mark(row, row.rounds_online.to_string()));
        line.push(mark(row, format!("{:.0}", row.and_gates as f64 / 1e6)));
        line.push(keys);
        line.push(or_none(row.setup_s.map(seconds)));
        line.push(or_none(row.model_s.map(seconds)));
        line.push(seconds(row.plaintext_s));
        line.push(bytes(row.peak_rss_client));
        line.push(bytes(row.peak_rss_server));
        let kept = [row.client_stored_bytes, row.server_stored_bytes];
        line.extend(kept.map(|kept| or_none((kept > 0).then(|| mark(row, bytes(kept))))));
        line.push(or_none(row.measured_on.is_none().then_some(error)));
        grid.push(line);
    }
    grid
}

/// Returns the same inference over slower links.
pub(super) fn links(records: &Records) -> Grid {
    let note = format!(
        "`paper` has 2.3 ms and 100 MB/s as in the paper's experiments, `wan` 40 ms and 25 MB/s. \
         {ONE} {EXTRAPOLATED}"
    );
    let head = [
        "model",
        "scheme",
        "link",
        "offline s",
        "online s",
        "measured",
    ];
    let mut grid = Grid::new("Links", &note, &head);
    let slow = |t: &&Table| t.link != Link::Loopback && t.tokens == TOKENS;
    let slow: Vec<&Table> = records.tables.iter().filter(slow).collect();
    let models = distinct(slow.iter().map(|t| t.model.as_str()));
    let each = |model| Entrant::all().map(move |entrant| (model, entrant));
    for (model, entrant) in models.into_iter().flat_map(each) {
        let of_model = slow.iter().filter(|t| t.model == model);
        let rows = of_model.flat_map(|t| t.results.iter().map(move |r| (*t, r)));
        let shaped = rows.filter(|(_, row)| row.scheme == entrant.name());
        let shaped: Vec<(&Table, &Row)> = shaped.collect();
        if shaped.is_empty() {
            continue;
        }
        let plain = records.row(Subject::plain(model), entrant);
        for (table, row) in plain.into_iter().chain(shaped) {
            grid.push(vec![
                model.to_owned(),
                format!("`{}`", entrant.name()),
                table.link.name().into(),
                mark(row, seconds(row.offline_s)),
                mark(row, seconds(row.online_s)),
                basis(records, table, row),
            ]);
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{records, table, table_at, with};
    use super::*;

    #[test]
    fn what_ran_another_model_says_so() {
        let fhe = table("bert-base", &["fhe"], true, 0.0);
        let fhe = with(&fhe, "results.measured_on", "1 layer of 32");
        let fp = table("bert-base", &["fp"], true, 40.0);
        let fp = with(&with(&fp, "results.setup_s", 1.5), "results.model_s", 20.0);
        let grid = traffic(&records(&[fhe, fp]), Subject::main());
        let tail = |at: usize| grid.rows[at][7..].join(" | ");
        assert_eq!(
            tail(0),
            "0.0 kB * | – | – | 0.10 | 0.0 kB | 0.0 kB | – | – | –",
            "keys of other parameters, another model's error"
        );
        assert_eq!(
            tail(1),
            "0.0 kB | 1.50 | 20.0 | 0.10 | 0.0 kB | 0.0 kB | – | – | 0.0010"
        );
    }

    #[test]
    fn a_slow_link_stands_under_none() {
        let grid = links(&records(&[
            table_at("bert-base", 30, "wan", &["fp"]),
            table_at("bert-base", 64, "wan", &["fp"]),
            table("bert-base", &["fp"], false, 1.0),
        ]));
        let links: Vec<&str> = grid.rows.iter().map(|r| r[2].as_str()).collect();
        assert_eq!(links, ["loopback", "wan"]);
        assert_eq!(grid.rows[1][5], "whole [1]");
    }
}
