//! Any bytes as what a peer sends, taken by every way of receiving: no more is held than was asked
//! for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::Script;
use primer_fuzz::sessions::peer_says;
use primer_ring::modulus::{K, P};
use primer_wire::kind::trial::FIRST as KIND;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let steps = script.bytes(6);
    let mut channel = peer_says(script.0.to_vec());
    for step in steps {
        let size = usize::from(step >> 3);
        let gone = match step & 7 {
            0 => {
                let got = channel.recv(KIND, size);
                assert!(got.as_ref().is_ok_and(|got| got.len() <= size) || got.is_err());
                got.is_err()
            }
            1 => channel.recv_exact(KIND, &mut vec![0; size]).is_err(),
            2 => channel.recv_value::<(u16, Vec<u8>)>(KIND, size).is_err(),
            3 => channel.recv_value::<String>(KIND, size).is_err(),
            4 | 5 => {
                // Widths and moduli of the protocol, and odd ones.
                let (width, modulus) = [(K, P), (3, 5)][size % 2];
                let mut out = vec![0; size];
                let got = channel.recv_residues(KIND, width, modulus, &mut out);
                assert!(got.is_err() || out.iter().all(|v| *v < modulus));
                got.is_err()
            }
            6 => match channel.recv_stream(KIND, size as u64) {
                Ok(mut stream) => {
                    let got = stream.get(&mut vec![0; size / 2]);
                    assert!(got.is_err() || stream.left() == (size - size / 2) as u64);
                    got.is_err()
                }
                Err(_) => true,
            },
            _ => channel.recv_value::<Option<[u8; 4]>>(KIND, size).is_err(),
        };
        // A refusal is final, unless only the value was wrong.
        if gone && step & 7 < 2 {
            assert!(channel.recv(KIND, 1 << 20).is_err());
            return;
        }
    }
});
