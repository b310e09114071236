//! Any bytes as stored material of transfers and stops: refused, or as good as what encodes to the
//! same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::sessions::peer_says;
use primer_fuzz::{Script, stops};
use primer_ot::{
    BitReceiver, BitSender, Bits, PadReceiver, PadSender, ProductReceiver, ProductSender,
};
use primer_ring::modulus::P;
use primer_stops::{ClientStop, ServerStop, TwoPartyStop};
use std::sync::{Arc, LazyLock};

/// A stop of each kind.
static STOPS: LazyLock<Vec<Arc<dyn TwoPartyStop>>> = LazyLock::new(stops::all);

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
            if let Ok(mut pending) = heard {
                assert_eq!(pending.flags().len(), stop.flags());
                let _ = pending.answer(&mut channel);
            }
            None
        }
        3 => {
            let mut channel = peer_says(said.to_vec());
            let shares = vec![1; stop.elements()];
            let asked = ServerStop::request(stop, &mut channel, &mut &*stored, &shares);
            if let Ok(mut waiting) = asked {
                assert_eq!(waiting.flags().len(), stop.flags());
                let _ = waiting.receive(&mut channel);
            }
            None
        }
        4 => BitSender::from_bytes(told, n, modulus)
            .ok()
            .map(BitSender::into_bytes),
        5 => BitReceiver::from_bytes(told, n, modulus)
            .ok()
            .map(BitReceiver::into_bytes),
        6 => PadSender::from_bytes(told, n, 2, modulus)
            .ok()
            .map(PadSender::into_bytes),
        7 => PadReceiver::from_bytes(told, n, 2, modulus)
            .ok()
            .map(PadReceiver::into_bytes),
        _ => Bits::from_bytes(told.to_vec(), n)
            .ok()
            .map(|bits| bits.bytes().to_vec().into()),
    };
    if let Some(again) = again {
        assert!(*again == told, "one material, one encoding");
    }
});
