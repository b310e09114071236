//! What a store counted for each token.

use super::FileArgs;
use crate::command::shared::SharedArgs;
use anyhow::Result;
use primer::server::{TokenLine, list_tokens};
use primer_measure::console::output;
use primer_measure::{note, warning};
use primer_store::{Allowance, Counting, Counts, Store, Tally, unix_now};
use serde_json::{Value, json};
use std::path::Path;

/// Tokens and their counts.
pub(super) struct Counted {
    tokens: Vec<(TokenLine, Counts)>,
    /// Of clients that showed none of these tokens.
    others: Vec<Counts>,
    now: u64,
}

impl Counted {
    /// Asks the store for the counts of some tokens; there are none if nothing was served yet.
    pub(super) fn of(tokens: Vec<TokenLine>, file: &FileArgs, shared: &SharedArgs) -> Result<Self> {
        let all = match store(file, shared)? {
            Some(store) => {
                let all = store.all_counts();
                store.leave();
                all?
            }
            None => Vec::new(),
        };
        let of = |id: [u8; 32]| move |one: &&Counting| one.account.id == id;
        let known = tokens.into_iter().map(|token| {
            let found = all.iter().find(of(token.account().id));
            let counts = found.map(|one| one.counts).unwrap_or_default();
            (token, counts)
        });
        let tokens: Vec<_> = known.collect();
        let listed = |one: &Counting| tokens.iter().any(|(t, _)| t.account() == one.account);
        let others = all.iter().filter(|one| !listed(one)).map(|one| one.counts);
        Ok(Self {
            others: others.collect(),
            tokens,
            now: unix_now(),
        })
    }

    /// Reads the file, and warns of what is wrong with it.
    pub(super) fn all(path: &Path, file: &FileArgs, shared: &SharedArgs) -> Result<Self> {
        let (tokens, fault) = list_tokens(path)?;
        if let Some(fault) = fault {
            warning!("primer: {fault}");
        }
        Self::of(tokens, file, shared)
    }

    /// Tells all of it.
    pub(super) fn tell(&self, json: bool) -> Result<()> {
        if json {
            let tokens: Vec<_> = self.tokens.iter().map(|one| self.as_json(one)).collect();
            let sum = |of: fn(&Counts) -> u64| self.others.iter().map(of).sum::<u64>();
            return output::line(json!({
                "tokens": tokens,
                "others": {
                    "accounts": self.others.len(),
                    "prepared": sum(|counts| counts.prepared.in_all),
                    "answers": sum(|counts| counts.answers.in_all),
                },
            }));
        }
        let mut each = self.tokens.iter();
        each.try_for_each(|one| output::line(self.as_text(one)))?;
        if !self.others.is_empty() {
            let accounts = self.others.len();
            note!("and {accounts} accounts of tokens that are gone, or of clients without one");
        }
        Ok(())
    }

    /// Tells of its only token.
    pub(super) fn tell_one(&self, json: bool) -> Result<()> {
        let mut each = self.tokens.iter();
        each.try_for_each(|one| match json {
            true => output::line(self.as_json(one)),
            false => output::line(self.as_text(one)),
        })
    }

    fn as_json(&self, (token, counts): &(TokenLine, Counts)) -> Value {
        let tally = |tally: &Tally, limit: Option<Allowance>| {
            json!({
                "today": tally.today(self.now), "in_all": tally.in_all,
                "limit": limit.map(|limit| limit.to_string()),
            })
        };
        json!({
            "name": token.name, "id": token.id(),
            "answers": tally(&counts.answers, token.limits.answers),
            "prepared": tally(&counts.prepared, token.limits.prepared),
        })
    }

    fn as_text(&self, (token, counts): &(TokenLine, Counts)) -> String {
        let tally = |tally: &Tally, limit: Option<Allowance>| {
            let (today, in_all) = (tally.today(self.now), tally.in_all);
            let limit = limit.map_or("limit: the server's".into(), |l| format!("limit: {l}"));
            format!("{today} today, {in_all} in all ({limit})")
        };
        format!(
            "{}  answers {}  prepared {}  {}",
            token.id(),
            tally(&counts.answers, token.limits.answers),
            tally(&counts.prepared, token.limits.prepared),
            token.name
        )
    }
}

/// Opens the store that replicas share, or the one of the server here. Looking makes nothing.
fn store(file: &FileArgs, shared: &SharedArgs) -> Result<Option<Store>> {
    if let Some(options) = shared.fleet("primer token")? {
        return Ok(Some(Store::connect(options)?));
    }
    let dir = file.state()?.path("server/store");
    match dir.exists() {
        true => Ok(Some(Store::open(dir)?)),
        false => Ok(None),
    }
}
