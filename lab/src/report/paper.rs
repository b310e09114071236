//! The figures of the paper's three tables, as it prints them.
//!
//! Two machines with Intel Xeon E7-4850, four threads a party, 2.3 ms and 100 MB/s between them; 30
//! tokens. Tables 1 and 2 are of BERT-base, accuracies of MNLI-m unless said otherwise.

use super::records::Engine;
use super::subject::MODEL;
use primer_plan::graph::PaperStep;

/// A row of table 1.
pub struct Comparison {
    /// Our name of it.
    pub scheme: &'static str,
    /// The paper's.
    pub name: &'static str,
    /// Seconds; the paper rounds them to tens or hundreds.
    pub offline_s: Option<f64>,
    /// The same online.
    pub online_s: f64,
    /// Percent.
    pub accuracy: f64,
}

/// Table 1.
pub const COMPARISONS: [Comparison; 4] = [
    Comparison {
        scheme: "fhe",
        name: "THE-X",
        offline_s: None,
        online_s: 4700.0,
        accuracy: 77.3,
    },
    Comparison {
        scheme: "gc",
        name: "GCFormer",
        offline_s: Some(7500.0),
        online_s: 9800.0,
        accuracy: 85.1,
    },
    Comparison {
        scheme: "f",
        name: "Primer-F",
        offline_s: Some(6500.0),
        online_s: 40.0,
        accuracy: 84.6,
    },
    Comparison {
        scheme: "fpc",
        name: "Primer-FPC",
        offline_s: Some(400.0),
        online_s: 40.0,
        accuracy: 84.6,
    },
];

/// A row of table 2.
pub struct Ablation {
    /// Our name of it.
    pub scheme: &'static str,
    /// The paper's.
    pub name: &'static str,
    /// Seconds offline by step, in the order of [`PaperStep::ALL`]; none where the paper has a
    /// stroke.
    pub offline: [Option<f64>; 6],
    /// Seconds online by step.
    pub online: [f64; 6],
    /// The paper's totals, offline and online.
    pub total: (f64, f64),
    /// Percent.
    pub accuracy: f64,
}

/// Table 2.
pub const ABLATION: [Ablation; 4] = [
    Ablation {
        scheme: "base",
        name: "Primer-base",
        offline: [None, None, None, Some(0.01), Some(0.8), None],
        online: [3094.4, 190.6, 25.0, 16.4, 2.3, 3224.5],
        total: (0.81, 6553.2),
        accuracy: 84.6,
    },
    Ablation {
        scheme: "f",
        name: "Primer-F",
        offline: [
            Some(3094.4),
            Some(190.6),
            Some(14.0),
            Some(0.01),
            Some(0.8),
            Some(3224.5),
        ],
        online: [0.8, 3.9, 9.9, 16.4, 2.3, 7.9],
        total: (6524.3, 41.2),
        accuracy: 84.6,
    },
    Ablation {
        scheme: "fp",
        name: "Primer-FP",
        offline: [
            Some(134.5),
            Some(39.0),
            Some(10.5),
            Some(0.01),
            Some(0.8),
            Some(220.4),
        ],
        online: [0.8, 3.9, 7.7, 16.4, 2.3, 7.9],
        total: (405.2, 39.0),
        accuracy: 84.6,
    },
    Ablation {
        scheme: "fpc",
        name: "Primer-FPC",
        offline: [
            Some(0.0),
            Some(0.0),
            Some(178.2),
            Some(0.01),
            Some(0.8),
            Some(220.4),
        ],
        online: [0.0, 0.0, 11.6, 14.8, 2.3, 6.7],
        total: (399.4, 35.4),
        accuracy: 84.6,
    },
];

/// A row of table 3, measured with Primer-FPC.
pub struct Size {
    /// The model.
    pub model: &'static str,
    /// Percent on MNLI-m.
    pub mnli: f64,
    /// Percent on MRPC.
    pub mrpc: f64,
    /// Percent on SST-2.
    pub sst2: f64,
    /// F1 in percent on SQuAD 1.
    pub squad1: f64,
    /// F1 in percent on SQuAD 2.
    pub squad2: f64,
    /// Seconds offline.
    pub offline_s: f64,
    /// Seconds online.
    pub online_s: f64,
    /// Tokens a second.
    pub throughput: f64,
    /// Gigabytes of messages.
    pub messages: f64,
}

/// Table 3.
pub const SIZES: [Size; 5] = [
    Size {
        model: "bert-tiny",
        mnli: 77.6,
        mrpc: 79.3,
        sst2: 88.2,
        squad1: 86.2,
        squad2: 76.6,
        offline_s: 318.5,
        online_s: 10.6,
        throughput: 2.83,
        messages: 0.9,
    },
    Size {
        model: "bert-small",
        mnli: 81.6,
        mrpc: 84.5,
        sst2: 91.1,
        squad1: 88.5,
        squad2: 78.2,
        offline_s: 345.2,
        online_s: 18.9,
        throughput: 1.59,
        messages: 1.8,
    },
    Size {
        model: "bert-base",
        mnli: 84.6,
        mrpc: 86.3,
        sst2: 92.5,
        squad1: 90.7,
        squad2: 80.3,
        offline_s: 399.4,
        online_s: 35.4,
        throughput: 0.85,
        messages: 3.6,
    },
    Size {
        model: "bert-medium",
        mnli: 85.4,
        mrpc: 86.3,
        sst2: 93.1,
        squad1: 92.2,
        squad2: 81.6,
        offline_s: 452.8,
        online_s: 45.1,
        throughput: 0.67,
        messages: 3.9,
    },
    Size {
        model: "bert-large",
        mnli: 86.6,
        mrpc: 87.6,
        sst2: 93.5,
        squad1: 93.1,
        squad2: 82.9,
        offline_s: 586.4,
        online_s: 91.6,
        throughput: 0.33,
        messages: 7.9,
    },
];

/// Returns what the paper says of a scheme in table 2, which has more digits, or failing that in
/// table 1: seconds offline and online.
pub fn totals(scheme: &str) -> Option<(Option<f64>, f64)> {
    let ablation = ABLATION.iter().find(|row| row.scheme == scheme);
    let ablation = ablation.map(|row| (Some(row.total.0), row.total.1));
    let comparison = COMPARISONS.iter().find(|row| row.scheme == scheme);
    ablation.or(comparison.map(|row| (row.offline_s, row.online_s)))
}

/// Formats seconds as the paper prints them: what only its table 1 has, in thousands with one
/// digit.
pub fn printed(scheme: &str, seconds: f64) -> String {
    if ABLATION.iter().any(|row| row.scheme == scheme) {
        // Sums of its figures have no more digits than they.
        return ((100.0 * seconds).round() / 100.0).to_string();
    }
    format!("{:.1}K", seconds / 1000.0)
}

/// Returns the paper's name of a scheme.
pub fn name(scheme: &str) -> Option<&'static str> {
    let ablation = ABLATION.iter().map(|row| (row.scheme, row.name));
    let mut all = ablation.chain(COMPARISONS.iter().map(|row| (row.scheme, row.name)));
    all.find(|row| row.0 == scheme).map(|row| row.1)
}

/// Returns the accuracy of a scheme on MNLI-m, in percent.
pub fn mnli(scheme: &str) -> Option<f64> {
    let ablation = ABLATION.iter().map(|row| (row.scheme, row.accuracy));
    let mut all = ablation.chain(COMPARISONS.iter().map(|row| (row.scheme, row.accuracy)));
    all.find(|row| row.0 == scheme).map(|row| row.1)
}

/// Returns what the paper says of one step of a scheme: seconds offline and online.
pub fn step(scheme: &str, step: PaperStep) -> Option<(Option<f64>, f64)> {
    let row = ABLATION.iter().find(|row| row.scheme == scheme)?;
    let at = PaperStep::ALL.iter().position(|s| *s == step)?;
    Some((row.offline[at], row.online[at]))
}

/// Returns the accuracy of BERT-base on a data set, in percent, through what an engine of ours
/// stands for; of SQuAD it is F1.
pub fn accuracy(task: &str, engine: Engine) -> Option<f64> {
    let base = SIZES.iter().find(|s| s.model == MODEL)?;
    match (task, engine) {
        ("mnli", Engine::Fhe) => mnli("fhe"),
        ("mnli", Engine::Exact) => mnli("gc"),
        ("mnli", Engine::Secure) => Some(base.mnli),
        ("mrpc", Engine::Secure) => Some(base.mrpc),
        ("sst2", Engine::Secure) => Some(base.sst2),
        ("squad", Engine::Secure) => Some(base.squad1),
        ("squad2", Engine::Secure) => Some(base.squad2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Entrant;

    /// Checks the paper's own sums; a figure that was copied wrongly would show. Its totals are
    /// rounded, and of Primer-FP's and Primer-F's steps they leave up to half a second unexplained.
    #[test]
    fn steps_add_up_to_the_totals() {
        for row in &ABLATION {
            let offline: f64 = row.offline.iter().flatten().sum();
            let online: f64 = row.online.iter().sum();
            assert!(
                (offline - row.total.0).abs() < 1.0,
                "{}: {offline}",
                row.name
            );
            assert!((online - row.total.1).abs() < 1.0, "{}: {online}", row.name);
        }
        for row in &SIZES {
            let throughput = 30.0 / row.online_s;
            assert!((throughput - row.throughput).abs() < 0.02, "{}", row.model);
        }
        // The averages of its text.
        let tiny = &SIZES[0];
        assert!(((tiny.mnli + tiny.mrpc + tiny.sst2) / 3.0 - 81.7).abs() < 0.05);
        assert!((tiny.squad1.midpoint(tiny.squad2) - 81.4).abs() < 0.05);
    }

    #[test]
    fn rows_have_names_of_ours() {
        let ablation = ABLATION.iter().map(|row| row.scheme);
        for name in ablation.chain(COMPARISONS.iter().map(|row| row.scheme)) {
            assert!(name.parse::<Entrant>().is_ok(), "{name}");
        }
    }

    #[test]
    fn figures_are_found_by_name() {
        assert_eq!(totals("fp"), Some((Some(405.2), 39.0)));
        assert_eq!(totals("fhe"), Some((None, 4700.0)));
        assert_eq!(totals("other"), None);
        assert_eq!(step("fp", PaperStep::ALL[1]), Some((Some(39.0), 3.9)));
        assert_eq!(name("fp"), Some("Primer-FP"));
        assert_eq!(name("gc"), Some("GCFormer"));
        assert_eq!(mnli("fp"), Some(84.6));
        assert_eq!(mnli("fhe"), Some(77.3));
        let of = |task| accuracy(task, Engine::Secure);
        assert_eq!(
            ["mnli", "mrpc", "sst2", "squad", "squad2", "other"].map(of),
            [84.6, 86.3, 92.5, 90.7, 80.3, 0.0].map(|v| (v > 0.0).then_some(v))
        );
        assert_eq!(accuracy("mrpc", Engine::Fhe), None);
    }

    #[test]
    fn figures_have_the_papers_digits() {
        assert_eq!(printed("gc", 7500.0 + 9800.0), "17.3K");
        assert_eq!(printed("fhe", 4700.0), "4.7K");
        assert_eq!(printed("fp", 39.0), "39");
        assert_eq!(printed("fp", 405.2 + 39.0), "444.2");
    }
}
