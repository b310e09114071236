//! What clients that do not follow the protocol are told while they prepare: encrypted masks are
//! answered, and answers depend on what was encrypted and on the weights. These are the powers of
//! the tests of `primer_engine` by which nothing of the kind is said there.
#![allow(missing_docs)]

mod common;

use common::attack::{client_prepares, server_prepares, twins};
use common::frames::{Frame, bytes, honest, meet, replay};
use common::tiny_for;
use primer_paper::{ProtocolError, Scheme};
use primer_wire::kind::protocol::{ANSWER, ENCRYPTED};

const SCHEME: Scheme = Scheme::Fp;
const TOKENS: usize = 3;
const SEEDS: [u8; 2] = [1, 2];

/// Checks that products of weights and masks that are answered are told apart.
#[test]
fn the_answers_of_different_weights_are_not_the_same() {
    let [one, other] = twins(SCHEME);
    let met = meet(
        honest,
        |channel| client_prepares(channel, (SCHEME, TOKENS), SEEDS[0]).err(),
        |channel| server_prepares(channel, &one, SEEDS[1]),
    );
    met.server.unwrap();
    let (end, said) = replay(bytes(&met.up), |channel| {
        server_prepares(channel, &other, SEEDS[1])
    });
    end.unwrap();
    let differ = |(a, b): &(&Frame, &Frame)| a != b;
    let differing: Vec<u8> = (met.down.iter().zip(&said))
        .filter(differ)
        .map(|(a, _)| a.kind)
        .collect();
    assert!(differing.iter().all(|kind| *kind == ANSWER.code()));
    assert!(differing.len() > 4, "{}", differing.len());
}

/// Checks that another ciphertext is another answer.
#[test]
fn what_a_client_encrypts_is_answered() {
    let model = tiny_for(SCHEME);
    let run = |byte: Option<u8>| {
        let edit = move |_: usize, frame: &mut Frame| {
            if let (Some(byte), true) = (byte, frame.kind == ENCRYPTED.code()) {
                frame.payload.fill(byte);
            }
        };
        meet(
            edit,
            |channel| client_prepares(channel, (SCHEME, TOKENS), SEEDS[0]),
            |channel| server_prepares(channel, &model, SEEDS[1]),
        )
    };
    let honest = run(None);
    honest.server.and(honest.client).unwrap();
    let other = run(Some(1));
    // Changed answers may be beyond what the client decrypts; they were sent all the same.
    match other.server.and(other.client) {
        Ok(()) => assert!(other.down != honest.down),
        Err(error) => assert!(matches!(error, ProtocolError::He(_)), "{error}"),
    }
}
