//! Silent linear steps: the client's masks times the server's weights, for which nothing comes
//! back.
//!
//! **Relation.** The client holds `r`, and they want shares of `r·W` ([`crate::linear`]).
//!
//! ```text
//! once      server -> client   the hint of the model (primer_hint), the same for all clients
//! offline   client             draws a secret for each value; r comes out of a lattice function
//!           client -> server   one message for each value and 256 rows of it
//!           client             computes y from the hint, server z from the message
//! ```
//!
//! `y + z = r·W` up to an error of some ten thousand units of Z_p, which free truncation drops; the
//! derivation is in `docs/rlwe.md`. **Bytes:** 339,200 up for each value and 256 rows, offline;
//! none down, none online. **Rounds:** none. **Learned:** nothing, under ring LWE: the server sees
//! samples of it, and the client is never answered.
//!
//! **Rows.** All weights that read a value are multiplied together ([`crate::hints`]). The rows of
//! all bundles lie below each other and are cut into groups of 256, each with a secret of its own:
//! row `t` of bundle `b` is row `b·rows + t` of all.
//!
//! **Once.** The secrets come from seeds that are drawn for one preparation and live as long as it
//! does. What is stored is the masks themselves, so a bundle that is stolen tells nothing about its
//! neighbours. Only values that linear steps read are masked this way. What products of secrets
//! read has masks from the bundle's seed: these multiply without an error.

use crate::compiled::CompiledStep;
use crate::error::Result;
use crate::hints::{Hints, Reader, number};
use crate::linear::{Scaling, size};
use crate::masks::Masks;
use crate::program::Program;
use crate::session::See;
use crate::share::Share;
use primer_hint::client::Batch;
use primer_hint::multipliers::Multipliers;
use primer_hint::params::{LANES, MESSAGE_BYTES};
use primer_hint::published::Published;
use primer_hint::server::Received;
use primer_ring::prg::{Prg, SecretSeed};
use primer_wire::Channel;
use primer_wire::kind::protocol::MASK_SECRET;
use std::collections::HashMap;
use zeroize::Zeroizing;

/// How the rows of a value of several bundles lie in groups.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) bundles: usize,
    /// Of one bundle.
    pub(crate) each: usize,
}

impl Rows {
    /// Counts the groups.
    pub(crate) const fn groups(self) -> usize {
        (self.bundles * self.each).div_ceil(LANES)
    }

    /// Returns the rows of a group.
    const fn of_group(self, group: usize) -> usize {
        let left = self.bundles * self.each - group * LANES;
        if left < LANES { left } else { LANES }
    }

    /// Takes the first rows of each bundle, and some columns, out of matrices that have a group
    /// each.
    fn split(self, groups: &[Share], rows: usize, columns: std::ops::Range<usize>) -> Vec<Share> {
        let of = |bundle: usize| {
            let mut out = Share::zeros(rows, columns.len());
            for t in 0..rows {
                let row = bundle * self.each + t;
                let from = groups[row / LANES].row(row % LANES);
                out.row_mut(t).copy_from_slice(&from[columns.clone()]);
            }
            out
        };
        (0..self.bundles).map(of).collect()
    }
}

/// Products of masks that are being added up: of each step, how many terms are missing, and the sum
/// of the others, for each bundle.
#[derive(Default)]
struct Sums(HashMap<usize, (usize, Vec<Share>)>);

impl Sums {
    /// Adds a term. After the last one of a step, returns the sum.
    fn add(
        &mut self,
        program: &Program,
        reader: &Reader,
        rows: Rows,
        groups: &[Share],
    ) -> Option<Vec<Share>> {
        let CompiledStep::Linear(linear) = program.compiled(reader.step) else {
            unreachable!("only linear steps read by hints");
        };
        let (out_rows, _) = size(program.plan(), program.step(reader.step).output());
        let mut parts = rows.split(groups, out_rows, reader.columns.clone());
        let shift = match linear.terms[reader.term].scaling {
            Scaling::Dense(shift) => shift,
            // A checked plan has gains and means of one scale here.
            Scaling::Diagonal { gain, .. } => gain,
        };
        parts.iter_mut().for_each(|part| part.shift(shift));
        let (mut missing, sum) = match self.0.remove(&reader.step) {
            None => (linear.terms.len(), parts),
            Some((missing, mut sum)) => {
                for (sum, part) in sum.iter_mut().zip(&parts) {
                    sum.add(part);
                }
                (missing, sum)
            }
        };
        missing -= 1;
        if missing == 0 {
            return Some(sum);
        }
        self.0.insert(reader.step, (missing, sum));
        None
    }
}

/// The client's secrets of one preparation.
pub(crate) struct ClientSecrets<'a> {
    program: &'a Program,
    hints: &'a Hints,
    hint: &'a Published,
    bundles: usize,
    threads: usize,
    /// Of each group. No two preparations share one, and none is stored.
    seeds: Zeroizing<Vec<SecretSeed>>,
    sums: Sums,
}

impl<'a> ClientSecrets<'a> {
    /// Draws the seeds of a preparation.
    pub(crate) fn draw(
        program: &'a Program,
        hint: &'a Published,
        (bundles, threads): (usize, usize),
        rng: &mut Prg,
    ) -> Self {
        let rows = Rows {
            bundles,
            each: program.plan().graph().tokens,
        };
        let mut seeds = Zeroizing::new(vec![SecretSeed::default(); rows.groups()]);
        seeds.fill_with(|| rng.secret_seed());
        Self {
            program,
            hints: program.hints(),
            hint,
            bundles,
            threads,
            seeds,
            sums: Sums::default(),
        }
    }

    /// Returns the first step that reads an entry's value.
    pub(crate) fn first_reader(&self, entry: usize) -> usize {
        self.hints.readers()[entry].terms[0].step
    }

    fn rows(&self, entry: usize) -> Rows {
        self.hints.rows(self.program, entry, self.bundles)
    }

    /// Draws the secrets of an entry's value: of each group, with its rows.
    fn batches(&self, entry: usize) -> impl Iterator<Item = (Batch, usize)> {
        let value = number(self.hints.readers()[entry].owner);
        let rows = self.rows(entry);
        let seeds = self.seeds.iter().take(rows.groups()).enumerate();
        seeds.map(move |(group, seed)| {
            let batch = Batch::new(&self.hint.identity().name, value, seed);
            (batch, rows.of_group(group))
        })
    }

    /// Computes the masks of an entry's value, of each bundle.
    pub(crate) fn masks(&self, entry: usize) -> Vec<Share> {
        let rows = self.rows(entry);
        let columns = self.hints.contents().entries()[entry].features;
        let groups = self.batches(entry);
        let groups = groups.map(|(batch, rows)| batch.masks(rows, columns, self.threads).into());
        rows.split(&groups.collect::<Vec<Share>>(), rows.each, 0..columns)
    }

    /// Sends the messages of an entry's value.
    pub(crate) fn send(&self, channel: &mut Channel, entry: usize) -> Result<()> {
        for (batch, _) in self.batches(entry) {
            channel.send(MASK_SECRET, &batch.message())?;
        }
        Ok(())
    }

    /// Computes the client's shares of everything that reads an entry's value. Steps that have all
    /// of their terms then are known to the masks. `see` gets each.
    pub(crate) fn multiply(
        &mut self,
        entry: usize,
        masks: &mut [Masks],
        see: &mut See<'_>,
    ) -> Result<()> {
        let hint = self.hint.hint(self.hints.contents(), entry)?;
        let groups: Vec<Share> = self
            .batches(entry)
            .map(|(batch, rows)| batch.shares(rows, &hint, self.threads).into())
            .collect();
        let rows = self.rows(entry);
        for reader in &self.hints.readers()[entry].terms {
            if let Some(sum) = self.sums.add(self.program, reader, rows, &groups) {
                let output = self.program.step(reader.step).output();
                for (masks, share) in masks.iter_mut().zip(sum) {
                    see(output, &share);
                    masks.insert(output, share);
                }
            }
        }
        Ok(())
    }
}

/// Receives the messages of an entry's value: a client's bytes, of the length that they must have.
pub(crate) fn receive(channel: &mut Channel, rows: Rows) -> Result<Vec<Vec<u8>>> {
    let one = |_| {
        let mut bytes = vec![0; MESSAGE_BYTES];
        channel.recv_exact(MASK_SECRET, &mut bytes)?;
        Ok(bytes)
    };
    (0..rows.groups()).map(one).collect()
}

/// The server's multiplications of one preparation.
pub(crate) struct ServerProducts<'a> {
    program: &'a Program,
    hints: &'a Hints,
    multipliers: &'a Multipliers,
    bundles: usize,
    threads: usize,
    sums: Sums,
}

impl<'a> ServerProducts<'a> {
    pub(crate) fn new(
        program: &'a Program,
        multipliers: &'a Multipliers,
        (bundles, threads): (usize, usize),
    ) -> Self {
        Self {
            program,
            hints: program.hints(),
            multipliers,
            bundles,
            threads,
            sums: Sums::default(),
        }
    }

    /// Computes the server's shares of everything that reads an entry's value, and returns those of
    /// steps that have all of their terms then: the step, and a share for each bundle.
    pub(crate) fn multiply(
        &mut self,
        entry: usize,
        messages: &[Vec<u8>],
    ) -> Result<Vec<(usize, Vec<Share>)>> {
        let rows = self.hints.rows(self.program, entry, self.bundles);
        let shares = messages.iter().enumerate().map(|(group, message)| {
            let (received, lanes) = (Received::decode(message)?, rows.of_group(group));
            let shares = self
                .multipliers
                .shares(entry, lanes, &received, self.threads)?;
            Ok(shares.into())
        });
        let groups = shares.collect::<Result<Vec<Share>>>()?;
        let mut whole = Vec::new();
        for reader in &self.hints.readers()[entry].terms {
            let sum = self.sums.add(self.program, reader, rows, &groups);
            whole.extend(sum.map(|sum| (reader.step, sum)));
        }
        Ok(whole)
    }
}
