//! The machine's own figures, the ones that costs are made of.

use anyhow::{Context, Result};
use primer_model::fold::FloatWeights;
use primer_model::measure::float_speed;
use primer_model::synthetic;
use primer_ot::{Measurement, Variant};
use primer_ring::measure::clear_gmac_per_s;
use primer_ring::prg::Prg;
use primer_rlwe::measure::heads;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What a figure is called, and what it is.
pub const FIGURES: [(&str, &str); 19] = [
    (
        "threads",
        "threads of each measurement that does not say so",
    ),
    (
        "linear_30x768x768_lean_s",
        "30x768 times 768x768 by a hint, a batch for one bundle, s",
    ),
    (
        "linear_30x768x768_lean_eights_s",
        "the same, for each of the eight bundles of a full batch, s",
    ),
    ("heads_lean_s", "products of heads of a BERT-base layer, s"),
    (
        "lean_gmac_per_s",
        "a full batch of 256 rows by a hint, 768x768, G multiply-adds/s",
    ),
    (
        "clear_gmac_per_s",
        "product in the clear, 30x768x768, G multiply-adds/s",
    ),
    ("garble_mand_per_s", "garbling of GELU, million AND/s"),
    ("evaluate_mand_per_s", "evaluation of GELU, million AND/s"),
    ("gelu_and_gates", "AND gates of a GELU"),
    ("exp_and_gates", "AND gates of an exponential"),
    (
        "softmax_and_gates_per_element",
        "AND gates of softmax per element, rows of 30",
    ),
    (
        "ot_m_per_s",
        "oblivious transfers, million/s of both parties' time",
    ),
    ("bytes_per_and", "bytes per AND gate"),
    ("bytes_per_ot", "bytes per oblivious transfer"),
    (
        "lookup_256_offline_us",
        "look-up in a table of 256, prepared, the slower party, us",
    ),
    (
        "lookup_256_offline_bytes",
        "bytes per look-up in a table of 256, offline",
    ),
    (
        "lookup_256_online_ns",
        "look-up in a table of 256, online, the slower party, ns",
    ),
    ("lookup_online_bytes", "bytes per look-up online"),
    ("float_gflops", "float BERT, 30 tokens, GFLOP/s"),
];

/// Measures the building blocks: one object with all of [`FIGURES`].
///
/// # Errors
/// If one of them does not run on this machine.
pub fn measure() -> Result<Value> {
    let mut rng = Prg::from_os();
    crate::note!("primer: measuring products of secrets");
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let heads = heads(3, clock, &mut rng);
    let heads = heads.context("measuring products of secrets")?;
    crate::note!("primer: measuring hints");
    let hint = primer_hint::measure::figures((768, 768), 20, &mut rng);
    let hint = hint.context("measuring hints")?;
    let clear = clear_gmac_per_s((30, 768, 768), 100, &mut rng);
    crate::note!("primer: measuring garbling");
    let garble = primer_garble::measure::measure(Duration::from_secs(4));
    crate::note!("primer: measuring oblivious transfer");
    let ot = transfers(Variant::SOFT_4)?;
    crate::note!("primer: measuring look-ups");
    let lookup = primer_stops::measure::measure(1 << 15, 10).context("measuring look-ups")?;
    crate::note!("primer: measuring the float reference");
    let float = {
        // Two layers of BERT-base; the vocabulary takes no part in the products.
        let mut shape = synthetic::bert_shape(2, 768, 12);
        shape.vocab = 1000;
        let checkpoint = synthetic::checkpoint(&shape, &[1; 16]);
        float_speed(&FloatWeights::fold(&shape, &checkpoint), 30, 10)
    };
    Ok(json!({
        "threads": 1,
        "linear_30x768x768_lean_s": hint.batch_s,
        "linear_30x768x768_lean_eights_s": hint.batch_s / 8.0,
        "heads_lean_s": heads,
        "lean_gmac_per_s": hint.gmac_per_s,
        "clear_gmac_per_s": clear,
        "garble_mand_per_s": garble.garble_mand_per_s,
        "evaluate_mand_per_s": garble.evaluate_mand_per_s,
        "gelu_and_gates": garble.gelu_and_gates,
        "exp_and_gates": garble.exp_and_gates,
        "softmax_and_gates_per_element": garble.softmax_and_gates_per_element,
        "ot_m_per_s": ot.ot_m_per_s,
        "bytes_per_and": garble.bytes_per_and,
        "bytes_per_ot": ot.bytes_per_ot,
        "lookup_256_offline_us": lookup.lookup_256_offline_us,
        "lookup_256_offline_bytes": lookup.lookup_256_offline_bytes,
        "lookup_256_online_ns": lookup.lookup_256_online_ns,
        "lookup_online_bytes": lookup.lookup_online_bytes,
        "float_gflops": float.gflops(),
    }))
}

/// Measures oblivious transfers of a variant: short runs, of which some are not interrupted, and
/// side by side.
///
/// # Errors
/// If they do not run on this machine.
pub fn transfers(variant: Variant) -> Result<Measurement> {
    primer_ot::measure(variant, 1 << 18, 40).context("measuring oblivious transfer")
}
