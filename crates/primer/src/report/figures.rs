//! The pictures of a report.

use super::paper;
use super::records::{Engine, Records};
use super::tables::{MODEL, SCHEMES, bytes, seconds};
use crate::bench::growth::Point;
use crate::bench::table::Row;
use crate::plot::bars::{Bar, Chart, Group, Scale};
use crate::plot::panel::{Mark, Panel, picture};
use primer_plan::graph::PaperStep;

/// A picture with a name for its file.
pub struct Figure {
    /// The file's name without its ending.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The picture.
    pub svg: String,
}

/// Every picture that the records have figures for.
pub fn all(records: &Records) -> Vec<Figure> {
    let figures = [
        totals(records),
        steps(records, Phase::Offline),
        steps(records, Phase::Online),
        sizes(records),
        traffic(records),
        growth(records, "growth-layers", "layers"),
        growth(records, "growth-tokens", "tokens"),
        accuracy(records),
    ];
    figures.into_iter().flatten().collect()
}

const PAPER: &str = "the paper";

fn bar(value: f64, theirs: Option<f64>, hatched: bool) -> Bar {
    // What takes no time has no bar.
    let value = (value > 0.0).then_some(value);
    let theirs = theirs.filter(|v| *v > 0.0);
    let ours = value.map_or("–".to_owned(), seconds);
    Bar {
        value,
        label: match theirs {
            Some(theirs) => format!("{ours} (paper {})", seconds(theirs)),
            None => ours,
        },
        mark: theirs,
        hatched,
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

fn totals(records: &Records) -> Option<Figure> {
    let group = |scheme: &str| {
        let (_, row) = records.row(MODEL, scheme)?;
        let theirs = paper::totals(scheme);
        Some(Group {
            name: match paper::COMPARISONS.iter().find(|c| c.scheme == scheme) {
                Some(known) => format!("{scheme} ({})", known.name),
                None => scheme.to_owned(),
            },
            bars: vec![
                bar(row.offline_s, theirs.and_then(|t| t.0), row.extrapolated),
                bar(row.online_s, theirs.map(|t| t.1), row.extrapolated),
            ],
        })
    };
    let schemes = ["fhe", "gc", "base", "f", "fp", "fpc"];
    let groups: Vec<Group> = schemes.iter().filter_map(|s| group(s)).collect();
    let chart = Chart {
        title: "BERT-base, 30 tokens: one private inference".into(),
        unit: "seconds, every line ten times the one before".into(),
        series: names(&["offline", "online"]),
        groups,
        scale: Scale::Powers,
        mark: Some(PAPER.into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: "schemes",
        caption: "Offline and online seconds of every scheme beside the paper's (one thread a party here, four there).".into(),
        svg: chart.svg(),
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Offline,
    Online,
}

fn steps(records: &Records, phase: Phase) -> Option<Figure> {
    let of = |scheme: &'static str| Some((scheme, records.row(MODEL, scheme)?.1));
    let rows: Vec<(&str, &Row)> = SCHEMES.into_iter().filter_map(of).collect();
    let shown = |row: &Row| phase == Phase::Online || row.offline_s > 0.0;
    if !rows.iter().any(|(_, row)| shown(row)) {
        return None;
    }
    let group = |(at, step): (usize, PaperStep)| Group {
        name: step.name().to_owned(),
        bars: (rows.iter())
            .map(|(scheme, row)| {
                // What prepares nothing has no offline phase to show.
                if !shown(row) {
                    return Bar::default();
                }
                let ours = &row.steps[at];
                let theirs = paper::step(scheme, step);
                match phase {
                    Phase::Offline => {
                        bar(ours.offline_s, theirs.and_then(|t| t.0), row.extrapolated)
                    }
                    Phase::Online => bar(ours.online_s, theirs.map(|t| t.1), row.extrapolated),
                }
            })
            .collect(),
    };
    let (name, word) = match phase {
        Phase::Offline => ("steps-offline", "offline"),
        Phase::Online => ("steps-online", "online"),
    };
    let chart = Chart {
        title: format!("BERT-base, 30 tokens: {word} seconds by step"),
        unit: "seconds, every line ten times the one before".into(),
        series: rows
            .iter()
            .map(|(scheme, _)| (*scheme).to_owned())
            .collect(),
        groups: PaperStep::ALL.into_iter().enumerate().map(group).collect(),
        scale: Scale::Powers,
        mark: Some(PAPER.into()),
    };
    Some(Figure {
        name,
        caption: format!("The paper's ablation: {word} seconds of each step under each scheme."),
        svg: chart.svg(),
    })
}

fn sizes(records: &Records) -> Option<Figure> {
    let group = |size: &paper::Size| {
        let (_, row) = records.row(size.model, "fp")?;
        Some(Group {
            name: size.model.into(),
            bars: vec![
                bar(row.offline_s, Some(size.offline_s), row.extrapolated),
                bar(row.online_s, Some(size.online_s), row.extrapolated),
            ],
        })
    };
    let groups: Vec<Group> = paper::SIZES.iter().filter_map(group).collect();
    let chart = Chart {
        title: "The paper's five models, 30 tokens, scheme fp".into(),
        unit: "seconds, every line ten times the one before".into(),
        series: names(&["offline", "online"]),
        groups,
        scale: Scale::Powers,
        mark: Some("the paper (Primer-FPC)".into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: "models",
        caption: "Offline and online seconds of the five models beside the paper's.".into(),
        svg: chart.svg(),
    })
}

fn traffic(records: &Records) -> Option<Figure> {
    let group = |scheme: &&str| {
        let (_, row) = records.row(MODEL, scheme)?;
        let b = &row.bytes;
        let one = |count: u64| Bar {
            value: (count > 0).then_some(count as f64 / 1e6),
            label: bytes(count),
            mark: None,
            hatched: row.extrapolated,
        };
        let all = [b.offline_up, b.offline_down, b.online_up, b.online_down];
        Some(Group {
            name: (*scheme).to_owned(),
            bars: all.map(one).into(),
        })
    };
    let schemes = ["fhe", "gc", "base", "f", "fp", "fpc"];
    let groups: Vec<Group> = schemes.iter().filter_map(group).collect();
    let chart = Chart {
        title: "BERT-base, 30 tokens: bytes by phase and direction".into(),
        unit: "megabytes, every line ten times the one before".into(),
        series: names(&["offline up", "offline down", "online up", "online down"]),
        groups,
        scale: Scale::Powers,
        mark: None,
    };
    let theirs = paper::SIZES.iter().find(|s| s.model == MODEL);
    let theirs = theirs.map_or(String::new(), |s| {
        format!(" The paper states {} GB in all for Primer-FPC.", s.messages)
    });
    (!chart.groups.is_empty()).then(|| Figure {
        name: "bytes",
        caption: format!(
            "What crosses the link in one inference, without the keys of a session.{theirs}"
        ),
        svg: chart.svg(),
    })
}

/// Four panels: seconds and megabytes of both phases.
fn growth(records: &Records, name: &'static str, against: &str) -> Option<Figure> {
    let by_layers = against == "layers";
    let mut found = records
        .tables
        .iter()
        .filter_map(|t| Some((t.model.as_str(), t.growth.as_ref()?)));
    let (model, growth) = found.next_back()?;
    let points = if by_layers {
        &growth.layers
    } else {
        &growth.tokens
    };
    let mut schemes: Vec<&str> = points.iter().map(|p| p.scheme.as_str()).collect();
    schemes.sort_unstable();
    schemes.dedup();
    let x = |p: &Point| if by_layers { p.layers } else { p.tokens } as f64;
    let panel = |title: &str, y: fn(&Point) -> f64| {
        let high = points.iter().map(y).fold(0.0, f64::max);
        let far = points.iter().map(x).fold(0.0, f64::max);
        let line = |(color, scheme): (usize, &&str)| Mark::Line {
            points: points
                .iter()
                .filter(|p| p.scheme == *scheme)
                .map(|p| (x(p), y(p)))
                .collect(),
            color,
            name: (*scheme).to_owned(),
        };
        Panel {
            title: format!("{title} against {against}"),
            x_label: against.to_owned(),
            x: (0.0, 1.05 * far),
            y: (0.0, 1.15 * high),
            marks: schemes.iter().enumerate().map(line).collect(),
        }
    };
    let panels = [
        panel("offline seconds", |p| p.offline_s),
        panel("online seconds", |p| p.online_s),
        panel("offline megabytes", |p| {
            mega_of(p.bytes.offline_up + p.bytes.offline_down)
        }),
        panel("online megabytes", |p| {
            mega_of(p.bytes.online_up + p.bytes.online_down)
        }),
    ];
    let where_from = if by_layers {
        "of the first layers, embedding and head included"
    } else {
        "on one layer, embedding and head included"
    };
    Some(Figure {
        name,
        caption: format!("Cost of {model} against {against}, {where_from}; every point was run."),
        svg: picture(&panels),
    })
}

fn mega_of(count: u64) -> f64 {
    count as f64 / 1e6
}

fn accuracy(records: &Records) -> Option<Figure> {
    let engines = [
        ("float", Engine::Float),
        ("fixed", Engine::Fixed),
        ("secure", Engine::Secure),
        ("fhe", Engine::Fhe),
    ];
    let group = |task: &&str| {
        let bars: Vec<Bar> = engines
            .iter()
            .map(|(_, engine)| {
                let Some(found) = records.accuracy(task, *engine) else {
                    return Bar::default();
                };
                let percent = 100.0 * found.accuracy;
                let float = (found.accuracy_of_float.filter(|_| *engine != Engine::Float))
                    .map_or(String::new(), |v| format!(" (float {:.1})", 100.0 * v));
                Bar {
                    value: Some(percent),
                    label: format!("{percent:.1} % of {}{float}", found.n),
                    mark: paper::accuracy(task, *engine),
                    hatched: false,
                }
            })
            .collect();
        bars.iter().any(|b| b.value.is_some()).then(|| Group {
            name: (*task).to_owned(),
            bars,
        })
    };
    let groups: Vec<Group> = ["sst2", "mnli", "mrpc", "squad"]
        .iter()
        .filter_map(group)
        .collect();
    let chart = Chart {
        title: "Accuracy by engine".into(),
        unit: "percent".into(),
        series: names(&engines.map(|(name, _)| name)),
        groups,
        scale: Scale::UpTo(100.0),
        mark: Some("the paper (BERT-base)".into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: "accuracy",
        caption: "Accuracy of float, of the protocol's integers, through the protocol itself, and of the comparator's polynomials. At each \
                  bar: of how many examples, and float's accuracy on the same ones, since a sample may be easier or harder than the whole."
            .into(),
        svg: chart.svg(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::{accuracy as eval, records, table};
    use super::*;

    #[test]
    fn there_is_a_picture_for_what_was_measured_only() {
        let nothing = all(&Records::default());
        assert!(nothing.is_empty());
        let found = all(&records(&[
            table("bert-base", &["f", "fp"], true, 40.0),
            eval("mnli", "secure"),
        ]));
        let names: Vec<&str> = found.iter().map(|f| f.name).collect();
        let expected = [
            "schemes",
            "steps-offline",
            "steps-online",
            "models",
            "bytes",
            "accuracy",
        ];
        assert_eq!(names, expected);
        assert!(found[0].svg.contains("40.0 (paper 405)"));
        assert!(found[0].svg.contains("extrapolated"));
    }
}
