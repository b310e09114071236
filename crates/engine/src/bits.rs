//! The input as bits: what the client says of its text.
//!
//! A one-hot row times the embedding table is one row of the table. Sent like any other masked
//! value, a token would take 41 bits for every word that there is. But to select a row takes one
//! bit a word, and the rest can be said before there is a text.
//!
//! **Relation.** The table `T` has rows for words, token types and positions. Token `t` has the
//! word `w`, the type `k` and the position `t`; its embedding is `x = T[w] + T[k] + T[t]`. Silent
//! steps ([`crate::silent`]) leave the client with a mask `r` of a row of as many columns and with
//! `y`, the server with `z`, and `y + z = r·T`. What is one is written as `one`, a power of two.
//!
//! ```text
//! offline   client             draws B, a bit for each word, ρ, a residue for each type and for
//!                              the position, and a sign π
//!           client -> server   m - r, with m = (-one·B, ρ for types and position t, else 0)
//!           server             z + (m - r)·T: the parties have shares of m·T
//! online    client -> server   C = B ⊕ e_w                            a bit for each word
//!                              f = σ·π, with σ = 1 - 2·B[w]           a bit
//!                              σ·one·e_k - ρ, σ·one - ρ               41 bits a type, and 41
//!           server             one·C·T: adds up the rows that C selects; and few products
//! ```
//!
//! `C - B` is `σ·e_w`: where `B[w]` was zero it is one now, and where it was one the other way
//! round. So the parties end with shares of `one·σ·x`: the embedding, with a random sign.
//!
//! **The sign comes off in LayerNorm**
//! ([`Graph::signed`](primer_plan::graph::Graph::signed)). It cannot be opened, as that would tell
//! `B[w]` and with it, of all words, which half `w` belongs to. Its squares do not see the sign.
//! The root is garbled by the client, which has its circuits open `π·root`
//! ([`primer_stops::ClientStop::prepare_signed`]); and in front of its requantisation each party
//! negates its share of the rows of `σ·x·π·root` for which `f` is minus one.
//!
//! **Learned.** Nothing. `m - r` is padded by `r`, which serves for nothing else; `C` by `B`, `f`
//! by `π`, the residues by `ρ`, and the bundle's seed gives these for one inference. That `C` and
//! `f` together have a bit of `B` in common does not matter: `π` is in `f` alone, and the circuits
//! hide it.
//!
//! **Bytes.** Offline up 41 bits for each row of the table and token; online up one bit for each
//! word and token, one for its sign, 41 for each type and 41. Neither party keeps anything of it
//! but what it keeps of any silent step: the client draws its bits again.

use crate::error::{ProtocolError, Result};
use crate::linear::{Scaling, Term};
use crate::seeds::{Seeds, Use};
use crate::server::ServerModel;
use crate::share::Share;
use primer_plan::graph::Graph;
use primer_ring::matrix::{Matrix, Scratch, product_mod};
use primer_ring::modulus::{self, K, P};
use primer_ring::rows;
use primer_ring::wipe::SecretBytes;
use primer_text::Input;
use primer_wire::Channel;
use primer_wire::kind::protocol::{INPUT, INPUT_BITS, INPUT_CORRECTION};
use zeroize::Zeroizing;

/// Sizes of an input.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    tokens: usize,
    /// Words that bits select.
    vocab: usize,
    types: usize,
    /// Columns of a one-hot row: rows of the table.
    columns: usize,
}

impl Sizes {
    pub(crate) fn of(graph: &Graph) -> Self {
        Self {
            tokens: graph.tokens,
            vocab: graph.shape.vocab,
            types: graph.shape.types,
            columns: graph.one_hot(),
        }
    }

    /// Returns the bytes of a token's bits: one for each word, and one for its sign.
    const fn row(self) -> usize {
        (self.vocab + 1).div_ceil(8)
    }

    /// Returns the bytes of all bits.
    pub(crate) const fn bits_len(self) -> usize {
        self.tokens * self.row()
    }

    /// Returns the size of the residues beside the bits: of types, and of the position.
    pub(crate) const fn residues(self) -> (usize, usize) {
        (self.tokens, self.types + 1)
    }

    /// Returns the size of what corrects the mask of a bundle's rows.
    pub(crate) const fn correction(self) -> (usize, usize) {
        (self.tokens, self.columns)
    }

    /// Returns the column of a token's position.
    const fn position(self, t: usize) -> usize {
        self.vocab + self.types + t
    }

    /// Returns the columns of the residues of a token.
    fn columns_of_residues(self, t: usize) -> impl Iterator<Item = usize> {
        let types = self.vocab..self.vocab + self.types;
        types.chain(std::iter::once(self.position(t)))
    }

    /// Returns the bits of the last byte of a row that no word and no sign has.
    fn beyond(self) -> u8 {
        match (self.vocab + 1) % 8 {
            0 => 0,
            used => u8::MAX << used,
        }
    }

    /// Returns the byte of a row and the bit of it that hold the sign.
    const fn sign(self) -> (usize, u32) {
        (self.vocab / 8, (self.vocab % 8) as u32)
    }
}

/// What the client draws for the input of one inference.
pub(crate) struct Pad {
    sizes: Sizes,
    /// `B` of each token and, behind it, a bit that is set where `π` is minus one.
    strings: SecretBytes,
    /// `ρ`.
    residues: Share,
}

/// What the client says of its text.
pub(crate) struct Said {
    /// `C` of each token and, behind it, a bit that is set where `f` is minus one.
    pub(crate) bits: Vec<u8>,
    /// Types and positions, masked.
    pub(crate) residues: Share,
    /// Of each token, whether `f` is minus one.
    pub(crate) negated: Vec<bool>,
}

impl Pad {
    /// Draws it from a bundle's seed, always the same.
    pub(crate) fn draw(seeds: &Seeds, sizes: Sizes) -> Self {
        let mut strings = seeds.bytes_for(Use::Strings, sizes.bits_len());
        for row in strings.chunks_exact_mut(sizes.row()) {
            row[sizes.row() - 1] &= !sizes.beyond();
        }
        let (rows, cols) = sizes.residues();
        Self {
            sizes,
            strings,
            residues: seeds.share(Use::Input, rows, cols),
        }
    }

    /// Returns of each token whether `π` is minus one.
    pub(crate) fn signs(&self) -> Zeroizing<Vec<bool>> {
        Zeroizing::new(signs(self.sizes, &self.strings))
    }

    /// Sends `m - r`; takes `r`.
    pub(crate) fn correct(&self, channel: &mut Channel, one: u64, mask: Share) -> Result<()> {
        let sizes = self.sizes;
        let mut rows = mask.negated();
        let minus = modulus::neg(one);
        for (t, string) in self.strings.chunks_exact(sizes.row()).enumerate() {
            let row = rows.row_mut(t);
            for (i, v) in row[..sizes.vocab].iter_mut().enumerate() {
                let bit = u64::from(string[i / 8] >> (i % 8) & 1);
                *v = modulus::add(*v, minus & bit.wrapping_neg());
            }
            for (column, pad) in sizes.columns_of_residues(t).zip(self.residues.row(t)) {
                row[column] = modulus::add(row[column], *pad);
            }
        }
        Ok(channel.send_residues(INPUT_CORRECTION, K, rows.data().iter().copied())?)
    }

    /// Says what the server gets of a text. No branch and no address depends on it.
    pub(crate) fn apply(&self, one: u64, input: &Input) -> Said {
        let sizes = self.sizes;
        let mut bits = self.strings.to_vec();
        let (byte, place) = sizes.sign();
        let mut residues = Share::zeros(self.residues.rows(), self.residues.cols());
        let difference = one ^ modulus::neg(one);
        for (t, row) in bits.chunks_exact_mut(sizes.row()).enumerate() {
            let word = input.ids[t] as usize;
            // B[w]: whether σ is minus one.
            let mut minus = 0;
            for (i, byte) in row.iter_mut().enumerate() {
                let hot = u8::from(i == word / 8) << (word % 8);
                minus |= *byte & hot;
                *byte ^= hot;
            }
            let minus = u8::from(minus != 0);
            row[byte] ^= minus << place;
            let signed = one ^ (difference & u64::from(minus).wrapping_neg());
            let pads = self.residues.row(t);
            for (k, v) in residues.row_mut(t).iter_mut().enumerate() {
                let hot = k == sizes.types || k == input.types[t] as usize;
                *v = modulus::sub(signed & u64::from(hot).wrapping_neg(), pads[k]);
            }
        }
        Said {
            negated: signs(sizes, &bits),
            bits,
            residues,
        }
    }
}

impl Said {
    /// Sends it.
    pub(crate) fn send(&self, channel: &mut Channel) -> Result<()> {
        channel.send(INPUT_BITS, &self.bits)?;
        let residues = self.residues.data().iter().copied();
        Ok(channel.send_residues(INPUT, K, residues)?)
    }

    /// Takes it from a client that may say anything: another sum of rows is another input.
    pub(crate) fn receive(channel: &mut Channel, sizes: Sizes) -> Result<Self> {
        let mut bits = vec![0; sizes.bits_len()];
        channel.recv_exact(INPUT_BITS, &mut bits)?;
        let mut last = bits.chunks_exact(sizes.row()).map(|row| row[row.len() - 1]);
        if last.any(|byte| byte & sizes.beyond() != 0) {
            return Err(ProtocolError::InputBits);
        }
        let (rows, cols) = sizes.residues();
        let mut residues = Share::zeros(rows, cols);
        channel.recv_residues(INPUT, K, P, residues.data_mut())?;
        Ok(Self {
            negated: signs(sizes, &bits),
            bits,
            residues,
        })
    }

    /// Multiplies it with the table, as the server does: what was masked away is not in it.
    pub(crate) fn product(&self, sizes: Sizes, one: u64, table: &Matrix<i16>) -> Share {
        let sums = rows::selected(table, sizes.vocab, &self.bits, sizes.row());
        let mut out: Share = sums
            .map(|v| modulus::mul(modulus::from_signed(*v), one))
            .into();
        for t in 0..sizes.tokens {
            let residues = self.residues.row(t).iter();
            for (column, x) in sizes.columns_of_residues(t).zip(residues) {
                for (sum, w) in out.row_mut(t).iter_mut().zip(table.row(column)) {
                    let more = modulus::mul(*x, modulus::from_signed(i64::from(*w)));
                    *sum = modulus::add(*sum, more);
                }
            }
        }
        out
    }
}

/// Reads the signs behind the bits of words.
fn signs(sizes: Sizes, bits: &[u8]) -> Vec<bool> {
    let (byte, place) = sizes.sign();
    let rows = bits.chunks_exact(sizes.row());
    rows.map(|row| row[byte] >> place & 1 == 1).collect()
}

/// Takes in the corrections of some bundles' masks.
pub(crate) fn receive_corrections(
    channel: &mut Channel,
    sizes: Sizes,
    bundles: usize,
) -> Result<Vec<Share>> {
    let (rows, cols) = sizes.correction();
    let one = |_| {
        let mut correction = Share::zeros(rows, cols);
        channel.recv_residues(INPUT_CORRECTION, K, P, correction.data_mut())?;
        Ok(correction)
    };
    (0..bundles).map(one).collect()
}

/// Makes the server's shares of `r·T`, of each bundle, those of `m·T`.
pub(crate) fn correct(
    model: &ServerModel,
    term: &Term,
    corrections: &[Share],
    shares: &mut [Share],
) {
    let Scaling::Dense(shift) = term.scaling else {
        unreachable!("a table is dense");
    };
    let mut scratch = Scratch::default();
    for (correction, share) in corrections.iter().zip(shares) {
        let packed = model.packed(term.weight);
        let mut product = Share::from(product_mod(correction, packed, &mut scratch));
        product.shift(shift);
        share.add(&product);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::tests::program;
    use crate::program::Program;
    use crate::share::tests::looks_uniform;
    use primer_ring::prg::Prg;
    use primer_wire::pair::{run_parties, test_options};
    use rand_core::Rng;

    /// Returns a text whose second token is padding, of another word and type.
    fn input() -> Input {
        Input {
            ids: vec![3, 0],
            types: vec![1, 0],
            length: 1,
            removed: 0,
            second: vec![None; 2],
        }
    }

    fn tiny() -> (Program, Sizes) {
        let program = program();
        let sizes = program.bits();
        (program, sizes)
    }

    /// Checks the relation in the module's text: shares of `m·T` and what the server computes add
    /// up to embeddings with their signs, and `f` and `π` tell these.
    #[test]
    fn rows_are_selected_with_a_sign() {
        let (program, sizes) = tiny();
        let (one, input) = (program.one(), input());
        let mut rng = Prg::new(&[8; 16]);
        let table = Matrix::from_fn(sizes.columns, 5, |_, _| rng.next_u32() as i16 >> 1);
        let mut met = [0; 2];
        for _ in 0..40 {
            let pad = Pad::draw(&Seeds::new(rng.secret_seed()), sizes);
            let mask = Share::random(sizes.tokens, sizes.columns, &mut rng);
            let kept = mask.first_rows(sizes.tokens);
            let (_, corrections) = run_parties(
                primer_wire::Channel::memory_pair(&test_options()),
                |channel| {
                    pad.correct(channel, one, mask).unwrap();
                    channel.flush().unwrap();
                },
                |channel| receive_corrections(channel, sizes, 1).unwrap(),
            );
            let said = pad.apply(one, &input);
            let mut sum = said.product(sizes, one, &table);
            let mut both = corrections[0].first_rows(sizes.tokens);
            both.add(&kept);
            for t in 0..sizes.tokens {
                let (word, kind) = (input.ids[t] as usize, sizes.vocab + input.types[t] as usize);
                let minus = said.negated[t] != pad.signs()[t];
                met[usize::from(minus)] += 1;
                for j in 0..5 {
                    let products = (0..sizes.columns).map(|i| {
                        let w = modulus::from_signed(i64::from(table.get(i, j)));
                        modulus::mul(both.get(t, i), w)
                    });
                    let offline = products.fold(0, modulus::add);
                    let cell = &mut sum.row_mut(t)[j];
                    *cell = modulus::add(*cell, offline);
                    let rows = [word, kind, sizes.position(t)];
                    let want: i64 = rows.iter().map(|i| i64::from(table.get(*i, j))).sum();
                    let want = modulus::mul(modulus::from_signed(want), one);
                    let want = if minus { modulus::neg(want) } else { want };
                    assert_eq!(*cell, want);
                }
            }
        }
        assert!(met.iter().all(|met| *met > 20), "both signs: {met:?}");
    }

    /// Returns what the server gets of a fixed text over many runs: how often each bit is set, and
    /// all residues.
    fn views(seed: impl Fn(&mut Prg) -> Seeds) -> (Vec<f64>, Vec<u64>) {
        const RUNS: usize = 4000;
        let (program, sizes) = tiny();
        let mut rng = Prg::new(&[5; 16]);
        let (mut set, mut residues) = (vec![0.0; 8 * sizes.bits_len()], Vec::new());
        for _ in 0..RUNS {
            let said = Pad::draw(&seed(&mut rng), sizes).apply(program.one(), &input());
            for (i, set) in set.iter_mut().enumerate() {
                *set += f64::from(said.bits[i / 8] >> (i % 8) & 1) / RUNS as f64;
            }
            residues.extend(said.residues.data());
        }
        // Without those that no word has.
        let row = 8 * sizes.row();
        let bits = set.chunks(row).flat_map(|row| &row[..=sizes.vocab]);
        (bits.copied().collect(), residues)
    }

    /// Tells whether bits are fair: set half of the time, one is seen between 0.46 and 0.54 in
    /// 4,000 runs, but for once in a million times.
    fn look_fair(bits: &[f64]) -> bool {
        bits.iter().all(|often| (0.46..0.54).contains(often))
    }

    #[test]
    fn the_server_sees_uniform_bits_and_residues() {
        let (bits, residues) = views(|rng| Seeds::new(rng.secret_seed()));
        assert!(look_fair(&bits), "{bits:?}");
        assert!(looks_uniform(&residues));
    }

    /// Shows the power of the test above.
    #[test]
    fn an_input_under_one_pad_is_not_uniform() {
        let (bits, residues) = views(|_| Seeds::new([9; 32]));
        assert!(!look_fair(&bits));
        assert!(!looks_uniform(&residues));
    }

    /// Checks that two inputs under one pad differ where their words do: what using a bundle twice
    /// would tell.
    #[test]
    fn a_pad_hides_one_text() {
        let (program, sizes) = tiny();
        let pad = Pad::draw(&Seeds::new([9; 32]), sizes);
        let (one, mut other) = (input(), input());
        other.ids[0] = 4;
        let [one, other] = [one, other].map(|input| pad.apply(program.one(), &input).bits);
        let words = (one[0] ^ other[0]) & 0b0011_1111;
        assert_eq!(words, 1 << 3 | 1 << 4);
        assert_eq!(one[sizes.row()..], other[sizes.row()..]);
    }

    /// Checks that lengths are exact, and no bit behind the last one is let through.
    #[test]
    fn what_is_no_input_is_refused() {
        let (program, sizes) = tiny();
        let said = Pad::draw(&Seeds::new([9; 32]), sizes).apply(program.one(), &input());
        let take = |bits: &[u8]| {
            let (_, taken) = run_parties(
                primer_wire::Channel::memory_pair(&test_options()),
                |channel| {
                    channel.send(INPUT_BITS, bits).unwrap();
                    let residues = said.residues.data().iter().copied();
                    // The other end may have refused already.
                    let _ = channel.send_residues(INPUT, K, residues);
                    let _ = channel.flush();
                },
                |channel| Said::receive(channel, sizes),
            );
            taken
        };
        assert!(take(&said.bits).is_ok());
        assert_ne!(sizes.beyond(), 0, "seven bits of eight");
        for row in 1..=sizes.tokens {
            let mut more = said.bits.clone();
            more[row * sizes.row() - 1] |= 0x80;
            let error = take(&more).err().unwrap();
            assert!(matches!(error, ProtocolError::InputBits), "{error}");
        }
        for other in [&said.bits[1..], &[&said.bits[..], &[0]].concat()] {
            let error = take(other).err().unwrap();
            assert!(matches!(error, ProtocolError::Net(_)), "{error}");
        }
    }

    /// Checks that words that end with a byte leave the sign a byte of its own.
    #[test]
    fn rows_of_all_lengths() {
        for (vocab, row, beyond, sign) in [
            (6, 1, 0x80, (0, 6)),
            (7, 1, 0, (0, 7)),
            (8, 2, 0xfe, (1, 0)),
            (30_522, 3816, 0xf8, (3815, 2)),
        ] {
            let sizes = Sizes {
                tokens: 3,
                vocab,
                types: 0,
                columns: vocab + 3,
            };
            assert_eq!(
                (sizes.row(), sizes.beyond(), sizes.sign()),
                (row, beyond, sign)
            );
            let pad = Pad::draw(&Seeds::new([3; 32]), sizes);
            let last = pad.strings.chunks(row).all(|r| r[row - 1] & beyond == 0);
            assert!(last && pad.strings.len() == sizes.bits_len());
        }
    }
}
