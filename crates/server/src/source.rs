//! Where a model comes from: a directory, or the library itself.

use primer_model::calibrate::{self, CalibrateError, calibrate};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadError, LoadedModel, ModelFiles};
use primer_model::prepared::PreparedError;
use primer_model::quantise::IntModel;
use primer_plan::plan::PlanError;
use primer_plan::shape::{Head, Shape};
use primer_service::ServiceError;
use primer_service::message::TokenizerFiles;
use primer_text::{Input, TextEncoder};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The calibration text that is used when none is given.
const CALIBRATION: &str = include_str!("../../../models/calibration.txt");
/// What is added to it for models that mark spans, whose inputs are a question and a long passage.
const PASSAGES: &str = include_str!("../../../models/calibration-passages.txt");

/// The name of the model that is part of the library.
pub const EMBEDDED: &str = "sst2-demo (embedded)";

fn embedded() -> ModelFiles {
    ModelFiles::embedded(
        include_bytes!("../../../models/sst2-demo/config.json"),
        include_bytes!("../../../models/sst2-demo/model.safetensors"),
        include_bytes!("../../../models/sst2-demo/tokenizer.json"),
        include_bytes!("../../../models/sst2-demo/tokenizer_config.json"),
    )
}

/// Why there is no model, in one sentence that has its causes in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The directory is not a usable model.
    #[error("loading {name}: {cause}")]
    Load {
        /// The directory, or [`EMBEDDED`].
        name: String,
        /// What is wrong with it.
        cause: LoadError,
    },
    /// The file of scales and integer weights is not usable.
    #[error("loading {}: {cause}", .path.display())]
    Prepared {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: PreparedError,
    },
    /// That file was made from other weights.
    #[error("{} was prepared from another model than {name}", .path.display())]
    OtherModel {
        /// The file.
        path: PathBuf,
        /// The model.
        name: String,
    },
    /// That file was made for a scheme whose plans have other steps.
    #[error("{} was prepared for another scheme", .path.display())]
    OtherScheme {
        /// The file.
        path: PathBuf,
    },
    /// The calibration text cannot be read.
    #[error("reading the calibration text {}: {cause}", .path.display())]
    CalibrationText {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The calibration text does not go with the model.
    #[error("calibrating {name}: {cause}")]
    Calibrate {
        /// The model.
        name: String,
        /// Why not.
        cause: CalibrateError,
    },
    /// The model has no plan at its scales.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl From<SourceError> for ServiceError {
    fn from(error: SourceError) -> Self {
        Self::Source(Box::new(error))
    }
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

/// Returns the calibration text that is used for a head when none is given.
pub fn built_in_calibration(head: &Head) -> Cow<'static, str> {
    match head {
        Head::Span => Cow::Owned([CALIBRATION, PASSAGES].concat()),
        _ => Cow::Borrowed(CALIBRATION),
    }
}

/// Reads the calibration text of a file, or takes the built-in one.
fn calibration_text(path: Option<&Path>, head: &Head) -> Result<Cow<'static, str>, SourceError> {
    let Some(path) = path else {
        return Ok(built_in_calibration(head));
    };
    let text = std::fs::read_to_string(path);
    text.map(Cow::Owned)
        .map_err(|cause| SourceError::CalibrationText {
            path: path.to_owned(),
            cause,
        })
}

impl Model {
    /// Returns its name without the directory, as results show it.
    pub fn short_name(&self) -> String {
        let last = Path::new(&self.name).file_name();
        last.map_or_else(|| self.name.clone(), |n| n.to_string_lossy().into_owned())
    }

    /// Loads a model directory, or the embedded model.
    ///
    /// # Errors
    /// [`SourceError::Load`] if the directory is not a usable model.
    pub fn load(dir: Option<&Path>) -> Result<Self, SourceError> {
        let name = dir.map_or_else(|| EMBEDDED.to_owned(), |dir| dir.display().to_string());
        let files = dir.map_or_else(|| Ok(embedded()), ModelFiles::open);
        let loaded = files.and_then(|files| Ok((files.load()?, files)));
        let (model, files) = match loaded {
            Ok(loaded) => loaded,
            Err(cause) => return Err(SourceError::Load { name, cause }),
        };
        let LoadedModel {
            shape,
            checkpoint,
            text,
        } = model;
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

    /// Returns the largest number of tokens of one input, by the model and by its tokenizer.
    pub fn max_tokens(&self) -> usize {
        self.shape.max_tokens().min(self.text.max_tokens())
    }

    /// Makes the inputs of a calibration text, for those who look at ranges themselves.
    ///
    /// # Errors
    /// [`SourceError`] if the calibration text is not usable.
    pub fn calibration_inputs(
        &self,
        calibration: Option<&Path>,
    ) -> Result<Vec<Input>, SourceError> {
        let text = calibration_text(calibration, &self.shape.head)?;
        calibrate::inputs(&self.weights, &self.text, &text)
            .map_err(|cause| self.uncalibrated(cause))
    }

    /// Makes the model in integers: read from a prepared file, or calibrated now, which says how
    /// many inputs of how many are done.
    ///
    /// # Errors
    /// [`SourceError`] if the file or the calibration text is not usable, or does not fit this
    /// model.
    pub fn prepare(
        &self,
        prepared: Option<&Path>,
        calibration: Option<&Path>,
        progress: impl Fn(usize, usize),
    ) -> Result<IntModel, SourceError> {
        self.prepare_as(&self.weights, prepared, calibration, progress)
    }

    /// Makes the model in integers from its weights as another design has them.
    ///
    /// # Errors
    /// As [`Self::prepare`].
    pub fn prepare_as(
        &self,
        weights: &FloatWeights,
        prepared: Option<&Path>,
        calibration: Option<&Path>,
        progress: impl Fn(usize, usize),
    ) -> Result<IntModel, SourceError> {
        if let Some(path) = prepared {
            return self.open_prepared(weights, path);
        }
        let text = calibration_text(calibration, &self.shape.head)?;
        let calibrated = calibrate(weights, &self.text, &text, progress);
        let calibrated = calibrated.map_err(|cause| self.uncalibrated(cause))?;
        Ok(IntModel::quantise(weights, calibrated)?)
    }

    fn open_prepared(&self, weights: &FloatWeights, path: &Path) -> Result<IntModel, SourceError> {
        let path = path.to_owned();
        let model = match IntModel::open_by(weights.design(), &path) {
            Ok(model) => model,
            Err(PreparedError::Plan(PlanError::Count { .. })) => {
                return Err(SourceError::OtherScheme { path });
            }
            Err(cause) => return Err(SourceError::Prepared { path, cause }),
        };
        if *model.shape() != self.shape || *model.source() != weights.digest() {
            let name = self.name.clone();
            return Err(SourceError::OtherModel { path, name });
        }
        Ok(model)
    }

    fn uncalibrated(&self, cause: CalibrateError) -> SourceError {
        let name = self.name.clone();
        SourceError::Calibrate { name, cause }
    }
}
