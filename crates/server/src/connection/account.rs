//! For whom a session counts, and what it may have.
//!
//! With access tokens an account is the token's, under every pseudonym that its owner draws;
//! without, it is the pseudonym's. A limit is looked at twice: before anything is done for a
//! request, so that a client that may have no more costs nothing and loses nothing; and where it is
//! counted, durably and together with what it is counted for, because others of the same account
//! may be at it. An answer is promised in between, before the client spends its half ([`Promise`]).

use super::refusals::store_refusal;
use super::{Connection, Step};
use crate::promises::Promise;
use crate::tokens::TokenLine;
use primer_service::message::Refusal;
use primer_store::{Account, Allowances, Charge, Counted, unix_now};

/// For whom a session counts.
#[derive(Default)]
pub(super) struct Caller {
    /// Its access token, if they are asked for.
    token: Option<TokenLine>,
    /// The account of its pseudonym.
    pseudonym: [u8; 32],
}

impl Caller {
    pub(super) fn new(token: Option<TokenLine>, pseudonym: [u8; 32]) -> Self {
        Self { token, pseudonym }
    }

    /// Returns what logs and metrics call its token.
    pub(super) fn label(&self) -> Option<String> {
        self.token.as_ref().map(TokenLine::label)
    }

    fn account(&self) -> Account {
        match &self.token {
            Some(token) => token.account(),
            None => Account {
                id: self.pseudonym,
                lasting: false,
            },
        }
    }
}

impl<'a> Connection<'a> {
    /// Returns what the session may have, by the file of tokens as it was read last; refuses it
    /// everything if its token was withdrawn.
    pub(super) fn allowances(&self) -> Step<Allowances> {
        let server = self.shared.limits.allowances;
        match (&self.shared.access, &self.caller.token) {
            (Some(access), Some(token)) => {
                let limits = access.limits_of(token).ok_or(Refusal::Token)?;
                Ok(limits.or(server))
            }
            _ => Ok(server),
        }
    }

    /// Charges `number` more to this session's account.
    pub(super) fn charge(&self, what: Counted, number: usize) -> Step<Charge> {
        let allowances = self.allowances()?;
        Ok(Charge {
            account: self.caller.account(),
            what,
            number: number as u64,
            allowance: match what {
                Counted::Prepared => allowances.prepared,
                Counted::Answers => allowances.answers,
            },
        })
    }

    /// Refuses what would be more than the session may have; counts nothing.
    pub(super) fn check_limit(&self, what: Counted, number: usize) -> Step<()> {
        let charge = self.charge(what, number)?;
        let counts = self.shared.store.counts(&charge.account.id);
        let counts = counts.map_err(store_refusal)?;
        let now = unix_now();
        let days = counts.days_ahead(what, now);
        if days > 1 {
            tracing::warn!(
                connection = self.slot.number(),
                token = self.caller.label(),
                days,
                "this client's usage was counted for a day in the future: the clock was ahead \
                 then, or is behind now"
            );
        }
        counts.check(&charge, now).map_err(store_refusal)
    }

    /// Promises `number` more, or refuses what would be more than the session may have.
    pub(super) fn promise(&self, what: Counted, number: usize) -> Step<Promise<'a>> {
        let charge = self.charge(what, number)?;
        let shared = self.shared;
        let promised = shared.promises.make(&shared.store, charge, unix_now());
        promised.map_err(store_refusal)
    }
}
