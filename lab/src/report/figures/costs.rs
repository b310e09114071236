//! Pictures of costs: schemes, steps, models, bytes.

use super::super::paper;
use super::super::records::{Records, TOKENS};
use super::super::subject::Subject;
use super::super::tables::{bytes, is_sized, seconds};
use super::{Figure, entrants};
use crate::bench::Entrant;
use crate::plot::bars::{Bar, Chart, Group, Scale, Series};
use primer_measure::bench::table::Row;
use primer_plan::graph::PaperStep;

const PAPER: &str = "the paper";
const SECONDS: &str = "seconds, every line ten times the one before";

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

/// Bars of both phases.
fn both(row: &Row, offline: Option<f64>, online: Option<f64>) -> Vec<Bar> {
    vec![
        bar(row.offline_s, offline, row.extrapolated),
        bar(row.online_s, online, row.extrapolated),
    ]
}

pub(super) fn totals(records: &Records, subject: Subject<'_>) -> Option<Figure> {
    let papers = subject.is_papers();
    let group = |entrant: Entrant, row: &Row| {
        let scheme = entrant.name();
        let theirs = paper::totals(scheme).filter(|_| papers);
        Group {
            name: match paper::name(scheme).filter(|_| papers) {
                Some(name) => format!("{scheme} ({name})"),
                None => scheme.to_owned(),
            },
            bars: both(row, theirs.and_then(|t| t.0), theirs.map(|t| t.1)),
        }
    };
    let groups = records.rows(subject).map(|(e, _, row)| group(e, row));
    let groups: Vec<Group> = groups.collect();
    let chart = Chart {
        title: format!("{}: one private inference", subject.title()),
        unit: SECONDS.into(),
        series: Series::list(&["offline", "online"]),
        groups,
        scale: Scale::Powers,
        mark: Some(PAPER.into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: format!("schemes{}", subject.suffix()),
        caption: if papers {
            "Offline and online seconds of every scheme beside the paper's (one thread a party \
             here, four there)."
                .into()
        } else {
            format!(
                "Offline and online seconds of every scheme: {}.",
                subject.title()
            )
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
    let rows = records
        .rows(subject)
        .map(|(entrant, _, row)| (entrant, row));
    let rows: Vec<(Entrant, &Row)> = rows.collect();
    let shown = |row: &Row| phase == Phase::Online || row.offline_s > 0.0;
    if !rows.iter().any(|(_, row)| shown(row)) {
        return None;
    }
    let group = |step: PaperStep| Group {
        name: step.name().to_owned(),
        bars: (rows.iter())
            .map(|(entrant, row)| {
                // What prepares nothing has no offline phase to show.
                let ours = row.steps.iter().find(|s| s.step == step);
                let Some(ours) = ours.filter(|_| shown(row)) else {
                    return Bar::default();
                };
                let theirs = paper::step(entrant.name(), step).filter(|_| papers);
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
        unit: SECONDS.into(),
        series: entrants(rows.iter().map(|(entrant, _)| *entrant)).collect(),
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
    let group = |size: &paper::Size, entrant: Entrant, row: &Row| {
        let theirs = is_sized(entrant, row).then_some(size);
        Group {
            name: format!("{}, {}", size.model, entrant.name()),
            bars: both(row, theirs.map(|s| s.offline_s), theirs.map(|s| s.online_s)),
        }
    };
    let of_model = |size: &'static paper::Size| {
        let rows = records.rows(Subject::plain(size.model));
        rows.map(move |(entrant, _, row)| group(size, entrant, row))
    };
    let groups: Vec<Group> = paper::SIZES.iter().flat_map(of_model).collect();
    let chart = Chart {
        title: "The paper's five models, 30 tokens".into(),
        unit: SECONDS.into(),
        series: Series::list(&["offline", "online"]),
        groups,
        scale: Scale::Powers,
        mark: Some("the paper (Primer-FPC)".into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: "models".into(),
        caption: "Offline and online seconds of the five models beside those of Primer-FPC in the \
                  paper."
            .into(),
        svg: chart.svg(),
    })
}

pub(super) fn traffic(records: &Records, subject: Subject<'_>) -> Option<Figure> {
    let group = |entrant: Entrant, row: &Row| {
        let b = &row.bytes;
        let one = |count: u64| Bar {
            value: (count > 0).then_some(count as f64 / 1e6),
            label: bytes(count),
            mark: None,
            hatched: row.extrapolated,
        };
        let all = [b.offline_up, b.offline_down, b.online_up, b.online_down];
        Group {
            name: entrant.name().to_owned(),
            bars: all.map(one).into(),
        }
    };
    let groups = records.rows(subject).map(|(e, _, row)| group(e, row));
    let groups: Vec<Group> = groups.collect();
    let chart = Chart {
        title: format!("{}: bytes by phase and direction", subject.title()),
        unit: "megabytes, every line ten times the one before".into(),
        series: Series::list(&["offline up", "offline down", "online up", "online down"]),
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
