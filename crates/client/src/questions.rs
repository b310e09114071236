//! What a client may ask besides the label of a text: answers, labels of tokens, embeddings.
//!
//! What the model gives out is made into a result here, where the text is: the server learns
//! neither which piece of a context answers, nor whether any does, nor how long a text is within
//! its padded length.

use super::outcome::{Cost, argmax, probabilities};
use super::span::{self, ContextAnswer};
use super::tags::{self, Aggregate, Entity};
use super::{Client, odd_answer};
use primer_engine::client::Answer;
use primer_plan::shape::{Head, Pooling};
use primer_service::ServiceError;
use primer_text::{Input, TextError, Truncate};

/// How a question is answered.
#[derive(Debug, Clone, Copy)]
pub struct AnswerOptions {
    /// Tokens that neighbouring windows of a long context share.
    pub stride: usize,
    /// There is no answer if the score of there being none is higher by more than this.
    pub null_threshold: f64,
}

impl Default for AnswerOptions {
    fn default() -> Self {
        Self {
            stride: 64,
            null_threshold: 0.0,
        }
    }
}

/// A piece of a context that answers a question.
#[derive(Debug, Clone)]
pub struct Extract {
    /// The piece; empty if the model says that there is no answer.
    pub answer: String,
    /// The probability of its start times that of its end; of there being none, if it is empty.
    pub score: f64,
    /// Where it begins in the context, in characters.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// How many overlapping pieces the context was cut into, each an inference of its own.
    pub windows: usize,
    /// As [`super::Classification::in_range`], of all windows.
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

/// The labels of a text's tokens.
#[derive(Debug, Clone)]
pub struct Tagging {
    /// What was found, in the order of the text.
    pub entities: Vec<Entity>,
    /// Tokens that were cut off because the text was too long.
    pub removed: usize,
    /// As [`super::Classification::in_range`].
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

/// A text as a vector.
#[derive(Debug, Clone)]
pub struct Embedding {
    /// The vector, pooled and normalised as the model says.
    pub vector: Vec<f64>,
    /// Tokens that were cut off because the text was too long.
    pub removed: usize,
    /// As [`super::Classification::in_range`].
    pub in_range: Option<bool>,
    /// What it cost.
    pub cost: Cost,
}

impl Client {
    /// Finds the piece of a context that answers a question.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model does not answer questions, or the question
    /// leaves no room for its context.
    pub fn answer(&mut self, question: &str, context: &str) -> Result<Extract, ServiceError> {
        self.answer_with(question, context, AnswerOptions::default())
    }

    /// Does the same with options. A context that is too long is cut into overlapping windows; the
    /// server learns how many there are.
    ///
    /// # Errors
    /// As [`Self::answer`].
    pub fn answer_with(
        &mut self,
        question: &str,
        context: &str,
        options: AnswerOptions,
    ) -> Result<Extract, ServiceError> {
        if self.card.head != Head::Span {
            return Err(self.wrong_head("a span head (as BertForQuestionAnswering has)"));
        }
        let limit = self.card.max_tokens();
        let windows = self
            .text
            .windows(question, context, limit, options.stride)?;
        for window in &windows {
            self.check(window)?;
        }
        let (answers, cost) = self.infer_all(&windows)?;
        let scores: Option<Vec<Vec<(f64, f64)>>> = answers.iter().map(pairs).collect();
        let scores = scores.ok_or_else(odd_answer)?;
        let all = scores.iter().zip(&windows);
        let all = all.map(|(scores, window)| (&scores[..], &window.second[..]));
        let found = ContextAnswer::over(all).ok_or(TextError::Empty)?;
        let told: Option<Vec<bool>> = answers.iter().map(|a| a.in_range).collect();
        let (answer, score, start, end) = match found.answer(options.null_threshold) {
            Some(best) => {
                let piece = span::characters(context, (best.start, best.end));
                (piece.to_owned(), best.probability, best.start, best.end)
            }
            None => (String::new(), found.null_probability, 0, 0),
        };
        Ok(Extract {
            answer,
            score,
            start,
            end,
            windows: windows.len(),
            in_range: told.map(|told| told.iter().all(|in_range| *in_range)),
            cost,
        })
    }

    /// Finds the labels of a text's tokens.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model has no labels for tokens.
    pub fn tag(&mut self, text: &str, aggregate: Aggregate) -> Result<Tagging, ServiceError> {
        let Head::Tokens { labels } = &self.card.head else {
            return Err(self.wrong_head("labels of tokens (as BertForTokenClassification has)"));
        };
        let labels = labels.clone();
        let limit = self.card.max_tokens();
        let (input, places) = self.text.encode_with_places(text, limit)?;
        self.check(&input)?;
        let (answer, cost) = self.infer(&input)?;
        let found = found(&answer, &labels).ok_or_else(odd_answer)?;
        let how = (aggregate, &self.text);
        Ok(Tagging {
            entities: tags::entities(text, (&input, &places), &labels, &found, how),
            removed: input.removed,
            in_range: answer.in_range,
            cost,
        })
    }

    /// Computes a text as a vector.
    ///
    /// # Errors
    /// [`ServiceError`]: among others if the model is no sentence encoder.
    pub fn embed(&mut self, text: &str) -> Result<Embedding, ServiceError> {
        let Head::Sentence {
            pooling,
            normalised,
        } = self.card.head
        else {
            let needs = "sentence embeddings (a directory with modules.json and a pooling)";
            return Err(self.wrong_head(needs));
        };
        let input = self.encode(text, None, Truncate::LongestFirst)?;
        let (answer, cost) = self.infer(&input)?;
        let pooled = answer.reals.first().filter(|m| m.rows() == 1);
        let pooled = pooled.ok_or_else(odd_answer)?.row(0);
        let length = match pooling {
            // The sum over all tokens, of which only this side knows the number.
            Pooling::Mean => input.length as f64,
            Pooling::First => 1.0,
        };
        let mut vector: Vec<f64> = pooled.iter().map(|v| v / length).collect();
        if normalised {
            let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|v| *v /= norm.max(1e-12));
        }
        Ok(Embedding {
            vector,
            removed: input.removed,
            in_range: answer.in_range,
            cost,
        })
    }

    /// Answers several inputs of one call. All are padded alike, and what is not prepared yet is
    /// prepared together.
    fn infer_all(&mut self, inputs: &[Input]) -> Result<(Vec<Answer>, Cost), ServiceError> {
        let longest = inputs.iter().map(Input::tokens).max().unwrap_or(0);
        let tokens = self.bucket(longest)?;
        let mut cost = Cost::default();
        let ready = self.fitting(tokens)?.len();
        let missing = inputs.len().saturating_sub(ready);
        if missing > 1 {
            let prepared = self.prepare_many(tokens, missing)?;
            cost.offline_s += prepared.seconds;
            cost.bytes += prepared.bytes;
        }
        let mut answers = Vec::with_capacity(inputs.len());
        let mut ahead = missing == 0;
        for input in inputs {
            let mut padded = input.clone();
            padded.pad_to(tokens, self.text.padding());
            let (answer, one) = self.infer(&padded)?;
            cost.offline_s += one.offline_s;
            cost.online_s += one.online_s;
            cost.bytes += one.bytes;
            cost.tokens = one.tokens;
            ahead &= one.prepared_ahead;
            answers.push(answer);
        }
        cost.prepared_ahead = ahead;
        Ok((answers, cost))
    }
}

/// Finds the label of each token, and its probability unless only labels are revealed. A peer
/// decides what the plan gives out, so nothing here is taken for granted.
fn found(answer: &Answer, labels: &[String]) -> Option<Vec<(usize, Option<f64>)>> {
    if !answer.labels.is_empty() {
        let known = answer.labels.iter().all(|label| *label < labels.len());
        return known.then(|| answer.labels.iter().map(|label| (*label, None)).collect());
    }
    let scores = answer.reals.first().filter(|m| m.cols() == labels.len())?;
    let rows = (0..scores.rows()).map(|row| scores.row(row));
    let best = rows.map(|row| {
        let label = argmax(row);
        (label, Some(probabilities(row)[label]))
    });
    Some(best.collect())
}

/// Reads start and end scores of all tokens.
fn pairs(answer: &Answer) -> Option<Vec<(f64, f64)>> {
    let scores = answer.reals.first().filter(|m| m.cols() == 2)?;
    let rows = (0..scores.rows()).map(|row| scores.row(row));
    Some(rows.map(|row| (row[0], row[1])).collect())
}
