//! The pictures of a report.

mod costs;

use super::paper;
use super::records::{Engine, Evaluated, Records};
use super::subject;
use super::tables::{Line, lines};
use crate::bench::growth::Point;
use crate::plot::bars::{Bar, Chart, Group, Scale};
use crate::plot::panel::{Mark, Panel, picture};

/// A picture with a name for its file.
pub struct Figure {
    /// The file's name without its ending.
    pub name: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The picture.
    pub svg: String,
}

/// Every picture that the records have figures for.
pub fn all(records: &Records) -> Vec<Figure> {
    let shown = subject::shown(records);
    let mut figures: Vec<Option<Figure>> = Vec::new();
    for (at, &subject) in shown.iter().enumerate() {
        figures.push(costs::totals(records, subject));
        figures.push(costs::steps(records, subject, costs::Phase::Offline));
        figures.push(costs::steps(records, subject, costs::Phase::Online));
        if at == 0 {
            figures.push(costs::sizes(records));
        }
        figures.push(costs::traffic(records, subject));
    }
    figures.extend([
        growth(records, "growth-layers", "layers"),
        growth(records, "growth-tokens", "tokens"),
        accuracy(records),
    ]);
    let mut named: Vec<Figure> = Vec::new();
    for mut figure in figures.into_iter().flatten() {
        // Names of two models may differ in what a file's name cannot have.
        while named.iter().any(|known| known.name == figure.name) {
            figure.name += "-again";
        }
        named.push(figure);
    }
    named
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

/// Four panels: seconds and megabytes of both phases.
fn growth(records: &Records, name: &str, against: &str) -> Option<Figure> {
    let by_layers = against == "layers";
    let lines = lines(records, |g| if by_layers { &g.layers } else { &g.tokens });
    let x = |p: &Point| if by_layers { p.layers } else { p.tokens } as f64;
    let points = || lines.iter().flat_map(|line| line.points.iter().copied());
    points().next()?;
    let mut models: Vec<&str> = Vec::new();
    for line in &lines {
        if !models.contains(&line.subject.model) {
            models.push(line.subject.model);
        }
    }
    let models = models.join(" and ");
    let panel = |title: &str, y: fn(&Point) -> f64| {
        let high = points().map(y).fold(0.0, f64::max);
        let far = points().map(x).fold(0.0, f64::max);
        let line = |(color, line): (usize, &Line<'_>)| Mark::Line {
            points: line.points.iter().map(|p| (x(p), y(p))).collect(),
            color,
            name: line.name.clone(),
        };
        Panel {
            title: format!("{title} against {against}"),
            x_label: against.to_owned(),
            x: (0.0, 1.05 * far),
            y: (0.0, 1.15 * high),
            marks: lines.iter().enumerate().map(line).collect(),
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
        name: name.into(),
        caption: format!("Cost of {models} against {against}, {where_from}; every point was run."),
        svg: picture(&panels),
    })
}

fn mega_of(count: u64) -> f64 {
    count as f64 / 1e6
}

fn accuracy(records: &Records) -> Option<Figure> {
    let all = records.evaluated();
    let engines = [
        ("float", Engine::Float),
        ("fixed", Engine::Fixed),
        ("secure", Engine::Secure),
        ("fhe", Engine::Fhe),
    ];
    let group = |what: Evaluated<'_>| {
        let bars: Vec<Bar> = engines
            .iter()
            .map(|(_, engine)| {
                let Some(found) = records.accuracy(what, *engine, None) else {
                    return Bar::default();
                };
                let percent = 100.0 * found.accuracy;
                let float = (found.accuracy_of_float.filter(|_| *engine != Engine::Float))
                    .map_or(String::new(), |v| format!(" (float {:.1})", 100.0 * v));
                Bar {
                    value: Some(percent),
                    label: format!("{percent:.1} % of {}{float}", found.n),
                    mark: paper::accuracy(what.task, *engine),
                    hatched: false,
                }
            })
            .collect();
        let alone = all.iter().filter(|e| e.task == what.task).count() == 1;
        bars.iter().any(|b| b.value.is_some()).then(|| Group {
            name: if alone {
                what.task.to_owned()
            } else {
                format!("{}, {}", what.task, what.model)
            },
            bars,
        })
    };
    let tasks = ["sst2", "mnli", "mrpc", "squad"];
    let of_task = |task| all.iter().filter(move |e| e.task == task).copied();
    let groups: Vec<Group> = tasks
        .into_iter()
        .flat_map(of_task)
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
        name: "accuracy".into(),
        caption: "Accuracy of float, of the protocol's integers, through the protocol itself, and of the comparator's polynomials. At each \
                  bar: of how many examples, and float's accuracy on the same ones, since a sample may be easier or harder than the whole. \
                  Of SQuAD a bar is exact answers, and the paper's mark is F1."
            .into(),
        svg: chart.svg(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::{accuracy as eval, grown, records, table, table_at, with};
    use super::*;

    #[test]
    fn there_is_a_picture_for_what_was_measured_only() {
        let nothing = all(&Records::default());
        assert!(nothing.is_empty());
        let found = all(&records(&[
            table("bert-base", &["f", "fp"], true, 40.0),
            eval("mnli", "secure"),
        ]));
        let names: Vec<&str> = found.iter().map(|f| f.name.as_str()).collect();
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

    #[test]
    fn every_subject_has_its_pictures() {
        let other = table_at("mini/lm", 64, "loopback", &["fp"]);
        let own = ["schemes", "steps-offline", "steps-online", "bytes"];
        let own = own.map(|name| format!("{name}-mini-lm-64"));
        let found = all(&records(std::slice::from_ref(&other)));
        let names =
            |found: &[Figure]| -> Vec<String> { found.iter().map(|f| f.name.clone()).collect() };
        assert_eq!(names(&found), own);
        for figure in &found {
            assert!(figure.svg.contains("mini/lm, 64 tokens"), "{}", figure.name);
            assert!(!figure.svg.contains("paper"), "{}", figure.name);
            assert!(!figure.caption.contains("paper"), "{}", figure.caption);
        }
        let base = table("bert-base", &["fp"], false, 40.0);
        let twin = table_at("mini.lm", 64, "loopback", &["fp"]);
        let found = names(&all(&records(&[other, base, twin])));
        assert_eq!(found[..2], ["schemes", "steps-offline"]);
        assert_eq!(found[5..9], own);
        assert_eq!(found[9], "schemes-mini-lm-64-again");
    }

    #[test]
    fn a_line_joins_points_of_one_scheme_and_model() {
        let found = all(&records(&[
            grown("bert-base", &["fp", "fpc"], 1.0),
            grown("bert-small", &["fp"], 3.0),
        ]));
        let figure = found.iter().find(|f| f.name == "growth-layers").unwrap();
        for name in ["fp, bert-base", "fpc, bert-base", "fp, bert-small"] {
            let count = figure.svg.matches(&format!(">{name}<")).count();
            assert_eq!(count, 4, "{name} in every panel");
        }
        assert_eq!(figure.svg.matches("stroke-width=\"2\"").count(), 12);
        assert!(figure.caption.contains("bert-base and bert-small"));
    }

    #[test]
    fn models_are_not_mixed() {
        let own = eval("sst2", "float");
        let found = all(&records(&[own.clone(), eval("mnli", "float")]));
        assert!(found[0].svg.contains(">sst2<"));
        let other = with(&own, "model", "other");
        let found = all(&records(&[own, other, eval("mnli", "float")]));
        for name in ["sst2, minilm", "sst2, other", "mnli"] {
            assert!(found[0].svg.contains(&format!(">{name}<")), "{name}");
        }
    }
}
