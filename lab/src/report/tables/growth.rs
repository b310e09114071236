//! How cost grows with layers and with tokens.

use super::super::grid::Grid;
use super::super::records::Records;
use super::super::subject::Subject;
use super::{bytes, seconds};
use crate::bench::growth::{Growth, Point};

/// The points of one subject under one scheme.
pub(in crate::report) struct Line<'r> {
    pub subject: Subject<'r>,
    pub scheme: &'r str,
    pub points: Vec<&'r Point>,
    /// The scheme, and of the subject what tells it from the others.
    pub name: String,
}

/// Returns every line of the records; one that was measured again replaces the earlier.
pub(in crate::report) fn lines<'r>(
    records: &'r Records,
    which: impl Fn(&'r Growth) -> &'r Vec<Point>,
) -> Vec<Line<'r>> {
    let mut lines: Vec<Line<'r>> = Vec::new();
    let grown = records.grown.iter();
    for (table, growth) in grown.filter_map(|g| Some((&g.table, g.growth.as_ref()?))) {
        let mut fresh: Vec<Line<'r>> = Vec::new();
        for point in which(growth) {
            match fresh.iter_mut().find(|line| line.scheme == point.scheme) {
                Some(line) => line.points.push(point),
                None => fresh.push(Line {
                    subject: Subject::of(table),
                    scheme: &point.scheme,
                    points: vec![point],
                    name: String::new(),
                }),
            }
        }
        for line in fresh {
            lines.retain(|old| (old.subject, old.scheme) != (line.subject, line.scheme));
            lines.push(line);
        }
    }
    let subjects: Vec<Subject<'_>> = lines.iter().map(|line| line.subject).collect();
    let differ = |f: fn(&Subject<'_>) -> String| subjects.iter().any(|s| f(s) != f(&subjects[0]));
    let parts: [fn(&Subject<'_>) -> String; 3] = [
        |s| s.model.to_owned(),
        |s| format!("{} tokens", s.tokens),
        |s| format!("link {}", s.link),
    ];
    let telling: Vec<_> = parts.into_iter().filter(|f| differ(*f)).collect();
    for line in &mut lines {
        let of_subject = telling.iter().map(|f| f(&line.subject));
        let name = std::iter::once(line.scheme.to_owned()).chain(of_subject);
        line.name = name.collect::<Vec<_>>().join(", ");
    }
    lines
}

/// Tells how far the middle one of some points is from the line through the first and the last, in
/// percent of it.
fn deviation(points: &[(f64, f64)]) -> f64 {
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

const HEAD: [&str; 9] = [
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

fn push(grid: &mut Grid, line: &Line<'_>) {
    for p in &line.points {
        grid.push(vec![
            line.subject.model.to_owned(),
            format!("`{}`", p.scheme),
            p.layers.to_string(),
            p.tokens.to_string(),
            seconds(p.offline_s),
            seconds(p.online_s),
            bytes(p.bytes.offline_up + p.bytes.offline_down),
            bytes(p.bytes.online_up + p.bytes.online_down),
            p.rounds_online.to_string(),
        ]);
    }
}

pub(super) fn layers(records: &Records) -> Grid {
    let mut grid = Grid::new("Growth with layers", "", &HEAD);
    let mut notes = Vec::new();
    for line in lines(records, |g| &g.layers) {
        let of = |f: fn(&Point) -> f64| -> Vec<(f64, f64)> {
            let points = line.points.iter();
            points.map(|p| (p.layers as f64, f(p))).collect()
        };
        notes.push(format!(
            "`{}`: 2 layers are {:.1} % (offline) and {:.1} % (online) off the line through 1 and \
             4, and {:.2} % in bytes.",
            line.name,
            deviation(&of(|p| p.offline_s)),
            deviation(&of(|p| p.online_s)),
            deviation(&of(|p| p.bytes.total() as f64)),
        ));
        push(&mut grid, &line);
    }
    grid.note = notes.join(" ");
    grid
}

pub(super) fn tokens(records: &Records) -> Grid {
    let mut grid = Grid::new("Growth with tokens, one layer", "", &HEAD);
    for line in lines(records, |g| &g.tokens) {
        push(&mut grid, &line);
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{grown, records};
    use super::*;

    #[test]
    fn a_line_deviates_from_itself_by_nothing() {
        assert_eq!(deviation(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]), 0.0);
        assert!((deviation(&[(1.0, 5.0), (2.0, 7.7), (4.0, 11.0)]) - 10.0).abs() < 1e-9);
        assert_eq!(deviation(&[]), 0.0);
    }

    #[test]
    fn schemes_and_models_have_lines_of_their_own() {
        let base = grown("bert-base", &["fp", "fpc"], 1.0);
        let once = layers(&records(std::slice::from_ref(&base)));
        assert_eq!(once.note.matches("`fp`: ").count(), 1, "{}", once.note);
        assert_eq!(once.note.matches("`fpc`: ").count(), 1, "{}", once.note);
        assert!(once.note.contains("are 0.0 % (offline)"), "{}", once.note);
        assert_eq!(once.rows.len(), 6);

        let two = records(&[base, grown("bert-small", &["fp"], 7.0)]);
        let names: Vec<String> = lines(&two, |g| &g.layers)
            .into_iter()
            .map(|l| l.name)
            .collect();
        assert_eq!(names, ["fp, bert-base", "fpc, bert-base", "fp, bert-small"]);
        assert_eq!(layers(&two).note.matches("are 0.0 % (offline)").count(), 3);
    }

    #[test]
    fn what_is_measured_again_replaces() {
        let again = records(&[
            grown("bert-base", &["fp"], 1.0),
            grown("bert-base", &["fp"], 2.0),
        ]);
        let lines = lines(&again, |g| &g.layers);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].name, "fp");
        assert_eq!(lines[0].points[0].offline_s, 2.0);
    }
}
