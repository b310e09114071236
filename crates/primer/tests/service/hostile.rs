//! Requests that make no sense, and bundles of other clients. Near, and with 100 ms between.

use crate::peer::{greet_as, refusal, welcomed};
use primer::service::message::{Refusal, Reply, Request};
use primer::service::{BundleId, ServiceError, VERSION};
use primer_testkit::TEXTS;
use primer_testkit::far::Link;
use primer_testkit::server::Server;
use primer_wire::kind::{service, trial};
use std::path::Path;

#[test]
fn requests_that_make_no_sense_are_refused_by_name() {
    requests_that_make_no_sense(Link::Near);
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name_from_far() {
    requests_that_make_no_sense(Link::Far);
}

fn requests_that_make_no_sense(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.limits.tokens = 32;
    });
    let at = (&server, &*link.to(&server.address));
    let (_, card) = greet_as(at, VERSION + 1, [1; 32]);
    assert!(matches!(card, Err(ServiceError::Refused(Refusal::Version(v))) if v == VERSION));
    let mut channel = welcomed(at, [1; 32]);
    let id = BundleId::from_bytes([7; 16]);
    let infer = |fingerprint| Request::Infer { id, fingerprint };
    assert_eq!(refusal(&mut channel, infer([0; 32])), Refusal::Unknown(id));
    for tokens in [0, 9, 33, u32::MAX] {
        let asked = refusal(
            &mut channel,
            Request::Prepare {
                id,
                tokens,
                bundles: 1,
                session: Some([1; 32]),
            },
        );
        assert_eq!(
            asked,
            Refusal::Tokens {
                asked: tokens,
                limit: 32
            }
        );
    }
    for (first, count) in [
        (0, 0),
        (0, 65),
        (4, 1),
        (3, 2),
        (u32::MAX, 1),
        (1, u32::MAX),
    ] {
        let asked = refusal(&mut channel, Request::HintChunks { first, count });
        assert_eq!(asked, Refusal::Hint, "{first} {count}");
    }
    Request::Forget(id).send(&mut channel).unwrap();
    assert_eq!(Reply::receive(&mut channel).unwrap(), Reply::Done);
    Request::List.send(&mut channel).unwrap();
    assert_eq!(
        Reply::receive(&mut channel).unwrap(),
        Reply::Listing(Vec::new())
    );
    // Garbage ends the connection and nothing else.
    for (kind, bytes) in [
        (service::REQUEST, vec![0xff; 64]),
        (service::REQUEST, vec![0; 4096]),
        (trial::FIRST, vec![1]),
    ] {
        let mut channel = welcomed(at, [2; 32]);
        channel.send(kind, &bytes).unwrap();
        channel.flush().unwrap();
        assert!(Reply::receive(&mut channel).is_err());
    }
    // Nor is there a session that a first preparation could go on in.
    let mut channel = welcomed(at, [2; 32]);
    let request = Request::Prepare {
        id,
        tokens: 8,
        bundles: 1,
        session: None,
    };
    request.send(&mut channel).unwrap();
    assert!(Reply::receive(&mut channel).is_err());
    server
        .metrics
        .counts("primer_connections_failed_total", 4.0);
    let found = server
        .client(&dir.path().join("client"))
        .classify(TEXTS[0].0);
    assert_eq!(found.unwrap().label, TEXTS[0].1);
}

#[test]
fn a_bundle_serves_its_client_and_its_plan_only() {
    a_bundle_of_another(Link::Near);
}

#[test]
fn a_bundle_serves_its_client_and_its_plan_only_from_far() {
    a_bundle_of_another(Link::Far);
}

fn a_bundle_of_another(link: Link) {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("client");
    let server = Server::start(&dir.path().join("server"));
    let at = (&server, &*link.to(&server.address));
    let mut owner = primer::Client::connect(at.1, server.options(&state)).unwrap();
    let id = owner.prepare(16, 1).unwrap()[0];
    // Another client does not even learn that it exists.
    let mut channel = welcomed(at, [9; 32]);
    let fingerprint = [3; 32];
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::Unknown(id));
    // The owner with another plan.
    let pseudonym = pseudonym_of(&state, at.1);
    let mut channel = welcomed(at, pseudonym);
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::OtherProgram(id));
    let tokens = 16;
    let asked = refusal(
        &mut channel,
        Request::Prepare {
            id,
            tokens,
            bundles: 1,
            session: Some([1; 32]),
        },
    );
    assert_eq!(asked, Refusal::Taken(id));
    drop(channel);
    // Nothing was spent by all that.
    let found = owner.classify(TEXTS[1].0).unwrap();
    assert_eq!(
        (&*found.label, found.cost.prepared_ahead),
        (TEXTS[1].1, true)
    );
    let mut channel = welcomed(at, pseudonym);
    let asked = refusal(&mut channel, Request::Infer { id, fingerprint });
    assert_eq!(asked, Refusal::Spent(id));
}

fn pseudonym_of(state: &Path, address: &str) -> [u8; 32] {
    let name = address.replace(':', "_");
    let bytes = std::fs::read(state.join("client/pseudonyms").join(name)).unwrap();
    bytes.try_into().unwrap()
}
