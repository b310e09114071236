//! Seconds: of the schemes, by step, and of the five models.

use super::super::grid::Grid;
use super::super::paper;
use super::super::records::{Accuracy, Evaluated, Records, TOKENS};
use super::super::subject::Subject;
use super::{
    EXTRAPOLATED, NONE, ONE, basis, bytes, core_seconds, is_sized, mark, or_none, seconds,
};
use crate::bench::Entrant;
use primer_measure::bench::shapes::SHAPES;
use primer_measure::bench::table::Row;
use primer_plan::graph::PaperStep;

/// Makes table 1 with every scheme; without the paper's columns for what it did not measure.
pub(super) fn comparison(records: &Records, subject: Subject<'_>) -> Grid {
    let papers = subject.is_papers();
    let evaluated = mnli(records);
    let mut head = vec![
        "scheme",
        "offline",
        "online",
        "total",
        "core-seconds a token",
    ];
    if papers {
        head.extend([
            "paper: offline",
            "paper: online",
            "paper: total",
            "MNLI-m %, float on the same %, of n",
            "agreement with float %",
            "paper: MNLI-m %",
        ]);
    }
    head.push("measured");
    let title = if subject == Subject::main() {
        "Table 1: schemes, BERT-base".into()
    } else {
        format!("Schemes: {}", subject.title())
    };
    let mut grid = Grid::new(&title, &format!("{ONE} {EXTRAPOLATED}"), &head);
    if papers {
        grid.note += " The paper's seconds are those of its table 2 where that has them, also if \
                      its table 1 has them in thousands, with our sum as the total; else those of \
                      its table 1. Its accuracy is BERT-base's.";
        if let Some(what) = evaluated {
            grid.note += &of_accuracy(what);
        }
    }
    for (entrant, table, row) in records.rows(subject) {
        let scheme = entrant.name();
        let name = paper::name(scheme).filter(|_| papers);
        let mut line = vec![
            name.map_or(format!("`{scheme}`"), |n| format!("`{scheme}` ({n})")),
            or_none(offline(row)),
            mark(row, seconds(row.online_s)),
            mark(row, seconds(row.offline_s + row.online_s)),
            mark(row, core_seconds(table, row)),
        ];
        if papers {
            let theirs = paper::totals(scheme);
            let printed = |s: f64| paper::printed(scheme, s);
            line.push(or_none(theirs.and_then(|t| t.0).map(printed)));
            line.push(or_none(theirs.map(|t| printed(t.1))));
            line.push(or_none(
                theirs.map(|t| printed(t.0.unwrap_or_default() + t.1)),
            ));
            let found = evaluated.and_then(|what| evaluation(records, what, entrant));
            line.push(or_none(found.map(right)));
            let agreement = found.map(|a| format!("{:.1}", 100.0 * a.agreement_with_float));
            line.push(or_none(agreement));
            line.push(or_none(paper::mnli(scheme).map(|a| format!("{a:.1}"))));
        }
        line.push(basis(records, table, row));
        grid.push(line);
    }
    grid
}

/// Returns the model whose accuracy stands in table 1: the one with the most results on MNLI.
fn mnli(records: &Records) -> Option<Evaluated<'_>> {
    let all = records.evaluated().into_iter().rev();
    all.filter(|e| e.task == "mnli")
        .max_by_key(|e| records.of(*e).count())
}

/// Returns what has to be said of our accuracies.
fn of_accuracy(what: Evaluated<'_>) -> String {
    let alike = Entrant::all().filter_map(|e| Some((e.name(), e.computes_like()?.name())));
    let alike = alike.map(|(one, other)| {
        format!(
            " (`{one}` computes on the same integers as `{other}` online, so it has the figures of \
             `{other}` if it was not run itself)"
        )
    });
    let alike: String = alike.collect();
    format!(
        " Ours is that of {} through the protocol under the scheme{alike}, in the clear with \
         integers that are rounded exactly (`gc`) and with polynomials (`fhe`).",
        what.model
    )
}

/// Returns what stands for an entrant's accuracy.
fn evaluation<'r>(
    records: &'r Records,
    what: Evaluated<'_>,
    entrant: Entrant,
) -> Option<&'r Accuracy> {
    let own = records.accuracy_of(what, entrant);
    own.or_else(|| records.accuracy_of(what, entrant.computes_like()?))
}

fn right(a: &Accuracy) -> String {
    let float = a.accuracy_of_float;
    let float = float.map_or(String::new(), |f| format!(" (float {:.1})", 100.0 * f));
    format!("{:.1}{float} of {}", 100.0 * a.accuracy, a.n)
}

/// Makes table 2: a line of ours and, where it has one, a line of the paper's for each scheme.
pub(super) fn ablation(records: &Records, subject: Subject<'_>) -> Grid {
    let papers = subject.is_papers();
    let mut head = vec!["scheme"];
    head.extend(PaperStep::ALL.iter().map(|s| s.name()));
    head.push("total");
    if papers {
        head.push("paper: MNLI-m %");
    }
    head.push("measured");
    let title = if subject == Subject::main() {
        "Table 2: seconds by step, BERT-base, offline / online".into()
    } else {
        format!("Seconds by step: {}, offline / online", subject.title())
    };
    let mut grid = Grid::new(&title, &format!("{ONE} {EXTRAPOLATED}"), &head);
    for (entrant, table, row) in records.rows(subject) {
        let scheme = entrant.name();
        let mut ours = vec![format!("`{scheme}`")];
        ours.extend(PaperStep::ALL.map(|step| of_step(row, step)));
        ours.push(mark(row, both(row, row.offline_s, row.online_s)));
        if papers {
            ours.push(String::new());
        }
        ours.push(basis(records, table, row));
        grid.push(ours);
        let theirs = paper::ABLATION.iter().find(|a| a.scheme == scheme);
        let Some(theirs) = theirs.filter(|_| papers) else {
            continue;
        };
        let mut line = vec![format!("paper: {}", theirs.name)];
        for (offline, online) in theirs.offline.iter().zip(theirs.online) {
            let offline = or_none(offline.map(|o| o.to_string()));
            line.push(format!("{offline} / {online}"));
        }
        line.push(format!("{} / {}", theirs.total.0, theirs.total.1));
        line.push(format!("{:.1}", theirs.accuracy));
        line.push(String::new());
        grid.push(line);
    }
    grid
}

/// Formats the offline seconds, of what prepares something.
fn offline(row: &Row) -> Option<String> {
    (row.offline_s > 0.0).then(|| mark(row, seconds(row.offline_s)))
}

/// Formats tokens a second online, of slow ones two digits.
fn throughput(row: &Row) -> String {
    let rate = TOKENS as f64 / row.online_s;
    let digits = (1.0 - rate.log10().floor()).max(1.0) as usize;
    format!("{rate:.digits$}")
}

/// Formats the seconds of both phases; what prepares nothing has no offline phase.
fn both(row: &Row, offline: f64, online: f64) -> String {
    let offline = (row.offline_s > 0.0).then(|| seconds(offline));
    format!("{} / {}", or_none(offline), seconds(online))
}

fn of_step(row: &Row, step: PaperStep) -> String {
    let found = row.steps.iter().find(|s| s.step == step);
    found.map_or(NONE.into(), |s| both(row, s.offline_s, s.online_s))
}

/// Makes table 3: the five models under every scheme that was measured on one of them.
pub(super) fn sizes(records: &Records) -> Grid {
    let note = format!(
        "{ONE} {EXTRAPOLATED} Messages are all bytes of one inference, both phases and directions, \
         without the keys of a session. The paper's figures are Primer-FPC's."
    );
    let mut grid = Grid::new(
        "Table 3: five models, 30 tokens",
        &note,
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
        for (entrant, table, row) in records.rows(Subject::plain(size.model)) {
            let mut line = vec![
                size.model.into(),
                or_none(shape.clone()),
                format!("`{}`", entrant.name()),
                or_none(offline(row)),
                mark(row, seconds(row.online_s)),
                mark(row, throughput(row)),
                mark(row, bytes(row.bytes.total())),
            ];
            let theirs = [
                size.offline_s.to_string(),
                size.online_s.to_string(),
                size.throughput.to_string(),
                format!("{} GB", size.messages),
            ];
            line.extend(theirs.map(|v| or_none(is_sized(entrant, row).then_some(v))));
            line.push(basis(records, table, row));
            grid.push(line);
        }
    }
    grid
}
