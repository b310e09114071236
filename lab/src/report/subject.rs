//! What was measured: a model at a length over a link.

use super::records::{Records, TOKENS};
use super::{distinct, paper};
use primer_measure::bench::table::Table;
use primer_net::Link;

/// The model of the paper's tables 1 and 2.
pub(super) const MODEL: &str = "bert-base";

/// A model, its input's tokens and the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'r> {
    /// The model.
    pub model: &'r str,
    /// Tokens of the input.
    pub tokens: usize,
    /// The link.
    pub link: Link,
}

impl<'r> Subject<'r> {
    /// Returns what a table measured.
    pub fn of(table: &'r Table) -> Self {
        Self {
            model: &table.model,
            tokens: table.tokens,
            link: table.link,
        }
    }

    /// Makes a model at the paper's length, without a slow link.
    pub const fn plain(model: &'r str) -> Self {
        Self {
            model,
            tokens: TOKENS,
            link: Link::Loopback,
        }
    }

    /// Returns what tables 1 and 2 are of.
    pub const fn main() -> Self {
        Self::plain(MODEL)
    }

    /// Tells whether the figures of the paper's tables 1 and 2 are of the same model and length.
    pub fn is_papers(&self) -> bool {
        self.model == MODEL && self.tokens == TOKENS
    }

    /// Returns the name for a reader.
    pub fn title(&self) -> String {
        let model = if self.model == MODEL {
            "BERT-base"
        } else {
            self.model
        };
        let link = match self.link {
            Link::Loopback => String::new(),
            slow => format!(", link {slow}"),
        };
        format!("{model}, {} tokens{link}", self.tokens)
    }

    /// Returns what a file's name ends with: nothing for the main subject.
    pub fn suffix(&self) -> String {
        if *self == Self::main() {
            return String::new();
        }
        let safe = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
                c
            } else {
                '-'
            }
        };
        let model: String = self.model.chars().map(safe).collect();
        match self.link {
            Link::Loopback => format!("-{model}-{}", self.tokens),
            slow => format!("-{model}-{}-{slow}", self.tokens),
        }
    }

    /// Tells whether table 3 or the table of links has its rows.
    fn is_elsewhere(&self) -> bool {
        let sized = paper::SIZES.iter().any(|s| Self::plain(s.model) == *self);
        let linked = self.tokens == TOKENS && self.link != Link::Loopback;
        sized || linked
    }
}

/// Returns the subjects that get tables and pictures of their own: the paper's or failing that the
/// first one, then those that no table of several subjects has.
pub fn shown(records: &Records) -> Vec<Subject<'_>> {
    let measured = records.tables.iter().filter(|t| !t.results.is_empty());
    let mut all = distinct(measured.map(Subject::of));
    let papers = all.iter().find(|s| **s == Subject::main());
    let lead = papers.or(all.first()).copied();
    all.retain(|s| Some(*s) != lead && !s.is_elsewhere());
    lead.into_iter().chain(all).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{records, table, table_at};
    use super::*;

    fn names(texts: &[String]) -> Vec<String> {
        let records = records(texts);
        shown(&records).iter().map(Subject::title).collect()
    }

    #[test]
    fn the_papers_subject_comes_first_and_nothing_is_shown_twice() {
        let all = [
            table_at("minilm", 64, "loopback", &["fp"]),
            table("bert-tiny", &["fp", "fpc"], false, 1.0),
            table_at("bert-base", 30, "wan", &["fp"]),
            table("bert-base", &["fp"], false, 1.0),
            table("bert-base", &["gc"], true, 1.0),
            table_at("bert-base", 64, "paper", &["fp"]),
        ];
        assert_eq!(
            names(&all),
            [
                "BERT-base, 30 tokens",
                "minilm, 64 tokens",
                "BERT-base, 64 tokens, link paper"
            ]
        );
        // Table 3 has every scheme.
        let other = [all[3].clone(), table("bert-tiny", &["f"], false, 1.0)];
        assert_eq!(names(&other), ["BERT-base, 30 tokens"]);
    }

    #[test]
    fn a_measured_subject_of_ones_own_is_shown() {
        assert!(names(&[]).is_empty());
        let slow = [table_at("bert-base", 30, "paper", &["fp"])];
        assert_eq!(names(&slow), ["BERT-base, 30 tokens, link paper"]);
        let small = [table("bert-tiny", &["fp"], false, 1.0)];
        assert_eq!(names(&small), ["bert-tiny, 30 tokens"]);
    }

    #[test]
    fn names_of_files_are_safe() {
        assert_eq!(Subject::main().suffix(), "");
        let of = |model, tokens, link| Subject {
            model,
            tokens,
            link,
        };
        assert_eq!(of("minilm", 64, Link::Loopback).suffix(), "-minilm-64");
        assert_eq!(of(MODEL, 30, Link::Wan).suffix(), "-bert-base-30-wan");
        assert_eq!(of("../é v1.5", 8, Link::Loopback).suffix(), "------v1-5-8");
    }
}
