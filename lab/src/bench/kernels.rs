//! The machine's own figures behind the paper's schemes, beside those of the product.

use anyhow::{Context, Result};
use primer_measure::bench::kernels;
use primer_measure::note;
use primer_ot::Variant;
use serde_json::{Value, json};

/// What a figure is called, and what it is, besides [`kernels::FIGURES`].
pub const FIGURES: [(&str, &str); 12] = [
    ("ntt_8192_us", "transform of length 8192, one prime, us"),
    ("rotation_ms", "rotation of a ciphertext, ms"),
    (
        "product_term_us",
        "ciphertext times prepared weight, summed, us",
    ),
    ("encrypt_us", "encryption of 8192 slots, us"),
    ("decrypt_us", "decryption of an answer, us"),
    (
        "linear_30x768x768_tokens_first_s",
        "Enc(30x768) W(768x768), tokens-first, s",
    ),
    (
        "linear_30x768x768_features_first_s",
        "the same, features-first, s",
    ),
    (
        "heads_tokens_first_s",
        "products of heads of a BERT-base layer, tokens-first, s",
    ),
    (
        "rotations_tokens_first",
        "rotations of the tokens-first product",
    ),
    (
        "rotations_features_first",
        "rotations of the features-first product",
    ),
    (
        "ot_iknp_m_per_s",
        "oblivious transfers by IKNP, as the paper's schemes have them, million/s",
    ),
    ("bytes_per_ot_iknp", "bytes per such a transfer"),
];

/// Measures the building blocks: one object with all of [`FIGURES`] and [`kernels::FIGURES`].
///
/// # Errors
/// If one of them does not run on this machine.
pub fn measure() -> Result<Value> {
    let mut figures = kernels::measure()?;
    note!("primer: measuring the homomorphic layer with rotations");
    let he = primer_paper_he::measure::figures().context("measuring the homomorphic layer")?;
    note!("primer: measuring oblivious transfer by IKNP");
    let iknp = kernels::transfers(Variant::IKNP)?;
    let ours = json!({
        "ntt_8192_us": he.ntt_8192_us,
        "rotation_ms": he.rotation_ms,
        "product_term_us": he.product_term_us,
        "encrypt_us": he.encrypt_us,
        "decrypt_us": he.decrypt_us,
        "linear_30x768x768_tokens_first_s": he.linear_30x768x768_tokens_first_s,
        "linear_30x768x768_features_first_s": he.linear_30x768x768_features_first_s,
        "heads_tokens_first_s": he.heads_tokens_first_s,
        "rotations_tokens_first": he.rotations_tokens_first,
        "rotations_features_first": he.rotations_features_first,
        "ot_iknp_m_per_s": iknp.ot_m_per_s,
        "bytes_per_ot_iknp": iknp.bytes_per_ot,
    });
    if let (Value::Object(figures), Value::Object(ours)) = (&mut figures, ours) {
        figures.extend(ours);
    }
    Ok(figures)
}
