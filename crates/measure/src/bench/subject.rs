//! The model that is measured: a shape with random weights, or one from a directory.

use super::{Request, shapes};
use crate::ensure_usage;
use anyhow::{Context, Result};
use primer::source::built_in_calibration;
use primer_model::calibrate::{Calibrated, calibrate};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::synthetic;
use primer_plan::plan::Plan;
use primer_plan::shape::Shape;
use primer_text::TextEncoder;
use std::path::Path;

/// A model and how many layers the whole of it has.
pub struct Subject {
    /// Its name without the way to it.
    pub name: String,
    /// The weights of the layers that are measured.
    pub weights: FloatWeights,
    text: TextEncoder,
    calibration: String,
    /// Layers of the whole model.
    pub layers: usize,
}

/// Words enough to calibrate random weights.
const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nthe\nof\nand\nfilm\nstory\ngood\nbad";
const TEXT: &str = "a good film and a bad story\nthe story of the film\ngood\nbad and bad";

impl Subject {
    /// Makes a shape with random weights, always the same.
    ///
    /// # Errors
    /// If the vocabulary that is built in cannot be read.
    pub fn synthetic(name: &str, shape: &Shape) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            weights: FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[3; 16])),
            text: TextEncoder::from_vocabulary(WORDS.as_bytes(), None)?,
            calibration: TEXT.to_owned(),
            layers: shape.layers,
        })
    }

    /// Loads the first layers of a model as if it had no more.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn whole(request: &Request) -> Result<Self> {
        let mut subject = Self::new(request)?;
        subject.layers = subject.weights.shape.layers;
        Ok(subject)
    }

    /// Returns the layers that are left out, for each that is run.
    pub fn more_layers(&self) -> f64 {
        let run = self.weights.shape.layers;
        (self.layers - run) as f64 / run as f64
    }

    /// Makes integers of its weights, as some design has them, with scales from the calibration
    /// text.
    ///
    /// # Errors
    /// If it cannot be calibrated.
    pub fn quantise(&self, weights: &FloatWeights) -> Result<IntModel> {
        Ok(IntModel::quantise(weights, self.calibrate(weights)?)?)
    }

    /// Makes its plan by the design of some weights, without any weight.
    ///
    /// # Errors
    /// If it cannot be calibrated, or does not take that many tokens.
    pub fn plan(&self, weights: &FloatWeights, tokens: usize) -> Result<Plan> {
        let scales = self.calibrate(weights)?.scales;
        Ok(Plan::by(weights.design(), &weights.shape, tokens, scales)?)
    }

    fn calibrate(&self, weights: &FloatWeights) -> Result<Calibrated> {
        calibrate(weights, &self.text, &self.calibration, |_, _| ())
            .with_context(|| format!("calibrating {}", self.name))
    }

    /// Loads the model of a request.
    ///
    /// # Errors
    /// If there is no such model, or it has too few layers or tokens.
    pub fn new(request: &Request) -> Result<Self> {
        let subject = Self::load(request)?;
        let shape = &subject.weights.shape;
        ensure_usage!(
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
        let files = ModelFiles::open(dir).and_then(|files| files.load());
        let LoadedModel {
            mut shape,
            checkpoint,
            text,
        } = files.with_context(|| format!("loading {}", dir.display()))?;
        let name = dir.file_name().map(|name| name.to_string_lossy());
        let name = name.map_or_else(|| request.model.clone(), String::from);
        let layers = shape.layers;
        shape.layers = shapes::measured(&name, layers, request.layers)?;
        Ok(Self {
            name,
            layers,
            calibration: built_in_calibration(&shape.head).into_owned(),
            weights: FloatWeights::fold(&shape, &checkpoint),
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_net::Link;

    #[test]
    fn the_first_layers_of_a_directory() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/sst2-demo");
        let first = |layers| {
            Subject::new(&Request {
                model: root.display().to_string(),
                layers,
                tokens: 8,
                entrants: Vec::new(),
                link: Link::Loopback,
                runs: 1,
                bundles: 1,
                threads: 1,
                record: false,
            })
        };
        let whole = first(None).unwrap();
        let one = first(Some(1)).unwrap();
        assert_eq!((&*one.name, one.layers), ("sst2-demo", whole.layers));
        assert!(whole.layers > 1 && whole.more_layers() == 0.0);
        assert_eq!(one.weights.shape.layers, 1);
        assert_eq!(one.more_layers(), (whole.layers - 1) as f64);
        let error = first(Some(whole.layers + 1)).err().unwrap().to_string();
        assert!(error.contains("sst2-demo has"), "{error}");
    }
}
