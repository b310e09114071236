//! Any bytes as stored material of transfers and stops: refused, or as good as what encodes to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::Script;
use primer_fuzz::sessions::peer_says;
use primer_garble::stop::Stop;
use primer_ot::{Bits, ChosenReceiver, ChosenSender, ProductReceiver, ProductSender};
use primer_plan::function::Function;
use primer_ring::modulus::P;
use primer_stops::{ClientMaterial, Job, RequantiseClient, RequantiseServer, ServerMaterial};
use std::sync::{Arc, LazyLock};

static JOBS: LazyLock<[Job; 2]> = LazyLock::new(|| {
    let relu = Function::Relu {
        ring_bits: 8,
        fraction: 2,
    };
    let stops = [Stop::new(&relu, 1), Stop::argmax(6, 3)];
    stops.map(|stop| Job::new(Arc::new(stop.unwrap()), 2).unwrap())
});

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let (kind, choice) = (script.byte() % 9, script.byte());
    let n = match choice >> 3 {
        31 => usize::MAX,
        30 => 1 << 60,
        n => usize::from(n),
    };
    let modulus = [P, 2, 3, 256, 1 << 57, 0, 1, u64::MAX][usize::from(choice & 7)];
    let told = script.0;
    let job = &JOBS[usize::from(choice & 1)];
    let again = match kind {
        0 => ChosenSender::from_bytes(told, n, modulus)
            .ok()
            .map(ChosenSender::into_bytes),
        1 => ChosenReceiver::from_bytes(told, n, modulus)
            .ok()
            .map(ChosenReceiver::into_bytes),
        2 => ProductSender::from_bytes(told, n, modulus)
            .ok()
            .map(ProductSender::into_bytes),
        3 => ProductReceiver::from_bytes(told, n, modulus)
            .ok()
            .map(ProductReceiver::into_bytes),
        4 => RequantiseClient::from_bytes(told, n)
            .ok()
            .map(RequantiseClient::into_bytes),
        5 => RequantiseServer::from_bytes(told, 2 + u32::from(choice & 63), n)
            .ok()
            .map(RequantiseServer::into_bytes),
        6 => {
            // Masks are reduced when they are read, so other bytes may come back.
            if let Ok(material) = ServerMaterial::from_bytes(job, told) {
                assert_eq!(material.into_bytes().len(), told.len());
            }
            None
        }
        7 => {
            let (stored, said) = told.split_at(told.len() / 2);
            let mut channel = peer_says(said.to_vec());
            let material = ClientMaterial::stored(job);
            let _ = match choice & 1 {
                0 => material.finish(&mut channel, &mut &*stored, &vec![0; job.outputs()]),
                _ => material.show(&mut channel, &mut &*stored).map(drop),
            };
            None
        }
        _ => Bits::from_bytes(told.to_vec(), n)
            .ok()
            .map(|bits| bits.bytes().to_vec().into()),
    };
    if let Some(again) = again {
        assert!(*again == told, "one material, one encoding");
    }
});
