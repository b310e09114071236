//! The whole way at toy size: real ciphertexts, a ring that is far too small to be secure.

use crate::arithmetic::Operation;
use crate::ckks::params::Params;
use crate::fit::fit;
use crate::polynomials::{Degrees, Polynomials};
use crate::setup::{Counted, Setup};
use crate::{client, server};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::synthetic;
use primer_model::text::Input;
use primer_net::run_pair;
use primer_plan::graph::Graph;
use primer_plan::shape::Shape;
use primer_ring::prg::Prg;

fn shape(hidden: usize, heads: usize) -> Shape {
    Shape {
        vocab: 27,
        positions: 8,
        ..synthetic::bert_shape(1, hidden, heads)
    }
}

fn input(tokens: usize, length: usize, salt: usize) -> Input {
    let id = |t: usize| {
        if t < length {
            (7 * t + 5 * salt) % 27
        } else {
            0
        }
    };
    Input {
        ids: (0..tokens).map(|t| id(t) as u32).collect(),
        types: (0..tokens)
            .map(|t| u32::from(t > 1 && t < length))
            .collect(),
        length,
        removed: 0,
        second: vec![None; tokens],
    }
}

fn model(shape: &Shape, degrees: &Degrees, tokens: usize) -> (FloatWeights, Polynomials) {
    let weights = FloatWeights::fold(shape, &synthetic::checkpoint(shape, &[7; 16]));
    let inputs: Vec<Input> = (0..12)
        .map(|salt| input(tokens, tokens - salt % 2, salt))
        .collect();
    let polynomials = fit(&weights, &inputs, degrees, |_, _| {});
    (weights, polynomials)
}

/// A whole inference, and what it should have given.
fn infer(setup: &Setup, weights: &FloatWeights, polynomials: &Polynomials, input: &Input) -> f64 {
    let mut rng = Prg::new(&[8; 16]);
    let (got, done) = run_pair(
        |channel| client::run(channel, setup, input, &mut rng),
        |channel| server::run(channel, setup, weights, polynomials),
    )
    .expect("both parties succeed");
    assert_eq!(
        done.count, setup.counted.count,
        "the count is what was done"
    );
    assert!(done.times.total() > 0.0);
    let graph = weights.graph(setup.graph.tokens);
    let want = float::run_with(&graph, weights, input, polynomials, &mut NoObserver);
    let pairs = got.logits.iter().zip(want[0].row(0));
    pairs.fold(0.0, |worst, (got, want)| {
        f64::max(worst, (got - f64::from(*want)).abs())
    })
}

fn toy(shape: &Shape, degrees: &Degrees, tokens: usize, degree: usize) -> Setup {
    let counted = Counted::of(shape, tokens, degrees, degree / 2).unwrap();
    Setup {
        graph: Graph::bert(shape, tokens),
        params: Params::toy(degree, counted.depth, 5),
        counted,
    }
}

#[test]
fn a_whole_inference_is_the_polynomial_model() {
    let degrees = Degrees::MIDDLE;
    // Also with widths that are no powers of two, and with padding.
    for (hidden, heads, length) in [(8, 2, 4), (12, 3, 3)] {
        let shape = shape(hidden, heads);
        let (weights, polynomials) = model(&shape, &degrees, 4);
        let setup = toy(&shape, &degrees, 4, 512);
        let error = infer(&setup, &weights, &polynomials, &input(4, length, 3));
        assert!(error < 1e-2, "{hidden}: {error}");
    }
}

#[test]
fn several_vectors_for_wide_matrices() {
    let degrees = Degrees::LOW;
    let shape = shape(8, 2);
    let (weights, polynomials) = model(&shape, &degrees, 4);
    // Sixteen features a vector: the one-hot rows and the feed-forward layer take two.
    let setup = toy(&shape, &degrees, 4, 128);
    assert_eq!(setup.counted.ciphertexts, 3);
    let error = infer(&setup, &weights, &polynomials, &input(4, 4, 1));
    assert!(error < 1e-2, "{error}");
}

#[test]
fn counts_and_limits() {
    let degrees = Degrees::MIDDLE;
    let counted = Counted::of(&shape(8, 2), 4, &degrees, 1024).unwrap();
    // The squarings are four vectors times the degree's, and so on: a change of cost must be meant.
    assert_eq!(counted.depth, 0);
    assert_eq!(counted.count.total(Operation::Rotation), 0);
    let error = Counted::of(&shape(64, 2), 8, &degrees, 256).err().unwrap();
    assert_eq!(
        error.to_string(),
        "the padded width of a token is 64, but must be between 1 and 32"
    );
    let deep = Shape {
        layers: 12,
        ..shape(8, 2)
    };
    let error = Setup::new(&deep, 4, &degrees).err().unwrap();
    assert!(error.to_string().contains("levels deep"), "{error}");
}
