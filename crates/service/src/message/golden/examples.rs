//! Values to be sent.

use super::super::{Card, Refusal, ServerRole};
use crate::BundleId;
use primer_engine::Reveal;
use primer_hint::params::hint_bytes;
use primer_hint::published::Identity;
use primer_plan::shape::{Family, Head, Pooling, Problem, Summary};
use primer_store::{Counted, Exhausted};

/// The version in examples: they stay the same when ours is raised.
pub(super) const OTHER_VERSION: u16 = 300;

pub(super) fn id(last: u8) -> BundleId {
    BundleId::from_bytes(std::array::from_fn(
        |i| if i == 15 { last } else { i as u8 },
    ))
}

/// Returns an example in which fields of one type differ, so that two that change places show.
pub(super) fn card() -> Card {
    Card {
        model: "a model".into(),
        generation: std::array::from_fn(|i| 0x10 + i as u8),
        family: Family::Bert,
        head: Head::classify(vec!["no".into(), "yes".into()]),
        vocab: 30_522,
        types: 2,
        buckets: vec![8, 16, 512],
        reveal: Reveal::Outputs,
        answer_bits: vec![43, 44, 1_000],
        tokenizer: (std::array::from_fn(|i| 0x40 + i as u8), 226_508),
        hint: Identity {
            name: std::array::from_fn(|i| 0x60 + i as u8),
            bytes: 12_700 * hint_bytes(1) as u64,
            root: std::array::from_fn(|i| 0x80 + i as u8),
        },
        max_stored: 1 << 35,
        idle_seconds: 300,
    }
}

/// Returns cards with every variant of what a card names.
pub(super) fn cards() -> Vec<(String, Card)> {
    let mut found = vec![("plain".to_owned(), card())];
    let mut add = |name: String, change: &dyn Fn(&mut Card)| {
        let mut card = card();
        change(&mut card);
        found.push((name, card));
    };
    for (name, family) in every!(Family: Bert; DistilBert; Roberta; XlmRoberta; Electra;) {
        add(format!("family.{name}"), &|card| card.family = family);
    }
    for (name, reveal) in every!(Reveal: Outputs; Label;) {
        add(format!("reveal.{name}"), &|card| card.reveal = reveal);
    }
    let heads = every!(Head:
        Classify {
            labels: vec!["no".into()],
            summary: Summary::Relu,
            problem: Problem::MultiLabel
        };
        Span;
        Tokens { labels: vec!["O".into(), "B-PER".into()] };
        Sentence { pooling: Pooling::Mean, normalised: true };
        Encoder { pooled: true };
    );
    for (name, head) in heads {
        add(format!("head.{name}"), &|card| card.head = head.clone());
    }
    let labels = vec!["yes".to_owned()];
    for (name, summary) in every!(Summary: Tanh; Relu; Gelu;) {
        let (labels, problem) = (labels.clone(), Problem::SingleLabel);
        let head = Head::Classify {
            labels,
            summary,
            problem,
        };
        add(format!("summary.{name}"), &|card| card.head = head.clone());
    }
    for (name, problem) in every!(Problem: SingleLabel; MultiLabel; Regression;) {
        let (labels, summary) = (labels.clone(), Summary::Tanh);
        let head = Head::Classify {
            labels,
            summary,
            problem,
        };
        add(format!("problem.{name}"), &|card| card.head = head.clone());
    }
    for (name, pooling) in every!(Pooling: Mean; First;) {
        let head = Head::Sentence {
            pooling,
            normalised: false,
        };
        add(format!("pooling.{name}"), &|card| card.head = head.clone());
    }
    found
}

pub(super) fn refusals() -> Vec<(String, Refusal)> {
    let found = every!(Refusal:
        Version(OTHER_VERSION);
        Token;
        Busy(64);
        Stopping;
        Tokens { asked: 600, limit: 512 };
        Bundles { asked: 9, tokens: 128, limit: 4 };
        Stored { needed: 1 << 20, stored: 1 << 30, limit: 1 << 31 };
        Full;
        Taken(id(1));
        Unknown(id(2));
        Spent(id(3));
        OtherProgram(id(4));
        Failed("a reason".into());
        Lengths(3);
        Store;
        Role(ServerRole::Prepare);
        Hint;
        Limit(limit(Counted::Answers, Some(18_720)));
    );
    let limits = every!(Counted: Prepared; Answers;);
    let limits =
        limits.map(|(name, what)| (format!("Limit.{name}"), Refusal::Limit(limit(what, None))));
    let work = every!(ServerRole: Prepare; Infer;);
    let roles = work.map(|(name, work)| (format!("Role.{name}"), Refusal::Role(work)));
    found.into_iter().chain(roles).chain(limits).collect()
}

fn limit(what: Counted, ends_in: Option<u64>) -> Exhausted {
    Exhausted {
        what,
        limit: 1_000,
        had: 998,
        asked: 4,
        ends_in,
    }
}
