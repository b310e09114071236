//! Which tokens are padding: the client's secret, shared in two ways.
//!
//! * **As residues**: `m` is one for a padded token, and the parties hold `m̂ + ρ = m`. What is
//!   linear in it (scores that are lowered, tokens that are kept) each party computes alone.
//! * **As bits**, where scores are looked up as they are: whether a token counts is `κ ⊕ π`, with
//!   `π` the client's and known offline. Look-ups take both bits (`primer_stops::lookup`).
//!
//! ```text
//! online   client -> server   m̂ = m - ρ            41 bits a token
//!                             κ = (1 - m) ⊕ π       1 bit a token, if a look-up asks for it
//! ```
//!
//! **Learned:** nothing: `ρ` and `π` are uniform, drawn for one bundle and used for this alone.

use crate::error::Result;
use crate::program::Program;
use crate::seeds::{Seeds, Use};
use crate::share::Share;
use primer_ot::Bits;
use primer_ring::modulus::{self, K, P};
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::kind::protocol::{COUNTED, PADDING};

/// A party's shares of the padding.
pub(crate) struct Padding {
    /// A residue for each token.
    pub(crate) residues: Share,
    /// A bit for each token: of whether it counts.
    pub(crate) bits: Bits,
}

impl Padding {
    /// Draws the client's shares.
    pub(crate) fn draw(program: &Program, seeds: &Seeds) -> Self {
        let tokens = program.plan().graph().tokens;
        let random = seeds.bytes_for(Use::Counted, tokens);
        Self {
            residues: seeds.share(Use::Padding, 1, tokens),
            bits: Bits::from_fn(tokens, |t| random[t] & 1 == 1),
        }
    }

    /// Returns the server's shares, from the client's and the text.
    pub(crate) fn of(&self, input: &Input) -> Self {
        let padded = |t: usize| t >= input.length;
        Self {
            residues: Share::from_fn(1, self.residues.cols(), |_, t| {
                modulus::sub(u64::from(padded(t)), self.residues.get(0, t))
            }),
            bits: Bits::from_fn(self.bits.len(), |t| !padded(t) ^ self.bits.get(t)),
        }
    }

    /// Sends the server's shares.
    pub(crate) fn send(&self, channel: &mut Channel, program: &Program) -> Result<()> {
        channel.send_residues(PADDING, K, self.residues.data().iter().copied())?;
        if program.counts_tokens() {
            channel.send(COUNTED, self.bits.bytes())?;
        }
        Ok(())
    }

    /// Receives the server's shares.
    pub(crate) fn receive(channel: &mut Channel, program: &Program) -> Result<Self> {
        let tokens = program.plan().graph().tokens;
        let mut residues = Share::zeros(1, tokens);
        channel.recv_residues(PADDING, K, P, residues.data_mut())?;
        let mut bytes = vec![0; tokens.div_ceil(8)];
        if program.counts_tokens() {
            channel.recv_exact(COUNTED, &mut bytes)?;
        }
        Ok(Self {
            residues,
            bits: Bits::from_bytes(bytes, tokens)?,
        })
    }
}
