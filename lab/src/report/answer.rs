//! What one private answer takes, here and elsewhere: the first table and the first picture.

use super::paper;
use super::records::{Records, TOKENS};
use super::subject::Subject;
use super::tables::of_peers;
use crate::bench::Entrant;
use crate::bench::Scheme;
use primer_measure::bench::table::{Row, Table};

/// The scheme of the paper whose figures stand for it.
const PAPERS: &str = "fpc";
/// The paper's protocol as it is built here, and what goes beyond it.
const OURS: [Scheme; 2] = [Scheme::Fp, Scheme::Lean];

/// A system, and what one answer takes with it.
#[derive(Debug, Default)]
pub(super) struct AnswerCost<'r> {
    pub name: String,
    pub is_ours: bool,
    /// Seconds before the question is there, if anything is done then.
    pub offline_s: Option<f64>,
    /// Seconds from the question to the answer.
    pub online_s: f64,
    /// Bytes of both phases.
    pub bytes: u64,
    /// Those of the online phase, if there is another.
    pub online_bytes: Option<u64>,
    /// Bytes that wait in the client's store for the question.
    pub kept: Option<u64>,
    pub extrapolated: bool,
    /// What was typed, if it was measured.
    pub command: Option<&'r str>,
}

impl<'r> AnswerCost<'r> {
    fn of(name: String, is_ours: bool, (table, row): (&'r Table, &Row)) -> Self {
        let prepares = row.offline_s > 0.0;
        let bytes = &row.bytes;
        Self {
            name,
            is_ours,
            offline_s: prepares.then_some(row.offline_s),
            online_s: row.online_s,
            bytes: bytes.total(),
            online_bytes: prepares.then_some(bytes.online_up + bytes.online_down),
            kept: (row.client_stored_bytes > 0).then_some(row.client_stored_bytes),
            extrapolated: row.extrapolated,
            command: Some(&table.provenance.command),
        }
    }

    /// Returns the seconds of both phases.
    pub(super) fn seconds(&self) -> f64 {
        self.offline_s.unwrap_or_default() + self.online_s
    }
}

/// Returns all answers, if a scheme of ours was measured at the paper's size; otherwise none.
pub(super) fn answers(records: &Records) -> Vec<AnswerCost<'_>> {
    let subject = Subject::main();
    let mut answers = Vec::new();
    let size = paper::SIZES.iter().find(|s| s.model == subject.model);
    let totals = paper::totals(PAPERS).filter(|_| subject.tokens == TOKENS);
    if let (Some(size), Some((offline_s, online_s))) = (size, totals) {
        answers.push(AnswerCost {
            name: "the paper".into(),
            offline_s,
            online_s,
            bytes: (size.messages * 1e9) as u64,
            ..AnswerCost::default()
        });
    }
    for (name, table, row) in of_peers(records, subject) {
        answers.push(AnswerCost::of(name.to_owned(), false, (table, row)));
    }
    let mut plain = None;
    for scheme in OURS {
        let entrant = Entrant::Scheme(scheme);
        let Some((table, row)) = records.row(subject, entrant) else {
            continue;
        };
        plain = Some(row.plaintext_s);
        answers.push(AnswerCost::of(scheme.name().to_owned(), true, (table, row)));
        let together = records.together(subject).into_iter();
        let together = together.filter(|(e, _, row)| *e == entrant && row.bundles > 1);
        for (_, table, row) in together {
            let name = format!("{}, one of {}", scheme.name(), row.bundles);
            answers.push(AnswerCost::of(name, true, (table, row)));
        }
    }
    let Some(online_s) = plain else {
        return Vec::new();
    };
    answers.push(AnswerCost {
        name: "float, nothing private".into(),
        is_ours: true,
        online_s,
        ..AnswerCost::default()
    });
    answers
}
