//! Results as they were measured: the JSON of `primer bench` and `primer eval`, read back.

use super::distinct;
use super::hosts::Hosts;
use super::peer::Peer;
use super::subject::Subject;
use crate::bench::{Entrant, Grown};
use anyhow::{Context, Error, Result, bail, ensure};
use primer_measure::bench::table::{Row, Table};
use primer_measure::provenance::Provenance;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Tokens of the paper's tables.
pub const TOKENS: usize = 30;

/// What `primer eval --json` prints.
#[derive(Debug, Clone, Deserialize)]
pub struct Accuracy {
    /// The model's name.
    pub model: String,
    /// The data set.
    pub task: String,
    /// What computed.
    pub engine: String,
    /// The scheme of the private protocol.
    pub scheme: Option<String>,
    /// How fixed point dropped low bits.
    pub truncation: Option<String>,
    /// Examples.
    pub n: usize,
    /// The part that is right.
    pub accuracy: f64,
    /// The F1 score.
    pub f1: Option<f64>,
    /// The part that float has right of the same examples.
    pub accuracy_of_float: Option<f64>,
    /// The part with float's label.
    pub agreement_with_float: f64,
    /// The part with the label of the same integers in the clear.
    pub agreement_with_fixed: Option<f64>,
    /// Where and how this was measured.
    #[serde(flatten)]
    pub provenance: Provenance,
}

/// A model on a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluated<'r> {
    /// The model.
    pub model: &'r str,
    /// The data set.
    pub task: &'r str,
}

/// What computed an accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Single precision.
    Float,
    /// The protocol's integers, low bits dropped from random shares as the protocol does.
    Fixed,
    /// The same integers rounded exactly, as a circuit does.
    Exact,
    /// The protocol itself, any scheme.
    Secure,
    /// The comparator's polynomials.
    Fhe,
}

impl Accuracy {
    /// Returns what computed it, if this program knows it.
    pub fn computed_by(&self) -> Option<Engine> {
        Some(match (self.engine.as_str(), self.truncation.as_deref()) {
            ("float", _) => Engine::Float,
            ("fixed", Some("exact")) => Engine::Exact,
            ("fixed", _) => Engine::Fixed,
            ("secure", _) => Engine::Secure,
            ("fhe", _) => Engine::Fhe,
            _ => return None,
        })
    }
}

/// Everything that a report shows.
#[derive(Debug, Default)]
pub struct Records {
    /// Costs.
    pub tables: Vec<Table>,
    /// Those of them with which growth was measured.
    pub grown: Vec<Grown>,
    /// Accuracies.
    pub accuracies: Vec<Accuracy>,
    /// What other systems cost.
    pub peers: Vec<Table>,
    /// Inferences between two hosts.
    pub hosts: Vec<Hosts>,
}

/// Returns, of the rows of a subject that count, one of a whole run before extrapolated ones, of
/// more layers before fewer, the later before the earlier.
fn best<'r>(
    tables: &'r [Table],
    subject: Subject<'_>,
    counts: impl Fn(&Row) -> bool,
) -> Option<(&'r Table, &'r Row)> {
    let tables = tables.iter().filter(|t| Subject::of(t) == subject);
    let rows = tables.flat_map(|t| t.results.iter().map(move |r| (t, r)));
    rows.filter(|(_, row)| counts(row))
        .max_by_key(|(table, row)| (!row.extrapolated, table.layers_measured))
}

impl Records {
    /// Reads files, and the files ending in `.json` of directories, in the order of their names.
    ///
    /// # Errors
    /// If one cannot be read or is not a result.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut records = Self::default();
        for path in paths {
            if path.is_dir() {
                let entries = std::fs::read_dir(path)
                    .with_context(|| format!("listing {}", path.display()))?;
                let mut files: Vec<PathBuf> = Vec::new();
                for entry in entries {
                    files.push(entry?.path());
                }
                files.retain(|file| file.extension().is_some_and(|e| e == "json"));
                files.sort();
                for file in &files {
                    records.file(file)?;
                }
            } else {
                records.file(path)?;
            }
        }
        Ok(records)
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        self.add(&text)
            .with_context(|| format!("{} is not a result", path.display()))
    }

    /// Tells whether there is nothing to show.
    pub const fn is_empty(&self) -> bool {
        self.tables.is_empty()
            && self.accuracies.is_empty()
            && self.peers.is_empty()
            && self.hosts.is_empty()
    }

    pub(super) fn add(&mut self, text: &str) -> Result<()> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        // What has no place in tables and pictures is refused, lest it vanish from them.
        let is_known = |name: &str| name.parse::<Entrant>().map(drop).map_err(Error::msg);
        if value.get("results").is_some() {
            let grown: Grown = serde_json::from_value(value)?;
            let table = &grown.table;
            let of_peer = |row: &Row| row.scheme.parse::<Peer>().is_ok();
            if !table.results.is_empty() && table.results.iter().all(of_peer) {
                self.peers.push(grown.table);
                return Ok(());
            }
            let growth = grown.growth.iter();
            let points = growth.flat_map(|growth| growth.layers.iter().chain(&growth.tokens));
            let points = points.map(|point| &point.scheme);
            let mut names = table.results.iter().map(|row| &row.scheme).chain(points);
            names.try_for_each(|name| is_known(name))?;
            self.add_table(grown);
        } else if value.get("engine").is_some() {
            let accuracy: Accuracy = serde_json::from_value(value)?;
            accuracy.scheme.iter().try_for_each(|name| is_known(name))?;
            ensure!(
                accuracy.scheme.is_some() || accuracy.computed_by() != Some(Engine::Secure),
                "it does not say which scheme the answers went through"
            );
            self.accuracies.push(accuracy);
        } else if value.get("links").is_some() {
            let hosts: Hosts = serde_json::from_value(value)
                .context("of `lab/scripts/two-hosts` a result with `--bench` is needed")?;
            is_known(&hosts.scheme)?;
            self.hosts.push(hosts);
        } else {
            bail!(
                "it is not what `primer bench --json`, `primer eval --json`, or compare-peers or \
                 two-hosts in lab/scripts prints"
            );
        }
        Ok(())
    }

    /// Adds what was measured.
    pub fn add_table(&mut self, grown: Grown) {
        self.tables.push(grown.table.clone());
        if grown.growth.is_some() {
            self.grown.push(grown);
        }
    }

    /// Returns the best figures of a subject: those of a whole run before extrapolated ones, those
    /// of more layers before those of fewer, later ones before earlier ones. Of one bundle prepared
    /// alone; see [`Self::together`] for others.
    pub fn row(&self, subject: Subject<'_>, entrant: Entrant) -> Option<(&Table, &Row)> {
        self.prepared(subject, entrant, 1)
    }

    /// Returns the same of a number of bundles that were prepared together.
    fn prepared(
        &self,
        subject: Subject<'_>,
        entrant: Entrant,
        bundles: usize,
    ) -> Option<(&Table, &Row)> {
        best(&self.tables, subject, |row| {
            (row.scheme.as_str(), row.bundles) == (entrant.name(), bundles)
        })
    }

    /// Returns the best figures of a subject under another system.
    pub fn peer(&self, subject: Subject<'_>, peer: Peer) -> Option<(&Table, &Row)> {
        best(&self.peers, subject, |row| row.scheme == peer.name())
    }

    /// Returns the best figures of a subject under each entrant of which several bundles were
    /// prepared together, for each number of them; one alone comes first.
    pub fn together(&self, subject: Subject<'_>) -> Vec<(Entrant, &Table, &Row)> {
        let tables = self.tables.iter().filter(|t| Subject::of(t) == subject);
        let mut counts: Vec<usize> = tables.flat_map(|t| &t.results).map(|r| r.bundles).collect();
        counts.sort_unstable();
        counts.dedup();
        let of_entrant = |entrant: Entrant| {
            let each = counts.iter().filter_map(move |&bundles| {
                let (table, row) = self.prepared(subject, entrant, bundles)?;
                Some((entrant, table, row))
            });
            let rows: Vec<_> = each.collect();
            let several = rows.iter().any(|(_, _, row)| row.bundles > 1);
            rows.into_iter().filter(move |_| several)
        };
        Entrant::all().flat_map(of_entrant).collect()
    }

    /// Returns the best figures of a subject under each entrant that has some.
    pub fn rows(&self, subject: Subject<'_>) -> impl Iterator<Item = (Entrant, &Table, &Row)> {
        Entrant::all().filter_map(move |entrant| {
            let (table, row) = self.row(subject, entrant)?;
            Some((entrant, table, row))
        })
    }

    /// Returns every model with every data set that it was evaluated on.
    pub fn evaluated(&self) -> Vec<Evaluated<'_>> {
        distinct(self.accuracies.iter().map(|a| Evaluated {
            model: &a.model,
            task: &a.task,
        }))
    }

    /// Returns all accuracies of a model on a data set.
    pub fn of(&self, what: Evaluated<'_>) -> impl Iterator<Item = &Accuracy> {
        let found = self.accuracies.iter();
        found.filter(move |a| a.model == what.model && a.task == what.task)
    }

    /// Returns the accuracy of an engine, of most examples; of one scheme if it is named.
    pub fn accuracy(
        &self,
        what: Evaluated<'_>,
        engine: Engine,
        scheme: Option<&str>,
    ) -> Option<&Accuracy> {
        self.of(what)
            .filter(|a| a.computed_by() == Some(engine))
            .filter(|a| scheme.is_none() || a.scheme.as_deref() == scheme)
            .max_by_key(|a| a.n)
    }

    /// Returns the accuracy of an entrant: through the protocol, or what its comparator computes,
    /// in the clear.
    pub fn accuracy_of(&self, what: Evaluated<'_>, entrant: Entrant) -> Option<&Accuracy> {
        match entrant {
            Entrant::Scheme(scheme) => self.accuracy(what, Engine::Secure, Some(scheme.name())),
            Entrant::Gc => self.accuracy(what, Engine::Exact, None),
            Entrant::Fhe => self.accuracy(what, Engine::Fhe, None),
        }
    }

    /// Returns the number of a command in [`Self::provenance`], from 1.
    pub fn number(&self, provenance: &Provenance) -> usize {
        let at = self.provenance().iter().position(|p| *p == provenance);
        at.map_or(0, |at| at + 1)
    }

    /// Returns every machine, commit and command, once.
    pub fn provenance(&self) -> Vec<&Provenance> {
        let tables = self.tables.iter().chain(&self.peers);
        let tables = tables.map(|t| &t.provenance);
        let hosts = self.hosts.iter().map(|h| &h.provenance);
        let all = tables.chain(hosts);
        let all = all.chain(self.accuracies.iter().map(|a| &a.provenance));
        distinct(all)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{accuracy, grown, records, result, table, with};
    use super::*;
    use serde_json::Value;

    #[test]
    fn whole_runs_come_before_extrapolated_ones() {
        let records = records(&[
            table("bert-base", &["fp"], false, 40.0),
            table("bert-base", &["fp", "f"], true, 50.0),
            accuracy("sst2", "float"),
            accuracy("sst2", "fixed"),
            result("sst2", "fixed", "exact", 60),
        ]);
        let row = |scheme: &str| records.row(Subject::main(), scheme.parse().unwrap());
        assert_eq!(row("fp").unwrap().1.offline_s, 40.0);
        assert_eq!(row("f").unwrap().1.offline_s, 50.0);
        assert!(row("base").is_none());
        let fp = "fp".parse().unwrap();
        assert!(records.row(Subject::plain("minilm"), fp).is_none());
        let what = Evaluated {
            model: "minilm",
            task: "sst2",
        };
        let examples = |engine| records.accuracy(what, engine, None).map(|a| a.n);
        assert_eq!(examples(Engine::Float), Some(50));
        assert_eq!(examples(Engine::Fixed), Some(50));
        assert_eq!(examples(Engine::Exact), Some(60));
        assert_eq!(examples(Engine::Secure), None);
        assert_eq!(records.provenance().len(), 2);
        assert_eq!(records.number(&records.tables[1].provenance), 1);
        assert_eq!(records.number(&records.accuracies[0].provenance), 2);
    }

    #[test]
    fn bundles_prepared_together_are_no_figures_of_one() {
        let alone = table("bert-base", &["lean", "fp"], false, 12.0);
        let eight = table("bert-base", &["lean"], false, 9.0);
        let eight = with(&eight, "results.bundles", 8);
        let records = records(&[eight, alone]);
        let lean = "lean".parse().unwrap();
        let row = records.row(Subject::main(), lean).unwrap().1;
        assert_eq!((row.bundles, row.offline_s), (1, 12.0));
        let together = records.together(Subject::main());
        let found: Vec<(&str, usize)> = (together.iter())
            .map(|(entrant, _, row)| (entrant.name(), row.bundles))
            .collect();
        assert_eq!(found, [("lean", 1), ("lean", 8)]);
        assert!(records.together(Subject::plain("bert-tiny")).is_empty());
    }

    #[test]
    fn other_systems_are_kept_apart() {
        let records = records(&[
            table("bert-base", &["fp"], false, 12.0),
            table("bert-base", &["spu"], false, 0.0),
            table("bert-base", &["crypten"], false, 0.0),
        ]);
        assert_eq!((records.tables.len(), records.peers.len()), (1, 2));
        assert_eq!(records.number(&records.peers[1].provenance), 1);
        let mut records = Records::default();
        let mixed = table("bert-base", &["fp", "spu"], false, 12.0);
        assert!(
            records
                .add(&mixed)
                .unwrap_err()
                .to_string()
                .contains("`spu`")
        );
    }

    #[test]
    fn accuracies_of_models_and_schemes_stay_apart() {
        let fp = with(&result("sst2", "secure", "shares", 50), "scheme", "fp");
        let fpc = with(&result("sst2", "secure", "shares", 60), "scheme", "fpc");
        let other = with(&result("sst2", "secure", "shares", 70), "model", "other");
        let records = records(&[fp, fpc, with(&other, "scheme", "fp")]);
        let all = records.evaluated();
        assert_eq!(
            all.iter().map(|e| e.model).collect::<Vec<_>>(),
            ["minilm", "other"]
        );
        let n = |scheme| {
            records
                .accuracy(all[0], Engine::Secure, scheme)
                .map(|a| a.n)
        };
        assert_eq!(n(Some("fp")), Some(50));
        assert_eq!(n(Some("f")), None);
        assert_eq!(n(None), Some(60));
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("else.json");
        std::fs::write(&path, "{\"what\": 1}").unwrap();
        let error = Records::read(&[dir.path().to_owned()]).unwrap_err();
        let error = format!("{error:#}");
        assert!(
            error.contains("else.json") && error.contains("bench"),
            "{error}"
        );
        assert!(Records::read(&[dir.path().join("missing")]).is_err());
    }

    #[test]
    fn what_no_table_has_is_refused() {
        let mut records = Records::default();
        let mut refused = |text: &str| records.add(text).unwrap_err().to_string();
        let known = table("bert-base", &["fp"], false, 1.0);
        assert!(refused(&with(&known, "results.scheme", "other")).contains("`other`"));
        let point = "\"fp\",\"tokens\"";
        let grown = grown("bert-base", &["fp"], 1.0).replace(point, "\"x\",\"tokens\"");
        assert!(refused(&grown).contains("`x`"));
        let secure = accuracy("sst2", "secure");
        assert!(refused(&with(&secure, "scheme", "other")).contains("`other`"));
        assert!(refused(&with(&secure, "scheme", Value::Null)).contains("which scheme"));
        records.add(&secure).unwrap();
    }
}
