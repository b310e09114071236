//! GLUE's tab-separated files, read without quoting rules: a quotation mark is a character.

use super::{Example, Gold, Task, TaskError};
use crate::choice::Choice;
use std::path::Path;

/// Where a task's columns are.
struct Columns {
    count: usize,
    first: usize,
    second: Option<usize>,
    label: usize,
}

const fn columns(task: Task) -> Columns {
    match task {
        Task::Sst2 => Columns {
            count: 2,
            first: 0,
            second: None,
            label: 1,
        },
        Task::Mnli => Columns {
            count: 3,
            first: 0,
            second: Some(1),
            label: 2,
        },
        // Quality, #1 ID, #2 ID, #1 String, #2 String.
        Task::Mrpc | Task::Squad | Task::Squad2 => Columns {
            count: 5,
            first: 3,
            second: Some(4),
            label: 0,
        },
    }
}

/// Returns the names that a task's labels go by, in GLUE's order.
const fn label_names(task: Task) -> &'static [&'static str] {
    match task {
        Task::Sst2 => &["negative", "positive"],
        Task::Mrpc | Task::Squad | Task::Squad2 => &["not_equivalent", "equivalent"],
        Task::Mnli => &["entailment", "neutral", "contradiction"],
    }
}

/// Returns the index that the model has for every label of the task.
///
/// A model that names its labels like the task is matched by name, in any order; any
/// other must have as many labels as the task and is taken to have them in GLUE's order.
fn model_labels(task: Task, labels: &[String]) -> Result<Vec<usize>, TaskError> {
    let names = label_names(task);
    let by_name: Option<Vec<usize>> = names
        .iter()
        .map(|name| labels.iter().position(|l| l.eq_ignore_ascii_case(name)))
        .collect();
    match by_name {
        Some(indices) => Ok(indices),
        None if labels.len() == names.len() => Ok((0..names.len()).collect()),
        None => {
            let needs = format!("a model with {} labels, not {}", names.len(), labels.len());
            Err(TaskError::Head {
                task: task.name(),
                needs,
            })
        }
    }
}

/// Returns the index that the model has for the label that F1 is about: GLUE's label 1.
pub(crate) fn positive_label(task: Task, labels: &[String]) -> usize {
    model_labels(task, labels).map_or(1, |indices| indices[1])
}

pub(super) fn read(task: Task, path: &Path, labels: &[String]) -> Result<Vec<Example>, TaskError> {
    let indices = model_labels(task, labels)?;
    let bytes = std::fs::read(path).map_err(|source| TaskError::File {
        path: path.to_owned(),
        source,
    })?;
    let columns = columns(task);
    let mut examples = Vec::new();
    // The first line is a header.
    for (number, line) in bytes.split(|b| *b == b'\n').enumerate().skip(1) {
        let failed = |reason: String| TaskError::Line {
            path: path.to_owned(),
            line: number + 1,
            reason,
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let line = std::str::from_utf8(line).map_err(|_| failed("it is not UTF-8".into()))?;
        let fields: Vec<&str> = line.split('\t').collect();
        if fields.len() != columns.count {
            let reason = format!("{} columns where {} belong", fields.len(), columns.count);
            return Err(failed(reason));
        }
        let label = fields[columns.label].trim();
        let known = label_names(task)
            .iter()
            .position(|name| name.eq_ignore_ascii_case(label))
            .or_else(|| label.parse().ok())
            .and_then(|i: usize| indices.get(i).copied())
            .ok_or_else(|| failed(format!("\"{label}\" is not a label of {}", task.name())))?;
        let text = |column: usize| {
            let text = fields[column];
            if text.trim().is_empty() {
                return Err(failed(format!(
                    "the text in column {} is empty",
                    column + 1
                )));
            }
            Ok(text.to_owned())
        };
        examples.push(Example {
            first: text(columns.first)?,
            second: columns.second.map(text).transpose()?,
            gold: Gold::Label(known),
        });
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn parse(task: Task, text: &[u8], labels: &[&str]) -> Result<Vec<Example>, TaskError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.tsv");
        std::fs::write(&path, text).unwrap();
        read(task, &path, &names(labels))
    }

    #[test]
    fn reads_every_layout() {
        let sst2 = b"sentence\tlabel\n\"a \"quoted\" one \t1\r\nbad\t0\n\n";
        let examples = parse(Task::Sst2, sst2, &["NEGATIVE", "POSITIVE"]).unwrap();
        assert_eq!(examples.len(), 2);
        assert_eq!(examples[0].first, "\"a \"quoted\" one ");
        assert!(matches!(examples[0].gold, Gold::Label(1)));

        let mnli = b"premise\thypothesis\tlabel\np\th\tneutral\n";
        let labels = ["contradiction", "entailment", "neutral"];
        let examples = parse(Task::Mnli, mnli, &labels).unwrap();
        assert!(matches!(examples[0].gold, Gold::Label(2)));
        assert_eq!(examples[0].second.as_deref(), Some("h"));
        let unnamed = parse(Task::Mnli, mnli, &["LABEL_0", "LABEL_1", "LABEL_2"]).unwrap();
        assert!(matches!(unnamed[0].gold, Gold::Label(1)));

        let mrpc = b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t2\t3\tone\ttwo\n";
        let examples = parse(Task::Mrpc, mrpc, &["LABEL_0", "LABEL_1"]).unwrap();
        assert_eq!(
            (examples[0].first.as_str(), examples[0].second.as_deref()),
            ("one", Some("two"))
        );
    }

    #[test]
    fn names_the_line_at_fault() {
        let fault = |text: &[u8]| {
            let result = parse(Task::Sst2, text, &["negative", "positive"]);
            result.err().map(|e| e.to_string()).unwrap_or_default()
        };
        assert!(fault(b"h\tl\ngood\t1\nno label\n").contains("line 3: 1 columns where 2 belong"));
        assert!(fault(b"h\tl\ngood\t7\n").contains("line 2: \"7\" is not a label of sst2"));
        assert!(fault(b"h\tl\n  \t1\n").contains("line 2: the text in column 1 is empty"));
        assert!(fault(b"h\tl\n\xff\xfe\t1\n").contains("line 2: it is not UTF-8"));
    }

    #[test]
    fn the_positive_label_is_the_tasks_own() {
        let swapped = names(&["equivalent", "not_equivalent"]);
        assert_eq!(positive_label(Task::Mrpc, &swapped), 0);
        assert_eq!(
            positive_label(Task::Mrpc, &names(&["LABEL_0", "LABEL_1"])),
            1
        );
    }

    #[test]
    fn label_counts_must_match() {
        let error = parse(Task::Mnli, b"h\nx", &["negative", "positive"])
            .err()
            .unwrap();
        assert!(error.to_string().contains("3 labels, not 2"), "{error}");
    }
}
