//! Clients that do not follow the protocol, against the server's own code.
//!
//! The attack: in one transfer the client uses another choice in one block of the server's offset Δ
//! than in all others. The server's row then differs from the client's by the bits of Δ in that
//! block. If these are what the client guesses (here: zeros, so that its row needs no change), all
//! goes on as if nothing had happened; if not, the answer is garbage. A few hundred answers give
//! all of Δ, and with Δ everything that the server masks with it.
//!
//! The client here is an honest one whose message is changed behind it, so its proof is for the
//! message that it meant. One that proves what it sent passes if its guess is right and not
//! otherwise: unit tests of `primer_ot`, `check` and `tags`.
#![allow(missing_docs)]

mod common;

use common::{blind, client, server_with, tiny_for, words};
use primer_model::quantise::IntModel;
use primer_net::Channel;
use primer_net::kind::transfer::EXTENSION;
use primer_ot::{Delta, NONCE_BYTES, OtError, Variant};
use primer_protocol::{ProtocolError, Reveal, Scheme};
use primer_ring::prg::Prg;
use primer_stops::StopsError;
use std::io::{self, Write};
use std::sync::Arc;

const HEADER: usize = 8;
/// Bytes of an extension in front of the choices.
const POSITION: u64 = 8;
/// Bytes of a checked extension behind the choices.
const PROOF: u64 = 48;
/// Bytes of choices of each block that mask a check.
const MASKING: u64 = 16;

/// Where a client deviates: in which of its extensions, in which block of Δ.
#[derive(Clone, Copy)]
struct Deviation {
    extension: usize,
    block: u64,
    transfers: Variant,
}

/// Passes on what a client sends, but for the first choice of one block of one extension.
struct Deviating<W> {
    inner: W,
    at: Option<Deviation>,
    header: Vec<u8>,
    /// Bytes of the frame that are still to come.
    left: u64,
    /// Where in the frame a byte is changed.
    change: Option<u64>,
    extensions: usize,
}

impl<W> Deviating<W> {
    fn new(inner: W, at: Option<Deviation>) -> Self {
        Self {
            inner,
            at,
            header: Vec::new(),
            left: 0,
            change: None,
            extensions: 0,
        }
    }

    fn frame(&mut self, kind: u8, length: u64) {
        self.left = length;
        self.change = None;
        if kind != EXTENSION.code() {
            return;
        }
        if let Some(at) = self.at.filter(|at| at.extension == self.extensions) {
            let blocks = 128 / at.transfers.bits() as u64;
            let (proof, masking) = match at.transfers.is_checked() {
                true => (PROOF, MASKING),
                false => (0, 0),
            };
            let each = (length - POSITION - proof) / blocks - masking;
            assert!(each > 0 && each < 2048, "one block of transfers");
            self.change = Some(length - POSITION - at.block * each);
        }
        self.extensions += 1;
    }
}

impl<W: Write> Write for Deviating<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut changed = bytes.to_vec();
        for byte in &mut changed {
            if self.left == 0 {
                self.header.push(*byte);
                if let Ok(word) = <[u8; HEADER]>::try_from(&self.header[..]) {
                    let word = u64::from_le_bytes(word);
                    self.header.clear();
                    self.frame(word as u8, word >> 8);
                }
                continue;
            }
            if self.change == Some(self.left) {
                *byte ^= 1;
            }
            self.left -= 1;
        }
        self.inner.write_all(&changed)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What came of a session: the client's logits, and what the server says.
struct Outcome {
    logits: Option<Vec<f64>>,
    server: Result<(), ProtocolError>,
}

/// Runs a client that may deviate and a server with this seed.
fn session(model: &Arc<IntModel>, scheme: Scheme, seed: u8, at: Option<Deviation>) -> Outcome {
    let input = words(2, 2, 0);
    let (server_in, client_out) = io::pipe().unwrap();
    let (client_in, server_out) = io::pipe().unwrap();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut channel = Channel::over(server_out, server_in);
            server_with(
                &mut channel,
                model,
                Reveal::Outputs,
                Prg::new(&[seed; 16]),
                &mut blind,
            )
        });
        let mut channel = Channel::over(Deviating::new(client_out, at), client_in);
        let answer = client(&mut channel, model, &input, scheme, blind);
        drop(channel);
        Outcome {
            logits: answer.ok().map(|answer| answer.reals[0].data().to_vec()),
            server: serving.join().unwrap(),
        }
    })
}

/// The offset of a server with this seed, which draws its nonce and then the offset.
fn offset(seed: u8) -> u128 {
    let mut rng = Prg::new(&[seed; 16]);
    rng.fill(&mut [0; NONCE_BYTES]);
    Delta::random(&mut rng).label()
}

/// How many extensions a client sends.
fn extensions(model: &Arc<IntModel>, scheme: Scheme) -> usize {
    let (logs, ..) = common::logged(model, &words(2, 2, 0), scheme);
    let kinds = logs[0].iter().filter(|(kind, _)| *kind == EXTENSION.code());
    kinds.count()
}

/// The power of the test: transfers of the paper's schemes are not checked, and the answer tells a
/// bit of Δ. The last labels are those of the pooler.
#[test]
fn an_unchecked_client_learns_a_bit_of_the_offset() {
    let scheme = Scheme::Fp;
    let model = tiny_for(scheme);
    let at = Deviation {
        extension: extensions(&model, scheme) - 1,
        block: 5,
        transfers: scheme.recipe().transfers.to_client,
    };
    let mut seen = [false; 2];
    for seed in 2..=4 {
        let outcome = session(&model, scheme, seed, Some(at));
        outcome.server.unwrap();
        // Under the same seeds an answer is the same to the last bit, unless something is wrong.
        let honest = session(&model, scheme, seed, None).logits;
        let right = outcome.logits.unwrap() == honest.unwrap();
        let bit = offset(seed) >> at.block & 1;
        assert_eq!(right, bit == 0, "seed {seed}");
        seen[bit as usize] = true;
    }
    assert_eq!(seen, [true; 2], "both kinds of servers were met");
}

/// In `lean` the session ends while the bundle is prepared, whatever Δ is, and no answer tells
/// anything: labels of a circuit and pads of a look-up alike.
#[test]
fn a_checked_client_learns_nothing() {
    let scheme = Scheme::Lean;
    let model = tiny_for(scheme);
    let honest = session(&model, scheme, 1, None);
    honest.server.unwrap();
    assert!(honest.logits.is_some());
    let last = extensions(&model, scheme) - 1;
    for (seed, extension) in (1..=16).map(|seed| (seed, usize::from(seed) * last / 16)) {
        let at = Deviation {
            extension,
            block: u64::from(seed) % 32,
            transfers: scheme.recipe().transfers.to_client,
        };
        let outcome = session(&model, scheme, seed, Some(at));
        assert!(outcome.logits.is_none(), "seed {seed}: there was an answer");
        let error = outcome.server.unwrap_err();
        assert!(
            matches!(
                error,
                ProtocolError::Stops(StopsError::Ot(OtError::Inconsistent))
            ),
            "seed {seed}: {error}"
        );
        assert!(error.is_cheating(), "it is counted as what it is");
    }
}
