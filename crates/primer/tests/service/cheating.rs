//! A client that does not follow the protocol is caught, counted and named in the log, and the
//! server goes on.

use crate::peer::welcomed;
use primer::service::message::{Reply, Request};
use primer::service::{BundleId, ServiceError};
use primer_engine::means::TRANSFERS;
use primer_engine::session::ClientSession;
use primer_engine::{Program, Reveal};
use primer_hint::published::Published;
use primer_ot::{BaseOt, CotReceiver, Setup};
use primer_plan::plan::Plan;
use primer_ring::prg::Prg;
use primer_rlwe::product::ClientKeys;
use primer_testkit::TEXTS;
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use primer_testkit::wait::eventually;
use primer_wire::frame::HEADER_BYTES;
use primer_wire::kind::protocol::{HELLO, PUBLIC_KEY, WELCOME};
use primer_wire::{Channel, NetError};
use serde::Deserialize;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

const TOKENS: usize = 8;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a client that follows the protocol says first.
fn hello() -> Vec<u8> {
    let written = Written::default();
    let mut channel = Channel::over(written.clone(), io::empty());
    // It does not say which hint it has.
    let hint = Arc::new(Published::in_memory(&[0; 32], Vec::new()));
    let unanswered = ClientSession::open(&mut channel, TOKENS, hint, Prg::from_os());
    assert!(unanswered.is_err());
    let frame = written.0.lock().unwrap();
    frame[HEADER_BYTES as usize..].to_vec()
}

/// The server's answer, as far as it is good.
#[derive(Deserialize)]
enum Welcome {
    Program {
        plan: Vec<u8>,
        reveal: Reveal,
        _fingerprint: [u8; 32],
        _hint: Option<[u8; 32]>,
        _nonce: [u8; 32],
    },
}

/// Asks for a bundle and grows other trees than the server is told of: its base transfers are made
/// with a nonce that the server has not heard.
fn cheat(server: &Server) -> Result<Reply, ServiceError> {
    let mut channel = welcomed((server, &server.address), [7; 32]);
    let request = Request::Prepare {
        id: BundleId::from_bytes([7; 16]),
        tokens: TOKENS as u32,
        bundles: 1,
    };
    request.send(&mut channel).unwrap();
    assert!(matches!(Reply::receive(&mut channel), Ok(Reply::Go { .. })));
    channel.send(HELLO, &hello()).unwrap();
    let Welcome::Program { plan, reveal, .. } = channel.recv_value(WELCOME, 1 << 24).unwrap();
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
