//! How right the answers are.

use super::super::distinct;
use super::super::grid::Grid;
use super::super::paper;
use super::super::records::{Engine, Records};
use super::or_none;

/// Returns the paper's accuracies of table 3, if there are some of ours to stand beside.
pub(super) fn papers(records: &Records) -> Grid {
    let models = distinct(records.evaluated().iter().map(|e| e.model));
    let note = format!(
        "Percent, of SQuAD F1, as the paper states them for Primer. None of these fine-tuned \
         checkpoints is at hand, so nothing of ours stands beside them; ours, in the table after \
         this one, are of {}.",
        models.join(", ")
    );
    let head = ["model", "MNLI-m", "MRPC", "SST-2", "SQuAD1", "SQuAD2"];
    let mut grid = Grid::new("Accuracy of the paper's models", &note, &head);
    if models.is_empty() {
        return grid;
    }
    for size in &paper::SIZES {
        let all = [size.mnli, size.mrpc, size.sst2, size.squad1, size.squad2];
        let mut line = vec![size.model.to_owned()];
        line.extend(all.map(|v| format!("{v:.1}")));
        grid.push(line);
    }
    grid
}

pub(super) fn by_engine(records: &Records) -> Grid {
    let mut grid = Grid::new(
        "Accuracy by engine",
        "float: single precision. fixed: the protocol's integers in the clear (exact: low bits \
         rounded, as a circuit does, instead of dropped from shares). secure: through the \
         protocol, both parties. fhe: the comparator's polynomials in the clear. The paper's \
         figures are BERT-base's. Of SQuAD accuracy is exact answers, with F1 in brackets, and the \
         paper's figure is F1. Agreement is a number of examples; in brackets the 95 % interval \
         of its share in percent (Wilson's).",
        &[
            "model",
            "task",
            "engine",
            "examples",
            "accuracy %",
            "float on the same %",
            "agrees with float",
            "agrees with fixed",
            "paper: BERT-base %",
        ],
    );
    let percent = |v: f64| format!("{:.2}", 100.0 * v);
    for a in records.evaluated().into_iter().flat_map(|e| records.of(e)) {
        let engine = a.computed_by();
        let theirs = engine.and_then(|engine| paper::accuracy(&a.task, engine));
        let detail = match (&a.scheme, engine) {
            (_, Some(Engine::Exact)) => " (exact)".into(),
            (Some(scheme), _) => format!(" (`{scheme}`)"),
            _ => String::new(),
        };
        let f1 = a.f1.filter(|_| a.task.starts_with("squad"));
        let f1 = f1.map_or(String::new(), |v| format!(" ({})", percent(v)));
        grid.push(vec![
            a.model.clone(),
            a.task.clone(),
            format!("{}{detail}", a.engine),
            a.n.to_string(),
            percent(a.accuracy) + &f1,
            or_none(a.accuracy_of_float.map(percent)),
            agreement(a.agreement_with_float, a.n),
            or_none(a.agreement_with_fixed.map(|share| agreement(share, a.n))),
            or_none(theirs.map(|v| format!("{v:.1}"))),
        ]);
    }
    grid
}

/// Tells how many examples agree, and where their share in all examples may lie.
fn agreement(share: f64, n: usize) -> String {
    let (low, high) = interval(share, n as f64);
    let agree = (share * n as f64).round();
    format!("{agree} of {n} ({:.1} to {:.1})", 100.0 * low, 100.0 * high)
}

/// Returns Wilson's interval of 95 % for a share that was found in a sample of size `n`.
fn interval(share: f64, n: f64) -> (f64, f64) {
    const Z: f64 = 1.96;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    let bounded = |v: f64| (v / scale).clamp(0.0, 1.0);
    (bounded(middle - half), bounded(middle + half))
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{accuracy as eval, records, with};
    use super::*;

    #[test]
    fn models_stay_together() {
        let other = |text: &str| with(text, "model", "other");
        let grid = by_engine(&records(&[
            eval("sst2", "float"),
            other(&eval("sst2", "float")),
            eval("sst2", "secure"),
            other(&eval("squad", "secure")),
            other(&eval("squad2", "secure")),
        ]));
        let names: Vec<String> = grid.rows.iter().map(|r| r[..3].join(" ")).collect();
        assert_eq!(
            names,
            [
                "minilm sst2 float",
                "minilm sst2 secure (`fp`)",
                "other sst2 float",
                "other squad secure (`fp`)",
                "other squad2 secure (`fp`)"
            ]
        );
        assert_eq!(grid.rows[3][4], "90.00 (90.00)");
        assert_eq!(grid.rows[3][8], "90.7");
        assert_eq!(grid.rows[4][4], "90.00 (90.00)");
        assert_eq!(grid.rows[4][8], "80.3");
    }

    #[test]
    fn intervals_are_wilsons() {
        // Ten of ten, and the textbook's 81 of 263.
        assert_eq!(agreement(1.0, 10), "10 of 10 (72.2 to 100.0)");
        assert_eq!(agreement(81.0 / 263.0, 263), "81 of 263 (25.5 to 36.6)");
        assert_eq!(agreement(0.0, 10), "0 of 10 (0.0 to 27.8)");
    }

    #[test]
    fn the_papers_models_stand_beside_ours_only() {
        assert!(papers(&Records::default()).rows.is_empty());
        let grid = papers(&records(&[eval("sst2", "float")]));
        assert_eq!(grid.rows.len(), 5);
        assert!(grid.note.contains("are of minilm."), "{}", grid.note);
    }
}
