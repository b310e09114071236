//! Things that are chosen by name from a short list.

/// One of a list, with a name and a sentence for those who choose.
pub trait Choice: Copy + Send + Sync + 'static {
    /// All there are, in the order in which they are shown.
    const ALL: &'static [Self];

    /// Returns the name on the command line and in JSON.
    fn name(self) -> &'static str;

    /// Says what it is, in a few words.
    fn about(self) -> &'static str;

    /// Finds the one of a name.
    fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}
