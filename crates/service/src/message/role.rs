//! What replicas of a server can share among them.

use serde::{Deserialize, Serialize};

/// What a replica does: one of two kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerRole {
    /// The offline phase: heavy.
    Prepare,
    /// The online phase: light, and waited for.
    Infer,
}

impl ServerRole {
    /// All of it.
    pub const ALL: [Self; 2] = [Self::Prepare, Self::Infer];
}

impl std::fmt::Display for ServerRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Prepare => "prepare",
            Self::Infer => "infer",
        })
    }
}

impl std::str::FromStr for ServerRole {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let role = Self::ALL.into_iter().find(|role| role.to_string() == name);
        role.ok_or_else(|| format!("{name:?} is not prepare or infer"))
    }
}
