//! The online phase with a stored bundle: what the peer says is changed, or the bundle is, as if a store had not noticed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::{Session, client_online, peer_says, server_online};
use primer_fuzz::{Script, edited};
use std::sync::LazyLock;

static SESSIONS: LazyLock<[Session; 2]> = LazyLock::new(Session::both);

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = script.byte();
    let session = &SESSIONS[usize::from(choice & 1)];
    let (said, bundle) = match choice & 2 {
        0 => (&session.from_server, &session.client_bundle),
        _ => (&session.from_client, &session.server_bundle),
    };
    let (told, frames) = said.online();
    let (told, bundle) = match choice & 4 {
        0 => (edited(told, &frames, &mut script), bundle.clone()),
        _ => (told.to_vec(), edited(bundle, &[0], &mut script)),
    };
    let mut channel = peer_says(told);
    let _ = match choice & 2 {
        0 => client_online(&mut channel, session.model.program(), bundle),
        _ => server_online(&mut channel, &session.model, bundle),
    };
});
