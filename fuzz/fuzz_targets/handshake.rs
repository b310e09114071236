//! A session from its first byte, one party real, the other played by the fuzzer: bytes of its own, or the true session
//! with changes. Each party must end with a result or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::Session;
use primer_fuzz::{Script, edited};
use std::sync::LazyLock;

static SESSIONS: LazyLock<[Session; 2]> = LazyLock::new(Session::both);

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = script.byte();
    let session = &SESSIONS[usize::from(choice & 1)];
    let said = match choice & 2 {
        0 => &session.from_server,
        _ => &session.from_client,
    };
    let told = match choice & 4 {
        0 => edited(&said.bytes, &said.frames, &mut script),
        _ => script.0.to_vec(),
    };
    let _ = match choice & 2 {
        0 => session.play_client(told),
        _ => session.play_server(told),
    };
});
