//! The model that is measured: a shape with random weights, or one from a directory.

use super::{Request, shapes};
use crate::source::Model;
use anyhow::{Context, Result, ensure};
use primer_model::calibrate::calibrate;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_model::text::TextEncoder;
use primer_plan::graph::Attention;
use primer_plan::plan::Plan;
use primer_plan::scales::Scales;
use primer_plan::shape::Shape;
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
    /// A shape with random weights, always the same.
    pub(super) fn synthetic(name: &str, shape: &Shape) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            weights: FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[3; 16])),
            text: TextEncoder::from_vocabulary(WORDS.as_bytes(), None)?,
            calibration: TEXT.to_owned(),
            layers: shape.layers,
        })
    }

    /// The first layers of a model as if it had no more.
    pub(super) fn whole(request: &Request) -> Result<Self> {
        let mut subject = Self::new(request)?;
        subject.layers = subject.weights.shape.layers;
        Ok(subject)
    }

    /// Layers that are left out, for each that is run.
    pub(super) fn more_layers(&self) -> f64 {
        let run = self.weights.shape.layers;
        (self.layers - run) as f64 / run as f64
    }

    /// Its integers, with scales from the calibration text.
    pub(super) fn quantise(&self, attention: Attention) -> Result<IntModel> {
        let weights = &self.weights.with_attention(attention);
        Ok(IntModel::quantise(weights, self.scales(weights)?)?)
    }

    /// Its plan, without any weight.
    pub(super) fn plan(&self, attention: Attention, tokens: usize) -> Result<Plan> {
        let weights = &self.weights.with_attention(attention);
        Ok(Plan::new(&weights.shape, tokens, self.scales(weights)?)?)
    }

    fn scales(&self, weights: &FloatWeights) -> Result<Scales> {
        calibrate(weights, &self.text, &self.calibration, |_, _| ())
            .with_context(|| format!("calibrating {}", self.name))
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
            let mut subject = Self::synthetic(&request.model, &shape)?;
            subject.layers = shapes::layers(&request.model).unwrap_or(shape.layers);
            return Ok(subject);
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
