//! Data sets and their measures.

mod classification;
mod squad;
mod tsv;

pub use classification::{Scores, accuracy_and_f1};
pub use squad::exact_and_f1;
pub(crate) use tsv::positive_label;

use crate::choice::Choice;
use primer_plan::shape::{Head, Problem};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The data sets of the paper's evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Sentiment of single sentences, GLUE's SST-2.
    Sst2,
    /// Paraphrases, GLUE's MRPC.
    Mrpc,
    /// Natural-language inference on pairs, GLUE's MNLI.
    Mnli,
    /// Extractive question answering, SQuAD 1.1.
    Squad,
    /// The same with questions that have no answer, SQuAD 2.0.
    Squad2,
}

impl Task {
    /// Tells whether questions are answered with a piece of a text.
    pub const fn is_extractive(self) -> bool {
        matches!(self, Self::Squad | Self::Squad2)
    }
}

impl Choice for Task {
    const ALL: &'static [Self] = &[
        Self::Sst2,
        Self::Mrpc,
        Self::Mnli,
        Self::Squad,
        Self::Squad2,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Sst2 => "sst2",
            Self::Mrpc => "mrpc",
            Self::Mnli => "mnli",
            Self::Squad => "squad",
            Self::Squad2 => "squad2",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::Sst2 => "Sentiment of single sentences, GLUE's SST-2",
            Self::Mrpc => "Paraphrases, GLUE's MRPC",
            Self::Mnli => "Natural-language inference on pairs, GLUE's MNLI",
            Self::Squad => "Extractive question answering, SQuAD 1.1",
            Self::Squad2 => "The same with questions that have no answer, SQuAD 2.0",
        }
    }
}

/// Why data could not be read.
#[derive(Debug, Error)]
pub enum TaskError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A line is not what the task's format says.
    #[error("{path}, line {line}: {reason}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The file has no examples.
    #[error("{0} has no examples")]
    NoExamples(PathBuf),
    /// The file is not SQuAD's JSON.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Questions without an answer where every question has one.
    #[error("{path}: question {id} has no answer; such questions are for --task squad2")]
    NoAnswer {
        /// The file.
        path: PathBuf,
        /// The question.
        id: String,
    },
    /// The model cannot do the task.
    #[error("task {task} needs {needs}")]
    Head {
        /// The task.
        task: &'static str,
        /// What it needs.
        needs: String,
    },
}

/// One example of a task.
pub struct Example {
    /// The text, or the question.
    pub first: String,
    /// The second text, or the context.
    pub second: Option<String>,
    /// What is right.
    pub gold: Gold,
}

/// The right answer.
pub enum Gold {
    /// The index of a label.
    Label(usize),
    /// An identifier and the accepted answers; an empty one if there is none.
    Answers {
        /// SQuAD's identifier of the question.
        id: String,
        /// Any of them is right.
        texts: Vec<String>,
    },
}

/// Reads the examples of a task for a model with a given head.
///
/// # Errors
/// [`TaskError`] naming the file and line at fault, or what the model lacks.
pub fn read(task: Task, path: &Path, head: &Head) -> Result<Vec<Example>, TaskError> {
    let examples = match (task, head) {
        (Task::Squad | Task::Squad2, Head::Span) => squad::read(task, path)?,
        (Task::Squad | Task::Squad2, other) => {
            let needs = format!(
                "a model with a span head (as BertForQuestionAnswering has), and this one has {}",
                other.about()
            );
            return Err(TaskError::Head {
                task: task.name(),
                needs,
            });
        }
        (
            _,
            Head::Classify {
                labels,
                problem: Problem::SingleLabel,
                ..
            },
        ) => tsv::read(task, path, labels)?,
        (_, other) => {
            let needs = format!(
                "a model with labels, one of which is right (as BertForSequenceClassification \
                 has), and this one has {}",
                other.about()
            );
            return Err(TaskError::Head {
                task: task.name(),
                needs,
            });
        }
    };
    if examples.is_empty() {
        Err(TaskError::NoExamples(path.to_owned()))
    } else {
        Ok(examples)
    }
}
