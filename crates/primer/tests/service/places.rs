//! A server's places and room: who gets them, who is refused, who gives way.

use crate::peer::welcomed;
use primer::service::ServiceError;
use primer::service::message::{Refusal, Reply, Request};
use primer::{Client, ClientOptions};
use primer_testkit::TEXTS;
use primer_testkit::far::Link;
use primer_testkit::log::Log;
use primer_testkit::server::Server;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns why a client is refused that does not come again.
fn hasty(server: &Server, address: &str, state: &Path) -> ServiceError {
    let options = ClientOptions {
        wait: Some(Duration::ZERO),
        ..server.options(state)
    };
    Client::connect(address, options).err().unwrap()
}

#[test]
fn a_full_server_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.limits.sessions = 1;
        options.limits.stored_per_client = 1000;
    });
    let state = dir.path().join("client");
    for tokens in [8, 128] {
        let mut client = server.client(&state);
        let error = client.prepare(tokens, 1).unwrap_err();
        let stored = matches!(
            error,
            ServiceError::Refused(Refusal::Stored { limit: 1000, .. })
        );
        assert!(stored, "{error}");
        client.close();
    }
    // A client that thinks about its first text holds the only place.
    let slow = server.client(&dir.path().join("slow"));
    let full = hasty(&server, &server.address, &state);
    assert!(
        matches!(full, ServiceError::Refused(Refusal::Busy(1))),
        "{full}"
    );
    slow.close();
}

#[test]
fn sessions_that_only_ask_for_lists_do_not_hold_their_places() {
    let (dir, log) = (tempfile::tempdir().unwrap(), Log::start());
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.limits.sessions = 2;
    });
    let far = Link::Far.to(&server.address);
    let idlers: Vec<_> = (1..=2)
        .map(|number| {
            let mut channel = welcomed((&server, &far), [number; 32]);
            // From far away that is ten lists a second.
            std::thread::spawn(move || {
                let started = Instant::now();
                while Request::List.send(&mut channel).is_ok()
                    && Reply::receive(&mut channel).is_ok()
                    && started.elapsed() < Duration::from_secs(60)
                {}
                started.elapsed()
            })
        })
        .collect();
    let state = dir.path().join("client");
    let full = hasty(&server, &far, &state);
    assert!(
        matches!(full, ServiceError::Refused(Refusal::Busy(2))),
        "{full}"
    );
    // By default it comes again, and one of the others has rested long enough by then.
    let mut patient = Client::connect(&far, server.options(&state)).unwrap();
    assert_eq!(patient.classify(TEXTS[0].0).unwrap().label, TEXTS[0].1);
    assert!(log.has("reason=Displaced"), "{}", log.text());
    drop(server);
    let stayed: Vec<Duration> = idlers.into_iter().map(|i| i.join().unwrap()).collect();
    assert!(stayed.iter().all(|time| *time < Duration::from_secs(59)));
}
