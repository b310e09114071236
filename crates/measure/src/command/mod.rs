//! Arguments and output of the commands that measure: what programs share that have them.
//!
//! Each program adds what it can choose from: schemes, engines, entrants.

pub mod bench;
pub mod eval;
pub mod inspect;

use crate::Lean;
use crate::choice::Choice;
use crate::console::failure::AlreadyReported;
use crate::console::output::OutputError;
use anyhow::{Context, Error, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::path::{Path, PathBuf};

/// Which model, and how it is brought to integers.
#[derive(Args)]
pub struct ModelArgs {
    /// Directory written by Hugging Face's save_pretrained (the embedded SST-2 model if not given)
    #[arg(long, value_name = "DIR")]
    pub model: Option<PathBuf>,
    /// Text whose activation ranges set the scales, which are public, one input a line (a built-in
    /// text if not given)
    #[arg(long, value_name = "FILE", conflicts_with = "prepared")]
    pub calibration: Option<PathBuf>,
    /// Take scales and integer weights from a file written by `inspect --save-prepared`
    #[arg(long, value_name = "FILE")]
    pub prepared: Option<PathBuf>,
}

/// Takes the name of one of a list.
pub fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let all = T::ALL.iter();
    let names = all.map(|one| PossibleValue::new(one.name()).help(one.about()));
    let named = |name: String| T::by_name(&name).expect("one of the names above");
    PossibleValuesParser::new(names).map(named)
}

/// Takes the name of the one scheme of the product.
///
/// # Errors
/// A sentence that says where the others are.
pub fn lean(name: &str) -> Result<Lean, String> {
    let one = crate::Scheme::name(&Lean);
    match name == one {
        true => Ok(Lean),
        false => Err(format!(
            "there is no scheme `{name}` here, only {one}; the paper's schemes and the comparators \
             are run by the program primer-lab"
        )),
    }
}

/// Tells help, the version or wrong usage, and returns the error that ends the program.
pub fn told(error: &clap::Error) -> Error {
    // What is asked for goes to standard output and may fail there; usage does not.
    let failed = (error.print().err()).filter(|_| !error.use_stderr());
    match failed {
        Some(error) => OutputError::from(error).into(),
        None => {
            let code = error.exit_code() as u8;
            AlreadyReported { code }.into()
        }
    }
}

/// Checks that a file can be written; one that is there stays as it is.
///
/// # Errors
/// If it cannot.
pub fn writable(path: &Path) -> Result<()> {
    let file = std::fs::File::options()
        .append(true)
        .create(true)
        .open(path);
    file.with_context(|| format!("creating {}", path.display()))?;
    Ok(())
}
