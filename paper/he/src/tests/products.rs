//! Products against the schoolbook, in both packings, with their counts.

use super::{pair, product, residues, signed, weights};
use crate::error::HeError;
use crate::evaluate::Evaluator;
use crate::keys::GaloisKeys;
use crate::packing::chunks::{BlockShape, Chunks};
use crate::packing::layout::{Layout, Packing};
use crate::packing::matrix::EncryptedMatrix;
use crate::packing::weights::PreparedWeights;
use crate::params::{products, rotating, with_simd};
use primer_lattice::simd::Simd;
use primer_ring::matrix::Matrix;
use primer_rlwe::error::HeError as Common;
use primer_rlwe::keys::PublicKey;
use proptest::prelude::*;

fn dense_case(layout: &Layout, inputs: usize, outputs: usize, seed: u8) {
    let mut p = pair(layout, seed);
    let w = weights(&mut p.rng, inputs, outputs);
    let x = residues(&mut p.rng, layout.tokens(), inputs);
    let mask = residues(&mut p.rng, layout.tokens(), outputs);
    let prepared = PreparedWeights::dense(&p.params, layout, &w).unwrap();
    let sent = EncryptedMatrix::encrypt(&p.secret, layout, prepared.input_chunks(), &x, &mut p.rng)
        .unwrap();
    let (answer, counters) = p
        .server
        .linear(&sent, &prepared, Some(&mask), &mut p.rng)
        .unwrap();
    assert!(answer.decrypt(&p.secret).unwrap() == product(&x, &signed(&w), &mask));

    // The counts of paper/docs/he.md.
    let shape = BlockShape::dense(inputs, outputs);
    let (ins, outs) = (shape.input_chunks(layout), shape.output_chunks(layout));
    let baby = layout.baby_steps();
    let runs = EncryptedMatrix::count(layout, &ins) / ins.len();
    assert_eq!(counters.inputs, runs * ins.len());
    assert_eq!(counters.hoisted, runs * ins.len() * (baby - 1));
    assert_eq!(counters.answers, runs * outs.len());
    let giants = counters.products / (runs * ins.len() * outs.len() * baby);
    assert_eq!(
        counters.rotations,
        counters.hoisted + runs * outs.len() * (giants - 1)
    );
    assert_eq!(
        prepared.memory(),
        PreparedWeights::dense_bytes(&p.params, layout, shape).unwrap()
    );
    assert_eq!(
        prepared.memory(),
        4 * p.params.all_primes() * layout.period() * counters.products / runs
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    #[test]
    fn tokens_first_is_the_schoolbook(
        tokens in 1usize..=128,
        inputs in 1usize..600,
        outputs in 1usize..400,
        seed: u8,
    ) {
        let layout = Layout::tokens_first(&products(), tokens).unwrap();
        dense_case(&layout, inputs, outputs, seed);
    }

    #[test]
    fn features_first_is_the_schoolbook(
        tokens in 1usize..=2,
        inputs in 1usize..600,
        outputs in 1usize..300,
        seed: u8,
    ) {
        let width = inputs.min(outputs);
        let layout = Layout::features_first(&products(), tokens, width).unwrap();
        dense_case(&layout, inputs, outputs, seed);
    }
}

#[test]
fn many_inputs_go_in_groups() {
    // Ten input ciphertexts: more than are rotated at once, as in the embedding.
    let layout = Layout::tokens_first(&products(), 100).unwrap();
    dense_case(&layout, 610, 3, 7);
}

#[test]
fn features_first_matrices_wider_than_the_model_split() {
    let layout = Layout::features_first(&products(), 1, 100).unwrap();
    assert_eq!(layout.period(), 128);
    dense_case(&layout, 100, 400, 8);
    dense_case(&layout, 400, 100, 9);
}

#[test]
fn more_tokens_than_cells_are_runs_of_rows() {
    for (tokens, inputs, outputs) in [(257, 40, 70), (320, 70, 20), (512, 64, 33)] {
        let layout = Layout::tokens_first(&products(), tokens).unwrap();
        dense_case(&layout, inputs, outputs, 10);
    }
}

#[test]
fn streamed_weights_give_the_same_product() {
    // Groups of inputs in one run, then two runs of rows, then a run for each row.
    let params = products();
    for (layout, inputs) in [
        (Layout::tokens_first(&params, 100).unwrap(), 610),
        (Layout::tokens_first(&params, 300).unwrap(), 50),
        (Layout::features_first(&params, 2, 70).unwrap(), 200),
    ] {
        streamed_case(&layout, inputs);
    }
}

fn streamed_case(layout: &Layout, inputs: usize) {
    let mut p = pair(layout, 3);
    let w = weights(&mut p.rng, inputs, 70);
    let x = residues(&mut p.rng, layout.tokens(), inputs);
    let mask = residues(&mut p.rng, layout.tokens(), 70);
    let prepared = PreparedWeights::streamed(&p.params, layout, w.clone()).unwrap();
    assert_eq!(prepared.memory(), 2 * inputs * 70);
    let sent = EncryptedMatrix::encrypt(&p.secret, layout, prepared.input_chunks(), &x, &mut p.rng)
        .unwrap();
    let (answer, _) = p
        .server
        .linear(&sent, &prepared, Some(&mask), &mut p.rng)
        .unwrap();
    assert!(answer.decrypt(&p.secret).unwrap() == product(&x, &signed(&w), &mask));
}

/// Counts the rotations of a direct product, without baby and giant steps, for each input
/// ciphertext: one for each diagonal that is not the main one. This is the count of the paper's
/// claim.
fn direct_rotations(layout: &Layout, width_in: usize, width_out: usize) -> usize {
    match layout.packing() {
        Packing::TokensFirst => width_in + width_out - 2,
        Packing::FeaturesFirst => layout.period() - 1,
    }
}

#[test]
fn the_papers_claim_by_count() {
    // M rotations for a ciphertext of M features against M/n (twice, as features wrap between
    // tokens) when it holds n tokens; and what baby and giant steps leave of both.
    let params = products();
    let tokens_first = Layout::tokens_first(&params, 30).unwrap();
    let features_first = Layout::features_first(&params, 30, 768).unwrap();
    let m = features_first.period();
    assert_eq!(direct_rotations(&features_first, 768, 768), m - 1);
    assert_eq!(
        direct_rotations(&tokens_first, 256, 256),
        2 * (params.degree() / 32) - 2
    );
    let ciphertexts = |l: &Layout| EncryptedMatrix::count(l, &Chunks::even(l, 768));
    assert_eq!(
        (ciphertexts(&features_first), ciphertexts(&tokens_first)),
        (30, 3)
    );
    let direct = |l: &Layout| ciphertexts(l) * direct_rotations(l, 256, 256);
    assert_eq!(direct(&features_first), 30 * 1023);
    assert_eq!(direct(&tokens_first), 3 * 510);
}

#[test]
fn without_mask_the_product_itself() {
    let layout = Layout::tokens_first(&products(), 200).unwrap();
    let mut p = pair(&layout, 3);
    let w = weights(&mut p.rng, 20, 30);
    let x = residues(&mut p.rng, 200, 20);
    let prepared = PreparedWeights::dense(&p.params, &layout, &w).unwrap();
    let sent =
        EncryptedMatrix::encrypt(&p.secret, &layout, prepared.input_chunks(), &x, &mut p.rng)
            .unwrap();
    let (answer, _) = p.server.linear(&sent, &prepared, None, &mut p.rng).unwrap();
    assert!(
        answer.decrypt(&p.secret).unwrap() == product(&x, &signed(&w), &Matrix::zeros(200, 30))
    );
}

#[test]
fn plain_rust_serves_vector_clients() {
    // A server without vector instructions, a client with what this machine has.
    let layout = Layout::tokens_first(&products(), 200).unwrap();
    let mut p = pair(&layout, 4);
    let portable = with_simd(8192, 6, Simd::portable()).unwrap();
    let public = PublicKey::generate(&p.secret, &mut p.rng);
    let galois = GaloisKeys::generate(&p.secret, layout.rotations(), &mut p.rng);
    let public = PublicKey::from_bytes(&portable, &public.to_bytes()).unwrap();
    let galois = GaloisKeys::from_bytes(&portable, &galois.to_bytes()).unwrap();
    let mut server = Evaluator::new(public, galois).unwrap();
    let w = weights(&mut p.rng, 40, 30);
    let x = residues(&mut p.rng, 200, 40);
    let mask = residues(&mut p.rng, 200, 30);
    let prepared = PreparedWeights::dense(&portable, &layout, &w).unwrap();
    let chunks = prepared.input_chunks();
    let sent = EncryptedMatrix::encrypt(&p.secret, &layout, chunks, &x, &mut p.rng).unwrap();
    let (answer, _) = server
        .linear(&sent, &prepared, Some(&mask), &mut p.rng)
        .unwrap();
    assert!(answer.decrypt(&p.secret).unwrap() == product(&x, &signed(&w), &mask));
}

#[test]
fn heads_are_blocks_of_full_range() {
    let params = products();
    // Shapes of U·Rkᵀ (two heads a chunk; then a head wider than a cell) and of Uₚ·Rᵥ.
    // Then scores and mixing of 512 tokens.
    for (tokens, heads, inputs, outputs) in [
        (60, 3, 64, 60),
        (130, 2, 32, 50),
        (64, 3, 30, 30),
        (512, 2, 64, 512),
        (512, 2, 512, 64),
        (64, 2, 512, 512),
    ] {
        let layout = Layout::tokens_first(&params, tokens).unwrap();
        let mut p = pair(&layout, 5);
        let blocks: Vec<_> = (0..heads)
            .map(|_| residues(&mut p.rng, inputs, outputs))
            .collect();
        let x = residues(&mut p.rng, tokens, heads * inputs);
        let mask = residues(&mut p.rng, tokens, heads * outputs);
        let prepared = PreparedWeights::blocks(&params, &layout, &blocks).unwrap();
        let sent =
            EncryptedMatrix::encrypt(&p.secret, &layout, prepared.input_chunks(), &x, &mut p.rng)
                .unwrap();
        let (answer, _) = p
            .server
            .linear(&sent, &prepared, Some(&mask), &mut p.rng)
            .unwrap();
        let got = answer.decrypt(&p.secret).unwrap();
        for (h, block) in blocks.iter().enumerate() {
            let want = product(
                &x.columns(h * inputs, inputs),
                block,
                &mask.columns(h * outputs, outputs),
            );
            assert!(
                got.columns(h * outputs, outputs) == want,
                "head {h} of {heads}"
            );
        }
    }
}

#[test]
fn misfits_are_errors() {
    let params = products();
    let layout = Layout::tokens_first(&params, 200).unwrap();
    let other = Layout::tokens_first(&params, 100).unwrap();
    let mut p = pair(&layout, 8);
    let w = weights(&mut p.rng, 40, 40);
    let x = residues(&mut p.rng, 200, 40);
    let prepared = PreparedWeights::dense(&params, &layout, &w).unwrap();
    let sent =
        EncryptedMatrix::encrypt(&p.secret, &layout, prepared.input_chunks(), &x, &mut p.rng)
            .unwrap();
    let short = PreparedWeights::dense(
        &params,
        &layout,
        &w.columns(0, 40).transpose().columns(0, 39).transpose(),
    )
    .unwrap();
    let wrong_layout = PreparedWeights::dense(&params, &other, &w).unwrap();
    for prepared in [&short, &wrong_layout] {
        assert!(matches!(
            p.server.linear(&sent, prepared, None, &mut p.rng),
            Err(HeError::Common(Common::Mismatch { .. }))
        ));
    }
    let mask = residues(&mut p.rng, 200, 41);
    assert!(matches!(
        p.server.linear(&sent, &prepared, Some(&mask), &mut p.rng),
        Err(HeError::Common(Common::Mismatch { .. }))
    ));
    // Keys for another layout.
    let mut q = pair(&other, 8);
    let small = Layout::tokens_first(&params, 16).unwrap();
    let prepared = PreparedWeights::dense(&params, &small, &w).unwrap();
    let x = residues(&mut q.rng, 16, 40);
    let sent = EncryptedMatrix::encrypt(&q.secret, &small, prepared.input_chunks(), &x, &mut q.rng)
        .unwrap();
    assert!(matches!(
        q.server.linear(&sent, &prepared, None, &mut q.rng),
        Err(HeError::MissingKey { .. })
    ));
    // Too little modulus for a product with flooding.
    let five = rotating(8192, 5).unwrap();
    assert!(matches!(
        PreparedWeights::dense(&five, &layout, &w),
        Err(HeError::NoiseBudget { .. })
    ));
}
