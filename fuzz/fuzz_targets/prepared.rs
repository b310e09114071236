//! Any bytes as a prepared model. The checksum is put right first: it guards against damage, not
//! against an attacker who computes it, and the fuzzer could not get past it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_model::quantise::IntModel;

fuzz_target!(|bytes: &[u8]| {
    let _ = IntModel::from_bytes(bytes);
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(blake3::hash(bytes).as_bytes());
    if let Ok(model) = IntModel::from_bytes(&whole) {
        let plan = model.plan(1);
        assert!(plan.is_ok_and(|p| p.graph().form == model.scales().form));
        let again = IntModel::from_bytes(&model.to_bytes());
        assert!(again.is_ok_and(|m| m.weights() == model.weights()));
    }
});
