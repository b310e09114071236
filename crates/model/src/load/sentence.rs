//! The layout of sentence-transformers: an encoder, and next to it files that say how its hidden
//! states become one vector.
//!
//! `modules.json` lists modules, each in a directory: the encoder itself, a pooling, and perhaps a
//! normalisation. Anything else (a dense layer, a bag of words) is refused by its name.

use super::{LoadError, read};
use primer_plan::shape::{Head, Pooling};
use serde::Deserialize;
use std::path::{Component, Path};

const MODULES: &str = "modules.json";
const LIMITS: &str = "sentence_bert_config.json";
const PROMPTS: &str = "config_sentence_transformers.json";

/// What the files beside an encoder say.
pub(super) struct Sentence {
    pooling: Pooling,
    normalised: bool,
    /// `max_seq_length`.
    pub(super) max_tokens: Option<usize>,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// The ways of pooling that sentence-transformers have; one of them is on.
#[derive(Deserialize, Default)]
#[serde(default)]
struct PoolingConfig {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

#[derive(Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

#[derive(Deserialize)]
struct Prompts {
    default_prompt_name: Option<String>,
}

fn refused(file: &str, reason: impl Into<String>) -> LoadError {
    LoadError::Sentence {
        file: file.to_owned(),
        reason: reason.into(),
    }
}

fn parse<'a, T: Deserialize<'a>>(file: &str, bytes: &'a [u8]) -> Result<T, LoadError> {
    serde_json::from_slice(bytes).map_err(|cause| refused(file, cause.to_string()))
}

impl Sentence {
    /// Reads the files of a directory, if it is laid out in this way.
    pub(super) fn open(dir: &Path) -> Result<Option<Self>, LoadError> {
        let path = dir.join(MODULES);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read(&path)?;
        let modules: Vec<Module> = parse(MODULES, &bytes)?;
        let (mut pooling, mut normalised) = (None, false);
        for (place, module) in modules.iter().enumerate() {
            let kind = module.kind.rsplit('.').next().unwrap_or_default();
            match (place, kind) {
                (0, "Transformer") if module.path.is_empty() => {}
                (1, "Pooling") => pooling = Some(read_pooling(dir, &module.path)?),
                (2, "Normalize") => normalised = true,
                _ => {
                    let reason = format!(
                        "module {place} is {}; supported are Transformer (in the directory \
                         itself), Pooling and Normalize, in this order",
                        module.kind
                    );
                    return Err(refused(MODULES, reason));
                }
            }
        }
        let pooling = pooling.ok_or_else(|| refused(MODULES, "there is no Pooling"))?;
        Ok(Some(Self {
            pooling,
            normalised,
            max_tokens: read_limits(dir)?,
        }))
    }

    /// Returns what stands on top of the encoder.
    pub(super) const fn head(&self) -> Head {
        Head::Sentence {
            pooling: self.pooling,
            normalised: self.normalised,
        }
    }
}

/// Reads `max_seq_length`, and refuses what would be done to a text before it is tokenised: without
/// it the vectors would not be the model's own.
fn read_limits(dir: &Path) -> Result<Option<usize>, LoadError> {
    let path = dir.join(PROMPTS);
    if path.exists() {
        let prompts: Prompts = parse(PROMPTS, &read(&path)?)?;
        if let Some(name) = prompts.default_prompt_name {
            let reason = format!("default_prompt_name \"{name}\": prompts are not supported");
            return Err(refused(PROMPTS, reason));
        }
    }
    let path = dir.join(LIMITS);
    if !path.exists() {
        return Ok(None);
    }
    let limits: Limits = parse(LIMITS, &read(&path)?)?;
    match limits.do_lower_case {
        true => Err(refused(LIMITS, "do_lower_case is not supported")),
        false => Ok(limits.max_seq_length),
    }
}

fn read_pooling(dir: &Path, path: &str) -> Result<Pooling, LoadError> {
    let inside = Path::new(path);
    let mut parts = inside.components();
    if path.is_empty() || !parts.all(|part| matches!(part, Component::Normal(_))) {
        return Err(refused(
            MODULES,
            format!("\"{path}\" is not a directory beside it"),
        ));
    }
    let file = format!("{path}/config.json");
    let bytes = read(&dir.join(inside).join("config.json"))?;
    let config: PoolingConfig = parse(&file, &bytes)?;
    let modes = [
        ("pooling_mode_cls_token", config.pooling_mode_cls_token),
        ("pooling_mode_mean_tokens", config.pooling_mode_mean_tokens),
        ("pooling_mode_max_tokens", config.pooling_mode_max_tokens),
        (
            "pooling_mode_mean_sqrt_len_tokens",
            config.pooling_mode_mean_sqrt_len_tokens,
        ),
        (
            "pooling_mode_weightedmean_tokens",
            config.pooling_mode_weightedmean_tokens,
        ),
        ("pooling_mode_lasttoken", config.pooling_mode_lasttoken),
    ];
    let on = modes.into_iter().filter(|(_, on)| *on);
    let on: Vec<&str> = on.map(|(name, _)| name).collect();
    match on.as_slice() {
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        [] => Err(refused(&file, "no way of pooling is on")),
        others => Err(refused(
            &file,
            format!(
                "{} is not supported; supported is one of pooling_mode_cls_token and \
                 pooling_mode_mean_tokens",
                others.join(" with ")
            ),
        )),
    }
}
