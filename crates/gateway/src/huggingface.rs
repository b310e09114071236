//! Requests and answers in the shapes of Hugging Face's inference API.
//!
//! | task | `inputs` | answer |
//! |---|---|---|
//! | text-classification | a text, or `{"text", "text_pair"}` | `[[{"label", "score"}, …]]` |
//! | question-answering | `{"question", "context"}` | `{"answer", "score", "start", "end"}` |
//! | token-classification | a text | `[{"entity", "score", "index", "word", "start", "end"}, …]` |
//! | feature-extraction | a text | the sentence's embedding, `[…]` |
//!
//! A list of inputs gives a list of answers. `parameters` takes `top_k` for labels and
//! `aggregation_strategy` (`none`, `simple`) for tokens; anything else is refused by name, since
//! ignoring it would change an answer silently. `options` of the public service (`wait_for_model`,
//! `use_cache`) have no effect here and are ignored; `{"meta": true}` asks for `{"output": …,
//! "meta": […]}`: what every answer cost, whether its values stayed in range, and what the server
//! saw. An answer that is an object has its `meta` inside in any case.

use crate::error::Failure;
use crate::worker_pool::{Answered, Question, QuestionResult};
use primer::client::tags::Aggregate;
use primer::service::message::Card;
use primer_plan::shape::Head;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Returns the name of the pipeline that does what a model does.
pub(crate) fn task(head: &Head) -> &'static str {
    match head {
        Head::Classify { .. } => "text-classification",
        Head::Span => "question-answering",
        Head::Tokens { .. } => "token-classification",
        Head::Sentence { .. } | Head::Encoder { .. } => "feature-extraction",
    }
}

#[derive(Deserialize)]
struct Body {
    inputs: Value,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    options: RequestOptions,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parameters {
    top_k: Option<usize>,
    aggregation_strategy: Option<Strategy>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Strategy {
    None,
    Simple,
}

/// Unknown ones are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RequestOptions {
    meta: bool,
}

/// What a request asks for, and how its answer is to look.
pub(crate) struct Request {
    list: bool,
    top_k: Option<usize>,
    meta: bool,
}

impl Request {
    /// Reads a request for a model.
    pub(crate) fn read(body: &[u8], card: &Card) -> Result<(Self, Vec<Question>), Failure> {
        let why = |error| {
            let like = r#"{"inputs": "a text"}"#;
            Failure::bad(format!("the body is not a request like {like}: {error}"))
        };
        let body: Body = serde_json::from_slice(body).map_err(why)?;
        let (list, inputs) = match body.inputs {
            Value::Array(inputs) if inputs.is_empty() => {
                return Err(Failure::bad("\"inputs\" is an empty list"));
            }
            Value::Array(inputs) => (true, inputs),
            one => (false, vec![one]),
        };
        if body.parameters.top_k == Some(0) {
            return Err(Failure::bad("\"top_k\" is zero"));
        }
        let takes = |name, given: bool, fits: bool| match given && !fits {
            true => Err(Failure::bad(format!("this task does not use \"{name}\""))),
            false => Ok(()),
        };
        let (labels, tokens) = (
            matches!(card.head, Head::Classify { .. }),
            matches!(card.head, Head::Tokens { .. }),
        );
        let strategy = body.parameters.aggregation_strategy;
        takes("top_k", body.parameters.top_k.is_some(), labels)?;
        takes("aggregation_strategy", strategy.is_some(), tokens)?;
        let aggregate = match strategy {
            Some(Strategy::Simple) => Aggregate::Simple,
            Some(Strategy::None) | None => Aggregate::None,
        };
        let read = |input| question(input, &card.head, aggregate);
        let questions = inputs.into_iter().map(read).collect::<Result<_, _>>()?;
        let request = Self {
            list,
            top_k: body.parameters.top_k,
            meta: body.options.meta,
        };
        Ok((request, questions))
    }

    /// Writes the answers.
    pub(crate) fn answer(&self, card: &Card, answers: &[Answered]) -> Value {
        let mut outputs: Vec<Value> = answers.iter().map(|a| self.one(card, a)).collect();
        // A single text's labels are wrapped in a list of one, as that task's API has it.
        let nested = matches!(card.head, Head::Classify { .. });
        let output = match self.list || nested {
            true => Value::Array(outputs),
            false => outputs.pop().unwrap_or_default(),
        };
        if !self.meta {
            return output;
        }
        let meta: Vec<Value> = answers.iter().map(meta).collect();
        json!({ "output": output, "meta": meta })
    }

    fn one(&self, card: &Card, answered: &Answered) -> Value {
        match (&answered.found, &card.head) {
            (QuestionResult::Labels(found), Head::Classify { labels, .. })
                if found.score.is_some() =>
            {
                let scores = &found.scores;
                let mut order: Vec<usize> = (0..scores.len().min(labels.len())).collect();
                order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                order.truncate(self.top_k.unwrap_or(usize::MAX));
                let entry = |&i: &usize| json!({"label": labels[i], "score": scores[i]});
                order.iter().map(entry).collect()
            }
            // The server reveals the best label and nothing about its score.
            (QuestionResult::Labels(found), _) => json!([{"label": found.label, "score": null}]),
            (QuestionResult::Span(found), _) => json!({
                "answer": found.answer, "score": found.score,
                "start": found.start, "end": found.end, "meta": meta(answered),
            }),
            (QuestionResult::Tags(found), _) => json!(found.entities),
            (QuestionResult::Vector(found), _) => json!(found.vector),
        }
    }
}

/// Describes what an answer cost, how far it can be trusted, and what the server saw of the
/// question.
pub(crate) fn meta(answered: &Answered) -> Value {
    let mut meta = match serde_json::to_value(answered.found.cost()) {
        Ok(Value::Object(cost)) => cost,
        _ => Map::new(),
    };
    meta.insert("in_range".into(), json!(answered.found.in_range()));
    meta.insert("truncated_tokens".into(), json!(answered.found.removed()));
    // In words of ten hexadecimal digits.
    let word = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let shown = answered.shown.chunks(5).map(word);
    meta.insert("server_saw".into(), shown.collect::<Vec<String>>().into());
    Value::Object(meta)
}

fn question(input: Value, head: &Head, aggregate: Aggregate) -> Result<Question, Failure> {
    match (head, input) {
        (Head::Classify { .. }, Value::String(text)) => Ok(Question::Classify { text, pair: None }),
        (Head::Classify { .. }, Value::Object(fields)) => {
            let mut fields = Fields { fields, head };
            let text = fields.take("text")?;
            let pair = fields.take_if_there("text_pair")?;
            fields.no_more()?;
            Ok(Question::Classify { text, pair })
        }
        (Head::Span, Value::Object(fields)) => {
            let mut fields = Fields { fields, head };
            let (question, context) = (fields.take("question")?, fields.take("context")?);
            fields.no_more()?;
            Ok(Question::Answer { question, context })
        }
        (Head::Tokens { .. }, Value::String(text)) => Ok(Question::Tag { text, aggregate }),
        (Head::Sentence { .. }, Value::String(text)) => Ok(Question::Embed { text }),
        (Head::Encoder { .. }, _) => Err(Failure::bad(
            "the model has no head and no pooling, so there is no task to serve",
        )),
        (head, _) => Err(wrong_input(head)),
    }
}

fn wrong_input(head: &Head) -> Failure {
    let takes = match head {
        Head::Classify { .. } => "a text, or {\"text\": …, \"text_pair\": …}",
        Head::Span => "{\"question\": …, \"context\": …}",
        _ => "a text",
    };
    Failure::bad(format!(
        "the model does {}: an input is {takes}",
        task(head)
    ))
}

/// The fields of an input.
struct Fields<'h> {
    fields: Map<String, Value>,
    head: &'h Head,
}

impl Fields<'_> {
    fn take(&mut self, name: &str) -> Result<String, Failure> {
        let taken = self.take_if_there(name)?;
        taken.ok_or_else(|| wrong_input(self.head))
    }

    fn take_if_there(&mut self, name: &str) -> Result<Option<String>, Failure> {
        match self.fields.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(Failure::bad(format!("\"{name}\" is not a text"))),
        }
    }

    fn no_more(self) -> Result<(), Failure> {
        match self.fields.is_empty() {
            true => Ok(()),
            false => Err(wrong_input(self.head)),
        }
    }
}
