//! Everything that both parties send and keep in one inference of the embedded model, byte for
//! byte: hashes, under fixed seeds.
//!
//! A change here is a change of the protocol or of its arithmetic: parties of before and after do
//! not understand each other, or do and compute something else. One that is meant comes with
//! another `primer_wire::VERSION` if what travels or is stored has changed its
//! meaning; `PRIMER_BLESS=1 cargo test -p primer-engine --test golden` writes `golden.txt`.
#![allow(missing_docs)]

mod common;

use common::{demo, encode, offer, open, served};
use primer_engine::VERSION;
use primer_engine::session::direct;
use primer_engine::{ProtocolError, Reveal, client, server};
use primer_ring::prg::{Prg, SECRET_SEED_BYTES};
use primer_wire::Channel;
use std::fmt::Write as _;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

const TOKENS: usize = 8;

/// Hashes what passes through.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<blake3::Hasher>>);

impl Seen {
    fn name(&self) -> String {
        self.0.lock().unwrap().finalize().to_hex()[..32].to_string()
    }
}

struct Tap<W> {
    inner: W,
    seen: Seen,
}

impl<W: Write> Write for Tap<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.seen.0.lock().unwrap().update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs one inference under fixed seeds, and returns lines of hashes.
fn run() -> String {
    let (model, text) = demo();
    let input = encode(&text, "a good film", None, TOKENS);
    let (server_in, client_out) = io::pipe().unwrap();
    let (client_in, server_out) = io::pipe().unwrap();
    let sent = [Seen::default(), Seen::default()];
    let (to_server, to_client) = (sent[0].clone(), sent[1].clone());
    let (client, server) = std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let out = Tap {
                inner: server_out,
                seen: to_client,
            };
            let mut channel = Channel::over(out, server_in);
            let rng = Prg::new(&[2; 16]);
            let offer = offer(&model, Reveal::Outputs);
            let mut session = direct::accept(&mut channel, offer, rng)?;
            let encoded = served(&model, session.program())?;
            let mut bundle = Vec::new();
            session.prepare(&mut channel, &encoded, &mut bundle)?;
            let kept = bundle.clone();
            let bundle = server::Bundle::new(Cursor::new(bundle));
            server::infer(&mut channel, &encoded, bundle)?;
            Ok::<_, ProtocolError>(kept)
        });
        let out = Tap {
            inner: client_out,
            seen: to_server,
        };
        let mut channel = Channel::over(out, client_in);
        let rng = Prg::new(&[1; 16]);
        let mut session = open(&mut channel, &model, TOKENS, rng).unwrap();
        let mut bundle = Vec::new();
        session.prepare(&mut channel, &mut bundle).unwrap();
        let kept = bundle.clone();
        let program = session.program().clone();
        let bundle = client::Bundle::new(Cursor::new(bundle));
        let answer = session.infer(&mut channel, bundle, &input).unwrap();
        ((kept, program, answer), serving.join().unwrap().unwrap())
    });
    let (kept, program, answer) = client;
    // Every bundle begins with version, program and seed.
    let header = [&VERSION.to_le_bytes()[..], program.fingerprint()].concat();
    for bundle in [&kept, &server] {
        assert_eq!(bundle[..header.len()], header);
    }
    let seeds = [&kept, &server].map(|bundle| &bundle[header.len()..][..SECRET_SEED_BYTES]);
    let mut lines = String::new();
    writeln!(lines, "program {}", hex(program.fingerprint())).unwrap();
    writeln!(lines, "client's seed {}", hex(seeds[0])).unwrap();
    writeln!(lines, "server's seed {}", hex(seeds[1])).unwrap();
    writeln!(lines, "client sends {}", sent[0].name()).unwrap();
    writeln!(lines, "server sends {}", sent[1].name()).unwrap();
    writeln!(lines, "client keeps {} bytes {}", kept.len(), hash(&kept)).unwrap();
    writeln!(
        lines,
        "server keeps {} bytes {}",
        server.len(),
        hash(&server)
    )
    .unwrap();
    writeln!(lines, "answer {:?}", answer.integers[0].data()).unwrap();
    lines
}

#[test]
fn an_inference_of_the_embedded_model_has_these_bytes() {
    let mut found = format!("version {VERSION}, {TOKENS} tokens of the embedded model\n");
    write!(found, "\nlean\n{}", run()).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt");
    if std::env::var_os("PRIMER_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        found, expected,
        "if this is meant, read the head of this test"
    );
}
