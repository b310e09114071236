//! The paper's three tables with our figures beside theirs, and what it does not tell: bytes, rounds, growth, accuracy.

use super::grid::Grid;
use super::paper;
use super::records::{Engine, Records, TOKENS};
use crate::bench::growth::Point;
use crate::bench::shapes::SHAPES;
use crate::bench::table::{Row, Table};
use primer_net::Link;
use primer_plan::graph::PaperStep;

/// The model of tables 1 and 2.
pub(super) const MODEL: &str = "bert-base";
/// The schemes of table 2.
pub(super) const SCHEMES: [&str; 4] = ["base", "f", "fp", "fpc"];
const NONE: &str = "–";

/// Seconds with as many digits as they deserve.
pub(super) fn seconds(s: f64) -> String {
    match s {
        s if s >= 10_000.0 => format!("{:.0}K", s / 1000.0),
        s if s >= 100.0 => format!("{s:.0}"),
        s if s >= 10.0 => format!("{s:.1}"),
        s => format!("{s:.2}"),
    }
}

/// Bytes in the unit that fits.
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

/// What a row rests on.
fn basis(table: &Table, row: &Row) -> String {
    match (&row.measured_on, row.extrapolated) {
        (Some(what), _) => what.clone(),
        (None, true) => format!("{} of {} layers", table.layers_measured, table.layers),
        (None, false) => "whole".into(),
    }
}

/// All tables, in the paper's order.
pub fn all(records: &Records) -> Vec<Grid> {
    let grids = [
        comparison(records),
        ablation(records),
        sizes(records),
        traffic(records),
        links(records),
        layers(records),
        tokens(records),
        accuracy(records),
    ];
    grids.into_iter().filter(|g| !g.rows.is_empty()).collect()
}

/// Table 1 with our default scheme added.
fn comparison(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "Table 1: schemes, BERT-base",
        "Seconds. * extrapolated from what the last column says. Agreement: how many labels of MiniLM on MNLI-m are those of float, \
         and of how many pairs; the paper's is BERT-base's accuracy, of 84.6 % in all its schemes.",
        &[
            "scheme",
            "offline",
            "online",
            "total",
            "paper: offline",
            "paper: online",
            "paper: total",
            "MNLI-m, agreement with float %",
            "paper: MNLI-m %",
            "measured",
        ],
    );
    let engine = |scheme: &str| match scheme {
        "fhe" => Engine::Fhe,
        "gc" => Engine::Exact,
        _ => Engine::Secure,
    };
    for scheme in ["fhe", "gc", "f", "fp", "fpc"] {
        let Some((table, row)) = records.row(MODEL, scheme) else {
            continue;
        };
        let named = paper::COMPARISONS.iter().find(|c| c.scheme == scheme);
        let theirs = paper::totals(scheme);
        let offline = theirs.and_then(|t| t.0);
        let accuracy = records.accuracy("mnli", engine(scheme));
        grid.push(vec![
            named.map_or_else(
                || format!("`{scheme}`"),
                |n| format!("`{scheme}` ({})", n.name),
            ),
            if row.offline_s > 0.0 {
                mark(row, seconds(row.offline_s))
            } else {
                NONE.into()
            },
            mark(row, seconds(row.online_s)),
            mark(row, seconds(row.offline_s + row.online_s)),
            or_none(offline.map(|s| s.to_string())),
            or_none(theirs.map(|t| t.1.to_string())),
            or_none(theirs.map(|t| seconds(t.0.unwrap_or(0.0) + t.1))),
            or_none(accuracy.map(|a| format!("{:.1} of {}", 100.0 * a.agreement_with_float, a.n))),
            or_none(named.map(|n| format!("{:.1}", n.accuracy))),
            basis(table, row),
        ]);
    }
    grid
}

/// Table 2: a line of ours and a line of the paper's for each scheme.
fn ablation(records: &Records) -> Grid {
    let mut head = vec!["scheme"];
    head.extend(PaperStep::ALL.iter().map(|s| s.name()));
    head.extend(["total", "measured"]);
    let mut grid = Grid::new(
        "Table 2: seconds by step, BERT-base, offline / online",
        "* extrapolated from what the last column says.",
        &head,
    );
    for scheme in SCHEMES {
        let Some((table, row)) = records.row(MODEL, scheme) else {
            continue;
        };
        let mut ours = vec![format!("`{scheme}`")];
        let both = |offline: f64, online: f64| {
            let offline = (row.offline_s > 0.0).then(|| seconds(offline));
            format!("{} / {}", or_none(offline), seconds(online))
        };
        for step in &row.steps {
            ours.push(both(step.offline_s, step.online_s));
        }
        ours.push(mark(row, both(row.offline_s, row.online_s)));
        ours.push(basis(table, row));
        grid.push(ours);
        let Some(theirs) = paper::ABLATION.iter().find(|a| a.scheme == scheme) else {
            continue;
        };
        let mut line = vec![format!("paper: {}", theirs.name)];
        for (offline, online) in theirs.offline.iter().zip(theirs.online) {
            line.push(format!(
                "{} / {online}",
                or_none(offline.map(|o| o.to_string()))
            ));
        }
        line.push(format!("{} / {}", theirs.total.0, theirs.total.1));
        line.push(String::new());
        grid.push(line);
    }
    grid
}

/// Table 3: the five models under every scheme that was measured on one of them.
fn sizes(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "Table 3: five models, 30 tokens",
        "* extrapolated from what the last column says. Messages are all bytes of one inference, both phases and directions, without \
         the keys of a session. The paper's figures are Primer-FPC's.",
        &[
            "model",
            "N, d, H",
            "scheme",
            "offline s",
            "online s",
            "tokens/s online",
            "messages",
            "paper: offline s",
            "paper: online s",
            "paper: tokens/s",
            "paper: messages",
            "measured",
        ],
    );
    for size in &paper::SIZES {
        let shape = SHAPES.iter().find(|s| s.0 == size.model);
        let shape = shape.map(|s| format!("{}, {}, {}", s.1, s.2, s.3));
        for scheme in ["fp", "fpc"] {
            let Some((table, row)) = records.row(size.model, scheme) else {
                continue;
            };
            grid.push(vec![
                size.model.into(),
                or_none(shape.clone()),
                format!("`{scheme}`"),
                mark(row, seconds(row.offline_s)),
                mark(row, seconds(row.online_s)),
                format!("{:.1}", TOKENS as f64 / row.online_s),
                bytes(row.bytes.total()),
                size.offline_s.to_string(),
                size.online_s.to_string(),
                size.throughput.to_string(),
                format!("{} GB", size.messages),
                basis(table, row),
            ]);
        }
    }
    grid
}

/// Bytes, round trips, gates and memory.
fn traffic(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "What crosses the link, BERT-base",
        "* extrapolated. Memory is that of the run itself, not extrapolated.",
        &[
            "scheme",
            "offline up",
            "offline down",
            "online up",
            "online down",
            "round trips online",
            "AND gates, million",
            "keys, once a session",
            "memory client",
            "memory server",
            "largest logit error",
        ],
    );
    for scheme in ["fhe", "gc", "base", "f", "fp", "fpc"] {
        let Some((_, row)) = records.row(MODEL, scheme) else {
            continue;
        };
        let b = &row.bytes;
        let mut line = vec![format!("`{scheme}`")];
        let counts = [b.offline_up, b.offline_down, b.online_up, b.online_down];
        line.extend(counts.map(|c| mark(row, bytes(c))));
        line.push(mark(row, row.rounds_online.to_string()));
        line.push(mark(row, format!("{:.0}", row.and_gates as f64 / 1e6)));
        line.push(bytes(row.setup_bytes));
        line.push(bytes(row.peak_rss_client));
        line.push(bytes(row.peak_rss_server));
        line.push(format!("{:.4}", row.max_abs_logit_error));
        grid.push(line);
    }
    grid
}

/// The same inference over slower links.
fn links(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "Links",
        "`paper` has 2.3 ms and 100 MB/s as in the paper's experiments, `wan` 40 ms and 25 MB/s. * extrapolated from what the last \
         column says.",
        &[
            "model",
            "scheme",
            "link",
            "offline s",
            "online s",
            "measured",
        ],
    );
    let slow = |t: &&Table| t.link != Link::Loopback && t.tokens == TOKENS;
    let shaped = records.tables.iter().filter(slow);
    let shaped = shaped.flat_map(|t| t.results.iter().map(move |r| (t, r)));
    let shaped: Vec<(&Table, &Row)> = shaped.collect();
    let mut subjects: Vec<(&str, &str)> = Vec::new();
    for (table, row) in &shaped {
        let subject = (table.model.as_str(), row.scheme.as_str());
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    for (model, scheme) in subjects {
        let here = |(t, r): &&(&Table, &Row)| t.model == model && r.scheme == scheme;
        let rows = records.row(model, scheme);
        for (table, row) in rows.iter().chain(shaped.iter().filter(here)) {
            grid.push(vec![
                model.to_owned(),
                format!("`{scheme}`"),
                table.link.name().into(),
                mark(row, seconds(row.offline_s)),
                mark(row, seconds(row.online_s)),
                basis(table, row),
            ]);
        }
    }
    grid
}

/// How far the middle one of some points is from the line through the first and the last, in percent of it.
pub(super) fn deviation(points: &[(f64, f64)]) -> f64 {
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return 0.0;
    };
    let slope = (last.1 - first.1) / (last.0 - first.0);
    let inner = points.get(1..points.len() - 1).unwrap_or_default();
    let off = inner.iter().map(|(x, y)| {
        let line = first.1 + slope * (x - first.0);
        100.0 * (y - line).abs() / line
    });
    off.fold(0.0, f64::max)
}

fn growth<'r>(
    records: &'r Records,
    which: impl Fn(&'r crate::bench::growth::Growth) -> &'r Vec<Point>,
) -> impl Iterator<Item = (&'r Table, &'r Point)> {
    let with = records
        .tables
        .iter()
        .filter_map(|t| Some((t, t.growth.as_ref()?)));
    with.flat_map(move |(table, growth)| which(growth).iter().map(move |p| (table, p)))
}

const GROWTH: [&str; 9] = [
    "model",
    "scheme",
    "layers",
    "tokens",
    "offline s",
    "online s",
    "offline bytes",
    "online bytes",
    "round trips online",
];

fn point((table, p): (&Table, &Point)) -> Vec<String> {
    vec![
        table.model.clone(),
        format!("`{}`", p.scheme),
        p.layers.to_string(),
        p.tokens.to_string(),
        seconds(p.offline_s),
        seconds(p.online_s),
        bytes(p.bytes.offline_up + p.bytes.offline_down),
        bytes(p.bytes.online_up + p.bytes.online_down),
        p.rounds_online.to_string(),
    ]
}

fn layers(records: &Records) -> Grid {
    let mut grid = Grid::new("Growth with layers", "", &GROWTH);
    let all: Vec<(&Table, &Point)> = growth(records, |g| &g.layers).collect();
    let mut schemes: Vec<&str> = all.iter().map(|(_, p)| p.scheme.as_str()).collect();
    schemes.dedup();
    let mut notes = Vec::new();
    for scheme in schemes {
        let of = |f: fn(&Point) -> f64| -> Vec<(f64, f64)> {
            let points = all.iter().filter(|(_, p)| p.scheme == scheme);
            points.map(|(_, p)| (p.layers as f64, f(p))).collect()
        };
        notes.push(format!(
            "`{scheme}`: 2 layers are {:.1} % (offline) and {:.1} % (online) off the line through 1 and 4, and {:.2} % in bytes.",
            deviation(&of(|p| p.offline_s)),
            deviation(&of(|p| p.online_s)),
            deviation(&of(|p| p.bytes.total() as f64)),
        ));
    }
    grid.note = notes.join(" ");
    all.into_iter().for_each(|p| grid.push(point(p)));
    grid
}

fn tokens(records: &Records) -> Grid {
    let mut grid = Grid::new("Growth with tokens, one layer", "", &GROWTH);
    growth(records, |g| &g.tokens).for_each(|p| grid.push(point(p)));
    grid
}

fn accuracy(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "Accuracy by engine",
        "float: single precision. fixed: the protocol's integers in the clear (exact: low bits rounded, as a circuit does, instead of dropped from \
         shares). secure: through the protocol, both parties. fhe: the comparator's polynomials in the clear. The paper's figures are BERT-base's.",
        &[
            "model",
            "task",
            "engine",
            "examples",
            "accuracy %",
            "float on the same %",
            "agrees with float %",
            "agrees with fixed %",
            "paper: BERT-base %",
        ],
    );
    for a in &records.accuracies {
        let engine = a.computed_by();
        let theirs = engine.and_then(|engine| paper::accuracy(&a.task, engine));
        let detail = match (&a.scheme, engine) {
            (Some(scheme), _) => format!(" (`{scheme}`)"),
            (None, Some(Engine::Exact)) => " (exact)".into(),
            _ => String::new(),
        };
        let percent = |v: f64| format!("{:.2}", 100.0 * v);
        grid.push(vec![
            a.model.clone(),
            a.task.clone(),
            format!("{}{detail}", a.engine),
            a.n.to_string(),
            percent(a.accuracy),
            or_none(a.accuracy_of_float.map(percent)),
            percent(a.agreement_with_float),
            or_none(a.agreement_with_fixed.map(percent)),
            or_none(theirs.map(|v| format!("{v:.1}"))),
        ]);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::{accuracy as eval, records, result, table};
    use super::*;

    #[test]
    fn figures_stand_beside_the_papers() {
        let records = records(&[
            table("bert-base", &["fp", "fpc"], false, 40.0),
            table("bert-base", &["base", "f"], true, 400.0),
            table("bert-base", &["gc"], true, 24_000.0),
            eval("mnli", "secure"),
            eval("mnli", "fixed"),
            result("mnli", "fixed", "exact", 1000),
        ]);
        let grids = all(&records);
        let titles: Vec<&str> = grids.iter().map(|g| &g.title[..7]).collect();
        assert_eq!(
            titles,
            ["Table 1", "Table 2", "Table 3", "What cr", "Accurac"]
        );
        let text: String = grids.iter().map(Grid::markdown).collect();
        assert!(
            text.contains("`fp` | 40.0 | 3.00 | 43.0 | 405.2 | 39 | 444"),
            "{text}"
        );
        assert!(
            text.contains("400 / 3.00 *"),
            "extrapolated ones are marked: {text}"
        );
        assert!(text.contains("1 of 12 layers"));
        let circuit = grids[0].rows.iter().find(|r| r[0].contains("gc")).unwrap();
        assert_eq!(circuit[7], "98.0 of 1000", "a circuit rounds exactly");
        assert!(
            text.contains("| fixed (exact) | 1000 | 90.00 | 92.00 | 98.00 |"),
            "{text}"
        );
    }

    #[test]
    fn a_line_deviates_from_itself_by_nothing() {
        assert_eq!(deviation(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]), 0.0);
        assert!((deviation(&[(1.0, 5.0), (2.0, 7.7), (4.0, 11.0)]) - 10.0).abs() < 1e-9);
        assert_eq!(deviation(&[]), 0.0);
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
