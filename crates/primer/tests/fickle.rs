//! A server that prepares bundles and does not know them a moment later: the client notices at the
//! first one.

use primer::hints::{ServerHint, secret};
use primer::service::message::{
    Card, Greeting, Reception, Refusal, Reply, Request, send_hint_chunk, send_hint_index,
    send_tokenizer,
};
use primer::source::Model;
use primer::{Client, ClientOptions, Identity, Reveal, Server, ServerOptions, ServiceError};
use primer_engine::Program;
use primer_engine::server::ServerModel;
use primer_engine::session::ServerSession;
use primer_net::tls::TlsServer;
use primer_ring::prg::Prg;
use primer_wire::{Channel, Options};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TOKENS: usize = 8;

/// What the fickle server serves.
struct Fickle {
    tls: TlsServer,
    card: Card,
    tokenizer: Vec<u8>,
    model: ServerModel,
    hint: ServerHint,
    prepared: AtomicUsize,
}

impl Fickle {
    fn new(identity: &Identity, dir: &Path) -> Self {
        let model = Model::load(None).unwrap();
        let integers = Arc::new(model.prepare(None, None, |_, _| ()).unwrap());
        let program = Program::of(&integers, TOKENS, Reveal::Outputs).unwrap();
        let honest = Server::bind(ServerOptions {
            listen: "127.0.0.1:0".into(),
            state: Some(dir.to_owned()),
            ..ServerOptions::default()
        });
        let secret = secret(&dir.join("server"), None).unwrap();
        let (hints, served) = (dir.join("server/hints"), ("embedded", &*integers));
        let hint = ServerHint::find_or_build(&hints, served, &secret, 1, |_, _| ()).unwrap();
        let program = program.with_hint(hint.published.identity()).unwrap();
        let multipliers = Some(Arc::clone(&hint.multipliers));
        Self {
            tls: TlsServer::new(identity).unwrap(),
            card: honest.unwrap().card().clone(),
            tokenizer: model.tokenizer.encode(),
            model: ServerModel::new(integers, &program, multipliers).unwrap(),
            hint,
            prepared: AtomicUsize::new(0),
        }
    }

    fn serve(&self, channel: &mut Channel) -> Result<(), ServiceError> {
        Greeting::receive(channel)?;
        Reception::Card(Box::new(self.card.clone())).send(channel)?;
        loop {
            match Request::receive(channel)? {
                Request::Tokenizer => send_tokenizer(channel, &self.tokenizer)?,
                Request::HintIndex => {
                    Reply::Hint.send(channel)?;
                    send_hint_index(channel, self.hint.published.index())?;
                }
                Request::HintChunks { first, count } => {
                    Reply::Hint.send(channel)?;
                    for chunk in first..first + count {
                        let bytes = self.hint.published.chunk(chunk as usize)?;
                        send_hint_chunk(channel, &bytes)?;
                    }
                    channel.flush()?;
                }
                Request::Prepare { session, .. } => {
                    Reply::Go.send(channel)?;
                    let nonce = session.expect("a client's first preparation opens a session");
                    let program = self.model.program().clone();
                    let rng = Prg::from_os();
                    let mut session = ServerSession::accept(channel, program, &nonce, rng)?;
                    session.prepare(channel, &self.model, &mut Vec::new())?;
                    self.prepared.fetch_add(1, Ordering::SeqCst);
                    Reply::Committed.send(channel)?;
                }
                Request::Infer { id, .. } => {
                    Reply::Refused(Refusal::Unknown(id)).send(channel)?;
                }
                _ => return Ok(()),
            }
        }
    }
}

#[test]
fn a_bundle_just_prepared_that_is_refused_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let identity = Identity::self_signed(&["localhost".into()]).unwrap();
    let fickle = Fickle::new(&identity, &dir.path().join("server"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = listener.accept().unwrap().0;
            let options = Options::default();
            let mut channel = primer_net::tls_accept(socket, &fickle.tls, &options).unwrap();
            let _ = fickle.serve(&mut channel);
            // No client comes a second time.
            drop(listener);
        });
        let options = ClientOptions {
            state: Some(dir.path().join("client")),
            trust: Some(identity.fingerprint()),
            ..ClientOptions::default()
        };
        let mut client = Client::connect(&address, options).unwrap();
        let error = client.classify("a warm , funny film").err().unwrap();
        assert!(matches!(error, ServiceError::Fickle { .. }), "{error}");
        assert_eq!(fickle.prepared.load(Ordering::SeqCst), 1);
        client.close();
    });
}
