//! A stored bundle with changes: what comes out is what went in, or an error. And any bytes as
//! records of the index.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::{Script, edited};
use primer_store::seal::{BundleKey, CHUNK_BYTES, Opener, SALT_BYTES, Sealer, TAG_BYTES};
use primer_store::{BundleId, decode_records};
use std::io::{Read, Write};
use std::sync::LazyLock;

fn key() -> BundleKey {
    BundleKey::derive(&[1; 32], BundleId::from_bytes([2; 16]), &[3; SALT_BYTES])
}

static SEALED: LazyLock<[(Vec<u8>, Vec<u8>); 3]> = LazyLock::new(|| {
    [0, 100, CHUNK_BYTES + 100].map(|bytes| {
        let plain: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
        let mut sealer = Sealer::new(Vec::new(), key());
        sealer.write_all(&plain).unwrap();
        (plain, sealer.finish().unwrap().0)
    })
});

fuzz_target!(|bytes: &[u8]| {
    let _ = decode_records(bytes);
    let mut script = Script(bytes);
    let choice = script.byte();
    let (plain, sealed) = &SEALED[usize::from(choice) % 3];
    let told = match choice & 4 {
        0 => edited(
            sealed,
            &[0, CHUNK_BYTES, CHUNK_BYTES + TAG_BYTES],
            &mut script,
        ),
        _ => script.0.to_vec(),
    };
    // The length may lie as well.
    let length = match choice & 8 {
        0 => told.len() as u64,
        _ => script.below(1 << 20) as u64,
    };
    let Ok(mut opener) = Opener::new(&told[..], key(), length) else {
        return;
    };
    let mut out = Vec::new();
    let end = opener.read_to_end(&mut out);
    assert!(
        plain.starts_with(&out),
        "nothing but what was written is given out"
    );
    if end.is_ok() {
        assert!(out == *plain, "nothing is left out");
    }
});
