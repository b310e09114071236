//! The picture of accuracy.

use super::super::paper;
use super::super::records::{Accuracy, Engine, Evaluated, Records};
use super::{Figure, entrants};
use crate::bench::Entrant;
use crate::bench::Scheme;
use crate::plot::bars::{Bar, Chart, Group, Scale, Series};
use crate::plot::{INK, PALE};

const CAPTION: &str = "Accuracy of float, of the default scheme's integers in the clear, and of \
    every scheme through the protocol itself; of the comparators in the clear: gc with integers \
    that are rounded exactly, fhe with its polynomials. At each bar: of how many examples, and \
    float's accuracy on the same ones, since a sample may be easier or harder than the whole. Of \
    SQuAD a bar is exact answers, and the paper's mark is F1.";

/// What the protocol is compared with.
const REFERENCES: [(&str, Engine, &str); 2] = [
    ("float", Engine::Float, INK),
    ("fixed", Engine::Fixed, PALE),
];

pub(super) fn accuracy(records: &Records) -> Option<Figure> {
    let all = records.evaluated();
    let reference = |(name, _, color): (&str, _, _)| Series {
        name: name.to_owned(),
        color,
    };
    let group = |what: Evaluated<'_>| {
        let default = Scheme::Lean.name();
        let references = REFERENCES.map(|(_, engine, _)| {
            let own = records.accuracy(what, engine, Some(default));
            own.or_else(|| records.accuracy(what, engine, None))
        });
        let entrants = Entrant::all().map(|e| records.accuracy_of(what, e));
        let found = references.into_iter().chain(entrants);
        let alone = all.iter().filter(|e| e.task == what.task).count() == 1;
        Group {
            name: if alone {
                what.task.to_owned()
            } else {
                format!("{}, {}", what.task, what.model)
            },
            bars: found.map(|a| a.map(bar).unwrap_or_default()).collect(),
        }
    };
    let tasks = ["sst2", "mnli", "mrpc", "squad", "squad2"];
    let of_task = |task| all.iter().filter(move |e| e.task == task).copied();
    let groups: Vec<Group> = tasks.into_iter().flat_map(of_task).map(group).collect();
    let chart = Chart {
        title: "Accuracy by engine".into(),
        unit: "percent".into(),
        series: (REFERENCES.map(reference).into_iter())
            .chain(entrants(Entrant::all()))
            .collect(),
        groups,
        // Room for what stands beside a bar of everything.
        scale: Scale::UpTo(105.0),
        mark: Some("the paper (BERT-base)".into()),
    };
    (!chart.groups.is_empty()).then(|| Figure {
        name: "accuracy".into(),
        caption: CAPTION.into(),
        svg: chart.svg(),
    })
}

fn bar(found: &Accuracy) -> Bar {
    let engine = found.computed_by();
    let percent = 100.0 * found.accuracy;
    let float = found.accuracy_of_float;
    let float = float.filter(|_| engine != Some(Engine::Float));
    let float = float.map_or(String::new(), |v| format!(" (float {:.1})", 100.0 * v));
    Bar {
        value: Some(percent),
        label: format!("{percent:.1} % of {}{float}", found.n),
        mark: engine.and_then(|engine| paper::accuracy(&found.task, engine)),
        hatched: false,
    }
}
