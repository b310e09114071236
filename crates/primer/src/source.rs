//! Where a model comes from: a directory, or the program itself.

use crate::progress::Progress;
use crate::service::message::TokenizerFiles;
use anyhow::{Context, Result};
use primer_model::calibrate::{self, calibrate};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::text::{Input, TextEncoder};
use primer_plan::graph::Attention;
use primer_plan::shape::Shape;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// The calibration text that is used when none is given.
pub const CALIBRATION: &str = include_str!("../../../models/calibration.txt");

/// The name of the model that is part of the program.
pub const EMBEDDED: &str = "sst2-demo (embedded)";

fn embedded() -> ModelFiles {
    ModelFiles::embedded(
        include_bytes!("../../../models/sst2-demo/config.json"),
        include_bytes!("../../../models/sst2-demo/model.safetensors"),
        include_bytes!("../../../models/sst2-demo/tokenizer.json"),
        include_bytes!("../../../models/sst2-demo/tokenizer_config.json"),
    )
}

/// A loaded model with its weights as the plan wants them.
pub struct Model {
    /// The directory, or [`EMBEDDED`].
    pub name: String,
    /// Its shape.
    pub shape: Shape,
    /// Its tokenizer.
    pub text: TextEncoder,
    /// Its tokenizer's files, for those who tokenise elsewhere.
    pub tokenizer: TokenizerFiles,
    /// Its weights in single precision.
    pub weights: FloatWeights,
}

/// A calibration text: a file's, or the built-in one.
fn calibration_text(path: Option<&PathBuf>) -> Result<Cow<'static, str>> {
    let Some(path) = path else {
        return Ok(Cow::Borrowed(CALIBRATION));
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("reading the calibration text {}", path.display()))?;
    Ok(Cow::Owned(text))
}

impl Model {
    /// Its name without the way to it, as results show it.
    pub fn short_name(&self) -> String {
        let last = Path::new(&self.name).file_name();
        last.map_or_else(|| self.name.clone(), |n| n.to_string_lossy().into_owned())
    }

    /// Loads a model directory, or the embedded model.
    ///
    /// # Errors
    /// If the directory is not a usable model.
    pub fn load(dir: Option<&Path>) -> Result<Self> {
        let (name, files) = match dir {
            Some(dir) => (
                dir.display().to_string(),
                ModelFiles::open(dir).with_context(|| format!("loading {}", dir.display()))?,
            ),
            None => (EMBEDDED.to_owned(), embedded()),
        };
        let LoadedModel {
            shape,
            checkpoint,
            text,
        } = files.load().with_context(|| format!("loading {name}"))?;
        let (main, json, config) = files.tokenizer();
        let tokenizer = TokenizerFiles {
            main: main.to_vec(),
            json,
            config: config.map(<[u8]>::to_vec),
        };
        let weights = FloatWeights::fold(&shape, &checkpoint);
        Ok(Self {
            name,
            shape,
            text,
            tokenizer,
            weights,
        })
    }

    /// The largest number of tokens of one input, by the model and by its tokenizer.
    pub fn max_tokens(&self) -> usize {
        self.shape.max_tokens().min(self.text.max_tokens())
    }

    /// The inputs that a calibration text makes, for those who look at ranges themselves.
    ///
    /// # Errors
    /// If the calibration text is not usable.
    pub fn calibration_inputs(&self, calibration: Option<&PathBuf>) -> Result<Vec<Input>> {
        let text = calibration_text(calibration)?;
        calibrate::inputs(&self.weights, &self.text, &text)
            .with_context(|| format!("calibrating {}", self.name))
    }

    /// The model in integers, for graphs with an attention: read from a prepared file, or calibrated
    /// now.
    ///
    /// # Errors
    /// If the file or the calibration text is not usable, or does not fit this model.
    pub fn prepare(
        &self,
        prepared: Option<&Path>,
        calibration: Option<&PathBuf>,
        attention: Attention,
    ) -> Result<IntModel> {
        if let Some(path) = prepared {
            let model =
                IntModel::open(path).with_context(|| format!("loading {}", path.display()))?;
            anyhow::ensure!(
                *model.shape() == self.shape && *model.source() == self.weights.digest(),
                "{} was prepared from another model than {}",
                path.display(),
                self.name
            );
            anyhow::ensure!(
                model.scales().attention == attention,
                "{} was prepared with {} attention, this scheme has {} attention",
                path.display(),
                model.scales().attention.name(),
                attention.name()
            );
            return Ok(model);
        }
        let text = calibration_text(calibration)?;
        let weights = self.weights.with_attention(attention);
        let bar = OnceCell::new();
        let scales = calibrate(&weights, &self.text, &text, |done, total| {
            let bar = bar.get_or_init(|| Progress::start("calibrating", total));
            if done > 0 {
                bar.tick();
            }
        });
        if let Some(bar) = bar.into_inner() {
            bar.finish();
        }
        let scales = scales.with_context(|| format!("calibrating {}", self.name))?;
        Ok(IntModel::quantise(&weights, scales)?)
    }
}
