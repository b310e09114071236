//! The comparator's figures: a whole inference of a small model on ciphertexts, how well its cost
//! is predicted, and what BERT-base would cost. `cargo run --release -p primer-paper-fhe
//! --example fhe_figures [HIDDEN [TOKENS]]`
//!
//! One layer, hidden 32, 2 heads, feed-forward 128, 8 tokens, vocabulary 126, random weights, both
//! parties in one process on two cores that other work kept busy, processor time (`-- 32 8`): 43.8
//! s for 344 plain products, 129 products, 115 relinearisations, 188 rotations and 257 rescalings,
//! where the cost model predicts 26.8; another run 40.6 and 29.8. Keys 1,539,441,072 bytes once for
//! a session, input 22,609,952. Largest error of a logit against the same polynomials in the clear
//! `1.6·10^-4` (another run `2.0·10^-4`; `cargo test --release -p primer-paper-fhe -- --ignored`
//! asks for `10^-2`). Peak memory of both parties 4.5 GB.

use primer_model::float::{self, NoObserver};
use primer_model::fold::FloatWeights;
use primer_model::synthetic;
use primer_paper_fhe::arithmetic::{Location, Operation};
use primer_paper_fhe::cost::{Estimate, Ring, Units};
use primer_paper_fhe::fit::fit;
use primer_paper_fhe::polynomials::Degrees;
use primer_paper_fhe::setup::Setup;
use primer_paper_fhe::{client, server, wire};
use primer_paper_plan::Form;
use primer_plan::graph::PaperStep;
use primer_plan::shape::Shape;
use primer_ring::prg::Prg;
use primer_text::Input;
use primer_wire::{Channel, Options, run_parties};
use std::collections::BTreeMap;

fn input(shape: &Shape, tokens: usize, length: usize, salt: usize) -> Input {
    let id = |t: usize| (7 * t + 5 * salt + 1) % shape.vocab;
    Input {
        ids: (0..tokens)
            .map(|t| if t < length { id(t) as u32 } else { 0 })
            .collect(),
        types: vec![0; tokens],
        length,
        removed: 0,
        second: vec![None; tokens],
    }
}

fn places() -> impl Iterator<Item = Location> {
    PaperStep::ALL
        .into_iter()
        .flat_map(|step| [true, false].map(|in_layer| Location { step, in_layer }))
}

fn step_name(place: Location) -> String {
    let inside = if place.in_layer {
        ""
    } else {
        " (outside layers)"
    };
    format!("{}{inside}", place.step.name())
}

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut sizes = std::env::args().skip(1).map(|a| a.parse::<usize>());
    let hidden = sizes.next().transpose()?.unwrap_or(32);
    let tokens = sizes.next().transpose()?.unwrap_or(8);
    let degrees = Degrees::MIDDLE;
    let shape = Shape {
        vocab: 126,
        positions: 64,
        ..synthetic::bert_shape(1, hidden, 2)
    };
    let weights = FloatWeights::fold(&shape, &synthetic::checkpoint(&shape, &[7; 16]));
    let weights = Form::Separate.weights(&weights);
    let texts: Vec<Input> = (0..32)
        .map(|salt| input(&shape, tokens, tokens - salt % 3, salt))
        .collect();
    let polynomials = fit(&weights, &texts, &degrees, |_, _| {});
    let setup = Setup::new(&shape, tokens, &degrees)?;
    let params = &*setup.params;
    println!(
        "hidden {hidden}, 2 heads, {tokens} tokens, vocabulary {}: depth {}, degree {}, \
         {} + {} primes ({:.0} bits), {} digits, {} keys",
        shape.vocab,
        setup.counted.depth,
        params.degree(),
        params.data(),
        params.special(),
        params.modulus_bits(),
        params.digits(),
        setup.counted.rotations.len() + 1
    );
    println!(
        "bytes: keys {}, input {}, answer {}",
        (setup.counted.rotations.len() + 1) * wire::key_bytes(params),
        setup.counted.ciphertexts * wire::ciphertext_bytes(params),
        wire::answer_bytes(params)
    );
    let units = Units::measure(params);
    println!("{units:?}");
    let ring = Ring::of(params);
    let predicted = units.total(&ring, &setup.counted.count);
    let text = input(&shape, tokens, tokens - 1, 100);
    let options = Options {
        timeout: None,
        ..Options::default()
    };
    let mut rng = Prg::from_os();
    let (client, server) = run_parties(
        Channel::memory_pair(&options),
        |channel| client::run(channel, &setup, &text, &mut rng),
        |channel| server::run(channel, &setup, &weights, &polynomials),
    );
    let (client, server) = (client?, server?);
    assert_eq!(server.count, setup.counted.count);
    let run =
        |functions: &_| float::run_with(&setup.graph, &weights, &text, functions, &mut NoObserver);
    let want = run(&polynomials);
    let exact = float::run(&setup.graph, &weights, &text, &mut NoObserver);
    println!(
        "logits {:?}\npolynomials in the clear {:?}\nfloat {:?}",
        client.logits,
        want[0].row(0),
        exact[0].row(0)
    );
    let error = (client.logits.iter().zip(want[0].row(0))).fold(0.0, |worst, (a, b)| {
        f64::max(worst, (a - f64::from(*b)).abs())
    });
    println!("largest error {error:.2e}");
    println!(
        "seconds: keys {:.1}, online {:.1}, of these the client's own {:.2}",
        client.keys, client.online, client.own
    );
    table(&server.times, &predicted, &setup.counted.count);
    for (name, layers) in [("bert-base", 12), ("bert-base, one layer", 1)] {
        let estimate = Estimate::of(
            &synthetic::bert_shape(layers, 768, 12),
            30,
            &degrees,
            &units,
        )?;
        let ring = &estimate.ring;
        println!(
            "\n{name}, 30 tokens{}: depth {}, degree 2^{}, {} primes, {} digits: {:.0} s; \
             keys {} ({:.1} GB in memory, {:.1} GB sent), input {:.2} GB, \
             one ciphertext {:.1} MB",
            if estimate.extrapolated {
                ", EXTRAPOLATED"
            } else {
                ", by the cost model"
            },
            estimate.counted.depth,
            ring.degree.trailing_zeros(),
            ring.primes(),
            ring.digits,
            estimate.total(),
            estimate.counted.rotations.len() + 1,
            estimate.key_memory() as f64 / 1e9,
            estimate.key_bytes() as f64 / 1e9,
            estimate.input_bytes() as f64 / 1e9,
            8.0 * ((ring.levels + 2) * ring.degree) as f64 / 1e6
        );
        for place in places() {
            if let Some(seconds) = estimate.seconds.get(&place) {
                println!("  {:<32} {seconds:>12.0} s", step_name(place));
            }
        }
        for operation in Operation::ALL {
            println!(
                "  {:<32} {:>12}",
                operation.name(),
                estimate.counted.count.total(operation)
            );
        }
    }
    let one = Estimate::of(&synthetic::bert_shape(1, 768, 12), 30, &degrees, &units)?;
    println!(
        "\nbert-base with refreshes for nothing, EXTRAPOLATED: {:.0} s",
        one.refreshed(12)
    );
    Ok(())
}

fn table(
    times: &primer_plan::times::Times,
    predicted: &BTreeMap<Location, f64>,
    count: &primer_paper_fhe::arithmetic::Count,
) {
    println!(
        "{:<32} {:>9} {:>9}  operations",
        "step", "seconds", "predicted"
    );
    for place in places() {
        let seconds = match place.in_layer {
            true => times.in_layers(place.step),
            false => times.outside_layers(place.step),
        };
        let Some(predicted) = predicted.get(&place) else {
            continue;
        };
        let mut by_operation = BTreeMap::new();
        for (at, operation, level, times) in count.entries() {
            if at == place {
                let entry = by_operation.entry(operation).or_insert((0, level, level));
                *entry = (entry.0 + times, entry.1.min(level), entry.2.max(level));
            }
        }
        let operations: Vec<String> = (by_operation.iter())
            .map(|(operation, (times, low, high))| {
                format!("{} {times} @{low}-{high}", operation.name())
            })
            .collect();
        println!(
            "{:<32} {seconds:>9.2} {predicted:>9.2}  {}",
            step_name(place),
            operations.join(", ")
        );
    }
    let total: f64 = predicted.values().sum();
    println!("{:<32} {:>9.2} {total:>9.2}", "all", times.total());
}
