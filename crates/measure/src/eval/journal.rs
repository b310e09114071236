//! Private answers as they come, so that a long evaluation can go on where it stopped.
//!
//! A file of JSON lines: first what is being evaluated (a hash), then one line for each answer,
//! with the commit of the program that gave it, since a long evaluation may outlive a version. A
//! last line that was cut off is dropped; a file of another evaluation is refused, not overwritten.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct First {
    evaluation: String,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    index: usize,
    outputs: Vec<Vec<f64>>,
    in_range: Option<bool>,
    commit: String,
}

/// One answer.
pub(super) struct JournalEntry {
    pub(super) outputs: Vec<Vec<f64>>,
    /// What the client was told about ranges.
    pub(super) in_range: Option<bool>,
    /// Of the program that gave it.
    pub(super) commit: String,
}

impl Entry {
    fn kept(self) -> JournalEntry {
        JournalEntry {
            outputs: self.outputs,
            in_range: self.in_range,
            commit: self.commit,
        }
    }
}

/// The answers so far, and where the next ones go.
pub(super) struct Journal {
    /// By the example's index.
    pub(super) done: BTreeMap<usize, JournalEntry>,
    commit: String,
    file: Option<(File, PathBuf)>,
}

impl Journal {
    /// Makes one that keeps nothing beyond this process, which is of a commit.
    pub(super) fn none(commit: &str) -> Self {
        Self {
            done: BTreeMap::new(),
            commit: commit.to_owned(),
            file: None,
        }
    }

    /// Opens or begins a journal of an evaluation; what is added is of a commit.
    pub(super) fn open(path: &Path, evaluation: &str, commit: &str) -> Result<Self> {
        let shown = || format!("the journal {}", path.display());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).with_context(shown)?;
        let mut done = BTreeMap::new();
        let mut good = 0;
        let mut lines = BufReader::new(&file);
        let mut line = String::new();
        while lines.read_line(&mut line).with_context(shown)? > 0 {
            if !line.ends_with('\n') {
                break;
            }
            if good == 0 {
                let first: Option<First> = serde_json::from_str(&line).ok();
                match first {
                    Some(first) if first.evaluation == evaluation => {}
                    Some(_) => bail!(
                        "{} belongs to an evaluation of another model, calibration, data set, \
                         scheme or protocol version",
                        shown()
                    ),
                    None => bail!("{} is not a journal of an evaluation", shown()),
                }
            } else {
                let entry: Entry = serde_json::from_str(&line)
                    .with_context(|| format!("{}, after {} answers", shown(), done.len()))?;
                done.insert(entry.index, entry.kept());
            }
            good += line.len() as u64;
            line.clear();
        }
        file.set_len(good).with_context(shown)?;
        file.seek(SeekFrom::End(0)).with_context(shown)?;
        let mut journal = Self {
            done,
            commit: commit.to_owned(),
            file: Some((file, path.to_owned())),
        };
        if good == 0 {
            let evaluation = evaluation.to_owned();
            journal.write(&First { evaluation })?;
        }
        Ok(journal)
    }

    /// Keeps one more answer.
    pub(super) fn record(
        &mut self,
        index: usize,
        outputs: Vec<Vec<f64>>,
        in_range: Option<bool>,
    ) -> Result<()> {
        let entry = Entry {
            index,
            outputs,
            in_range,
            commit: self.commit.clone(),
        };
        self.write(&entry)?;
        self.done.insert(index, entry.kept());
        Ok(())
    }

    fn write(&mut self, line: &impl Serialize) -> Result<()> {
        if let Some((file, path)) = &mut self.file {
            let mut text = serde_json::to_string(line)?;
            text.push('\n');
            file.write_all(text.as_bytes())
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_and_a_torn_line_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = Journal::open(&path, "a", "first").unwrap();
        journal
            .record(4, vec![vec![0.5, -1.0]], Some(false))
            .unwrap();
        journal
            .record(2, vec![vec![1.5, 0.25]], Some(true))
            .unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 3]).unwrap();
        let mut journal = Journal::open(&path, "a", "first").unwrap();
        assert_eq!(journal.done.keys().collect::<Vec<_>>(), [&4]);
        journal
            .record(2, vec![vec![1.5, 0.25]], Some(true))
            .unwrap();
        drop(journal);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        let mut journal = Journal::open(&path, "a", "second").unwrap();
        journal.record(7, vec![vec![0.0, 1.0]], None).unwrap();
        drop(journal);
        let journal = Journal::open(&path, "a", "third").unwrap();
        let commits: Vec<&str> = journal.done.values().map(|k| &*k.commit).collect();
        assert_eq!(commits, ["first", "first", "second"]);
        let told: Vec<Option<bool>> = journal.done.values().map(|k| k.in_range).collect();
        assert_eq!(told, [Some(true), Some(false), None]);
    }

    #[test]
    fn other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        drop(Journal::open(&path, "a", "c").unwrap());
        let error = Journal::open(&path, "b", "c").err().unwrap().to_string();
        assert!(error.contains("another model"), "{error}");
        std::fs::write(&path, "dear diary\n").unwrap();
        let error = Journal::open(&path, "a", "c").err().unwrap().to_string();
        assert!(error.contains("not a journal"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "dear diary\n");
    }
}
