//! A server that is away for a while, behind a balancer that takes connections all the same and
//! drops them, or behind nothing: it is waited for as one that refuses them is, and what will not
//! change is not waited for.

use primer::server::{TokenLimits, new_token};
use primer::service::message::{Greeting, Reception, Refusal};
use primer::{
    AccessTokens, Client, ClientOptions, Event, Fingerprint, Identity, ServiceError, Zeroizing,
};
use primer_net::tls::TlsServer;
use primer_testkit::TEXTS;
use primer_testkit::balancer::{Balancer, Ending};
use primer_testkit::server::Server;
use primer_testkit::wait::eventually;
use primer_wire::Options;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Starts to ask for the label of the first text. Tells of every time that the client waits, and
/// the answer.
fn ask(
    address: &str,
    options: ClientOptions,
) -> (Receiver<String>, std::thread::JoinHandle<String>) {
    let (tell, waits) = channel();
    let address = address.to_owned();
    let asking = std::thread::spawn(move || {
        let watch = move |event: Event<'_>| {
            if let Event::Waiting { error, .. } = event {
                let _ = tell.send(error.to_string());
            }
        };
        let mut client = Client::connect_observed(&address, options, watch).unwrap();
        client.classify(TEXTS[0].0).unwrap().label
    });
    (waits, asking)
}

/// Starts with no server; then one whose connection ends at the first request; then one that
/// answers. The client makes one attempt: nothing is lost by any of it.
fn answered_in_the_end(ending: Ending) {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let server = Server::start(&state);
    let options = ClientOptions {
        attempts: 1,
        wait: Some(Duration::from_secs(120)),
        ..server.options(&dir.path().join("client"))
    };
    server.stop();
    let balancer = Balancer::start(ending);
    let (waits, asking) = ask(&balancer.address, options);
    eventually("a dropped connection", || balancer.dropped().0 >= 1);
    let server = Server::start(&state);
    balancer.set(Some(&server.address), 1);
    assert_eq!(asking.join().unwrap(), TEXTS[0].1);
    assert_eq!(balancer.dropped().1, 1);
    let waits: Vec<String> = waits.iter().collect();
    assert!(waits.len() >= 2, "{waits:?}");
    for why in waits {
        assert!(
            why.contains("ended the connection before it answered"),
            "{why}"
        );
    }
}

#[test]
fn a_server_behind_a_balancer_that_closes_is_waited_for() {
    answered_in_the_end(Ending::Close);
}

#[test]
fn a_server_behind_a_balancer_that_resets_is_waited_for() {
    answered_in_the_end(Ending::Reset);
}

/// Plays a server that listens and says nothing yet, as while it calibrates, then one that is not
/// there, then one that answers.
#[test]
fn a_server_that_starts_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("server");
    let first = Server::start(&state);
    let address = first.address.clone();
    let options = ClientOptions {
        wait: Some(Duration::from_secs(60)),
        timeout: Duration::from_secs(20),
        ..first.options(&dir.path().join("client"))
    };
    first.stop();
    let silent = TcpListener::bind(&address).unwrap();
    let (waits, asking) = ask(&address, options);
    // It knocks, has said all it can, and is not answered.
    let mut knocked = silent.accept().unwrap().0;
    assert!(knocked.read(&mut [0; 4096]).unwrap() > 0);
    drop((silent, knocked));
    let why = waits.recv().unwrap();
    assert!(
        why.contains("ended the connection before it answered"),
        "{why}"
    );
    let why = waits.recv().unwrap();
    assert!(why.contains("cannot connect to"), "{why}");
    let _server = Server::start_with(&state, |options| options.listen = address);
    assert_eq!(asking.join().unwrap(), TEXTS[0].1);
}

/// Starts a server of another version, one line after the greeting.
fn other_version(identity: &Identity) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let tls = TlsServer::new(identity).unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let options = Options {
                timeout: Some(Duration::from_secs(30)),
                ..Options::default()
            };
            let mut channel = primer_net::tls_accept(socket, &tls, &options).unwrap();
            Greeting::receive(&mut channel).unwrap();
            let refusal = Reception::Refused(Refusal::Version(99));
            refusal.send(&mut channel).unwrap();
        }
    });
    address
}

/// Starts something that speaks another protocol.
fn other_protocol() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.0 503 Service Unavailable\r\n\r\n");
        }
    });
    address
}

#[test]
fn what_will_not_change_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = dir.path().join("tokens");
    new_token(&tokens, "", TokenLimits::default()).unwrap();
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.access = Some(Arc::new(AccessTokens::read(&tokens).unwrap()));
    });
    let identity = Identity::self_signed(&["primer".to_owned()]).unwrap();
    let zeros: Fingerprint = "00".repeat(32).parse().unwrap();
    let (version, protocol) = (other_version(&identity), other_protocol());
    for (address, fingerprint, words) in [
        (&server.address, zeros, "not 0000"),
        (&server.address, server.fingerprint, "access token"),
        (&version, identity.fingerprint(), "it speaks version 99"),
        (&protocol, zeros, "TLS: "),
    ] {
        let options = ClientOptions {
            trust: Some(fingerprint),
            token: Some(Zeroizing::new("another token".to_owned())),
            wait: Some(Duration::from_secs(600)),
            ..server.options(&dir.path().join("client"))
        };
        let started = Instant::now();
        let never = |event: Event<'_>| assert!(!matches!(event, Event::Waiting { .. }));
        let error: ServiceError = Client::connect_observed(address, options, never)
            .err()
            .unwrap();
        assert!(error.to_string().contains(words), "{error}");
        let took = started.elapsed();
        assert!(took < Duration::from_secs(60), "{took:?}: {error}");
    }
}
