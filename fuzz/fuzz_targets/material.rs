//! Any bytes as stored material of transfers and stops: refused, or as good as what encodes to the
//! same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::Script;
use primer_fuzz::sessions::peer_says;
use primer_ot::{Bits, ProductReceiver, ProductSender};
use primer_plan::function::Function;
use primer_ring::modulus::P;
use primer_stops::means::Wanted;
use primer_stops::{ClientStop, Means, ServerStop, StopBuilder, Task, TwoPartyStop};
use std::sync::{Arc, LazyLock};

/// A stop of each kind.
static STOPS: LazyLock<Vec<Arc<dyn TwoPartyStop>>> = LazyLock::new(|| {
    let relu = Function::Relu {
        ring_bits: 8,
        fraction: 2,
    };
    let tasks = [
        (Means::Garbling, Wanted::Function(&relu)),
        (Means::Garbling, Wanted::Position),
        (Means::Transfers, Wanted::Same),
        (Means::LateTransfers, Wanted::Same),
    ];
    let stop = |(means, result)| {
        let task = Task {
            result,
            ring_bits: 8,
            rows: 2,
            cols: 3,
        };
        StopBuilder::default().stop(means, &task).unwrap()
    };
    tasks.map(stop).into()
});

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let (kind, choice) = (script.byte() % 5, script.byte());
    let n = match choice >> 3 {
        31 => usize::MAX,
        30 => 1 << 60,
        n => usize::from(n),
    };
    let modulus = [P, 2, 3, 256, 1 << 57, 0, 1, u64::MAX][usize::from(choice & 7)];
    let told = script.0;
    let stop = &*STOPS[usize::from(choice) % STOPS.len()];
    // What is stored, and what the peer says.
    let (stored, said) = told.split_at(told.len() / 2);
    let again = match kind {
        0 => ProductSender::from_bytes(told, n, modulus)
            .ok()
            .map(ProductSender::into_bytes),
        1 => ProductReceiver::from_bytes(told, n, modulus)
            .ok()
            .map(ProductReceiver::into_bytes),
        2 => {
            let mut channel = peer_says(said.to_vec());
            let masks = vec![0; stop.outputs()];
            let late = vec![1; if stop.is_late() { stop.elements() } else { 0 }];
            let heard = ClientStop::listen(stop, &mut channel, &mut &*stored, &late, &masks);
            if let Ok(owing) = heard {
                let _ = owing.answer(&mut channel);
            }
            None
        }
        3 => {
            let mut channel = peer_says(said.to_vec());
            let shares = vec![1; stop.elements()];
            if let Ok(waiting) = ServerStop::request(stop, &mut channel, &mut &*stored, &shares) {
                let _ = waiting.receive(&mut channel);
            }
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
