//! Pictures of how cost grows: with layers, and with tokens.

use super::super::distinct;
use super::super::records::Records;
use super::super::tables::{Line, lines};
use super::{Figure, color};
use crate::bench::growth::Point;
use crate::plot::INK;
use crate::plot::panel::{Mark, Panel, picture};

/// What cost grows with.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Against {
    Layers,
    Tokens,
}

/// Draws four panels: seconds and megabytes of both phases. A scheme has its colour, and of several
/// subjects each has dashes of its own.
pub(super) fn growth(records: &Records, against: Against) -> Option<Figure> {
    let by_layers = against == Against::Layers;
    let (word, where_from) = match against {
        Against::Layers => ("layers", "of the first layers, embedding and head included"),
        Against::Tokens => ("tokens", "on one layer, embedding and head included"),
    };
    let lines = lines(records, |g| if by_layers { &g.layers } else { &g.tokens });
    let x = |p: &Point| if by_layers { p.layers } else { p.tokens } as f64;
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    points().next()?;
    let subjects = distinct(lines.iter().map(|line| line.subject));
    let models = distinct(subjects.iter().map(|s| s.model)).join(" and ");
    let panel = |title: &str, y: fn(&Point) -> f64| {
        let high = points().map(y).fold(0.0, f64::max);
        let far = points().map(x).fold(0.0, f64::max);
        let line = |line: &Line<'_>| Mark::Line {
            points: line.points.iter().map(|p| (x(p), y(p))).collect(),
            color: line.scheme.parse().map_or(INK, color),
            dashes: subjects
                .iter()
                .position(|s| *s == line.subject)
                .unwrap_or(0),
            name: line.name.clone(),
        };
        Panel {
            title: format!("{title} against {word}"),
            x_label: word.to_owned(),
            x: (0.0, 1.05 * far),
            y: (0.0, 1.15 * high),
            marks: lines.iter().map(line).collect(),
        }
    };
    let panels = [
        panel("offline seconds", |p| p.offline_s),
        panel("online seconds", |p| p.online_s),
        panel("offline megabytes", |p| {
            (p.bytes.offline_up + p.bytes.offline_down) as f64 / 1e6
        }),
        panel("online megabytes", |p| {
            (p.bytes.online_up + p.bytes.online_down) as f64 / 1e6
        }),
    ];
    Some(Figure {
        name: format!("growth-{word}"),
        caption: format!("Cost of {models} against {word}, {where_from}; every point was run."),
        svg: picture(&format!("Cost of {models} against {word}"), &panels),
    })
}
