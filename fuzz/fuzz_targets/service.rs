//! Any bytes as a message between client and server: a checked message or an error, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    primer::service::message::decode_any(bytes);
});
