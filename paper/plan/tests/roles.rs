//! Values and weights say what they are, for every head and form.
#![allow(missing_docs)]

#[path = "../../../crates/plan/tests/common/mod.rs"]
mod common;

use common::roles::{check_edges, check_keys, check_order, check_roles, shapes};
use common::{Calibration, shape};
use primer_paper_plan::Form;
use primer_plan::graph::{Graph, Op};

fn graphs() -> impl Iterator<Item = Graph> {
    shapes()
        .into_iter()
        .flat_map(|shape| Form::ALL.map(|form| form.graph(&shape, 8)))
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

/// Checks that a plan that is made from the same ranges keeps its bytes.
#[test]
fn plans_keep_their_fingerprints() {
    let of = |shape| Form::ALL.map(|form| Calibration::by(form.design(), &shape).plan());
    let found: Vec<String> = shapes()
        .into_iter()
        .flat_map(of)
        .map(|plan| blake3::Hash::from_bytes(plan.fingerprint()).to_hex()[..16].to_owned())
        .collect();
    assert_eq!(found, FINGERPRINTS);
}

const FINGERPRINTS: [&str; 18] = [
    "1046f51e6e1067eb",
    "f5c8489a442cc36d",
    "4518c6955300f8ca",
    "55b835eaaf08056d",
    "72439db282514687",
    "e212bab5695c3c5b",
    "c706d0421d8d3cf7",
    "66085451cbf86438",
    "6bf21a7cd83d44f4",
    "2f34c6783030c725",
    "d31f0c72dc188fce",
    "e0a989f816d13b3c",
    "b88122d8f09adfb3",
    "6444e4711489a2d0",
    "14eb1c1e1cc93537",
    "b0ef4d022db6701c",
    "75e35fae87d6082e",
    "20521a53dabd02e3",
];

#[test]
fn positions_are_added_and_rows_have_no_signs() {
    let shape = shape();
    for form in Form::ALL {
        let graph = form.graph(&shape, 4);
        let Op::Embed {
            table, positions, ..
        } = graph.steps[0].op
        else {
            unreachable!("the first step embeds");
        };
        assert_eq!(graph.weight(table).rows, shape.one_hot());
        assert_eq!(graph.one_hot(), shape.one_hot());
        assert_eq!(graph.weight(positions.unwrap()).rows, shape.positions);
        assert!(graph.signed().is_none());
    }
}
