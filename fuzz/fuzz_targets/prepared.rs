//! Any bytes as a prepared model. The checksum is put right first: it guards against damage, not
//! against an attacker who computes it, and the fuzzer could not get past it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use primer_fuzz::DESIGNS;
use primer_model::quantise::IntModel;

fuzz_target!(|bytes: &[u8]| {
    let _ = IntModel::from_bytes(bytes);
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(blake3::hash(bytes).as_bytes());
    for design in DESIGNS {
        if let Ok(model) = IntModel::from_bytes_by(design, &whole) {
            assert!(model.plan(1).is_ok_and(|plan| plan.is_by(design)));
            let again = IntModel::from_bytes_by(design, &model.to_bytes());
            assert!(again.is_ok_and(|m| m.weights() == model.weights()));
        }
    }
});
