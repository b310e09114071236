//! Look-ups: functions of a short index, without a gate.
//!
//! After truncation the server holds `a` and the client `b`, known offline, with the index
//! `x = a + b mod N`, `N = 2^m` from 16 to 1024. The tables of [`primer_plan::function::Lookup`]
//! are public. The parties are to have shares of `f(x)` modulo p, of which the client's is its new
//! mask `r`.
//!
//! **Offline.** The parties make strings `E_s`, `E_c` of `N` bits that differ only at the place
//! `u + b`, for a random `u` that the server draws ([`primer_ot::onehot`]). Nothing else depends on
//! `N`.
//!
//! **Online, as numbers.** The server sends `δ = a - u`. Shifted by δ the strings differ at `x`.
//! Each party adds up the entries that its string selects ([`primer_ring::select`]), and since all
//! but one of them are selected by both or by neither,
//!
//! ```text
//! S_s - S_c = σ·f(x)          S = Σ_j E[j]·f(j + δ)          σ = +1 or -1
//! ```
//!
//! The sign says which of the two strings has the bit set, so it is the difference of their numbers
//! of ones, `σ = s - c`. Neither party may know it: with its string a party would learn from σ
//! whether the place is one of its zeros or one of its ones. But each party knows one of its two
//! factors. Modulo 4, `s = c + 1 + 2t` with `σ = 1 - 2t`, so
//!
//! ```text
//! t = t_s ⊕ t_c      t_s = second bit of s,  t_c = second bit of c + 1
//! σ = σ_s·σ_c        σ_s = 1 - 2·t_s,        σ_c = 1 - 2·t_c
//!
//! f(x) = σ·(S_s - S_c) = σ_c·A - σ_s·B        A = σ_s·S_s,   B = σ_c·S_c
//! ```
//!
//! Each product is a bit that one party knows offline times a number that the other knows online: a
//! transfer in each direction ([`primer_ot::pads`]). The client's answer carries its mask as well:
//!
//! ```text
//! server -> client   δ, and  τ = -2A + k_0 - k_1              m + 41 bits
//! client             g = k_0 + t_c·(-2A)
//! client -> server   the choice of  g - B - r  and  g + B - r   by t_s     2·41 bits
//! server             A - k_0 + (its choice)  =  f(x) - r
//! ```
//!
//! One round trip; 16.4 bytes for an index of 8 bits.
//!
//! **Elements that may not count** ([`Lookups::counted`]). The powers of padded keys are zero, and
//! which keys are padding is the client's secret, known when the text is. With the text the client
//! sends `κ = counts ⊕ π`, one bit for each key, where `π` is random and known offline, so that `κ`
//! reveals nothing. The result is to be `counts·f(x)`. For the client's own number `B` that is
//! easy: it takes zero instead. For the server's number `A`, with `t' = t_c ⊕ π` and
//! `σ' = 1 - 2t'`,
//!
//! ```text
//! counts·σ_c  =  (σ_c - σ')/2  if κ = 0,      (σ_c + σ')/2  if κ = 1
//! counts·σ_c·A  =  κ·A - t_c·A + (1 - 2κ)·t'·A
//! ```
//!
//! so a second transfer to the client, whose choice is `t'`, takes its place beside the first:
//! `τ = -A + …` and `τ' = (1 - 2κ)·A + …`, 41 bits more. An element's share then has one bit more
//! than its index, on top: `π` at the client, and at the server `κ`, which it sends along with δ.
//!
//! **Several tables on one index** share the strings, δ and the choices. Each has pads of its own.
//!
//! **Online, as bits.** The parity of what a string selects needs no sign: if the entries are bits,
//! the XOR of both parties' parities is `f(x)`. Range flags are such bits ([`crate::flags`]).
//!
//! Who learns what: the client sees δ, masked by `u`, and τ, masked by the pad that it lacks; the
//! server sees the message of its choice, masked by `r`, and the other one, masked by the pad that
//! *it* lacks. All of them are uniform. `docs/protocol/lookup.md` has the sources and the bound.
//!
//! **Bytes** of `n` look-ups in `T` tables, with `X(c)` an extension by `c` transfers, `h` the
//! header of a frame, 8 bytes, and a place of `m` bits cut into `l` lower and `h'` upper ones
//! ([`primer_ot::onehot`]); a chunk of `c` elements is what has 2^19 transfers:
//!
//! ```text
//! offline   each chunk         down   extension for the strings         h + X(m·c)
//!                              up     corrections of places             h + c·(l·2^(l-4) + tail)
//!           with 2^h' blocks   both   extensions by marks               h + X(c·(2^h' - 1)) each
//!                              both   blocks                            h + c·2^(l-3) each
//!           all                up     extension, choices t_c            h + X(n)
//!                              down   extension, choices t_s            h + X(n)
//! online                       down   δ                                 h + ⌈m·n/8⌉
//!                              down   τ                                 h + ⌈41·n·T/8⌉
//!                              up     two messages each                 h + ⌈82·n·T/8⌉
//! kept                         both   strings, choices, residues        n·N/8, ⌈n/8⌉, 3 a result
//!                              server offsets                           ⌈m·n/8⌉
//! ```
//!
//! No branch and no address depends on a share: every entry is read, and δ, which both parties
//! know, only determines where reading starts.

mod client;
mod server;

use crate::bytes::StoredBytes;
use crate::error::{Result, StopError, unusable};
use crate::flags::FlagShares;
use crate::stop::{Stop, Turn};
use crate::transfers::Transfers;
use primer_garble::stop::CircuitError;
use primer_ot::cost::{extension_as, onehot, onehot_rounds};
use primer_ot::onehot::Shape;
use primer_plan::function::{Function, Lookup};
use primer_ring::modulus;
use primer_ring::pack::packed_len;
use primer_ring::select::{Columns, Numbers};
use primer_ring::wipe::SecretBytes;
use primer_wire::PhaseBytes;
use primer_wire::frame::HEADER_BYTES;
use std::io::Read;
use zeroize::Zeroizing;

/// Results of a stop, at most: four times the scores of a layer of BERT-large at 512 tokens. The
/// client holds its material, about 50 bytes for each at 256 entries, in memory.
pub const MAX_RESULTS: u64 = 1 << 24;

/// Fails if `elements` elements with `each` results have more results than any model needs.
pub(crate) fn check_results(elements: u64, each: usize) -> Result<()> {
    let amount = u128::from(elements) * each as u128;
    if amount > u128::from(MAX_RESULTS) {
        return Err(StopError::Limit {
            stop: NAME,
            instances: elements,
            what: "results",
            amount,
            limit: MAX_RESULTS,
        });
    }
    Ok(())
}

/// Some look-ups of one index each.
pub struct Lookups {
    shape: Shape,
    index_bits: u32,
    elements: usize,
    tables: Vec<Numbers>,
    /// The range flag as a table of one bit.
    flag: Option<Columns>,
    /// Whether there may be elements that do not count.
    counted: bool,
    transfers: Transfers,
}

impl Lookups {
    /// Makes `elements` look-ups in the same tables.
    ///
    /// # Errors
    /// [`StopError::Circuit`] if the function is not usable, [`StopError::Limit`] if there is
    /// more of it than any model needs. Nothing is allocated for the elements before this check.
    pub fn new(lookup: &Lookup, elements: u64) -> Result<Self> {
        let valid = Function::Lookup(lookup.clone()).validate();
        valid.map_err(CircuitError::from)?;
        check_results(elements, lookup.tables.len())?;
        let flag = lookup.is_flagged().then(|| {
            let indices = 0..1i64 << lookup.index_bits;
            let flags: Vec<i64> = indices.map(|index| lookup.flag(index).into()).collect();
            Columns::new(&flags, 1)
        });
        Ok(Self {
            shape: Shape::new(lookup.index_bits)?,
            index_bits: lookup.index_bits,
            elements: elements as usize,
            tables: (lookup.tables.iter())
                .map(|table| Numbers::new(table.entries()))
                .collect(),
            flag,
            counted: false,
            transfers: Transfers::default(),
        })
    }

    /// Returns the same look-ups with zero results for elements that do not count: shares have one
    /// bit more, on top, and the XOR of these bits says whether an element counts.
    #[must_use]
    pub fn counted(self) -> Self {
        Self {
            counted: true,
            ..self
        }
    }

    /// Returns the same stop on transfers of other variants.
    #[must_use]
    pub fn over(self, transfers: impl Into<Transfers>) -> Self {
        let transfers = transfers.into();
        Self { transfers, ..self }
    }

    /// Returns the number of results of an element.
    fn each(&self) -> usize {
        self.tables.len()
    }

    /// Returns the number of transfers to the client for an element.
    fn to_client(&self) -> usize {
        1 + usize::from(self.counted)
    }

    /// Returns the number of bits of an element's share: those of its index, and whether it counts.
    fn share_bits(&self) -> u32 {
        self.index_bits + u32::from(self.counted)
    }

    /// Tells whether elements may not count and `share` has the bit for that, its top bit, set.
    fn top_bit(&self, share: u64) -> bool {
        self.counted && share >> self.index_bits & 1 == 1
    }

    /// Returns the number of bytes of all strings.
    fn strings(&self) -> u64 {
        (self.elements * self.shape.vector_bytes()) as u64
    }

    /// Reads the next `length` bytes that a party has stored.
    fn read(&self, stored: &mut dyn Read, length: u64) -> Result<SecretBytes> {
        let mut bytes = SecretBytes::zeros(length as usize);
        let read = stored.read_exact(&mut bytes);
        read.map_err(|error| unusable(self.name(), error))?;
        Ok(bytes)
    }

    /// Adds up what a party's strings, which come next in its store, select from all tables, with
    /// the results of an element side by side. Returns the sums and the party's shares of the range
    /// flags. Strings are most of what is stored, so they are read a part at a time into the same
    /// buffer.
    fn selected(
        &self,
        stored: &mut dyn Read,
        deltas: &[u16],
    ) -> Result<(Zeroizing<Vec<u64>>, FlagShares)> {
        let (each, bytes) = (self.each(), self.shape.vector_bytes());
        let some = (STRINGS_AT_ONCE / bytes).min(deltas.len()).max(1);
        // In words: those are wiped faster than bytes.
        let mut words = Zeroizing::new(vec![0u64; (some * bytes).div_ceil(8)]);
        let mut room = Zeroizing::new(vec![0; some]);
        let mut sums = Zeroizing::new(vec![0; deltas.len() * each]);
        let mut flags = FlagShares::with_capacity(self.flags());
        for (deltas, sums) in deltas.chunks(some).zip(sums.chunks_mut(some * each)) {
            let strings = &mut bytemuck::cast_slice_mut(&mut words)[..deltas.len() * bytes];
            let read = stored.read_exact(strings);
            read.map_err(|error| unusable(self.name(), error))?;
            self.select(strings, deltas, sums, &mut room);
            if let Some(flag) = &self.flag {
                for (string, &delta) in strings.chunks_exact(bytes).zip(deltas) {
                    flags.push(flag.parities(string, delta) == 1);
                }
            }
        }
        Ok((sums, flags))
    }

    /// Computes the sums of some strings into `sums`; `room` has space for one number for each
    /// string.
    fn select(&self, strings: &[u8], deltas: &[u16], sums: &mut [u64], room: &mut [u64]) {
        if let [table] = &self.tables[..] {
            return table.sums(strings, deltas, sums);
        }
        let room = &mut room[..deltas.len()];
        for (l, table) in self.tables.iter().enumerate() {
            table.sums(strings, deltas, room);
            let places = sums.iter_mut().skip(l).step_by(self.each());
            places.zip(room.iter()).for_each(|(sum, new)| *sum = *new);
        }
    }
}

pub(crate) const NAME: &str = "look-up";

/// Bytes of strings that are in memory at once, online.
const STRINGS_AT_ONCE: usize = 256 << 10;

/// Counts the ones of a string, modulo 4.
fn ones(string: &[u8]) -> u8 {
    let ones: u32 = string.iter().map(|byte| byte.count_ones()).sum();
    (ones & 3) as u8
}

/// Returns `number`, or its negative where `mask` is all ones.
fn negated_if(mask: u64, number: u64) -> u64 {
    modulus::neg(number) & mask | number & !mask
}

/// Returns the number of bytes of `values` values of `width` bits packed together.
fn packed(values: usize, width: u32) -> u64 {
    packed_len(values, width).expect("the limit keeps results countable") as u64
}

impl Stop for Lookups {
    fn name(&self) -> &'static str {
        NAME
    }

    fn elements(&self) -> usize {
        self.elements
    }

    fn outputs(&self) -> usize {
        self.elements * self.each()
    }

    fn flags(&self) -> usize {
        match self.flag {
            Some(_) => self.elements,
            None => 0,
        }
    }

    fn bytes(&self) -> PhaseBytes {
        let (n, results) = (self.elements, self.outputs());
        let Transfers {
            to_client,
            to_server,
        } = self.transfers;
        let [strings_up, strings_down] = onehot([to_client, to_server], &self.shape, n);
        // Pads are an extension in each direction.
        let pads = |variant, n| extension_as(variant, n).from_receiver;
        let down = self.to_client();
        PhaseBytes {
            offline_up: strings_up + pads(to_client, down * n),
            offline_down: strings_down + pads(to_server, n),
            online_up: HEADER_BYTES + packed(2 * results, modulus::K),
            online_down: HEADER_BYTES
                + packed(n, self.share_bits())
                + HEADER_BYTES
                + packed(down * results, modulus::K),
        }
    }

    /// Counts what each party keeps: its strings, the pads of both directions and the bits that
    /// chose among them; the server also its offsets.
    fn stored(&self) -> StoredBytes {
        let (n, results, down) = (self.elements, self.outputs(), self.to_client());
        let residues = |count| packed(count, modulus::K);
        StoredBytes {
            client: self.strings()
                + packed(down * n, 1)
                + residues(down * results)
                + residues(2 * results),
            server: self.strings()
                + packed(n, self.index_bits)
                + residues(2 * down * results)
                + packed(n, 1)
                + residues(results),
        }
    }

    /// Returns `true` because of the strings: they take `N/8` bytes for each element, everything
    /// else some twenty.
    fn streams(&self) -> bool {
        true
    }

    /// Returns the messages of the strings, where for each chunk the server extends and the client
    /// corrects, once more for the last chunk; then those of the pads, for which both extend.
    fn turns(&self) -> Vec<Turn> {
        let mut turns = [Turn::Down, Turn::Up].repeat(onehot_rounds(&self.shape, self.elements));
        turns.extend([Turn::Up, Turn::Down]);
        turns
    }
}
