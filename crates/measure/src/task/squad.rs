//! SQuAD 1.1 and 2.0: their files and their official measures.

use super::{Example, Gold, Scores, Task, TaskError};
use serde::Deserialize;
use std::collections::HashMap;
use std::path::Path;

#[derive(Deserialize)]
struct File {
    data: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    paragraphs: Vec<Paragraph>,
}

#[derive(Deserialize)]
struct Paragraph {
    context: String,
    qas: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    id: String,
    question: String,
    answers: Vec<SquadAnswer>,
}

#[derive(Deserialize)]
struct SquadAnswer {
    text: String,
}

pub(super) fn read(task: Task, path: &Path) -> Result<Vec<Example>, TaskError> {
    let bytes = std::fs::read(path).map_err(|source| TaskError::File {
        path: path.to_owned(),
        source,
    })?;
    let file: File = serde_json::from_slice(&bytes).map_err(|source| TaskError::Json {
        path: path.to_owned(),
        source,
    })?;
    let mut examples = Vec::new();
    for paragraph in file.data.into_iter().flat_map(|a| a.paragraphs) {
        for question in paragraph.qas {
            let mut texts: Vec<String> = question.answers.into_iter().map(|a| a.text).collect();
            if task == Task::Squad && texts.is_empty() {
                return Err(TaskError::NoAnswer {
                    path: path.to_owned(),
                    id: question.id,
                });
            }
            if task == Task::Squad2 {
                texts.retain(|text| !normalise(text).is_empty());
                if texts.is_empty() {
                    // The right answer is none.
                    texts.push(String::new());
                }
            }
            examples.push(Example {
                first: question.question,
                second: Some(paragraph.context.clone()),
                gold: Gold::Answers {
                    id: question.id,
                    texts,
                },
            });
        }
    }
    Ok(examples)
}

/// Returns the measures of answers, as means over all: exact matches after normalising, and the
/// overlap of words.
///
/// # Panics
/// If there are no examples, or not as many as answers.
pub fn exact_and_f1(answers: &[String], examples: &[Example]) -> Scores {
    assert!(!examples.is_empty() && answers.len() == examples.len());
    let mean = |measure: fn(&str, &[String]) -> f64| {
        let each = answers.iter().zip(examples).map(|(a, e)| match &e.gold {
            Gold::Answers { texts, .. } => measure(a, texts),
            Gold::Label(_) => 0.0,
        });
        each.sum::<f64>() / examples.len() as f64
    };
    Scores {
        accuracy: mean(exact_match),
        f1: mean(f1),
    }
}

/// Leaves lower case without punctuation (ASCII's), articles and double spaces, as the official
/// script does.
fn normalise(text: &str) -> String {
    let lowered: String = text
        .to_lowercase()
        .chars()
        .filter(|c| !c.is_ascii_punctuation())
        .collect();
    // Articles are whole words, and words end at anything that is not a letter, digit or
    // underscore: "the–end" loses its article too.
    let mut kept = String::with_capacity(lowered.len());
    let mut word = String::new();
    for c in lowered.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !matches!(word.as_str(), "a" | "an" | "the") {
            kept.push_str(&word);
        } else {
            kept.push(' ');
        }
        word.clear();
        kept.push(c);
    }
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns 1 if an answer equals any of the accepted ones, 0 otherwise.
fn exact_match(answer: &str, accepted: &[String]) -> f64 {
    let answer = normalise(answer);
    f64::from(u8::from(accepted.iter().any(|a| normalise(a) == answer)))
}

/// Returns the best F1 of an answer's words with those of an accepted one.
fn f1(answer: &str, accepted: &[String]) -> f64 {
    accepted
        .iter()
        .map(|a| f1_of(answer, a))
        .fold(0.0, f64::max)
}

fn f1_of(answer: &str, accepted: &str) -> f64 {
    let (answer, accepted) = (normalise(answer), normalise(accepted));
    if answer.is_empty() || accepted.is_empty() {
        // Right only if both say that there is none.
        return f64::from(u8::from(answer == accepted));
    }
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for word in accepted.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    let mut same = 0;
    for word in answer.split_whitespace() {
        let count = counts.entry(word).or_default();
        if *count > 0 {
            *count -= 1;
            same += 1;
        }
    }
    if same == 0 {
        return 0.0;
    }
    let words = answer.split_whitespace().count() + accepted.split_whitespace().count();
    2.0 * f64::from(same) / words as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn as_the_official_script_computes_them() {
        let gold = accepted(&["the Denver Broncos", "Denver"]);
        assert_eq!(exact_match("Denver Broncos!", &gold), 1.0);
        assert_eq!(exact_match("Broncos", &gold), 0.0);
        // 1 common word of 1 and 2.
        assert!((f1("Broncos", &gold) - 2.0 / 3.0).abs() < 1e-12);
        // Articles vanish, repeated words count once per repetition.
        assert_eq!(f1("an a the", &gold), 0.0);
        assert!((f1("denver denver", &accepted(&["denver"])) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(f1("", &gold), 0.0);
        // No answer is right where there is none, and nothing else is.
        let none = accepted(&[""]);
        assert_eq!((exact_match("", &none), f1("", &none)), (1.0, 1.0));
        assert_eq!(
            (exact_match("Denver", &none), f1("Denver", &none)),
            (0.0, 0.0)
        );
        let example = |texts: &[&str]| Example {
            first: String::new(),
            second: None,
            gold: Gold::Answers {
                id: String::new(),
                texts: accepted(texts),
            },
        };
        let scores = exact_and_f1(
            &["Broncos".to_owned(), "denver".to_owned()],
            &[example(&["Denver Broncos"]), example(&["Denver"])],
        );
        assert!((scores.accuracy - 0.5).abs() < 1e-12);
        assert!((scores.f1 - (2.0 / 3.0 + 1.0) / 2.0).abs() < 1e-12);
        assert_eq!(normalise("The–end, of  a_b an"), "–end of ab");
    }

    #[test]
    fn questions_without_an_answer_are_for_the_second_version() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.json");
        let data = r#"{"data": [{"paragraphs": [{"context": "In Paris.", "qas": [
            {"id": "1", "question": "Where?", "answers": [{"text": "Paris"}, {"text": "the"}]},
            {"id": "2", "question": "When?", "answers": [], "is_impossible": true}]}]}]}"#;
        std::fs::write(&path, data).unwrap();
        let examples = read(Task::Squad2, &path).unwrap();
        let texts = |e: &Example| match &e.gold {
            Gold::Answers { texts, .. } => texts.clone(),
            Gold::Label(_) => panic!("a label"),
        };
        assert_eq!(texts(&examples[0]), ["Paris"]);
        assert_eq!(texts(&examples[1]), [""]);
        let error = read(Task::Squad, &path).err().unwrap().to_string();
        assert!(
            error.contains("question 2") && error.contains("squad2"),
            "{error}"
        );
    }
}
