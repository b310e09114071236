//! What replicas of a server can share among them.

use serde::{Deserialize, Serialize};

/// One of the two kinds of work of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// The offline phase: heavy.
    Prepare,
    /// The online phase: light, and waited for.
    Infer,
}

impl Work {
    /// All of it.
    pub const ALL: [Self; 2] = [Self::Prepare, Self::Infer];
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::Infer => "infer",
        })
    }
}

impl std::str::FromStr for Work {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let work = Self::ALL.into_iter().find(|work| work.to_string() == name);
        work.ok_or_else(|| format!("{name:?} is not prepare or infer"))
    }
}
