//! A prepared model on disk: scales and integer weights, so that calibration runs once.
//!
//! ```text
//! "PRIMERPM"  8 bytes
//! version     u32, little-endian
//! header      u32 length, then shape, scales and the digest of the float weights (postcard)
//! weights     in the graph's order: i16 for dense and diagonal ones, i64 for biases, little-endian
//! checksum    32 bytes, BLAKE3 of everything before it
//! ```
//!
//! All lengths follow from the header's shape, and the file's size is compared with them first, so
//! no memory is allocated for weights that the file does not have.

use crate::fold::Digest;
use crate::quantise::IntModel;
use primer_plan::design::{Design, LookedUp};
use primer_plan::graph::{Weight, WeightKind};
use primer_plan::plan::{Plan, PlanError};
use primer_plan::scales::{Scales, WEIGHT_BITS};
use primer_plan::shape::{Shape, ShapeError};
use primer_plan::weights::IntWeight;
use primer_ring::fixed::Format;
use primer_ring::matrix::Matrix;
use primer_ring::modulus::K;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;

const MAGIC: &[u8; 8] = b"PRIMERPM";
const VERSION: u32 = 6;
const CHECKSUM: usize = 32;

/// Why a prepared model could not be written or read.
#[derive(Debug, Error)]
pub enum PreparedError {
    /// The file cannot be written or read.
    #[error("cannot access {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is something else.
    #[error("this is not a prepared model")]
    Magic,
    /// Another version of the program wrote it.
    #[error("prepared by version {0} of the format, this program reads version {VERSION}")]
    Version(u32),
    /// The file is shorter or longer than its header says.
    #[error("the file has {found} bytes where {expected} belong: it is cut off or damaged")]
    Length {
        /// Bytes there.
        found: usize,
        /// Bytes that belong there.
        expected: usize,
    },
    /// The header cannot be read.
    #[error("the header is damaged")]
    Header,
    /// A byte has changed.
    #[error("the checksum does not match: the file is damaged")]
    Checksum,
    /// A weight is larger than integer weights are.
    #[error("weight {name} has {value}, which does not fit {WEIGHT_BITS} bits")]
    Weight {
        /// Its name.
        name: String,
        /// The element.
        value: i16,
    },
    /// A bias is larger than the share modulus allows.
    #[error("bias {name} has {value}, which does not fit shares of {K} bits")]
    Bias {
        /// Its name.
        name: String,
        /// The element.
        value: i64,
    },
    /// The shape is not usable.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// The scales are not usable.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

#[derive(Serialize, Deserialize)]
struct Header {
    shape: Shape,
    scales: Scales,
    /// The digest of the float weights, so that the file is not taken for another model's.
    source: Digest,
}

impl IntModel {
    /// Returns the file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let header = Header {
            shape: self.shape().clone(),
            scales: self.scales().clone(),
            source: *self.source(),
        };
        let header = postcard::to_stdvec(&header).expect("a header can be encoded");
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(header.len() as u32).to_le_bytes());
        out.extend_from_slice(&header);
        let short = |out: &mut Vec<u8>, values: &[i16]| {
            out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
        };
        for weight in self.weights() {
            match weight {
                IntWeight::Dense(m) => short(&mut out, m.data()),
                IntWeight::Diagonal { gain, mean } => {
                    short(&mut out, gain);
                    short(&mut out, mean);
                }
                IntWeight::Bias(m) => out.extend(m.data().iter().flat_map(|v| v.to_le_bytes())),
            }
        }
        let checksum = blake3::hash(&out);
        out.extend_from_slice(checksum.as_bytes());
        out
    }

    /// Reads a model from a file's bytes.
    ///
    /// # Errors
    /// [`PreparedError`] for anything but an undamaged prepared model.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PreparedError> {
        Self::from_bytes_by(&LookedUp, bytes)
    }

    /// Reads a model of another design from a file's bytes.
    ///
    /// # Errors
    /// As [`Self::from_bytes`].
    pub fn from_bytes_by(design: &'static dyn Design, bytes: &[u8]) -> Result<Self, PreparedError> {
        let fixed = MAGIC.len() + 8;
        if bytes.len() < MAGIC.len() || &bytes[..MAGIC.len()] != MAGIC {
            return Err(PreparedError::Magic);
        }
        let cut = |expected| PreparedError::Length {
            found: bytes.len(),
            expected,
        };
        if bytes.len() < fixed + CHECKSUM {
            return Err(cut(fixed + CHECKSUM));
        }
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let version = word(8);
        if version != VERSION {
            return Err(PreparedError::Version(version));
        }
        let header_end = fixed.saturating_add(word(12) as usize);
        if header_end > bytes.len() - CHECKSUM {
            return Err(cut(header_end.saturating_add(CHECKSUM)));
        }
        let (header, rest): (Header, _) = postcard::take_from_bytes(&bytes[fixed..header_end])
            .map_err(|_| PreparedError::Header)?;
        if !rest.is_empty() {
            return Err(PreparedError::Header);
        }
        header.shape.validate()?;
        // Scales for another graph are told before weights that it does not have.
        let plan = Plan::by(design, &header.shape, 1, header.scales.clone())?;
        let graph = plan.graph();
        let expected = header_end + graph.weights.iter().map(encoded_len).sum::<usize>() + CHECKSUM;
        if bytes.len() != expected {
            return Err(cut(expected));
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
        if blake3::hash(content) != *<&[u8; 32]>::try_from(checksum).expect("32 bytes") {
            return Err(PreparedError::Checksum);
        }
        let mut at = header_end;
        let weights = graph
            .weights
            .iter()
            .map(|w| {
                let part = &content[at..at + encoded_len(w)];
                at += part.len();
                decode(w, part)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self::from_parts(
            design,
            (header.shape, header.scales),
            header.source,
            weights,
        ))
    }

    /// Writes the file next to its final name and renames it, so that it is whole or not there.
    ///
    /// # Errors
    /// [`PreparedError::File`] if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), PreparedError> {
        let failed = |source| PreparedError::File {
            path: path.to_owned(),
            source,
        };
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let write = || {
            let mut file = std::fs::File::create(&partial)?;
            file.write_all(&self.to_bytes())?;
            file.sync_all()?;
            std::fs::rename(&partial, path)
        };
        write().map_err(|e| {
            // The partial file is useless; it is not an error if it is already gone.
            let _ = std::fs::remove_file(&partial);
            failed(e)
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`PreparedError`] if it cannot be read or is not an undamaged prepared model.
    pub fn open(path: &Path) -> Result<Self, PreparedError> {
        Self::open_by(&LookedUp, path)
    }

    /// Reads a file with a model of another design.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by(design: &'static dyn Design, path: &Path) -> Result<Self, PreparedError> {
        let bytes = std::fs::read(path).map_err(|source| PreparedError::File {
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes_by(design, &bytes)
    }
}

fn encoded_len(weight: &Weight) -> usize {
    match weight.kind {
        WeightKind::Dense => 2 * weight.rows * weight.cols,
        WeightKind::Diagonal => 4 * weight.cols,
        WeightKind::Bias => 8 * weight.rows * weight.cols,
    }
}

fn decode(weight: &Weight, bytes: &[u8]) -> Result<IntWeight, PreparedError> {
    let format = Format {
        bits: WEIGHT_BITS,
        fraction: 0,
    };
    let short = |bytes: &[u8]| -> Result<Vec<i16>, PreparedError> {
        let values = bytes
            .chunks_exact(2)
            .map(|b| i16::from_le_bytes([b[0], b[1]]));
        values
            .map(|value| {
                if format.holds(value.into()) {
                    Ok(value)
                } else {
                    Err(PreparedError::Weight {
                        name: weight.name.clone(),
                        value,
                    })
                }
            })
            .collect()
    };
    Ok(match weight.kind {
        WeightKind::Dense => {
            IntWeight::Dense(Matrix::from_vec(weight.rows, weight.cols, short(bytes)?))
        }
        WeightKind::Diagonal => {
            let (gain, mean) = bytes.split_at(bytes.len() / 2);
            IntWeight::Diagonal {
                gain: short(gain)?,
                mean: short(mean)?,
            }
        }
        WeightKind::Bias => {
            let values: Vec<i64> = bytes
                .chunks_exact(8)
                .map(|b| i64::from_le_bytes(b.try_into().expect("8 bytes")))
                .collect();
            // Larger ones would wrap around p, and could overflow the reference's sums.
            if let Some(&value) = values.iter().find(|v| v.unsigned_abs() >> (K - 1) != 0) {
                return Err(PreparedError::Bias {
                    name: weight.name.clone(),
                    value,
                });
            }
            IntWeight::Bias(Matrix::from_vec(weight.rows, weight.cols, values))
        }
    })
}
