//! What a server and its clients are known by: certificates, and the secret of a hint.

use primer::hints::stored::StoredHint;
use primer::{Client, ClientOptions, Clients, Identity, ServiceError};
use primer_testkit::TEXTS;
use primer_testkit::server::Server;
use std::path::Path;

#[test]
fn certificates_admit_clients() {
    let dir = tempfile::tempdir().unwrap();
    let [identity, other] = ["client", "other"].map(|name| {
        let names = [name.to_owned()];
        Identity::self_signed(&names).unwrap()
    });
    let server = Server::start_with(&dir.path().join("server"), |options| {
        options.clients = Clients::Pinned(vec![identity.fingerprint()]);
    });
    let connect = |identity: Option<&Identity>| {
        let options = ClientOptions {
            identity: identity.cloned(),
            attempts: 1,
            ..server.options(&dir.path().join("client"))
        };
        Client::connect(&server.address, options)
    };
    assert_eq!(
        connect(Some(&identity))
            .unwrap()
            .prepare(8, 1)
            .unwrap()
            .len(),
        1
    );
    for (identity, said) in [(None, false), (Some(&other), true)] {
        let error = connect(identity).err().unwrap();
        let refused =
            matches!(error, ServiceError::ClientCertificate { shown, .. } if shown == said);
        assert!(refused, "{error}");
    }
}

/// Checks that a server that comes back with another secret has another hint. Its client fetches it
/// by itself, and bundles of before are neither used nor lost.
#[test]
fn another_secret_is_another_hint() {
    let dir = tempfile::tempdir().unwrap();
    let [state, own] = ["server", "client"].map(|name| dir.path().join(name));
    let hints = |state: &Path, role: &str| {
        StoredHint::all(&state.join(role).join("hints"))
            .unwrap()
            .len()
    };
    let server = Server::start(&state);
    let address = server.address.clone();
    let again = || {
        Server::start_with(&state, |options| {
            options.listen.clone_from(&address);
        })
    };
    server.client(&own).prepare(8, 1).unwrap();
    server.stop();
    let key = state.join("server/hint.key");
    let old = std::fs::read(&key).unwrap();
    std::fs::write(&key, [7; 32]).unwrap();
    let other = again();
    let mut client = other.client(&own);
    let found = client.classify(TEXTS[0].0).unwrap();
    assert_eq!(
        (&*found.label, found.cost.prepared_ahead),
        (TEXTS[0].1, false)
    );
    // It is still there, and not for the server as it is now.
    assert!(client.prepared().unwrap().is_empty());
    assert_eq!(primer_testkit::stores::bundle_files(&own, "client"), 1);
    client.close();
    assert_eq!((hints(&own, "client"), hints(&state, "server")), (2, 1));
    other.stop();
    // With the old one they are of use again, and nothing is fetched or built.
    std::fs::write(&key, old).unwrap();
    let same = again();
    let found = same.client(&own).classify(TEXTS[1].0).unwrap();
    assert_eq!(
        (&*found.label, found.cost.prepared_ahead),
        (TEXTS[1].1, true)
    );
    assert_eq!((hints(&own, "client"), hints(&state, "server")), (2, 1));
}
