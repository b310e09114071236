//! Messages that are longer or shorter than they should be, of every kind that a client sends: the
//! server ends the session there, names what is wrong, and has said no more than it would have.
#![allow(missing_docs)]

mod common;

use common::attack::{client_prepares, server_prepares};
use common::frames::{Frame, Frames, bytes, honest, meet, replay};
use common::{bound, served, tiny, words};
use primer_engine::{ProtocolError, Reveal, client, server};
use primer_model::quantise::IntModel;
use primer_wire::Channel;
use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

const TOKENS: usize = 2;

/// Ways of being wrong.
#[derive(Debug, Clone, Copy)]
enum Size {
    /// Nothing.
    Empty,
    /// A byte less.
    Under,
    /// A byte more.
    Over,
    /// A header that announces more than there is memory for.
    Huge,
}

impl Size {
    const ALL: [Self; 4] = [Self::Empty, Self::Under, Self::Over, Self::Huge];

    /// Returns messages of which the one at a place is wrong, and the last.
    fn cut(self, frames: &[Frame], at: usize) -> Vec<u8> {
        let mut frames = frames[..=at].to_vec();
        let payload = &mut frames[at].payload;
        match self {
            Self::Empty => payload.clear(),
            Self::Under => drop(payload.pop()),
            Self::Over => payload.push(0),
            Self::Huge => {}
        }
        let last = payload.len();
        let mut bytes = bytes(&frames);
        if matches!(self, Self::Huge) {
            // The length is the upper seven bytes of a header.
            let header = bytes.len() - last - 8;
            bytes[header + 6] = 0xff;
        }
        bytes
    }
}

/// Runs a server that gets the messages of a client, of which one is wrong, in all ways and for one
/// message of each kind.
fn wrong_sizes(
    up: &Frames,
    down: &Frames,
    server: impl Fn(&mut Channel) -> Result<(), ProtocolError>,
) {
    let mut seen = BTreeSet::new();
    let new = |at: &usize| seen.insert(up[*at].kind);
    let places: Vec<usize> = (0..up.len()).filter(new).collect();
    assert!(places.len() > 6);
    for at in places {
        let kind = up[at].kind;
        for size in Size::ALL {
            let (end, said) = replay(size.cut(up, at), &server);
            let Err(error) = end else {
                panic!("kind {kind}, {size:?}: nothing was noticed");
            };
            let text = error.to_string();
            assert!(!text.contains("disappeared"), "{kind}, {size:?}: {text}");
            // But for a greeting that is refused, it has said what it says to an honest client.
            let same = said.iter().zip(down).take_while(|(a, b)| a == b).count();
            assert!(same == said.len() || at == 0, "kind {kind}, {size:?}");
        }
    }
}

fn halves(model: &Arc<IntModel>, reveal: Reveal) -> (Frames, Frames, [Vec<u8>; 2]) {
    let met = meet(
        honest,
        |channel| client_prepares(channel, model, TOKENS, 1, 1).unwrap(),
        |channel| server_prepares(channel, model, (reveal, 2), 1).unwrap(),
    );
    let halves = [met.client.1, met.server].map(|mut halves| halves.remove(0));
    (met.up, met.down, halves)
}

#[test]
fn of_preparing() {
    let model = tiny();
    // To reveal a label takes no other kinds of messages of the client's.
    let reveal = Reveal::Outputs;
    let (up, down, _) = halves(&model, reveal);
    wrong_sizes(&up, &down, |channel| {
        server_prepares(channel, &model, (reveal, 2), 1).map(|_| ())
    });
}

#[test]
fn of_asking() {
    let model = tiny();
    for reveal in [Reveal::Outputs, Reveal::Label] {
        let (.., [ours, theirs]) = halves(&model, reveal);
        let program = bound(&model, TOKENS, reveal);
        let served = served(&model, &program).unwrap();
        let serve = |channel: &mut Channel| {
            let half = server::Bundle::new(Cursor::new(theirs.clone()));
            server::infer(channel, &served, half).map(|_| ())
        };
        let met = meet(
            honest,
            |channel| {
                let half = client::Bundle::new(Cursor::new(ours));
                client::infer(channel, &program, half, &words(TOKENS, 2, 0)).unwrap()
            },
            serve,
        );
        met.server.unwrap();
        wrong_sizes(&met.up, &met.down, serve);
    }
}
