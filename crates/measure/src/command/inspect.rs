//! `inspect`: the plan of a model.

use super::ModelArgs;
use crate::console::output;
use crate::console::progress::Stages;
use crate::inspect::Inspected;
use crate::note;
use crate::scheme::Scheme;
use anyhow::{Context, Result};
use clap::Args;
use primer::source::Model;
use std::path::PathBuf;

/// Arguments of `inspect`, but for the scheme.
#[derive(Args)]
#[group(skip)]
pub struct InspectArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the padded input that the plan is made for
    #[arg(long, value_name = "N", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..))]
    tokens: u64,
    /// Show every layer, not only the first
    #[arg(long)]
    all_layers: bool,
    /// Write the scales and integer weights to a file for `--prepared`
    #[arg(long, value_name = "FILE")]
    save_prepared: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Prints the plan of a scheme.
///
/// # Errors
/// If the model is not usable, or what is found cannot be written.
pub fn run(args: &InspectArgs, scheme: &dyn Scheme) -> Result<()> {
    let model = Model::load(args.model.model.as_deref())?;
    let stages = Stages::default();
    let prepared = model.prepare_as(
        &scheme.weights(&model.weights),
        args.model.prepared.as_deref(),
        args.model.calibration.as_deref(),
        |done, total| stages.tell("calibrating", done, total),
    )?;
    let tokens = (args.tokens as usize).min(model.max_tokens());
    let inspected = Inspected::of(&model.name, &prepared, tokens, scheme)?;
    if let Some(path) = &args.save_prepared {
        prepared.save(path).context("writing the prepared model")?;
        note!("primer: prepared model written to {}", path.display());
    }
    if args.json {
        output::line(inspected.json())
    } else {
        output::text(inspected.text(args.all_layers))
    }
}
