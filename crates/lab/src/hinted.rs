//! The hint of a model, for measurements in which both parties are at hand.

use anyhow::{Context, Result};
use primer_hint::multipliers::Multipliers;
use primer_hint::published::{Index, Published};
use primer_hint::server::HintSecret;
use primer_model::quantise::IntModel;
use primer_protocol::Scheme;
use primer_protocol::hints::Build;
use primer_ring::prg::Prg;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A hint, what the server multiplies with, and how long it took to make both.
pub(crate) struct Hinted {
    pub(crate) hint: Arc<Published>,
    pub(crate) multipliers: Arc<Multipliers>,
    pub(crate) seconds: f64,
}

impl Hinted {
    /// Makes the hint of a model under a secret that is forgotten, if the scheme needs one.
    pub(crate) fn of(model: &IntModel, scheme: Scheme) -> Result<Option<Self>> {
        if !scheme.needs_hint() {
            return Ok(None);
        }
        let started = Instant::now();
        let secret = HintSecret::new(Prg::from_os().secret_seed());
        let build = Build::new(model, &secret)?;
        let made = build
            .in_memory(|_, _| ())
            .context("making the model's hint");
        let (hint, multipliers) = made?;
        Ok(Some(Self {
            hint: Arc::new(hint),
            multipliers: Arc::new(multipliers),
            seconds: started.elapsed().as_secs_f64(),
        }))
    }

    /// Writes the hint for the client's process.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let chunks = 0..self.hint.index().chunks();
        let chunks: Result<Vec<_>, _> = chunks.map(|chunk| self.hint.chunk(chunk)).collect();
        std::fs::write(path, chunks?.concat())
            .with_context(|| format!("writing the hint {}", path.display()))
    }
}

/// Opens a hint that [`Hinted::write`] wrote, under its name.
pub(crate) fn read(path: &Path, name: &[u8; 32]) -> Result<Arc<Published>> {
    let reading = || format!("reading the hint {}", path.display());
    let index = Index::of(name, &std::fs::read(path).with_context(reading)?);
    let file = File::open(path).with_context(reading)?;
    Ok(Arc::new(Published::in_file(index, file)))
}
