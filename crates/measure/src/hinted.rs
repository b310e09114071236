//! The hint of a model, for measurements in which both parties are at hand.

use anyhow::{Context, Result};
use primer_hint::multipliers::Multipliers;
use primer_hint::published::{Index, Published};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A hint, what the server multiplies with, and how long it took to make both.
pub struct Hinted {
    /// What the client has.
    pub hint: Arc<Published>,
    /// What the server has.
    pub multipliers: Arc<Multipliers>,
    /// Seconds that both took.
    pub seconds: f64,
}

impl Hinted {
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
