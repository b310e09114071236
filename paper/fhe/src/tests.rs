//! The whole way at toy size: real ciphertexts, a ring that is far too small to be secure.

use crate::arithmetic::Operation;
use crate::ckks::params::Params;
use crate::error::FheError;
use crate::fit::fit;
use crate::polynomials::{Degrees, Polynomials};
use crate::setup::{Counted, Setup};
use crate::{client, server, wire};
use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::synthetic;
use primer_paper_plan::Form;
use primer_plan::shape::{Head, Shape};
use primer_ring::prg::Prg;
use primer_text::Input;
use primer_wire::kind::fhe::KEY;
use primer_wire::{Channel, Options, run_pair, run_parties};

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
    let weights = Form::Separate.weights(&weights);
    let inputs: Vec<Input> = (0..12)
        .map(|salt| input(tokens, tokens - salt % 2, salt))
        .collect();
    let polynomials = fit(&weights, &inputs, degrees, |_, _| {});
    (weights, polynomials)
}

/// Runs a whole inference and returns the largest error of a logit.
fn infer(setup: &Setup, weights: &FloatWeights, polynomials: &Polynomials, input: &Input) -> f64 {
    let mut rng = Prg::new(&[8; 16]);
    let options = Options {
        timeout: None,
        ..Options::default()
    };
    let (got, done) = run_parties(
        Channel::memory_pair(&options),
        |channel| client::run(channel, setup, input, &mut rng),
        |channel| server::run(channel, setup, weights, polynomials),
    );
    let (got, done) = (got.expect("a client"), done.expect("a server"));
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
        graph: Form::Separate.graph(shape, tokens),
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

/// Returns how often each operation happens, in the order of [`Operation::ALL`].
fn totals(counted: &Counted) -> [usize; 8] {
    Operation::ALL.map(|operation| counted.count.total(operation))
}

#[test]
fn counts_and_limits() {
    let degrees = Degrees::MIDDLE;
    let counted = Counted::of(&shape(32, 2), 8, &degrees, 32_768).unwrap();
    // Two more for the embedding and the head's linear maps, three LayerNorms, and so on: a change
    // must be meant.
    assert_eq!(counted.depth, 44);
    let depth = |degrees: &Degrees, layers: usize| {
        let shape = Shape {
            layers,
            ..shape(32, 2)
        };
        Counted::of(&shape, 8, degrees, 32_768).unwrap().depth
    };
    let all = [Degrees::LOW, Degrees::MIDDLE, Degrees::HIGH];
    assert_eq!(all.map(|degrees| depth(&degrees, 1)), [37, 44, 51]);
    assert_eq!(all.map(|degrees| depth(&degrees, 2)), [65, 77, 89]);
    assert_eq!(totals(&counted), [405, 344, 68, 129, 115, 99, 186, 257]);
    let wide = Counted::of(&shape(64, 2), 8, &degrees, 256).err().unwrap();
    assert_eq!(
        wide.to_string(),
        "the padded width of a token is 64, but must be between 1 and 32"
    );
    let deep = Shape {
        layers: 12,
        ..shape(8, 2)
    };
    let deep = Setup::new(&deep, 4, &degrees).err().unwrap();
    assert!(deep.to_string().contains("levels deep"), "{deep}");
    let encoder = Shape {
        head: Head::Span,
        ..shape(8, 2)
    };
    assert_eq!(
        Setup::new(&encoder, 4, &degrees).err(),
        Some(FheError::Head)
    );
}

#[test]
fn cost_grows_with_layers_as_their_operations_do() {
    let degrees = Degrees::MIDDLE;
    let of = |layers| {
        let shape = Shape {
            layers,
            ..shape(8, 2)
        };
        let counted = Counted::of(&shape, 4, &degrees, 1024).unwrap();
        (counted.depth, totals(&counted))
    };
    let (one, two, three) = (of(1), of(2), of(3));
    assert_eq!(three.0 - two.0, two.0 - one.0);
    for i in 0..8 {
        assert_eq!(three.1[i] - two.1[i], two.1[i] - one.1[i]);
    }
}

#[test]
fn hostile_messages_are_refused() {
    let degrees = Degrees::LOW;
    let shape = shape(8, 2);
    let (weights, polynomials) = model(&shape, &degrees, 4);
    let setup = toy(&shape, &degrees, 4, 512);
    let length = wire::key_bytes(&setup.params);
    // All ones: no residue is below its prime. One byte short: refused before anything is
    // allocated.
    for (payload, fault) in [
        (vec![0xff; length], "residue"),
        (vec![0; length - 1], "bytes"),
    ] {
        let error = run_pair(
            |channel| Ok::<_, FheError>(channel.send(KEY, &payload)?),
            |channel| server::run(channel, &setup, &weights, &polynomials),
        );
        let error = error.err().expect("refused").to_string();
        assert!(error.contains(fault), "{error}");
    }
    let mut rng = Prg::new(&[1; 16]);
    let (mut left, _right) = Channel::memory_pair(&Options::default());
    let short = client::run(&mut left, &setup, &input(2, 2, 0), &mut rng);
    assert_eq!(
        short.err().unwrap().to_string(),
        "an input of 2 tokens where the set-up has 4"
    );
}

#[test]
#[ignore = "a whole inference in a secure ring: minutes, and 4 GB"]
fn a_whole_inference_in_a_secure_ring() {
    let degrees = Degrees::MIDDLE;
    let shape = shape(16, 2);
    let (weights, polynomials) = model(&shape, &degrees, 4);
    let setup = Setup::new(&shape, 4, &degrees).unwrap();
    assert_eq!(setup.params.degree(), 65_536);
    let error = infer(&setup, &weights, &polynomials, &input(4, 3, 3));
    assert!(error < 1e-2, "{error}");
}
