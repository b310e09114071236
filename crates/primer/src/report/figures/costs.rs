//! Pictures of costs: schemes, steps, models, bytes.

use super::super::paper;
use super::super::records::{Records, TOKENS};
use super::super::subject::Subject;
use super::super::tables::{ALL, SCHEMES, bytes, seconds};
use super::{Figure, names};
use crate::bench::table::Row;
use crate::plot::bars::{Bar, Chart, Group, Scale};
use primer_plan::graph::PaperStep;

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

pub(super) fn totals(records: &Records, subject: Subject<'_>) -> Option<Figure> {
    let papers = subject.is_papers();
    let group = |scheme: &str| {
        let (_, row) = records.row(subject, scheme)?;
        let theirs = paper::totals(scheme).filter(|_| papers);
        Some(Group {
            name: match paper::name(scheme).filter(|_| papers) {
                Some(name) => format!("{scheme} ({name})"),
                None => scheme.to_owned(),
            },
            bars: vec![
                bar(row.offline_s, theirs.and_then(|t| t.0), row.extrapolated),
                bar(row.online_s, theirs.map(|t| t.1), row.extrapolated),
            ],
        })
    };
    let groups: Vec<Group> = ALL.into_iter().filter_map(group).collect();
    let chart = Chart {
        title: format!("{}: one private inference", subject.title()),
        unit: "seconds, every line ten times the one before".into(),
        series: names(&["offline", "online"]),
        groups,
        scale: Scale::Powers,
        mark: Some(PAPER.into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: format!("schemes{}", subject.suffix()),
        caption: if papers {
            "Offline and online seconds of every scheme beside the paper's (one thread a party here, four there).".into()
        } else {
            format!("Offline and online seconds of every scheme: {}.", subject.title())
        },
        svg: chart.svg(),
    })
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase {
    Offline,
    Online,
}

pub(super) fn steps(records: &Records, subject: Subject<'_>, phase: Phase) -> Option<Figure> {
    let papers = subject.is_papers();
    let of = |scheme: &'static str| Some((scheme, records.row(subject, scheme)?.1));
    let rows: Vec<(&str, &Row)> = SCHEMES.into_iter().filter_map(of).collect();
    let shown = |row: &Row| phase == Phase::Online || row.offline_s > 0.0;
    if !rows.iter().any(|(_, row)| shown(row)) {
        return None;
    }
    let group = |step: PaperStep| Group {
        name: step.name().to_owned(),
        bars: (rows.iter())
            .map(|(scheme, row)| {
                // What prepares nothing has no offline phase to show.
                let ours = row.steps.iter().find(|s| s.step == step);
                let Some(ours) = ours.filter(|_| shown(row)) else {
                    return Bar::default();
                };
                let theirs = paper::step(scheme, step).filter(|_| papers);
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
        title: format!("{}: {word} seconds by step", subject.title()),
        unit: "seconds, every line ten times the one before".into(),
        series: rows
            .iter()
            .map(|(scheme, _)| (*scheme).to_owned())
            .collect(),
        groups: PaperStep::ALL.into_iter().map(group).collect(),
        scale: Scale::Powers,
        mark: Some(PAPER.into()),
    };
    Some(Figure {
        name: format!("{name}{}", subject.suffix()),
        caption: if papers {
            format!("The paper's ablation: {word} seconds of each step under each scheme.")
        } else {
            format!(
                "{}: {word} seconds of each step under each scheme.",
                subject.title()
            )
        },
        svg: chart.svg(),
    })
}

pub(super) fn sizes(records: &Records) -> Option<Figure> {
    let group = |size: &paper::Size| {
        let (_, row) = records.row(Subject::plain(size.model), "fp")?;
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
        name: "models".into(),
        caption: "Offline and online seconds of the five models beside the paper's.".into(),
        svg: chart.svg(),
    })
}

pub(super) fn traffic(records: &Records, subject: Subject<'_>) -> Option<Figure> {
    let group = |scheme: &str| {
        let (_, row) = records.row(subject, scheme)?;
        let b = &row.bytes;
        let one = |count: u64| Bar {
            value: (count > 0).then_some(count as f64 / 1e6),
            label: bytes(count),
            mark: None,
            hatched: row.extrapolated,
        };
        let all = [b.offline_up, b.offline_down, b.online_up, b.online_down];
        Some(Group {
            name: scheme.to_owned(),
            bars: all.map(one).into(),
        })
    };
    let groups: Vec<Group> = ALL.into_iter().filter_map(group).collect();
    let chart = Chart {
        title: format!("{}: bytes by phase and direction", subject.title()),
        unit: "megabytes, every line ten times the one before".into(),
        series: names(&["offline up", "offline down", "online up", "online down"]),
        groups,
        scale: Scale::Powers,
        mark: None,
    };
    let theirs = paper::SIZES.iter().find(|s| s.model == subject.model);
    let theirs = theirs.filter(|_| subject.tokens == TOKENS);
    let theirs = theirs.map_or(String::new(), |s| {
        format!(" The paper states {} GB in all for Primer-FPC.", s.messages)
    });
    (!chart.groups.is_empty()).then(|| Figure {
        name: format!("bytes{}", subject.suffix()),
        caption: format!(
            "What crosses the link in one inference, without the keys of a session.{theirs}"
        ),
        svg: chart.svg(),
    })
}
