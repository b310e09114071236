//! Results as dictionaries; `primer/results.py` makes dataclasses of them.

use primer::client::tags::Entity;
use primer::service::message::Card;
use primer::{Classification, Cost, Embedding, Extract, Reveal, Tagging};
use primer_plan::shape::Head;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Describes what a server offers.
pub(crate) fn card<'py>(py: Python<'py>, card: &Card) -> PyResult<Bound<'py, PyDict>> {
    let task = match &card.head {
        Head::Classify { .. } => "text-classification",
        Head::Span => "question-answering",
        Head::Tokens { .. } => "token-classification",
        Head::Sentence { .. } => "feature-extraction",
        // This package offers nothing for it; its pipelines say so.
        Head::Encoder { .. } => "other",
    };
    let facts = PyDict::new(py);
    facts.set_item("model", &card.model)?;
    facts.set_item("family", card.family.name())?;
    facts.set_item("task", task)?;
    facts.set_item("labels", card.head.labels().unwrap_or_default())?;
    facts.set_item("lengths", &card.buckets)?;
    facts.set_item("scheme", primer::SCHEME_NAME)?;
    facts.set_item("reveals_scores", card.reveal == Reveal::Outputs)?;
    facts.set_item("answer_bits", &card.answer_bits)?;
    Ok(facts)
}

/// Describes the label of a text.
pub(crate) fn classification<'py>(
    py: Python<'py>,
    found: &Classification,
) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("label", &found.label)?;
    facts.set_item("index", found.index)?;
    facts.set_item("score", found.score)?;
    facts.set_item("scores", &found.scores)?;
    facts.set_item("logits", &found.logits)?;
    facts.set_item("removed", found.removed)?;
    rest(&facts, found.in_range, &found.cost)?;
    Ok(facts)
}

/// Describes the answer to a question.
pub(crate) fn extract<'py>(py: Python<'py>, found: &Extract) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("answer", &found.answer)?;
    facts.set_item("score", found.score)?;
    facts.set_item("start", found.start)?;
    facts.set_item("end", found.end)?;
    facts.set_item("windows", found.windows)?;
    rest(&facts, found.in_range, &found.cost)?;
    Ok(facts)
}

/// Describes the labels of a text's tokens.
pub(crate) fn tagging<'py>(py: Python<'py>, found: &Tagging) -> PyResult<Bound<'py, PyDict>> {
    let entities = found.entities.iter().map(|one| entity(py, one));
    let entities: Vec<_> = entities.collect::<PyResult<_>>()?;
    let facts = PyDict::new(py);
    facts.set_item("entities", entities)?;
    facts.set_item("removed", found.removed)?;
    rest(&facts, found.in_range, &found.cost)?;
    Ok(facts)
}

fn entity<'py>(py: Python<'py>, found: &Entity) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("label", &found.label)?;
    facts.set_item("score", found.score)?;
    facts.set_item("index", found.index)?;
    facts.set_item("word", &found.word)?;
    facts.set_item("start", found.start)?;
    facts.set_item("end", found.end)?;
    Ok(facts)
}

/// Describes a text as a vector.
pub(crate) fn embedding<'py>(py: Python<'py>, found: &Embedding) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("vector", &found.vector)?;
    facts.set_item("removed", found.removed)?;
    rest(&facts, found.in_range, &found.cost)?;
    Ok(facts)
}

/// Adds what every result has.
fn rest(facts: &Bound<'_, PyDict>, in_range: Option<bool>, cost: &Cost) -> PyResult<()> {
    facts.set_item("in_range", in_range)?;
    let spent = PyDict::new(facts.py());
    spent.set_item("offline_seconds", cost.offline_s)?;
    spent.set_item("online_seconds", cost.online_s)?;
    spent.set_item(
        "offline_bytes",
        cost.bytes.offline_up + cost.bytes.offline_down,
    )?;
    spent.set_item(
        "online_bytes",
        cost.bytes.online_up + cost.bytes.online_down,
    )?;
    spent.set_item("tokens", cost.tokens)?;
    spent.set_item("prepared_ahead", cost.prepared_ahead)?;
    facts.set_item("cost", spent)
}
