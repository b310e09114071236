//! The online phase with a stored bundle: what the peer says is changed, or the bundle is, as if a
//! store had not noticed.
//!
//! The sessions are recorded before fuzzing begins: their keys and offline phases take most of a
//! minute with the sanitiser, which an input's time-out must not count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::Session;
use primer_fuzz::{Script, edited};
use std::sync::LazyLock;

static SESSIONS: LazyLock<[Session; 3]> = LazyLock::new(Session::each);

fuzz_target!(init: LazyLock::force(&SESSIONS), |bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = script.byte();
    let session = &SESSIONS[usize::from(choice >> 6 | choice & 1) % 3];
    let (said, bundle) = match choice & 2 {
        0 => (&session.from_server, &session.client_bundle),
        _ => (&session.from_client, &session.server_bundle),
    };
    let (told, bundle) = match choice & 4 {
        0 => (edited(&said.bytes, &said.frames, &mut script), bundle.clone()),
        _ => (said.bytes.clone(), edited(bundle, &[0], &mut script)),
    };
    let _ = match choice & 2 {
        0 => session.play_client(&told, &bundle),
        _ => session.play_server(&told, &bundle),
    };
});
