//! Values and weights say what they are, for every head.

mod common;

use common::roles::{check_edges, check_keys, check_order, check_roles, shapes};
use common::{Calibration, shape};
use primer_plan::graph::{Graph, Op};

fn graphs() -> impl Iterator<Item = Graph> {
    shapes().into_iter().map(|shape| Graph::new(&shape, 8))
}

#[test]
fn roles_fit_the_operations() {
    graphs().for_each(|graph| check_roles(&graph));
}

#[test]
fn no_two_weights_have_the_same_key_or_name() {
    graphs().for_each(|graph| check_keys(&graph));
}

#[test]
fn edges_lead_back_and_forth() {
    graphs().for_each(|graph| check_edges(&graph));
}

#[test]
fn every_value_is_made_once_and_before_it_is_read() {
    graphs().for_each(|graph| check_order(&graph));
}

/// Checks that a plan that is made from the same ranges keeps its bytes: both parties compare
/// fingerprints, and prepared bundles are kept in stores.
#[test]
fn plans_keep_their_fingerprints() {
    let plans = shapes()
        .into_iter()
        .map(|shape| Calibration::plausible(&shape).plan());
    let found: Vec<String> = plans
        .map(|plan| blake3::Hash::from_bytes(plan.fingerprint()).to_hex()[..16].to_owned())
        .collect();
    assert_eq!(found, FINGERPRINTS);
}

const FINGERPRINTS: [&str; 9] = [
    "c296e40c178a45cf",
    "1ffff543c9ba5f5d",
    "7d89b22a3efd1d49",
    "aee12bdbd581bec7",
    "c72796527d55cc9f",
    "05db4f9116c4ef35",
    "2c40e0097d88a947",
    "f7f0b4ffce7fb7a9",
    "0671077dbfc128aa",
];

/// Checks that positions are rows of the table, and that the signs of embedded rows are removed in
/// the embedding's LayerNorm.
#[test]
fn signs_of_embedded_rows_come_off_in_the_first_norm() {
    let shape = shape();
    let graph = Graph::new(&shape, 4);
    let Op::Embed {
        table, positions, ..
    } = graph.steps[0].op
    else {
        unreachable!("the first step embeds");
    };
    assert!(positions.is_none());
    assert_eq!(graph.weight(table).rows, graph.one_hot());
    assert_eq!(graph.one_hot(), shape.one_hot() + shape.positions);
    let signed = graph.signed().unwrap();
    assert_eq!(graph.value(signed.output).name, "embeddings_norm.scaled");
    assert_eq!(graph.value(signed.factor).name, "embeddings_norm.root");
}
