//! Clients at the limits of their access tokens, with a server in this process: what is refused,
//! and that a refusal costs no bundle.

use super::{Client, ClientOptions};
use primer_server::{
    AccessTokens, Server, ServerOptions, ShutdownHandle, TokenLimits, new_token, revoke_token,
};
use primer_service::ServiceError;
use primer_service::message::Refusal;
use primer_store::Counted;
use primer_testkit::wait::eventually;
use primer_wire::peer::Fingerprint;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use tempfile::{TempDir, tempdir};

const TOKENS: usize = 8;
const TEXT: &str = "a warm , funny film";

/// A server that asks for tokens.
struct Rig {
    dir: TempDir,
    access: Arc<AccessTokens>,
    address: String,
    fingerprint: Fingerprint,
    stop: ShutdownHandle,
    thread: Option<JoinHandle<()>>,
}

impl Rig {
    /// Starts it, with one limited token, whose answers are limited as told; returns the token.
    fn start(answers: &str) -> (Self, String) {
        let dir = tempdir().unwrap();
        let limits = TokenLimits {
            answers: Some(answers.parse().unwrap()),
            ..TokenLimits::default()
        };
        let file = dir.path().join("tokens");
        new_token(&file, "stays", TokenLimits::default()).unwrap();
        let token = new_token(&file, "limited", limits).unwrap();
        let access = Arc::new(AccessTokens::read(&file).unwrap());
        let server = Server::bind(ServerOptions {
            listen: "127.0.0.1:0".into(),
            state: Some(dir.path().join("server")),
            access: Some(Arc::clone(&access)),
            ..ServerOptions::default()
        });
        let server = server.unwrap();
        let rig = Self {
            access,
            address: server.address().to_string(),
            fingerprint: server.fingerprint(),
            stop: server.shutdown_handle(),
            thread: Some(std::thread::spawn(move || server.run().unwrap())),
            dir,
        };
        (rig, token.to_string())
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("tokens")
    }

    fn client(&self, name: &str, token: &str) -> Client {
        let options = ClientOptions {
            state: Some(self.dir.path().join(name)),
            trust: Some(self.fingerprint),
            token: Some(token.to_owned().into()),
            ..ClientOptions::default()
        };
        Client::connect(&self.address, options).unwrap()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.shut_down();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn bundles(client: &Client) -> usize {
    client.prepared().unwrap().values().sum()
}

/// Returns the refusal of what a client asked for.
fn refusal<T>(result: Result<T, ServiceError>) -> Refusal {
    match result.err().expect("a refusal") {
        ServiceError::Refused(refusal) => refusal,
        error => panic!("{error}"),
    }
}

#[test]
fn an_open_session_of_a_withdrawn_token_may_have_nothing_more() {
    let (rig, token) = Rig::start("9");
    let mut client = rig.client("client", &token);
    client.prepare(TOKENS, 2).unwrap();
    client.classify(TEXT).unwrap();
    let line = std::fs::read(rig.file()).unwrap();
    revoke_token(&rig.file(), "limited").unwrap();
    assert!(rig.access.reload().fault.is_none());
    let refused = refusal(client.classify(TEXT));
    assert_eq!(refused, Refusal::Token);
    assert!(refused.to_string().contains("withdrawn"), "{refused}");
    assert_eq!(refusal(client.prepare(TOKENS, 1)), Refusal::Token);
    assert_eq!(refusal(client.reconcile()), Refusal::Token);
    assert_eq!(bundles(&client), 1, "a refusal costs no bundle");
    // The session was not cut: it goes on as soon as the line is back.
    std::fs::write(rig.file(), line).unwrap();
    assert!(rig.access.reload().fault.is_none());
    assert!(client.link.is_some());
    client.classify(TEXT).unwrap();
    client.close();
}

#[test]
fn of_clients_that_ask_at_once_the_last_is_refused_before_it_spends() {
    let (rig, token) = Rig::start("1");
    let (mut one, mut two) = (rig.client("one", &token), rig.client("two", &token));
    for client in [&mut one, &mut two] {
        client.prepare(TOKENS, 1).unwrap();
    }
    // The one is told to spend its half, and takes its time.
    let entry = one.find(TOKENS).unwrap().unwrap();
    one.link().unwrap().ask(entry.id, entry.program).unwrap();
    let limit = |refused| match refused {
        Refusal::Limit(limit) => (limit.what, limit.limit, limit.had, limit.asked),
        other => panic!("{other}"),
    };
    let full = (Counted::Answers, 1, 1, 1);
    assert_eq!(limit(refusal(two.classify(TEXT))), full);
    assert_eq!(bundles(&two), 1, "a refusal costs no bundle");
    // It does not want it after all, or goes without a word: then the other may have it.
    one.link().unwrap().withdraw().unwrap();
    one.link().unwrap().ask(entry.id, entry.program).unwrap();
    assert_eq!(limit(refusal(two.classify(TEXT))), full);
    one.link = None;
    eventually("it is given back", || two.classify(TEXT).is_ok());
    assert_eq!(bundles(&two), 0);
    assert_eq!(limit(refusal(one.classify(TEXT))), full);
    assert_eq!(bundles(&one), 1);
}

#[test]
fn what_could_not_be_used_today_is_not_prepared() {
    let (rig, token) = Rig::start("1/day");
    let mut client = rig.client("client", &token);
    client.classify(TEXT).unwrap();
    let Refusal::Limit(limit) = refusal(client.prepare(TOKENS, 2)) else {
        panic!("not a limit");
    };
    assert_eq!(
        (limit.what, limit.limit, limit.had),
        (Counted::Answers, 1, 1)
    );
    assert!(limit.ends_in.is_some_and(|end| end <= 24 * 3600));
    let token = rig.access.admits(Some(&token)).unwrap();
    let store = primer_store::Store::open(rig.dir.path().join("server/server/store")).unwrap();
    let counts = store.counts(&token.account().id).unwrap();
    assert_eq!(counts.prepared.in_all, 1, "nothing more was counted");
}
