//! One inference between two hosts, and beside it the same over the program's own link.

use super::super::grid::Grid;
use super::super::records::Records;
use super::{bytes, seconds};

/// Returns every link in two lines, one for each phase.
pub(super) fn hosts(records: &Records) -> Grid {
    let note = "Client and server in two network namespaces, sockets and TLS between them, by \
        `prepare` and `classify`; beside it the same by `primer bench`, which shapes its link \
        itself. The link is as a probe found it. Offline, the first pair includes a connection \
        and the session's keys. The interface counts headers and acknowledgements, the program \
        what is above TLS. A number in brackets is that of the command at the end.";
    let head = [
        "model",
        "scheme",
        "link",
        "phase",
        "seconds",
        "bytes, program",
        "bytes, interface",
        "`bench`: seconds",
        "`bench`: bytes",
        "measured",
    ];
    let mut grid = Grid::new("Two hosts", note, &head);
    for hosts in &records.hosts {
        let number = records.number(&hosts.provenance);
        let basis = match hosts.runs {
            0 | 1 => format!("whole [{number}]"),
            runs => format!("whole, median of {runs} [{number}]"),
        };
        for over in &hosts.links {
            let probed = &over.probed;
            let link = format!(
                "{}: {:.1} ms, {:.0} MB/s",
                over.link,
                1e3 * probed.round_trip_s,
                probed.bytes_per_second / 1e6
            );
            let (own, bench) = (&over.bytes, &over.bench);
            let counted = [own, &over.interface_bytes, &bench.bytes];
            let offline = counted.map(|b| bytes(b.offline_up + b.offline_down));
            let online = counted.map(|b| bytes(b.online_up + b.online_down));
            let phases = [
                ("offline", over.offline_s, bench.offline_s, offline),
                ("online", over.online_s, bench.online_s, online),
            ];
            for (phase, taken, benched, [program, interface, shaped]) in phases {
                grid.push(vec![
                    format!("{}, {} tokens", hosts.model, over.tokens),
                    format!("`{}`", hosts.scheme),
                    link.clone(),
                    phase.into(),
                    seconds(taken),
                    program,
                    interface,
                    seconds(benched),
                    shaped,
                    basis.clone(),
                ]);
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::records;
    use super::*;
    use serde_json::json;

    #[test]
    fn both_ways_of_shaping_stand_beside_each_other() {
        let of = |offline: u64, online: u64| {
            json!({
                "offline_up": offline, "offline_down": offline,
                "online_up": online, "online_down": online,
            })
        };
        let result = json!({
            "model": "sst2-demo", "scheme": "lean", "threads_per_party": 1, "runs": 3,
            "links": [{
                "link": "paper", "round_trip_s": 0.0023, "bytes_per_second": 1e8,
                "shaped_by": "tbf", "probed": {"round_trip_s": 0.0027, "bytes_per_second": 9.6e7},
                "tokens": 30, "label": "positive", "offline_s": 1.0, "online_s": 0.21,
                "bytes": of(31_300_000, 1_950_000), "interface_bytes": of(31_500_000, 1_960_000),
                "bench": {
                    "offline_s": 0.83, "online_s": 0.19, "setup_s": 0.2, "setup_bytes": 9,
                    "bytes": of(30_500_000, 1_950_000),
                },
            }],
            "commit": "abc", "machine": "a machine", "command": "lab/scripts/two-hosts --bench",
        });
        let grid = hosts(&records(&[result.to_string()]));
        let cells = |at: usize| grid.rows[at][2..].join(" | ");
        assert_eq!(
            cells(0),
            "paper: 2.7 ms, 96 MB/s | offline | 1.00 | 63 MB | 63 MB | 0.83 | 61 MB | \
             whole, median of 3 [1]"
        );
        assert_eq!(
            cells(1),
            "paper: 2.7 ms, 96 MB/s | online | 0.21 | 3.90 MB | 3.92 MB | 0.19 | 3.90 MB | \
             whole, median of 3 [1]"
        );
        let unbenched = result.to_string().replace("\"bench\"", "\"other\"");
        let refused = Records::default().add(&unbenched).unwrap_err();
        assert!(format!("{refused:#}").contains("--bench"), "{refused:#}");
    }
}
