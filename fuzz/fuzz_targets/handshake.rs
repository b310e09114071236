//! The handshake, one party real, the other played by the fuzzer: bytes of its own, or the true
//! first message with changes and bytes after it. Each party must end with an error: the peer never
//! gets as far as its keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::{Greeting, peer_says};
use primer_fuzz::{Script, edited};
use std::sync::LazyLock;

static GREETINGS: LazyLock<[Greeting; 3]> = LazyLock::new(Greeting::each);

fuzz_target!(init: LazyLock::force(&GREETINGS), |bytes: &[u8]| {
    let mut script = Script(bytes);
    let choice = script.byte();
    let Greeting {
        case,
        hello,
        welcome,
    } = &GREETINGS[usize::from(choice >> 6 | choice & 1) % 3];
    let truth = if choice & 2 == 0 { welcome } else { hello };
    let told = match choice & 12 {
        0 => script.0.to_vec(),
        4 => [truth, script.0].concat(),
        _ => edited(truth, &[0, 8], &mut script),
    };
    // An untouched welcome would only make the client draw its keys.
    if choice & 2 == 0 && told.starts_with(welcome) {
        return;
    }
    let mut channel = peer_says(told);
    let failed = match choice & 2 {
        0 => case.open(&mut channel).is_err(),
        _ => case.accept(&mut channel).is_err(),
    };
    assert!(failed, "a peer that has no keys was welcomed");
});
