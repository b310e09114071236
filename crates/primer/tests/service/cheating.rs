//! A client that does not follow the protocol is caught, counted and named in the log, and the
//! server goes on.

use crate::peer::welcomed;
use primer::service::message::{Reply, Request};
use primer::service::{BundleId, ServiceError};
use primer_engine::stop_kinds::TRANSFERS;
use primer_engine::{Program, Reveal};
use primer_ot::{BaseOt, CotReceiver, Setup};
use primer_plan::plan::Plan;
use primer_ring::prg::Prg;
use primer_rlwe::product::ClientKeys;
use primer_testkit::TEXTS;
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use primer_testkit::wait::eventually;
use primer_wire::NetError;
use primer_wire::kind::protocol::{PUBLIC_KEY, WELCOME};
use serde::Deserialize;

const TOKENS: usize = 8;

/// What the server says when it opens a session, as far as it is needed here.
#[derive(Deserialize)]
struct Welcome {
    plan: Vec<u8>,
    reveal: Reveal,
    _fingerprint: [u8; 32],
    _hint: [u8; 32],
    _nonce: [u8; 32],
}

/// Asks for a bundle and grows other trees than the server is told of: its base transfers are made
/// with a nonce that the server has not heard.
fn cheat(server: &Server) -> Result<Reply, ServiceError> {
    let mut channel = welcomed((server, &server.address), [7; 32]);
    let request = Request::Prepare {
        id: BundleId::from_bytes([7; 16]),
        tokens: TOKENS as u32,
        bundles: 1,
        session: Some([2; 32]),
    };
    request.send(&mut channel).unwrap();
    assert!(matches!(Reply::receive(&mut channel), Ok(Reply::Go)));
    let Welcome { plan, reveal, .. } = channel.recv_value(WELCOME, 1 << 24).unwrap();
    let program = Program::received(Plan::decode(&plan).unwrap(), reveal).unwrap();
    let rng = &mut Prg::from_os();
    let keys = ClientKeys::generate(program.key_needs(), rng);
    keys.publish(rng, |bytes| channel.send(PUBLIC_KEY, bytes))
        .unwrap();
    let terms = Setup::new(TRANSFERS.to_client, BaseOt::default()).with_nonce([1; 32]);
    CotReceiver::setup(terms, &mut channel, rng).unwrap();
    Reply::receive(&mut channel)
}

#[test]
fn a_client_that_cheats_is_cut_and_counted() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::start());
    let server = Server::start(&dir.path().join("server"));
    let cheating = "primer_clients_cheating_total";
    assert_eq!(server.metrics.number(cheating), 0.0);
    let end = cheat(&server).unwrap_err();
    assert!(
        matches!(end, ServiceError::Net(NetError::PeerGone { .. })),
        "{end}"
    );
    server.metrics.counts(cheating, 1.0);
    for words in [
        "a client does not follow the protocol",
        "transfers are not consistent",
    ] {
        eventually(words, || log.has(words));
    }
    assert_eq!(server.metrics.number("primer_bundles_prepared_total"), 0.0);
    // One that does not cheat is served, and is not counted.
    let found = server
        .client(&dir.path().join("client"))
        .classify(TEXTS[0].0);
    assert_eq!(found.unwrap().label, TEXTS[0].1);
    assert_eq!(server.metrics.number(cheating), 1.0);
}
