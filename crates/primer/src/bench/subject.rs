//! The model that is measured: a shape with random weights, or one from a directory.

use super::{Request, shapes};
use crate::source::Model;
use anyhow::{Result, ensure};
use primer_model::fold::FloatWeights;
use primer_model::synthetic;
use primer_model::text::TextEncoder;
use std::path::Path;

/// A model and how many layers the whole of it has.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) weights: FloatWeights,
    pub(super) text: TextEncoder,
    pub(super) calibration: String,
    pub(super) layers: usize,
}

/// Words enough to calibrate random weights.
const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nthe\nof\nand\nfilm\nstory\ngood\nbad";
const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";

impl Subject {
    /// The first layers of a model as if it had no more.
    pub(super) fn whole(request: &Request) -> Result<Self> {
        let mut subject = Self::new(request)?;
        subject.layers = subject.weights.shape.layers;
        Ok(subject)
    }

    pub(super) fn new(request: &Request) -> Result<Self> {
        let subject = Self::load(request)?;
        let shape = &subject.weights.shape;
        ensure!(
            (1..=shape.max_tokens()).contains(&request.tokens),
            "{} takes 1 to {} tokens, not {}",
            subject.name,
            shape.max_tokens(),
            request.tokens
        );
        Ok(subject)
    }

    fn load(request: &Request) -> Result<Self> {
        let dir = Path::new(&request.model);
        if !dir.is_dir() {
            let shape = shapes::shape(&request.model, request.layers)?;
            return Ok(Self {
                name: request.model.clone(),
                weights: FloatWeights::fold(&shape, &synthetic::checkpoint(&shape, &[3; 16])),
                text: TextEncoder::from_vocabulary(WORDS.as_bytes(), None)?,
                calibration: TEXT.to_owned(),
                layers: shapes::layers(&request.model).unwrap_or(shape.layers),
            });
        }
        ensure!(
            request.layers.is_none(),
            "--layers is for the shapes with random weights; {} is measured whole",
            request.model
        );
        let model = Model::load(Some(dir))?;
        Ok(Self {
            name: model.short_name(),
            layers: model.shape.layers,
            weights: model.weights,
            text: model.text,
            calibration: crate::source::CALIBRATION.to_owned(),
        })
    }
}
