//! Results as they were measured: the JSON of `primer bench` and `primer eval`, read back.

use super::subject::Subject;
use crate::bench::table::{Row, Table};
use crate::provenance::Provenance;
use anyhow::{Context, Result, bail};
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
    /// What computed it, if this program knows it.
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
    /// Accuracies.
    pub accuracies: Vec<Accuracy>,
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

    fn add(&mut self, text: &str) -> Result<()> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        if value.get("results").is_some() {
            self.tables.push(serde_json::from_value(value)?);
        } else if value.get("engine").is_some() {
            self.accuracies.push(serde_json::from_value(value)?);
        } else {
            bail!("it is neither what `primer bench --json` nor what `primer eval --json` prints");
        }
        Ok(())
    }

    /// The best figures of a subject under a scheme: those of a whole run before extrapolated ones, those of more layers before
    /// those of fewer, later ones before earlier ones.
    pub fn row(&self, subject: Subject<'_>, scheme: &str) -> Option<(&Table, &Row)> {
        let tables = self.tables.iter().filter(|t| Subject::of(t) == subject);
        let rows = tables.flat_map(|t| t.results.iter().map(move |r| (t, r)));
        rows.filter(|(_, row)| row.scheme == scheme)
            .max_by_key(|(table, row)| (!row.extrapolated, table.layers_measured))
    }

    /// Every model with every data set that it was evaluated on.
    pub fn evaluated(&self) -> Vec<Evaluated<'_>> {
        let mut seen: Vec<Evaluated<'_>> = Vec::new();
        for a in &self.accuracies {
            let one = Evaluated {
                model: &a.model,
                task: &a.task,
            };
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
        seen
    }

    /// All accuracies of a model on a data set.
    pub fn of(&self, what: Evaluated<'_>) -> impl Iterator<Item = &Accuracy> {
        let found = self.accuracies.iter();
        found.filter(move |a| a.model == what.model && a.task == what.task)
    }

    /// The accuracy of an engine, of most examples; of one scheme if it is named.
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

    /// The number of a command in [`Self::provenance`], from 1.
    pub fn number(&self, provenance: &Provenance) -> usize {
        let at = self.provenance().iter().position(|p| *p == provenance);
        at.map_or(0, |at| at + 1)
    }

    /// Every machine, commit and command, once.
    pub fn provenance(&self) -> Vec<&Provenance> {
        let tables = self.tables.iter().map(|t| &t.provenance);
        let all = tables.chain(self.accuracies.iter().map(|a| &a.provenance));
        let mut seen: Vec<&Provenance> = Vec::new();
        for one in all {
            if !seen.contains(&one) {
                seen.push(one);
            }
        }
        seen
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::Value;

    /// A table of `bench` with one row for each scheme.
    pub(in crate::report) fn table(
        model: &str,
        schemes: &[&str],
        extrapolated: bool,
        offline_s: f64,
    ) -> String {
        let steps = ["embed", "qkv", "qk", "softmax", "attention_value", "others"];
        let steps: Vec<_> = steps
            .iter()
            .map(|s| serde_json::json!({"step": s, "offline_s": offline_s / 6.0, "online_s": 0.5}))
            .collect();
        let results: Vec<_> = schemes
            .iter()
            .map(|scheme| {
                serde_json::json!({
                    "scheme": scheme, "extrapolated": extrapolated, "offline_s": offline_s, "online_s": 3.0,
                    "plaintext_s": 0.1,
                    "bytes": {"offline_up": 1, "offline_down": 2, "online_up": 3, "online_down": 4},
                    "setup_bytes": 5, "rounds_online": 6, "peak_rss_client": 7, "peak_rss_server": 8, "and_gates": 9,
                    "max_abs_logit_error": 0.001, "steps": steps,
                })
            })
            .collect();
        serde_json::json!({
            "model": model, "layers": 12, "layers_measured": if extrapolated { 1 } else { 12 }, "tokens": 30,
            "link": "loopback", "threads_per_party": 1, "pinned": true, "results": results,
            "machine": "a machine", "commit": "abc", "command": format!("primer bench --model {model}"),
        })
        .to_string()
    }

    /// A text of JSON with one field of the whole, or of every result, set.
    pub(in crate::report) fn with(text: &str, field: &str, value: impl Into<Value>) -> String {
        let mut json: Value = serde_json::from_str(text).unwrap();
        let value = value.into();
        match field.strip_prefix("results.") {
            Some(field) => {
                for row in json["results"].as_array_mut().unwrap() {
                    row[field] = value.clone();
                }
            }
            None => json[field] = value,
        }
        json.to_string()
    }

    /// A table of another length and link.
    pub(in crate::report) fn table_at(
        model: &str,
        tokens: usize,
        link: &str,
        schemes: &[&str],
    ) -> String {
        let text = with(&table(model, schemes, false, 40.0), "tokens", tokens);
        with(&text, "link", link)
    }

    /// A table with growth, in proportion to layers and tokens; points of schemes alternate as `bench` prints them.
    pub(in crate::report) fn grown(model: &str, schemes: &[&str], second: f64) -> String {
        let point = |scheme: &str, layers: u64, tokens: u64| {
            serde_json::json!({
                "scheme": scheme, "layers": layers, "tokens": tokens,
                "offline_s": second * (layers * tokens) as f64 / 30.0, "online_s": layers as f64,
                "bytes": {"offline_up": 0, "offline_down": 1000 * layers * tokens, "online_up": 5, "online_down": 5},
                "rounds_online": 8 * layers, "and_gates": 9,
            })
        };
        let of = |sizes: &[(u64, u64)]| -> Vec<Value> {
            let of_size = |(layers, tokens)| schemes.iter().map(move |s| point(s, layers, tokens));
            sizes.iter().copied().flat_map(of_size).collect()
        };
        let layers = of(&[(1, 30), (2, 30), (4, 30)]);
        let growth = serde_json::json!({"layers": layers, "tokens": of(&[(1, 8), (1, 30)])});
        with(&table(model, schemes, true, 40.0), "growth", growth)
    }

    /// A result of `eval`.
    pub(in crate::report) fn accuracy(task: &str, engine: &str) -> String {
        result(task, engine, "shares", 50)
    }

    /// The same with other truncation and more examples.
    pub(in crate::report) fn result(
        task: &str,
        engine: &str,
        truncation: &str,
        n: usize,
    ) -> String {
        serde_json::json!({
            "model": "minilm", "task": task, "engine": engine, "n": n, "accuracy": 0.9, "f1": 0.9,
            "accuracy_of_float": 0.92, "truncation": truncation,
            "agreement_with_float": 0.98, "machine": "a machine", "commit": "abc", "command": "primer eval",
        })
        .to_string()
    }

    pub(in crate::report) fn records(texts: &[String]) -> Records {
        let mut records = Records::default();
        for text in texts {
            records.add(text).unwrap();
        }
        records
    }

    #[test]
    fn whole_runs_come_before_extrapolated_ones() {
        let records = records(&[
            table("bert-base", &["fp"], false, 40.0),
            table("bert-base", &["fp", "f"], true, 50.0),
            accuracy("sst2", "float"),
            accuracy("sst2", "fixed"),
            result("sst2", "fixed", "exact", 60),
        ]);
        let row = |scheme| records.row(Subject::main(), scheme);
        assert_eq!(row("fp").unwrap().1.offline_s, 40.0);
        assert_eq!(row("f").unwrap().1.offline_s, 50.0);
        assert!(row("base").is_none());
        assert!(records.row(Subject::plain("minilm"), "fp").is_none());
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
}
